/*
 * A port that writes lines to one descriptor. Lines wait in a bounded queue; a few at a time go to
 * the descriptor's pending output. If the reader is lost, the lines that it has not read completely
 * are still in the queue. They are written to the next reader, or fail if none comes in time.
 */
#include "base/codes.h"
#include "message/port/private.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <amp/base/clock.h>

#define FEED      AMP_PORT_FEED
#define AHEAD_MAX ((size_t)64 << 20)
#define UNUSED_MS 10000 /* at the end: the longest wait for a reader, and for it to read */

/* The capacity of a pipe or socket; 0: it is neither. */
static size_t pipe_capacity(int fd)
{
    int n = fcntl(fd, F_GETPIPE_SZ);
    socklen_t len = sizeof(n);
    if (n < 0 && getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, &len) < 0)
        n = 0;
    return n > 0 ? (size_t)n : 0;
}

/* 1: opened; 0: not now, try again at retry_ms; -1: never. */
static int stream_connect(struct amp_port *p, int64_t now_ms, struct amp_error *err)
{
    const struct amp_stream *s = p->ops->stream;
    int fd = -1, rc = s->connect(p, &fd, err);
    if (rc <= 0) {
        p->retry_ms = now_ms + s->retry_ms;
        return rc;
    }
    if (amp_outq_open(&p->outq, fd, !s->borrowed, AHEAD_MAX, err) < 0) {
        if (!s->borrowed)
            close(fd);
        return -1;
    }
    p->open = p->was_open = true;
    p->keep = s->borrowed ? 0 : pipe_capacity(fd);
    p->taken = 0;
    p->look_ms = p->look_gap = 0;
    p->half = false;
    p->out = p->fed = 0;
    p->out_bytes = p->fed_bytes = 0;
    p->popped = p->synced = 0;
    p->down_ms = 0;
    amp_port_trace(p, "open", NULL);
    return 1;
}

int amp_stream_open(struct amp_port *p, struct amp_error *err)
{
    return stream_connect(p, p->born_ms, err) < 0 ? -1 : 0;
}

int amp_stream_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                     int64_t since_ms, struct amp_error *err)
{
    (void)id;
    return amp_queue_add(&p->queue, line, tag, since_ms, err);
}

uint64_t amp_port_unread(const struct amp_port *p)
{
    const struct amp_stream *s = p->ops->stream;
    int unread = 0;
    if (!p->open || p->keep == 0)
        return 0;
    if (s->unread)
        return s->unread(p);
    return ioctl(p->outq.fd, FIONREAD, &unread) < 0 || unread < 0 ? 0 : (uint64_t)unread;
}

void amp_port_disconnect(struct amp_port *p, bool reader_gone)
{
    if (!p->open)
        return;
    /* Unread lines of a pipe count as undelivered. The reader of a socket may have read more than
     * is known. */
    uint64_t unread = reader_gone ? amp_port_unread(p) : 0;
    uint64_t taken = p->outq.written - (unread < p->outq.written ? unread : p->outq.written);
    const struct amp_queued *head;
    while (p->out > 0 && (head = amp_queue_at(&p->queue, 0)) && p->popped + head->len <= taken) {
        p->popped += head->len;
        p->out--;
        amp_queue_pop(&p->queue);
    }
    amp_outq_close(&p->outq);
    amp_port_trace(p, "close", NULL);
    p->open = false;
    p->out = p->fed = 0;
    p->out_bytes = p->fed_bytes = 0;
}

void amp_port_lost_reader(struct amp_port *p, int64_t now_ms)
{
    amp_port_disconnect(p, true);
    p->lost = p->opt.minds && !p->ops->stream->borrowed;
    p->down_ms = now_ms;
    p->retry_ms = now_ms;
    if (p->ops->stream->borrowed) {
        p->failed = true;
        amp_fail(&p->why, AMP_IOERR, closed_pipe, "the reader of standard output is gone");
    }
}

static void head_fail(struct amp_port *p, const struct amp_error *why)
{
    struct amp_queued head = *amp_queue_at(&p->queue, 0);
    struct amp_span line = {p->queue.bytes.data + p->queue.head, head.len - 1};
    AMP_FREE char *copy = head.tag == 0 && !head.reported ? amp_span_dup(line) : NULL;
    amp_queue_pop(&p->queue);
    p->reporting = head.number;
    p->failing = (struct amp_span){copy ? copy : "", copy ? line.n : 0};
    if (!head.reported)
        amp_port_report(p, head.tag, why);
    p->failing = (struct amp_span){"", 0};
}

