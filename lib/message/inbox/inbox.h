/*
 * Inboxes: what an agent is given one message at a time (SW4RM §13, Runtime Protocol §3, §5).
 *
 *   inboxes.<agent>           the bounded buffer: what waits, in order; whether the agent is busy
 *   inbox.<agent> LF <id>     one delivery to one recipient, exactly once: inbox_fsm.c
 *
 * Putting commits the ledger's record, the place in the buffer, the delivery, and RECEIVED in the
 * ledger, in that order: whoever dies in between still has the message in its outbox, and putting
 * again goes on where it stopped. Handing over commits OFFERED before the message leaves and READ
 * when it was taken; what is READ is never handed over again. The caller syncs before it leaves.
 */
#ifndef AMP_MESSAGE_INBOX_INBOX_H
#define AMP_MESSAGE_INBOX_INBOX_H

#include <amp/fsm/fsm.h>
#include <amp/protocol/protocol.h>

#include "message/inbox/lane.h"
#include "store/store.h"

#define AMP_INBOX_STATES(X)                                                                        \
    X(AMP_INBOX_ABSENT, "ABSENT", "nobody put it there")                                           \
    X(AMP_INBOX_WAITING, "WAITING", "in the buffer, never handed over")                            \
    X(AMP_INBOX_OFFERED, "OFFERED", "handed over, and not known to have arrived")                  \
    X(AMP_INBOX_READ, "READ", "the agent has it")                                                  \
    X(AMP_INBOX_FAILED, "FAILED", "expired, tried too often, or superseded")

#define AMP_INBOX_EVENTS(X)                                                                        \
    X(AMP_INBOX_EV_PUT, "put", "a router delivers it")                                             \
    X(AMP_INBOX_EV_OFFER, "offer", "it is about to be handed over")                                \
    X(AMP_INBOX_EV_READ, "read", "the agent took it")                                              \
    X(AMP_INBOX_EV_EXPIRE, "expire", "its time to live passed")                                    \
    X(AMP_INBOX_EV_SUPERSEDE, "supersede", "another attempt at its operation comes instead")       \
    X(AMP_INBOX_EV_GIVE_UP, "give_up", "the agent's command failed too often")                     \
    X(AMP_INBOX_EV_RETURN, "return", "it was not done: the agent is to get it again")              \
    X(AMP_INBOX_EV_REQUEUE, "requeue", "a person sent it again")

#define AMP_INBOX_EFFECTS(X)                                                                       \
    X(AMP_INBOX_DO_PLACE, "place", "it needs a place in the buffer")                               \
    X(AMP_INBOX_DO_DROP, "drop", "its place in the buffer is free")                                \
    X(AMP_INBOX_DO_REDELIVER, "redeliver", "it may have been there before: it is marked")

enum { AMP_INBOX_STATES(AMP_FSM_ENUM) AMP_INBOX_STATE_COUNT };
enum { AMP_INBOX_EVENTS(AMP_FSM_ENUM) AMP_INBOX_EV_COUNT };
enum { AMP_INBOX_EFFECTS(AMP_FSM_BIT) AMP_INBOX_DO_COUNT };
enum { AMP_INBOX_EFFECTS(AMP_FSM_FLAG) };
extern const struct amp_fsm amp_inbox_fsm;

#define AMP_INBOX_BOUND     10
#define AMP_INBOX_BOUND_MAX 1024
#define AMP_INBOX_AGENT_MAX 128 /* bytes of a name; it has no control characters */

/* NO bad_agent. */
int amp_inbox_agent_check(struct amp_span agent, struct amp_error *err);

/* ---- putting (routers) ---- */

struct amp_inbox_options {
    uint32_t bound;       /* how many may wait; 0: 10 */
    uint32_t urgent;      /* how many more of the lane PRIVILEGED may */
    uint32_t credits;     /* how many may wait or be read and not ended; 0: no such limit */
    const char *actor;    /* whose outbox the answer goes to */
    struct amp_span line; /* what the agent gets; empty: the message as it came */
    enum amp_lane lane;   /* it waits in that one; what has the same order (0: none) */
    uint64_t order;       /* never overtakes */
};
enum amp_inbox_put {
    AMP_INBOX_PLACED,
    AMP_INBOX_KNOWN, /* it was there already, or the agent had it: nothing changed */
};

/* What is said of a message that got a place, made when it has one: nothing else takes a number. */
struct amp_inbox_answer {
    int (*compose)(void *ctx, struct amp_buf *line, struct amp_error *err);
    void *ctx;
};

/* Puts a message into an agent's inbox, and the answer (NULL: none) into the outbox of the actor by
 * the commit of the delivery; *entry (may be NULL) names it. NO: buffer_full, duplicate_msg_id,
 * bad_agent. Not inside amp_store_begin. Ring the bell afterwards. */
