/*
 * Cursors (Runtime Protocol §6): how far a consumer has read the stream of a source. Key
 * "cursor.<consumer>.<source>". The commit that puts an event into the consumer's outbox also moves
 * the cursor, so after a crash the cursor and the queued events agree. An event behind a gap waits
 * in the store until the gap is filled or times out.
 *
 * Only one holder at a time moves a cursor. It has a lease and an epoch, which every take-over
 * raises, so that an earlier holder cannot move the cursor any more (cursor_fenced).
 */
#ifndef AMP_MESSAGE_DELIVERY_CURSOR_CURSOR_H
#define AMP_MESSAGE_DELIVERY_CURSOR_CURSOR_H

#include "message/delivery/cursor/cursor_fsm.h"
#include "message/delivery/cursor/gap.h"
#include "message/store/store.h"

#define AMP_GAP_TIMEOUT_MS  ((int64_t)30 * 1000)
#define AMP_CURSOR_LEASE_MS ((int64_t)300 * 1000)
#define AMP_CURSOR_HELD     1024 /* limit of events that wait behind a gap */

struct amp_cursor_options {
    const char *consumer; /* the cursor's consumer */
    const char *outbox;   /* the owner of the outbox for events */
    const char *answers;  /* the owner of the outbox for incidents */
    const char *holder;
    int64_t lease_ms, gap_ms; /* 0: the protocol's */
    enum amp_on_gap on_gap;
    uint32_t max_held; /* 0: AMP_CURSOR_HELD */
    bool ordered;      /* numbers increase, but not by one: no gaps, no waiting (SW4RM) */
    bool alone;        /* no other holder can be alive: an unexpired lease is ignored */
};

/* The holder's handle of a cursor. */
struct amp_cursor;

/* Takes a cursor or creates it. start: the position of a new one; < 0: before its first event.
 * TEMPFAIL cursor_leased: another holder has it; NO cursor_retired. opt must outlive the handle. */
int amp_cursor_open(struct amp_store *s, struct amp_span source,
                    const struct amp_cursor_options *opt, int64_t start, int64_t now_ms,
                    struct amp_cursor **out, struct amp_error *err);
/* Ends the lease (now_ms > 0), or lets it expire. */
int amp_cursor_close(struct amp_cursor *c, int64_t now_ms, struct amp_error *err);
void amp_cursor_free(struct amp_cursor *c);

enum amp_cursor_verdict {
    AMP_CURSOR_TAKEN,   /* queued: `entry` names it in the outbox */
    AMP_CURSOR_HELD_UP, /* kept behind a gap */
    AMP_CURSOR_SEEN,    /* the same event came before */
    AMP_CURSOR_OTHER,   /* below the position, or with the number of another event: refused */
    AMP_CURSOR_LATE,    /* in a gap that was skipped: refused */
    AMP_CURSOR_FULL,    /* the limit of waiting events is reached: refused */
};

struct amp_cursor_item {
    int64_t seq;
    struct amp_span id, line;
    const struct amp_store_emit *emits; /* the lines to queue; NULL: `line` with `id` */
    uint32_t n_emits;
    bool nothing;                    /* the position moves, no line is queued */
    struct amp_store_entry_id entry; /* of the first queued line */
};
/* Accepts an event. Do not write its lines before amp_store_sync. Codes: cursor_fenced. */
int amp_cursor_take(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                    enum amp_cursor_verdict *verdict, struct amp_error *err);
/* The next event that waited and can be queued now: 1; 0: none. Spans are valid until the next
 * call.
 */
int amp_cursor_peek(struct amp_cursor *c, struct amp_cursor_item *e, struct amp_error *err);
/* Queues that event. */
int amp_cursor_go(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                  struct amp_error *err);
/* Handles what is due: renews the lease, times the gap out, skips it if configured. 1: done; the
 * outboxes may have an incident or a mark, and waiting events may be ready; 0: nothing was due. */
struct amp_cursor_turn {
    /* The incident in the outbox `answers`, and the mark that replaces the gap; entry.n 0: none.
     * The lines are valid until the next turn. */
    struct amp_cursor_item incident, mark;
    int64_t from, to; /* the gap that timed out; to < from: none */
    bool given_up;
};
int amp_cursor_turn(struct amp_cursor *c, int64_t now_ms, struct amp_cursor_turn *done,
                    struct amp_error *err);
/* The time of the next amp_cursor_turn. */
int64_t amp_cursor_due(const struct amp_cursor *c);
int64_t amp_cursor_position(const struct amp_cursor *c);
/* The number of waiting events, and the range that is missing. */
uint32_t amp_cursor_waiting(const struct amp_cursor *c, int64_t *from, int64_t *to);

#endif
