/*
 * How AOP answers what it refuses. What cannot be read as version 2 is answered by the event
 * VERSION_FALLBACK with the task as a version 1 prompt (§1.3); a TASK that is read but passes a
 * limit or its access, by the RESPONSE that says FAILED (§4, §5).
 */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "protocol/aop/aop.h"
#include "protocol/spec.h"

enum { PROMPT_MOST = 16 * 1024 * 1024 };

static void header(struct amp_jw *w, const char *type)
{
    amp_jw_member_text(w, "aop_version", AMP_AOP_VERSION);
    amp_jw_member_text(w, "schema_version", "2.0.2");
    amp_jw_member_text(w, "protocol_family", "AOP");
    amp_jw_member_text(w, "message_type", type);
}

/* The sentence that the finding is, with the field in front. */
static void sentence(struct amp_jw *w, const struct amp_finding *f)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_error err;
    amp_buf_init(&b, 8192);
    if (amp_buf_fmt(&b, &err, "%s%s%s%s%s", f->field, f->field[0] ? " " : "", f->message,
                    f->expected[0] ? "; expected " : "", f->expected) < 0)
        amp_jw_str(w, amp_span_str(f->message));
    else
        amp_jw_str(w, amp_buf_span(&b));
}

static void error_details(struct amp_jw *w, const struct amp_finding *f)
{
    amp_jw_key(w, "error_details");
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "error_code", f->code);
    amp_jw_key(w, "message");
    sentence(w, f);
    amp_jw_key(w, "extensions");
    amp_jw_open(w, '{');
    if (f->field[0])
        amp_jw_member_text(w, "x_field", f->field);
    if (f->pointer[0])
        amp_jw_member_text(w, "x_pointer", f->pointer);
    amp_jw_member_text(w, "x_rule", f->rule);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
}

static bool has_text(const struct amp_view *v, const char *pointer, struct amp_span *raw)
{
    uint32_t tok = v->tape->n ? amp_tape_pointer(v->tape, 0, amp_span_str(pointer)) : AMP_TOK_NONE;
    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type != AMP_JSON_STRING)
        return false;
    *raw = amp_tok_source(v->tape, tok);
    return raw->n > 2;
}

/* The provider's word, where it is one. */
static struct amp_span provider_of(const struct amp_view *v)
{
    static const char *const words[] = {"CLAUDE", "CODEX", "GEMINI", "LOCAL"};
    for (unsigned i = 0; i < AMP_SPEC_COUNT(words); i++) {
        uint32_t target = amp_aop_at(v, 0, AMP_SPAN("target"));
        if (target != AMP_TOK_NONE && amp_object_is(v->tape, target, "provider", words[i]))
            return amp_span_str(words[i]);
    }
    return AMP_SPAN("OTHER");
}

void amp_aop_target(const struct amp_view *v, struct amp_span target[AMP_AOP_TARGET])
{
    struct amp_span model;
    target[AMP_AOP_PROVIDER] = provider_of(v);
    target[AMP_AOP_MODEL] = has_text(v, "/target/model", &model) ? model : AMP_SPAN("");
}

/* Of a message that is read as version 2 but refused for its size or its access. */
static void respond(struct amp_jw *w, const struct amp_view *v, const struct amp_finding *f,
                    const struct amp_span target[AMP_AOP_TARGET], const char *did, const char *now)
{
    header(w, "RESPONSE");
    amp_jw_member_str(w, "session_id", v->correlation);
    amp_jw_member_str(w, "task_id", v->task);
    amp_jw_key(w, "agent");
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "name", v->n_to ? v->to[0] : AMP_SPAN("UNKNOWN"));
    amp_jw_member_str(w, "provider", target[AMP_AOP_PROVIDER]);
    amp_jw_key(w, "model");
    amp_jw_raw(w, target[AMP_AOP_MODEL].n > 0 ? target[AMP_AOP_MODEL] : AMP_SPAN("\"UNKNOWN\""));
    amp_jw_close(w, '}');
    amp_jw_key(w, "task_status");
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "state", "FAILED");
    amp_jw_member_text(w, "final_signal", "FAILURE");
    amp_jw_key(w, "message");
    sentence(w, f);
    amp_jw_close(w, '}');
    amp_jw_key(w, "execution_summary");
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "summary", "The task was refused before it was begun.");
    amp_jw_key(w, "actions");
    amp_jw_open(w, '[');
    amp_jw_str(w, amp_span_str(did));
    amp_jw_close(w, ']');
    amp_jw_close(w, '}');
    error_details(w, f);
    amp_jw_key(w, "timing");
    amp_jw_open(w, '{');
    amp_jw_member_text(w, "started_at", now);
    amp_jw_member_text(w, "completed_at", now);
    amp_jw_member_int(w, "duration_seconds", 0);
    amp_jw_close(w, '}');
}

