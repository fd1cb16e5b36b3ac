/*
 * AOF/1: the five messages, the files of runs and handoffs, and lines of the event log. The reader
 * unwraps an envelope in a string, after "AOF/1 ", or in the member payload, message or content of
 * an event.
 */
#include "message/protocol/aof/aof.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/spec.h"

#define PREFIX   "AOF/1 "
#define V(field) offsetof(struct amp_view, field)
#define B(field) offsetof(struct amp_body, field)

enum { VIEW_ROWS = 1 }; /* the last rows, which the rules do not read */
static const struct amp_fill_row envelope[] = {
    {AMP_AT("/type"), AMP_AS_TEXT, V(type), 0, NULL},
    {AMP_AT("/taskId"), AMP_AS_TEXT, V(task), 0, NULL},
    {AMP_AT("/parentTaskId"), AMP_AS_TEXT, V(correlation), 0, NULL},
    {AMP_AT("/fromAgent"), AMP_AS_TEXT, V(from), 0, NULL},
    {AMP_AT("/toAgent"), AMP_AS_NAMES, V(to), V(n_to), NULL},
    {AMP_AT("/messageId"), AMP_AS_TEXT, V(id), 0, NULL},
    {AMP_AT("/payload"), AMP_AS_TOKEN, V(payload), 0, NULL},
    {AMP_AT("/sentAt"), AMP_AS_TIME, V(created_ms), 0, NULL},
};

static const struct amp_fill_row report_rows[] = {
    {AMP_AT("/taskId"), AMP_AS_TEXT, B(result.subtask), 0, NULL},
    {AMP_AT("/summaryRef"), AMP_AS_TEXT, B(result.ref), 0, NULL},
    {AMP_AT("/deliverables"), AMP_AS_TEXTS, B(result.files_changed), 0, NULL},
    {AMP_AT("/blockers"), AMP_AS_TEXTS, B(result.blockers), 0, NULL},
    {AMP_AT("/notes"), AMP_AS_NAMES, B(result.notes.v), B(result.notes.n), NULL},
};
static const struct amp_fill_table report = AMP_FILL_TABLE(struct amp_body, report_rows);

static const struct amp_fill_row handoff_rows[] = {
    {AMP_AT("/parentTaskId"), AMP_AS_TEXT, B(handoff.parent), 0, NULL},
    {AMP_AT("/fromAgent"), AMP_AS_TEXT, B(handoff.from), 0, NULL},
    {AMP_AT("/toAgent"), AMP_AS_TEXT, B(handoff.to), 0, NULL},
    {AMP_AT("/acceptanceCriteria"), AMP_AS_TEXTS, B(handoff.criteria), 0, NULL},
    {AMP_AT("/expectedOutputs"), AMP_AS_TEXTS, B(handoff.outputs), 0, NULL},
    {AMP_AT("/contextRefs"), AMP_AS_TEXTS, B(handoff.context), 0, NULL},
    {AMP_AT("/constraints"), AMP_AS_TEXTS, B(handoff.constraints), 0, NULL},
    {AMP_AT("/dueBy"), AMP_AS_TIME, B(handoff.due_ms), 0, NULL},
};
static const struct amp_fill_table handoff = AMP_FILL_TABLE(struct amp_body, handoff_rows);

static const struct amp_fill_row answer_rows[] = {
    {AMP_AT("/reason"), AMP_AS_TEXT, B(ack.note), 0, NULL},
};
static const struct amp_fill_table answer = AMP_FILL_TABLE(struct amp_body, answer_rows);

static const struct amp_fill_row status_rows[] = {
    {AMP_AT("/agentId"), AMP_AS_TEXT, B(progress.agent), 0, NULL},
    {AMP_AT("/status"), AMP_AS_TEXT, B(progress.status), 0, NULL},
    {AMP_AT("/notes"), AMP_AS_TEXT, B(progress.note), 0, NULL},
    {AMP_AT("/progress"), AMP_AS_TEXT, B(progress.note), 0, NULL},
    {AMP_AT("/blockers"), AMP_AS_TEXTS, B(progress.blockers), 0, NULL},
};
static const struct amp_fill_table status = AMP_FILL_TABLE(struct amp_body, status_rows);

