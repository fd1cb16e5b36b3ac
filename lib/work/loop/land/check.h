/*
 * The check of a merge (land.check): a command in a scratch worktree of the merge commit, within
 * the walls of work/confine/confine.h, since it executes what agents wrote. The worktree is
 * REPO.worktrees/amp-land; the caller has the repository's landing lock, so one check uses it at a
 * time, and the next one removes what a killed one left.
 */
#ifndef AMP_WORK_LOOP_LAND_CHECK_H
#define AMP_WORK_LOOP_LAND_CHECK_H

#include <amp/base/id.h>

#include "work/confine/confine.h"
#include "work/git/repository/git.h"

#define AMP_LAND_CHECK_OUTPUT (16u << 20) /* bytes of output that the digest covers */

struct amp_land_check {
    const char *command; /* for /bin/sh -c */
    int64_t limit_ms;    /* then it and its descendants are ended; 0: none */
    const struct amp_confine_policy *policy;
    const struct amp_confine_report *confine;
    const char *state_dir; /* hidden from it; absolute */
    volatile const int *stop;
};
struct amp_land_checked {
    bool passed;                 /* it ended with 0 */
    char digest[AMP_SHA256_MAX]; /* of its output, standard error included */
    char why[512];               /* it failed: how, with the end of the output; text for people */
};
/* Runs the check on a commit of the repository. INTERRUPTED interrupted: *stop was set, and there
 * is no result; otherwise the failures of amp_git_worktree_add and amp_confine_start. */
int amp_land_check_run(struct amp_git *git, const struct amp_land_check *c, const char *repo,
                       const char *commit, struct amp_land_checked *out, struct amp_error *err);

#endif
