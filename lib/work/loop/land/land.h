/*
 * Landing: moving a branch to approved work. An approval is of exactly one commit, so a branch
 * moves only to that commit itself (fast-forward), or to a merge commit of exactly the branch's old
 * value and that commit, which is recorded and signed. The merge has the commit's tree, or, if the
 * branch has other commits and the caller allows it, the merged contents of both after a judgement
 * (`judge`), which is in the signed record. Otherwise such a branch is refused: the merged tree
 * would be one that nobody reviewed.
 *
 * With a store the landing is recorded before and after the move (work/task/landing/landing.h), so
 * a crash in between leaves a record, which the next landing of the task completes: as landed if
 * the branch has moved, else as not moved. One landing at a time: the lock is amp-land.lock in the
 * common git directory; other programs are kept out by the compare-and-set of the branch.
 */
#ifndef AMP_WORK_LOOP_LAND_LAND_H
#define AMP_WORK_LOOP_LAND_LAND_H

#include "work/git/repository/git.h"
#include "work/task/landing/landing.h"

struct amp_land {
    const char *repo, *branch;        /* branch: without refs/heads/ */
    const char *task, *commit, *tree; /* verified by the caller */
    const char *base;                 /* where the reviewed work starts; NULL: unknown */
    const char *title;                /* of the task, for the merge commit; or NULL */
    const char *old;                  /* the branch's value for a hook; NULL: any */
    /* If the commit is itself a merge that a landing made: the branch that it merges into, and its
     * value; merge_branch NULL: it is not. */
    const char *merge_branch, *merge_from;
    bool merge, check; /* merge: a merge commit; check: only the plan */
    bool contents;     /* a branch with other commits is merged; needs judge, unless check */
    /* Judges a merge of contents, plan->to, before the branch moves: fills merged, test and digest
     * of rec. -1: it does not land. */
    int (*judge)(void *ctx, const struct amp_git_land *plan, struct amp_landing *rec,
                 struct amp_error *err);
    bool forward; /* with check: the branch may not go back to an older commit */
    int64_t lock_timeout_ms;
    struct amp_landing who; /* person, by, key */
    /* Fills alg and signature; NULL: not signed. */
    int (*sign)(void *ctx, struct amp_landing *l, struct amp_error *err);
    void *ctx;
};

/* Lands; out says from where to where, or that the branch has the commit already, which is recorded
 * too. store NULL: nothing is recorded. Codes of amp_git_land_plan and amp_git_land_move, and of
 * judge; NO landing_changed; merge_conflict: out has the conflicts; TEMPFAIL lock_timeout. Refused
 * landings change nothing. */
int amp_land(struct amp_store *store, struct amp_git *git, const struct amp_land *l,
             struct amp_git_land *out, struct amp_error *err);

#endif
