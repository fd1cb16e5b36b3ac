/* Runtime Protocol v1: the terms of delivery (§5, §6). */
#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/handoff.h"
#include "message/protocol/question.h"
#include "message/protocol/reply.h"
#include "message/protocol/routing.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/rtp/task.h"
#include "message/protocol/work.h"

static bool is_answerable(const struct amp_view *of)
{
    return of->id.n > 0;
}

static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    return is_answerable(of) ? amp_rtp_answer(of, a, out, err) : amp_terms_record(of, a, out, err);
}

static int duplicate_write(const struct amp_view *of, const struct amp_answer *a,
                           const struct amp_first_attempt *first, struct amp_buf *out,
                           struct amp_error *err)
{
    char note[300];
    struct amp_answer said = *a;
    snprintf(note, sizeof(note), "%.*s is %s", (int)(first->id.n < 200 ? first->id.n : 200),
             first->id.p, first->status);
    said.stage = first->done ? AMP_STAGE_FULFILLED : AMP_STAGE_RECEIVED;
    said.code = first->done ? AMP_CODE(duplicate_detected) : AMP_CODE(already_in_progress);
    said.note = note;
    return answer_write(of, &said, out, err);
}

static int next_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX])
{
    (void)of;
    (void)now_ms;
    amp_rtp_id(out);
    return 0;
}

static int attempt_edit(struct amp_edit *e, const struct amp_again *a)
{
    const struct amp_view *v = e->v;
    uint32_t trace = amp_object_get(v->tape, 0, "trace", AMP_JSON_OBJECT);
    if (trace == AMP_TOK_NONE)
        return amp_fail(e->err, AMP_NO, bad_value, "an event without trace has no attempts");
    if (amp_edit_text(e, 0, "eventId", amp_span_str(a->id)) < 0 ||
        amp_edit_text(e, 0, "sourceNodeId", amp_span_str(a->node)) < 0 ||
        amp_edit_int(e, 0, "seq", a->sequence) < 0 ||
        amp_edit_int(e, trace, "attempt", amp_attempt_after(v->attempt, INT64_MAX)) < 0)
        return -1;
    if (v->token.n > 0)
        return 0;
    return amp_edit_text(e, trace, "idempotencyKey", a->first);
}

/* A task is not attempted after its deadline (§4). */
static void task_retries(const struct amp_view *of, struct amp_again_terms *out)
{
    struct amp_rtp_task t;
    if (amp_rtp_task_read(of, &t) && !t.skill)
        out->until_ms = t.deadline_ms;
}

uint32_t amp_rtp_versions(const struct amp_tape *t, struct amp_span out[AMP_RTP_VERSIONS_MAX])
{
    static const char *const places[AMP_RTP_VERSIONS_MAX] = {
        "/payload/delegationSkillRef/version", "/payload/installedVersion", "/payload/version"};
    uint32_t n = 0;
    for (unsigned i = 0; i < AMP_RTP_VERSIONS_MAX; i++) {
        uint32_t tok = amp_tape_pointer(t, 0, amp_span_str(places[i]));
        if (tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_STRING)
            out[n++] = amp_tok_raw(t, tok);
    }
    return n;
}

/* A skill distribution is done when its completion confirms the version (§7). */
static bool is_confirmed(struct amp_span request, const struct amp_view *done)
{
    struct amp_span wanted[AMP_RTP_VERSIONS_MAX], said[AMP_RTP_VERSIONS_MAX];
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    if (!memmem(request.p, request.n, "skill_distribution", 18))
        return true;
    amp_tape_init(&t, NULL);
    if (amp_line_message(request, &request, NULL) < 0 ||
        amp_tape_scan(&t, request.p, request.n, &fault) < 0)
        return true;
    uint32_t payload = amp_tape_get(&t, 0, AMP_SPAN("payload"));
    if (!amp_object_is(&t, payload, "taskType", "skill_distribution") ||
        amp_rtp_versions(&t, wanted) == 0)
        return true;
    for (uint32_t i = amp_rtp_versions(done->tape, said); i-- > 0;)
        if (amp_span_eq(wanted[0], said[i]))
            return true;
    return false;
}

static bool is_for(struct amp_span request, const char *agent)
{
    struct amp_json_fault fault;
    AMP_TAPE struct amp_tape t = {0};
    amp_tape_init(&t, NULL);
    if (amp_line_message(request, &request, NULL) < 0 ||
        amp_tape_scan(&t, request.p, request.n, &fault) < 0)
        return false;
    uint32_t payload = amp_tape_get(&t, 0, AMP_SPAN("payload"));
    uint32_t list = amp_object_get(&t, payload, "toAgents", AMP_JSON_ARRAY);
    for (uint32_t i = list + 1; list != AMP_TOK_NONE && i < t.tok[list].next; i = t.tok[i].next)
        if (amp_tok_is(&t, i, amp_span_str(agent)) || amp_tok_is(&t, i, AMP_SPAN("all")))
            return true;
    return false;
}

