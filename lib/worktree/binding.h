/* The worktree binding machine (SW4RM §16.1–16.3). AMP and AOP agents use only BOUND_HOME. */
#ifndef AMP_WORKTREE_BINDING_H
#define AMP_WORKTREE_BINDING_H

#include <amp/fsm/fsm.h>

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
      "a bind of something else than what failed begins anew")                                     \
    X(AMP_BINDING_EV_UNBIND, "UNBIND", "the binding is given up")                                  \
    X(AMP_BINDING_EV_SWITCH_REQUEST, "SWITCH_REQUEST", "another worktree is asked for")            \
    X(AMP_BINDING_EV_SWITCH_APPROVE, "SWITCH_APPROVE", "the switch is allowed, for a time")        \
    X(AMP_BINDING_EV_SWITCH_REJECT, "SWITCH_REJECT", "the switch is refused")                      \
    X(AMP_BINDING_EV_SWITCH_REVOKE, "SWITCH_REVOKE", "the switch is taken back")                   \
    X(AMP_BINDING_EV_TTL_EXPIRED, "TTL_EXPIRED", "the time of the switch is over")                 \
    X(AMP_BINDING_EV_RECOVERY_TIMEOUT, "RECOVERY_TIMEOUT", "too long in BIND_FAILED")

#define AMP_BINDING_FACTS(X)                                                                       \
    X(AMP_BINDING_IF_SAME, "same_worktree", "the bind names the worktree already bound")

#define AMP_BINDING_EFFECTS(X)                                                                     \
    X(AMP_BINDING_DO_RECORD_REASON, "record_reason", "keep why the bind failed")                   \
    X(AMP_BINDING_DO_RECORD_PLACE, "record_place", "keep the repository, worktree and branch")     \
    X(AMP_BINDING_DO_CLEAR_REASON, "clear_reason", "forget the failure")                           \
    X(AMP_BINDING_DO_ARM_RECOVERY, "arm_recovery", "a deadline for the recovery (60 s)")           \
    X(AMP_BINDING_DO_ASK_APPROVAL, "ask_approval", "ask a human or the policy")                    \
    X(AMP_BINDING_DO_ARM_TTL, "arm_ttl", "a deadline for the switch")                              \
    X(AMP_BINDING_DO_GO_HOME, "go_home", "the home worktree counts again")                         \
    X(AMP_BINDING_DO_RELEASE, "release", "the worktree is free")                                   \
    X(AMP_BINDING_DO_NOTIFY_OPERATOR, "notify_operator", "tell a person")

enum amp_binding_state { AMP_BINDING_STATES(AMP_FSM_ENUM) AMP_BINDING_STATE_COUNT };
enum amp_binding_event { AMP_BINDING_EVENTS(AMP_FSM_ENUM) AMP_BINDING_EVENT_COUNT };
enum { AMP_BINDING_FACTS(AMP_FSM_BIT) AMP_BINDING_FACT_COUNT };
enum { AMP_BINDING_FACTS(AMP_FSM_FLAG) };
enum { AMP_BINDING_EFFECTS(AMP_FSM_BIT) AMP_BINDING_EFFECT_COUNT };
enum { AMP_BINDING_EFFECTS(AMP_FSM_FLAG) };

extern const struct amp_fsm amp_binding_fsm;

/* Why a bind failed (SW4RM §16.3); INVALID and the like never get this far. */
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
const char *amp_bind_reason_name(enum amp_bind_reason r);
/* The reason that an error of the git worker or the file system stands for. */
enum amp_bind_reason amp_bind_reason_of(const struct amp_error *err);

#endif
