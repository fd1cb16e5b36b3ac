/* Starts key-worker with the first request, and again if it ended. */
#include "message/identity/process/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/pipe.h>
#include <amp/json/lines.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/process.h"

enum { REQUEST_MAX = 64 << 20, ANSWER_MAX = 4096, ANSWER_MS = 30000 };

struct identity_worker {
    struct amp_child child;
    int to, from;
    struct amp_lines answers;
    struct amp_tape tape;
    uint64_t q;
};

static void worker_stop(struct identity_worker *w)
{
    struct amp_child_end end;
    struct amp_error err;
    int now = 1;
    if (w->to >= 0)
        close(w->to);
    if (w->from >= 0)
        close(w->from);
    w->to = w->from = -1;
    if (w->child.pid > 0)
        amp_child_wait(&w->child, -1, 200, &now, &end, &err);
    w->child.pid = 0;
    amp_lines_release(&w->answers);
    amp_lines_init(&w->answers, ANSWER_MAX);
}

void identity_worker_free(struct identity_worker *w)
{
    if (!w)
        return;
    worker_stop(w);
    amp_lines_release(&w->answers);
    amp_tape_release(&w->tape);
    free(w);
}

static int worker_failed(struct amp_error *err, const char *why)
{
    return amp_fail(err, AMP_UNAVAILABLE, key_worker_failed,
                    "the signature cannot be verified: key-worker %s", why);
}

static int worker_start(struct identity_worker *w, struct amp_error *err)
{
    char path[4096];
    if (amp_helper_path("key-worker", path, sizeof path, err) < 0)
        return -1;
    const char *const argv[] = {path, NULL};
    struct amp_child_spec spec = {
        .argv = argv, .fd_err = STDERR_FILENO, .no_new_privs = true, .dies_with_us = true};
    return amp_child_start_piped(&spec, &w->child, &w->to, &w->from, err);
}

/* Waits for one event. -1 with an error. */
static int worker_wait(struct identity_worker *w, short events, int64_t until_ms,
                       volatile const int *stop, struct amp_error *err)
{
    struct pollfd p = {.fd = events == POLLOUT ? w->to : w->from, .events = events};
    int64_t left = until_ms - amp_mono_ms();
    if (left <= 0)
        return worker_failed(err, "gave no answer within 30 s");
    if (amp_poll(&p, 1, left, stop) >= 0 || (errno == EINTR && !(stop && *stop)))
        return 0;
    return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
}

static int request_send(struct identity_worker *w, struct amp_span line, int64_t until_ms,
                        volatile const int *stop, struct amp_error *err)
{
    while (line.n > 0) {
        ssize_t n = write(w->to, line.p, line.n);
        if (n < 0 && errno != EAGAIN && errno != EINTR)
            return worker_failed(err, "ended");
        if (n < 0 && worker_wait(w, POLLOUT, until_ms, stop, err) < 0)
            return -1;
        if (n > 0) {
            line.p += n;
            line.n -= (size_t)n;
        }
    }
    return 0;
}

/* {"q":N,"valid":true|false} or {"q":N,"error":"…"}. */
static int answer_read(struct identity_worker *w, struct amp_span line, struct amp_error *err)
{
    struct amp_json_fault fault;
    int64_t q;
    if (amp_tape_scan(&w->tape, line.p, line.n, &fault) < 0)
        return worker_failed(err, "gave a malformed answer");
    uint32_t at = amp_tape_get(&w->tape, 0, AMP_SPAN("q"));
    uint32_t valid = amp_tape_get(&w->tape, 0, AMP_SPAN("valid"));
    uint32_t error = amp_tape_get(&w->tape, 0, AMP_SPAN("error"));
    if (at == AMP_TOK_NONE || !amp_tok_int(&w->tape, at, &q) || (uint64_t)q != w->q)
        return worker_failed(err, "answered another request");
    if (error != AMP_TOK_NONE)
        return amp_fail(err, AMP_UNAVAILABLE, key_worker_failed,
                        "the signature cannot be verified: %.*s",
                        AMP_CLIP(amp_tok_raw(&w->tape, error), 200));
    if (valid == AMP_TOK_NONE)
        return worker_failed(err, "gave a malformed answer");
    return w->tape.tok[valid].type == AMP_JSON_TRUE;
}

