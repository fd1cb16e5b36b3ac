/* Removes worktrees that are not needed any more. */
#ifndef AMP_WORK_GIT_GC_H
#define AMP_WORK_GIT_GC_H

#include "work/git/worktree.h"

struct amp_gc_spec {
    const char *repo;
    const char *into; /* a revision; NULL: the protected branches */
    bool apply;       /* false: only report */
    int64_t now_ms;
};
enum amp_gc_action { AMP_GC_KEEP, AMP_GC_REMOVE /* or would be */, AMP_GC_FAILED };
struct amp_gc_report {
    enum amp_gc_action action;
    const struct amp_git_worktree *worktree;
    const char *reason; /* a word: merged, files_gone, bound, busy, unmerged, … */
    const char *what;   /* of a failure, or "" */
};
typedef int (*amp_gc_fn)(void *ctx, const struct amp_gc_report *r, struct amp_error *err);
/* Reports each linked worktree. Removed are those whose files are gone, and those without an agent
 * that is bound or at work there whose commits are merged (and pushed, if there are remote
 * branches) and whose files are all committed or ignored. The branches stay. *failed counts those
 * that could not be removed. */
int amp_worktree_gc(struct amp_store *s, struct amp_git *g, const struct amp_gc_spec *spec,
                    amp_gc_fn fn, void *ctx, uint32_t *failed, struct amp_error *err);

#endif
