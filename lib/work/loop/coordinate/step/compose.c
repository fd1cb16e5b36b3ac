/* Composes dispatches, review requests and escalations from the task's record. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/intake.h"
#include "message/protocol/question.h"
#include "work/loop/coordinate/coordinator.h"

#define NOTE_MAX ((size_t)256 << 10)

static int line_add(struct amp_step *st, size_t at, bool wants_ack, struct amp_error *err)
{
    if (st->n_out == AMP_STEP_EMITS)
        return amp_fail(err, AMP_INTERNAL, too_many_lines, "one step emits too much");
    st->out[st->n_out].at = at;
    st->out[st->n_out].n = st->text.len - at - 1; /* without LF */
    st->out[st->n_out].wants_ack = wants_ack;
    st->n_out++;
    return 0;
}

static char *next_id(struct amp_step *st)
{
    return st->out[st->n_out < AMP_STEP_EMITS ? st->n_out : 0].id;
}

/* "path:line" if there is a file. */
static int add_issue(struct amp_buf *b, const json_t *issue, struct amp_error *err)
{
    const char *severity = amp_json_str(issue, "severity"), *file = amp_json_str(issue, "file");
    const char *fix = amp_json_str(issue, "suggested_fix");
    int line = (int)json_integer_value(json_object_get(issue, "line"));
    if (amp_buf_fmt(b, err, "\n- [%s] ", *severity ? severity : "major") < 0)
        return -1;
    if (*file && amp_buf_fmt(b, err, "%s:%d: ", file, line) < 0)
        return -1;
    if (amp_buf_str(b, amp_json_str(issue, "description"), err) < 0)
        return -1;
    return *fix ? amp_buf_fmt(b, err, " (suggested: %s)", fix) : 0;
}

static int add_issues(struct amp_buf *b, const json_t *issues, struct amp_error *err)
{
    for (size_t i = 0; i < json_array_size(issues); i++)
        if (add_issue(b, json_array_get(issues, i), err) < 0)
            return -1;
    return 0;
}

static int add_texts(struct amp_buf *b, const char *title, const json_t *list,
                     struct amp_error *err)
{
    if (json_array_size(list) && amp_buf_str(b, title, err) < 0)
        return -1;
    for (size_t i = 0; i < json_array_size(list); i++)
        if (amp_buf_fmt(b, err, "\n- %s", json_string_value(json_array_get(list, i))) < 0)
            return -1;
    return 0;
}

static const char *text_newest(const json_t *list)
{
    const char *s = json_string_value(json_array_get(list, json_array_size(list) - 1));
    return s ? s : "";
}

/* The description of the work; for rework also the reasons for it. */
static int description_add(const struct amp_step *st, const struct amp_task_part *p, bool rework,
                           struct amp_buf *b, struct amp_error *err)
{
    const struct amp_task *t = &st->t;
    if (amp_buf_str(b, t->description, err) < 0)
        return -1;
    if (!rework)
        return 0;
    if (amp_buf_fmt(b, err, "\n\nAttempt %d.", (int)p->attempts + 1) < 0)
        return -1;
    if (strcmp(p->verdict, "rejected") == 0 && json_array_size(t->issues) &&
        (amp_buf_str(b, "\nThe last verdict is a rejection. Fix:", err) < 0 ||
         add_issues(b, t->issues, err) < 0))
        return -1;
    if (add_texts(b, "\nBlockers of the last attempt:", t->blockers, err) < 0)
        return -1;
    if (p->ci_reds && amp_buf_str(b, "\nCI failed for the last commit.", err) < 0)
        return -1;
    return *text_newest(t->notes)
               ? amp_buf_fmt(b, err, "\nNote of the admin: %s", text_newest(t->notes))
               : 0;
}

/* The admin's constraints and those that the coordinator adds. */
static json_t *constraints_for(const struct amp_step *st, const struct amp_task_part *p,
                               bool rework)
{
    const struct amp_task *t = &st->t;
    json_t *c = json_copy(t->constraints);
    if (!c)
        return NULL;
    if (*t->base)
        json_object_set_new(c, "base", json_string(t->base));
    json_object_set_new(c, "attempt", json_integer(p->attempts + 1));
    if (*text_newest(t->notes))
        json_object_set_new(c, "note", json_string(text_newest(t->notes)));
    if (!rework)
        return c;
    if (*p->verdict_ref)
        json_object_set_new(c, "review",
                            json_pack("{s:s, s:s, s:I, s:O}", "verdict_ref", p->verdict_ref,
                                      "decision", p->verdict, "reject_count",
                                      (json_int_t)t->reject_count, "issues", t->issues));
    if (json_array_size(t->blockers))
        json_object_set(c, "blockers", t->blockers);
    if (p->ci_reds)
        json_object_set(c, "ci_status", json_object_get(t->ci, "checks"));
    return c;
}

