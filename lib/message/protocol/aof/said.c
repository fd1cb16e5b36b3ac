/* AOF/1: messages for the router of task files, and the contents of the files of runs and handoffs.
 */
#include "message/protocol/aof/said.h"

#include <string.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/view/object.h"
#include "json/record.h"

const char *amp_aof_outcome_name(enum amp_aof_outcome o)
{
    AMP_WORDS(names, AMP_AOF_OUTCOME_LIST);
    return o < AMP_AOF_OUTCOME_COUNT ? names[o] : "";
}

enum amp_aof_line amp_aof_line_read(struct amp_reader *r, struct amp_span line, struct amp_view *v,
                                    amp_finding_fn fn, void *ctx, struct amp_error *err)
{
    const struct amp_check_options how = {.only = AMP_PROTO_AOF};
    int rc = amp_reader_line(r, line, &how, v, fn, ctx, err);
    if (rc <= 0)
        return rc < 0 ? AMP_AOF_LINE_FAILED : AMP_AOF_LINE_BAD;
    return v->protocol == AMP_PROTO_AOF ? AMP_AOF_LINE_GOOD : AMP_AOF_LINE_OTHER;
}

static enum amp_aof_message message_of(const struct amp_view *v)
{
    static const struct {
        const char *type;
        enum amp_aof_message what;
    } rows[] = {
        {"handoff.request", AMP_AOF_REQUEST},   {"handoff.accepted", AMP_AOF_ACCEPTED},
        {"handoff.rejected", AMP_AOF_REJECTED}, {"status.update", AMP_AOF_STATUS},
        {"completion.report", AMP_AOF_REPORT},
    };
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (amp_span_is(v->type, rows[i].type))
            return rows[i].what;
    return AMP_AOF_OTHER;
}

/* The payload; of a file the file itself. */
static uint32_t content_of(const struct amp_view *v)
{
    return v->payload != AMP_TOK_NONE ? v->payload : 0;
}

static int text_read(const struct amp_view *v, const char *key, struct amp_buf *mem,
                     struct amp_span *out, struct amp_error *err)
{
    uint32_t tok = amp_object_get(v->tape, content_of(v), key, AMP_JSON_STRING);
    *out = (struct amp_span){"", 0};
    return tok == AMP_TOK_NONE ? 0 : amp_tok_text(v->tape, tok, mem, out, err);
}

int amp_aof_said_read(const struct amp_view *v, struct amp_buf *mem, struct amp_aof_said *out,
                      struct amp_error *err)
{
    struct amp_aof_said said = {.what = message_of(v)};
    const struct {
        const char *key;
        struct amp_span *to;
    } rows[] = {
        {"agentId", &said.agent},      {"status", &said.status}, {"progress", &said.progress},
        {"notes", &said.notes},        {"reason", &said.reason}, {"summaryRef", &said.summary},
        {"handoffRef", &said.handoff}, {"toAgent", &said.to},    {"parentTaskId", &said.parent},
    };
    if (amp_buf_reserve(mem, v->text.n + 1, err) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_read(v, rows[i].key, mem, rows[i].to, err) < 0)
            return -1;
    for (enum amp_aof_outcome o = AMP_AOF_OUTCOME_DONE; o < AMP_AOF_OUTCOME_COUNT; o++)
        if (amp_object_is(v->tape, content_of(v), "outcome", amp_aof_outcome_name(o)))
            said.outcome = o;
    if (v->kind == AMP_KIND_PROGRESS)
        said.blockers = v->body.progress.blockers;
    else if (v->kind == AMP_KIND_RESULT)
        said.blockers = v->body.result.blockers;
    *out = said;
    return 0;
}

/* ---- files ---- */

static void raw_write(struct amp_jw *w, const struct amp_view *v, const char *key,
                      const char *otherwise)
{
    uint32_t tok = amp_tape_get(v->tape, content_of(v), amp_span_str(key));
    amp_jw_member_raw(w, key,
                      tok == AMP_TOK_NONE ? amp_span_str(otherwise) : amp_tok_source(v->tape, tok));
}

/* A time of the payload, else that of the envelope. */
static void time_write(struct amp_jw *w, const struct amp_view *v, const char *key)
{
    char time[AMP_TIME_MAX];
    if (amp_object_get(v->tape, content_of(v), key, AMP_JSON_STRING) != AMP_TOK_NONE) {
        raw_write(w, v, key, "");
        return;
    }
    amp_time_format(v->created_ms, time);
    amp_jw_member_text(w, key, time);
}

/* Only the three counts: other members may have any size. */
static void tests_write(struct amp_jw *w, const struct amp_view *v)
{
    static const char *const counts[] = {"total", "passed", "failed"};
    uint32_t tests = amp_tape_get(v->tape, content_of(v), AMP_SPAN("tests"));
    amp_jw_member_open(w, "tests", '{');
    for (unsigned i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        uint32_t tok = amp_object_get(v->tape, tests, counts[i], AMP_JSON_NUMBER);
        amp_jw_member_raw(w, counts[i],
                          tok == AMP_TOK_NONE ? AMP_SPAN("0") : amp_tok_source(v->tape, tok));
    }
    amp_jw_close(w, '}');
}

