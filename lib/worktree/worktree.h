/*
 * Binding agents to worktrees, path rules, and the environment in which an agent's own git commands
 * are held back.
 */
#ifndef AMP_WORKTREE_WORKTREE_H
#define AMP_WORKTREE_WORKTREE_H

#include <limits.h>

#include "worktree/binding.h"
#include "worktree/git/git.h"

/* Makes (or finds) the agent's worktree and records BOUND_HOME, or BIND_FAILED with its reason
 * (then -1 with the cause; the record stands). Binding what is bound already is no error. */
struct amp_bind_spec {
    const char *agent, *repo;
    const char *path;   /* NULL: <repo>.worktrees/<agent> beside the repository */
    const char *branch; /* NULL: detached */
    const char *base;
    int64_t now_ms;
    const struct amp_store_input *input; /* or NULL */
};
int amp_bind(struct amp_store *s, struct amp_git *g, const struct amp_bind_spec *spec,
             struct amp_binding *out, struct amp_error *err);
/* Gives the binding up. remove: the worktree goes too (force: also with changes in it); it fails
 * with the codes of amp_git_worktree_remove, and the agent stays bound. repo: the repository that
 * the state belongs to, or NULL; a worktree of another one is not touched, and with remove it is
 * NO worktree_unknown. */
struct amp_unbind_spec {
    const char *agent, *repo;
    bool remove, force;
    int64_t now_ms;
    const struct amp_store_input *input; /* or NULL */
};
int amp_unbind(struct amp_store *s, struct amp_git *g, const struct amp_unbind_spec *spec,
               struct amp_binding *out, struct amp_error *err);

/* Whether path, after resolving what exists of it, lies inside root (component by component, never
 * by string prefix). NOPERM path_escape. out (PATH_MAX) gets the canonical path; may be NULL. */
int amp_path_inside(const char *root, const char *path, char *out, struct amp_error *err);
/* The real path of what exists of path, with the rest appended; absolute, or relative to here. */
int amp_path_canonical(const char *path, char out[PATH_MAX], struct amp_error *err);
/* "a/../b" lexically: absolute, no empty or dot components; false when .. leaves the root. */
bool amp_path_normal(struct amp_span path, char *out, size_t size);

/* Environment that makes git refuse an agent's pushes, to be put into its environ: NULL-terminated
 * "NAME=VALUE" strings, constant. */
const char *const *amp_agent_git_env(void);

#endif
