/*
 * Installs branch-guard as a repository's hooks. The program is copied into the hooks directory as
 * `branch-guard` and each hook is a relative link to it, so that the repository does not depend on
 * where this toolkit is installed. An existing hook is kept as NAME.amp-kept; the guard calls it
 * with the same arguments and input.
 */
#ifndef AMP_WORK_GIT_HOOKS_H
#define AMP_WORK_GIT_HOOKS_H

#include <limits.h>

#include "work/git/repository/git.h"
#include "work/git/rule.h"

#define AMP_HOOK_PROGRAM "branch-guard"
#define AMP_HOOK_KEPT    ".amp-kept"
#define AMP_OVERRIDE     "override" /* below <common>/amp */

struct amp_hooks {
    char common[PATH_MAX];  /* the repository's common git directory */
    char dir[PATH_MAX];     /* where the hooks go */
    char foreign[PATH_MAX]; /* where git looks instead (core.hooksPath), else "" */
    bool linked;            /* dir, not named by the caller, is a symbolic link */
    bool relative;          /* core.hooksPath is relative: each worktree has its own directory */
    bool server;            /* also install `update`, for a repository that receives pushes */
};

/* Finds the directories of a repository. If dir is not NULL, it is the hooks directory. */
int amp_hooks_find(struct amp_git *g, const char *repo, const char *dir, struct amp_hooks *out,
                   struct amp_error *err);
/* Returns where git looks for hooks: foreign, or else dir. */
const char *amp_hooks_where_git_looks(const struct amp_hooks *h);

/* Reports each step of install and uninstall: "copied", "linked", "kept", "restored", "removed",
 * "unchanged", "policy", "configured". note may be "". */
typedef void (*amp_hook_did_fn)(void *ctx, const char *did, const char *path, const char *note);

/* Idempotent. program is the file to copy. CONFIG foreign_hooks_path: git looks elsewhere; CONFIG
 * linked_hooks: dir is a symbolic link; CONFIG hook_conflict: NAME and NAME.amp-kept both exist,
 * and neither is the guard. */
int amp_hooks_install(const struct amp_hooks *h, const struct amp_rule *rule, const char *program,
                      amp_hook_did_fn did, void *ctx, struct amp_error *err);
/* Restores kept hooks and removes the installed files, in dir and where git looks, and the policy.
 */
int amp_hooks_uninstall(const struct amp_hooks *h, amp_hook_did_fn did, void *ctx,
                        struct amp_error *err);

enum amp_hook_severity { AMP_HOOK_ERROR, AMP_HOOK_WARNING };
struct amp_hook_finding {
    enum amp_hook_severity severity;
    const char *code; /* "hook_missing" */
    const char *path;
    const char *what;
};
typedef void (*amp_hook_fn)(void *ctx, const struct amp_hook_finding *f);
/* Reports everything that disables the guard or makes git fail: hooks that are missing, replaced or
 * not executable (git ignores these silently), missing interpreters (every ref update fails), a
 * guard that differs from `program` (NULL: unknown), a policy that cannot be read. Runs nothing
 * from the repository. env_path is the PATH that `env` searches. Returns the number of errors, or
 * -1. */
int amp_hooks_check(const struct amp_hooks *h, const char *program, const char *env_path,
                    amp_hook_fn fn, void *ctx, struct amp_error *err);

/* Writes the one-use override; its record must be logged and synced before. */
struct amp_hook_override {
    const char *branch, *agent, *id; /* agent "*": any */
    int64_t until_ms;
};
int amp_hooks_override(const struct amp_hooks *h, const struct amp_hook_override *o,
                       struct amp_error *err);

#endif
