/*
 * Delivery to one port. Lines wait in a bounded queue of our own; a little of it at a time goes to
 * the descriptor's pending output. When the reader goes away, what it had not taken whole is still
 * here and starts again with the next reader, until the message waited too long for one.
 */
#include "port/private.h"
#include "port/tries.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#define FEED          AMP_PORT_FEED
#define RESTART_MS    200
#define CRASH_WINDOW  60000
#define COMMAND_GRACE 2000
#define JOBS          4
#define ATTEMPTS      5
#define UNUSED_MS     10000 /* at the end: how old a port is that waits for no reader any more */

static const struct {
    const char *word;
    enum amp_port_kind kind;
    bool arg;
    const struct amp_port_ops *ops;
} kinds[] = {
    {"fifo", AMP_PORT_FIFO, true, NULL},
    {"file", AMP_PORT_FILE, true, NULL},
    {"spool", AMP_PORT_SPOOL, true, NULL},
    {"command", AMP_PORT_COMMAND, true, NULL},
    {"unix", AMP_PORT_UNIX, true, NULL},
    {"exec-each", AMP_PORT_EACH, true, &amp_port_each},
    {"http", AMP_PORT_HTTP, true, &amp_port_http},
    {"https", AMP_PORT_HTTP, true, &amp_port_http},
    {"stdout", AMP_PORT_STDOUT, false, NULL},
    {"agents", AMP_PORT_AGENTS, false, NULL},
    {"reject", AMP_PORT_REJECT, false, NULL},
    {"dead", AMP_PORT_DEAD, false, NULL},
    {"inbox", AMP_PORT_INBOX, true, NULL},
};

static int parse(struct amp_port *p, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t n = strlen(kinds[i].word);
        if (strncmp(p->spec, kinds[i].word, n) != 0)
            continue;
        if (!kinds[i].arg && p->spec[n] == 0) {
            p->kind = kinds[i].kind;
            return 0;
        }
        if (kinds[i].arg && p->spec[n] == ':' && p->spec[n + 1]) {
            p->kind = kinds[i].kind;
            p->ops = kinds[i].ops;
            p->arg = p->spec + n + 1;
            return 0;
        }
    }
    return amp_fail(err, AMP_USAGE, "bad_port",
                    "unknown port \"%.200s\": one of fifo:PATH file:PATH spool:DIR command:ARGV "
                    "unix:PATH exec-each:ARGV http(s)://URL inbox:AGENT stdout agents reject dead",
                    p->spec);
}

/* What the router sees to itself. */
static bool is_nowhere(const struct amp_port *p)
{
    return p->kind == AMP_PORT_AGENTS || p->kind == AMP_PORT_INBOX || p->kind == AMP_PORT_REJECT ||
           p->kind == AMP_PORT_DEAD;
}

static int start(struct amp_port *p, struct amp_error *err)
{
    if (parse(p, err) < 0)
        return -1;
    if (p->opt.unopened)
        p->ops = NULL;
    if (p->opt.unopened || is_nowhere(p))
        return 0;
    if (p->ops)
        return p->ops->open(p, err);
    if (p->kind == AMP_PORT_SPOOL)
        return amp_spool_open(&p->spool, p->arg, err);
    if (p->kind == AMP_PORT_COMMAND && amp_argv_split(p->arg, &p->argv, err) < 0)
        return -1;
    return amp_port_connect(p, p->born_ms, err) < 0 ? -1 : 0;
}

int amp_port_new(const char *spec, const struct amp_port_options *opt, struct amp_port **out,
                 struct amp_error *err)
{
    struct amp_port *p = calloc(1, sizeof(*p));
    if (!p || !(p->spec = strdup(spec))) {
        free(p);
        return amp_fail_memory(err);
    }
    p->opt = *opt;
    p->opt.jobs = opt->jobs ? opt->jobs : JOBS;
    p->opt.attempts = opt->attempts ? opt->attempts : ATTEMPTS;
    p->ends = -1;
    p->spool.dir = p->spool.lock = -1;
    p->born_ms = amp_mono_ms();
    amp_queue_init(&p->queue, opt->max_pending);
    if (start(p, err) < 0) {
        amp_port_free(p);
        return -1;
    }
    *out = p;
    return 0;
}

void amp_port_free(struct amp_port *p)
{
    if (!p)
        return;
    if (p->ops)
        p->ops->close(p);
    amp_port_disconnect(p, false);
    if (p->child.pid > 0) {
        struct amp_child_end end;
        struct amp_error err;
        int stop = 1;
        amp_child_wait(&p->child, -1, COMMAND_GRACE, &stop, &end, &err);
    }
    amp_argv_free(p->argv);
    amp_spool_close(&p->spool);
    amp_queue_release(&p->queue);
    free(p->spec);
    free(p);
}