static const struct amp_fill_row refusal_rows[] = {
    {AMP_AT("/messageId"), AMP_AS_TEXT, B(ack.ref), 0, NULL},
    {AMP_AT("/reason"), AMP_AS_TEXT, B(ack.code), 0, NULL},
    {AMP_AT("/errors"), AMP_AS_TEXT, B(ack.note), 0, NULL},
};
static const struct amp_fill_table refusal = AMP_FILL_TABLE(struct amp_body, refusal_rows);

enum { REQUEST, ACCEPTED, REJECTED, STATUS, REPORT, RESULT, HANDOFF, RUN, BEAT, REFUSAL, EVENT };

#define ROW(type, kind, body, payload, file)                                                       \
    {                                                                                              \
        type, AMP_KIND_##kind, body, payload, "aof/" file ".json", false, 0, &amp_fill_nothing     \
    }
static const struct amp_kind_row kinds[] = {
    [REQUEST] = ROW("handoff.request", HANDOFF, &handoff, true, "handoff_request"),
    [ACCEPTED] = ROW("handoff.accepted", ACK, &answer, true, "handoff_accepted"),
    [REJECTED] = ROW("handoff.rejected", NACK, &answer, true, "handoff_rejected"),
    [STATUS] = ROW("status.update", PROGRESS, &status, true, "status_update"),
    [REPORT] = ROW("completion.report", RESULT, &report, true, "completion_report"),
    [RESULT] = ROW("run_result", RESULT, &report, false, "run_result"),
    [HANDOFF] = ROW("handoff", HANDOFF, &handoff, false, "handoff"),
    [RUN] = ROW("run", OTHER, NULL, false, "run"),
    [BEAT] = ROW("run_heartbeat", HEARTBEAT, NULL, false, "run_heartbeat"),
    [REFUSAL] = ROW("protocol.message.rejected", NACK, &refusal, true, "event"),
    [EVENT] = ROW("event", OTHER, NULL, false, "event"),
};

#define TASK "TASK-YYYY-MM-DD-NNN, such as TASK-2026-02-09-057"
#define TIME "RFC 3339 in UTC with Z, such as 2026-02-09T21:00:00.000Z"
static const struct amp_code_row codes[] = {
    {"type", "enum", "protocol.message.unknown", NULL},
    {"projectId", "minLength", AMP_CODE(invalid_project_id), NULL},
    {"project_id", "minLength", AMP_CODE(invalid_project_id), NULL},
    {"projectId", "maxLength", AMP_CODE(invalid_project_id), NULL},
    {"project_id", "maxLength", AMP_CODE(invalid_project_id), NULL},
    {"taskId", "pattern", AMP_CODE(invalid_envelope), TASK},
    {"parentTaskId", "pattern", AMP_CODE(invalid_envelope), TASK},
    {"payload.taskId", "pattern", AMP_CODE(invalid_envelope), TASK},
    {"payload.parentTaskId", "pattern", AMP_CODE(invalid_envelope), TASK},
    {"*", "pattern", AMP_CODE(invalid_envelope), TIME},
    {"*", "format", AMP_CODE(invalid_envelope), TIME},
    {"*", "*", AMP_CODE(invalid_envelope), NULL},
    {NULL, NULL, NULL, NULL},
};

