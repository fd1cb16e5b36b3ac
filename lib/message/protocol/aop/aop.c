/*
 * AOP 2.0.2-C: detection, the kinds and the view. Detection follows the contract (§1.3): JSON whose
 * aop_version starts with "2." is version 2; anything else that claims or is said to be AOP is
 * version 1 (version.c) or UNSTRUCTURED.
 */
#include "message/protocol/aop/aop.h"

#include <stddef.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/spec.h"

#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

/* The other members of the view depend on the type: see view_finish. */
static const struct amp_fill_row envelope[] = {
    {AMP_AT("/message_type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/task"), AMP_AS_TOKEN, V(payload), 0, NULL},
};

static const struct amp_fill_row session_rows[] = {
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(session), 0, NULL},
    {AMP_AT("/created_at"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/orchestrator"), AMP_AS_TEXT, V(from), 0, NULL},
};
static const struct amp_fill_row target_rows[] = {
    {AMP_AT("/agent_name"), AMP_AS_NAMES, V(to), V(n_to), NULL},
};
static const struct amp_fill_row task_rows[] = {
    {AMP_AT("/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/attempt"), AMP_AS_INT, V(attempt), V(has_attempt), NULL},
};
static const struct amp_fill_row response_rows[] = {
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(session), 0, NULL},
    {AMP_AT("/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/agent/name"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/timing/completed_at"), AMP_AS_TIME, V(created_ms), 0, NULL},
};
static const struct amp_fill_row event_rows[] = {
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/session_id"), AMP_AS_TEXT, V(session), 0, NULL},
    {AMP_AT("/task_id"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/timestamp"), AMP_AS_TIME, V(created_ms), 0, NULL},
    {AMP_AT("/agent"), AMP_AS_TEXT, V(from), 0, NULL},
};
static const struct amp_fill_table session = AMP_FILL_TABLE(struct amp_view, session_rows);
static const struct amp_fill_table target = AMP_FILL_TABLE(struct amp_view, target_rows);
static const struct amp_fill_table task = AMP_FILL_TABLE(struct amp_view, task_rows);
static const struct amp_fill_table response = AMP_FILL_TABLE(struct amp_view, response_rows);
static const struct amp_fill_table event = AMP_FILL_TABLE(struct amp_view, event_rows);

/* AOP's words in the order of the enums; words beyond an enum are clamped. */
#define WORDS(name, ...)                                                                           \
    static const char *const name##_list[] = {__VA_ARGS__};                                        \
    static const struct amp_word_list name = {name##_list, AMP_SPEC_COUNT(name##_list)}
WORDS(complexity, "", "LOW", "MEDIUM", "HIGH", "CRITICAL");               /* enum amp_risk */
WORDS(signal, "SUCCESS", "PARTIAL_SUCCESS", "FAILURE", "ABORTED");        /* amp_completion */
WORDS(state, "COMPLETED", "SKIPPED", "IN_PROGRESS", "PENDING", "FAILED"); /* see response_finish */
WORDS(urgency, "NORMAL", "HIGH", "CRITICAL");                             /* enum amp_level */

static const struct amp_fill_row dispatch_rows[] = {
    {AMP_AT("/objective"), AMP_AS_TEXT, B(dispatch.description), 0, NULL},
    {AMP_AT("/complexity"), AMP_AS_WORD, B(dispatch.risk), 0, &complexity},
    {AMP_AT("/environment/workspace_root"), AMP_AS_TEXT, B(dispatch.repo), 0, NULL},
    {AMP_AT("/environment/git_branch"), AMP_AS_TEXT, B(dispatch.branch), 0, NULL},
    {AMP_AT("/constraints"), AMP_AS_SOURCE, B(dispatch.constraints), 0, NULL},
};
#define S(field) offsetof(struct amp_subtask, field)
static const struct amp_fill_row phase_rows[] = {
    {AMP_AT("/phase_id"), AMP_AS_TEXT, S(id), 0, NULL},
    {AMP_AT("/objective"), AMP_AS_TEXT, S(description), 0, NULL},
};
#undef S
static const struct amp_fill_table phase = AMP_FILL_TABLE(struct amp_subtask, phase_rows);
static const struct amp_fill_row phases_rows[] = {
    {AMP_AT("/phases"), AMP_AS_LIST, B(dispatch.subtasks), B(dispatch.n_subtasks), &phase},
};
static const struct amp_fill_table phases = AMP_FILL_TABLE(struct amp_body, phases_rows);
static const struct amp_fill_row result_rows[] = {
    {AMP_AT("/task_status/final_signal"), AMP_AS_WORD, B(result.completion), 0, &signal},
    {AMP_AT("/execution_summary/actions"), AMP_AS_TEXTS, B(result.notes), 0, NULL},
    {AMP_AT("/execution_summary/errors"), AMP_AS_TEXTS, B(result.blockers), 0, NULL},
    {AMP_AT("/error_details/error_code"), AMP_AS_TEXT, B(result.failure), 0, NULL},
};
static const struct amp_fill_row escalation_rows[] = {
    {AMP_AT("/event"), AMP_AS_TEXT, B(escalation.type), 0, NULL},
    {AMP_AT("/new_priority"), AMP_AS_WORD, B(escalation.severity), 0, &urgency},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(escalation.description), 0, NULL},
    {AMP_AT("/escalated_by"), AMP_AS_TEXT, B(escalation.triggered_by), 0, NULL},
};
static const struct amp_fill_row heartbeat_rows[] = {
    {AMP_AT("/progress_percentage"), AMP_AS_REAL, B(progress.percent), B(progress.has_percent),
     NULL},
    {AMP_AT("/current_phase"), AMP_AS_TEXT, B(progress.phase), 0, NULL},
    {AMP_AT("/current_checkpoint"), AMP_AS_TEXT, B(progress.checkpoint), 0, NULL},
};
static const struct amp_fill_row progress_rows[] = {
    {AMP_AT("/progress/percentage"), AMP_AS_REAL, B(progress.percent), B(progress.has_percent),
     NULL},
    {AMP_AT("/progress/current_phase"), AMP_AS_TEXT, B(progress.phase), 0, NULL},
    {AMP_AT("/progress/current_checkpoint"), AMP_AS_TEXT, B(progress.checkpoint), 0, NULL},
    {AMP_AT("/progress/message"), AMP_AS_TEXT, B(progress.note), 0, NULL},
    {AMP_AT("/progress/estimated_time_remaining_seconds"), AMP_AS_SECONDS, B(progress.eta_ms), 0,
     NULL},
};
static const struct amp_fill_row fallback_rows[] = {
    {AMP_AT("/reason"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/error_details/message"), AMP_AS_TEXT, B(ack.note), 0, NULL},
};
static const struct amp_fill_table dispatch = AMP_FILL_TABLE(struct amp_body, dispatch_rows);
static const struct amp_fill_table result = AMP_FILL_TABLE(struct amp_body, result_rows);
static const struct amp_fill_table escalation = AMP_FILL_TABLE(struct amp_body, escalation_rows);
static const struct amp_fill_table heartbeat = AMP_FILL_TABLE(struct amp_body, heartbeat_rows);
static const struct amp_fill_table progress = AMP_FILL_TABLE(struct amp_body, progress_rows);
static const struct amp_fill_table fallback = AMP_FILL_TABLE(struct amp_body, fallback_rows);

#define TIME  "RFC 3339 with an offset or Z, such as 2026-02-26T14:32:07Z"
#define X_KEY "a key that starts with x_"
static const struct amp_code_row codes[] = {
    {"*extensions.*", "additionalProperties", AMP_CODE(E_SCHEMA_VALIDATION), X_KEY},
    {"task_status", "additionalProperties", AMP_CODE(E_SCHEMA_VALIDATION),
     "none in a TASK; its RESPONSE has one"},
    {"task.inputs", "maxItems", AMP_CODE(E_CONTEXT_OVERFLOW), "at most 100 inputs"},
    {"task.expected_outputs", "maxItems", AMP_CODE(E_CONTEXT_OVERFLOW), "at most 50 outputs"},
    {"*", "format", AMP_CODE(E_SCHEMA_VALIDATION), TIME},
    {"*", "*", AMP_CODE(E_SCHEMA_VALIDATION), NULL},
    {NULL, NULL, NULL, NULL},
};
static const struct amp_code_row response_codes[] = {
    {"*extensions.*", "additionalProperties", AMP_CODE(E_MALFORMED_RESPONSE), X_KEY},
    {"execution_summary.actions", "minItems", AMP_CODE(E_MALFORMED_RESPONSE),
     "at least one action"},
    {"*", "format", AMP_CODE(E_MALFORMED_RESPONSE), TIME},
    {"*", "*", AMP_CODE(E_MALFORMED_RESPONSE), NULL},
    {NULL, NULL, NULL, NULL},
};
static const struct amp_code_row neither_codes[] = {
    {"aop_version", "*", AMP_CODE(E_PARSE_FAILURE),
     "a version that starts with \"2.\", or v1 Markdown"},
    {"", "*", AMP_CODE(E_PARSE_FAILURE), "an AOP message: JSON of version 2, or v1 Markdown"},
    {"*", "*", AMP_CODE(E_SCHEMA_VALIDATION), NULL},
    {NULL, NULL, NULL, NULL},
};

/* The kinds of event: X(word, kind, body, file). */
#define EVENTS(X)                                                                                  \
    X(HEARTBEAT, HEARTBEAT, &heartbeat, "heartbeat")                                               \
    X(PROGRESS_UPDATE, PROGRESS, &progress, "progress_update")                                     \
    X(PRIORITY_ESCALATION, ESCALATION, &escalation, "priority_escalation")                         \
    X(ROLLBACK_INITIATED, OTHER, NULL, "rollback_initiated")                                       \
    X(VERSION_FALLBACK, NACK, &fallback, "version_fallback")                                       \
    X(SESSION_FINAL_REPORT, OTHER, NULL, "session_final_report")

enum row {
    TASK,
    RESPONSE,
#define X(word, kind, body, file) word,
    EVENTS(X)
#undef X
        EVENT, /* of an unknown kind */
    V1,
    NEITHER,
};

#define ROW(type, kind, body, payload, file, codes)                                                \
    {                                                                                              \
        type, AMP_KIND_##kind, body, payload, "aop/" file ".json", false, 0, &amp_fill_nothing,    \
            codes                                                                                  \
    }
#define X(word, kind, body, file) [word] = ROW("EVENT", kind, body, false, file, NULL),
static const struct amp_kind_row kinds[] = {
    EVENTS(X)[TASK] = ROW("TASK", DISPATCH, &dispatch, true, "task", NULL),
    [RESPONSE] = ROW("RESPONSE", RESULT, &result, false, "response", response_codes),
    [EVENT] = ROW("EVENT", OTHER, NULL, false, "event", NULL),
    [V1] = ROW(AMP_AOP_V1, DISPATCH, NULL, false, "envelope", NULL),
    [NEITHER] = ROW(AMP_AOP_NEITHER, OTHER, NULL, false, "envelope", neither_codes),
};
#undef X

static enum row event_row(const struct amp_tape *t)
{
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("event"));
    if (tok == AMP_TOK_NONE)
        return EVENT;
#define X(word, kind, body, file)                                                                  \
    if (amp_tok_is(t, tok, AMP_SPAN(#word)))                                                       \
        return word;
    EVENTS(X)
#undef X
    return EVENT;
}

static const struct amp_kind_row *kind_of(const struct amp_view *v)
{
    const struct amp_tape *t = v->tape;
    if (!amp_aop_is_2(t)) {
        bool empty = t->tok[0].type == AMP_JSON_OBJECT && t->tok[0].count == 0;
        return &kinds[empty && amp_span_is(v->type, AMP_AOP_V1) ? V1 : NEITHER];
    }
    if (amp_span_is(v->type, "TASK"))
        return &kinds[TASK];
    if (amp_span_is(v->type, "RESPONSE"))
        return &kinds[RESPONSE];
    return &kinds[amp_span_is(v->type, "EVENT") ? event_row(t) : NEITHER];
}

static const struct amp_mark marks[] = {
    {"aop_version", "", true, false},
    {"protocol_family", "AOP", true, false},
    {NULL, NULL, false, false},
};

static enum amp_detected object_detect(const struct amp_tape *t, uint32_t object)
{
    if (amp_object_has(t, object, "aop_version"))
        return AMP_DETECT_ALWAYS;
    if (!amp_object_has(t, object, "protocol_family"))
        return AMP_DETECT_NEVER;
    return amp_object_is(t, object, "protocol_family", "AOP") ? AMP_DETECT_YES : AMP_DETECT_NO;
}

/* The texts of a member of an array's objects. */
static int texts_gather(const struct amp_view *v, uint32_t array, struct amp_span key,
                        struct amp_arena *arena, struct amp_spans *out, struct amp_error *err)
{
    const struct amp_tape *t = v->tape;
    if (array == AMP_TOK_NONE || t->tok[array].type != AMP_JSON_ARRAY || t->tok[array].count == 0)
        return 0;
    struct amp_span *list = amp_arena_get(arena, t->tok[array].count * sizeof *list);
    if (!list)
        return amp_fail_memory(err);
    uint32_t n = 0;
    for (uint32_t i = array + 1; i < t->tok[array].next; i = t->tok[i].next) {
        uint32_t tok = amp_tape_get(t, i, key);
        if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
            continue;
        if (amp_fill_text(t, tok, arena, &list[n], err) < 0)
            return -1;
        n++;
    }
    *out = (struct amp_spans){list, n};
    return 0;
}

/* On SW4RM's scale: -20 is the most urgent. */
static void priority_read(struct amp_view *v, uint32_t object, const char *key)
{
    static const struct {
        const char *word;
        int64_t number;
    } words[] = {{"CRITICAL", -15}, {"HIGH", -5}, {"LOW", 10}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (amp_object_is(v->tape, object, key, words[i].word))
            v->priority = words[i].number;
}

static int task_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    struct amp_body *b = &v->body;
    priority_read(v, v->payload, "priority");
    if (amp_fill(v->tape, amp_tape_get(v->tape, 0, AMP_SPAN("session")), &session, v, arena, err) <
            0 ||
        amp_fill(v->tape, amp_tape_get(v->tape, 0, AMP_SPAN("target")), &target, v, arena, err) <
            0 ||
        amp_fill(v->tape, v->payload, &task, v, arena, err) < 0)
        return -1;
    if (b->dispatch.risk > AMP_RISK_HIGH)
        b->dispatch.risk = AMP_RISK_HIGH;
    if (b->dispatch.description.n == 0)
        return 0; /* the body is not wanted */
    if (amp_fill(v->tape, 0, &phases, b, arena, err) < 0)
        return -1;
    return texts_gather(v, amp_tape_get(v->tape, v->payload, AMP_SPAN("expected_outputs")),
                        AMP_SPAN("description"), arena, &b->dispatch.criteria, err);
}

static int response_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    struct amp_body *b = &v->body;
    if (amp_fill(v->tape, 0, &response, v, arena, err) < 0)
        return -1;
    uint32_t actions = amp_tape_pointer(v->tape, 0, AMP_SPAN("/execution_summary/actions"));
    if (b->result.notes.n == 0 && actions != AMP_TOK_NONE && v->tape->tok[actions].count > 0)
        return 0; /* the body is not wanted */
    /* Complete only if state and final_signal agree, or if one is missing and the TASK allows it.
     */
    uint32_t tok = amp_tape_pointer(v->tape, 0, AMP_SPAN("/task_status/state"));
    unsigned at = tok == AMP_TOK_NONE ? 0 : state.n;
    for (unsigned i = 0; tok != AMP_TOK_NONE && i < state.n; i++)
        if (amp_tok_is(v->tape, tok, amp_span_str(state.word[i])))
            at = i;
    if (b->result.completion > AMP_COMPLETION_FAILED || at > 3)
        b->result.completion = AMP_COMPLETION_FAILED;
    else if (at > 0 && b->result.completion == AMP_COMPLETION_COMPLETE)
        b->result.completion = AMP_COMPLETION_PARTIAL;
    uint32_t left = amp_tape_pointer(v->tape, 0, AMP_SPAN("/execution_summary/output_artifacts"));
    return texts_gather(v, left, AMP_SPAN("path"), arena, &b->result.files_changed, err);
}

static void bare_finish(struct amp_view *v)
{
    if (v->payload != AMP_TOK_NONE && amp_aop_is_task(v))
        priority_read(v, v->payload, "priority");
    else if (v->kind == AMP_KIND_ESCALATION)
        priority_read(v, 0, "new_priority");
}

static int view_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    if (v->type.n == 0 && !amp_aop_is_2(v->tape))
        v->type = AMP_SPAN(AMP_AOP_NEITHER);
    if (v->payload != AMP_TOK_NONE && amp_aop_is_task(v))
        return task_finish(v, arena, err);
    if (v->kind == AMP_KIND_DISPATCH) /* v1: the text is the task */
        v->body.dispatch.description = v->text;
    if (v->kind == AMP_KIND_RESULT)
        return response_finish(v, arena, err);
    if (amp_fill(v->tape, 0, &event, v, arena, err) < 0)
        return -1;
    if (v->kind == AMP_KIND_PROGRESS && v->body.progress.eta_ms > 0) {
        /* The remaining time counts from the event. */
        int64_t left = v->body.progress.eta_ms;
        bool fits = v->created_ms > 0 && left < INT64_MAX - v->created_ms;
        v->body.progress.eta_ms = fits ? v->created_ms + left : 0;
    }
    if (v->kind == AMP_KIND_PROGRESS || v->kind == AMP_KIND_HEARTBEAT)
        v->body.progress.agent = v->from;
    if (v->kind == AMP_KIND_ESCALATION) {
        v->from = v->body.escalation.triggered_by;
        priority_read(v, 0, "new_priority");
    }
    if (v->kind == AMP_KIND_NACK)
        v->body.ack.stage = AMP_STAGE_REJECTED;
    return 0;
}

const struct amp_spec amp_spec_aop = {
    .protocol = AMP_PROTO_AOP,
    .detect = object_detect,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "aop/envelope.json",
    .codes = codes,
    .kind_of = kind_of,
    .text = amp_aop_text,
    .no_json = AMP_CODE(E_PARSE_FAILURE),
    .alone_code = AMP_CODE(E_PARSE_FAILURE),
    .marks = marks,
    .refuse = amp_aop_refuse,
    .finish = view_finish,
    .finish_is_optional = true,
    .bare_finish = bare_finish,
    .waives = amp_aop_waives,
    .rules = amp_aop_rules,
    .history = 1u << AMP_KIND_RESULT | 1u << AMP_KIND_PROGRESS,
    .effective = amp_aop_effective,
};
