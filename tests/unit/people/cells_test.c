/*
 * Every cell of the machines, against tables written by hand from what the protocols say: the task
 * machine and the QA loop have their own in qa_test.c.
 *
 * A state's moves are words: EVENT>STATE, with '*' before it where the source's table lacks the
 * edge, [FACT,FACT] behind the event for what must hold, !CODE behind the state, '~' at the end for
 * a late acknowledgement, which is recorded and changes nothing. Of two for the same cell the first
 * counts that holds; what is not said is illegal.
 */
#include <stdlib.h>

#include <amp/machines.h>

#include "../tap.h"

struct cells {
    const char *state, *moves;
};

/* SW4RM appendix C; §11.1 for what is late; refusals before admission, and what one step of an
 * acknowledgement says of the ones before it, are practice. */
#define LATE(s)                                                                                    \
    "ack_received>" s "~ ack_read>" s "~ ack_fulfilled>" s "~ nack_rejected>" s "~ nack_failed>" s \
    "~ "
static const struct cells delivery[] = {
    {"SENT", "ack_received>RECEIVED timeout>TIMED_OUT!ack_timeout *ack_read>READ "
             "*ack_fulfilled>FULFILLED *nack_rejected>REJECTED *nack_failed>FAILED "
             "*nack_timed_out>TIMED_OUT!ack_timeout *expire>FAILED!ttl_expired *silent>SENT "
             "*record>SENT *hold>SENT"},
    {"RECEIVED",
     "ack_read>READ nack_rejected>REJECTED nack_failed>FAILED *ack_received>RECEIVED "
     "*ack_fulfilled>FULFILLED *expire>FAILED!ttl_expired *timeout>TIMED_OUT!ack_timeout "
     "*nack_timed_out>TIMED_OUT!ack_timeout *hold>RECEIVED"},
    {"READ", "ack_fulfilled>FULFILLED nack_failed>FAILED *ack_received>READ *ack_read>READ "
             "*nack_rejected>REJECTED *timeout>TIMED_OUT!ack_timeout *alive>READ *silent>READ "
             "*nack_timed_out>TIMED_OUT!ack_timeout *hold>READ"},
    {"FULFILLED", LATE("FULFILLED") "*settle>FULFILLED"},
    {"REJECTED",
     LATE("REJECTED") "*requeue>SENT *retry>RETRYING *give_up>REJECTED *settle>REJECTED"},
    {"FAILED", LATE("FAILED") "*requeue>SENT *retry>RETRYING *give_up>FAILED *settle>FAILED"},
    {"TIMED_OUT",
     LATE("TIMED_OUT") "retry>RETRYING *requeue>SENT *give_up>TIMED_OUT *settle>TIMED_OUT "
                       "*alive>TIMED_OUT *silent>TIMED_OUT"},
    {"RETRYING",
     "resend>SENT ack_received[retry_delivered]>RETRYING~ ack_read[retry_delivered]>RETRYING~ "
     "ack_fulfilled[retry_delivered]>RETRYING~ ack_received>RECEIVED~ ack_read>READ~ "
     "ack_fulfilled>FULFILLED~ nack_rejected>RETRYING~ nack_failed>RETRYING~ "
     "*depart>RETRYING *settle>RETRYING *requeue>SENT "
     "*expire>FAILED!ttl_expired *alive>RETRYING *silent>RETRYING"},
};

/* Runtime Protocol §6: on after a durable enqueue only; a gap blocks until its timeout, then an
 * incident and the configured skip or tombstone; a lease and an epoch. */
#define HELD(s)                                                                                    \
    "renew>" s " *let_go>" s " expire>EXPIRED!cursor_expired *move>ACTIVE *retire>RETIRED "
static const struct cells cursor[] = {
    {"ACTIVE", HELD("ACTIVE") "enqueue[missing]>GAP enqueue>ACTIVE hold>GAP take_over[missing]>GAP "
                              "take_over>ACTIVE"},
    {"GAP",
     HELD("GAP") "enqueue[missing]>GAP enqueue>ACTIVE hold>GAP gap_timeout>OVERDUE!gap_timeout "
                 "take_over>GAP"},
    {"OVERDUE",
     HELD("OVERDUE") "enqueue[missing,same_gap]>OVERDUE enqueue[missing]>GAP enqueue>ACTIVE "
                     "hold>OVERDUE skip>ACTIVE tombstone>ACTIVE take_over>OVERDUE"},
    {"EXPIRED",
     "take_over[missing,told]>OVERDUE take_over[missing]>GAP take_over>ACTIVE *move>ACTIVE "
     "*retire>RETIRED"},
    {"RETIRED", "*move>ACTIVE"},
};

