/* All cursors of a state: for those who look at them, mend them, and ask what is still needed. */
#ifndef AMP_MESSAGE_CURSOR_CURSORS_H
#define AMP_MESSAGE_CURSOR_CURSORS_H

#include "message/cursor/cursor.h"
#include "message/cursor/record.h"

/* By consumer and source. The record lives during the call; 1 ends it. */
typedef int (*amp_cursors_fn)(void *ctx, const struct amp_cursor_rec *rec, uint8_t state);
int amp_cursors_each(struct amp_store *s, amp_cursors_fn fn, void *ctx, struct amp_error *err);
/* 1, 0: there is none. Texts live in mem. */
int amp_cursors_find(struct amp_store *s, struct amp_span consumer, struct amp_span source,
                     struct amp_buf *mem, struct amp_cursor_rec *out, uint8_t *state,
                     struct amp_error *err);

/* Sets a cursor, or makes it there; ends it. Who holds it is fenced. NO cursor_leased: a holder's
 * lease runs, unless force; NO unknown_ref (retire): there is none. */
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

/* Cursors that nobody holds: their gaps become incidents in the outbox of `actor`, their leases
 * end; those of living holders are left to them. *done counts. */
struct amp_metrics;
int amp_cursors_sweep(struct amp_store *s, int64_t now_ms, const char *actor,
                      struct amp_metrics *metrics, uint32_t *done, struct amp_error *err);
int amp_cursors_next_due(struct amp_store *s, int64_t *ms, struct amp_error *err);

/* The gauges of all cursors: position, lag, what waits, and each source's watermark. */
int amp_cursors_measure(struct amp_store *s, int64_t now_ms, struct amp_metrics *metrics,
                        struct amp_error *err);

#endif
