/*
 * Runs a helper. Requests are kept in their order until they are answered. The helper works at the
 * first unanswered one, so this one fails if the helper hangs or dies.
 */
#include "message/port/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/json/lines.h>
#include <amp/json/tape.h>

#include "base/codes.h"
#include "base/process/process.h"

#define IN_FLIGHT_MAX 64
#define BYTES_MAX     ((size_t)1 << 20)
#define REQUEST_MAX   ((size_t)40 << 20)
#define ANSWER_MAX    ((size_t)1 << 20)
#define CRASH_WINDOW  60000
#define ARGS_MAX      256

struct helper_request {
    uint64_t tag, q;
    size_t len;
    char *line;
};

struct amp_helper {
    char path[4096];
    const char *argv[ARGS_MAX];
    const char *env[3];
    int64_t limit_ms;
    volatile const int *stop;
    struct amp_child child;
    int to, from; /* its input and output; -1: it does not run */
    struct amp_lines answers;
    struct amp_tape tape;
    struct helper_request v[IN_FLIGHT_MAX];
    uint32_t first, n;
    uint64_t next_q;
    size_t bytes;
    uint32_t sent;     /* requests of v that are completely written */
    size_t sent_bytes; /* written bytes of the next one */
    int64_t head_since_ms;
    int64_t crashes[2]; /* the latest deaths, the newest first */
};

static struct helper_request *request_at(struct amp_helper *h, uint32_t i)
{
    return &h->v[(h->first + i) % IN_FLIGHT_MAX];
}

int amp_helper_new(const struct amp_helper_options *opt, struct amp_helper **out,
                   struct amp_error *err)
{
    struct amp_helper *h = calloc(1, sizeof(*h));
    if (!h)
        return amp_fail_memory(err);
    if (amp_helper_path(opt->name, h->path, sizeof(h->path), err) < 0) {
        free(h);
        return -1;
    }
    h->argv[0] = h->path;
    int n = 1;
    for (const char *const *a = opt->args; a && *a; a++) {
        if (n == ARGS_MAX - 1) {
            free(h);
            return amp_fail(err, AMP_USAGE, too_many, "too many arguments for %s", opt->name);
        }
        h->argv[n++] = *a;
    }
    h->env[0] = "LC_ALL=C";
    h->env[1] = opt->env;
    h->limit_ms = opt->limit_ms;
    h->stop = opt->stop;
    h->to = h->from = -1;
    h->next_q = 1;
    amp_lines_init(&h->answers, ANSWER_MAX);
    amp_tape_init(&h->tape, NULL);
    *out = h;
    return 0;
}

static void helper_stop(struct amp_helper *h, int64_t grace_ms)
{
    if (h->to >= 0)
        close(h->to);
    if (h->from >= 0)
        close(h->from);
    h->to = h->from = -1;
    if (h->child.pid > 0) {
        struct amp_child_end end;
        struct amp_error err;
        int now = 1;
        if (grace_ms == 0)
            amp_child_kill_tree(&h->child, 9);
        amp_child_wait(&h->child, -1, grace_ms, &now, &end, &err);
        h->child.pid = 0;
    }
    amp_lines_release(&h->answers);
    amp_lines_init(&h->answers, ANSWER_MAX);
    h->sent = 0;
    h->sent_bytes = 0;
}

void amp_helper_free(struct amp_helper *h)
{
    if (!h)
        return;
    helper_stop(h, 1000);
    for (uint32_t i = 0; i < h->n; i++)
        free(request_at(h, i)->line);
    amp_lines_release(&h->answers);
    amp_tape_release(&h->tape);
    free(h);
}

static struct amp_child_spec helper_spec(const struct amp_helper *h)
{
    return (struct amp_child_spec){.argv = h->argv,
                                   .envp = h->env,
                                   .fd_in = -1,
                                   .fd_out = -1,
                                   .fd_err = STDERR_FILENO,
                                   .no_new_privs = true,
                                   .dies_with_us = true};
}

int amp_helper_probe(struct amp_helper *h, struct amp_error *err)
{
    struct amp_child_spec spec = helper_spec(h);
    struct amp_child child;
    struct amp_child_end end;
    if (amp_child_start(&spec, &child, err) < 0 ||
        amp_child_wait(&child, h->limit_ms + 10000, 0, h->stop, &end, err) < 0)
        return -1;
    if (end.stopped_by_us && !end.timed_out)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    if (end.exited && end.exit_code == 0)
        return 0;
    if (end.exited && end.exit_code == AMP_USAGE)
        return amp_fail(err, AMP_USAGE, bad_helper_arguments, "%s refuses its arguments", h->path);
    return amp_fail(err, AMP_UNAVAILABLE, helper_unavailable, "%s does not start", h->path);
}

static int helper_start(struct amp_helper *h, struct amp_error *err)
{
    struct amp_child_spec spec = helper_spec(h);
    if (amp_child_start_piped(&spec, &h->child, &h->to, &h->from, err) < 0)
        return -1;
    h->head_since_ms = amp_mono_ms();
    return 0;
}

int amp_helper_ask(struct amp_helper *h, uint64_t tag, struct amp_span request,
                   struct amp_error *err)
{
    if (h->n == IN_FLIGHT_MAX || (h->n > 0 && h->bytes + request.n > BYTES_MAX))
        return AMP_HELPER_FULL;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, REQUEST_MAX);
    if (amp_buf_fmt(&b, err, "{\"q\":%llu,", (unsigned long long)h->next_q) < 0 ||
        amp_buf_add(&b, request.p, request.n, err) < 0 || amp_buf_add(&b, "}\n", 2, err) < 0)
        return -1;
    char *line = amp_span_dup(amp_buf_span(&b));
    if (!line)
        return amp_fail_memory(err);
    if (h->n == 0)
        h->head_since_ms = amp_mono_ms();
    *request_at(h, h->n++) =
        (struct helper_request){.tag = tag, .q = h->next_q++, .len = b.len, .line = line};
    h->bytes += b.len;
    return AMP_HELPER_ASKED;
}