/* SW4RM §11: read once, whoever delivers again; SW4RM §11, ttl. */
static const struct cells inbox[] = {
    {"ABSENT", "put>WAITING offer>OFFERED expire>FAILED!ttl_expired supersede>FAILED!superseded"},
    {"WAITING", "put>WAITING offer>OFFERED expire>FAILED!ttl_expired supersede>FAILED!superseded"},
    {"OFFERED", "put>OFFERED offer>OFFERED read>READ expire>FAILED!ttl_expired "
                "supersede>FAILED!superseded give_up>FAILED"},
    {"READ", "put>READ read>READ return>OFFERED requeue>WAITING"},
    {"FAILED", "put>FAILED *requeue>WAITING"},
};

/* SW4RM §14: debounced, and no agent leaves but explicitly. */
static const struct cells reach[] = {
    {"ABSENT", "register>REACHABLE"},
    {"REACHABLE",
     "ask>REACHABLE register>REACHABLE beat>REACHABLE miss[spent]>UNREACHABLE!agent_unavailable "
     "miss>LATE deregister>LEFT"},
    {"LATE", "ask>LATE register>REACHABLE beat>REACHABLE miss[spent]>UNREACHABLE!agent_unavailable "
             "miss>LATE "
             "deregister>LEFT"},
    {"UNREACHABLE", "ask>UNREACHABLE register>REACHABLE beat>REACHABLE deregister>LEFT"},
    {"LEFT", "register>REACHABLE"},
};

/* SW4RM §8 and appendix C. */
#define LIFE "*begin>INITIALIZING "
#define LOST "*lose>FAILED!worker_lost"
static const struct cells agent[] = {
    {"INITIALIZING", LIFE "ready>RUNNABLE timeout>FAILED!init_timeout *shutdown>SHUTTING_DOWN"},
    {"RUNNABLE", LIFE "*assign[suspended]>RUNNABLE!suspended assign>SCHEDULED "
                      "*shutdown>SHUTTING_DOWN"},
    {"SCHEDULED", LIFE "*start[suspended]>SCHEDULED!suspended start>RUNNING "
                       "*shutdown>SHUTTING_DOWN *fail>FAILED " LOST},
    {"RUNNING", LIFE "wait>WAITING lack>WAITING_RESOURCES suspend>SUSPENDED complete>COMPLETED "
                     "fail>FAILED shutdown>SHUTTING_DOWN " LOST},
    {"WAITING", LIFE "*start[suspended]>WAITING!suspended start>RUNNING "
                     "*assign[suspended]>WAITING!suspended *assign>SCHEDULED "
                     "*shutdown>SHUTTING_DOWN " LOST},
    {"WAITING_RESOURCES", LIFE "*start[suspended]>WAITING_RESOURCES!suspended start>RUNNING "
                               "*assign[suspended]>WAITING_RESOURCES!suspended *assign>SCHEDULED "
                               "timeout>FAILED!resource_timeout *shutdown>SHUTTING_DOWN"},
    {"SUSPENDED", LIFE "*resume[suspended]>SUSPENDED!suspended resume>RESUMED "
                       "timeout>FAILED!suspend_timeout *shutdown>SHUTTING_DOWN"},
    {"RESUMED", LIFE "*start[suspended]>RESUMED!suspended start>RUNNING " LOST},
    {"COMPLETED", LIFE "ready>RUNNABLE " LOST},
    {"FAILED", LIFE "recover>RECOVERING"},
    {"SHUTTING_DOWN", LIFE "timeout>FAILED!agent_shutdown_timeout *exit>SHUTTING_DOWN"},
    {"RECOVERING", LIFE "ready>RUNNABLE timeout>FAILED!recovery_timeout "
                        "shutdown>SHUTTING_DOWN!recovery_abort"},
};

