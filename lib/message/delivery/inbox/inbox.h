/*
 * Inboxes, which hand an agent its messages one at a time (SW4RM §13, Runtime Protocol §3, §5).
 *
 *   inboxes.<agent>       the bounded buffer: waiting messages in order; whether the agent is busy
 *   inbox.<agent>.<id>    one delivery to one recipient, exactly once (inbox_fsm.c)
 *
 * Putting commits the ledger's record, the place in the buffer, the delivery, and RECEIVED in the
 * ledger, in this order. After a crash between them the router's outbox still has the message, and
 * putting it again completes the commits. Handing over commits OFFERED before the message is
 * written and READ after it was taken; a message that is READ is never handed over again. The
 * caller syncs before it writes.
 */
#ifndef AMP_MESSAGE_DELIVERY_INBOX_INBOX_H
#define AMP_MESSAGE_DELIVERY_INBOX_INBOX_H

#include <amp/fsm/fsm.h>
#include <amp/protocol/protocol.h>

#include "message/delivery/inbox/lane.h"
#include "message/store/store.h"

#define AMP_INBOX_STATES(X)                                                                        \
    X(AMP_INBOX_ABSENT, "ABSENT", "not in the inbox")                                              \
    X(AMP_INBOX_WAITING, "WAITING", "in the buffer, never handed over")                            \
    X(AMP_INBOX_OFFERED, "OFFERED", "handed over, but perhaps not received")                       \
    X(AMP_INBOX_READ, "READ", "the agent has it")                                                  \
    X(AMP_INBOX_FAILED, "FAILED", "expired, tried too often, or superseded")

#define AMP_INBOX_EVENTS(X)                                                                        \
    X(AMP_INBOX_EV_PUT, "put", "a router delivers it")                                             \
    X(AMP_INBOX_EV_OFFER, "offer", "it is about to be handed over")                                \
    X(AMP_INBOX_EV_READ, "read", "the agent received it")                                          \
    X(AMP_INBOX_EV_EXPIRE, "expire", "its time to live passed")                                    \
    X(AMP_INBOX_EV_SUPERSEDE, "supersede", "another attempt at its operation replaces it")         \
    X(AMP_INBOX_EV_GIVE_UP, "give_up", "the agent's command failed too often")                     \
    X(AMP_INBOX_EV_RETURN, "return", "the work was not done: the agent gets it again")             \
    X(AMP_INBOX_EV_REQUEUE, "requeue", "a person requeued its dead letter")

#define AMP_INBOX_EFFECTS(X)                                                                       \
    X(AMP_INBOX_DO_PLACE, "place", "it needs a place in the buffer")                               \
    X(AMP_INBOX_DO_DROP, "drop", "free its place in the buffer")                                   \
    X(AMP_INBOX_DO_REDELIVER, "redeliver", "mark it: it may have been handed over before")

enum { AMP_INBOX_STATES(AMP_FSM_ENUM) AMP_INBOX_STATE_COUNT };
enum { AMP_INBOX_EVENTS(AMP_FSM_ENUM) AMP_INBOX_EV_COUNT };
enum { AMP_INBOX_EFFECTS(AMP_FSM_BIT) AMP_INBOX_DO_COUNT };
enum { AMP_INBOX_EFFECTS(AMP_FSM_FLAG) };
extern const struct amp_fsm amp_inbox_fsm;

#define AMP_INBOX_KIND    "inbox"   /* kind of the deliveries */
#define AMP_INBOX_BUFFERS "inboxes" /* kind of the agents' buffers; due when a message expires */

#define AMP_INBOX_BOUND     10
#define AMP_INBOX_BOUND_MAX 1024
#define AMP_INBOX_AGENT_MAX 128 /* bytes of a name; it has no control characters */

/* NO bad_agent. */
int amp_inbox_agent_check(struct amp_span agent, struct amp_error *err);

/* ---- putting (routers) ---- */

struct amp_inbox_options {
    uint32_t bound;         /* limit of waiting messages; 0: 10 */
    uint32_t urgent;        /* further places for the lane PRIVILEGED */
    uint32_t credits;       /* limit of waiting and unfinished messages; 0: none */
    uint32_t producer_most; /* limit of waiting messages of its sender; 0: none */
    bool fair;              /* the senders of a lane take turns (SW4RM §13.1) */
    const char *actor;      /* the owner of the outbox for the answer */
    struct amp_span line;   /* the line for the agent; empty: the message's */
    enum amp_lane lane;     /* its lane; messages with the same order (0: none) */
    uint64_t order;         /* never overtake each other */
};
enum amp_inbox_put {
    AMP_INBOX_PLACED,
    AMP_INBOX_KNOWN, /* in the inbox already, or READ: nothing changed */
};

/* Composes the answer to a message after it got a place, so that only such answers use a number. */
struct amp_inbox_answer {
    int (*compose)(void *ctx, struct amp_buf *line, struct amp_error *err);
    void *ctx;
};