int amp_aof_result_write(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "taskId", v->task);
    amp_jw_member_str(&w, "agentId", v->from);
    time_write(&w, v, "completedAt");
    raw_write(&w, v, "outcome", "\"\"");
    raw_write(&w, v, "summaryRef", "\"\"");
    raw_write(&w, v, "handoffRef", "\"outputs/handoff.md\"");
    raw_write(&w, v, "deliverables", "[]");
    tests_write(&w, v);
    raw_write(&w, v, "blockers", "[]");
    raw_write(&w, v, "notes", "\"\"");
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int amp_aof_handoff_write(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    static const char *const lists[] = {"acceptanceCriteria", "expectedOutputs", "contextRefs",
                                        "constraints"};
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "taskId", v->task);
    amp_jw_member_str(&w, "parentTaskId", v->body.handoff.parent);
    amp_jw_member_str(&w, "fromAgent", v->body.handoff.from);
    amp_jw_member_str(&w, "toAgent", v->body.handoff.to);
    for (unsigned i = 0; i < sizeof lists / sizeof lists[0]; i++)
        raw_write(&w, v, lists[i], "[]");
    raw_write(&w, v, "dueBy", "\"\"");
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int amp_aof_text_add(struct amp_buf *out, const char *before, struct amp_span text,
                     struct amp_error *err)
{
    if (amp_buf_str(out, before, err) < 0)
        return -1;
    size_t at = out->len;
    if (amp_buf_add(out, text.p, text.n, err) < 0)
        return -1;
    for (size_t i = at; i < out->len; i++)
        if ((unsigned char)out->data[i] < 0x20 || out->data[i] == 0x7f)
            out->data[i] = ' ';
    return 0;
}

static int line_add(struct amp_buf *out, const char *before, struct amp_span text,
                    struct amp_error *err)
{
    return amp_aof_text_add(out, before, text, err) < 0 ? -1 : amp_buf_str(out, "\n", err);
}

static int list_add(struct amp_buf *out, const char *title, const struct amp_spans *list,
                    struct amp_error *err)
{
    if (list->n > 0 && amp_buf_fmt(out, err, "\n## %s\n\n", title) < 0)
        return -1;
    for (uint32_t i = 0; i < list->n; i++)
        if (line_add(out, "- ", list->v[i], err) < 0)
            return -1;
    return 0;
}

int amp_aof_handoff_text(const struct amp_view *v, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf due = {0};
    struct amp_span at;
    amp_buf_init(&due, 4096);
    if (amp_buf_reserve(&due, 1024, err) < 0 || text_read(v, "dueBy", &due, &at, err) < 0)
        return -1;
    return line_add(out, "# Handoff ", v->task, err) < 0 || amp_buf_str(out, "\n", err) < 0 ||
                   line_add(out, "- Parent: ", v->body.handoff.parent, err) < 0 ||
                   line_add(out, "- From: ", v->body.handoff.from, err) < 0 ||
                   line_add(out, "- To: ", v->body.handoff.to, err) < 0 ||
                   line_add(out, "- Due: ", at, err) < 0 ||
                   list_add(out, "Acceptance criteria", &v->body.handoff.criteria, err) < 0 ||
                   list_add(out, "Expected outputs", &v->body.handoff.outputs, err) < 0 ||
                   list_add(out, "Context", &v->body.handoff.context, err) < 0 ||
                   list_add(out, "Constraints", &v->body.handoff.constraints, err) < 0 ||
                   amp_buf_str(out, "\nThis text was made from handoff.json, which counts.\n",
                               err) < 0
               ? -1
               : 0;
}

int amp_aof_decline(const struct amp_view *v, const char *by, const char *reason, int64_t now_ms,
                    struct amp_buf *out, struct amp_error *err)
{
    static const char *const kept[] = {"projectId", "project_id"};
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "protocol", "aof");
    amp_jw_member_int(&w, "version", 1);
    amp_jw_member_text(&w, "type", "handoff.rejected");
    for (unsigned i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        uint32_t tok = amp_object_get(v->tape, 0, kept[i], AMP_JSON_STRING);
        if (tok != AMP_TOK_NONE)
            amp_jw_member_raw(&w, kept[i], amp_tok_source(v->tape, tok));
    }
    amp_jw_member_str(&w, "taskId", v->task);
    amp_jw_some_str(&w, "parentTaskId", v->body.handoff.parent);
    amp_jw_member_text(&w, "fromAgent", by);
    amp_jw_member_str(&w, "toAgent", v->from);
    amp_rec_time(&w, "sentAt", now_ms);
    amp_jw_member_open(&w, "payload", '{');
    amp_jw_member_str(&w, "taskId", v->task);
    amp_jw_member_bool(&w, "accepted", false);
    amp_jw_member_text(&w, "reason", reason);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int amp_aof_ask(const struct amp_aof_asking *a, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "protocol", "aof");
    amp_jw_member_int(&w, "version", 1);
    amp_jw_member_text(&w, "type", "status.update");
    amp_jw_member_text(&w, "taskId", a->task);
    amp_jw_member_str(&w, "fromAgent", a->by);
    amp_jw_member_text(&w, "toAgent", "operator");
    amp_rec_time(&w, "sentAt", a->now_ms);
    amp_jw_member_open(&w, "payload", '{');
    amp_jw_member_text(&w, "taskId", a->task);
    amp_jw_member_str(&w, "agentId", a->by);
    amp_jw_member_text(&w, "status", a->status);
    amp_jw_some_str(&w, "notes", a->notes);
    amp_jw_close(&w, '}');
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

