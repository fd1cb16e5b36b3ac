/* The worktree binding machine's table, row by row as in SW4RM §16.2. */
#include "work/git/binding.h"

#define BIT(x) AMP_BINDING_DO_##x
#define ROW(f, e, t, ...)                                                                          \
    {                                                                                              \
        .from = AMP_BINDING_##f, .event = AMP_BINDING_EV_##e, .to = AMP_BINDING_##t, __VA_ARGS__   \
    }
#define DO(x)  .effects = (x)
#define FAILED (BIT(RECORD_PLACE) | BIT(RECORD_REASON) | BIT(ARM_RECOVERY) | BIT(ARM_RETRY))

static const struct amp_fsm_row rows[] = {
    ROW(UNBOUND, BIND, BOUND_HOME, DO(BIT(RECORD_PLACE))),
    ROW(UNBOUND, BIND_ERROR, BIND_FAILED, DO(FAILED)),
    ROW(BIND_FAILED, RETRY_RESET, UNBOUND, DO(BIT(CLEAR_REASON) | BIT(RELEASE))),
    ROW(BIND_FAILED, UNBIND, UNBOUND, DO(BIT(CLEAR_REASON) | BIT(RELEASE))),
    ROW(BIND_FAILED, BIND, BOUND_HOME, DO(BIT(CLEAR_REASON) | BIT(RECORD_PLACE))),
    ROW(BOUND_HOME, SWITCH_REQUEST, SWITCH_PENDING, DO(BIT(ASK_APPROVAL))),
    ROW(SWITCH_PENDING, SWITCH_APPROVE, BOUND_NON_HOME, DO(BIT(ARM_TTL))),
    ROW(SWITCH_PENDING, SWITCH_REJECT, BOUND_HOME, DO(BIT(GO_HOME))),
    ROW(BOUND_NON_HOME, TTL_EXPIRED, BOUND_HOME, DO(BIT(GO_HOME))),
    ROW(BOUND_NON_HOME, SWITCH_REVOKE, BOUND_HOME, DO(BIT(GO_HOME))),
    ROW(BOUND_HOME, UNBIND, UNBOUND, DO(BIT(RELEASE))),
    ROW(BOUND_NON_HOME, UNBIND, UNBOUND, DO(BIT(RELEASE))),
    /* A retry may fail again; an unbind need not wait for an approval; a bind that is repeated
     * after a crash finds what it made; a lasting failure is reported to an operator. */
    ROW(BIND_FAILED, BIND_ERROR, BIND_FAILED, DO(FAILED), .extra = true),
    ROW(BIND_FAILED, RECOVERY_TIMEOUT, BIND_FAILED, DO(BIT(NOTIFY_OPERATOR)), .extra = true),
    ROW(SWITCH_PENDING, UNBIND, UNBOUND, DO(BIT(RELEASE)), .extra = true),
    ROW(BOUND_HOME, BIND, BOUND_HOME, DO(0), .if_all = AMP_BINDING_IF_SAME, .extra = true),
};

const struct amp_fsm amp_binding_fsm = {
    .name = "worktree_binding",
    .source = "SW4RM §16.2",
    .doc = "an agent's hold on a worktree",
    AMP_FSM_LISTS(AMP_BINDING),
    .initial = AMP_BINDING_UNBOUND,
    .rows = rows,
    .n_rows = sizeof rows / sizeof *rows,
};