static void add_ref(const char **refs, size_t *n, const char *ref)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(refs[i], ref) == 0)
            return;
    if (*ref)
        refs[(*n)++] = ref;
}

int amp_step_emit_dispatch(struct amp_step *st, struct amp_task_part *p, bool rework,
                           struct amp_error *err)
{
    struct amp_task *t = &st->t;
    struct amp_dispatch_part part = {p->id, p->description, p->estimated_lines};
    const char *refs[6] = {NULL};
    size_t n = 0, at = st->text.len;
    char *id = next_id(st);
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)48 << 20);
    add_ref(refs, &n, t->source_ref);
    if (rework) {
        add_ref(refs, &n, p->result_ref);
        add_ref(refs, &n, p->verdict_ref);
    }
    if (description_add(st, p, rework, &text, err) < 0)
        return -1;
    json_auto_t *constraints = constraints_for(st, p, rework);
    const struct amp_dispatch_args a = {
        .from = "coordinator",
        .to = "executor",
        .task_id = t->id,
        .description = text.data,
        .repo = t->repo,
        .branch = t->branch,
        .parts = &part,
        .n_parts = 1,
        .criteria = t->criteria,
        .forbidden = t->forbidden,
        .constraints = constraints,
        .risk = t->risk,
        .context_ref = refs,
        .ack_timeout_sec = st->c->opt->ack_timeout_sec,
        .now_ms = st->now_ms,
    };
    if (amp_compose_dispatch(&a, &st->text, id, err) < 0 || line_add(st, at, true, err) < 0)
        return -1;
    p->attempts++;
    if (!*p->result_ref)
        amp_span_copy(amp_span_str(p->dispatch_ref), st->dropped[0], sizeof st->dropped[0]);
    if (strcmp(p->request_ref, p->verdict_request) != 0)
        amp_span_copy(amp_span_str(p->request_ref), st->dropped[1], sizeof st->dropped[1]);
    if (!*t->first_dispatch && amp_task_set(&t->first_dispatch, amp_span_str(id), err) < 0)
        return -1;
    /* The earlier result and review request are obsolete, and another executor may get the work. */
    return amp_task_set(&p->executor, AMP_SPAN(""), err) < 0 ||
                   amp_task_set(&p->executor_name, AMP_SPAN(""), err) < 0 ||
                   amp_task_set(&p->dispatch_ref, amp_span_str(id), err) < 0 ||
                   amp_task_set(&p->result_ref, AMP_SPAN(""), err) < 0 ||
                   amp_task_set(&p->request_ref, AMP_SPAN(""), err) < 0
               ? -1
               : 0;
}

/* The commit of the last verdict in this task, "" before the first one. */
static const char *last_reviewed(const struct amp_task *t, const struct amp_task_part *p)
{
    for (const struct amp_task_part *q = p;; q--) {
        if (*q->reviewed_commit)
            return q->reviewed_commit;
        if (q == t->parts)
            return "";
    }
}

static int diff_url(const struct amp_task *t, const char *from, const char *to, struct amp_buf *b,
                    struct amp_error *err)
{
    return amp_buf_fmt(b, err, "file://%s#%s...%s", t->repo, *from ? from : "HEAD",
                       *to ? to : t->branch);
}

static int add_unverified(const struct amp_step *st, struct amp_buf *b, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    if (v->kind != AMP_KIND_RESULT)
        return 0;
    bool first = true;
    for (uint32_t i = 0; i < v->body.result.n_criteria_met; i++) {
        const char *c = json_string_value(json_array_get(st->t.criteria, i));
        if (v->body.result.criteria_met[i] != AMP_TRI_NULL || !c)
            continue;
        if (amp_buf_fmt(b, err, "%s\n- %s",
                        first ? "The executor could not verify these; check them first:" : "",
                        c) < 0)
            return -1;
        first = false;
    }
    return first ? 0 : amp_buf_str(b, "\n", err);
}

