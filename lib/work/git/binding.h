/*
 * Bindings of agents to worktrees, kept in the store (key binding.<agent>), and their machine
 * (SW4RM §16.1–16.3). AMP and AOP agents use only BOUND_HOME.
 */
#ifndef AMP_WORK_GIT_BINDING_H
#define AMP_WORK_GIT_BINDING_H

#include <limits.h>

#include <amp/base/id.h>
#include <amp/fsm/fsm.h>

#include "message/store/store.h"

#define AMP_BINDING_STATES(X)                                                                      \
    X(AMP_BINDING_UNBOUND, "UNBOUND", "no worktree is bound; the initial state")                   \
    X(AMP_BINDING_BOUND_HOME, "BOUND_HOME", "bound to its own worktree; normal operation")         \
    X(AMP_BINDING_SWITCH_PENDING, "SWITCH_PENDING", "a switch was requested and awaits approval")  \
    X(AMP_BINDING_BOUND_NON_HOME, "BOUND_NON_HOME",                                                \
      "bound to another worktree for a limited time")                                              \
    X(AMP_BINDING_BIND_FAILED, "BIND_FAILED", "a bind failed; the reason is recorded")

#define AMP_BINDING_EVENTS(X)                                                                      \
    X(AMP_BINDING_EV_BIND, "BIND", "a bind succeeded")                                             \
    X(AMP_BINDING_EV_BIND_ERROR, "BIND_ERROR", "a bind failed")                                    \
    X(AMP_BINDING_EV_RETRY_RESET, "RETRY_RESET",                                                   \
      "a bind of another worktree or branch starts again")                                         \
    X(AMP_BINDING_EV_UNBIND, "UNBIND", "the binding ends")                                         \
    X(AMP_BINDING_EV_SWITCH_REQUEST, "SWITCH_REQUEST", "another worktree is requested")            \
    X(AMP_BINDING_EV_SWITCH_APPROVE, "SWITCH_APPROVE",                                             \
      "the switch is approved for a limited time")                                                 \
    X(AMP_BINDING_EV_SWITCH_REJECT, "SWITCH_REJECT", "the switch is refused")                      \
    X(AMP_BINDING_EV_SWITCH_REVOKE, "SWITCH_REVOKE", "the switch is revoked")                      \
    X(AMP_BINDING_EV_TTL_EXPIRED, "TTL_EXPIRED", "the time limit of the switch has passed")        \
    X(AMP_BINDING_EV_RECOVERY_TIMEOUT, "RECOVERY_TIMEOUT", "too long in BIND_FAILED")

#define AMP_BINDING_FACTS(X)                                                                       \
    X(AMP_BINDING_IF_SAME, "same_worktree", "the bind names the worktree already bound")

#define AMP_BINDING_EFFECTS(X)                                                                     \
    X(AMP_BINDING_DO_RECORD_REASON, "record_reason", "record why the bind failed")                 \
    X(AMP_BINDING_DO_RECORD_PLACE, "record_place", "record the repository, worktree and branch")   \
    X(AMP_BINDING_DO_CLEAR_REASON, "clear_reason", "clear the failure")                            \
    X(AMP_BINDING_DO_ARM_RECOVERY, "arm_recovery", "a deadline for the recovery (60 s)")           \
    X(AMP_BINDING_DO_ARM_RETRY, "arm_retry", "a deadline for the next retry, if one is left")      \
    X(AMP_BINDING_DO_ASK_APPROVAL, "ask_approval", "ask a person or the policy")                   \
    X(AMP_BINDING_DO_ARM_TTL, "arm_ttl", "a deadline for the switch")                              \
    X(AMP_BINDING_DO_GO_HOME, "go_home", "return to the home worktree")                            \
    X(AMP_BINDING_DO_RELEASE, "release", "the worktree is free")                                   \
    X(AMP_BINDING_DO_NOTIFY_OPERATOR, "notify_operator", "notify a person")

AMP_FSM_ENUMS(AMP_BINDING);
extern const struct amp_fsm amp_binding_fsm;

