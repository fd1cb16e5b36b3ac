/* The parts of a task_result: what was asked, what git says, what the agent says. Private to run.
 */
#ifndef AMP_FLOW_WORK_RUN_RESULT_H
#define AMP_FLOW_WORK_RUN_RESULT_H

#include <limits.h>

#include "flow/work/worker.h"

struct amp_work {
    const struct amp_view *v; /* the dispatch */
    char task[256], subtask[256], repo[PATH_MAX], branch[256], base[256];
    char worktree[PATH_MAX];
    char start[AMP_OID_MAX];  /* of the branch when the attempt began */
    char commit[AMP_OID_MAX]; /* afterwards, "" when nothing was measured */
    int64_t attempt, wall_ms;
    const struct amp_subtask *sub; /* NULL where the dispatch names none */
    struct amp_buf criteria;
    struct amp_contract contract;
    struct amp_attempt files;
    struct amp_git_refs refs;
    struct amp_git_diff diff;
    json_t *said;       /* the agent's answer, or NULL */
    char trouble[1024]; /* why it cannot count as done, or "" */
};
/* Names of the subtask with this index. */
void amp_work_names(struct amp_work *k, int64_t index);
void amp_work_release(struct amp_work *k);
/* The attempt's files and what the agent is told. */
int amp_work_contract(struct amp_worker *w, struct amp_work *k, struct amp_error *err);
/* Reads the answer, commits what was left, measures against the base. */
int amp_work_measure(struct amp_worker *w, struct amp_work *k, struct amp_error *err);
bool amp_work_out_of_scope(const struct amp_work *k, const char *const *patterns, char *what,
                           size_t size);
/* One task_result line with LF. */
int amp_work_result(struct amp_worker *w, struct amp_work *k, enum amp_attempt_end end,
                    const char *why, struct amp_buf *line, struct amp_error *err);

#endif