static int notes_for(const struct amp_step *st, const struct amp_task_part *p, struct amp_buf *b,
                     struct amp_error *err)
{
    const struct amp_task *t = &st->t;
    int64_t limit = st->policy->lock_after;
    size_t at = (size_t)(p - t->parts);
    if ((t->reject_count >= 2 || (t->reject_count > 0 && t->reject_count + 1 >= limit)) &&
        amp_buf_fmt(b, err, "Lock is approaching: %d rejections in a row, %d lock the task.\n",
                    (int)t->reject_count, (int)limit) < 0)
        return -1;
    if (at + 1 < t->n_parts &&
        amp_buf_fmt(b, err, "Subtask %d of %d. Criteria of later subtasks may stay null.\n",
                    (int)at + 1, (int)t->n_parts) < 0)
        return -1;
    if (*text_newest(t->notes) &&
        amp_buf_fmt(b, err, "Note of the admin: %s\n", text_newest(t->notes)) < 0)
        return -1;
    if (add_unverified(st, b, err) < 0)
        return -1;
    if (b->len && b->data[b->len - 1] == '\n')
        b->data[--b->len] = 0;
    return 0;
}

/* The required checks of this commit; NULL if the last CI status is of another commit. */
static json_t *checks_for(const struct amp_step *st, const struct amp_task_part *p)
{
    const char *commit = json_string_value(json_object_get(st->t.ci, "commit"));
    json_t *all = json_object_get(st->t.ci, "checks"), *state, *some;
    const char *name;
    if (!commit || !amp_step_same_commit(commit, amp_span_str(p->commit)) ||
        !(some = json_object()))
        return NULL;
    json_object_foreach (all, name, state) {
        if (amp_task_policy_counts(st->policy, name))
            json_object_set(some, name, state);
    }
    return some;
}

int amp_step_emit_review(struct amp_step *st, struct amp_task_part *p, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    const char *since = last_reviewed(t, p);
    size_t at = st->text.len;
    char *id = next_id(st);
    bool incremental = *since && *p->commit && !st->policy->risk[t->risk].full_review;
    AMP_BUF struct amp_buf url = {0};
    AMP_BUF struct amp_buf notes = {0};
    amp_buf_init(&url, NOTE_MAX);
    amp_buf_init(&notes, (size_t)48 << 20);
    if (diff_url(t, incremental ? since : t->base, p->commit, &url, err) < 0 ||
        amp_buf_str(&notes, "", err) < 0 || notes_for(st, p, &notes, err) < 0)
        return -1;
    json_auto_t *checks = checks_for(st, p);
    const struct amp_review_args a = {
        .task_id = t->id,
        .dispatch_ref = p->dispatch_ref,
        .result_ref = p->result_ref,
        .diff_url = url.data,
        .incremental = incremental,
        .reject_count = t->reject_count,
        .ack_timeout_sec = st->c->opt->ack_timeout_sec,
        .now_ms = st->now_ms,
        .notes = notes.data ? notes.data : "",
        .checks = checks,
    };
    if (amp_compose_review(&a, &st->text, id, err) < 0 || line_add(st, at, true, err) < 0)
        return -1;
    return amp_task_set(&p->request_ref, amp_span_str(id), err);
}

/* The escalation of each effect. */
static const struct escalation {
    uint32_t effect;
    const char *type, *why, *text; /* why: of why_of */
    const char *suggested[4];
} escalations[] = {
    {AMP_QA_DO_ESC_LOCK,
     "hallucination_lock",
     "rejected too often",
     "Rejected too often in a row (qa.lock_after); the task is suspended",
     {"resume with a note on what to change in the code",
      "redispatch with changed or smaller criteria", "rollback to a commit, or terminate", NULL}},
    {AMP_QA_DO_ESC_CONFLICT,
     "conflict",
     "contradicting verdicts",
     "Executor and reviewer contradict each other",
     {"read the diff and the verdict, then resume with a note", "redispatch", "terminate", NULL}},
    {AMP_QA_DO_ESC_CI,
     "ci_failure",
     "CI failed",
     "CI failed again",
     {"read the failing checks, then resume with a note", "rollback to the last commit that passed",
      "terminate", NULL}},
    {AMP_QA_DO_ESC_CONFIDENCE,
     "unknown",
     "the reviewer is not sure",
     "The reviewer's confidence is too low; the verdict was not sent to the executor",
     {"resume: apply the verdict", "redispatch: do the work again", "terminate", NULL}},
    {AMP_QA_DO_ESC_APPROVAL,
     "unknown",
     "needs your approval",
     "The reviewer approved; this risk level also needs your approval",
     {"resume: approve, the task is done", "redispatch: do the work again", "terminate", NULL}},
    {AMP_QA_DO_ESC_BLOCKED,
     "unknown",
     NULL,
     "The work cannot continue",
     {"remove the blocker, then resume", "redispatch with changed criteria", "terminate", NULL}},
    {AMP_QA_DO_ESC_MERGE,
     "unknown",
     "may it be merged?",
     "Approved, but the branch has moved on; may the work be merged with it",
     {"resume: merge it", "redispatch: the executor merges, and the reviewer sees it", "terminate",
      NULL}},
    {AMP_QA_DO_ESC_UNLANDED,
     "conflict",
     "does not land",
     "Approved, but it did not land too often in a row (qa.lock_after)",
     {"resume: the executor tries again, with a note on what to do", "redispatch", "terminate",
      NULL}},
};

