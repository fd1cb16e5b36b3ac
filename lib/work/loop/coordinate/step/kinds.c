/* The event and the facts of each kind of message. step.c makes the step. */
#include <string.h>

#include "base/codes.h"
#include "message/protocol/question.h"
#include "work/loop/coordinate/coordinator.h"

static bool ci_is_red(const struct amp_task *t, struct amp_span commit)
{
    const char *red = json_string_value(json_object_get(t->ci, "commit"));
    return json_is_true(json_object_get(t->ci, "failed")) && red &&
           amp_step_same_commit(red, commit);
}

/* The criteria that are commands, if a person's command created the task. Nothing else makes a
 * criterion a command: a message may come from anybody who may say dispatches. */
static json_t *commands_of(const struct amp_step *st)
{
    const struct amp_spans *criteria = &st->view->body.dispatch.criteria;
    json_t *list = json_array();
    for (uint32_t i = 0; list && st->c->unsent && i < criteria->n; i++)
        if (amp_span_starts(criteria->v[i], AMP_TASK_COMMAND))
            json_array_append_new(list, json_stringn(criteria->v[i].p, criteria->v[i].n));
    return list;
}

static int fill_task(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    const struct amp_view *v = st->view;
    if (amp_task_set(&t->description, v->body.dispatch.description, err) < 0 ||
        amp_task_set(&t->repo, v->body.dispatch.repo, err) < 0 ||
        amp_task_set(&t->branch, v->body.dispatch.branch, err) < 0 ||
        amp_task_set(&t->source_ref, v->id, err) < 0 ||
        amp_task_set(&t->text, st->c->opt->text, err) < 0 ||
        amp_task_set(&t->last_ref, v->id, err) < 0 ||
        amp_step_replace(&t->criteria, amp_step_texts(&v->body.dispatch.criteria), err) < 0 ||
        amp_step_replace(&t->commands, commands_of(st), err) < 0 ||
        amp_step_replace(&t->forbidden, amp_step_texts(&v->body.dispatch.forbidden), err) < 0)
        return -1;
    t->risk = v->body.dispatch.risk;
    if (*st->base && amp_task_set(&t->base, amp_span_str(st->base), err) < 0)
        return -1;
    if (!v->body.dispatch.constraints.n)
        return 0;
    json_t *c = amp_json_load(v->body.dispatch.constraints, err);
    return c ? amp_step_replace(&t->constraints, c, err) : -1;
}

/* Sets the subtasks of the admin's dispatch. An approved subtask stays approved if its description
 * is the same. */
static int fill_parts(struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_task old;
    if (amp_task_init(&old, v->task, err) < 0)
        return -1;
    amp_task_swap_parts(&old, &st->t);
    int rc = 0;
    for (uint32_t i = 0; i < v->body.dispatch.n_subtasks && rc == 0; i++) {
        const struct amp_subtask *s = &v->body.dispatch.subtasks[i];
        rc = amp_task_add_part(&st->t, s->id, s->description, s->estimated_lines, err);
        struct amp_task_part *was = amp_task_part(&old, s->id);
        if (rc < 0 || !was)
            continue;
        struct amp_task_part *now = &st->t.parts[st->t.n_parts - 1], tmp = *now;
        bool stays = was->state == AMP_QA_APPROVED && amp_span_is(s->description, was->description);
        *now = *was;
        *was = tmp;
        now->ci_reds = 0;
        if (stays)
            continue;
        now->state = AMP_QA_PENDING;
        now->estimated_lines = s->estimated_lines;
        if (amp_task_set(&now->description, s->description, err) < 0 ||
            amp_task_set(&now->held, AMP_SPAN(""), err) < 0 ||
            amp_task_set(&now->rejected_commit, AMP_SPAN(""), err) < 0)
            rc = -1;
    }
    amp_task_release(&old);
    return rc;
}

static int on_lacking(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    amp_step_refuse(st, st->bad_code,
                    "the task has no acceptance criteria; add them and send it again");
    if (t->state != AMP_TASK_NEW && t->state != AMP_TASK_INCOMPLETE)
        return 0;
    st->event = amp_task_fsm.events[AMP_TASK_EV_LACK].name;
    st->touched = true;
    return fill_task(st, err) < 0 ? -1 : amp_step_task(st, AMP_TASK_EV_LACK, err);
}

