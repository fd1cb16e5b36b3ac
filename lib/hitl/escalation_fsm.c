/* An escalation: from its arrival to a person's decision. An unanswered question is open again. */
#include "hitl/escalation.h"

static const struct amp_fsm_name states[] = {AMP_ESCALATION_STATES(AMP_FSM_NAMES)};
static const struct amp_fsm_name events[] = {AMP_ESCALATION_EVENTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name facts[] = {AMP_ESCALATION_FACTS(AMP_FSM_NAMES)};
static const struct amp_fsm_name effects[] = {AMP_ESCALATION_EFFECTS(AMP_FSM_NAMES)};

#define S(x) AMP_ESC_##x
#define E(x) AMP_ESC_EV_##x
#define D(x) AMP_ESC_DO_##x

static const struct amp_fsm_row rows[] = {
    {.from = S(NEW),
     .event = E(ARRIVE),
     .to = S(ENDED),
     .if_all = AMP_ESC_IF_ENDED,
     .effects = D(EMIT),
     .extra = true},
    {.from = S(NEW),
     .event = E(ARRIVE),
     .to = S(OPEN),
     .if_all = AMP_ESC_IF_CRITICAL,
     .effects = D(SUSPEND)},
    {.from = S(NEW),
     .event = E(ARRIVE),
     .to = S(OPEN),
     .if_all = AMP_ESC_IF_WARNING,
     .effects = D(SUSPEND_PARTY)},
    {.from = S(NEW),
     .event = E(ARRIVE),
     .to = S(NOTED),
     .if_all = AMP_ESC_IF_INFO,
     .effects = D(SHOW)},
    {.from = S(NEW), .event = E(ARRIVE), .to = S(OPEN)},
    {.from = S(OPEN), .event = E(ASK), .to = S(ASKED), .effects = D(ASK)},
    {.from = S(OPEN), .event = E(DECIDE), .to = S(DECIDED), .effects = D(EMIT)},
    {.from = S(ASKED), .event = E(ASK), .to = S(ASKED), .effects = D(ASK)},
    {.from = S(ASKED), .event = E(DECIDE), .to = S(DECIDED), .effects = D(EMIT)},
    {.from = S(ASKED), .event = E(PASS), .to = S(OPEN)},
    {.from = S(OPEN), .event = E(PASS), .to = S(OPEN)},
    {.from = S(OPEN), .event = E(END), .to = S(ENDED), .effects = D(EMIT), .extra = true},
    {.from = S(ASKED), .event = E(END), .to = S(ENDED), .effects = D(EMIT), .extra = true},
    /* A refused decision has no effect. */
    {.from = S(DECIDED), .event = E(REFUSE), .to = S(OPEN), .extra = true},
};

const struct amp_fsm amp_escalation_fsm = {
    .name = "escalation",
    .source = "AMP/1.0 escalation, SW4RM §15",
    .doc = "an escalation and its decision",
    .states = states,
    .events = events,
    .facts = facts,
    .effects = effects,
    .n_states = AMP_ESC_STATE_COUNT,
    .n_events = AMP_ESC_EVENT_COUNT,
    .n_facts = AMP_ESC_FACT_COUNT,
    .n_effects = AMP_ESC_EFFECT_COUNT,
    .initial = AMP_ESC_NEW,
    .terminal = 1u << AMP_ESC_DECIDED | 1u << AMP_ESC_NOTED | 1u << AMP_ESC_ENDED,
    .rows = rows,
    .n_rows = sizeof rows / sizeof rows[0],
};
