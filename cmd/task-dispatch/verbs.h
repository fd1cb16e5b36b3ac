/* The verbs of task-dispatch and what they share. */
#ifndef TASK_DISPATCH_VERBS_H
#define TASK_DISPATCH_VERBS_H

#include "cli/cli.h"
#include "message/store/store.h"
#include "shared/work/tool.h"

#define TASK_NOTES AMP_PROOF_NOTES /* of bundles beside commits */
/* The policy of the configuration. */
struct amp_task_policy;
int task_policy(struct amp_task_policy *out, struct amp_error *err);

/* worker.c: reads the types of executors as amp_tool_types_read does; USAGE also for those that an
 * executor cannot have, and for several jobs beside them. */
struct amp_pool_type;
void task_types_read(const struct amp_list *given, int64_t n_jobs, struct amp_pool_type *out);

/* new.c: creates a task from a document of work/task/new.h, or sends it again if it has the id of
 * an open task. text: the file that says the same, for its record, or empty. 1: it was refused, and
 * a warning said why. */
int task_send(struct amp_store *store, json_t *task, struct amp_span text, struct amp_error *err);

/* verify.c: checks by a bundle whether the tree of a commit was approved. 1: out is filled, without
 * a verdict; 0: it was not, and the reason was printed; -1: failure. commit NULL: every proof of
 * the bundle. */
struct amp_git;
struct amp_verified;
struct task_bundle {
    const char *repo, *file; /* file: "-" is standard input */
    bool note;               /* the note of the commit instead of the file */
    bool self_signed;
};
int task_bundle_verify(struct amp_git *git, const struct task_bundle *how, const char *commit,
                       struct amp_verified *out, struct amp_error *err);

/* export.c: appends the bundle with the proof of a task in a repository, without LF. NO
 * missing_commit: it is not approved. */
int task_bundle_text(struct amp_store *store, struct amp_git *git, const char *in, const char *id,
                     struct amp_buf *out, struct amp_error *err);

#endif
