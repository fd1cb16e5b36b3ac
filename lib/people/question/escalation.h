/*
 * Escalations and the decisions of people (AMP escalation, SW4RM §15). Key "escalation.<msg_id>",
 * "escalation.sw4rm/<message_id>" for SW4RM:
 * {"task","type","severity","arrived","protocol","about","asked"?,"decision"?,"operator"?,
 * "decided_at"?,"note"?,"refused"?,"refused_at"?,"ended"?}; about: people/question/record.h;
 * refused, refused_at: of a refused decision.
 */
#ifndef AMP_PEOPLE_QUESTION_ESCALATION_H
#define AMP_PEOPLE_QUESTION_ESCALATION_H

#include <amp/fsm/fsm.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "message/store/store.h"

#define AMP_ESCALATION_KIND "escalation" /* of the records in the store */

#define AMP_ESCALATION_STATES(X)                                                                   \
    X(AMP_ESC_NEW, "NEW", "not yet recorded")                                                      \
    X(AMP_ESC_OPEN, "OPEN", "waits for a person")                                                  \
    X(AMP_ESC_ASKED, "ASKED", "a person is deciding")                                              \
    X(AMP_ESC_DEFERRED, "DEFERRED", "a person put it off; it is asked again at a time")            \
    X(AMP_ESC_DECIDED, "DECIDED", "a person or the fallback decided")                              \
    X(AMP_ESC_NOTED, "NOTED", "shown; needs no decision")                                          \
    X(AMP_ESC_ENDED, "ENDED", "its subject ended, or its sender withdrew it, before a decision")

#define AMP_ESCALATION_EVENTS(X)                                                                   \
    X(AMP_ESC_EV_ARRIVE, "arrive", "the escalation came")                                          \
    X(AMP_ESC_EV_ASK, "ask", "a person sees the question")                                         \
    X(AMP_ESC_EV_DECIDE, "decide", "a person answered")                                            \
    X(AMP_ESC_EV_VOTE, "vote", "a person approved, and more approvals are needed")                 \
    X(AMP_ESC_EV_DEFER, "defer", "a person put it off until a time")                               \
    X(AMP_ESC_EV_WAKE, "wake", "that time has come")                                               \
    X(AMP_ESC_EV_EXPIRE, "expire", "its deadline passed, or no person can be reached")             \
    X(AMP_ESC_EV_PASS, "pass", "no answer: a time limit, end of file, an empty line")              \
    X(AMP_ESC_EV_END, "end", "its subject has ended, or its sender withdrew it")                   \
    X(AMP_ESC_EV_REFUSE, "refuse", "the coordinator refused the decision")

#define AMP_ESCALATION_FACTS(X)                                                                    \
    X(AMP_ESC_IF_CRITICAL, "critical", "it is about a task, and critical")                         \
    X(AMP_ESC_IF_WARNING, "warning", "it is about a task, and a warning")                          \
    X(AMP_ESC_IF_INFO, "info", "its severity is info")                                             \
    X(AMP_ESC_IF_ENDED, "ended", "its subject has ended")                                          \
    X(AMP_ESC_IF_FALLBACK, "fallback", "its fallback decides")                                     \
    X(AMP_ESC_IF_EXTENDS, "extends", "its fallback extends the deadline, not yet three times")

#define AMP_ESCALATION_EFFECTS(X)                                                                  \
    X(AMP_ESC_DO_SUSPEND, "suspend", "suspend the task and its agents")                            \
    X(AMP_ESC_DO_SUSPEND_PARTY, "suspend_party", "suspend the party that triggered it")            \
    X(AMP_ESC_DO_ASK, "ask", "record when it was asked")                                           \
    X(AMP_ESC_DO_EMIT, "emit", "send the decision, or a nack if there is none")                    \
    X(AMP_ESC_DO_SHOW, "show", "show it")                                                          \
    X(AMP_ESC_DO_COUNT, "count", "record the approval")                                            \
    X(AMP_ESC_DO_EXTEND, "extend", "set the next deadline")

AMP_FSM_ENUMS(AMP_ESCALATION);
extern const struct amp_fsm amp_escalation_fsm;

#endif
