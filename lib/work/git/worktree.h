/* Binds agents to worktrees, and has path rules and the environment that restricts an agent's own
 * git commands. */
#ifndef AMP_WORK_GIT_WORKTREE_H
#define AMP_WORK_GIT_WORKTREE_H

#include <limits.h>

#include "work/git/binding.h"
#include "work/git/prepare.h"
#include "work/git/repository/git.h"

/* Creates or finds the agent's worktree, prepares it, and records BOUND_HOME. On failure records
 * BIND_FAILED with the reason and returns -1 with the cause: of preparing, NO post_create_failed,
 * worktree_locked (somebody works there), or an error of amp_git_worktree_include. Repeating a bind
 * is not an error. */
struct amp_bind_spec {
    const char *agent, *repo;
    const char *path;   /* NULL: <repo>.worktrees/<agent> beside the repository */
    const char *branch; /* NULL: detached */
    const char *base;
    int64_t retries;  /* by amp-ack watch after a failure; 0: the caller repeats it itself */
    const char *role; /* for the guard's patterns per role; NULL: none */
    bool no_sparse;   /* a new worktree gets all files, also if the main one is sparse */
    bool push;        /* git lets it push from the worktree; else see push.h */
    const struct amp_prepare *prepare; /* what the worktree gets; NULL: nothing */
    /* Why the bind has no place: it fails with this, and is not retried. NULL: it has one. */
    const struct amp_error *misplaced;
    int64_t now_ms;
    const struct amp_store_input *input; /* or NULL */
};
int amp_bind(struct amp_store *s, struct amp_git *g, const struct amp_bind_spec *spec,
             struct amp_binding *out, struct amp_error *err);
/* Ends the binding. remove: also removes the worktree (force: even with uncommitted changes); on
 * failure, with the codes of amp_git_worktree_remove, the agent stays bound. repo: the repository
 * of the state, or NULL; a worktree of another one is not touched, and with remove it is NO
 * worktree_unknown. */
struct amp_unbind_spec {
    const char *agent, *repo;
    bool remove, force;
    int64_t now_ms;
    const struct amp_store_input *input; /* or NULL */
};
int amp_unbind(struct amp_store *s, struct amp_git *g, const struct amp_unbind_spec *spec,
               struct amp_binding *out, struct amp_error *err);

/* Resolves path and checks that it is inside root, component by component. NOPERM path_escape. out
 * (PATH_MAX) gets the canonical path; may be NULL. */
int amp_path_inside(const char *root, const char *path, char *out, struct amp_error *err);
/* The real path of the existing part of path, with the rest appended. path may be relative. */
int amp_path_canonical(const char *path, char out[PATH_MAX], struct amp_error *err);
/* Normalizes an absolute path lexically: no empty or dot components. false if .. leaves the root.
 */
bool amp_path_normal(struct amp_span path, char *out, size_t size);

/* Constant environment strings "NAME=VALUE" that make git refuse an agent's pushes,
 * NULL-terminated. */
const char *const *amp_agent_git_env(void);

#endif
