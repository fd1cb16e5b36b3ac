/* Checks of tasks that wait for a person, and of questions that can no longer be answered. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <amp/json/tape.h>

#include "doctor.h"
#include "hitl/escalation.h"
#include "hitl/record.h"
#include "message/ledger/ledger.h"
#include "task/record.h"
#include "task/task.h"

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

static int question_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                       struct amp_error *err)
{
    struct asking *a = ctx;
    int rc = 0;
    AMP_BUF struct amp_buf text = {0};
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    struct amp_span task = {0};
    const char *why = NULL;
    amp_buf_init(&text, 64 << 10);
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, rec->json.p, rec->json.n, &fault) == 0) {
        uint32_t tok = amp_tape_get(&t, 0, AMP_SPAN("task"));
        if (tok != AMP_TOK_NONE && amp_tok_text(&t, tok, &text, &task, NULL) < 0)
            task = (struct amp_span){0};
    }
    if (!task.n)
        why = "its record names no task";
    else
        rc = why_dead(a, id, task, &why, err);
    if (why) {
        doctor_say(DOCTOR_WARN,
                   "# no action is needed: hitl-prompt does not ask it; escalate again if an "
                   "answer is still needed",
                   "the question %.*s about %.*s can no longer be answered: %s",
                   (int)(id.n > ID_MAX ? ID_MAX : id.n), id.p,
                   (int)(task.n > ID_MAX ? ID_MAX : task.n), task.n ? task.p : "", why);
    }
    return rc;
}

/* Why no person will be asked about a suspended task; *why is NULL if one is, or will be, asked. */
static int why_unasked(struct asking *a, struct amp_span task, struct amp_span ref,
                       const char **why, struct amp_error *err)
{
    struct amp_store_rec rec;
    *why = NULL;
    if (amp_store_get(a->s, AMP_KEY(AMP_ESCALATION_KIND, ref), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0; /* it is in transit, or waits in an outbox */
    if (amp_span_is(rec.state, "NOTED"))
        *why = "was only recorded";
    else
        return why_dead(a, ref, task, why, err);
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
        doctor_say(
            DOCTOR_WARN,
            doctor_fix("task-dispatch coordinate --state %s </dev/null", doctor_quote(a->dir)),
            "%s is %s, and the question it waits for, %s, was decided, but no coordinator "
            "has carried it out (%.*s): start the loop, or the coordinator alone",
            t.id, amp_task_fsm.states[t.state].name, ref, AMP_CLIP(q.decision, 60));
    return 0;
}

/* Tells whether the question of a suspended task was decided, which decided_fn reports. */
static int is_decided(struct asking *a, struct amp_span ref, bool *yes, struct amp_error *err)
{
    struct amp_store_rec rec;
    if (amp_store_get(a->s, AMP_KEY(AMP_ESCALATION_KIND, ref), &rec, err) < 0)
        return -1;
    *yes = rec.found && amp_span_is(rec.state, "DECIDED");
    return 0;
}

static int task_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                   struct amp_error *err)
{
    struct asking *a = ctx;
    char state[32];
    struct amp_task_status st;
    const char *why;
    bool decided;
    const char *dir = doctor_quote(a->dir);
    if (!amp_span_is(rec->state, "suspended") && !amp_span_is(rec->state, "locked"))
        return 0;
    amp_span_copy(rec->state, state, sizeof(state));
    if (amp_task_status(a->s, id, &st, err) < 0 ||
        is_decided(a, amp_span_str(st.ref), &decided, err) < 0)
        return -1;
    if (decided)
        return 0;
    if (why_unasked(a, id, amp_span_str(st.ref), &why, err) < 0)
        return -1;
    int n = (int)(id.n > ID_MAX ? ID_MAX : id.n);
    const char *fix = doctor_fix(
        "hitl-prompt --state %s </dev/null | task-dispatch coordinate --state %s", dir, dir);
    if (why)
        doctor_say(DOCTOR_WARN, fix, "%.*s is %s, and the question it waits for, %s, %s", n, id.p,
                   state, st.ref, why);
    else
        doctor_say(DOCTOR_WARN, fix, "%.*s is %s: a person must decide", n, id.p, state);
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
