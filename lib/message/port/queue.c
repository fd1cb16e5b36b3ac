/* The lines that wait for a port. Memory at the front is freed in large steps. */
#include "message/port/queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/port/port.h"

#define COMPACT 65536

void amp_queue_init(struct amp_queue *q, size_t max)
{
    *q = (struct amp_queue){0};
    amp_buf_init(&q->bytes, max);
}

void amp_queue_release(struct amp_queue *q)
{
    amp_buf_release(&q->bytes);
    free(q->v);
    *q = (struct amp_queue){0};
}

static int slot_reserve(struct amp_queue *q, struct amp_error *err)
{
    if (q->first + q->n < q->cap)
        return 0;
    if (q->first > q->cap / 2) {
        memmove(q->v, q->v + q->first, q->n * sizeof(*q->v));
        q->first = 0;
        return 0;
    }
    return amp_grow(&q->v, &q->cap, (size_t)q->first + q->n, sizeof *q->v, err);
}

static void bytes_compact(struct amp_queue *q)
{
    amp_buf_drop(&q->bytes, q->head);
    q->head = 0;
}

int amp_queue_add(struct amp_queue *q, struct amp_span line, uint64_t tag, int64_t now_ms,
                  struct amp_error *err)
{
    if (q->head > 0 && q->bytes.len + line.n + 1 > q->bytes.max)
        bytes_compact(q);
    if (q->bytes.len + line.n + 1 > q->bytes.max)
        return amp_fail(err, AMP_NO, buffer_full, "%zu bytes are already waiting",
                        amp_queue_pending(q));
    if (slot_reserve(q, err) < 0 || amp_buf_reserve(&q->bytes, line.n + 1, err) < 0)
        return -1;
    char *end = q->bytes.data + q->bytes.len;
    if (line.n > 0)
        memcpy(end, line.p, line.n);
    memcpy(end + line.n, "\n", 2); /* the buffer has room for the NUL */
    q->bytes.len += line.n + 1;
    q->v[q->first + q->n++] = (struct amp_queued){
        .tag = tag, .len = line.n + 1, .since_ms = now_ms, .number = ++q->numbers};
    return 0;
}

struct amp_queued *amp_queue_at(const struct amp_queue *q, uint32_t i)
{
    return i < q->n ? &q->v[q->first + i] : NULL;
}

struct amp_span amp_queue_bytes(const struct amp_queue *q, size_t skip, uint32_t skip_lines,
                                size_t most, uint32_t *n)
{
    size_t len = 0;
    *n = 0;
    for (uint32_t i = skip_lines; i < q->n; i++) {
        size_t line = q->v[q->first + i].len;
        if (*n > 0 && len + line > most)
            break;
        len += line;
        ++*n;
    }
    return (struct amp_span){*n > 0 ? q->bytes.data + q->head + skip : NULL, len};
}

void amp_queue_pop(struct amp_queue *q)
{
    if (q->n == 0)
        return;
    q->head += q->v[q->first].len;
    q->first++;
    if (--q->n == 0) {
        q->first = 0;
        q->head = 0;
        amp_buf_reset(&q->bytes);
    } else if (q->head > COMPACT && q->head > q->bytes.len / 2) {
        bytes_compact(q);
    }
}

void amp_queue_withdraw(struct amp_queue *q, uint32_t keep, const struct amp_port_recall *r)
{
    size_t from = q->head, to;
    uint32_t kept = keep < q->n ? keep : q->n;
    for (uint32_t i = 0; i < kept; i++)
        from += q->v[q->first + i].len;
    to = from;
    for (uint32_t i = kept; i < q->n; i++) {
        struct amp_queued line = q->v[q->first + i];
        if (!line.reported && r->wanted(r->ctx, line.tag)) {
            r->taken(r->ctx, line.tag);
        } else {
            memmove(q->bytes.data + to, q->bytes.data + from, line.len);
            q->v[q->first + kept++] = line;
            to += line.len;
        }
        from += line.len;
    }
    if (kept == q->n)
        return;
    q->n = kept;
    q->bytes.len = to;
    q->bytes.data[to] = 0;
    if (kept == 0) {
        q->first = 0;
        q->head = 0;
        amp_buf_reset(&q->bytes);
    }
}

size_t amp_queue_pending(const struct amp_queue *q)
{
    return q->bytes.len - q->head;
}
