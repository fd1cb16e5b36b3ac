/* The files of task-dispatch land share these declarations. */
#ifndef TASK_DISPATCH_LAND_H
#define TASK_DISPATCH_LAND_H

#include <limits.h>

#include "../verbs.h"
#include "shared/work/person.h"
#include "work/loop/land/check.h"
#include "work/loop/land/land.h"
#include "work/loop/review/verify.h"

/* land.merged: who lets in a merge with a branch that has moved on. */
enum land_by { LAND_BY_CHECK, LAND_BY_CLEAN, LAND_BY_REVIEW, LAND_BY_PERSON, LAND_BY_NOBODY };

struct landing {
    struct amp_store *store; /* NULL: by a bundle */
    struct amp_git *git;
    const struct amp_tool_person *person;
    char dir[PATH_MAX]; /* of the state, absolute; only with a check */
    enum land_by by;
    struct amp_confine_policy policy; /* of the check */
    struct amp_confine_report confine;
    /* These belong to the work that lands. */
    struct amp_task task; /* of the state; id "" or NULL with a bundle */
    struct amp_verified v;
    struct amp_tool_signature sig;
    struct amp_git_land plan;
    struct amp_land_checked checked; /* digest "": no check ran */
    char repo[PATH_MAX], branch[256];
    bool by_commit; /* the work was named by a commit, as hooks do */
};

/* Lands one task or commit. 1: it has landed; 0: it is not approved, and the reason was printed. */
int land_one(struct landing *l, const char *name, struct amp_error *err);

/* all.c: lands every task that is done, one after the other, and sends back what does not; follow:
 * goes on until a signal. *status: NO, something did not land; TEMPFAIL, something was sent back.
 * TEMPFAIL lock_timeout: another process does it. */
int land_all(struct landing *l, bool follow, enum amp_status *status, struct amp_error *err);

/* pr.c: pushes the branch with the verified commit, and opens a pull request into l->branch. 1 or
 * -1: UNAVAILABLE command_not_found, helper_missing; USAGE bad_value: there is no remote; NO
 * command_refused. The script has printed why. */
int land_pull(struct landing *l, struct amp_error *err);

#endif