static bool work_name(const struct amp_view *v, struct amp_work *out)
{
    switch (amp_rtp_kind_of(v)) {
    case AMP_RTP_CREATE:
    case AMP_RTP_SKILL:
    case AMP_RTP_ACCEPT:
    case AMP_RTP_ACK_ACCEPT:
    case AMP_RTP_COMPLETE:
    case AMP_RTP_FAILED:
        *out = (struct amp_work){AMP_SPAN("task"), v->task, v->wants_outcome};
        return true;
    case AMP_RTP_MESSAGE:
    case AMP_RTP_REPLY:
        *out = (struct amp_work){AMP_SPAN("reply"), v->correlation, v->wants_outcome};
        return true;
    default:
        return false;
    }
}

static bool is_retryable(const struct amp_view *v)
{
    return amp_object_get(v->tape, v->payload, "retryable", AMP_JSON_TRUE) != AMP_TOK_NONE;
}

/* A failure is an outcome like another: the work was done and reported. */
static bool outcome_read(const struct amp_view *v, struct amp_outcome *out)
{
    switch (amp_rtp_kind_of(v)) {
    case AMP_RTP_ACCEPT:
    case AMP_RTP_ACK_ACCEPT:
        out->stage = AMP_STAGE_RECEIVED;
        out->by = v->body.progress.agent;
        out->by_at = "/payload/acceptedByAgentId";
        out->holds = out->takes_up = true;
        out->eta_ms = v->body.progress.eta_ms;
        return true;
    case AMP_RTP_FAILED:
        out->stage = AMP_STAGE_FAILED;
        out->by = v->body.result.agent;
        out->by_at = "/payload/failedByAgentId";
        out->code = v->body.result.failure;
        out->releases = is_retryable(v);
        return true;
    case AMP_RTP_COMPLETE:
        out->by = v->body.result.agent;
        out->by_at = "/payload/completedByAgentId";
        break;
    case AMP_RTP_REPLY:
        break;
    default:
        return false;
    }
    if (v->payload != AMP_TOK_NONE)
        out->result = amp_tok_source(v->tape, v->payload);
    return true;
}

static enum amp_operation_by operation_of(const struct amp_view *v)
{
    return v->kind == AMP_KIND_DISPATCH || amp_span_is(v->type, "message")
               ? AMP_OPERATION_BY_CONTENT
               : AMP_OPERATION_NONE;
}

static enum amp_registry_act registry_act(const struct amp_view *v)
{
    return amp_span_is(v->type, "capabilities.catalog") ? AMP_REGISTRY_PUBLISH : AMP_REGISTRY_NONE;
}

static const char *const accepted[] = {"task_create", NULL};
static const char *const silent[] = {"ack", "signal", "dead_letter", NULL};

/* An event is a dead letter after five attempts. */
const struct amp_delivery_terms amp_delivery_rtp = {
    .acknowledges = true,
    .acks_say_retryable = true,
    .waits_for = AMP_STAGE_RECEIVED,
    .ack_timeout_ms = 20000,
    .sla_ms = 120000,
    .silent = silent,
    .acks_are_durable = true,
    .handed_over = 1u << AMP_STAGE_FULFILLED, /* admission to the inbox is acknowledged before */
    .stages_follow = true,
    .notifies = AMP_NOTIFIES_NOTICE,
    .retries = {.budget = 4, .base_ms = 1000, .cap_ms = 300000},
    .again_id = next_id,
    .again = attempt_edit,
    .own_retries = task_retries,
    .repeats = amp_rtp_policies,
};

const struct amp_routing_terms amp_routing_rtp = {
    .takes_tokens = true,
    .refuses_malformed = true,
    .by_catalog = true,
    .expands_all = true,
    .lost_code = AMP_CODE(invalid_targets),
    .unaddressed_code = AMP_CODE(missing_route_fields),
    .undeliverable_code = AMP_CODE(no_route),
    .expired_code = AMP_CODE(expired),
    .registry = registry_act,
};

const struct amp_work_terms amp_work_rtp = {
    .work = work_name,
    .sender_at = "/sourceAgentId",
    .outcome = outcome_read,
    .ends = is_confirmed,
    .operation = operation_of,
    .reviews = true,
    .counts_attempts = true,
    .orders_conversations = true,
    .accepted = accepted,
    .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(not_claimant),
               [AMP_WORK_TAKEN] = AMP_CODE(already_claimed),
               [AMP_WORK_NOT_ADDRESSEE] = AMP_CODE(not_assignee),
               [AMP_WORK_NOT_ACCEPTED] = AMP_CODE(accept_required),
               [AMP_WORK_UNAPPROVED] = AMP_CODE(approval_required),
               [AMP_WORK_FULL] = AMP_CODE(backpressure)},
    .claims_most = 6,
    .failures_most = 3,
    .is_for = is_for,
};

const struct amp_answer_terms amp_answers_rtp = {
    .numbering = AMP_NUMBERED_BY_NODE,
    .no_stages = 1u << AMP_STAGE_READ | 1u << AMP_STAGE_TIMED_OUT,
    .stages = "an ack of the Runtime Protocol is accepted, processed or failed_terminal",
    .answer = answer_write,
    .replies = &amp_replies_rtp,
    .handoffs = &amp_handoffs_rtp,
    .duplicate = duplicate_write,
    .answers = is_answerable,
};
