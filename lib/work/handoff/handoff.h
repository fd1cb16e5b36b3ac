/*
 * Handoffs of work from one agent to another (SW4RM §17.6): the record (key "handoff.<request>"),
 * its machine, and its steps. Messages and candidates are those of lib/work/handoff/offer.
 */
#ifndef AMP_WORK_HANDOFF_HANDOFF_H
#define AMP_WORK_HANDOFF_HANDOFF_H

#include <amp/fsm/fsm.h>

#include "message/record/subject.h"
#include "json/view.h"

#define AMP_HANDOFF_STATES(X)                                                                      \
    X(AMP_HANDOFF_PENDING, "PENDING", "an agent was asked and has not answered")                   \
    X(AMP_HANDOFF_ACCEPTED, "ACCEPTED", "an agent took the work over")                             \
    X(AMP_HANDOFF_REJECTED, "REJECTED", "the last candidate declined")                             \
    X(AMP_HANDOFF_COMPLETED, "COMPLETED", "the context is transferred; the handoff is done")       \
    X(AMP_HANDOFF_EXPIRED, "EXPIRED", "the last candidate did not answer in time")

#define AMP_HANDOFF_EVENTS(X)                                                                      \
    X(AMP_HANDOFF_EV_REQUEST, "request", "the origin asks for a handoff")                          \
    X(AMP_HANDOFF_EV_ACCEPT, "accept", "the candidate takes the work")                             \
    X(AMP_HANDOFF_EV_REJECT, "reject", "the candidate declines")                                   \
    X(AMP_HANDOFF_EV_EXPIRE, "expire", "the candidate did not answer in time")                     \
    X(AMP_HANDOFF_EV_COMPLETE, "complete", "the origin or the new owner reports the end")

#define AMP_HANDOFF_FACTS(X) X(AMP_HANDOFF_IF_NEXT, "next", "there is another candidate")

#define AMP_HANDOFF_EFFECTS(X)                                                                     \
    X(AMP_HANDOFF_DO_OFFER, "offer", "record the candidate, and a deadline for its answer")        \
    X(AMP_HANDOFF_DO_PASS, "pass", "record the candidate that did not take it, and why")           \
    X(AMP_HANDOFF_DO_OWN, "own", "record the new owner; the origin may not go on")                 \
    X(AMP_HANDOFF_DO_END, "end", "record the end; the record is removed after its retention")

AMP_FSM_ENUMS(AMP_HANDOFF);
extern const struct amp_fsm amp_handoff_fsm;

#define AMP_HANDOFF_KIND "handoff"

enum {
    AMP_HANDOFF_TRIES_MAX = 16,      /* candidates of one handoff */
    AMP_HANDOFF_REASON_MAX = 4000,   /* bytes */
    AMP_HANDOFF_ID_MAX = 256,        /* bytes of an id */
    AMP_HANDOFF_TIMEOUT_MS = 60000,  /* SW4RM's default, and its limits */
    AMP_HANDOFF_TIMEOUT_MIN = 10000, /* */
    AMP_HANDOFF_TIMEOUT_MOST = 300000,
};
#define AMP_HANDOFF_KEEP_MS (INT64_C(30) * 86400000) /* how long an ended one is kept */

/* A candidate that did not take the work. */
struct amp_handoff_try {
    struct amp_span agent, how, reason; /* how: "rejected" or "expired" */
    int64_t at_ms;
};

/* Unset times are 0, unset texts are empty. The texts of a record that was read are in the caller's
 * memory. */