const char *amp_port_spec(const struct amp_port *p)
{
    return p->spec;
}
enum amp_port_kind amp_port_kind(const struct amp_port *p)
{
    return p->kind;
}
bool amp_port_is_network(const struct amp_port *p)
{
    return p->network;
}
size_t amp_port_pending(const struct amp_port *p)
{
    return amp_queue_pending(&p->queue) - p->out_bytes + (p->tries ? p->tries->bytes : 0);
}

int amp_port_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                   struct amp_error *err)
{
    return amp_port_offer_since(p, id, line, tag, amp_mono_ms(), err);
}

int amp_port_offer_since(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                         int64_t since_ms, struct amp_error *err)
{
    if (p->ops)
        return p->ops->offer(p, id, line, tag, err);
    if (p->kind != AMP_PORT_SPOOL)
        return amp_queue_add(&p->queue, line, tag, since_ms, err);
    char name[AMP_SPOOL_NAME_MAX];
    amp_spool_name(p->opt.consumer, id, line, name);
    if (amp_spool_put(&p->spool, name, line, err) < 0)
        return -1;
    /* Delivered already; step() syncs, and says so. */
    return amp_queue_add(&p->queue, (struct amp_span){"", 0}, tag, 0, err);
}

/* ---- the descriptor side ---- */

static void lost_reader(struct amp_port *p, int64_t now_ms)
{
    amp_port_disconnect(p, true);
    p->lost = p->opt.minds && p->kind != AMP_PORT_STDOUT;
    p->down_ms = now_ms;
    p->retry_ms = now_ms;
    if (p->kind == AMP_PORT_STDOUT) {
        p->failed = true;
        amp_fail(&p->why, AMP_IOERR, "closed_pipe", "the reader of standard output is gone");
    }
}

static void fail_head(struct amp_port *p, amp_port_done_fn done, void *ctx,
                      const struct amp_error *why)
{
    struct amp_queued head = *amp_queue_at(&p->queue, 0);
    struct amp_span line = {p->queue.bytes.data + p->queue.head, head.len - 1};
    AMP_FREE char *copy = head.tag == 0 && !head.told ? amp_span_dup(line) : NULL;
    amp_queue_pop(&p->queue);
    p->telling = head.number;
    p->failing = (struct amp_span){copy ? copy : "", copy ? line.n : 0};
    if (!head.told)
        done(ctx, head.tag, why);
    p->failing = (struct amp_span){"", 0};
}

/* Messages that no reader came for in time. */
static void expire(struct amp_port *p, int64_t now_ms, amp_port_done_fn done, void *ctx)
{
    const struct amp_queued *head;
    while (!p->open && p->opt.open_timeout_ms >= 0 && (head = amp_queue_at(&p->queue, 0))) {
        int64_t since = head->since_ms > p->down_ms ? head->since_ms : p->down_ms;
        if (now_ms - since < p->opt.open_timeout_ms)
            return;
        struct amp_error why = {0};
        amp_fail(&why, AMP_UNAVAILABLE, "agent_unavailable", "%s had no reader within %lld ms",
                 p->spec, (long long)p->opt.open_timeout_ms);
        fail_head(p, done, ctx, &why);
    }
}

static void feed(struct amp_port *p)
{
    while (amp_outq_pending(&p->outq) < FEED && p->fed < p->queue.n) {
        uint32_t n;
        struct amp_span lines = amp_queue_bytes(&p->queue, p->fed_bytes, p->fed, FEED, &n);
        if (p->regular && amp_outq_pending(&p->outq) == 0)
            amp_outq_through(&p->outq, lines, NULL,
                             NULL); /* what fails is pending, and fails again */
        else if (amp_outq_add(&p->outq, lines, NULL) < 0)
            return;
        p->fed += n;
        p->fed_bytes += lines.n;
    }
}

/* A file's lines count when they are on the disk. What cannot be synced (a device) need not be. */
static int sync_file(struct amp_port *p, struct amp_error *err)
{
    if (p->kind != AMP_PORT_FILE || !p->opt.durable || p->outq.written == p->synced)
        return 0;
    if (fdatasync(p->outq.fd) < 0 && errno != EINVAL && errno != EROFS)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync %s", p->arg);
    p->synced = p->outq.written;
    return 0;
}