/* Fails the messages that waited too long for a reader. */
static void queue_expire(struct amp_port *p, int64_t now_ms)
{
    const struct amp_queued *head;
    while (!p->open && p->opt.open_timeout_ms >= 0 && (head = amp_queue_at(&p->queue, 0))) {
        int64_t since = head->since_ms > p->down_ms ? head->since_ms : p->down_ms;
        if (now_ms - since < p->opt.open_timeout_ms)
            return;
        struct amp_error why = {0};
        amp_fail(&why, AMP_UNAVAILABLE, agent_unavailable, "%s had no reader within %lld ms",
                 p->spec, (long long)p->opt.open_timeout_ms);
        head_fail(p, &why);
    }
}

static void output_feed(struct amp_port *p)
{
    while (amp_outq_pending(&p->outq) < FEED && p->fed < p->queue.n) {
        uint32_t n;
        struct amp_span lines = amp_queue_bytes(&p->queue, p->fed_bytes, p->fed, FEED, &n);
        if (p->regular && amp_outq_pending(&p->outq) == 0)
            amp_outq_through(&p->outq, lines, NULL, NULL); /* the next flush fails again */
        else if (amp_outq_add(&p->outq, lines, NULL) < 0)
            return;
        p->fed += n;
        p->fed_bytes += lines.n;
    }
}

