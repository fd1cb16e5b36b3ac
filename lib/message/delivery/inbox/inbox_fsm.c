/*
 * One delivery to one recipient. OFFERED is in the log before the message is handed over, so after
 * a crash it may have arrived. READ is final, unless a person requeues a dead letter or returns the
 * message because the work was not done.
 */
#include "base/codes.h"
#include "message/delivery/inbox/inbox.h"

static const struct amp_fsm_name states[] = {AMP_INBOX_STATES(AMP_FSM_NAMES)};
static const struct amp_fsm_name events[] = {AMP_INBOX_EVENTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name effects[] = {AMP_INBOX_EFFECTS(AMP_FSM_NAMES)};

#define S(x) AMP_INBOX_##x
#define E(x) AMP_INBOX_EV_##x
#define D(x) AMP_INBOX_DO_##x

/* clang-format off */
#define ROW(f, e, t, eff, c) {S(f), E(e), S(t), false, 0, 0, (eff), (c)}
#define EXTRA(f, e, t, eff, c) {S(f), E(e), S(t), true, 0, 0, (eff), (c)}

static const struct amp_fsm_row rows[] = {
    ROW(ABSENT, PUT, WAITING, D(PLACE), NULL),
    /* It has a place, but a crash came before the delivery was recorded. */
    ROW(ABSENT, OFFER, OFFERED, 0, NULL),
    ROW(ABSENT, EXPIRE, FAILED, D(DROP), AMP_CODE(ttl_expired)),
    ROW(ABSENT, SUPERSEDE, FAILED, D(DROP), AMP_CODE(superseded)),

    ROW(WAITING, PUT, WAITING, 0, NULL),
    ROW(WAITING, OFFER, OFFERED, 0, NULL),
    ROW(WAITING, EXPIRE, FAILED, D(DROP), AMP_CODE(ttl_expired)),
    ROW(WAITING, SUPERSEDE, FAILED, D(DROP), AMP_CODE(superseded)),

    ROW(OFFERED, PUT, OFFERED, 0, NULL),
    ROW(OFFERED, OFFER, OFFERED, D(REDELIVER), NULL),
    ROW(OFFERED, READ, READ, D(DROP), NULL),
    ROW(OFFERED, EXPIRE, FAILED, D(DROP), AMP_CODE(ttl_expired)),
    /* The process that handed it over died, and another agent took another attempt. */
    ROW(OFFERED, SUPERSEDE, FAILED, D(DROP), AMP_CODE(superseded)),
    ROW(OFFERED, GIVE_UP, FAILED, D(DROP), NULL),

    ROW(READ, PUT, READ, 0, NULL),
    ROW(READ, READ, READ, D(DROP), NULL),
    ROW(READ, RETURN, OFFERED, D(PLACE), NULL),
    ROW(READ, REQUEUE, WAITING, D(PLACE), NULL),

    ROW(FAILED, PUT, FAILED, 0, NULL),
    EXTRA(FAILED, REQUEUE, WAITING, D(PLACE), NULL),
};
/* clang-format on */

const struct amp_fsm amp_inbox_fsm = {
    .name = "inbox",
    .source = "SW4RM §11, §13; Runtime Protocol §3, §5",
    .doc = "the delivery of one message to one recipient's inbox",
    .states = states,
    .events = events,
    .effects = effects,
    .n_states = AMP_INBOX_STATE_COUNT,
    .n_events = AMP_INBOX_EV_COUNT,
    .n_effects = AMP_INBOX_DO_COUNT,
    .initial = AMP_INBOX_ABSENT,
    .terminal = 1u << AMP_INBOX_FAILED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