/* SW4RM §16.2, §16.3. */
static const struct cells binding[] = {
    {"UNBOUND", "BIND>BOUND_HOME BIND_ERROR>BIND_FAILED"},
    {"BOUND_HOME", "SWITCH_REQUEST>SWITCH_PENDING UNBIND>UNBOUND *BIND[same_worktree]>BOUND_HOME"},
    {"SWITCH_PENDING", "SWITCH_APPROVE>BOUND_NON_HOME SWITCH_REJECT>BOUND_HOME *UNBIND>UNBOUND"},
    {"BOUND_NON_HOME", "TTL_EXPIRED>BOUND_HOME SWITCH_REVOKE>BOUND_HOME UNBIND>UNBOUND"},
    {"BIND_FAILED", "RETRY_RESET>UNBOUND UNBIND>UNBOUND BIND>BOUND_HOME *BIND_ERROR>BIND_FAILED "
                    "*RECOVERY_TIMEOUT>BIND_FAILED"},
};

/* AMP: one answer to what was taken; failures of the machinery are no answer until they are too
 * many. */
/* AMP: critical and warning wait for the admin, info is shown; no answer is no decision. */
static const struct cells escalation[] = {
    {"NEW", "*arrive[ended]>ENDED arrive[critical]>OPEN arrive[warning]>OPEN arrive[info]>NOTED "
            "arrive>OPEN"},
    {"OPEN", "ask>ASKED decide>DECIDED vote>OPEN defer>DEFERRED expire[extends]>OPEN "
             "expire[fallback]>DECIDED expire>OPEN pass>OPEN *end>ENDED"},
    {"ASKED", "ask>ASKED decide>DECIDED vote>OPEN defer>DEFERRED expire[extends]>ASKED "
              "expire[fallback]>DECIDED expire>ASKED pass>OPEN *end>ENDED"},
    {"DEFERRED", "decide>DECIDED vote>OPEN defer>DEFERRED wake>OPEN expire[extends]>DEFERRED "
                 "expire[fallback]>DECIDED expire>DEFERRED *end>ENDED"},
    {"DECIDED", "*refuse>OPEN"},
    {"NOTED", ""},
    {"ENDED", ""},
};

/* Suspensions by people: the last one that is lifted makes it quiet. */
static const struct cells handoff[] = {
    {"PENDING", "*request>PENDING accept>ACCEPTED *reject[next]>PENDING reject>REJECTED "
                "*expire[next]>PENDING expire>EXPIRED"},
    {"ACCEPTED", "complete>COMPLETED"},
    {"REJECTED", ""},
    {"COMPLETED", ""},
    {"EXPIRED", ""},
};

static const struct cells pause[] = {
    {"QUIET", "suspend>PAUSED"},
    {"PAUSED", "suspend>PAUSED resume[last]>QUIET resume>PAUSED"},
};

/* Landings: a move that did not happen leaves what was before. */
static const struct cells landing[] = {
    {"none", "begin>moving"},
    {"moving", "moved>landed stay[before]>landed stay>none"},
    {"landed", "begin>moving"},
};

/* SW4RM §7.1, §7.2, §9: who has a job gives it back, loses it, parks it or ends it. What ends the
 * attempt of a cancelled job ends the job, unless its work was done. Attempts change nothing in
 * that; a worker's own job needs no claim. */
#define WORKS                                                                                      \
    "release>QUEUED lose>QUEUED park>PARKED fail>FAILED "                                          \
    "preempt>PREEMPTING cancel>PREEMPTING "
#define TRIES(s) "read>" s " start>" s " say>" s " break>" s " next>" s " halt>" s " "
#define OWN      "start[own]>RUNNING fail[own]>FAILED "
static const struct cells queue[] = {
    {"QUEUED", OWN "submit>QUEUED claim>CLAIMED park>PARKED rank>QUEUED "
                   "expire>FAILED!deadline_passed cancel>CANCELLED"},
    {"CLAIMED", WORKS "read>CLAIMED start>RUNNING done>DONE"},
    {"RUNNING", WORKS TRIES("RUNNING") "done>DONE"},
    {"PREEMPTING",
     "yield[cancelled]>CANCELLED force[cancelled]>CANCELLED release[cancelled]>CANCELLED "
     "lose[cancelled]>CANCELLED park[cancelled]>CANCELLED fail[cancelled]>CANCELLED " WORKS TRIES(
         "PREEMPTING") "done>DONE yield>QUEUED force>FAILED!forced_preemption"},
    {"PARKED", OWN "wake>QUEUED rank>PARKED expire>FAILED!deadline_passed cancel>CANCELLED"},
    {"DONE", "*submit[again]>QUEUED"},
    {"FAILED", "*submit>QUEUED"},
    {"CANCELLED", "*submit>QUEUED"},
};

