/*
 * Functions by which this house reads facts about agents and tasks, which are in higher
 * houses. amp_store_options.facts has them (people/facts.h); without them no role, tool or task is
 * found.
 */
#ifndef AMP_MESSAGE_DELIVERY_FACTS_H
#define AMP_MESSAGE_DELIVERY_FACTS_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"

struct amp_task_facts {
    bool found, suspended;
    const char *state;
    int64_t reject_count;
};
/* 0 continues, -1 fails with err. descriptor: a JSON object. */
typedef int (*amp_descriptor_fn)(void *ctx, struct amp_span descriptor, struct amp_error *err);

/* Work of a protocol with reviews (amp_work_terms.reviews) that ended, is overdue, or has no route.
 */
struct amp_work_end {
    struct amp_span request;     /* its line */
    const struct amp_view *done; /* the message that ended it; NULL: none did */
    const char *failure;         /* a class; NULL: that of `done`, or it was completed */
    bool route;                  /* it has no route */
    const char *actor;
    int64_t now_ms;
};

enum { AMP_FACTS_WHY = 700 };
struct amp_message_facts {
    /* The role that an agent is registered with; empty: none. */
    int (*role)(struct amp_store *s, const char *agent, char role[128], struct amp_error *err);
    /* The descriptors of all agents that were ever registered. */
    int (*descriptors)(struct amp_store *s, amp_descriptor_fn fn, void *ctx, struct amp_error *err);
    int (*task)(struct amp_store *s, struct amp_span id, struct amp_task_facts *out,
                struct amp_error *err);
    /* Whether an agent may accept the work of this request, as far as people decide it: 0, or NO
     * with the code of AMP_WORK_UNAPPROVED. */
    int (*approved)(struct amp_store *s, struct amp_span request, struct amp_error *err);
    /* Tells whether new work of a task has to wait, because a question suspends the task or the
     * agent (NULL: any). 1: it waits, and why says so for people; 0: it does not; -1: failure. */
    int (*waits)(struct amp_store *s, struct amp_span task, const char *agent,
                 char why[AMP_FACTS_WHY], struct amp_error *err);
    /* Tells whether the agent is bound to a worktree. */
    int (*bound)(struct amp_store *s, const char *agent, bool *yes, struct amp_error *err);
    /* 1: appends a message for all agents with its recipients in place of "all"; 0: it stays as it
     * is. */
    int (*publish)(struct amp_store *s, const struct amp_view *v, struct amp_buf *out,
                   struct amp_error *err);
    /* Records what follows from the end of work, such as a review item; in the caller's turn. */
    int (*ended)(struct amp_store *s, const struct amp_work_end *e, struct amp_error *err);
};

#endif
