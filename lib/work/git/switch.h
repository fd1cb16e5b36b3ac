/*
 * Switches: an agent works in another worktree than its own for a limited time (SW4RM §16.2). While
 * the switch lasts, the other worktree has the agent's marker; it is written before the approval is
 * recorded, and removed before the return is, so that a crash in between can be repeated.
 */
#ifndef AMP_WORK_GIT_SWITCH_H
#define AMP_WORK_GIT_SWITCH_H

#include "work/git/worktree.h"

struct amp_switch_spec {
    const char *agent;
    const char *repo;   /* of an agent whose binding names none */
    const char *root;   /* the directory of the worktrees; NULL: REPO.worktrees */
    const char *target; /* a name in root or a path; approve: NULL, the requested one */
    int64_t ttl_ms;     /* 0: the default; approve: 0, the requested one */
    bool person;        /* request: only a person may approve it */
    const char *by;     /* approve: who does; never the agent */
    int64_t now_ms;
    const struct amp_store_input *input; /* or NULL */
};
/* The canonical path of a worktree that is named by id; *name, if not NULL, gets its part below
 * root. NOPERM permission_denied: not inside root. */
int amp_switch_path(struct amp_git *g, const char *repo, const char *root, const char *id,
                    char out[PATH_MAX], const char **name, struct amp_error *err);

/* Records SWITCH_PENDING with a new invocation id. NO validation_error without a target,
 * worktree_not_found, worktree_locked, illegal_transition; NOPERM permission_denied. */
int amp_switch_request(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                       struct amp_binding *out, struct amp_error *err);
/* Records BOUND_NON_HOME. It has the same failures; NOPERM permission_denied: `by` is the agent. */
int amp_switch_approve(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                       struct amp_binding *out, struct amp_error *err);
/* Returns the agent to its worktree: event is SWITCH_REJECT, SWITCH_REVOKE or TTL_EXPIRED. */
int amp_switch_end(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                   uint8_t event, struct amp_binding *out, struct amp_error *err);
/* Removes the agent's marker from the worktree that it requested or switched to. */
int amp_switch_leave(struct amp_git *g, const struct amp_binding *b, struct amp_error *err);

#endif
