/*
 * One step of the QA loop inside the store's compare-and-set: establish the facts, step the
 * machines, carry out their effects on the record, compose the emitted lines. These functions read
 * and write only the memory of the step.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "work/loop/coordinate/coordinator.h"

#define TEXT_MAX      ((size_t)64 << 20)
#define SIGNATURE_MAX 16384

void amp_step_init(struct amp_step *st, struct amp_coordinator *c, const struct amp_view *v,
                   int64_t now_ms)
{
    memset(st, 0, sizeof *st);
    st->c = c;
    st->policy = &c->opt->policy;
    st->view = v;
    st->now_ms = now_ms;
    amp_buf_init(&st->json, TEXT_MAX);
    amp_buf_init(&st->text, TEXT_MAX);
}

void amp_step_release(struct amp_step *st)
{
    amp_task_release(&st->t);
    amp_buf_release(&st->json);
    amp_buf_release(&st->text);
}

int amp_step_refuse(struct amp_step *st, const char *code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(st->why, sizeof st->why, fmt, ap);
    va_end(ap);
    snprintf(st->nack, sizeof st->nack, "%s", code);
    return 0;
}

bool amp_step_same_commit(const char *a, struct amp_span b)
{
    size_t n = strlen(a);
    if (n > b.n)
        n = b.n;
    return n >= 7 && strncasecmp(a, b.p, n) == 0;
}

uint32_t amp_step_standing(const struct amp_step *st, const struct amp_task_part *part)
{
    const struct amp_task *t = &st->t;
    uint32_t f = AMP_QA_IF_LAST;
    for (size_t i = 0; i < t->n_parts; i++)
        if (&t->parts[i] != part && t->parts[i].state != AMP_QA_APPROVED &&
            t->parts[i].state != AMP_QA_ABANDONED)
            f = 0;
    if (amp_task_is_suspended(t))
        f |= AMP_QA_IF_SUSPENDED;
    if (st->policy->risk[t->risk].admin)
        f |= AMP_QA_IF_NEEDS_ADMIN;
    if (strcmp(part->held, AMP_HELD_APPROVAL) == 0)
        f |= AMP_QA_IF_HELD_APPROVAL;
    if (strcmp(part->held, AMP_HELD_REVIEW) == 0)
        f |= AMP_QA_IF_HELD_REVIEW;
    if (part->ci_reds + 1 >= st->policy->ci_after)
        f |= AMP_QA_IF_CI_AGAIN;
    return f;
}

json_t *amp_step_texts(const struct amp_spans *v)
{
    json_t *a = json_array();
    for (uint32_t i = 0; a && i < v->n; i++)
        json_array_append_new(a, json_stringn(v->v[i].p, v->v[i].n));
    return a;
}

int amp_step_replace(json_t **place, json_t *value, struct amp_error *err)
{
    if (!value)
        return amp_fail_memory(err);
    json_decref(*place);
    *place = value;
    return 0;
}

/* The message's signature as a record has it. */
static int keep_signature(const struct amp_view *v, char **place, struct amp_error *err)
{
    AMP_BUF struct amp_buf sig = {0};
    amp_buf_init(&sig, SIGNATURE_MAX);
    if (v->sig.key.n > 0 && amp_signature_write(&v->sig, &sig, err) < 0)
        return -1;
    return amp_task_set(place, sig.len ? amp_buf_span(&sig) : AMP_SPAN(""), err);
}

static int keep_result(struct amp_step *st, struct amp_task_part *p, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    const struct amp_said *said = st->c->said;
    bool sig = said && said->how == AMP_SAID_SIGNED;
    /* Without a binding by an acknowledgement, the result binds. A bound executor may have rotated
     * its key since (speaker.c): the proof is about the key that signed the result. */
    if (sig && !*p->executor &&
        amp_task_set(&p->executor_name, amp_span_str(said->by.principal), err) < 0)
        return -1;
    if (sig && amp_task_set(&p->executor, amp_span_str(said->by.key), err) < 0)
        return -1;
    if (keep_signature(v, &p->result_sig, err) < 0)
        return -1;
    if (amp_task_set(&p->result_ref, v->id, err) < 0 ||
        amp_task_set(&p->commit, v->body.result.commit, err) < 0 ||
        amp_task_set(&p->completion, amp_span_str(amp_completion_name(v->body.result.completion)),
                     err) < 0 ||
        amp_task_set(&st->t.last_ref, v->id, err) < 0)
        return -1;
    return amp_step_replace(&st->t.blockers, amp_step_texts(&v->body.result.blockers), err);
}

