/*
 * Cursors (Runtime Protocol §6): how far a consumer has read the stream of a source. Key
 * "cursor.<consumer>LF<source>". A cursor moves by the very commit that puts the event into the
 * outbox of the consumer, so it never runs ahead of what is durably queued, nor behind it, whatever
 * crashes. An event behind a gap waits in the store until the gap fills or times out.
 *
 * One holder at a time moves a cursor: it has a lease, and an epoch that every take-over raises, so
 * that a holder who was taken for dead cannot move it any more (cursor_fenced).
 */
#ifndef AMP_MESSAGE_CURSOR_CURSOR_H
#define AMP_MESSAGE_CURSOR_CURSOR_H

#include "message/cursor/cursor_fsm.h"
#include "message/cursor/tell.h"
#include "store/store.h"

#define AMP_GAP_TIMEOUT_MS  ((int64_t)30 * 1000)
#define AMP_CURSOR_LEASE_MS ((int64_t)300 * 1000)
#define AMP_CURSOR_HELD     1024 /* events that wait behind a gap at most */

struct amp_cursor_options {
    const char *consumer; /* whose position it is */
    const char *outbox;   /* the store's consumer into whose outbox events are queued */
    const char *answers;  /* the one for incidents */
    const char *holder;
    int64_t lease_ms, gap_ms; /* 0: the protocol's */
    enum amp_on_gap on_gap;
    uint32_t max_held; /* 0: AMP_CURSOR_HELD */
    bool ordered;      /* numbers rise, but not by one: no gaps, no waiting (SW4RM) */
    bool alone;        /* nobody else can be alive: a lease need not have run out */
};

/* The handle of who holds a cursor. */
struct amp_cursor;

/* Takes the cursor, or makes it. start: where a new one stands, < 0: before its first event.
 * TEMPFAIL cursor_leased: somebody else holds it; NO cursor_retired. opt must outlive the handle.
 */
int amp_cursor_open(struct amp_store *s, struct amp_span source,
                    const struct amp_cursor_options *opt, int64_t start, int64_t now_ms,
                    struct amp_cursor **out, struct amp_error *err);
/* Lets it go (now_ms > 0), or leaves the lease to run out. */
int amp_cursor_close(struct amp_cursor *c, int64_t now_ms, struct amp_error *err);
void amp_cursor_free(struct amp_cursor *c);

enum amp_cursor_verdict {
    AMP_CURSOR_TAKEN,   /* queued: `entry` names it in the outbox */
    AMP_CURSOR_HELD_UP, /* kept behind a gap */
    AMP_CURSOR_SEEN,    /* the same event came before */
    AMP_CURSOR_OTHER,   /* below the position, or the number of another event: refused */
    AMP_CURSOR_LATE,    /* of a gap that was given up: refused */
    AMP_CURSOR_FULL,    /* too many wait already: refused */
};

struct amp_cursor_item {
    int64_t seq;
    struct amp_span id, line;
    const struct amp_store_emit *emits; /* what goes into the outbox; NULL: the line under its id */
    uint32_t n_emits;
    bool nothing;                    /* the position moves, no line is queued */
    struct amp_store_entry_id entry; /* of the first of them */
};
/* An event arrives. Nothing of it may leave before amp_store_sync. Codes: cursor_fenced. */
int amp_cursor_take(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                    enum amp_cursor_verdict *verdict, struct amp_error *err);
/* The next event that waited and may go: 1, 0: none. Its spans live until the next call. */
int amp_cursor_peek(struct amp_cursor *c, struct amp_cursor_item *e, struct amp_error *err);
/* Queues it. */
int amp_cursor_go(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
                  struct amp_error *err);
/* Does what is due: renews the lease, times the gap out, gives it up as configured. 1: something
 * was done, an incident or a mark may stand in the outboxes and events may go; 0: nothing.
 */
struct amp_cursor_turn {
    /* The incident in the outbox `answers`, the mark in the place of the gap; entry.n 0: none. The
     * lines live until the next turn. */
    struct amp_cursor_item incident, mark;
    int64_t from, to; /* the gap, where one timed out; to < from: none did */
    bool given_up;
};
int amp_cursor_turn(struct amp_cursor *c, int64_t now_ms, struct amp_cursor_turn *done,
                    struct amp_error *err);
/* When amp_cursor_turn has something to do. */
int64_t amp_cursor_due(const struct amp_cursor *c);
int64_t amp_cursor_position(const struct amp_cursor *c);
/* How many events wait, and for which ones. */
uint32_t amp_cursor_waiting(const struct amp_cursor *c, int64_t *from, int64_t *to);

#endif