/* The row of a file or an event record, an object without an envelope; NULL: neither. */
static const struct amp_kind_row *record_of(const struct amp_tape *t)
{
    if (amp_object_has(t, 0, "actor") && amp_object_has(t, 0, "type") &&
        amp_object_get(t, 0, "eventId", AMP_JSON_NUMBER) != AMP_TOK_NONE)
        return amp_object_is(t, 0, "type", kinds[REFUSAL].type) ||
                       amp_object_is(t, 0, "type", "protocol.message.unknown")
                   ? &kinds[REFUSAL]
                   : &kinds[EVENT];
    if (!amp_object_starts(t, 0, "taskId", "TASK-"))
        return NULL;
    if (amp_object_has(t, 0, "outcome") && amp_object_has(t, 0, "completedAt"))
        return &kinds[RESULT];
    if (amp_object_has(t, 0, "parentTaskId") && amp_object_has(t, 0, "toAgent") &&
        amp_object_has(t, 0, "dueBy"))
        return &kinds[HANDOFF];
    if (!amp_object_has(t, 0, "agentId"))
        return NULL;
    if (amp_object_has(t, 0, "beatCount"))
        return &kinds[BEAT];
    return amp_object_has(t, 0, "startedAt") ? &kinds[RUN] : NULL;
}

static bool detect_record(const struct amp_tape *t)
{
    return record_of(t) != NULL;
}

/* The row of one of the five messages, or NULL. */
static const struct amp_kind_row *message_of(struct amp_span type)
{
    for (unsigned i = REQUEST; i <= REPORT; i++)
        if (amp_span_is(type, kinds[i].type))
            return &kinds[i];
    return NULL;
}

/* ---- envelopes in texts ---- */

