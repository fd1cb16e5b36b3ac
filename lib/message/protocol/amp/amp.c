/* AMP/1.0: the five messages of the quality loop and the control records beside them. */
#include <stddef.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/amp/amp.h"
#include "message/protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

/* A bare view has the rows that the rules read. The number is that of the last rows, which the
 * rules do not read. */
enum { VIEW_ROWS = 2, SUBTASK_ROWS = 2, CRITERION_ROWS = 2, ISSUE_ROWS = 4 };
static const struct amp_fill_row envelope[] = {
    {AMP_AT("/msg_id"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/from"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/to"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/requires_ack"), AMP_AS_BOOL, V(needs_ack), 0, NULL},
    {AMP_AT("/ack_timeout_sec"), AMP_AS_SECONDS, V(ack_timeout_ms), V(has_ack_timeout), NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
    {AMP_AT("/ref_msg_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/timestamp"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/context_ref"), AMP_AS_TEXTS, V(context), 0, NULL},
};

#define S(field) offsetof(struct amp_subtask, field)
static const struct amp_fill_row subtask_rows[] = {
    {AMP_AT("/subtask_id"), AMP_AS_TEXT, S(id), 0, NULL},
    {AMP_AT("/description"), AMP_AS_TEXT, S(description), 0, NULL},
    {AMP_AT("/estimated_lines"), AMP_AS_INT, S(estimated_lines), 0, NULL},
};
#undef S
static const struct amp_fill_table subtasks = AMP_FILL_TABLE(struct amp_subtask, subtask_rows);
static const struct amp_fill_table bare_subtasks =
    AMP_FILL_TABLE_BUT(struct amp_subtask, subtask_rows, SUBTASK_ROWS);

static const struct amp_fill_row dispatch_rows[] = {
    {AMP_AT("/description"), AMP_AS_TEXT, B(dispatch.description), 0, NULL},
    {AMP_AT("/repo"), AMP_AS_TEXT, B(dispatch.repo), 0, NULL},
    {AMP_AT("/branch"), AMP_AS_TEXT, B(dispatch.branch), 0, NULL},
    {AMP_AT("/subtasks"), AMP_AS_LIST, B(dispatch.subtasks), B(dispatch.n_subtasks), &subtasks},
    {AMP_AT("/acceptance_criteria"), AMP_AS_TEXTS, B(dispatch.criteria), 0, NULL},
    {AMP_AT("/forbidden_actions"), AMP_AS_TEXTS, B(dispatch.forbidden), 0, NULL},
    {AMP_AT("/tech_constraints"), AMP_AS_SOURCE, B(dispatch.constraints), 0, NULL},
    {AMP_AT("/risk_level"), AMP_AS_WORD, B(dispatch.risk), 0, &amp_words_risk},
};
static const struct amp_fill_table dispatch = AMP_FILL_TABLE(struct amp_body, dispatch_rows);

static const struct amp_fill_row result_rows[] = {
    {AMP_AT("/subtask_id"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/commit_hash"), AMP_AS_TEXT, B(result.commit), 0, NULL},
    {AMP_AT("/completion_status"), AMP_AS_WORD, B(result.completion), 0, &amp_words_completion},
    {AMP_AT("/diff_summary/files_changed"), AMP_AS_TEXTS, B(result.files_changed), 0, NULL},
    {AMP_AT("/diff_summary/lines_added"), AMP_AS_INT, B(result.lines_added), 0, NULL},
    {AMP_AT("/diff_summary/lines_removed"), AMP_AS_INT, B(result.lines_removed), 0, NULL},
    {AMP_AT("/self_assessment/criteria_met"), AMP_AS_TRIS, B(result.criteria_met),
     B(result.n_criteria_met), NULL},
    {AMP_AT("/self_assessment/notes"), AMP_AS_TEXTS, B(result.notes), 0, NULL},
    {AMP_AT("/blockers"), AMP_AS_TEXTS, B(result.blockers), 0, NULL},
};
static const struct amp_fill_table result = AMP_FILL_TABLE(struct amp_body, result_rows);

static const struct amp_fill_row review_rows[] = {
    {AMP_AT("/original_dispatch_ref"), AMP_AS_TEXT, B(review.dispatch_ref), 0, NULL},
    {AMP_AT("/task_result_ref"), AMP_AS_TEXT, B(review.result_ref), 0, NULL},
    {AMP_AT("/diff_url"), AMP_AS_TEXT, B(review.diff_url), 0, NULL},
    {AMP_AT("/coordinator_notes"), AMP_AS_TEXT, B(review.notes), 0, NULL},
    {AMP_AT("/reject_count"), AMP_AS_INT, B(review.reject_count), 0, NULL},
};
static const struct amp_fill_table review = AMP_FILL_TABLE(struct amp_body, review_rows);

#define C(field) offsetof(struct amp_criterion, field)
static const struct amp_fill_row criterion_rows[] = {
    {AMP_AT("/passed"), AMP_AS_TRI, C(passed), 0, NULL},
    {AMP_AT("/criterion"), AMP_AS_TEXT, C(criterion), 0, NULL},
    {AMP_AT("/evidence"), AMP_AS_TEXT, C(evidence), 0, NULL},
};
#undef C
#define I(field) offsetof(struct amp_issue, field)
static const struct amp_fill_row issue_rows[] = {
    {AMP_AT("/severity"), AMP_AS_TEXT, I(severity), 0, NULL},
    {AMP_AT("/file"), AMP_AS_TEXT, I(file), 0, NULL},
    {AMP_AT("/line"), AMP_AS_INT, I(line), 0, NULL},
    {AMP_AT("/description"), AMP_AS_TEXT, I(description), 0, NULL},
    {AMP_AT("/suggested_fix"), AMP_AS_TEXT, I(suggested_fix), 0, NULL},
};
#undef I
#define F(field) offsetof(struct amp_fix, field)
static const struct amp_fill_row fix_rows[] = {
    {AMP_AT("/file"), AMP_AS_TEXT, F(file), 0, NULL},
    {AMP_AT("/change_type"), AMP_AS_TEXT, F(change_type), 0, NULL},
    {AMP_AT("/diff_lines"), AMP_AS_INT, F(diff_lines), 0, NULL},
};
#undef F
static const struct amp_fill_table criteria = AMP_FILL_TABLE(struct amp_criterion, criterion_rows);
static const struct amp_fill_table issues = AMP_FILL_TABLE(struct amp_issue, issue_rows);
static const struct amp_fill_table fixes = AMP_FILL_TABLE(struct amp_fix, fix_rows);
static const struct amp_fill_table bare_criteria =
    AMP_FILL_TABLE_BUT(struct amp_criterion, criterion_rows, CRITERION_ROWS);
static const struct amp_fill_table bare_issues =
    AMP_FILL_TABLE_BUT(struct amp_issue, issue_rows, ISSUE_ROWS);

static const struct amp_fill_row verdict_rows[] = {
    {AMP_AT("/decision"), AMP_AS_WORD, B(verdict.decision), 0, &amp_words_verdict},
    {AMP_AT("/criteria_results"), AMP_AS_LIST, B(verdict.criteria), B(verdict.n_criteria),
     &criteria},
    {AMP_AT("/issues"), AMP_AS_LIST, B(verdict.issues), B(verdict.n_issues), &issues},
    {AMP_AT("/direct_fixes"), AMP_AS_LIST, B(verdict.fixes), B(verdict.n_fixes), &fixes},
    {AMP_AT("/confidence"), AMP_AS_REAL, B(verdict.confidence), 0, NULL},
};
static const struct amp_fill_table verdict = AMP_FILL_TABLE(struct amp_body, verdict_rows);

static const struct amp_fill_row escalation_rows[] = {
    {AMP_AT("/escalation_type"), AMP_AS_TEXT, B(escalation.type), 0, NULL},
    {AMP_AT("/severity"), AMP_AS_WORD, B(escalation.severity), 0, &amp_words_level},
    {AMP_AT("/triggered_by"), AMP_AS_TEXT, B(escalation.triggered_by), 0, NULL},
    {AMP_AT("/description"), AMP_AS_TEXT, B(escalation.description), 0, NULL},
    {AMP_AT("/affected_msgs"), AMP_AS_TEXTS, B(escalation.affected), 0, NULL},
    {AMP_AT("/suggested_actions"), AMP_AS_TEXTS, B(escalation.suggested), 0, NULL},
    {AMP_AT("/system_state_snapshot/task_status"), AMP_AS_TEXT, B(escalation.task_status), 0, NULL},
    {AMP_AT("/system_state_snapshot/reject_count"), AMP_AS_INT, B(escalation.reject_count), 0,
     NULL},
    {AMP_AT("/auto_suspended"), AMP_AS_BOOL, B(escalation.auto_suspended), 0, NULL},
};
static const struct amp_fill_table escalation = AMP_FILL_TABLE(struct amp_body, escalation_rows);

static const struct amp_fill_row ack_rows[] = {
    {AMP_AT("/ref_msg_id"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/ack_stage"), AMP_AS_WORD, B(ack.stage), 0, &amp_words_stage},
    {AMP_AT("/note"), AMP_AS_TEXT, B(ack.note), 0, NULL},
};
static const struct amp_fill_table ack = AMP_FILL_TABLE(struct amp_body, ack_rows);

static const struct amp_fill_row nack_rows[] = {
    {AMP_AT("/ref_msg_id"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/failed_stage"), AMP_AS_WORD, B(ack.stage), 0, &amp_words_stage},
    {AMP_AT("/code"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/message"), AMP_AS_TEXT, B(ack.note), 0, NULL},
    {AMP_AT("/retryable"), AMP_AS_BOOL, B(ack.retryable), 0, NULL},
};
static const struct amp_fill_table nack = AMP_FILL_TABLE(struct amp_body, nack_rows);

static const struct amp_fill_row decision_rows[] = {
    {AMP_AT("/ref_msg_id"), AMP_AS_TEXT, B(decision.ref), 0, NULL},
    {AMP_AT("/decision"), AMP_AS_WORD, B(decision.word), 0, &amp_words_do},
    {AMP_AT("/note"), AMP_AS_TEXT, B(decision.note), 0, NULL},
    {AMP_AT("/commit"), AMP_AS_TEXT, B(decision.commit), 0, NULL},
    {AMP_AT("/operator"), AMP_AS_TEXT, B(decision.op), 0, NULL},
    {AMP_AT("/acceptance_criteria"), AMP_AS_TEXTS, B(decision.criteria), 0, NULL},
};
static const struct amp_fill_table decision = AMP_FILL_TABLE(struct amp_body, decision_rows);

static const struct amp_fill_row ci_rows[] = {
    {AMP_AT("/branch"), AMP_AS_TEXT, B(ci.branch), 0, NULL},
    {AMP_AT("/commit"), AMP_AS_TEXT, B(ci.commit), 0, NULL},
    {AMP_AT("/checks"), AMP_AS_SOURCE, B(ci.checks), 0, NULL},
};
static const struct amp_fill_table ci = AMP_FILL_TABLE(struct amp_body, ci_rows);

static const struct amp_fill_row bare_dispatch_rows[] = {
    {AMP_AT("/repo"), AMP_AS_TEXT, B(dispatch.repo), 0, NULL},
    {AMP_AT("/branch"), AMP_AS_TEXT, B(dispatch.branch), 0, NULL},
    {AMP_AT("/subtasks"), AMP_AS_LIST, B(dispatch.subtasks), B(dispatch.n_subtasks),
     &bare_subtasks},
    {AMP_AT("/acceptance_criteria"), AMP_AS_TEXTS, B(dispatch.criteria), 0, NULL},
};
static const struct amp_fill_table bare_dispatch =
    AMP_FILL_TABLE(struct amp_body, bare_dispatch_rows);

static const struct amp_fill_row bare_verdict_rows[] = {
    {AMP_AT("/decision"), AMP_AS_WORD, B(verdict.decision), 0, &amp_words_verdict},
    {AMP_AT("/criteria_results"), AMP_AS_LIST, B(verdict.criteria), B(verdict.n_criteria),
     &bare_criteria},
    {AMP_AT("/issues"), AMP_AS_LIST, B(verdict.issues), B(verdict.n_issues), &bare_issues},
    {AMP_AT("/direct_fixes"), AMP_AS_LIST, B(verdict.fixes), B(verdict.n_fixes), &fixes},
};
static const struct amp_fill_table bare_verdict =
    AMP_FILL_TABLE(struct amp_body, bare_verdict_rows);

/* The last numbers are the default acknowledgement timeouts, in seconds. */
static const struct amp_kind_row kinds[] = {
    {"task_dispatch", AMP_KIND_DISPATCH, &dispatch, true, "amp/task_dispatch.json", true, 300,
     &bare_dispatch},
    {"task_result", AMP_KIND_RESULT, &result, true, "amp/task_result.json", true, 300,
     &amp_fill_nothing},
    {"review_request", AMP_KIND_REVIEW, &review, true, "amp/review_request.json", true, 300},
    {"review_verdict", AMP_KIND_VERDICT, &verdict, true, "amp/review_verdict.json", true, 300,
     &bare_verdict},
    {"escalation", AMP_KIND_ESCALATION, &escalation, true, "amp/escalation.json", false, 300,
     &amp_fill_nothing},
    {"ack", AMP_KIND_ACK, &ack, false, "amp/ack.json", false, 0, &amp_fill_nothing},
    {"nack", AMP_KIND_NACK, &nack, false, "amp/nack.json", false, 0, &amp_fill_nothing},
    {"decision", AMP_KIND_DECISION, &decision, false, "amp/decision.json", false, 0,
     &amp_fill_nothing},
    {"ci_status", AMP_KIND_CI_STATUS, &ci, false, "amp/ci_status.json", false, 0,
     &amp_fill_nothing},
};

#define FIX "payload.direct_fixes[]"
static const struct amp_code_row codes[] = {
    {"protocol_version", "const", AMP_CODE(version_incompatible), "AMP/1.0"},
    {"msg_id", "pattern", AMP_CODE(bad_msg_id), "{type}-{task_id}-{number}"},
    {"msg_id", "maxLength", AMP_CODE(bad_msg_id), "at most 200 characters"},
    {"task_id", "pattern", AMP_CODE(bad_task_id), "T-YYYY-NNN, such as T-2026-044"},
    {"type", "enum", AMP_CODE(bad_enum), NULL},
    {"payload.acceptance_criteria", "required", AMP_CODE(empty_acceptance_criteria),
     "a list of at least one criterion"},
    {"payload.acceptance_criteria", "minItems", AMP_CODE(empty_acceptance_criteria),
     "a list of at least one criterion"},
    {"payload.acceptance_criteria[]", "minLength", AMP_CODE(empty_acceptance_criteria),
     "a criterion that is not empty"},
    {"payload.blockers", "minItems", AMP_CODE(missing_field), "at least one blocker"},
    {"payload.issues", "minItems", AMP_CODE(missing_field), "at least one issue"},
    {"payload.direct_fixes", "minItems", AMP_CODE(missing_field), "at least one fix"},
    {"payload.blockers", "maxItems", AMP_CODE(bad_value), "none if completion_status is complete"},
    {FIX ".change_type", "enum", AMP_CODE(fix_out_of_range),
     "typo, lint, whitespace or import_order"},
    {FIX ".diff_lines", "maximum", AMP_CODE(fix_out_of_range), "0 to 4"},
    {FIX ".diff_lines", "minimum", AMP_CODE(fix_out_of_range), "0 to 4"},
    {"payload.auto_suspended", "const", AMP_CODE(must_suspend),
     "true; false is allowed only with severity info"},
    {"*", "format", AMP_CODE(bad_timestamp),
     "RFC 3339 with an offset or Z, such as 2026-02-26T14:32:07+00:00"},
    {"*", "required", AMP_CODE(missing_field), NULL},
    {"*", "additionalProperties", AMP_CODE(unknown_field), NULL},
    {"*", "type", AMP_CODE(bad_type), NULL},
    {"*", "enum", AMP_CODE(bad_enum), NULL},
    {"*", "*", AMP_CODE(bad_value), NULL},
    {NULL, NULL, NULL, NULL},
};

static const struct amp_mark marks[] = {
    {"protocol_version", "AMP/", true, false},
    {"msg_id", "", false, true},
    {"type", "", false, false},
    {"task_id", "", false, false},
    {NULL, NULL, false, false},
};

static enum amp_detected object_detect(const struct amp_tape *t, uint32_t object)
{
    if (amp_object_has(t, object, "msg_id"))
        return AMP_DETECT_ALWAYS;
    if (amp_object_starts(t, object, "protocol_version", "AMP/"))
        return AMP_DETECT_YES;
    if (!amp_object_has(t, object, "type") || !amp_object_has(t, object, "task_id"))
        return amp_object_has(t, object, "protocol_version") ? AMP_DETECT_NO : AMP_DETECT_NEVER;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(kinds); i++)
        if (amp_object_is(t, object, "type", kinds[i].type))
            return AMP_DETECT_YES;
    return AMP_DETECT_NO;
}

static void verdict_finish(struct amp_body *b)
{
    /* The lists are in the arena, made for this view. */
    struct amp_issue *issue = (struct amp_issue *)(uintptr_t)b->verdict.issues;
    struct amp_fix *fix = (struct amp_fix *)(uintptr_t)b->verdict.fixes;
    for (uint32_t i = 0; i < b->verdict.n_issues; i++) {
        issue[i].blocking = !amp_span_is(issue[i].severity, "minor");
        b->verdict.n_blocking += issue[i].blocking;
    }
    for (uint32_t i = 0; i < b->verdict.n_fixes; i++)
        if (amp_span_is(fix[i].change_type, "import"))
            fix[i].change_type = AMP_SPAN("import_order");
}

static int ci_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    uint32_t failed = amp_amp_failed_check(v);
    v->body.ci.failed = failed != AMP_TOK_NONE;
    if (failed != AMP_TOK_NONE &&
        amp_fill_text(v->tape, failed, arena, &v->body.ci.first_failed, err) < 0)
        return -1;
    uint32_t checks = amp_tape_get(v->tape, 0, AMP_SPAN("checks"));
    v->body.ci.pending = amp_amp_check_in_state(v->tape, checks, "running") != AMP_TOK_NONE;
    return 0;
}

/* The sender and the recipient of a record that does not name them. */
static int parties_set(struct amp_view *v, struct amp_span from, struct amp_arena *arena,
                       struct amp_error *err)
{
    struct amp_span *to = amp_arena_get(arena, sizeof *to);
    if (!to)
        return amp_fail_memory(err);
    *to = AMP_SPAN("coordinator");
    v->from = from;
    v->to = to;
    v->n_to = 1;
    return 0;
}

static int view_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    switch (v->kind) {
    case AMP_KIND_REVIEW:
        v->body.review.incremental =
            amp_object_is(v->tape, v->payload, "review_scope", "incremental");
        v->body.review.ci_failed = amp_amp_failed_check(v) != AMP_TOK_NONE;
        return 0;
    case AMP_KIND_VERDICT:
        verdict_finish(&v->body);
        return 0;
    case AMP_KIND_DECISION:
        return parties_set(v, AMP_SPAN("admin"), arena, err);
    case AMP_KIND_CI_STATUS:
        if (ci_finish(v, arena, err) < 0)
            return -1;
        return parties_set(v, AMP_SPAN("system"), arena, err);
    default:
        return 0;
    }
}

const struct amp_spec amp_spec_amp = {
    .protocol = AMP_PROTO_AMP,
    .detect = object_detect,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .bare = AMP_FILL_TABLE_BUT(struct amp_view, envelope, VIEW_ROWS),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "amp/message.json",
    .codes = codes,
    .alone_field = "type",
    .heads = true,
    .id = "msg_id",
    .beside = {"protocol_version", "type", "from", "task_id", "payload"},
    .marks = marks,
    .refuse = amp_amp_refuse,
    .finish = view_finish,
    .rules = amp_amp_rules,
    .history = ~0u,
};