/* AOF/1, Status Mapping: a wish for the present status changes nothing. */
static const struct cells aof_task[] = {
    {"backlog", "backlog>backlog ready>ready blocked>blocked *cancelled>cancelled"},
    {"ready", "ready>ready in-progress>in-progress dispatch>in-progress blocked>blocked "
              "*cancelled>cancelled *deadletter>deadletter"},
    {"in-progress", "in-progress>in-progress review>review ready>ready blocked>blocked "
                    "complete[stops_at_review]>review complete>review *cancelled>cancelled "
                    "*deadletter>deadletter"},
    {"blocked", "blocked>blocked ready>ready *cancelled>cancelled *deadletter>deadletter"},
    {"review", "review>review done>done in-progress>in-progress blocked>blocked "
               "complete[stops_at_review]>review complete>done *cancelled>cancelled"},
    {"done", "done>done complete>done"},
    {"cancelled", "*cancelled>cancelled"},
    {"deadletter", "*deadletter>deadletter *ready>ready"},
};

/* SW4RM §9.2, §9.3: a command judges a pair of jobs whose scopes overlap, a person decides; a
 * person may permit it at any time. */
#define ANY_TIME " allow>PARALLEL end>ENDED"
static const struct cells conflict[] = {
    {"NEW", "check>CHECKING ask>ASKED allow>PARALLEL"},
    {"CHECKING",
     "confident[holds]>PARALLEL unsure[holds]>ASKED unavailable[holds]>UNJUDGED" ANY_TIME},
    {"UNJUDGED", "check>CHECKING ask>ASKED" ANY_TIME},
    {"ASKED", "order>SERIAL" ANY_TIME},
    {"PARALLEL", "expire>UNJUDGED" ANY_TIME},
    {"SERIAL", ANY_TIME},
    {"ENDED", ""},
};

/* SW4RM §9.3: an engine that is not available is not asked for a time. */
static const struct cells breaker[] = {
    {"CLOSED", "try>CLOSED success>CLOSED failure[spent]>OPEN failure>CLOSED"},
    {"OPEN", "try[due]>TRIAL try>OPEN success>CLOSED failure>OPEN"},
    {"TRIAL", "try>TRIAL success>CLOSED failure>OPEN"},
};

struct move {
    bool extra, late;
    char event[40], to[40], code[40];
    uint32_t facts;
};

static int fact(const struct amp_fsm *m, const char *name, size_t n)
{
    for (int i = 0; i < m->n_facts; i++)
        if (strlen(m->facts[i].name) == n && memcmp(m->facts[i].name, name, n) == 0)
            return i;
    printf("Bail out! %s has no fact %.*s\n", m->name, (int)n, name);
    exit(1);
}

/* Copies up to one of the marks. */
static const char *word(const char *at, const char *marks, char out[40])
{
    size_t n = strcspn(at, marks);
    snprintf(out, 40, "%.*s", (int)n, at);
    return at + n;
}

/* The next of a state's words; NULL: there is none. */
static const char *next_move(const struct amp_fsm *m, const char *at, struct move *mv)
{
    at += strspn(at, " ");
    if (!*at)
        return NULL;
    *mv = (struct move){.extra = *at == '*'};
    at = word(at + mv->extra, "[>", mv->event);
    while (*at == '[' || *at == ',') {
        char name[40];
        at = word(at + 1, ",]", name);
        mv->facts |= 1u << fact(m, name, strlen(name));
    }
    at = word(at + strspn(at, "]>"), "!~ ", mv->to);
    if (*at == '!')
        at = word(at + 1, "~ ", mv->code);
    mv->late = *at == '~';
    return at + mv->late;
}

static bool wanted(const struct amp_fsm *m, const char *moves, const char *event, uint32_t facts,
                   struct move *mv)
{
    while ((moves = next_move(m, moves, mv)))
        if (strcmp(mv->event, event) == 0 && (facts & mv->facts) == mv->facts)
            return true;
    return false;
}

/* What the machine says of late acknowledgements, by the effect's name. */
static bool is_late(const struct amp_fsm *m, uint32_t effects)
{
    for (int i = 0; i < m->n_effects; i++)
        if (strcmp(m->effects[i].name, "log_late") == 0)
            return effects & 1u << i;
    return false;
}

