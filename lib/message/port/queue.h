/* The lines that wait for a port, in order, each with the tag of its offer. */
#ifndef AMP_MESSAGE_PORT_QUEUE_H
#define AMP_MESSAGE_PORT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/buf.h>

struct amp_queued {
    uint64_t tag;
    size_t len; /* LF included */
    int64_t since_ms;
    uint64_t number; /* among all added lines, increasing */
    bool reported;   /* its delivery was reported; it is kept in case its reader is lost */
};

struct amp_queue {
    struct amp_buf bytes; /* the lines, from `head` on */
    size_t head;
    struct amp_queued *v; /* from `first` on */
    uint32_t first, n;
    size_t cap;
    uint64_t numbers; /* of lines added so far */
};

void amp_queue_init(struct amp_queue *q, size_t max);
void amp_queue_release(struct amp_queue *q);
/* Adds the line and LF; "buffer_full" beyond the limit. */
int amp_queue_add(struct amp_queue *q, struct amp_span line, uint64_t tag, int64_t now_ms,
                  struct amp_error *err);
/* The i-th line from the front, or NULL. */
struct amp_queued *amp_queue_at(const struct amp_queue *q, uint32_t i);
/* The complete lines after the first skip_lines, which have `skip` bytes: at most `most` bytes, but
 * at least one line if there is one. *n is their number. */
struct amp_span amp_queue_bytes(const struct amp_queue *q, size_t skip, uint32_t skip_lines,
                                size_t most, uint32_t *n);
void amp_queue_pop(struct amp_queue *q);
size_t amp_queue_pending(const struct amp_queue *q);
/* Removes the wanted lines after the first `keep` (amp_port_withdraw). Reported lines stay. */
struct amp_port_recall;
void amp_queue_withdraw(struct amp_queue *q, uint32_t keep, const struct amp_port_recall *r);

#endif
