/*
 * Bindings of agents to worktrees, kept in the store (key binding.<agent>), path rules, and the
 * environment in which an agent's own git commands are held back.
 */
#ifndef AMP_WORKTREE_WORKTREE_H
#define AMP_WORKTREE_WORKTREE_H

#include <limits.h>

#include <amp/base/id.h>

#include "store/store.h"
#include "worktree/binding.h"
#include "worktree/git.h"

#define AMP_BINDING_KIND          "binding"
#define AMP_BINDING_RECOVERY_MS   60000  /* SW4RM §16.3 */
#define AMP_BINDING_SWITCH_TTL_MS 900000 /* configurable; the protocol's example */

struct amp_binding {
    bool found;
    uint8_t state; /* enum amp_binding_state */
    char agent[128];
    char repo[PATH_MAX], worktree[PATH_MAX]; /* the home */
    char other[PATH_MAX];                    /* asked for or bound, non-home */
    char branch[256];
    enum amp_bind_reason reason;
    char why[256];
    /* The question whether a pending switch is allowed; "" where no person has to agree. */
    char invocation[AMP_UUID_MAX];
    int64_t tries, since_ms, due_ms; /* since: in this state */
};

/* UNBOUND where nothing is recorded. */
int amp_binding_get(struct amp_store *s, const char *agent, struct amp_binding *out,
                    struct amp_error *err);
typedef int (*amp_binding_fn)(void *ctx, const struct amp_binding *b);
int amp_binding_each(struct amp_store *s, amp_binding_fn fn, void *ctx, struct amp_error *err);

/* 1 and the agent's name where another agent than this one is bound to the worktree at path, or has
 * switched to it; visiting: only the latter counts. */
int amp_binding_holder(struct amp_store *s, const char *path, const char *agent, bool visiting,
                       char holder[128], struct amp_error *err);

/* One step of the machine for an agent, under compare-and-set. `with` brings what the event sets
 * (repo, worktree, branch, reason, why, other, invocation); out is the record afterwards. NO
 * illegal_transition; NOPERM permission_denied when BIND names another worktree than the one that
 * is bound. due_ms is armed and cleared by the machine's effects. */
struct amp_binding_step {
    const char *agent;
    enum amp_binding_event event;
    struct amp_binding with;
    int64_t now_ms, ttl_ms;              /* ttl_ms 0: the default */
    const struct amp_store_input *input; /* the message that caused it; may be NULL */
    const struct amp_store_emit *emit;   /* committed with the step; NULL: nothing is said */
    const char *actor;                   /* into whose outbox */
};
int amp_binding_step(struct amp_store *s, const struct amp_binding_step *step,
                     struct amp_binding *out, enum amp_store_outcome *outcome,
                     struct amp_error *err);

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
/* Where the state of worktree-bind and the hooks lives: <common>/amp. */
int amp_worktree_state_dir(const struct amp_git_info *info, char *out, size_t size,
                           struct amp_error *err);

#endif