static int prompt(struct amp_jw *w, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, PROMPT_MOST);
    bool task = amp_aop_is_task(v);
    if (task && amp_aop_v1_prompt(v, &b, err) < 0) {
        if (strcmp(err->code, "buffer_full") != 0)
            return -1;
        task = false; /* far beyond what any agent reads */
    }
    amp_jw_key(w, "to_version");
    if (task)
        amp_jw_str(w, AMP_SPAN("1.x"));
    else
        amp_jw_null(w);
    amp_jw_key(w, "v1_prompt");
    if (task)
        amp_jw_str(w, amp_buf_span(&b));
    else
        amp_jw_null(w);
    return 0;
}

static int fall_back(struct amp_jw *w, const struct amp_view *v, const struct amp_finding *f,
                     const char *now, struct amp_error *err)
{
    struct amp_span raw;
    header(w, "EVENT");
    amp_jw_member_text(w, "event", "VERSION_FALLBACK");
    /* An event belongs to a session, also where the message did not say to which. */
    amp_jw_member_str(w, "session_id", v->correlation.n ? v->correlation : AMP_SPAN("UNKNOWN"));
    if (v->task.n)
        amp_jw_member_str(w, "task_id", v->task);
    amp_jw_member_text(w, "timestamp", now);
    amp_jw_member_text(w, "reason", f->code);
    amp_jw_member_text(w, "classification", amp_aop_is_2(v->tape) ? "V2" : AMP_AOP_NEITHER);
    amp_jw_key(w, "from_version");
    if (has_text(v, "/aop_version", &raw))
        amp_jw_raw(w, raw);
    else
        amp_jw_null(w);
    if (prompt(w, v, err) < 0)
        return -1;
    error_details(w, f);
    return 0;
}

static bool is_respondable(const struct amp_view *v)
{
    return v->kind == AMP_KIND_DISPATCH && v->correlation.n && v->task.n;
}

int amp_aop_undelivered(const struct amp_view *v, const struct amp_aop_refusal *refusal,
                        int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_finding f = {.code = refusal->code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = refusal->rule,
                                  .message = refusal->what,
                                  .expected = ""};
    char now[AMP_TIME_MAX];
    struct amp_jw w;
    if (!is_respondable(v))
        return 0;
    amp_time_format(now_ms, now);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    respond(&w, v, &f, refusal->target, "Tried to deliver the TASK message.", now);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}

int amp_aop_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
                   struct amp_buf *out, struct amp_error *err)
{
    /* Refusals are not refused, or two gates would never be done with each other. */
    if (v->kind == AMP_KIND_NACK)
        return 1;
    char now[AMP_TIME_MAX];
    struct amp_jw w;
    size_t before = out->len;
    bool read = strcmp(first->code, "E_SCHEMA_VALIDATION") != 0 &&
                strcmp(first->code, "E_PARSE_FAILURE") != 0;
    amp_time_format(now_ms, now);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    if (read && is_respondable(v)) {
        struct amp_span target[AMP_AOP_TARGET];
        amp_aop_target(v, target);
        respond(&w, v, first, target, "Checked the TASK message.", now);
    } else if (fall_back(&w, v, first, now, err) < 0) {
        out->len = before;
        return -1;
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
