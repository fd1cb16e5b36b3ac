/*
 * The task machine and the QA loop, cell by cell: first what every pair of state and event leads to
 * when no fact holds ("-": illegal), then the cells that facts decide.
 */
#include <string.h>

#include "work/task/machines.h"

#include "../tap.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

/* Columns in the order of the events. */
static const char *const qa_plain[AMP_QA_STATE_COUNT][AMP_QA_EVENT_COUNT] = {
    [AMP_QA_PENDING] = {"working", "pending", "pending", "pending", "pending", "pending", "pending",
                        "pending", "-", "held", "pending", "working", "working", "working",
                        "abandoned"},
    [AMP_QA_WORKING] = {"-", "in_review", "held", "held", "held", "working", "working", "working",
                        "-", "held", "working", "rework", "rework", "rework", "abandoned"},
    [AMP_QA_IN_REVIEW] = {"-", "in_review", "in_review", "in_review", "held", "rework", "approved",
                          "rework", "-", "held", "in_review", "in_review", "rework", "rework",
                          "abandoned"},
    [AMP_QA_REWORK] = {"-", "in_review", "held", "held", "held", "rework", "rework", "rework", "-",
                       "held", "rework", "rework", "rework", "rework", "abandoned"},
    [AMP_QA_HELD] = {"-", "held", "held", "held", "held", "held", "held", "held", "-", "held",
                     "held", "rework", "rework", "rework", "abandoned"},
    [AMP_QA_APPROVED] = {"-", "approved", "approved", "approved", "-", "approved", "approved",
                         "approved", "rework", "-", "-", "-", "-", "-", "-"},
    [AMP_QA_ABANDONED] = {"-", "abandoned", "abandoned", "abandoned", "-", "abandoned", "abandoned",
                          "abandoned", "-", "-", "-", "-", "-", "-", "-"},
};

static const char *const task_plain[AMP_TASK_STATE_COUNT][AMP_TASK_EVENT_COUNT] = {
    /* open lack dispatch review rework hold lock suspend lift finish fail terminate */
    [AMP_TASK_NEW] = {"dispatched", "incomplete", "-", "-", "-", "-", "-", "suspended", "-", "-",
                      "-", "terminated"},
    [AMP_TASK_INCOMPLETE] = {"dispatched", "incomplete", "-", "-", "-", "-", "-", "suspended", "-",
                             "-", "-", "terminated"},
    [AMP_TASK_DISPATCHED] = {"dispatched", "incomplete", "dispatched", "in_review", "rework",
                             "waiting", "-", "suspended", "-", "done", "failed", "terminated"},
    [AMP_TASK_IN_REVIEW] = {"dispatched", "-", "dispatched", "in_review", "rework", "waiting",
                            "locked", "suspended", "-", "done", "failed", "terminated"},
    [AMP_TASK_REWORK] = {"dispatched", "incomplete", "dispatched", "in_review", "rework", "waiting",
                         "-", "suspended", "-", "done", "failed", "terminated"},
    [AMP_TASK_WAITING] = {"dispatched", "incomplete", "dispatched", "in_review", "rework",
                          "waiting", "-", "suspended", "-", "done", "failed", "terminated"},
    [AMP_TASK_LOCKED] = {"dispatched", "-", "dispatched", "in_review", "rework", "locked", "-",
                         "locked", "waiting", "done", "-", "terminated"},
    [AMP_TASK_SUSPENDED] = {"dispatched", "-", "dispatched", "in_review", "rework", "suspended",
                            "-", "suspended", "waiting", "done", "-", "terminated"},
    [AMP_TASK_DONE] = {"-", "-", "-", "-", "rework", "waiting", "-", "-", "-", "-", "-", "-"},
    [AMP_TASK_FAILED] = {"-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"},
    [AMP_TASK_TERMINATED] = {"-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-", "-"},
};

static void plain(const struct amp_fsm *m, const char *const *want)
{
    for (uint8_t s = 0; s < m->n_states; s++)
        for (uint8_t e = 0; e < m->n_events; e++) {
            struct amp_fsm_result r;
            struct amp_error err = {0};
            const char *got = "-", *w = want[s * m->n_events + e];
            if (amp_fsm_step(m, s, e, 0, &r, &err) == 0)
                got = m->states[r.to].name;
            TAP_OK(strcmp(got, w) == 0, "%s: %s + %s -> %s (%s)", m->name, m->states[s].name,
                   m->events[e].name, w, got);
        }
}

#define S(x) AMP_QA_##x
#define E(x) AMP_QA_EV_##x
#define F(x) AMP_QA_IF_##x
#define D(x) AMP_QA_DO_##x

