/*
 * The worker whose agent is a person: takes the questions of its input, suspends what they concern,
 * and sends the decisions. The questions themselves are in hitl/question.h.
 */
#ifndef AMP_FLOW_DECIDE_DECIDE_H
#define AMP_FLOW_DECIDE_DECIDE_H

#include "flow/work/worker.h"
#include "hitl/question.h"

struct amp_decider;
/* opt: tool, consumer, in, out, stop, note, say, open_timeout_ms; the rest is not used. on_info
 * shows an escalation that needs no decision. */
typedef void (*amp_info_fn)(void *ctx, const struct amp_question *q);
struct amp_decider *amp_decider_new(struct amp_store *s, const struct amp_worker_options *opt,
                                    amp_info_fn on_info, void *ctx, struct amp_error *err);
void amp_decider_free(struct amp_decider *d);
struct amp_hitl *amp_decider_hitl(struct amp_decider *d);

/* Reads, records, sends; waits at most wait_ms, also for fds. */
int amp_decider_turn(struct amp_decider *d, struct pollfd *fds, unsigned n, int64_t wait_ms,
                     struct amp_error *err);
bool amp_decider_ended(const struct amp_decider *d); /* no more input */
enum amp_status amp_decider_status(const struct amp_decider *d);

/* amp_question_decide, after the commit of a rollback was looked up in the task's repository. Also
 * refused with: DATAERR missing_commit, unknown_revision (the repository has no such commit),
 * repo_not_git or another code of worktree/git/git.h where the repository cannot be read, no_task
 * (a rollback, but the question is not about a task of the coordinator). */
enum amp_decided amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                                    const struct amp_operator_answer *a, struct amp_error *err);

#endif
