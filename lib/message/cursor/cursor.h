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

#include <amp/fsm/fsm.h>

#include "store/store.h"

#define AMP_CURSOR_STATES(X)                                                                       \
    X(ACTIVE, "ACTIVE", "nothing is missing")                                                      \
    X(GAP, "GAP", "an event is missing and later ones wait")                                       \
    X(OVERDUE, "OVERDUE", "it has been missing for longer than is waited for")                     \
    X(EXPIRED, "EXPIRED", "its lease ran out: it holds nothing back any more")                     \
    X(RETIRED, "RETIRED", "its consumer is gone for good")

#define AMP_CURSOR_EVENTS(X)                                                                       \
    X(ENQUEUE, "enqueue", "the next event is durably queued")                                      \
    X(HOLD, "hold", "an event beyond the next one is kept")                                        \
    X(TIMEOUT, "gap_timeout", "nobody sent what is missing in time")                               \
    X(SKIP, "skip", "what is missing is given up")                                                 \
    X(TOMBSTONE, "tombstone", "it is given up, and a mark stands in its place")                    \
    X(RENEW, "renew", "its holder is alive")                                                       \
    X(LET_GO, "let_go", "its holder ends")                                                         \
    X(EXPIRE, "expire", "the lease ran out")                                                       \
    X(TAKE_OVER, "take_over", "a consumer takes it")                                               \
    X(MOVE, "move", "a person sets it")                                                            \
    X(RETIRE, "retire", "a person ends it")

#define AMP_CURSOR_FACTS(X)                                                                        \
    X(MISSING, "missing", "an event waits, and the one before it is not there")                    \
    X(SAME, "same_gap", "it is the gap that was there before")                                     \
    X(TOLD, "told", "its incident was told already")

#define AMP_CURSOR_EFFECTS(X)                                                                      \
    X(ADVANCE, "advance", "the position moves, by the commit that queues")                         \
    X(KEEP, "keep", "the event waits in the store")                                                \
    X(ARM, "arm", "wait for what is missing")                                                      \
    X(DISARM, "disarm", "nothing is waited for")                                                   \
    X(INCIDENT, "incident", "tell it, once")                                                       \
    X(LEASE, "lease", "the lease runs anew")                                                       \
    X(END_LEASE, "end_lease", "nobody holds it")                                                   \
    X(FENCE, "fence", "a new epoch: what an earlier holder commits is refused")

#define AMP_CURSOR_STATE_ID(id, name, doc)  AMP_CURSOR_##id,
#define AMP_CURSOR_EVENT_ID(id, name, doc)  AMP_CURSOR_EV_##id,
#define AMP_CURSOR_FACT_ID(id, name, doc)   AMP_CURSOR_IF_##id,
#define AMP_CURSOR_EFFECT_ID(id, name, doc) AMP_CURSOR_DO_##id,
enum amp_cursor_state { AMP_CURSOR_STATES(AMP_CURSOR_STATE_ID) AMP_CURSOR_STATE_COUNT };
enum amp_cursor_event { AMP_CURSOR_EVENTS(AMP_CURSOR_EVENT_ID) AMP_CURSOR_EV_COUNT };
enum amp_cursor_fact { AMP_CURSOR_FACTS(AMP_CURSOR_FACT_ID) AMP_CURSOR_IF_COUNT };
enum amp_cursor_effect { AMP_CURSOR_EFFECTS(AMP_CURSOR_EFFECT_ID) AMP_CURSOR_DO_COUNT };

extern const struct amp_fsm amp_cursor_fsm;

/* What happens to a gap that timed out. */
#define AMP_CURSOR_GAP_WORDS(X) X(SKIP, "skip") X(TOMBSTONE, "tombstone") X(HOLD, "hold")
enum amp_on_gap {
#define X(id, word) AMP_ON_GAP_##id,
    AMP_CURSOR_GAP_WORDS(X)
#undef X
        AMP_ON_GAP_COUNT
};

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
/* Both. */
int amp_cursor_next(struct amp_cursor *c, struct amp_cursor_item *e, int64_t now_ms,
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
