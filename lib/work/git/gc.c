/* Decides which worktrees are removed. git-worker knows what a removal would lose, the store who
 * works where. The removal itself checks the files again. */
#include "work/git/gc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/grow.h"

struct list {
    struct amp_git_worktree *v;
    size_t n, cap;
    bool failed;
};

static int list_add(void *ctx, const struct amp_git_worktree *w)
{
    struct list *l = ctx;
    l->failed = amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, NULL) < 0;
    if (!l->failed)
        l->v[l->n++] = *w;
    return l->failed;
}

/* Whether a worker has the lock of the worktree (work/attempt/place.c). */
static bool is_busy(const char *worktree)
{
    char path[PATH_MAX + 8];
    struct amp_error e = {0};
    snprintf(path, sizeof path, "%s/.git", worktree);
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0, NULL);
    return fd >= 0 && amp_lock(fd, 0, &e) < 0;
}

/* The reason to keep a worktree, or NULL. -1 in *rc: failure. */
static const char *keep_reason(struct amp_store *s, const struct amp_git_worktree *w, int *rc,
                               struct amp_error *err)
{
    char holder[128];
    *rc = amp_binding_holder(s, w->path, "", false, holder, err);
    if (*rc < 0)
        return NULL;
    return *rc > 0 ? "bound" : *w->keep ? w->keep : is_busy(w->path) ? "busy" : NULL;
}

static int worktree_collect(struct amp_store *s, struct amp_git *g, const struct amp_gc_spec *spec,
                            const struct amp_git_worktree *w, struct amp_gc_report *r,
                            struct amp_error *failure, struct amp_error *err)
{
    int rc;
    const char *keep = keep_reason(s, w, &rc, err);
    if (rc < 0)
        return -1;
    *r = (struct amp_gc_report){.action = keep ? AMP_GC_KEEP : AMP_GC_REMOVE,
                                .worktree = w,
                                .reason = keep         ? keep
                                          : w->missing ? "files_gone"
                                                       : "merged",
                                .what = ""};
    if (keep || !spec->apply)
        return 0;
    if (amp_git_worktree_remove(g, spec->repo, w->path, false, failure) < 0) {
        bool kept = failure->status == AMP_NO;
        r->action = kept ? AMP_GC_KEEP : AMP_GC_FAILED;
        r->reason = failure->code;
        r->what = failure->what;
    }
    return 0;
}

int amp_worktree_gc(struct amp_store *s, struct amp_git *g, const struct amp_gc_spec *spec,
                    amp_gc_fn fn, void *ctx, uint32_t *failed, struct amp_error *err)
{
    struct list all = {0};
    int rc = amp_git_worktree_lives(g, spec->repo, spec->into, list_add, &all, err);
    if (rc == 0 && all.failed)
        rc = amp_fail_memory(err);
    *failed = 0;
    for (size_t i = 0; rc == 0 && i < all.n; i++) {
        struct amp_gc_report r;
        struct amp_error failure;
        rc = worktree_collect(s, g, spec, &all.v[i], &r, &failure, err);
        if (rc == 0)
            rc = fn(ctx, &r, err);
        *failed += rc == 0 && r.action == AMP_GC_FAILED;
    }
    free(all.v);
    return rc < 0 ? -1 : 0;
}