/* Drops the oldest entries of a list. */
static void keep_newest(json_t *list, size_t most)
{
    while (json_array_size(list) > most)
        json_array_remove(list, 0);
}

static int note_decided(struct amp_task *t, const char *ref, struct amp_error *err)
{
    if (!amp_task_lists(t->decided, ref) && json_array_append_new(t->decided, json_string(ref)) < 0)
        return amp_fail_memory(err);
    keep_newest(t->decided, AMP_TASK_DECIDED_MAX);
    return 0;
}

/* The admin sent the task again, or ended it: this decides all its open escalations. */
static int decide_all(struct amp_task *t, struct amp_error *err)
{
    size_t i;
    json_t *e;
    json_array_foreach (t->open, i, e) {
        const char *ref = json_string_value(json_object_get(e, "ref"));
        if (ref && note_decided(t, ref, err) < 0)
            return -1;
    }
    amp_task_close_escalation(t, "");
    return 0;
}

static int on_dispatch(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    if (!amp_span_is(st->view->from, "admin"))
        return amp_step_refuse(st, AMP_CODE(bad_value), "only the admin sends tasks, not %.*s",
                               (int)st->view->from.n, st->view->from.p);
    if (amp_task_ended(t->state))
        return amp_step_refuse(st, AMP_CODE(terminal), "task %s is %s; use a new id", t->id,
                               amp_task_fsm.states[t->state].name);
    if (st->bad_code)
        return on_lacking(st, err);
    bool stub = t->n_parts == 0;
    st->event = amp_task_fsm.events[AMP_TASK_EV_OPEN].name;
    st->touched = true;
    if (fill_task(st, err) < 0 || fill_parts(st, err) < 0)
        return -1;
    if (!stub) {
        if (decide_all(t, err) < 0)
            return -1;
        t->reject_count = 0;
        st->lift = true;
    }
    if (!amp_task_is_suspended(t) && amp_step_task(st, AMP_TASK_EV_OPEN, err) < 0)
        return -1;
    struct amp_task_part *p = amp_task_turn(t);
    st->touched = p != NULL;
    if (!p)
        return amp_step_refuse(st, AMP_CODE(terminal), "every subtask of %s is already approved",
                               t->id);
    return amp_step_qa(st, p, AMP_QA_EV_DISPATCH, amp_step_standing(st, p), err);
}

/* Whether the context of the message has an id that starts with the type, but not the id `but`. */
static bool context_has_other(const struct amp_view *v, struct amp_span type, const char *but)
{
    bool other = false;
    for (uint32_t i = 0; i < v->context.n; i++) {
        struct amp_span id = v->context.v[i];
        if (id.n > type.n && memcmp(id.p, type.p, type.n) == 0) {
            if (amp_span_is(id, but))
                return false;
            other = true;
        }
    }
    return other;
}

static bool context_has(const struct amp_view *v, const char *id)
{
    for (uint32_t i = 0; *id && i < v->context.n; i++)
        if (amp_span_is(v->context.v[i], id))
            return true;
    return false;
}

static int on_result(struct amp_step *st, struct amp_error *err)
{
    static const uint8_t event_of[] = {[AMP_COMPLETION_COMPLETE] = AMP_QA_EV_COMPLETE,
                                       [AMP_COMPLETION_PARTIAL] = AMP_QA_EV_PARTIAL,
                                       [AMP_COMPLETION_FAILED] = AMP_QA_EV_FAILED};
    const struct amp_view *v = st->view;
    struct amp_task_part *p = amp_task_part(&st->t, v->body.result.subtask);
    if (!p)
        return amp_step_refuse(st, AMP_CODE(unknown_ref), "no subtask %.*s in task %s",
                               (int)v->body.result.subtask.n, v->body.result.subtask.p, st->t.id);
    uint32_t f = amp_step_standing(st, p);
    struct amp_span commit = v->body.result.commit;
    if (context_has_other(v, AMP_SPAN("task_dispatch-"), p->dispatch_ref))
        f |= AMP_QA_IF_STALE;
    if (amp_step_same_commit(p->rejected_commit, commit))
        f |= AMP_QA_IF_SAME_COMMIT;
    if (ci_is_red(&st->t, commit))
        f |= AMP_QA_IF_CI_RED;
    if (v->body.result.completion != AMP_COMPLETION_COMPLETE) {
        const struct amp_result_rule *rule = amp_task_policy_result(
            st->policy, v->body.result.completion, &v->body.result.blockers, p->attempts);
        f |= rule->action == AMP_RESULT_REDISPATCH ? AMP_QA_IF_RETRY : 0;
        f |= rule->action == AMP_RESULT_FAIL ? AMP_QA_IF_FAILS : 0;
    }
    return amp_step_qa(st, p, event_of[v->body.result.completion], f, err);
}

