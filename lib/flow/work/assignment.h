/*
 * The work on one message for one subtask, as run and review do it: a worktree, an attempt of the
 * agent's command there, and whether it moved protected refs.
 */
#ifndef AMP_FLOW_WORK_ASSIGNMENT_H
#define AMP_FLOW_WORK_ASSIGNMENT_H

#include "agent/job/contract.h"
#include "flow/work/worker.h"

struct amp_assignment {
    const struct amp_view *v; /* a dispatch, a review request */
    char task[256], subtask[256], repo[PATH_MAX], branch[256], base[AMP_OID_MAX * 4];
    char commit[AMP_OID_MAX]; /* that is reviewed; after a run, "" when nothing was measured */
    char worktree[PATH_MAX];
    int64_t attempt;         /* of the task's subtask */
    struct amp_buf criteria; /* JSON */
    struct amp_contract contract;
    struct amp_attempt files;
    struct amp_git_refs refs; /* before the attempt */
    enum amp_attempt_end end; /* and why: how the attempt ended, see amp_attempt_read_end */
    char why[256];
    int64_t wall_ms;
};
void amp_assignment_release(struct amp_assignment *k);

/* The task's record, where there is a coordinator that keeps one: the number of the attempt, and
 * with `base` the task's base, where it has one. */
int amp_assignment_look_up(struct amp_worker *w, struct amp_assignment *k, bool base,
                           struct amp_error *err);

/* The agent's worktree: on the branch (made from base where it does not exist), or detached at base
 * where branch is NULL; fresh: nothing of an earlier attempt is in it. What is not committed, or on
 * no branch, is kept under a ref first; a directory that has more than the ref is left, and another
 * one is used. */
struct amp_worker_place {
    const char *branch, *base;
    bool fresh;
};
int amp_assignment_bind(struct amp_worker *w, struct amp_assignment *k,
                        const struct amp_worker_place *p, struct amp_error *err);

/* The attempt's files, with the fields of the contract that both roles fill alike. */
int amp_assignment_files(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* Runs the command for one attempt in the worktree. */
int amp_assignment_run(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* The trip-wire: protected refs before and after. Returns 1 and a sentence when one was moved and
 * the reflog names this agent or nobody. */
int amp_assignment_tripped(struct amp_worker *w, const struct amp_assignment *k, char *what,
                           size_t size, struct amp_error *err);

/* After an attempt that ended in `end` without an answer: repeat, park, or give up. Makes the job's
 * step; *spent says that no attempts are left and nothing was stepped. An agent that asks for
 * another attempt says when, in retry_after_sec of its answer: an integer from 0 to
 * AMP_RETRY_AFTER_MAX_SEC; what is not is reported and not used. */
#define AMP_RETRY_AFTER_MAX_SEC (30 * 86400)
int amp_assignment_again(struct amp_worker *w, struct amp_job *job, const struct amp_assignment *k,
                         enum amp_attempt_end end, const char *why, bool *spent,
                         struct amp_error *err);

#endif