static const struct {
    const char *what;
    uint8_t from, event;
    uint32_t facts;
    uint8_t to;
    uint32_t effects;
    const char *code;
} decided[] = {
    {"a first dispatch", S(PENDING), E(DISPATCH), 0, S(WORKING), D(DISPATCH), NULL},
    {"none while suspended", S(PENDING), E(DISPATCH), F(SUSPENDED), S(PENDING), 0, "suspended"},
    {"a result goes to review", S(WORKING), E(COMPLETE), 0, S(IN_REVIEW), D(KEEP) | D(REVIEW),
     NULL},
    {"a late result is refused", S(WORKING), E(COMPLETE), F(STALE), S(WORKING), D(NACK),
     "unknown_ref"},
    {"a result during a suspension is kept", S(WORKING), E(COMPLETE), F(SUSPENDED), S(HELD),
     D(KEEP), "suspended"},
    {"the rejected commit again", S(REWORK), E(COMPLETE), F(SAME_COMMIT), S(HELD),
     D(KEEP) | D(ESC_CONFLICT), "conflict"},
    {"red: no review but the work again", S(WORKING), E(COMPLETE), F(CI_RED), S(REWORK),
     D(KEEP) | D(COUNT_CI) | D(DISPATCH), "ci_failed"},
    {"red again", S(REWORK), E(COMPLETE), F(CI_RED) | F(CI_AGAIN), S(HELD), D(KEEP) | D(ESC_CI),
     "ci_failed"},
    {"partial: again", S(WORKING), E(PARTIAL), F(RETRY), S(REWORK), D(KEEP) | D(DISPATCH), NULL},
    {"partial: given up", S(WORKING), E(PARTIAL), F(FAILS), S(ABANDONED), D(KEEP) | D(FAIL), NULL},
    {"failed: the admin", S(REWORK), E(FAILED), 0, S(HELD), D(KEEP) | D(ESC_BLOCKED), "blocked"},
    {"approved, and others are left", S(IN_REVIEW), E(APPROVED), 0, S(APPROVED),
     D(KEEP_VERDICT) | D(RESET) | D(NEXT), NULL},
    {"approved, the last", S(IN_REVIEW), E(APPROVED), F(LAST), S(APPROVED),
     D(KEEP_VERDICT) | D(RESET) | D(FINISH), NULL},
    {"approved, the admin's turn", S(IN_REVIEW), E(APPROVED), F(LAST) | F(NEEDS_ADMIN), S(HELD),
     D(KEEP_VERDICT) | D(ESC_APPROVAL), "approval_required"},
    {"the admin approves the last only", S(IN_REVIEW), E(APPROVED), F(NEEDS_ADMIN), S(APPROVED),
     D(KEEP_VERDICT) | D(RESET) | D(NEXT), NULL},
    {"approved without confidence", S(IN_REVIEW), E(APPROVED), F(LOW_CONFIDENCE) | F(LAST), S(HELD),
     D(KEEP_VERDICT) | D(ESC_CONFIDENCE), "low_confidence"},
    {"approved in spite of its findings", S(IN_REVIEW), E(APPROVED),
     F(INCONSISTENT) | F(LOW_CONFIDENCE) | F(LAST), S(HELD), D(KEEP_VERDICT) | D(ESC_CONFLICT),
     "conflict"},
    {"rejected", S(IN_REVIEW), E(REJECTED), 0, S(REWORK), D(KEEP_VERDICT) | D(COUNT) | D(DISPATCH),
     NULL},
    {"rejected without confidence", S(IN_REVIEW), E(REJECTED), F(LOW_CONFIDENCE), S(HELD),
     D(KEEP_VERDICT) | D(COUNT) | D(ESC_CONFIDENCE), "low_confidence"},
    {"rejected once too often", S(IN_REVIEW), E(REJECTED), F(LOCKS) | F(LOW_CONFIDENCE), S(HELD),
     D(KEEP_VERDICT) | D(COUNT) | D(SUSPEND) | D(ESC_LOCK), "hallucination_lock"},
    {"a verdict during a suspension is kept", S(IN_REVIEW), E(APPROVED), F(SUSPENDED) | F(LAST),
     S(HELD), D(KEEP_VERDICT), "suspended"},
    {"a verdict on something else", S(IN_REVIEW), E(APPROVED), F(STALE), S(IN_REVIEW), D(NACK),
     "unknown_ref"},
    {"a second verdict that agrees", S(REWORK), E(REJECTED), F(ANSWERED), S(REWORK), 0, NULL},
    {"a second verdict that does not", S(REWORK), E(APPROVED), F(CONTRADICTS), S(HELD),
     D(ESC_CONFLICT), "conflict"},
    {"a late contradiction", S(APPROVED), E(REJECTED), F(CONTRADICTS), S(APPROVED), D(ESC_CONFLICT),
     "conflict"},
    {"does not land", S(APPROVED), E(UNLANDED), F(LAST), S(REWORK), D(COUNT_UNLANDED) | D(DISPATCH),
     NULL},
    {"does not land again", S(APPROVED), E(UNLANDED), F(UNLANDED_AGAIN), S(HELD), D(ESC_UNLANDED),
     "conflict"},
    {"may it be merged?", S(APPROVED), E(UNLANDED), F(MERGE_ASKS) | F(UNLANDED_AGAIN), S(HELD),
     D(ESC_MERGE), "approval_required"},
    {"red in review", S(IN_REVIEW), E(CI_RED), 0, S(REWORK), D(COUNT_CI) | D(DISPATCH),
     "ci_failed"},
    {"red in review again", S(IN_REVIEW), E(CI_RED), F(CI_AGAIN), S(HELD), D(ESC_CI), "ci_failed"},
    {"resume a held approval", S(HELD), E(RESUME), F(HELD_APPROVAL) | F(LAST), S(APPROVED),
     D(RESET) | D(FINISH), NULL},
    {"resume a held review", S(HELD), E(RESUME), F(HELD_REVIEW), S(IN_REVIEW), D(RESET) | D(REVIEW),
     NULL},
    {"resume held work", S(HELD), E(RESUME), 0, S(REWORK), D(RESET) | D(DISPATCH), NULL},
    {"resume while another escalation suspends", S(HELD), E(RESUME), F(SUSPENDED), S(HELD),
     D(RESET), "suspended"},
    {"redispatch", S(HELD), E(REDISPATCH), F(HELD_APPROVAL), S(REWORK),
     D(RESET) | D(AMEND) | D(DISPATCH), NULL},
    {"rollback", S(HELD), E(ROLLBACK), 0, S(REWORK), D(RESET) | D(BACK) | D(DISPATCH), NULL},
    {"withdrawn at work", S(HELD), E(WITHDRAW), F(ASKED_WORKING), S(WORKING), 0, NULL},
    {"withdrawn in review", S(HELD), E(WITHDRAW), F(ASKED_REVIEW), S(IN_REVIEW), 0, NULL},
    {"withdrawn in rework", S(HELD), E(WITHDRAW), F(ASKED_REWORK), S(REWORK), 0, NULL},
    {"withdrawn, but another is open", S(HELD), E(WITHDRAW), F(OTHERS) | F(ASKED_WORKING), S(HELD),
     0, NULL},
    {"withdrawn after a result", S(HELD), E(WITHDRAW), 0, S(HELD), D(NACK), "late"},
    {"terminate while suspended", S(HELD), E(TERMINATE), F(SUSPENDED), S(ABANDONED), D(END), NULL},
};