/* Tells the outcome of what is written, and lets go of what the pipe cannot hold any more. */
static void settle(struct amp_port *p, amp_port_done_fn done, void *ctx)
{
    while (p->out < p->fed) {
        struct amp_queued *line = amp_queue_at(&p->queue, p->out);
        if (p->outq.written < p->popped + p->out_bytes + line->len)
            break;
        p->out++;
        p->out_bytes += line->len;
        uint64_t tag = line->tag;
        bool told = line->told;
        line->told = true;
        p->telling = line->number;
        if (!told)
            done(ctx, tag, NULL);
    }
    while (p->out > 0) {
        size_t len = amp_queue_at(&p->queue, 0)->len;
        if (p->out_bytes - len < p->keep)
            break;
        p->popped += len;
        p->out_bytes -= len;
        p->fed_bytes -= len;
        p->out--;
        p->fed--;
        amp_queue_pop(&p->queue);
    }
}

static void push(struct amp_port *p, int64_t now_ms, amp_port_done_fn done, void *ctx)
{
    struct amp_error why = {0};
    for (;;) {
        feed(p);
        if (amp_outq_pending(&p->outq) == 0 && p->fed == p->out)
            return;
        int rc = amp_outq_flush(&p->outq, &why);
        if (rc >= 0 && sync_file(p, &why) < 0)
            rc = -1;
        bool lost = rc < 0 && strcmp(why.code, "closed_pipe") == 0;
        if (rc >= 0 || lost)
            settle(p, done, ctx);
        if (lost) {
            lost_reader(p, now_ms);
            return;
        }
        if (rc < 0) {
            /* Which of the lines under way are out is not known: all of them failed. */
            uint32_t n = p->fed - p->out;
            amp_port_disconnect(p, false);
            p->retry_ms = now_ms;
            while (n-- > 0)
                fail_head(p, done, ctx, &why);
            return;
        }
        if (rc == 0)
            return;
    }
}

/* A command that ended before its input did. 1: it may be started again. */
static int command_died(struct amp_port *p, int64_t now_ms)
{
    struct amp_child_end end;
    struct amp_error err;
    if (p->child.pid <= 0 || amp_child_poll(&p->child, &end, &err) != 1)
        return 0;
    p->child.pid = 0;
    amp_port_disconnect(p, true);
    p->lost = p->opt.minds;
    p->down_ms = now_ms;
    p->retry_ms = now_ms + RESTART_MS;
    bool too_often = p->crashes[0] > 0 && now_ms - p->crashes[0] < CRASH_WINDOW;
    memmove(p->crashes, p->crashes + 1, sizeof(p->crashes) - sizeof(p->crashes[0]));
    p->crashes[2] = now_ms;
    if (too_often) {
        p->failed = true;
        amp_fail(&p->why, AMP_UNAVAILABLE, "agent_unavailable",
                 "%s ended again and again (last with %s %d)", p->spec,
                 end.signaled ? "signal" : "status", end.signaled ? end.signal : end.exit_code);
    }
    return 1;
}

void amp_port_step(struct amp_port *p, amp_port_done_fn done, void *ctx)
{
    int64_t now = amp_mono_ms();
    if (p->ops) {
        p->ops->step(p, done, ctx);
        return;
    }
    if (p->kind == AMP_PORT_SPOOL) {
        const struct amp_queued *head;
        struct amp_error why = {0};
        int rc = amp_queue_at(&p->queue, 0) ? amp_spool_sync(&p->spool, &why) : 0;
        while ((head = amp_queue_at(&p->queue, 0))) {
            uint64_t tag = head->tag;
            p->telling = head->number;
            amp_queue_pop(&p->queue);
            done(ctx, tag, rc < 0 ? &why : NULL);
        }
        return;
    }
    if (p->kind == AMP_PORT_COMMAND && !p->finishing)
        command_died(p, now);
    if (p->kind == AMP_PORT_UNIX && p->open && !amp_port_look(p, now))
        lost_reader(p, now);
    if (p->opt.minds)
        amp_port_notice(p);
    if (p->lost)
        return;
    bool wanted = p->queue.n > p->out || (p->kind == AMP_PORT_FIFO && !p->was_open);
    if (!p->open && !p->failed && wanted && now >= p->retry_ms && !is_nowhere(p)) {
        struct amp_error why = {0};
        /* A command whose pipe broke but that still runs is waited for first. */
        bool busy = p->kind == AMP_PORT_COMMAND && p->child.pid > 0;
        if (!busy && amp_port_connect(p, now, &why) < 0) {
            p->failed = true;
            p->why = why;
        }
    }
    while (p->failed && amp_queue_at(&p->queue, 0))
        fail_head(p, done, ctx, &p->why);
    if (p->open)
        push(p, now, done, ctx);
    while (p->failed && amp_queue_at(&p->queue, 0))
        fail_head(p, done, ctx, &p->why);
    expire(p, now, done, ctx);
}

static void lower(int *timeout_ms, int64_t ms)
{
    if (ms < 0)
        ms = 0;
    if (*timeout_ms < 0 || ms < *timeout_ms)
        *timeout_ms = (int)(ms > 60000 ? 60000 : ms);
}