struct amp_task_part *amp_step_judged(const struct amp_task *t, const struct amp_view *v)
{
    for (size_t i = 0; i < t->n_parts; i++) {
        const struct amp_task_part *p = &t->parts[i];
        if (context_has(v, p->request_ref) || context_has(v, p->result_ref) ||
            context_has(v, p->verdict_for) || context_has(v, p->verdict_request))
            return &t->parts[i];
    }
    struct amp_task_part *turn = amp_task_turn(t);
    return turn ? turn : t->n_parts ? &t->parts[t->n_parts - 1] : NULL;
}

static uint32_t verdict_facts(const struct amp_step *st, const struct amp_task_part *p,
                              bool approved)
{
    const struct amp_view *v = st->view;
    bool was_approved = strcmp(p->verdict, amp_verdict_name(AMP_VERDICT_REJECTED)) != 0;
    bool is_judged = *p->verdict && (!*p->result_ref || strcmp(p->verdict_for, p->result_ref) == 0);
    bool to_current = context_has(v, p->result_ref) || context_has(v, p->request_ref);
    bool to_judged =
        *p->verdict && (context_has(v, p->verdict_for) || context_has(v, p->verdict_request) ||
                        (is_judged && to_current));
    bool to_other = !to_current && !to_judged &&
                    (context_has_other(v, AMP_SPAN("task_result-"), p->result_ref) ||
                     context_has_other(v, AMP_SPAN("review_request-"), p->request_ref));
    /* A signed verdict counts only for what it names. */
    bool is_signed = st->c->said && st->c->said->how == AMP_SAID_SIGNED;
    if (to_other || (is_signed && !to_current && !to_judged))
        return AMP_QA_IF_STALE;
    if (to_judged || (is_judged && !to_current))
        return was_approved == approved ? AMP_QA_IF_ANSWERED : AMP_QA_IF_CONTRADICTS;
    return 0;
}

static int on_verdict(struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_task_part *p = amp_step_judged(&st->t, v);
    if (!p)
        return amp_step_refuse(st, AMP_CODE(unknown_ref), "unknown task %s", st->t.id);
    bool failed = false, blocking = v->body.verdict.n_blocking > 0;
    for (uint32_t i = 0; i < v->body.verdict.n_criteria; i++)
        failed |= v->body.verdict.criteria[i].passed == AMP_TRI_FALSE;
    bool approved = v->body.verdict.decision != AMP_VERDICT_REJECTED;
    uint32_t f = amp_step_standing(st, p) | verdict_facts(st, p, approved);
    if (approved && (failed || blocking))
        f |= AMP_QA_IF_INCONSISTENT;
    if (!approved && !blocking && !failed && st->policy->minor_approves)
        approved = true;
    if (v->body.verdict.confidence < st->policy->min_confidence)
        f |= AMP_QA_IF_LOW_CONFIDENCE;
    if (st->t.reject_count + 1 >= st->policy->lock_after)
        f |= AMP_QA_IF_LOCKS;
    return amp_step_qa(st, p, approved ? AMP_QA_EV_APPROVED : AMP_QA_EV_REJECTED, f, err);
}

static int take_note(struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_span note = v->body.decision.note;
    if (!note.n)
        return 0;
    if (json_array_append_new(st->t.notes, json_stringn(note.p, note.n)) < 0)
        return amp_fail_memory(err);
    keep_newest(st->t.notes, 32);
    return 0;
}

