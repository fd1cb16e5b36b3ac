/*
 * The executor of sessions (AOP §2, §5, §9): a TASK in a worker's loop (work/attempt/worker.h), for
 * `run --protocol` and for jobs of a pool. A TASK that a rule refuses, and one whose work ended,
 * gets exactly one RESPONSE. Between, its events go to the worker's outbox.
 *
 * The steps of its end, each of which can be made again after a crash: the RESPONSE is recorded
 * (work/aop/session/admit.h) and decides, the ledger gets the outcome of the TASK, and the job ends
 * in one commit with the RESPONSE in the outbox.
 */
#ifndef AMP_WORK_AOP_RUN_SESSION_H
#define AMP_WORK_AOP_RUN_SESSION_H

#include <jansson.h>

#include "work/attempt/worker.h"

struct amp_session_options {
    struct amp_worker_options worker; /* argv NULL: commands come from the settings only */
    const char *agent;                /* only TASKs for this agent; NULL: for any */
    const json_t *config;             /* amp.json: providers, aop, audit_trail; borrowed or NULL */
    const char *here;                 /* the repository or directory in which the worker was
                                         started, absolute, real */
};

/* Whether the message is the TASK of a session. */
bool amp_session_is_task(const struct amp_view *v);

/* The context of a worker with this role is its struct amp_session_options. */
extern const struct amp_worker_role amp_session_role;
/* Runs until the input ends and no TASK can continue. */
int amp_session_loop(struct amp_store *s, const struct amp_session_options *opt,
                     enum amp_status *status, struct amp_error *err);

#endif