void amp_port_watch(const struct amp_port *p, struct pollfd fds[AMP_PORT_FDS], int *timeout_ms)
{
    struct pollfd *fd = &fds[0];
    for (int i = 0; i < AMP_PORT_FDS; i++)
        fds[i] = (struct pollfd){.fd = -1};
    if (p->ops) {
        int64_t wait = p->ops->watch(p, fds);
        if (wait >= 0)
            lower(timeout_ms, wait);
        return;
    }
    int64_t now = amp_mono_ms();
    bool pending = p->queue.n > p->out;
    if (p->kind == AMP_PORT_SPOOL) {
        if (pending)
            lower(timeout_ms, 0);
        return;
    }
    if (p->lost)
        lower(timeout_ms, 0);
    if (p->kind == AMP_PORT_UNIX && p->open && (!pending || amp_outq_events(&p->outq))) {
        *fd = (struct pollfd){.fd = p->outq.fd, .events = amp_outq_events(&p->outq)};
        fd->events |= p->half ? 0 : POLLIN;
        if (p->taken != p->outq.written)
            lower(timeout_ms, p->look_ms - now);
    } else if (p->open && pending) {
        short events = amp_outq_events(&p->outq);
        int wait = amp_outq_timeout(&p->outq);
        if (events || amp_outq_pending(&p->outq) > 0)
            *fd = (struct pollfd){.fd = events ? p->outq.fd : -1, .events = events};
        else
            lower(timeout_ms, 0); /* not yet fed */
        if (wait >= 0)
            lower(timeout_ms, wait);
    } else if (p->opt.minds && p->open && p->kind == AMP_PORT_FIFO) {
        *fd = (struct pollfd){.fd = p->outq.fd}; /* POLLERR: its reader is gone */
    } else if (p->kind == AMP_PORT_COMMAND && p->child.pid > 0 &&
               (pending || p->finishing || p->opt.minds)) {
        *fd = (struct pollfd){.fd = p->child.pidfd, .events = POLLIN};
    } else if (!p->open && !p->failed && (pending || (p->kind == AMP_PORT_FIFO && !p->was_open))) {
        lower(timeout_ms, p->retry_ms - now);
    }
}

/* The reader went away, perhaps without having read all. */
static bool reader_left(const struct amp_port *p)
{
    bool either = p->kind == AMP_PORT_FIFO || p->kind == AMP_PORT_UNIX;
    struct pollfd fd = {.fd = p->open && either ? p->outq.fd : -1};
    return poll(&fd, 1, 0) == 1 && (fd.revents & (p->kind == AMP_PORT_UNIX ? POLLHUP : POLLERR));
}

void amp_port_notice(struct amp_port *p)
{
    if (p->queue.n == p->out && reader_left(p))
        lost_reader(p, amp_mono_ms());
}

static int finish_command(struct amp_port *p, struct amp_error *err)
{
    struct amp_child_end end;
    amp_port_disconnect(p, false);
    if (p->child.pid <= 0)
        return 1;
    int rc = amp_child_poll(&p->child, &end, err);
    if (rc == 0)
        return 0;
    p->child.pid = 0;
    if (rc < 0)
        return -1;
    if (end.signaled)
        return amp_fail(err, AMP_UNAVAILABLE, "command_failed", "%s was ended by signal %d",
                        p->spec, end.signal);
    if (end.exit_code != 0)
        return amp_fail(err, AMP_UNAVAILABLE, "command_failed", "%s ended with status %d", p->spec,
                        end.exit_code);
    return 1;
}

int amp_port_finish(struct amp_port *p, struct amp_error *err)
{
    if (p->queue.n > p->out || (p->tries && p->tries->n > 0))
        return 0;
    if (!p->finishing)
        p->finish_ms = amp_mono_ms();
    p->finishing = true;
    if (p->ops)
        return 1;
    if (p->kind == AMP_PORT_COMMAND)
        return finish_command(p, err);
    /* A reader may be waiting for its first writer: it is let go as soon as it is seen. */
    int64_t wait = p->opt.open_timeout_ms;
    if (wait < 0 || wait > UNUSED_MS)
        wait = UNUSED_MS;
    if (p->kind == AMP_PORT_FIFO && !p->was_open && !p->failed && amp_mono_ms() - p->born_ms < wait)
        return 0;
    if (reader_left(p))
        lost_reader(p, amp_mono_ms());
    if (p->lost || p->queue.n > p->out)
        return 0;
    /* Hanging up on a reader that answers would disturb it before it has read all. */
    if (p->kind == AMP_PORT_UNIX && p->open && p->taken != p->outq.written &&
        amp_mono_ms() - p->finish_ms < UNUSED_MS)
        return 0;
    amp_port_disconnect(p, false);
    return 1;
}
