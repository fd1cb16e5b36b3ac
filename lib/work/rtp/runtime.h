/*
 * The executor of tasks of the Runtime Protocol (§4, §7): what it adds to a worker, which has the
 * process, its walls and its control FIFO. A task is accepted with an estimate before its command
 * starts; progress is reported at a limited rate; the result is checked against the contracts of
 * its capabilities, and is reported as complete, or as failed with a class. The lines are in the
 * worker's outbox. For run, and for a pool that calls the parts itself:
 *
 *   amp_runtime_terms(s, v, agent, &opt, now, &terms, why)   NO: refuse it with why->code
 *   amp_runtime_accept(s, v, ...)                            commits; sync before the work starts
 *   amp_runtime_update(s, v, ...)                            as often as the agent reports
 *   amp_runtime_finish(s, v, ...)                            commits the outcome
 */
#ifndef AMP_WORK_RTP_RUNTIME_H
#define AMP_WORK_RTP_RUNTIME_H

#include <jansson.h>

#include <amp/protocol/protocol.h>
#include <amp/schema/schema.h>

#include "message/protocol/rtp/task.h"
#include "message/store/store.h"

#define AMP_RUNTIME_ETA_MS    900000 /* if no capability has an estimate */
#define AMP_RUNTIME_UPDATE_MS 30000

struct amp_runtime_options {
    int64_t eta_ms;      /* the estimate without a capability; 0: AMP_RUNTIME_ETA_MS */
    int64_t update_ms;   /* shortest time between two updates; < 0: the default */
    const char *routing; /* the policy version by which tasks must be routed; NULL: any */
    const char *schemas; /* directory of contracts, schema://HOST/NAME/VERSION is
                            HOST/NAME/VERSION.json in it; NULL: results are not checked */
};

struct amp_runtime_terms {
    struct amp_rtp_task task;
    int64_t eta_ms; /* the time that is promised: never after the task's deadline */
    struct amp_runtime_contract {
        char ref[400];
        struct amp_schema *schema;
    } contract[AMP_RTP_CAPABILITIES_MAX];
    uint32_t n_contracts;
    int64_t updated_ms; /* the last update; 0: none */
};
/* Reads what the task asks for. The texts are those of v. The caller releases *out, also after a
 * failure. NO, and the task is to be refused with the code: deadline_passed, version_incompatible
 * (of the routing policy), capability_unavailable (this agent is not eligible for it),
 * handed_over (by this agent, lib/work/handoff),
 * dependency_missing (the contract is not there, or is no schema). */
int amp_runtime_terms(struct amp_store *s, const struct amp_view *v, const char *agent,
                      const struct amp_runtime_options *opt, int64_t now_ms,
                      struct amp_runtime_terms *out, struct amp_error *err);
void amp_runtime_terms_release(struct amp_runtime_terms *t);

/* Whether the agent is eligible for all capabilities of a task, and there is at least one. 1, 0, or
 * -1: failure. */
int amp_runtime_may(struct amp_store *s, const struct amp_rtp_task *t, const char *agent,
                    struct amp_error *err);

/* The agent's name, and the outbox that gets its lines. */
struct amp_runtime_voice {
    struct amp_store *store;
    const char *agent, *box;
};
/* Commits task_accept. 0; 1: this agent accepted it before, and goes on; -1: NO with the codes of
 * work/attempt/reply/reply.h: already_claimed, already_completed and refused_before: others have
 * it. */
int amp_runtime_accept(const struct amp_runtime_voice *w, const struct amp_view *v,
                       const struct amp_runtime_terms *t, const char *plan, int64_t now_ms,
                       struct amp_error *err);
/* Commits a task_update, unless the last one was too recent: 1. percent < 0: none. */
int amp_runtime_update(const struct amp_runtime_voice *w, const struct amp_view *v,
                       struct amp_runtime_terms *t, const struct amp_runtime_options *opt,
                       double percent, const char *note, int64_t now_ms, struct amp_error *err);

/* The end of the work. answer: of schemas/agent/runtime_result.json, or NULL. */
struct amp_runtime_end {
    const json_t *answer;
    bool failed;
    const char *failure; /* a class for a failure without one in the answer; NULL: the answer's */
    const char *said;    /* for the summary, if the answer has none */
};
/* Commits task_complete or task_failed. A complete result that breaks a contract is a failure.
 * *code gets "", or the failure class that was reported. */
int amp_runtime_finish(const struct amp_runtime_voice *w, const struct amp_view *v,
                       const struct amp_runtime_terms *t, const struct amp_runtime_end *end,
                       char code[64], int64_t now_ms, struct amp_error *err);
/* Commits the refusal of a task that was not accepted; retryable if the agent has too many
 * (backpressure), or if a person must approve it first (approval_required). */
int amp_runtime_refuse(const struct amp_runtime_voice *w, const struct amp_view *v,
                       const struct amp_error *why, int64_t now_ms, struct amp_error *err);

#endif