static json_t *issues_json(const struct amp_view *v)
{
    json_t *a = json_array();
    for (uint32_t i = 0; a && i < v->body.verdict.n_issues; i++) {
        const struct amp_issue *s = &v->body.verdict.issues[i];
        json_t *o = json_pack("{s:s%, s:s%, s:I, s:s%, s:s%}", "severity",
                              s->severity.p ? s->severity.p : "", s->severity.n, "file",
                              s->file.p ? s->file.p : "", s->file.n, "line", (json_int_t)s->line,
                              "description", s->description.p ? s->description.p : "",
                              s->description.n, "suggested_fix",
                              s->suggested_fix.p ? s->suggested_fix.p : "", s->suggested_fix.n);
        if (json_array_append_new(a, o) < 0) {
            json_decref(a);
            return NULL;
        }
    }
    return a;
}

static int keep_verdict(struct amp_step *st, struct amp_task_part *p, bool approved,
                        struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_span commit = amp_span_str(p->commit);
    if (keep_signature(v, &p->verdict_sig, err) < 0 ||
        amp_task_set(&p->decision, AMP_SPAN(""), err) < 0 ||
        amp_task_set(&st->t.merge_asked, AMP_SPAN(""), err) < 0 ||
        amp_task_set(&p->verdict_ref, v->id, err) < 0 ||
        amp_task_set(&p->verdict, amp_span_str(amp_verdict_name(v->body.verdict.decision)), err) <
            0 ||
        amp_task_set(&p->verdict_for, amp_span_str(p->result_ref), err) < 0 ||
        amp_task_set(&p->verdict_request, amp_span_str(p->request_ref), err) < 0 ||
        amp_task_set(&p->reviewed_commit, commit, err) < 0 ||
        amp_task_set(&p->rejected_commit, approved ? AMP_SPAN("") : commit, err) < 0)
        return -1;
    if (approved && amp_task_set(&st->t.last_ref, v->id, err) < 0)
        return -1;
    return amp_step_replace(&st->t.issues, issues_json(v), err);
}

/* `held` decides what the decision "resume" does. */
static int keep_held(struct amp_task_part *p, uint8_t from, uint8_t event,
                     const struct amp_fsm_result *r, struct amp_error *err)
{
    const char *held = from == AMP_QA_HELD ? p->held : AMP_HELD_WORK;
    bool kept = r->code && amp_code_is(r->code, suspended) && (r->effects & AMP_QA_DO_KEEP);
    if (r->to != AMP_QA_HELD)
        held = "";
    else if (r->effects & AMP_QA_DO_KEEP_VERDICT)
        held = event == AMP_QA_EV_APPROVED ? AMP_HELD_APPROVAL : AMP_HELD_WORK;
    else if (kept)
        held = event == AMP_QA_EV_COMPLETE ? AMP_HELD_REVIEW : AMP_HELD_WORK;
    else if (r->effects & AMP_QA_DO_ESC_MERGE)
        held = AMP_HELD_APPROVAL;
    else if (from == AMP_QA_IN_REVIEW && event != AMP_QA_EV_CI_RED &&
             event != AMP_QA_EV_REDISPATCH && event != AMP_QA_EV_ROLLBACK)
        held = AMP_HELD_REVIEW;
    else if (event == AMP_QA_EV_REDISPATCH || event == AMP_QA_EV_ROLLBACK)
        held = AMP_HELD_WORK;
    return amp_task_set(&p->held, amp_span_str(held), err);
}

/* In which state an agent's question found the subtask, while nothing else came: then the agent may
 * withdraw it. A check that failed meanwhile does not concern work that is not in review. */
static int keep_asked(struct amp_task_part *p, uint8_t from, uint8_t event, struct amp_error *err)
{
    const char *review = amp_qa_fsm.states[AMP_QA_IN_REVIEW].name, *asked = "";
    if (event == AMP_QA_EV_HOLD && from != AMP_QA_HELD)
        asked = amp_qa_fsm.states[from].name;
    else if (p->state == AMP_QA_HELD &&
             (event == AMP_QA_EV_HOLD || event == AMP_QA_EV_WITHDRAW ||
              (event == AMP_QA_EV_CI_RED && strcmp(p->asked, review) != 0)))
        return 0;
    return amp_task_set(&p->asked, amp_span_str(asked), err);
}

int amp_step_task(struct amp_step *st, uint8_t event, struct amp_error *err)
{
    struct amp_fsm_result r;
    uint32_t facts = st->t.n_parts == 0 ? AMP_TASK_IF_STUB : 0;
    if (amp_fsm_step(&amp_task_fsm, st->t.state, event, facts, &r, err) < 0)
        return -1;
    st->t.state = r.to;
    return 0;
}

static int lines_compose(struct amp_step *st, struct amp_task_part *p,
                         const struct amp_fsm_result *r, struct amp_error *err)
{
    bool ended = p->state == AMP_QA_APPROVED || p->state == AMP_QA_ABANDONED;
    enum amp_level level = r->effects & AMP_QA_DO_SUSPEND ? AMP_LEVEL_CRITICAL
                           : ended                        ? AMP_LEVEL_INFO
                                                          : AMP_LEVEL_WARNING;
    if (amp_step_emit_escalations(st, p, r->effects, level, err) < 0)
        return -1;
    if ((r->effects & AMP_QA_DO_DISPATCH) &&
        amp_step_emit_dispatch(st, p, r->to == AMP_QA_REWORK, err) < 0)
        return -1;
    return r->effects & AMP_QA_DO_REVIEW ? amp_step_emit_review(st, p, err) : 0;
}

