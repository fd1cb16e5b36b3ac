/*
 * A cursor. The Runtime Protocol (§6) describes it without a table: it advances only after a
 * durable enqueue; a gap stops it until a timeout, then follow an incident and the configured skip
 * or tombstone; it has a lease and an epoch. Extra rows are for the actions of persons and the end
 * of a holder.
 */
#include "message/delivery/cursor/cursor_fsm.h"
#include "base/codes.h"

#define S(x)   AMP_CURSOR_##x
#define E(x)   AMP_CURSOR_EV_##x
#define EFF(x) AMP_CURSOR_DO_##x
#define IF(x)  AMP_CURSOR_IF_##x
#define MOVES  (EFF(ADVANCE) | EFF(LEASE))
#define TAKEN  (EFF(FENCE) | EFF(LEASE) | EFF(HOLDER))
#define REWOUND                                                                                    \
    (EFF(ADVANCE) | EFF(REWIND) | EFF(FENCE) | EFF(END_LEASE) | EFF(LEASE) | EFF(DISARM))
#define GONE     (EFF(END_LEASE) | EFF(LAPSE) | EFF(DISARM))
#define GIVES_UP (MOVES | EFF(HOLE) | EFF(DISARM))

/* clang-format off */
#define ROW(f, e, t, fa, eff, c)   {S(f), E(e), S(t), false, (fa), 0, (eff), (c)}
#define EXTRA(f, e, t, fa, eff, c) {S(f), E(e), S(t), true, (fa), 0, (eff), (c)}
#define HELD_ROWS(s)                                                                               \
    ROW(s, RENEW, s, 0, EFF(LEASE), NULL),                                                         \
    EXTRA(s, LET_GO, s, 0, EFF(END_LEASE), NULL),                                                  \
    ROW(s, EXPIRE, EXPIRED, 0, EFF(END_LEASE) | EFF(LAPSE) | EFF(FENCE), AMP_CODE(cursor_expired)),                     \
    ROW(s, TAKE_OVER, s, 0, TAKEN, NULL),                                                          \
    EXTRA(s, MOVE, ACTIVE, 0, REWOUND, NULL),                                                      \
    EXTRA(s, RETIRE, RETIRED, 0, GONE, NULL)

static const struct amp_fsm_row rows[] = {
    ROW(ACTIVE, ENQUEUE, GAP, IF(MISSING), MOVES | EFF(ARM), NULL),
    ROW(ACTIVE, ENQUEUE, ACTIVE, 0, MOVES, NULL),
    ROW(ACTIVE, HOLD, GAP, 0, EFF(KEEP) | EFF(ARM) | EFF(LEASE), NULL),
    ROW(ACTIVE, TAKE_OVER, GAP, IF(MISSING), TAKEN | EFF(ARM), NULL),
    HELD_ROWS(ACTIVE),

    ROW(GAP, ENQUEUE, GAP, IF(MISSING) | IF(SAME), MOVES, NULL),
    ROW(GAP, ENQUEUE, GAP, IF(MISSING), MOVES | EFF(ARM), NULL),
    ROW(GAP, ENQUEUE, ACTIVE, 0, MOVES | EFF(DISARM), NULL),
    ROW(GAP, HOLD, GAP, 0, EFF(KEEP) | EFF(LEASE), NULL),
    ROW(GAP, TIMEOUT, OVERDUE, 0, EFF(INCIDENT), "gap_timeout"),
    HELD_ROWS(GAP),

    ROW(OVERDUE, ENQUEUE, OVERDUE, IF(MISSING) | IF(SAME), MOVES, NULL),
    ROW(OVERDUE, ENQUEUE, GAP, IF(MISSING), MOVES | EFF(ARM), NULL),
    ROW(OVERDUE, ENQUEUE, ACTIVE, 0, MOVES | EFF(DISARM), NULL),
    ROW(OVERDUE, HOLD, OVERDUE, 0, EFF(KEEP) | EFF(LEASE), NULL),
    ROW(OVERDUE, SKIP, ACTIVE, 0, GIVES_UP, NULL),
    ROW(OVERDUE, TOMBSTONE, ACTIVE, 0, GIVES_UP, NULL),
    HELD_ROWS(OVERDUE),

    ROW(EXPIRED, TAKE_OVER, OVERDUE, IF(MISSING) | IF(TOLD), TAKEN, NULL),
    ROW(EXPIRED, TAKE_OVER, GAP, IF(MISSING), TAKEN, NULL),
    ROW(EXPIRED, TAKE_OVER, ACTIVE, 0, TAKEN | EFF(DISARM), NULL),
    EXTRA(EXPIRED, MOVE, ACTIVE, 0, REWOUND, NULL),
    EXTRA(EXPIRED, RETIRE, RETIRED, 0, GONE, NULL),

    EXTRA(RETIRED, MOVE, ACTIVE, 0, REWOUND, NULL),
};
/* clang-format on */

const struct amp_fsm amp_cursor_fsm = {
    .name = "cursor",
    .source = "Runtime Protocol §6",
    .doc = "how far a consumer has read the stream of a source",
    AMP_FSM_LISTS(AMP_CURSOR),
    .initial = AMP_CURSOR_ACTIVE,
    .terminal = 1u << AMP_CURSOR_RETIRED,
    .rows = rows,
    .n_rows = sizeof(rows) / sizeof(rows[0]),
};