static int answer_wait(struct identity_worker *w, int64_t until_ms, volatile const int *stop,
                       struct amp_error *err)
{
    for (;;) {
        struct amp_line line;
        switch (amp_lines_next(&w->answers, &line)) {
        case AMP_LINE:
            return answer_read(w, line.bytes, err);
        case AMP_LINE_MORE:
            break;
        default:
            return worker_failed(err, "gave a malformed answer");
        }
        switch (amp_lines_fill(&w->answers, w->from, err)) {
        case AMP_READ_WOULD_BLOCK:
            if (worker_wait(w, POLLIN, until_ms, stop, err) < 0)
                return -1;
            break;
        case AMP_READ_BYTES:
            break;
        default:
            return worker_failed(err, "ended");
        }
    }
}

static int member_base64(struct amp_jw *w, struct amp_buf *mem, const char *key,
                         const struct amp_span *parts, size_t n, struct amp_error *err)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += parts[i].n;
    AMP_BUF struct amp_buf raw = {0};
    amp_buf_init(&raw, REQUEST_MAX);
    amp_buf_reset(mem);
    for (size_t i = 0; i < n; i++)
        if (amp_buf_add(&raw, parts[i].p, parts[i].n, err) < 0)
            return -1;
    size_t size = sodium_base64_encoded_len(all, sodium_base64_VARIANT_ORIGINAL);
    if (amp_buf_reserve(mem, size, err) < 0)
        return -1;
    sodium_bin2base64(mem->data, size, (const unsigned char *)(raw.len > 0 ? raw.data : ""), all,
                      sodium_base64_VARIANT_ORIGINAL);
    amp_jw_member_str(w, key, (struct amp_span){mem->data, size - 1});
    return 0;
}

static int request_write(uint64_t q, const struct amp_pubkey *key, const char *ns,
                         const struct amp_sig *sig, struct amp_span data,
                         const struct amp_span *parts, size_t n_parts, struct amp_buf *out,
                         struct amp_error *err)
{
    struct amp_span blob = {(const char *)key->blob, key->n};
    AMP_BUF struct amp_buf mem = {0};
    struct amp_jw w;
    amp_buf_init(&mem, REQUEST_MAX);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_uint(&w, "q", q);
    amp_jw_member_text(&w, "type", key->type);
    amp_jw_member_str(&w, "value", sig->value);
    if (member_base64(&w, &mem, "key", &blob, 1, err) < 0)
        return -1;
    if (key->kind == AMP_PUBKEY_ECDSA_P256) {
        if (member_base64(&w, &mem, "data", &data, 1, err) < 0)
            return -1;
    } else {
        amp_jw_member_text(&w, "namespace", ns);
        if (member_base64(&w, &mem, "text", parts, n_parts, err) < 0)
            return -1;
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

static int worker_new(struct identity_worker **out, struct amp_error *err)
{
    struct identity_worker *w = calloc(1, sizeof *w);
    if (!w)
        return amp_fail_memory(err);
    w->to = w->from = -1;
    amp_lines_init(&w->answers, ANSWER_MAX);
    amp_tape_init(&w->tape, NULL);
    *out = w;
    return 0;
}

static int request_answer(struct identity_worker *w, struct amp_span line, volatile const int *stop,
                          struct amp_error *err)
{
    int64_t until = amp_mono_ms() + ANSWER_MS;
    int rc = w->to < 0 ? worker_start(w, err) : 0;
    if (rc == 0)
        rc = request_send(w, line, until, stop, err);
    if (rc == 0)
        rc = answer_wait(w, until, stop, err);
    return rc;
}

int identity_worker_verify(struct identity_worker **kept, const struct amp_pubkey *key,
                           const char *ns, const struct amp_sig *sig, struct amp_span data,
                           const struct amp_span *parts, size_t n_parts, volatile const int *stop,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    if (!*kept && worker_new(kept, err) < 0)
        return -1;
    struct identity_worker *w = *kept;
    amp_buf_init(&line, REQUEST_MAX);
    if (request_write(++w->q, key, ns, sig, data, parts, n_parts, &line, err) < 0)
        return -1;
    struct amp_error why;
    bool ran = w->to >= 0;
    int rc = request_answer(w, amp_buf_span(&line), stop, &why);
    /* The worker may have ended since its last answer. */
    if (rc < 0 && ran && why.status == AMP_UNAVAILABLE) {
        worker_stop(w);
        rc = request_answer(w, amp_buf_span(&line), stop, &why);
    }
    if (rc >= 0)
        return rc;
    worker_stop(w);
    if (err)
        *err = why;
    return -1;
}