uint32_t amp_helper_in_flight(const struct amp_helper *h)
{
    return h->n;
}

void amp_helper_watch(const struct amp_helper *h, struct pollfd fds[2], int *timeout_ms)
{
    fds[0] = fds[1] = (struct pollfd){.fd = -1};
    if (h->n == 0)
        return;
    int64_t wait = h->to < 0 ? 0 : h->head_since_ms + h->limit_ms - amp_mono_ms();
    if (wait < 0)
        wait = 0;
    if (*timeout_ms < 0 || wait < *timeout_ms)
        *timeout_ms = (int)wait;
    fds[0] = (struct pollfd){.fd = h->from, .events = POLLIN};
    if (h->sent < h->n)
        fds[1] = (struct pollfd){.fd = h->to, .events = POLLOUT};
}

static void head_reply(struct amp_helper *h, amp_helper_reply_fn reply, void *ctx,
                       struct amp_span answer, const struct amp_error *why)
{
    struct helper_request r = *request_at(h, 0);
    h->first = (h->first + 1) % IN_FLIGHT_MAX;
    h->n--;
    h->bytes -= r.len;
    if (h->sent > 0)
        h->sent--;
    else
        h->sent_bytes = 0;
    h->head_since_ms = amp_mono_ms();
    free(r.line);
    reply(ctx, r.tag, answer, why);
}

/* -1: the helper is gone. */
static int requests_write(struct amp_helper *h)
{
    while (h->sent < h->n) {
        struct helper_request *r = request_at(h, h->sent);
        ssize_t k = write(h->to, r->line + h->sent_bytes, r->len - h->sent_bytes);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return errno == EAGAIN ? 0 : -1;
        h->sent_bytes += (size_t)k;
        if (h->sent_bytes == r->len) {
            h->sent++;
            h->sent_bytes = 0;
        }
    }
    return 0;
}

/* Whether the answer has the number of the first request. */
static bool answers_head(struct amp_helper *h, struct amp_span line)
{
    struct amp_json_fault f;
    int64_t q;
    if (h->n == 0 || amp_tape_scan(&h->tape, line.p, line.n, &f) < 0)
        return false;
    uint32_t tok = amp_tape_get(&h->tape, 0, AMP_SPAN("q"));
    return tok != AMP_TOK_NONE && amp_tok_int(&h->tape, tok, &q) &&
           (uint64_t)q == request_at(h, 0)->q;
}

/* -1: the helper is gone, or its answer is invalid. */
static int answers_read(struct amp_helper *h, amp_helper_reply_fn reply, void *ctx)
{
    struct amp_error err;
    for (;;) {
        struct amp_line line;
        enum amp_line_result r = amp_lines_next(&h->answers, &line);
        if (r == AMP_LINE) {
            if (!answers_head(h, line.bytes))
                return -1;
            head_reply(h, reply, ctx, line.bytes, NULL);
        } else if (r == AMP_LINE_MORE) {
            enum amp_read got = amp_lines_fill(&h->answers, h->from, &err);
            if (got == AMP_READ_WOULD_BLOCK)
                return 0;
            if (got != AMP_READ_BYTES)
                return -1;
        } else {
            return -1;
        }
    }
}

static int death_note(struct amp_helper *h, struct amp_error *err)
{
    int64_t now = amp_mono_ms();
    helper_stop(h, 0);
    bool too_often = h->crashes[1] > 0 && now - h->crashes[1] < CRASH_WINDOW;
    h->crashes[1] = h->crashes[0];
    h->crashes[0] = now;
    /* A helper without requests shows whether the helper is broken or the requests are. Otherwise
     * three bad requests could end the program. */
    struct amp_error why;
    if (!too_often || amp_helper_probe(h, &why) == 0)
        return 0;
    if (why.status == AMP_INTERRUPTED) {
        *err = why;
        return -1;
    }
    return amp_fail(err, AMP_UNAVAILABLE, helper_unavailable,
                    "%s died three times within a minute, and does not start: %s", h->path,
                    why.what);
}

int amp_helper_step(struct amp_helper *h, amp_helper_reply_fn reply, void *ctx,
                    struct amp_error *err)
{
    if (h->n == 0)
        return 0;
    if (h->to < 0 && helper_start(h, err) < 0)
        return -1;
    int rc = requests_write(h);
    if (rc == 0 || h->sent > 0)
        rc = answers_read(h, reply, ctx) < 0 ? -1 : rc;
    if (h->n == 0 && rc == 0)
        return 0;
    struct amp_error why = {0};
    if (rc < 0) {
        amp_fail(&why, AMP_UNAVAILABLE, helper_died, "%s died during this request", h->path);
        if (death_note(h, err) < 0)
            return -1;
    } else if (amp_mono_ms() - h->head_since_ms >= h->limit_ms) {
        amp_fail(&why, AMP_TIMEDOUT, helper_timeout, "no answer within %lld ms",
                 (long long)h->limit_ms);
        helper_stop(h, 0);
    } else {
        return 0;
    }
    if (h->n > 0)
        head_reply(h, reply, ctx, (struct amp_span){NULL, 0}, &why);
    return 0;
}
