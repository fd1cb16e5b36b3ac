/*
 * The jobs of the queue for the TASKs of sessions: those that wait, and those that ended while no
 * worker had them, so that the sender of the TASK would get no RESPONSE.
 *
 * A RESPONSE that is made here is emitted by the commit that records it, so there is one, also
 * after a crash; then the TASK ends, and the ledger gets its outcome.
 */
#ifndef AMP_WORK_AOP_ACCOUNT_JOBS_H
#define AMP_WORK_AOP_ACCOUNT_JOBS_H

#include "work/aop/entry.h"
#include "work/item/queue.h"

struct amp_reader;

/* The ids of jobs that wait for the TASK, or for any of the session (task empty). The caller frees
 * ids, also after a failure. */
struct amp_session_jobs {
    char (*ids)[AMP_QUEUE_ID_MAX];
    size_t n, cap;
};
int amp_session_jobs_find(struct amp_store *s, struct amp_span session, struct amp_span task,
                          struct amp_session_jobs *out, struct amp_error *err);

/* After the abort of a session: cancels the jobs of the queue that wait for a TASK of it. Each TASK
 * is recorded as SKIPPED, and its RESPONSE is emitted by v->actor. reader reads their messages. *n
 * is added to. May be called again, and by any process, but not in a batch. */
int amp_session_skip_jobs(const struct amp_session_voice *v, struct amp_reader *reader,
                          struct amp_span session, uint32_t *n, struct amp_error *err);

/* After the end of a job, by a person or because its workers were lost: the TASK that it was for is
 * ABORTED or FAILED, if it has not ended, and its RESPONSE is emitted by the first agent of the
 * job's type (work/item/claim/queue.h). Jobs without a TASK change nothing. May be called again;
 * not in a batch. */
int amp_session_job_ended(const struct amp_session_voice *v, const struct amp_queue_job *job,
                          struct amp_error *err);
/* Does this for all jobs that ended. session empty: of all sessions. */
int amp_session_reconcile(const struct amp_session_voice *v, struct amp_span session,
                          struct amp_error *err);

#endif