static int reason_add(const struct amp_step *st, const struct amp_task_part *p,
                      const struct escalation *e, struct amp_buf *b, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    bool lands = e->effect & (AMP_QA_DO_ESC_MERGE | AMP_QA_DO_ESC_UNLANDED);
    if (amp_buf_str(b, e->text, err) < 0 ||
        (st->t.n_parts > 1 && amp_buf_fmt(b, err, " (subtask %s)", p->id) < 0) ||
        amp_buf_str(b, ".", err) < 0 || (lands && add_texts(b, "", st->t.blockers, err) < 0))
        return -1;
    if (v->kind == AMP_KIND_VERDICT &&
        (amp_buf_fmt(b, err, " The verdict is %s, with confidence %.2f.",
                     amp_verdict_name(v->body.verdict.decision), v->body.verdict.confidence) < 0 ||
         add_issues(b, st->t.issues, err) < 0))
        return -1;
    if (v->kind == AMP_KIND_RESULT &&
        (amp_buf_fmt(b, err, " The result is %s.", amp_completion_name(v->body.result.completion)) <
             0 ||
         add_texts(b, " Blockers:", st->t.blockers, err) < 0))
        return -1;
    if (v->kind == AMP_KIND_NACK &&
        amp_buf_fmt(b, err, " %.*s refused it (%.*s): %.*s", (int)v->from.n,
                    v->from.p ? v->from.p : "", (int)v->body.ack.code.n,
                    v->body.ack.code.p ? v->body.ack.code.p : "",
                    (int)(v->body.ack.note.n < 2000 ? v->body.ack.note.n : 2000),
                    v->body.ack.note.p ? v->body.ack.note.p : "") < 0)
        return -1;
    return 0;
}

static const char *type_of(const struct amp_step *st, const struct amp_task_part *p,
                           const struct escalation *e)
{
    const struct amp_view *v = st->view;
    if (e->effect != AMP_QA_DO_ESC_BLOCKED)
        return e->type;
    if (v->kind == AMP_KIND_NACK && amp_span_is(v->body.ack.code, AMP_CODE(branch_violation)))
        return "branch_violation";
    if (v->kind != AMP_KIND_RESULT)
        return e->type;
    const struct amp_result_rule *rule = amp_task_policy_result(
        st->policy, v->body.result.completion, &v->body.result.blockers, p->attempts);
    return *rule->type ? rule->type : e->type;
}

/* Why it asks, in a person's words; NULL: its type says it. */
static const char *why_of(const struct amp_view *v, const struct escalation *e, const char *type)
{
    if (e->why || strcmp(type, "unknown") != 0)
        return e->why;
    if (v->kind == AMP_KIND_RESULT)
        return v->body.result.completion == AMP_COMPLETION_FAILED ? "failed" : "not complete";
    if (v->kind != AMP_KIND_NACK)
        return "cannot continue";
    return amp_span_is(v->body.ack.code, AMP_CODE(no_verdict)) ? "gave no verdict"
                                                               : "refused the work";
}

