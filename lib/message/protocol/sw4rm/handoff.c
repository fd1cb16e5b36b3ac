/* SW4RM: handoffs (§17.6). */
#include "message/protocol/handoff.h"

#include <stdio.h>

#include <amp/base/id.h>

#include "message/protocol/sw4rm/answer.h"
#include "message/protocol/sw4rm/sw4rm.h"
#include "message/protocol/view/object.h"

#define CONTEXT "context_snapshot"

/* A member of the payload that is a string without escapes; the protocol has no field for the task,
 * so it is one of ours that others ignore. */
static struct amp_span text_of(const struct amp_view *v, const char *key)
{
    uint32_t tok = amp_object_get(v->tape, v->payload, key, AMP_JSON_STRING);
    return tok != AMP_TOK_NONE ? amp_tok_raw(v->tape, tok) : (struct amp_span){"", 0};
}

static void request_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    uint32_t context = amp_tape_get(v->tape, v->payload, AMP_SPAN(CONTEXT));
    uint32_t priority = amp_object_get(v->tape, v->payload, "priority", AMP_JSON_NUMBER);

    out->act = AMP_HANDOFF_OFFERS;
    out->from = v->body.handoff.from;
    out->to = v->body.handoff.to;
    out->reason = v->body.handoff.note;
    out->wanted = v->body.handoff.wanted;
    out->timeout_ms = v->body.handoff.timeout_ms;
    out->timed = true;
    out->task = v->task.n > 0 ? v->task : text_of(v, "task_id");
    /* protobuf's default for bytes is an empty string. */
    if (context != AMP_TOK_NONE && v->tape->tok[context].type != AMP_JSON_NULL &&
        !amp_tok_is(v->tape, context, AMP_SPAN("")))
        out->context = amp_tok_source(v->tape, context);
    if (priority != AMP_TOK_NONE)
        amp_tok_int(v->tape, priority, &out->priority);
}

static bool handoff_read(const struct amp_view *v, struct amp_handoff_said *out)
{
    *out = (struct amp_handoff_said){.id = v->body.handoff.ref, .by = v->from};
    switch (v->kind == AMP_KIND_HANDOFF ? amp_sw4rm_shape_of(amp_sw4rm_kind_of(v))
                                        : AMP_SHAPE_NONE) {
    case AMP_SHAPE_HANDOFF_REQUEST:
        request_read(v, out);
        return true;
    case AMP_SHAPE_HANDOFF_ACCEPT:
        out->act = AMP_HANDOFF_TAKES;
        out->by = v->body.handoff.to.n > 0 ? v->body.handoff.to : v->from;
        return true;
    case AMP_SHAPE_HANDOFF_REJECT:
        out->act = AMP_HANDOFF_DECLINES;
        out->why = v->body.handoff.note;
        return true;
    case AMP_SHAPE_HANDOFF_STATUS:
        /* The other states are reports to the origin. */
        if (!amp_span_is(v->body.handoff.status, "COMPLETED"))
            return false;
        out->act = AMP_HANDOFF_FINISHES;
        return true;
    default:
        return false;
    }
}

/* ---- writing ---- */

static int line_write(const struct amp_handoff_says *s, struct amp_buf *payload, struct amp_jw *p,
                      struct amp_buf *out, struct amp_error *err)
{
    char sum[AMP_SHA256_MAX], token[160], by[AMP_MSG_ID_MAX];

    amp_jw_close(p, '}');
    if (amp_jw_end(p, err) < 0)
        return -1;
    amp_sha256_hex(amp_buf_span(payload), sum);
    amp_span_copy(s->by, by, sizeof by);
    snprintf(token, sizeof token, "%.64s:handoff:%.16s", by, sum);
    const struct amp_sw4rm_said said = {.from = by,
                                        .type = "DATA",
                                        .token = token,
                                        .correlation = s->correlation,
                                        .sequence = s->sequence,
                                        .now_ms = s->now_ms};
    return amp_sw4rm_line(s->to, &said, amp_buf_span(payload), out, err);
}

static void payload_open(struct amp_jw *w, struct amp_buf *payload, size_t most,
                         const struct amp_handoff_says *s)
{
    amp_buf_init(payload, most);
    amp_jw_init(w, payload);
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "request_id", s->id);
}

static int request_write(const struct amp_handoff_says *s, struct amp_buf *out,
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;

    payload_open(&w, &payload, out->max, s);
    amp_jw_member_str(&w, "from_agent", s->from);
    amp_jw_member_str(&w, "to_agent", s->to);
    amp_jw_member_str(&w, "reason", s->reason);
    amp_jw_member_raw(&w, CONTEXT, s->context.n > 0 ? s->context : AMP_SPAN("null"));
    amp_jw_member_open(&w, "capabilities_required", '[');
    for (uint32_t i = 0; i < s->n_wanted; i++)
        amp_jw_str(&w, s->wanted[i]);
    amp_jw_close(&w, ']');
    amp_jw_member_int(&w, "priority", s->priority);
    amp_jw_member_int(&w, "timeout_ms", s->timeout_ms);
    amp_jw_some_str(&w, "task_id", s->task);
    return line_write(s, &payload, &w, out, err);
}

static int status_write(const struct amp_handoff_says *s, struct amp_buf *out,
                        struct amp_error *err)
{
    AMP_BUF struct amp_buf payload = {0};
    struct amp_jw w;

    payload_open(&w, &payload, out->max, s);
    amp_jw_member_str(&w, "from_agent", s->from); /* tells it from other reports */
    amp_jw_member_text(&w, "status", s->status);
    amp_jw_some_str(&w, "rejection_reason", s->reason);
    return line_write(s, &payload, &w, out, err);
}

const struct amp_handoff_terms amp_handoffs_sw4rm = {
    .read = handoff_read,
    .depth = 3,
    .offer = request_write,
    .report = status_write,
    .context_at = CONTEXT,
};
