/* All cursors of a state directory: listing, correcting, sweeping and measuring them. */
#ifndef AMP_MESSAGE_DELIVERY_CURSOR_CURSORS_H
#define AMP_MESSAGE_DELIVERY_CURSOR_CURSORS_H

#include "message/delivery/cursor/cursor.h"
#include "message/delivery/cursor/record.h"

/* Ordered by consumer and source. The record is valid during the call; fn returns 1 to stop, -1
 * with an error. */
typedef int (*amp_cursors_fn)(void *ctx, const struct amp_cursor_rec *rec, uint8_t state,
                              struct amp_error *err);
int amp_cursors_each(struct amp_store *s, amp_cursors_fn fn, void *ctx, struct amp_error *err);
/* 1: found; 0: there is none. Texts are in mem. */
int amp_cursors_find(struct amp_store *s, struct amp_span consumer, struct amp_span source,
                     struct amp_buf *mem, struct amp_cursor_rec *out, uint8_t *state,
                     struct amp_error *err);

/* move sets a cursor or creates it; retire ends it. Its holder is fenced. NO cursor_leased: a lease
 * is valid and force is false; NO unknown_ref (retire): there is no such cursor. */
struct amp_cursors_edit {
    struct amp_span consumer, source;
    int64_t seq; /* move */
    int64_t now_ms, lease_ms;
    const char *actor;
    bool force;
};
int amp_cursors_move(struct amp_store *s, const struct amp_cursors_edit *e, struct amp_error *err);
int amp_cursors_retire(struct amp_store *s, const struct amp_cursors_edit *e,
                       struct amp_error *err);

/* Reports the gaps of cursors without a holder as incidents in the outbox of `actor` and ends
 * expired leases. Cursors with a valid lease are not changed. *done is the number of cursors
 * handled. */
struct amp_metrics;
#define AMP_CURSOR_KIND "cursor" /* of the records, due when the sweep has work */
int amp_cursors_sweep(struct amp_store *s, int64_t now_ms, const char *actor,
                      struct amp_metrics *metrics, uint32_t *done, struct amp_error *err);

/* Sets the gauges of all cursors: position, lag, waiting events, and each source's watermark. */
int amp_cursors_measure(struct amp_store *s, int64_t now_ms, struct amp_metrics *metrics,
                        struct amp_error *err);

#endif