static bool cell(const struct amp_fsm *m, uint8_t s, uint8_t e, uint32_t facts, const char *moves)
{
    struct move mv;
    struct amp_fsm_result out;
    struct amp_error err = {0};
    bool legal = wanted(m, moves, m->events[e].name, facts, &mv);
    int rc = amp_fsm_step(m, s, e, facts, &out, &err);
    bool ok = legal ? rc == 0 && strcmp(m->states[out.to].name, mv.to) == 0 &&
                          strcmp(out.code ? out.code : "", mv.code) == 0 &&
                          out.row->extra == mv.extra && is_late(m, out.effects) == mv.late
                    : rc < 0 && strcmp(err.code, "illegal_transition") == 0;
    if (!ok)
        printf("# %s: %s + %s (facts %u): %s%s%s, not %s %s\n", m->name, m->states[s].name,
               m->events[e].name, (unsigned)facts, rc == 0 ? m->states[out.to].name : "illegal",
               rc == 0 && out.code ? "!" : "", rc == 0 && out.code ? out.code : "",
               legal ? mv.to : "illegal", legal ? mv.code : "");
    return ok;
}

static void machine(const struct amp_fsm *m, const struct cells *cells, size_t n)
{
    unsigned wrong = 0, all = 0;
    TAP_OK(n == m->n_states, "%s: each state has its moves", m->name);
    for (size_t i = 0; i < n; i++) {
        int s = amp_fsm_state(m, amp_span_str(cells[i].state));
        struct move mv;
        const char *at = cells[i].moves;
        wrong += s < 0;
        while ((at = next_move(m, at, &mv)))
            wrong += amp_fsm_event(m, amp_span_str(mv.event)) < 0;
        for (uint8_t e = 0; s >= 0 && e < m->n_events; e++)
            for (uint32_t facts = 0; facts < 1u << m->n_facts; facts++, all++)
                wrong += !cell(m, (uint8_t)s, e, facts, cells[i].moves);
    }
    TAP_OK(wrong == 0, "%s: each of %u cells goes where it should", m->name, all);
}

/* SW4RM §5.4: complete and right, or failed; what comes later changes nothing. */
static const struct cells transfer[] = {
    {"RECEIVING", "piece>RECEIVING last>ASSEMBLED corrupt>FAILED!chunk_corrupt refuse>FAILED "
                  "timeout>FAILED!partial_delivery"},
    {"ASSEMBLED",
     "piece>ASSEMBLED resume>ASSEMBLED taken>COMPLETE timeout>FAILED!partial_delivery"},
    {"COMPLETE", "*piece>COMPLETE"},
    {"FAILED", "*piece>FAILED"},
};

/* AOP §10: an abort skips what waits; a TASK after the report makes another report necessary. */
static const struct cells session[] = {
    {"OPEN", "join>OPEN place>OPEN risk>OPEN abort>ABORTED report>REPORTED stay>OPEN"},
    {"ABORTED", "join>ABORTED place>ABORTED report>REPORTED stay>ABORTED"},
    {"REPORTED", "join[aborted]>ABORTED join>OPEN"},
};

/* AOP §5: the states of task_status; a later attempt begins anew. */
static const struct cells session_task[] = {
    {"PENDING", "enter>PENDING begin>IN_PROGRESS rank>PENDING fail>FAILED abort>ABORTED "
                "skip>SKIPPED"},
    {"IN_PROGRESS", "begin>IN_PROGRESS spend>IN_PROGRESS rank>IN_PROGRESS release>PENDING "
                    "complete>COMPLETED fail>FAILED abort>ABORTED"},
    {"COMPLETED", "*enter[later]>PENDING"},
    {"FAILED", "*enter[later]>PENDING"},
    {"ABORTED", "*enter[later]>PENDING"},
    {"SKIPPED", "*enter[later]>PENDING"},
};

int main(void)
{
#define MACHINE(name) machine(&amp_##name##_fsm, name, sizeof(name) / sizeof(name[0]))
    MACHINE(delivery);
    MACHINE(cursor);
    MACHINE(handoff);
    MACHINE(inbox);
    MACHINE(reach);
    MACHINE(agent);
    MACHINE(binding);
    MACHINE(escalation);
    MACHINE(landing);
    MACHINE(pause);
    MACHINE(queue);
    MACHINE(aof_task);
    MACHINE(conflict);
    MACHINE(breaker);
    MACHINE(transfer);
    MACHINE(session);
    MACHINE(session_task);
    return tap_done();
}