/* ---- runs ---- */

struct run_record {
    struct amp_span task, agent, status, reason;
    int64_t started_ms, ended_ms, expired_ms;
};
static const struct amp_rec_field run_fields[] = {
    AMP_REC_EVER(TEXT, struct run_record, "taskId", task),
    AMP_REC_EVER(TEXT, struct run_record, "agentId", agent),
    AMP_REC(TIME, struct run_record, "startedAt", started_ms),
    AMP_REC_EVER(TEXT, struct run_record, "status", status),
    AMP_REC(TIME, struct run_record, "endedAt", ended_ms),
    AMP_REC(TIME, struct run_record, "expiredAt", expired_ms),
    AMP_REC(TEXT, struct run_record, "expiredReason", reason),
};
AMP_REC_TABLE(run_table, "run.json", struct run_record, run_fields);

static bool is_run_field(const struct amp_tape *t, uint32_t key)
{
    for (unsigned i = 0; i < run_table.n; i++)
        if (amp_tok_is(t, key, amp_span_str(run_fields[i].key)))
            return true;
    return false;
}

/* The members of the former text that are not ours, such as sessionId. */
static int others_copy(struct amp_span former, struct amp_buf *out, struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, former.p, former.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_record), "run.json", &fault);
    if (t.tok[0].type != AMP_JSON_OBJECT)
        return 0;
    for (uint32_t key = 1; key < t.tok[0].next; key = t.tok[key + 1].next) {
        struct amp_span name = amp_tok_source(&t, key), value = amp_tok_source(&t, key + 1);
        if (!is_run_field(&t, key) &&
            (amp_buf_str(out, ",", err) < 0 || amp_buf_add(out, name.p, name.n, err) < 0 ||
             amp_buf_str(out, ":", err) < 0 || amp_buf_add(out, value.p, value.n, err) < 0))
            return -1;
    }
    return 0;
}

int amp_aof_run_write(const struct amp_aof_run *r, struct amp_span former, struct amp_buf *out,
                      struct amp_error *err)
{
    const struct run_record rec = {
        r->task,     r->agent,     amp_span_str(r->status), amp_span_str(r->reason), r->started_ms,
        r->ended_ms, r->expired_ms};
    if (amp_rec_write(&run_table, &rec, out, err) < 0)
        return -1;
    out->len--; /* its bracket */
    return (former.n > 0 && others_copy(former, out, err) < 0) || amp_buf_str(out, "}\n", err) < 0
               ? -1
               : 0;
}

int amp_aof_run_read(struct amp_span text, struct amp_buf *mem, struct amp_aof_run *out,
                     struct amp_error *err)
{
    struct run_record rec;
    if (amp_rec_parse(&run_table, text, mem, &rec, err) < 0)
        return -1;
    *out = (struct amp_aof_run){.task = rec.task,
                                .agent = rec.agent,
                                .status = rec.status.p,
                                .reason = rec.reason.n > 0 ? rec.reason.p : NULL,
                                .started_ms = rec.started_ms,
                                .ended_ms = rec.ended_ms,
                                .expired_ms = rec.expired_ms};
    return 0;
}

static const struct amp_rec_field beat_fields[] = {
    AMP_REC_EVER(TEXT, struct amp_aof_beat, "taskId", task),
    AMP_REC_EVER(TEXT, struct amp_aof_beat, "agentId", agent),
    AMP_REC_EVER(TIME, struct amp_aof_beat, "lastHeartbeat", at_ms),
    AMP_REC_EVER(INT, struct amp_aof_beat, "beatCount", count),
    AMP_REC_EVER(TIME, struct amp_aof_beat, "expiresAt", expires_ms),
};
AMP_REC_TABLE(beat_table, "run_heartbeat.json", struct amp_aof_beat, beat_fields);

int amp_aof_beat_write(const struct amp_aof_beat *b, struct amp_buf *out, struct amp_error *err)
{
    return amp_rec_write(&beat_table, b, out, err) < 0 ? -1 : amp_buf_str(out, "\n", err);
}

int amp_aof_beat_read(struct amp_span text, struct amp_buf *mem, struct amp_aof_beat *out,
                      struct amp_error *err)
{
    struct amp_aof_beat b;
    if (amp_rec_parse(&beat_table, text, mem, &b, err) < 0)
        return -1;
    if (b.expires_ms == 0)
        return amp_fail(err, AMP_DATAERR, bad_record, "run_heartbeat.json has no expiresAt");
    *out = b;
    return 0;
}