/* Why a bind failed (SW4RM §16.3). Invalid requests are refused earlier. */
#define AMP_BIND_REASONS(X)                                                                        \
    X(NONE, "")                                                                                    \
    X(WORKTREE_NOT_FOUND, "worktree_not_found")                                                    \
    X(PERMISSION_DENIED, "permission_denied")                                                      \
    X(FILESYSTEM_ERROR, "filesystem_error")                                                        \
    X(WORKTREE_LOCKED, "worktree_locked")

enum amp_bind_reason {
#define X(id, name) AMP_BIND_##id,
    AMP_BIND_REASONS(X)
#undef X
        AMP_BIND_REASON_COUNT
};
const char *amp_bind_reason_name(int reason);

#define AMP_BINDING_KIND          "binding"
#define AMP_BINDING_RECOVERY_MS   60000  /* SW4RM §16.3 */
#define AMP_BINDING_SWITCH_TTL_MS 900000 /* configurable; the protocol's example */
#define AMP_BINDING_SWITCH_MAX_MS 86400000
#define AMP_BINDING_RETRIES       3    /* of a failed bind, SW4RM §16.3 */
#define AMP_BINDING_RETRY_MS      5000 /* the wait before the first one; doubled each time */
#define AMP_BINDING_RETRY_MOST_MS 60000

struct amp_binding {
    uint64_t rev;  /* of the record; 0: there is none */
    uint8_t state; /* AMP_BINDING_STATES */
    char agent[128];
    char repo[PATH_MAX], worktree[PATH_MAX]; /* the home */
    char other[PATH_MAX];                    /* requested or bound, not the home */
    char branch[256], base[256];
    enum amp_bind_reason reason;
    char why[256];
    char invocation[AMP_UUID_MAX];   /* the id of the question about a pending switch */
    bool person;                     /* only a person may approve the pending switch */
    char by[128];                    /* who approved the switch; "" without one */
    int64_t ttl_ms;                  /* requested for the switch; 0: the default */
    int64_t tries, since_ms, due_ms; /* since: in this state */
    /* In BIND_FAILED: the retries that are left, when the next one is due, and when the operator is
     * notified; 0: not any more. */
    int64_t retries, retry_ms, notice_ms;
};

/* UNBOUND if nothing is recorded. */
int amp_binding_get(struct amp_store *s, const char *agent, struct amp_binding *out,
                    struct amp_error *err);
/* The result is that of an amp_store_each_fn. */
typedef int (*amp_binding_fn)(void *ctx, const struct amp_binding *b, struct amp_error *err);
int amp_binding_each(struct amp_store *s, amp_binding_fn fn, void *ctx, struct amp_error *err);

/* Whether the agent has a worktree to work in: its own, also while a switch is pending, or the one
 * that it switched to. */
bool amp_binding_is_bound(const struct amp_binding *b);

/* 1 and the holder's name if another agent is bound to the worktree at path, or has switched to it;
 * visiting: only switches count. */
int amp_binding_holder(struct amp_store *s, const char *path, const char *agent, bool visiting,
                       char holder[128], struct amp_error *err);

/* One step of the machine for an agent, under compare-and-set. `with` has the values that the event
 * sets (repo, worktree, branch, base, reason, why, retries, other, invocation, person, by, ttl_ms);
 * out is the new record. NO illegal_transition; NO worktree_locked if another agent holds the
 * worktree of BIND or SWITCH_APPROVE, checked under the store's lock; NOPERM permission_denied if
 * BIND names another worktree than the bound one. The machine's effects set due_ms. Not inside
 * amp_store_begin. */
struct amp_binding_step {
    const char *agent;
    uint8_t event; /* AMP_BINDING_EVENTS */
    struct amp_binding with;
    int64_t now_ms, ttl_ms;              /* ttl_ms 0: the default */
    const struct amp_store_input *input; /* the message that caused it; may be NULL */
    const struct amp_store_emit *emit;   /* a line committed with the step; may be NULL */
    const char *actor;                   /* the program whose outbox gets it */
};
int amp_binding_step(struct amp_store *s, const struct amp_binding_step *step,
                     struct amp_binding *out, struct amp_error *err);

#endif