/* The most bytes of an envelope, prefix included. */
#define BYTES_MOST ((size_t)10 * 1024 * 1024)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct amp_span blanks_trim(struct amp_span s)
{
    while (s.n > 0 && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n > 0 && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

static bool is_too_large(struct amp_span text, struct amp_json_fault *fault)
{
    if (text.n <= BYTES_MOST)
        return false;
    fault->code = AMP_CODE(payload_too_large);
    fault->offset = 0;
    snprintf(fault->what, sizeof fault->what, "the envelope has more than %zu bytes", BYTES_MOST);
    return true;
}

static enum amp_detected object_detect(const struct amp_tape *t, uint32_t object)
{
    uint32_t tok = amp_tape_get(t, object, AMP_SPAN("protocol"));
    if (tok == AMP_TOK_NONE)
        return AMP_DETECT_NEVER;
    return amp_tok_is(t, tok, AMP_SPAN("aof")) ? AMP_DETECT_YES : AMP_DETECT_NO;
}

/* An envelope must follow the prefix. Without a prefix, a text that starts with { is an envelope if
 * it names the protocol; if the protocol is given (`pinned`), a text that starts with { or [ must
 * be one. Any other text is ignored. */
static enum amp_text_is text_unwrap(struct amp_tape *t, struct amp_span text, bool pinned,
                                    struct amp_span *json, struct amp_json_fault *fault)
{
    text = blanks_trim(text);
    size_t n = sizeof PREFIX - 1;
    bool prefixed = text.n >= n && memcmp(text.p, PREFIX, n) == 0;
    bool sure = prefixed || pinned;
    if (!prefixed && (text.n == 0 || !(text.p[0] == '{' || (pinned && text.p[0] == '['))))
        return AMP_TEXT_OTHER;
    *json = prefixed ? blanks_trim((struct amp_span){text.p + n, text.n - n}) : text;
    if (sure && is_too_large(text, fault))
        return AMP_TEXT_BAD;
    if (amp_tape_scan(t, json->p, json->n, fault) < 0)
        return sure ? AMP_TEXT_BAD : AMP_TEXT_OTHER;
    if (!sure && object_detect(t, 0) < AMP_DETECT_YES)
        return AMP_TEXT_OTHER;
    return is_too_large(text, fault) ? AMP_TEXT_BAD : AMP_TEXT_ENVELOPE;
}

static const struct amp_kind_row *kind_of(const struct amp_view *v)
{
    const struct amp_kind_row *row = message_of(v->type);
    return row || object_detect(v->tape, 0) >= AMP_DETECT_YES ? row : record_of(v->tape);
}

static void result_finish(struct amp_view *v, uint32_t from)
{
    v->body.result.completion = AMP_COMPLETION_PARTIAL;
    if (amp_object_is(v->tape, from, "outcome", "done"))
        v->body.result.completion = AMP_COMPLETION_COMPLETE;
    else if (amp_object_is(v->tape, from, "outcome", "blocked"))
        v->body.result.completion = AMP_COMPLETION_FAILED;
}

/* Files have no type, and another member for their agent. */
static int record_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    static const struct amp_fill_row rows[] = {
        {AMP_AT("/agentId"), AMP_AS_TEXT, V(from), 0, NULL},
        {AMP_AT("/actor"), AMP_AS_TEXT, V(from), 0, NULL},
        {AMP_AT("/completedAt"), AMP_AS_TIME, V(created_ms), 0, NULL},
        {AMP_AT("/startedAt"), AMP_AS_TIME, V(created_ms), 0, NULL},
        {AMP_AT("/lastHeartbeat"), AMP_AS_TIME, V(created_ms), 0, NULL},
        {AMP_AT("/timestamp"), AMP_AS_TIME, V(created_ms), 0, NULL},
        {AMP_AT("/expiresAt"), AMP_AS_TIME, V(expires_ms), 0, NULL},
        {AMP_AT("/dueBy"), AMP_AS_TIME, V(expires_ms), 0, NULL},
    };
    static const struct amp_fill_table record = AMP_FILL_TABLE(struct amp_view, rows);
    const struct amp_kind_row *row = record_of(v->tape);
    if (!row || row->kind != v->kind)
        return 0;
    if (v->type.n == 0)
        v->type = amp_span_str(row->type);
    return amp_fill(v->tape, 0, &record, v, arena, err);
}

static int view_finish(struct amp_view *v, struct amp_arena *arena, struct amp_error *err)
{
    bool message = message_of(v->type) != NULL;
    uint32_t due;
    switch (v->kind) {
    case AMP_KIND_ACK:
        v->body.ack.stage = AMP_STAGE_READ;
        break;
    case AMP_KIND_NACK:
        v->body.ack.stage = AMP_STAGE_REJECTED;
        break;
    case AMP_KIND_RESULT:
        result_finish(v, message ? v->payload : 0);
        break;
    case AMP_KIND_HANDOFF:
        due = amp_object_get(v->tape, v->payload, "dueBy", AMP_JSON_STRING);
        if (due != AMP_TOK_NONE)
            amp_time_parse(amp_tok_raw(v->tape, due), &v->expires_ms);
        break;
    default:
        break;
    }
    return message ? 0 : record_finish(v, arena, err);
}

static const struct amp_mark marks[] = {
    {"protocol", "aof", true, false},
    {NULL, NULL, false, false},
};

const struct amp_spec amp_spec_aof = {
    .protocol = AMP_PROTO_AOF,
    .history = 1u << AMP_KIND_ACK | 1u << AMP_KIND_NACK | 1u << AMP_KIND_RESULT,
    .detect = object_detect,
    .detect_record = detect_record,
    .envelope = AMP_FILL_TABLE(struct amp_view, envelope),
    .bare = AMP_FILL_TABLE_BUT(struct amp_view, envelope, VIEW_ROWS),
    .kinds = kinds,
    .n_kinds = AMP_SPEC_COUNT(kinds),
    .schema = "aof/envelope.json",
    .codes = codes,
    .alone_code = "protocol.message.unknown",
    .unwrap = text_unwrap,
    .too_large = is_too_large,
    .prefix = PREFIX,
    .marks = marks,
    .kind_of = kind_of,
    .refuse = amp_aof_refuse,
    .finish = view_finish,
    .rules = amp_aof_rules,
};