/* The receiver of the subtask's open message stops. */
static void call_off(struct amp_step *st, const struct amp_task_part *p)
{
    amp_span_copy(amp_span_str(p->state == AMP_QA_IN_REVIEW ? p->request_ref : p->dispatch_ref),
                  st->called_off, sizeof st->called_off);
}

static int on_decision(struct amp_step *st, struct amp_error *err)
{
    static const uint8_t event_of[] = {[AMP_DO_RESUME] = AMP_QA_EV_RESUME,
                                       [AMP_DO_TERMINATE] = AMP_QA_EV_TERMINATE,
                                       [AMP_DO_REDISPATCH] = AMP_QA_EV_REDISPATCH,
                                       [AMP_DO_ROLLBACK] = AMP_QA_EV_ROLLBACK};
    struct amp_task *t = &st->t;
    char ref[AMP_MSG_ID_MAX];
    enum amp_operator_word word = st->view->body.decision.word;
    if (!amp_span_copy(st->view->body.decision.ref, ref, sizeof ref))
        return amp_step_refuse(st, AMP_CODE(unknown_ref), "the escalation's id is too long");
    if (amp_task_lists(t->decided, ref))
        return amp_step_refuse(st, AMP_CODE(already_decided), "%s was already decided", ref);
    if (amp_task_lists(t->withdrawn, ref))
        return amp_step_refuse(st, AMP_HITL_WITHDRAWN, "the agent withdrew %s", ref);
    if (amp_task_ended(t->state))
        return amp_step_refuse(st, AMP_CODE(terminal), "task %s is %s", t->id,
                               amp_task_fsm.states[t->state].name);
    if (t->n_parts == 0 && word != AMP_DO_TERMINATE && !amp_task_is_suspended(t))
        return amp_step_refuse(st, AMP_CODE(illegal_transition),
                               "task %s is %s: there is no work to continue", t->id,
                               amp_task_fsm.states[t->state].name);
    if (!amp_task_waits_for(t, ref) && !st->ref_open)
        return amp_step_refuse(st, AMP_CODE(unknown_ref), "%s is not an open escalation of task %s",
                               ref, t->id);
    if (st->bad_code)
        return amp_step_refuse(st, st->bad_code, "invalid decision: %s: %.160s", st->bad_code,
                               st->bad_field);
    st->touched = st->lift = true;
    st->event = amp_qa_fsm.events[event_of[word]].name;
    if (word == AMP_DO_TERMINATE && decide_all(t, err) < 0)
        return -1;
    amp_task_close_escalation(t, ref);
    if (note_decided(t, ref, err) < 0 || take_note(st, err) < 0)
        return -1;
    struct amp_task_part *p = amp_task_turn(t);
    if (!p && word == AMP_DO_TERMINATE)
        return amp_step_task(st, AMP_TASK_EV_TERMINATE, err);
    if (!p)
        return amp_task_is_suspended(t) ? 0 : amp_step_task(st, AMP_TASK_EV_LIFT, err);
    if (word == AMP_DO_TERMINATE)
        call_off(st, p);
    /* The signed decision about a verdict is a part of the proof that the work was approved. */
    if (*p->verdict_ref &&
        amp_task_set(&p->decision, st->view->sig.key.n ? st->view->line : AMP_SPAN(""), err) < 0)
        return -1;
    return amp_step_qa(st, p, event_of[word], amp_step_standing(st, p), err);
}

int amp_step_cancel(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    struct amp_task_part *p = amp_task_turn(t);
    st->touched = st->lift = true;
    st->event = amp_qa_fsm.events[AMP_QA_EV_TERMINATE].name;
    if (decide_all(t, err) < 0 || take_note(st, err) < 0)
        return -1;
    if (!p)
        return amp_step_task(st, AMP_TASK_EV_TERMINATE, err);
    call_off(st, p);
    return amp_step_qa(st, p, AMP_QA_EV_TERMINATE, 0, err);
}

