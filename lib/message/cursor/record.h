/* The record of a cursor, and the steps of its machine. */
#ifndef AMP_MESSAGE_CURSOR_RECORD_H
#define AMP_MESSAGE_CURSOR_RECORD_H

#include "store/store.h"

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
};

/* Texts are copied into mem, which is emptied first. */
int amp_cursor_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_cursor_rec *out,
                        struct amp_error *err);
int amp_cursor_rec_write(const struct amp_cursor_rec *r, struct amp_buf *out,
                         struct amp_error *err);
/* The next deadline for the sweep: the end of the lease, or of the gap if there is no holder; 0:
 * none.
 */
int64_t amp_cursor_rec_due(const struct amp_cursor_rec *r, uint8_t state);

/* One step of the machine. seq is the new position (ENQUEUE, SKIP, TOMBSTONE, MOVE), gap_to the
 * last missing number after it. */
struct amp_cursor_step {
    uint8_t event;
    uint32_t facts; /* without TOLD, which is read from the record */
    int64_t seq, gap_to, now_ms, lease_ms, gap_ms;
    const char *holder; /* TAKE_OVER */
};
/* Steps the machine and carries out the effects on the record. *state is read and updated; *effects
 * gets the row's effects. */
int amp_cursor_apply(struct amp_cursor_rec *r, uint8_t *state, const struct amp_cursor_step *step,
                     uint32_t *effects, struct amp_error *err);

#endif