/* Reports the written lines, and removes those that cannot be in the pipe any more. */
static void written_report(struct amp_port *p)
{
    while (p->out < p->fed) {
        struct amp_queued *line = amp_queue_at(&p->queue, p->out);
        if (p->outq.written < p->popped + p->out_bytes + line->len)
            break;
        p->out++;
        p->out_bytes += line->len;
        uint64_t tag = line->tag;
        bool reported = line->reported;
        line->reported = true;
        p->reporting = line->number;
        if (!reported)
            amp_port_report(p, tag, NULL);
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

static void output_write(struct amp_port *p, int64_t now_ms)
{
    struct amp_error why = {0};
    for (;;) {
        output_feed(p);
        if (amp_outq_pending(&p->outq) == 0 && p->fed == p->out)
            return;
        int rc = amp_outq_flush(&p->outq, &why);
        if (rc >= 0 && p->ops->stream->sync && p->ops->stream->sync(p, &why) < 0)
            rc = -1;
        bool lost = rc < 0 && amp_code_is(why.code, closed_pipe);
        if (rc >= 0 || lost)
            written_report(p);
        if (lost) {
            amp_port_lost_reader(p, now_ms);
            return;
        }
        if (rc < 0) {
            /* It is not known which of these lines were written: all fail. */
            uint32_t n = p->fed - p->out;
            amp_port_disconnect(p, false);
            p->retry_ms = now_ms;
            while (n-- > 0)
                head_fail(p, &why);
            return;
        }
        if (rc == 0)
            return;
    }
}

void amp_stream_step(struct amp_port *p)
{
    const struct amp_stream *s = p->ops->stream;
    int64_t now = amp_mono_ms();
    if (s->look)
        s->look(p, now);
    if (p->opt.minds)
        amp_port_notice(p);
    if (p->lost)
        return;
    bool wanted = p->queue.n > p->out || (s->early && !p->was_open);
    /* A command that closed its input but still runs must end first. */
    if (!p->open && !p->failed && wanted && now >= p->retry_ms && p->child.pid <= 0) {
        struct amp_error why = {0};
        if (stream_connect(p, now, &why) < 0) {
            p->failed = true;
            p->why = why;
        }
    }
    while (p->failed && amp_queue_at(&p->queue, 0))
        head_fail(p, &p->why);
    if (p->open)
        output_write(p, now);
    while (p->failed && amp_queue_at(&p->queue, 0))
        head_fail(p, &p->why);
    queue_expire(p, now);
}

int64_t amp_stream_watch(const struct amp_port *p, struct pollfd *fds)
{
    const struct amp_stream *s = p->ops->stream;
    bool pending = p->queue.n > p->out;
    int64_t wait = -1;
    if (s->watch && s->watch(p, fds, &wait)) {
        ;
    } else if (p->open && pending) {
        short events = amp_outq_events(&p->outq);
        int first = amp_outq_timeout(&p->outq);
        if (events || amp_outq_pending(&p->outq) > 0)
            fds[0] = (struct pollfd){.fd = events ? p->outq.fd : -1, .events = events};
        else
            first = 0; /* not yet fed */
        wait = first;
    } else if (p->opt.minds && p->open && s->gone) {
        fds[0] = (struct pollfd){.fd = p->outq.fd}; /* reports a lost reader */
    } else if (!p->open && !p->failed && (pending || (s->early && !p->was_open))) {
        wait = p->retry_ms - amp_mono_ms();
        wait = wait < 0 ? 0 : wait;
    }
    return p->lost ? 0 : wait;
}

/* Whether the reader is gone; it may have left lines unread. */
static bool reader_left(const struct amp_port *p)
{
    short gone = p->ops->stream ? p->ops->stream->gone : 0;
    struct pollfd fd = {.fd = p->open && gone ? p->outq.fd : -1};
    return poll(&fd, 1, 0) == 1 && (fd.revents & gone);
}

void amp_port_notice(struct amp_port *p)
{
    if (p->queue.n == p->out && reader_left(p))
        amp_port_lost_reader(p, amp_mono_ms());
}

int amp_stream_finish(struct amp_port *p, struct amp_error *err)
{
    const struct amp_stream *s = p->ops->stream;
    if (s->finish)
        return s->finish(p, err);
    /* A reader may wait for its first writer: the FIFO is opened once, so it sees end of file. */
    int64_t wait = p->opt.open_timeout_ms;
    if (wait < 0 || wait > UNUSED_MS)
        wait = UNUSED_MS;
    if (s->early && !p->was_open && !p->failed && amp_mono_ms() - p->born_ms < wait)
        return 0;
    if (reader_left(p))
        amp_port_lost_reader(p, amp_mono_ms());
    if (p->lost || p->queue.n > p->out)
        return 0;
    /* Closing a socket early may disturb a reader that answers before it has read all. */
    if (s->unread && p->open && s->unread(p) > 0 && amp_mono_ms() - p->finish_ms < UNUSED_MS)
        return 0;
    amp_port_disconnect(p, false);
    return 1;
}

void amp_stream_close(struct amp_port *p)
{
    amp_port_disconnect(p, false);
}

uint32_t amp_stream_retract(struct amp_port *p)
{
    uint64_t at = p->popped + p->out_bytes;
    size_t bytes = p->out_bytes;
    uint32_t n = p->out;
    /* The line of which a part is written is completed. */
    while (n < p->fed && p->outq.written > at) {
        size_t len = amp_queue_at(&p->queue, n++)->len;
        at += len;
        bytes += len;
    }
    if (p->open)
        amp_outq_retract(&p->outq, p->fed_bytes - bytes);
    p->fed = n;
    p->fed_bytes = bytes;
    return n;
}

/* ---- after a lost reader ---- */

/* Copies a line of the former queue; with `again` its delivery is reported again. */
static int line_copy(struct amp_queue *to, const struct amp_queued *was, struct amp_span line,
                     bool again, struct amp_error *err)
{
    if (amp_queue_add(to, line, was->tag, was->since_ms, err) < 0)
        return -1;
    struct amp_queued *now = &to->v[to->first + to->n - 1];
    now->number = was->number;
    now->reported = was->reported && !again;
    return 0;
}

static int queue_rebuild(const struct amp_port *p, struct amp_queue *to,
                         const struct amp_port_line *lines, uint32_t n, struct amp_error *err)
{
    uint64_t first = amp_port_first(p);
    const struct amp_queued *was;
    const char *at = p->queue.bytes.data + p->queue.head;
    uint32_t k = 0;
    for (; k < n && lines[k].number < first; k++) {
        struct amp_queued q = {.tag = lines[k].tag, .number = lines[k].number};
        if (line_copy(to, &q, lines[k].line, true, err) < 0)
            return -1;
    }
    for (uint32_t i = 0; (was = amp_queue_at(&p->queue, i)); i++) {
        bool again = k < n && lines[k].number == was->number;
        if (line_copy(to, was, (struct amp_span){at, was->len - 1}, again, err) < 0)
            return -1;
        at += was->len;
        k += again;
    }
    return 0;
}

int amp_port_again(struct amp_port *p, const struct amp_port_line *lines, uint32_t n,
                   struct amp_error *err)
{
    struct amp_queue q;
    size_t more = 0;
    for (uint32_t i = 0; i < n; i++)
        more += lines[i].line.n + 1;
    p->lost = false;
    if (n == 0)
        return 0;
    amp_queue_init(&q, p->queue.bytes.max + more);
    if (queue_rebuild(p, &q, lines, n, err) < 0) {
        amp_queue_release(&q);
        return -1;
    }
    q.bytes.max = p->queue.bytes.max;
    q.numbers = p->queue.numbers;
    amp_queue_release(&p->queue);
    p->queue = q;
    return 0;
}