static int escalation_add(struct amp_step *st, struct amp_task_part *p, const struct escalation *e,
                          enum amp_level level, struct amp_error *err)
{
    struct amp_task *t = &st->t;
    const char *refs[6] = {NULL};
    size_t n = 0, at = st->text.len;
    char *id = next_id(st), this_id[AMP_MSG_ID_MAX];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)16 << 20);
    add_ref(refs, &n, p->dispatch_ref);
    add_ref(refs, &n, p->result_ref);
    add_ref(refs, &n, p->verdict_ref);
    if (amp_span_copy(st->view->id, this_id, sizeof this_id))
        add_ref(refs, &n, this_id);
    if (reason_add(st, p, e, &text, err) < 0)
        return -1;
    struct amp_escalation_args a = {
        .type = type_of(st, p, e),
        .from = "coordinator",
        .severity = level,
        .triggered_by = "coordinator",
        .task_id = t->id,
        .description = text.data,
        .affected = refs,
        .suggested = e->suggested,
        .task_status = amp_task_fsm.states[t->state].name,
        .last_successful = t->last_ref,
        .reject_count = t->reject_count,
        .now_ms = st->now_ms,
    };
    if (amp_compose_escalation(&a, &st->text, id, err) < 0 || line_add(st, at, false, err) < 0)
        return -1;
    if (level == AMP_LEVEL_INFO)
        return 0;
    if ((e->effect & AMP_QA_DO_ESC_MERGE) &&
        amp_task_set(&t->merge_asked, amp_span_str(id), err) < 0)
        return -1;
    if (level == AMP_LEVEL_CRITICAL) {
        amp_span_copy(amp_span_str(id), st->suspend_ref, sizeof st->suspend_ref);
        amp_span_copy(amp_span_str(a.type), st->suspend_type, sizeof st->suspend_type);
    }
    const struct amp_task_asked asked = {.ref = id,
                                         .type = a.type,
                                         .why = why_of(st->view, e, a.type),
                                         .severity = amp_level_name(level)};
    return amp_task_open_escalation(t, &asked, st->now_ms, err);
}

int amp_step_emit_escalations(struct amp_step *st, struct amp_task_part *p, uint32_t effects,
                              enum amp_level level, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof escalations / sizeof escalations[0]; i++)
        if ((effects & escalations[i].effect) &&
            escalation_add(st, p, &escalations[i], level, err) < 0)
            return -1;
    return 0;
}

int amp_step_emit_withdrawal(struct amp_step *st, struct amp_error *err)
{
    const struct amp_view of = {.id = amp_span_str(st->withdrawn), .task = st->view->task};
    char why[256];
    size_t at = st->text.len;
    char *id = next_id(st);
    amp_span_copy(st->view->body.ack.note, why, sizeof why);
    snprintf(id, AMP_MSG_ID_MAX, "withdrawn-%.*s", (int)(AMP_MSG_ID_MAX - 12), st->withdrawn);
    if (amp_compose_nack(&of, AMP_STAGE_FAILED, "coordinator", AMP_HITL_WITHDRAWN, why, "", false,
                         st->now_ms, &st->text, err) < 0)
        return -1;
    return line_add(st, at, false, err);
}

void amp_step_forward_id(const struct amp_view *v, char out[AMP_MSG_ID_MAX])
{
    char sum[AMP_SHA256_MAX], task[AMP_TASK_ID_MAX];
    if (amp_intake_is_to(v, "admin")) {
        amp_span_copy(v->id, out, AMP_MSG_ID_MAX);
        return;
    }
    amp_span_copy(v->task, task, sizeof task);
    amp_sha256_hex(v->id, sum);
    sum[15] = 0;
    snprintf(out, AMP_MSG_ID_MAX, "escalation-%s-%llu", task, strtoull(sum, NULL, 16));
}

/* The escalation, from the coordinator to the admin. It gets an id of its own, because another
 * message with the sender's id would be a conflict. */
static int escalation_readdress(const struct amp_view *v, const char *id, struct amp_buf *out,
                                struct amp_error *err)
{
    json_auto_t *j = amp_json_load(v->message, err);
    if (!j)
        return -1;
    json_t *refs = json_object_get(j, "context_ref");
    refs = json_is_array(refs) ? json_copy(refs) : json_array();
    if (json_array_append_new(refs, json_stringn(v->id.p, v->id.n)) < 0 ||
        json_object_set_new(j, "context_ref", refs) < 0 ||
        json_object_set_new(j, "msg_id", json_string(id)) < 0 ||
        json_object_set_new(j, "from", json_string("coordinator")) < 0 ||
        json_object_set_new(j, "to", json_string("admin")) < 0 ||
        json_object_set_new(j, "requires_ack", json_false()) < 0)
        return amp_fail_memory(err);
    json_object_del(j, "ack_timeout_sec");
    return amp_json_dump(j, out, err);
}

int amp_step_forward(struct amp_step *st, struct amp_error *err)
{
    size_t at = st->text.len;
    const struct amp_view *v = st->view;
    char *id = next_id(st);
    amp_step_forward_id(v, id);
    if ((amp_span_is(v->id, id) ? amp_buf_add(&st->text, v->line.p, v->line.n, err)
                                : escalation_readdress(v, id, &st->text, err)) < 0 ||
        amp_buf_str(&st->text, "\n", err) < 0)
        return -1;
    return line_add(st, at, false, err);
}