static int on_ci(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    const struct amp_view *v = st->view;
    bool failed = false;
    const char *name;
    json_t *state, *checks = amp_json_load(v->body.ci.checks, err);
    if (!checks)
        return -1;
    json_object_foreach (checks, name, state)
        if (json_is_string(state) && strcmp(json_string_value(state), "failed") == 0 &&
            amp_task_policy_counts(st->policy, name))
            failed = true;
    json_t *ci = json_pack("{s:s%, s:s%, s:o, s:b}", "commit", v->body.ci.commit.p,
                           v->body.ci.commit.n, "branch", v->body.ci.branch.p, v->body.ci.branch.n,
                           "checks", checks, "failed", failed);
    if (t->n_parts == 0) {
        json_decref(ci);
        return amp_step_refuse(st, AMP_CODE(unknown_ref), "unknown task %s", t->id);
    }
    if (amp_step_replace(&t->ci, ci, err) < 0)
        return -1;
    st->event = "ci_status";
    st->touched = true;
    for (size_t i = 0; failed && i < t->n_parts; i++)
        if (amp_step_same_commit(t->parts[i].commit, v->body.ci.commit))
            return amp_step_qa(st, &t->parts[i], AMP_QA_EV_CI_RED,
                               amp_step_standing(st, &t->parts[i]) | AMP_QA_IF_CI_RED, err);
    return 0;
}

/* Notes who asked: only this sender may withdraw the question. */
static int asker_note(struct amp_step *st, const char *ref, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    const struct amp_said *said = st->c->said;
    bool sig = said && said->how == AMP_SAID_SIGNED;
    char of[AMP_MSG_ID_MAX], from[32];
    amp_span_copy(v->id, of, sizeof of);
    amp_span_copy(v->from, from, sizeof from);
    return amp_task_own_escalation(&st->t, ref, of, from, sig ? said->by.principal : "",
                                   sig ? said->by.key : "", err);
}

static int on_escalation(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    const struct amp_view *v = st->view;
    char ref[AMP_MSG_ID_MAX];
    enum amp_level level = v->body.escalation.severity;
    st->event = "escalation";
    st->touched = true;
    if (amp_step_forward(st, err) < 0)
        return -1;
    if (amp_task_ended(t->state) || level == AMP_LEVEL_INFO)
        return 0;
    amp_step_forward_id(v, ref);
    amp_span_copy(v->body.escalation.type, st->suspend_type, sizeof st->suspend_type);
    if (amp_task_lists(t->withdrawn, ref)) /* the withdrawal overtook it */
        return 0;
    const struct amp_task_asked asked = {
        .ref = ref, .type = st->suspend_type, .severity = amp_level_name(level)};
    if (amp_task_open_escalation(t, &asked, st->now_ms, err) < 0 || asker_note(st, ref, err) < 0)
        return -1;
    memcpy(st->suspend_ref, ref, sizeof ref);
    if (level == AMP_LEVEL_CRITICAL)
        return amp_step_task(st, AMP_TASK_EV_SUSPEND, err);
    struct amp_task_part *p = amp_task_turn(t);
    return p ? amp_step_qa(st, p, AMP_QA_EV_HOLD, amp_step_standing(st, p), err) : 0;
}

bool amp_coordinator_withdraws(const struct amp_view *v)
{
    return v->kind == AMP_KIND_NACK && amp_span_is(v->body.ack.code, AMP_HITL_WITHDRAWN) &&
           !amp_span_is(v->from, "coordinator");
}

static uint32_t withdrawal_facts(const struct amp_step *st, const struct amp_task_part *p)
{
    static const uint32_t of[] = {[AMP_QA_WORKING] = AMP_QA_IF_ASKED_WORKING,
                                  [AMP_QA_IN_REVIEW] = AMP_QA_IF_ASKED_REVIEW,
                                  [AMP_QA_REWORK] = AMP_QA_IF_ASKED_REWORK};
    uint32_t f = json_array_size(st->t.open) ? AMP_QA_IF_OTHERS : 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (of[i] && strcmp(p->asked, amp_qa_fsm.states[i].name) == 0)
            f |= of[i];
    return f;
}