struct amp_handoff {
    uint8_t state; /* of the record, not a member of it */
    uint64_t rev;
    struct amp_span id, protocol, from, to; /* to: the present candidate, later the owner */
    struct amp_span task, parent, reason;
    struct amp_span *wanted; /* the capabilities that it needs */
    uint32_t n_wanted;
    int64_t priority, timeout_ms; /* for each candidate */
    int64_t depth;                /* 1: the work was not handed over before */
    int64_t requested_ms, due_ms; /* due: when the candidate must have answered */
    int64_t deadline_ms;          /* no candidate may answer later; 0: none */
    int64_t accepted_ms, ended_ms;
    struct amp_span content_type, digest; /* of the context snapshot: SHA-256 in hex, or empty */
    int64_t bytes;
    struct amp_handoff_try *tries;
    uint32_t n_tries;
    struct amp_span *offers; /* the ids of the messages that offered it, as answers name them */
    uint32_t n_offers;
    struct amp_span answer, completion; /* the ids of the last answer, and of the end */
    struct amp_span line;               /* the request, without a large context */
};

/* 1: found; 0: there is none. Texts are in mem, which is emptied first. */
int amp_handoff_find(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                     struct amp_handoff *out, struct amp_error *err);
/* Due: the pending ones whose candidate has not answered in time, and the ended ones whose
 * retention is over. */
extern const struct amp_subject amp_handoff_subject;

/* A step of the machine, in one commit with the lines that it emits. */
struct amp_handoff_step {
    uint8_t event;                 /* AMP_HANDOFF_EVENTS */
    const struct amp_handoff *now; /* the record that was read; REQUEST: the new one */
    struct amp_span by;            /* the agent; empty for EXPIRE */
    struct amp_span reason;        /* REJECT */
    struct amp_span next;          /* REJECT, EXPIRE: the next candidate; empty: none */
    struct amp_span offer;         /* the id of the message to the (next) candidate, if answers may
                                      name it; empty: they do not */
    int64_t now_ms;
    const char *actor; /* whose outbox gets the lines */
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    const struct amp_store_input *input; /* the message that caused it; may be NULL */
};
/* The state after the step, in *state. NO, and nothing changed:
 *   not_pending       ACCEPT, REJECT: it is not in PENDING
 *   not_accepted      COMPLETE: it is not in ACCEPTED
 *   bad_sender        the agent is not the candidate, or for COMPLETE neither origin nor owner
 *   duplicate_request REQUEST: another request has this id
 *   handoff_expired   ACCEPT, REJECT: the time for the answer has passed
 *   changed           another process made a step since the record was read: read it again
 * *outcome: AMP_STORE_REDELIVERED for the same input again, UNCHANGED for a repeated REQUEST. */
int amp_handoff_step(struct amp_store *s, const struct amp_handoff_step *step, uint8_t *state,
                     enum amp_store_outcome *outcome, struct amp_error *err);

/* Removes an ended record that has not changed since it was read. 1: removed; 0: it changed. */
int amp_handoff_remove(struct amp_store *s, const struct amp_handoff *h, const char *actor,
                       struct amp_error *err);

/* Records that a handoff is also known by a name: its task, or the id of an offer. */
int amp_handoff_refer(struct amp_store *s, struct amp_span name, struct amp_span id,
                      struct amp_error *err);
/* Removes these records of a handoff. */
int amp_handoff_unrefer(struct amp_store *s, const struct amp_handoff *h, struct amp_error *err);
/* Calls fn for each handoff that was recorded under the name. */
int amp_handoff_each_of(struct amp_store *s, struct amp_span name, amp_subject_each_fn fn,
                        void *ctx, struct amp_error *err);

/* Whether the agent handed the task over and did not get it back (SW4RM §17.6: it must not continue
 * the work). 1: yes, and owner is the agent to which it gave it; 0: no, and owner is the agent that
 * has the task by a handoff, or ""; -1: failure. */
int amp_handoff_given(struct amp_store *s, struct amp_span agent, struct amp_span task,
                      char owner[256], struct amp_error *err);
/* The number of handoffs that the work already went through: for `from`, the depth of the handoff
 * by which it owns the task, or by which the parent task exists; 0: none. */
int amp_handoff_depth(struct amp_store *s, struct amp_span from, struct amp_span task,
                      struct amp_span parent, int64_t *depth, struct amp_error *err);

/* A handoff without the request (schemas/records/handoff.json). */
extern const struct amp_column amp_handoff_columns[];

#endif
