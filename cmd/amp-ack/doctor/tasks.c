/* Checks of tasks that wait for a person, and of questions that can no longer be answered. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "doctor.h"
#include "message/delivery/ledger/ledger.h"
#include "people/question/escalation.h"
#include "people/question/record.h"
#include "work/task/record.h"
#include "work/task/task.h"

enum { ID_MAX = 200, LINES_MAX = 33 << 20 };

struct asking {
    struct amp_store *s;
    const char *dir;
};

/* Why the question can no longer be answered; NULL: it can. hitl-prompt has the same rule: the task
 * has not ended, and the text exists. */
static int why_dead(struct asking *a, struct amp_span id, struct amp_span task, const char **why,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_task_status st;
    struct amp_message_rec rec;
    amp_buf_init(&mem, LINES_MAX);
    if (amp_task_status(a->s, task, &st, err) < 0 ||
        amp_message_find(a->s, id, &mem, &rec, err) < 0)
        return -1;
    *why = st.terminal                 ? "its task has ended"
           : !rec.found || !rec.line.n ? "its text is no longer in the state directory"
                                       : NULL;
    return 0;
}

static int question_fn(void *ctx, struct amp_span key, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct asking *a = ctx;
    AMP_BUF struct amp_buf mem = {.max = LINES_MAX};
    struct amp_question_rec q;
    char name[AMP_QUESTION_KEY_MAX];
    const char *why = NULL;
    if (amp_question_rec_read(rec->json, &mem, &q, err) < 0)
        return -1;
    if (q.about.kind != AMP_ABOUT_TASK || !amp_span_copy(key, name, sizeof name))
        return 0;
    const char *id = amp_question_key_id(amp_question_protocol(&q), name);
    if (why_dead(a, amp_span_str(id), q.task, &why, err) < 0)
        return -1;
    if (why)
        doctor_say(DOCTOR_WARN,
                   "# no action is needed: hitl-prompt does not ask it; escalate again if an "
                   "answer is still needed",
                   NULL, "the question %.*s about %.*s can no longer be answered: %s",
                   AMP_CLIP(key, ID_MAX), AMP_CLIP(q.task, ID_MAX), why);
    return 0;
}

/* A decision that no coordinator has carried out. */
static int decided_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct asking *a = ctx;
    AMP_BUF struct amp_buf mem = {.max = LINES_MAX};
    AMP_TASK struct amp_task t = {0};
    struct amp_question_rec q;
    char ref[AMP_MSG_ID_MAX];
    bool found = false;
    if (amp_question_rec_read(rec->json, &mem, &q, err) < 0)
        return -1;
    if (q.about.kind != AMP_ABOUT_TASK || !amp_span_copy(id, ref, sizeof ref))
        return 0;
    if (amp_task_load(a->s, q.task, &t, &found, err) < 0)
        return -1;
    if (found && amp_task_is_open(t.state) && amp_task_waits_for(&t, ref))
        doctor_say(DOCTOR_WARN, "task-dispatch coordinate --state @ </dev/null", a->dir,
                   "%s is %s, and the question it waits for, %s, was decided, but no coordinator "
                   "has carried it out (%.*s): start the loop, or the coordinator alone",
                   t.id, amp_task_fsm.states[t.state].name, ref, AMP_CLIP(q.decision, 60));
    return 0;
}

static int task_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct asking *a = ctx;
    struct amp_task_status st;
    struct amp_store_rec question;
    const char *why = NULL;
    char state[32];
    if (!amp_span_is(rec->state, "suspended") && !amp_span_is(rec->state, "locked"))
        return 0;
    amp_span_copy(rec->state, state, sizeof(state));
    if (amp_task_status(a->s, id, &st, err) < 0)
        return -1;
    struct amp_span ref = amp_span_str(st.ref);
    if (amp_store_get(a->s, AMP_KEY(AMP_ESCALATION_KIND, ref), &question, err) < 0)
        return -1;
    if (question.found && amp_span_is(question.state, "DECIDED"))
        return 0; /* decided_fn reports it */
    /* A question that is not found is in transit, or waits in an outbox. */
    if (question.found && amp_span_is(question.state, "NOTED"))
        why = "was only recorded";
    else if (question.found && why_dead(a, ref, id, &why, err) < 0)
        return -1;
    static const char fix[] =
        "hitl-prompt --state @ </dev/null | task-dispatch coordinate --state @";
    if (why)
        doctor_say(DOCTOR_WARN, fix, a->dir, "%.*s is %s, and the question it waits for, %s, %s",
                   AMP_CLIP(id, ID_MAX), state, st.ref, why);
    else
        doctor_say(DOCTOR_WARN, fix, a->dir, "%.*s is %s: a person must decide",
                   AMP_CLIP(id, ID_MAX), state);
    return 0;
}

void doctor_tasks(struct doctor *d)
{
    struct amp_error err;
    struct asking a = {.s = d->store, .dir = d->dir};
    if (amp_store_each(a.s, AMP_TASK_KIND, NULL, task_fn, &a, &err) < 0 ||
        amp_store_each(a.s, AMP_ESCALATION_KIND, "DECIDED", decided_fn, &a, &err) < 0 ||
        amp_store_each(a.s, AMP_ESCALATION_KIND, "OPEN", question_fn, &a, &err) < 0 ||
        amp_store_each(a.s, AMP_ESCALATION_KIND, "ASKED", question_fn, &a, &err) < 0)
        doctor_unreadable(d->dir, "the tasks", &err);
    else
        doctor_ok("no task is suspended");
}
