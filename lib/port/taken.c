/* The lines that a port's reader has read, and the lines that its next reader must get. */
#include "port/private.h"
#include "port/tries.h"

#define PENDING ((size_t)16 << 10) /* bytes, without those in the pipe */

uint32_t amp_port_untaken(const struct amp_port *p)
{
    uint32_t n = p->queue.n - p->out;
    if (p->tries)
        return p->queue.n + p->tries->n;
    uint64_t unread = amp_port_unread(p);
    if (unread > p->out_bytes)
        unread = p->out_bytes;
    for (uint32_t i = p->out; i > 0 && unread > 0; i--, n++) {
        size_t len = amp_queue_at(&p->queue, i - 1)->len;
        unread -= len < unread ? len : unread;
    }
    return n;
}

bool amp_port_room(const struct amp_port *p, uint32_t ahead)
{
    bool piped = amp_port_has(p, AMP_PORT_PIPED);
    if (p->tries)
        return p->queue.n + p->tries->n < p->tries->window;
    if (ahead > 0 && piped)
        return amp_port_untaken(p) < ahead;
    return amp_port_pending(p) < (piped ? PENDING : AMP_PORT_FEED);
}

bool amp_port_lost(const struct amp_port *p)
{
    return p->lost;
}
struct amp_span amp_port_failed(const struct amp_port *p)
{
    return p->failing;
}
uint64_t amp_port_number(const struct amp_port *p)
{
    return p->reporting;
}
uint64_t amp_port_first(const struct amp_port *p)
{
    const struct amp_queued *head = amp_queue_at(&p->queue, 0);
    return head ? head->number : p->queue.numbers + 1;
}

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