int amp_inbox_put(struct amp_store *s, struct amp_span agent, const struct amp_view *v,
                  const struct amp_inbox_options *opt, int64_t now_ms,
                  const struct amp_inbox_answer *answer, struct amp_store_entry_id *entry,
                  enum amp_inbox_put *how, struct amp_error *err);

/* ---- handing over (one process an agent, under amp_inbox_lock) ---- */

struct amp_inbox_msg {
    struct amp_span id; /* the message's, or a digest where it has none */
    struct amp_span line;
    uint8_t state;
    uint32_t attempt; /* of handing it over, from 1 */
    bool redelivered; /* it may have been handed over before */
    int64_t at_ms, expires_ms, lane;
};
/* The id under which the ledger knows a message of the inbox: a TASK of AOP, which has none, by its
 * session, task and attempt. The span is in mem, or is id itself. */
int amp_inbox_known_as(struct amp_store *s, struct amp_span agent, struct amp_span id,
                       struct amp_buf *mem, struct amp_span *out, struct amp_error *err);
struct amp_inbox_turn {
    bool between_turns;      /* nothing while the agent is busy; what is offered makes it busy */
    int64_t lease_ms;        /* how long busy holds at most */
    struct amp_lanes *lanes; /* whose turn it is; NULL: as they came */
    const char *actor;       /* whose outbox gets the answers about what expired */
    /* Whether a message stays in its place for now: 1, 0, or -1. Asked in the turn in which it
     * would be offered. NULL: none does. */
    int (*held)(void *ctx, struct amp_span line, struct amp_error *err);
    void *ctx;
};
#define AMP_INBOX_HELD_MS 500 /* when to look again at what was held */
/* The next message, OFFERED by this call: 1, with spans into mem; 0: there is none now, look again
 * when the bell rings or at *wake_ms (0: never by itself). What has the order of a message that is
 * held waits with it; others pass. */
int amp_inbox_offer(struct amp_store *s, struct amp_span agent, const struct amp_inbox_turn *turn,
                    int64_t now_ms, struct amp_buf *mem, struct amp_inbox_msg *out,
                    int64_t *wake_ms, struct amp_error *err);
/* The agent has it; `emit` (may be NULL) goes into the outbox of `actor` by the same commit. */
int amp_inbox_read_and_say(struct amp_store *s, struct amp_span agent, struct amp_span id,
                           int64_t now_ms, const struct amp_store_emit *emit, const char *actor,
                           struct amp_error *err);
/* It will not come to the agent: a dead letter of that code, an answer in the actor's outbox. */
int amp_inbox_give_up(struct amp_store *s, struct amp_span agent, struct amp_span id,
                      const char *code, const char *why, const char *actor, int64_t now_ms,
                      struct amp_error *err);
/* Back to the front of the buffer, also past its bound. NO unknown_ref, illegal_transition. */
int amp_inbox_return(struct amp_store *s, struct amp_span agent, struct amp_span id, int64_t now_ms,
                     struct amp_error *err);

/* Between turns. until_ms: when it counts as idle whatever was said; 0: idle now. */
int amp_inbox_busy(struct amp_store *s, struct amp_span agent, int64_t since_ms, int64_t until_ms,
                   struct amp_error *err);

/* What waited past its time to live: dead letters, their answers in the outbox of `actor`. */
int amp_inbox_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *expired,
                    struct amp_error *err);
int amp_inbox_next_due(struct amp_store *s, int64_t *ms, struct amp_error *err); /* 0: nothing */

/* ---- looking ---- */

struct amp_inbox_info {
    bool found;
    struct amp_span agent;
    uint32_t waiting, bound, credits, open; /* open: read, and not known to have ended */
    int64_t oldest_ms;                      /* 0: nothing waits */
    int64_t busy_ms, until_ms;              /* since when and until when it is busy; 0: idle */
};
int amp_inbox_info(struct amp_store *s, struct amp_span agent, struct amp_buf *mem,
                   struct amp_inbox_info *out, struct amp_error *err);
typedef int (*amp_inbox_info_fn)(void *ctx, const struct amp_inbox_info *i);
int amp_inbox_infos(struct amp_store *s, amp_inbox_info_fn fn, void *ctx, struct amp_error *err);
/* What waits, in the order of the buffer; fn returns 0 to go on. */
typedef int (*amp_inbox_msg_fn)(void *ctx, const struct amp_inbox_msg *m);
int amp_inbox_each(struct amp_store *s, struct amp_span agent, amp_inbox_msg_fn fn, void *ctx,
                   struct amp_error *err);

#endif
