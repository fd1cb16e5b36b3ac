/*
 * The admission of a TASK to its session (AOP §2, §10, §11.2, §12), and the steps of its work: what
 * they record, and what they add to the audit trail. Each function is one batch of the store, which
 * the caller syncs before anything depends on it; inside of the caller's own batch it joins that.
 * Every function may be called again after a crash: it completes what is missing.
 *
 *   admit        the TASK is recorded; may its work begin?
 *   begun        before each run of a model
 *   spent        what the run used, while it goes on
 *   event        an EVENT of the worker: recorded and emitted in one commit
 *   guard        the check of a guard rail
 *   released     the work is interrupted and goes on later
 *   ended        the end, with its RESPONSE; then the caller ends its job and emits the RESPONSE
 */
#ifndef AMP_WORK_AOP_SESSION_ADMIT_H
#define AMP_WORK_AOP_SESSION_ADMIT_H

#include <amp/protocol/protocol.h>

#include "work/aop/entry.h"

enum amp_session_admission {
    AMP_ADMIT_FAILED = -1, /* err.status NO: refused, with an E_ code */
    AMP_ADMIT_WAITS,       /* for another TASK of the session; ask again after each change of it */
    AMP_ADMIT_BEGINS,
    AMP_ADMIT_ENDED, /* this attempt has ended: emit amp_session_response and end the job */
};
/*
 * `task` is a valid TASK. Refusals; the TASK is recorded then, and the caller calls
 * amp_session_ended with amp_session_refused_state and a RESPONSE with the code:
 *   E_DEPENDENCY_FAILED   the session is aborted; the TASK before it in a CHAIN was aborted or
 *                         skipped, or failed with ABORT_SESSION; its parent is unknown, or was not
 *                         completed
 *   E_SCHEMA_VALIDATION   a second root TASK of a SINGLE session
 *   E_PERMISSION_DENIED   its parent may not delegate; its effective access (files, network) is not
 *                         within its parent's
 *   E_MAX_DEPTH_EXCEEDED  more than 3 levels; or it is its own ancestor
 * A TASK that contradicts its session (E_SCHEMA_VALIDATION, see amp_session_enter) is not recorded,
 * and amp_session_ended does nothing for it.
 */
enum amp_session_size { /* the soft limits (§4) of its line; recorded with the decision */
                        AMP_SIZE_UNKNOWN, /* not checked here */
                        AMP_SIZE_FITS,
                        AMP_SIZE_WARNS,
};
enum amp_session_admission amp_session_admit(const struct amp_session_voice *v,
                                             const struct amp_view *task,
                                             enum amp_session_size size, struct amp_error *err);
/* The state in the RESPONSE to a refusal: SKIPPED for E_DEPENDENCY_FAILED, else FAILED. */
const char *amp_session_refused_state(const char *code);
/* Whether the session of the TASK is aborted, for TASKs that wait. 1, 0, -1. */
int amp_session_aborted(struct amp_store *s, const struct amp_view *task, struct amp_error *err);

/* A model begins: also the end of the run before it, by the error `after` (an E_ code; "": the
 * first run). used: of that run. */
int amp_session_begun(const struct amp_session_voice *v, const struct amp_view *task,
                      struct amp_span provider, struct amp_span model, const char *after,
                      const struct amp_session_usage *used, struct amp_error *err);
int amp_session_cost(const struct amp_session_voice *v, const struct amp_view *task,
                     const struct amp_session_usage *used, struct amp_error *err);
int amp_session_released(const struct amp_session_voice *v, const struct amp_view *task,
                         const struct amp_session_usage *used, struct amp_error *err);

/* Records an EVENT about the TASK and emits it. line: valid, without LF. ROLLBACK_INITIATED is also
 * a record of the audit trail. name: see amp_session_entry_add; NULL for what may come twice. */
int amp_session_event(const struct amp_session_voice *v, const struct amp_view *task,
                      struct amp_span line, const char *name, struct amp_error *err);

/* The checks of guard rails: PAYLOAD_LIMIT and ACCESS are recorded by admit, BUDGET by ended. */
#define AMP_SESSION_CHECKS(X)                                                                      \
    X(PAYLOAD_LIMIT) X(BUDGET) X(TIMEOUT) X(ACCESS) X(FINAL_SIGNAL) X(MINIMAL_REPORT)
enum amp_session_check {
#define X(name) AMP_SESSION_CHECK_##name,
    AMP_SESSION_CHECKS(X)
#undef X
};
enum amp_session_verdict { AMP_SESSION_PASS, AMP_SESSION_WARN, AMP_SESSION_FAIL };
/* code: NULL or "" if it passed. Once per attempt and check with the same verdict and code. */
int amp_session_guard(const struct amp_session_voice *v, const struct amp_view *task,
                      enum amp_session_check check, enum amp_session_verdict verdict,
                      const char *details, const char *code, struct amp_error *err);

/* The end of the attempt. response: the RESPONSE without LF, whose state, signal and code are
 * recorded. used: of the last run; NULL: from the RESPONSE's cost_tracking, or as reported before.
 * A failure with on_failure ABORT_SESSION aborts the session. emits may be the RESPONSE itself, if
 * no step of a job emits it. Nothing is emitted if the attempt is not recorded, or has ended
 * before. */
int amp_session_ended(const struct amp_session_voice *v, const struct amp_view *task,
                      struct amp_span response, const struct amp_session_usage *used,
                      const struct amp_store_emit *emits, uint32_t n_emits, struct amp_error *err);
/* Appends the RESPONSE of the recorded attempt that has ended. 1; 0: there is none. */
int amp_session_response(struct amp_store *s, const struct amp_view *task, struct amp_buf *out,
                         struct amp_error *err);

#endif