/* Puts a message into an agent's inbox. The commit of the delivery also puts the answer (NULL:
 * none) into the outbox of the actor; *entry (may be NULL) identifies it. NO: buffer_full,
 * producer_full, duplicate_msg_id, bad_agent. Must not be called after amp_store_begin. Ring the
 * bell afterwards.
 */
int amp_inbox_put(struct amp_store *s, struct amp_span agent, const struct amp_view *v,
                  const struct amp_inbox_options *opt, int64_t now_ms,
                  const struct amp_inbox_answer *answer, struct amp_store_entry_id *entry,
                  enum amp_inbox_put *how, struct amp_error *err);

/* Whether the inbox handed the message over from its place, before a router that was killed
 * recorded the delivery: putting it again answers its sender. 1 yes, 0 no, -1 error. */
int amp_inbox_is_early(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_error *err);

/* ---- handing over (one process per agent, under amp_inbox_lock) ---- */

struct amp_inbox_msg {
    struct amp_span id; /* the message's, or a digest if it has none */
    struct amp_span line;
    uint8_t state;
    uint32_t attempt; /* number of the hand-over, from 1 */
    bool redelivered; /* it may have been handed over before */
    int64_t at_ms, expires_ms, lane;
};
/* The id of an inbox's message in the ledger. An AOP TASK has no id; its ledger id consists of
 * session, task and attempt. The span is in mem, or is id itself. */
int amp_inbox_known_as(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_buf *mem, struct amp_span *out, struct amp_error *err);
struct amp_inbox_turn {
    bool between_turns;      /* offer nothing to a busy agent; offering makes it busy */
    int64_t lease_ms;        /* the longest time that it stays busy */
    struct amp_lanes *lanes; /* select the message; NULL: in order of arrival */
    const char *actor;       /* the owner of the outbox for answers to expired messages */
    /* Whether a message must stay in its place for now: 1 yes, 0 no, -1 error. Called in the turn
     * in which it would be offered. NULL: none must. */
    int (*held)(void *ctx, struct amp_span line, struct amp_error *err);
    void *ctx;
};
#define AMP_INBOX_HELD_MS 500 /* when to check held messages again */
/* Offers the next message. 1: it is OFFERED, with spans into mem; 0: none is ready, call again when
 * the bell rings or at *wake_ms (0: no such time). Messages with the order of a held message wait
 * with it; others overtake it. */
int amp_inbox_offer(struct amp_store *s, struct amp_span agent, const struct amp_inbox_turn *turn,
                    int64_t now_ms, struct amp_buf *mem, struct amp_inbox_msg *out,
                    int64_t *wake_ms, struct amp_error *err);
/* Records READ; the same commit puts `emit` (may be NULL) into the outbox of `actor`. */
int amp_inbox_read_and_say(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           int64_t now_ms, const struct amp_store_emit *emit, const char *actor,
                           struct amp_error *err);
/* Ends a delivery that failed: makes a dead letter with this code, and an answer in the outbox of
 * `actor`. */
int amp_inbox_give_up(struct amp_store *s, struct amp_span agent, struct amp_span id,
                      const char *code, const char *why, const char *actor, int64_t now_ms,
                      struct amp_error *err);
/* Returns a message to the front of the buffer, also past its limit. NO unknown_ref,
 * illegal_transition. */
int amp_inbox_return(struct amp_store *s, struct amp_span agent, struct amp_span id, int64_t now_ms,
                     struct amp_error *err);

/* Marks the agent busy until until_ms at the latest; 0: idle now. */
int amp_inbox_busy(struct amp_store *s, struct amp_span agent, int64_t since_ms, int64_t until_ms,
                   struct amp_error *err);

/* Makes dead letters of expired messages, with answers in the outbox of `actor`. */
int amp_inbox_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *expired,
                    struct amp_error *err);

/* ---- reading ---- */

struct amp_inbox_info {
    bool found;
    struct amp_span agent;
    uint32_t waiting, bound, credits, open; /* open: READ and unfinished */
    int64_t oldest_ms;                      /* 0: none waits */
    int64_t busy_ms, until_ms;              /* begin and end of the busy time; 0: idle */
    struct amp_span first;                  /* the id of the oldest place in the buffer, or empty */
    struct amp_inbox_lane {
        uint32_t waiting;
        int64_t bytes, oldest_ms; /* 0: none waits */
    } lane[AMP_LANE_COUNT];
};
int amp_inbox_info(struct amp_store *s, struct amp_span agent, struct amp_buf *mem,
                   struct amp_inbox_info *out, struct amp_error *err);
typedef int (*amp_inbox_info_fn)(void *ctx, const struct amp_inbox_info *i, struct amp_error *err);
int amp_inbox_infos(struct amp_store *s, amp_inbox_info_fn fn, void *ctx, struct amp_error *err);
/* The waiting messages in the order of the buffer; fn returns 0 to continue. */
typedef int (*amp_inbox_msg_fn)(void *ctx, const struct amp_inbox_msg *m);
int amp_inbox_each(struct amp_store *s, struct amp_span agent, amp_inbox_msg_fn fn, void *ctx,
                   struct amp_error *err);

#endif