/* Replaces the criteria by those of the decision, if it has any, and adds its note. */
static int criteria_amend(struct amp_step *st, struct amp_error *err)
{
    const struct amp_spans *criteria = &st->view->body.decision.criteria;
    struct amp_span note = st->view->body.decision.note;

    if (criteria->n) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < criteria->n; i++)
            if (json_array_append_new(list, json_stringn(criteria->v[i].p, criteria->v[i].n)) < 0) {
                json_decref(list);
                return amp_fail_memory(err);
            }
        if (amp_step_replace(&st->t.criteria, list, err) < 0)
            return -1;
    }
    return note.n > 0 && json_array_append_new(st->t.criteria, json_stringn(note.p, note.n)) < 0
               ? amp_fail_memory(err)
               : 0;
}

int amp_step_qa(struct amp_step *st, struct amp_task_part *p, uint8_t event, uint32_t facts,
                struct amp_error *err)
{
    struct amp_fsm_result r;
    struct amp_error no = {0};
    struct amp_task *t = &st->t;
    uint8_t from = p->state;
    if (amp_fsm_step(&amp_qa_fsm, from, event, facts, &r, &no) < 0)
        return amp_step_refuse(st, AMP_CODE(illegal_transition),
                               "subtask %s is %s: %s is not possible", p->id,
                               amp_qa_fsm.states[from].name, amp_qa_fsm.events[event].name);
    if (r.effects & AMP_QA_DO_NACK)
        return amp_step_refuse(st, r.code, "subtask %s is %s: unexpected message", p->id,
                               amp_qa_fsm.states[from].name);
    if (!st->event)
        st->event = amp_qa_fsm.events[event].name;
    if (r.to != from || r.effects)
        st->touched = true;
    p->state = r.to;
    if ((r.effects & AMP_QA_DO_KEEP) && keep_result(st, p, err) < 0)
        return -1;
    if ((r.effects & AMP_QA_DO_KEEP_VERDICT) &&
        keep_verdict(st, p, event == AMP_QA_EV_APPROVED, err) < 0)
        return -1;
    if (r.effects & AMP_QA_DO_COUNT)
        t->reject_count++;
    if (r.effects & AMP_QA_DO_COUNT_CI)
        p->ci_reds++;
    if (r.effects & AMP_QA_DO_COUNT_UNLANDED)
        t->unlanded++;
    if (r.effects & AMP_QA_DO_RESET) {
        t->reject_count = 0;
        if (event != AMP_QA_EV_APPROVED)
            t->unlanded = 0;
        p->ci_reds = 0;
        if (amp_task_set(&p->rejected_commit, AMP_SPAN(""), err) < 0)
            return -1;
    }
    if ((r.effects & AMP_QA_DO_AMEND) && criteria_amend(st, err) < 0)
        return -1;
    if (keep_held(p, from, event, &r, err) < 0 || keep_asked(p, from, event, err) < 0)
        return -1;
    int task_event = amp_task_event_of(&r);
    if (task_event >= 0 && amp_step_task(st, (uint8_t)task_event, err) < 0)
        return -1;
    if (lines_compose(st, p, &r, err) < 0)
        return -1;
    struct amp_task_part *next = r.effects & AMP_QA_DO_NEXT ? amp_task_turn(t) : NULL;
    return next ? amp_step_qa(st, next, AMP_QA_EV_DISPATCH, amp_step_standing(st, next), err) : 0;
}

int amp_step_write(struct amp_step *st, struct amp_store_change *out, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    if (!t->created_ms)
        t->created_ms = st->now_ms;
    t->updated_ms = st->now_ms;
    if (amp_task_write(t, &st->json, err) < 0)
        return -1;
    for (uint32_t i = 0; i < st->n_out; i++)
        st->emits[i] = (struct amp_store_emit){
            .id = amp_span_str(st->out[i].id),
            .line = {st->text.data + st->out[i].at, st->out[i].n},
            .wants_ack = st->out[i].wants_ack,
        };
    out->event = st->event;
    out->to = amp_task_fsm.states[t->state].name;
    out->json = amp_buf_span(&st->json);
    out->emits = st->emits;
    out->n_emits = st->n_out;
    out->actor = st->c->opt->consumer;
    return 0;
}

int amp_step_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                   struct amp_error *err)
{
    struct amp_step *st = ctx;
    if (now->forgotten)
        return amp_fail(err, AMP_NO, terminal, "task %.*s ended long ago; an id is used once",
                        (int)st->view->task.n, st->view->task.p);
    if (amp_task_read(&st->t, now, st->view->task, err) < 0 || amp_step_message(st, err) < 0)
        return -1;
    return st->touched ? amp_step_write(st, out, err) : 1;
}
