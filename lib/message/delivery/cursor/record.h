/* The record of a cursor, and the steps of its machine. */
#ifndef AMP_MESSAGE_DELIVERY_CURSOR_RECORD_H
#define AMP_MESSAGE_DELIVERY_CURSOR_RECORD_H

#include "message/record/subject.h"

/* A gap that was skipped. */
struct amp_cursor_hole {
    int64_t from, to, at_ms;
};
#define AMP_CURSOR_HOLES 32 /* the newest are kept */

struct amp_cursor_rec {
    struct amp_span consumer, source, holder; /* holder empty: none */
    int64_t last_seq, lease_until_ms, updated_ms, epoch;
    int64_t gap_since_ms, gap_due_ms, gap_to; /* of a gap; 0: none */
    int64_t held;                             /* events that wait behind the gap */
    int64_t moves;                            /* number of times that a person moved it */
    bool reported;                            /* the incident of the gap */
    struct amp_cursor_hole hole[AMP_CURSOR_HOLES];
    uint32_t n_holes;
    uint8_t state; /* of amp_cursor_fsm */
    /* The next deadline for the sweep: the end of the lease, or of the gap if there is no holder;
     * 0: none. */
    int64_t due_ms;
    const struct amp_key *key; /* while the record is visited */
};
extern const struct amp_subject amp_cursor_subject;

/* One step of the machine. seq is the new position (ENQUEUE, SKIP, TOMBSTONE, MOVE), gap_to the
 * last missing number after it. */
struct amp_cursor_step {
    uint8_t event;
    uint32_t facts; /* without TOLD, which is read from the record */
    int64_t seq, gap_to, now_ms, lease_ms, gap_ms;
    const char *holder; /* TAKE_OVER */
    int64_t held;       /* events that wait behind the gap, without one that the step keeps; -1: as
                         * before */
    /* Looks at the record before the step, as an amp_subject_fn; may change the step. */
    int (*check)(void *ctx, struct amp_cursor_rec *r, const struct amp_store_rec *now,
                 struct amp_error *err);
    void *ctx;
    struct amp_subject_step commit; /* its key, actor, input and emits */
};
/* Steps the machine, carries out the effects on the record, and commits it. mem and rec may be
 * NULL. */
int amp_cursor_apply(struct amp_store *s, struct amp_cursor_step *step, struct amp_buf *mem,
                     struct amp_cursor_rec *rec, enum amp_store_outcome *how,
                     struct amp_error *err);

#endif