/* The agent that asked does not wait for the answer any more; its attempt goes on. */
static int on_withdrawal(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    char ref[AMP_MSG_ID_MAX] = "";
    amp_span_copy(st->view->body.ack.ref, ref, sizeof ref);
    const json_t *e = amp_task_find_escalation(t, ref);
    if (e)
        snprintf(ref, sizeof ref, "%s", amp_json_str(e, "ref"));
    if (amp_task_lists(t->withdrawn, ref))
        return amp_step_refuse(st, AMP_HITL_WITHDRAWN, "%s was withdrawn before", ref);
    if (amp_task_lists(t->decided, ref) || (e && st->is_decided))
        return amp_step_refuse(st, AMP_CODE(already_decided), "%s was already decided", ref);
    if (amp_task_ended(t->state))
        return amp_step_refuse(st, AMP_CODE(terminal), "task %s is %s", t->id,
                               amp_task_fsm.states[t->state].name);
    if (!e)
        return amp_step_refuse(st, AMP_CODE(unknown_ref), "%s is not an open escalation of task %s",
                               ref, t->id);
    if (!amp_span_is(st->view->from, amp_json_str(e, "from")))
        return amp_step_refuse(st, AMP_CODE(bad_sender), "%s is not a question of this agent", ref);
    if (strcmp(amp_json_str(e, "severity"), amp_level_name(AMP_LEVEL_CRITICAL)) == 0)
        return amp_step_refuse(st, AMP_CODE(permission_denied),
                               "%s is critical: only the admin decides it", ref);
    amp_task_close_escalation(t, ref);
    struct amp_task_part *p = amp_task_turn(t);
    if (p && amp_step_qa(st, p, AMP_QA_EV_WITHDRAW, withdrawal_facts(st, p), err) < 0)
        return -1;
    if (*st->nack)
        return 0;
    st->event = amp_qa_fsm.events[AMP_QA_EV_WITHDRAW].name;
    st->touched = true;
    memcpy(st->withdrawn, ref, sizeof ref);
    if (json_array_append_new(t->withdrawn, json_string(ref)) < 0)
        return amp_fail_memory(err);
    keep_newest(t->withdrawn, AMP_TASK_DECIDED_MAX);
    return amp_step_emit_withdrawal(st, err);
}

/* Whether a nack only repeats what the task's record already says. */
static bool is_echo(struct amp_span code)
{
    static const char *const echoes[] = {AMP_CODE(suspended), AMP_CODE(stale_dispatch),
                                         AMP_CODE(duplicate_msg_id), AMP_CODE(terminal),
                                         AMP_CODE(already_decided)};
    for (size_t i = 0; i < sizeof echoes / sizeof echoes[0]; i++)
        if (amp_span_is(code, echoes[i]))
            return true;
    return false;
}

static int on_nack(struct amp_step *st, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    struct amp_span ref = st->view->body.ack.ref;
    struct amp_task_part *p = amp_task_turn(t);
    if (amp_coordinator_withdraws(st->view))
        return on_withdrawal(st, err);
    if (!p || is_echo(st->view->body.ack.code))
        return 0;
    bool ours = amp_span_is(ref, p->dispatch_ref) ||
                (p->state == AMP_QA_IN_REVIEW && amp_span_is(ref, p->request_ref));
    if (ours && amp_span_is(st->view->body.ack.code, AMP_CODE(empty_acceptance_criteria))) {
        st->event = amp_task_fsm.events[AMP_TASK_EV_LACK].name;
        st->touched = true;
        return amp_step_task(st, AMP_TASK_EV_LACK, err);
    }
    return amp_step_qa(st, p, AMP_QA_EV_REFUSED,
                       amp_step_standing(st, p) | (ours ? 0 : AMP_QA_IF_STALE), err);
}

int amp_step_message(struct amp_step *st, struct amp_error *err)
{
    static int (*const on[AMP_KIND_COUNT])(struct amp_step *, struct amp_error *) = {
        [AMP_KIND_DISPATCH] = on_dispatch, [AMP_KIND_RESULT] = on_result,
        [AMP_KIND_VERDICT] = on_verdict,   [AMP_KIND_DECISION] = on_decision,
        [AMP_KIND_CI_STATUS] = on_ci,      [AMP_KIND_ESCALATION] = on_escalation,
        [AMP_KIND_NACK] = on_nack};
    return on[st->view->kind] ? on[st->view->kind](st, err) : 0;
}