static void facts(void)
{
    for (size_t i = 0; i < N(decided); i++) {
        struct amp_fsm_result r = {0};
        int rc = amp_fsm_step(&amp_qa_fsm, decided[i].from, decided[i].event, decided[i].facts, &r,
                              NULL);
        TAP_OK(rc == 0 && r.to == decided[i].to && r.effects == decided[i].effects, "%s",
               decided[i].what);
        TAP_STR(r.code ? r.code : "", decided[i].code ? decided[i].code : "", "its code");
    }
}

/* Whatever a subtask does, its task can follow from every state in which that can happen. */
static void follows(void)
{
    static const uint8_t alive[] = {AMP_TASK_DISPATCHED, AMP_TASK_IN_REVIEW, AMP_TASK_REWORK,
                                    AMP_TASK_WAITING};
    for (unsigned i = 0; i < amp_qa_fsm.n_rows; i++) {
        const struct amp_fsm_row *row = &amp_qa_fsm.rows[i];
        struct amp_fsm_result step = {.to = row->to, .effects = row->effects, .row = row}, r;
        int event = amp_task_event_of(&step), missing = 0;
        if (event < 0 || event == AMP_TASK_EV_LOCK)
            continue;
        for (size_t s = 0; s < N(alive); s++)
            missing += amp_fsm_step(&amp_task_fsm, alive[s], (uint8_t)event, 0, &r, NULL) < 0;
        TAP_INT(missing, 0, amp_task_fsm.events[event].name);
    }
}

int main(void)
{
    plain(&amp_qa_fsm, &qa_plain[0][0]);
    plain(&amp_task_fsm, &task_plain[0][0]);
    facts();
    follows();
    return tap_done();
}
