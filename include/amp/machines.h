/*
 * The state machines of this library, as tables to step, print and draw (amp/fsm/fsm.h). A table
 * has the names of its states, events, facts and effects. Their numbers may change between
 * versions, so look them up by name:
 *
 *     const struct amp_fsm *m = amp_machine_find(AMP_SPAN("escalation"));
 *     struct amp_fsm_result r;
 *     amp_fsm_step(m, amp_fsm_state(m, AMP_SPAN("OPEN")), amp_fsm_event(m, AMP_SPAN("decide")), 0,
 *                  &r, &err);
 *     puts(m->states[r.to].name);
 */
#ifndef AMP_MACHINES_H
#define AMP_MACHINES_H

#include <amp/base/api.h>
#include <amp/fsm/fsm.h>

AMP_API_BEGIN

#define AMP_MACHINE_LIST(X)                                                                        \
    X(agent)                                                                                       \
    X(aof_task)                                                                                    \
    X(binding)                                                                                     \
    X(breaker)                                                                                     \
    X(conflict)                                                                                    \
    X(cursor)                                                                                      \
    X(delivery)                                                                                    \
    X(escalation)                                                                                  \
    X(handoff)                                                                                     \
    X(inbox)                                                                                       \
    X(landing)                                                                                     \
    X(pause)                                                                                       \
    X(qa)                                                                                          \
    X(queue)                                                                                       \
    X(reach)                                                                                       \
    X(session)                                                                                     \
    X(session_task)                                                                                \
    X(task)                                                                                        \
    X(transfer)

#define X(name) extern const struct amp_fsm amp_##name##_fsm;
AMP_MACHINE_LIST(X)
#undef X

/* All machines, sorted by name, followed by NULL. */
extern const struct amp_fsm *const amp_machines[];

/* The machine of this name, or NULL. */
const struct amp_fsm *amp_machine_find(struct amp_span name);

AMP_API_END

#endif
