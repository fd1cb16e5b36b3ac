/* Runtime Protocol v1 §8: review items, which a person resolves, reassigns or dismisses. The seed
 * has no event for that: the answer is a signal about the item, in the conversation of its first
 * sample. */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/question.h"
#include "message/protocol/rtp/rtp.h"
#include "json/record.h"

/* The item itself, or an event with one. */
static bool is_item(const struct amp_view *v)
{
    if (!v->json || v->text.p != v->message.p)
        return false;
    if (amp_span_is(v->type, amp_rtp_rows[AMP_RTP_REVIEW].type))
        return true;
    return v->payload != AMP_TOK_NONE && amp_object_has(v->tape, v->payload, "reviewId") &&
           amp_object_has(v->tape, v->payload, "failureClass");
}

static const json_t *item_of(const json_t *message)
{
    const json_t *payload = json_object_get(message, "payload");
    return json_object_get(message, "reviewId") ? message : payload;
}

static struct amp_span item_text(const struct amp_view *v, const char *key)
{
    uint32_t from = v->payload == AMP_TOK_NONE ? 0 : v->payload;
    uint32_t tok = amp_object_get(v->tape, from, key, AMP_JSON_STRING);
    return tok == AMP_TOK_NONE ? AMP_SPAN("") : amp_tok_raw(v->tape, tok);
}

static int question_id(const struct amp_view *v, char out[AMP_MSG_ID_MAX])
{
    struct amp_span id = item_text(v, "reviewId");
    return snprintf(out, AMP_MSG_ID_MAX, "%.*s", (int)id.n, id.p);
}

static enum amp_about_kind question_about(const struct amp_view *v)
{
    return AMP_ABOUT_UNKNOWN;
}

static enum amp_reason question_reason(const struct amp_view *v)
{
    return amp_span_is(item_text(v, "failureClass"), AMP_CODE(approval_required))
               ? AMP_REASON_SECURITY_APPROVAL
               : AMP_REASON_TASK_ESCALATION;
}

static const char *question_name(const json_t *message, const char *id)
{
    const char *own = amp_json_str(item_of(message), "reviewId");
    return *own ? own : id;
}

static int question_title(const json_t *message, const char *why, bool suspended,
                          struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_str(out, "review item of the Runtime Protocol", err);
}

/* The fields of the item, or of an event with it; absent members are not shown. */
static const struct amp_question_field fields[] = {{"review", "", false},
                                                   {"failure", "failureClass", false},
                                                   {"failure", "payload.failureClass", false},
                                                   {"capability", "capabilityId", false},
                                                   {"capability", "payload.capabilityId", false},
                                                   {"delegation", "delegationSkillVersion", false},
                                                   {"executor", "executorSkillVersion", false},
                                                   {"samples", "sampleCorrIds", true},
                                                   {"samples", "payload.sampleCorrIds", true},
                                                   {"made at", "createdAt", false},
                                                   {0}};

static const struct amp_action actions[] = {
    {"resolved", AMP_ACTION_PLAIN, AMP_ACTION_APPROVES, "close the item as resolved"},
    {"reassigned", AMP_ACTION_PLAIN, 0, "give the item to the agent that the note names first"},
    {"dismissed", AMP_ACTION_PLAIN, AMP_ACTION_DENIES, "close the item without a change"},
    {0}};

static int signal_write(const struct amp_asked *q, const struct amp_operator_answer *a,
                        const char *assignee, const char *note, struct amp_buf *out,
                        struct amp_error *err)
{
    const json_t *item = item_of(q->message), *samples = json_object_get(item, "sampleCorrIds");
    const char *own = amp_json_str(q->message, "corrId"), *review = amp_json_str(item, "reviewId");
    const char *sample = json_string_value(json_array_get(samples, 0));
    const json_t *trace = json_object_get(q->message, "trace");
    struct amp_rtp_event e = {
        .kind = "signal",
        .by = q->by,
        .to = amp_span_str(*assignee ? assignee : amp_json_str(q->message, "sourceAgentId")),
        .correlation = amp_span_str(*own     ? own
                                    : sample ? sample
                                             : review),
        .sequence = q->sequence,
        .now_ms = q->now_ms};
    struct amp_jw w;

    for (unsigned i = 0; i < AMP_RTP_POLICIES; i++)
        e.policies[i] = amp_span_str(amp_json_str(trace, amp_rtp_policy_keys[i]));
    amp_rtp_open(&w, &e, out);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "reviewId", review);
    amp_jw_member_text(&w, "capabilityId", amp_json_str(item, "capabilityId"));
    amp_jw_member_text(&w, "status", a->action);
    amp_jw_member_text(&w, "decidedBy", a->op);
    amp_rec_time(&w, "decidedAt", q->now_ms);
    amp_jw_some_str(&w, "assignee", amp_span_str(assignee));
    amp_jw_some_str(&w, "note", amp_span_str(note));
    amp_jw_some_str(&w, "policy", amp_span_str(a->policy));
    amp_jw_close(&w, '}');
    return amp_rtp_close(&w, &e, err);
}

static int question_decide(const struct amp_asked *q, const struct amp_operator_answer *a,
                           struct amp_buf *out, struct amp_error *err)
{
    char assignee[256] = "";
    const char *note = a->note ? a->note : "";

    if (strcmp(a->action, "reassigned") == 0) {
        size_t n = strcspn(note, " \t");
        if (n == 0 || !amp_span_copy((struct amp_span){note, n}, assignee, sizeof assignee))
            return amp_fail(err, AMP_DATAERR, bad_answer,
                            "reassigned needs an agent (reassigned AGENT [NOTE])");
        note += n + strspn(note + n, " \t");
    }
    return signal_write(q, a, assignee, note, out, err);
}

/* The item was answered elsewhere. */
static bool question_settled(const struct amp_view *later)
{
    return amp_span_is(later->type, "signal") && later->payload != AMP_TOK_NONE &&
           amp_object_has(later->tape, later->payload, "reviewId") &&
           amp_object_has(later->tape, later->payload, "status");
}

static struct amp_span question_subject(const struct amp_view *later)
{
    return item_text(later, "reviewId");
}

/* An item is not denied by default: it harms nobody while it is open. */
const struct amp_question_terms amp_questions_rtp = {
    .asks = is_item,
    .settles = question_settled,
    .subject = question_subject,
    .id = question_id,
    .about = question_about,
    .reason = question_reason,
    .name = question_name,
    .title = question_title,
    .fields = fields,
    .actions = actions,
    .words = {"resolved, reassigned AGENT or dismissed"},
    .form = {"resolved [NOTE] | reassigned AGENT [NOTE] | dismissed [NOTE]"},
    .decide = question_decide,
};
