/*
 * AOP: the refusal of a line. A line that is not valid version 2 is answered by the event
 * VERSION_FALLBACK, with the task as a version 1 prompt (§1.3). A TASK that exceeds a limit or its
 * access is answered by a RESPONSE with the state FAILED (§4, §5).
 */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/spec.h"
#include "json/record.h"

enum { PROMPT_MOST = 16 * 1024 * 1024 };

void amp_aop_header(struct amp_jw *w, const char *type)
{
    amp_jw_member_text(w, "aop_version", AMP_AOP_VERSION);
    amp_jw_member_text(w, "schema_version", "2.0.2");
    amp_jw_member_text(w, "protocol_family", "AOP");
    amp_jw_member_text(w, "message_type", type);
}

/* The member "message": the finding as a sentence that starts with its field, behind a code that
 * the contract's replaces. */
static void message_write(struct amp_jw *w, const struct amp_finding *f)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 8192);
    bool own = strcmp(amp_aop_code(f->code), f->code) == 0;
    bool fits = amp_buf_fmt(&b, NULL, "%s%s%s%s%s%s%s", own ? "" : f->code, own ? "" : ": ",
                            f->field, f->field[0] ? " " : "", f->message,
                            f->expected[0] ? "; expected " : "", f->expected) == 0;
    amp_jw_member_str(w, "message", fits ? amp_buf_span(&b) : amp_span_str(f->message));
}

static void details_write(struct amp_jw *w, const struct amp_finding *f)
{
    amp_jw_member_open(w, "error_details", '{');
    amp_jw_member_text(w, "error_code", amp_aop_code(f->code));
    message_write(w, f);
    amp_jw_member_open(w, "extensions", '{');
    if (f->field[0])
        amp_jw_member_text(w, "x_field", f->field);
    if (f->pointer[0])
        amp_jw_member_text(w, "x_pointer", f->pointer);
    amp_jw_member_text(w, "x_rule", f->rule);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
}

/* The member of an object as JSON, if it is a string that is not empty; else empty. */
static struct amp_span text_json(const struct amp_tape *t, uint32_t object, const char *key)
{
    uint32_t tok = amp_object_get(t, object, key, AMP_JSON_STRING);
    return tok != AMP_TOK_NONE && t->tok[tok].len > 0 ? amp_tok_source(t, tok) : AMP_SPAN("");
}

void amp_aop_target(const struct amp_view *v, struct amp_span target[AMP_AOP_TARGET])
{
    static const char *const providers[] = {"CLAUDE", "CODEX", "GEMINI", "LOCAL"};
    uint32_t from = amp_tape_get(v->tape, 0, AMP_SPAN("target"));
    target[AMP_AOP_PROVIDER] = AMP_SPAN("OTHER");
    for (unsigned i = 0; i < AMP_SPEC_COUNT(providers); i++)
        if (amp_object_is(v->tape, from, "provider", providers[i]))
            target[AMP_AOP_PROVIDER] = amp_span_str(providers[i]);
    target[AMP_AOP_MODEL] = text_json(v->tape, from, "model");
}

/* The end of a TASK without a report of its agent; `did` is the only action of the RESPONSE. */
struct ending {
    const char *state, *signal, *summary, *did;
};
static const struct ending endings[] = {
    {"SKIPPED", "ABORTED", "The task was skipped before it was begun.",
     "Looked at the records of the session."},
    {"ABORTED", "ABORTED", "The task was cancelled.", "Ended the job of the task."},
    {"FAILED", "FAILURE", "The job of the task failed.", "Looked at the record of the job."},
};
static const char refused[] = "The task was refused before it was begun.";
static const struct ending undelivered = {"FAILED", "FAILURE", refused,
                                          "Tried to deliver the TASK message."},
                           unread = {"FAILED", "FAILURE", refused, "Checked the TASK message."},
                           unanswered = {"FAILED", "FAILURE", "The time of the task is over.",
                                         "Waited for the RESPONSE of the agent."};

/* began_ms, now_ms: the times of the work. */
static void timing_write(struct amp_jw *w, int64_t began_ms, int64_t now_ms)
{
    if (began_ms <= 0 || began_ms > now_ms)
        began_ms = now_ms;
    amp_jw_member_open(w, "timing", '{');
    amp_rec_time(w, "started_at", began_ms);
    amp_rec_time(w, "completed_at", now_ms);
    amp_jw_member_int(w, "duration_seconds", (now_ms - began_ms) / 1000);
    amp_jw_close(w, '}');
}

/* The RESPONSE to a TASK that is not carried out, without timing. */
static void response_write(struct amp_jw *w, const struct amp_view *v, const struct amp_finding *f,
                           const struct amp_span target[AMP_AOP_TARGET], const struct ending *end)
{
    amp_aop_header(w, "RESPONSE");
    amp_jw_member_str(w, "session_id", v->correlation);
    amp_jw_member_str(w, "task_id", v->task);
    amp_jw_member_open(w, "agent", '{');
    amp_jw_member_str(w, "name", v->n_to ? v->to[0] : AMP_SPAN("UNKNOWN"));
    amp_jw_member_str(w, "provider", target[AMP_AOP_PROVIDER]);
    amp_jw_member_raw(
        w, "model", target[AMP_AOP_MODEL].n > 0 ? target[AMP_AOP_MODEL] : AMP_SPAN("\"UNKNOWN\""));
    amp_jw_close(w, '}');
    amp_jw_member_open(w, "task_status", '{');
    amp_jw_member_text(w, "state", end->state);
    amp_jw_member_text(w, "final_signal", end->signal);
    message_write(w, f);
    amp_jw_close(w, '}');
    amp_jw_member_open(w, "execution_summary", '{');
    amp_jw_member_text(w, "summary", end->summary);
    amp_jw_member_open(w, "actions", '[');
    amp_jw_str(w, amp_span_str(end->did));
    amp_jw_close(w, ']');
    amp_jw_close(w, '}');
    details_write(w, f);
}

static int prompt_write(struct amp_jw *w, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, PROMPT_MOST);
    bool task = amp_aop_is_task(v);
    if (task && amp_aop_v1_prompt(v, &b, err) < 0) {
        if (!amp_code_is(err->code, buffer_full))
            return -1;
        task = false; /* too long for any agent */
    }
    amp_jw_member_raw(w, "to_version", task ? AMP_SPAN("\"1.x\"") : AMP_SPAN("null"));
    if (task)
        amp_jw_member_str(w, "v1_prompt", amp_buf_span(&b));
    else
        amp_jw_member_raw(w, "v1_prompt", AMP_SPAN("null"));
    return 0;
}

static int fallback_write(struct amp_jw *w, const struct amp_view *v, const struct amp_finding *f,
                          const char *now, struct amp_error *err)
{
    struct amp_span version = text_json(v->tape, 0, "aop_version");
    amp_aop_header(w, "EVENT");
    amp_jw_member_text(w, "event", "VERSION_FALLBACK");
    /* An event requires a session, even if the message names none. */
    amp_jw_member_str(w, "session_id", v->correlation.n ? v->correlation : AMP_SPAN("UNKNOWN"));
    if (v->task.n)
        amp_jw_member_str(w, "task_id", v->task);
    amp_jw_member_text(w, "timestamp", now);
    amp_jw_member_text(w, "reason", amp_aop_code(f->code));
    amp_jw_member_text(w, "classification", amp_aop_is_2(v->tape) ? "V2" : AMP_AOP_NEITHER);
    amp_jw_member_raw(w, "from_version", version.n > 0 ? version : AMP_SPAN("null"));
    if (prompt_write(w, v, err) < 0)
        return -1;
    details_write(w, f);
    return 0;
}

static bool is_respondable(const struct amp_view *v)
{
    return v->kind == AMP_KIND_DISPATCH && v->correlation.n && v->task.n;
}

/* Makes one line with LF. */
static int response_make(const struct amp_view *v, const struct amp_finding *f,
                         const struct amp_span target[AMP_AOP_TARGET], const struct ending *end,
                         int64_t began_ms, int64_t now_ms, struct amp_buf *out,
                         struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    response_write(&w, v, f, target, end);
    timing_write(&w, began_ms, now_ms);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
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
    return is_respondable(v)
               ? response_make(v, &f, refusal->target, refusal->late ? &unanswered : &undelivered,
                               0, now_ms, out, err)
               : 0;
}

int amp_aop_ended(const struct amp_view *v, const struct amp_aop_end *end, int64_t now_ms,
                  struct amp_buf *out, struct amp_error *err)
{
    const struct amp_finding f = {.code = end->code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "session",
                                  .message = end->what,
                                  .expected = ""};
    const struct ending *how = endings;
    struct amp_span target[AMP_AOP_TARGET];
    while (strcmp(how->state, end->state) != 0)
        how++;
    amp_aop_target(v, target);
    return response_make(v, &f, target, how, end->began_ms, now_ms, out, err);
}

enum amp_refuse_result amp_aop_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    /* A refusal is not refused: two gates would answer each other forever. */
    if (v->kind == AMP_KIND_NACK)
        return AMP_REFUSE_NONE;
    char now[AMP_TIME_MAX];
    struct amp_jw w;
    size_t before = out->len;
    bool read = !amp_code_is(first->code, E_SCHEMA_VALIDATION) &&
                !amp_code_is(first->code, E_PARSE_FAILURE);
    if (read && is_respondable(v)) {
        struct amp_span target[AMP_AOP_TARGET];
        amp_aop_target(v, target);
        return response_make(v, first, target, &unread, 0, now_ms, out, err) < 0
                   ? AMP_REFUSE_FAILED
                   : AMP_REFUSE_WRITTEN;
    }
    amp_time_format(now_ms, now);
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    if (fallback_write(&w, v, first, now, err) < 0) {
        out->len = before;
        return AMP_REFUSE_FAILED;
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? AMP_REFUSE_FAILED : AMP_REFUSE_WRITTEN;
}
