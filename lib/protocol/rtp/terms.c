/* Runtime Protocol v1: the terms of delivery (§5, §6). */
#include <string.h>

#include <amp/base/id.h>

#include "protocol/rtp/answer.h"
#include "protocol/rtp/rtp.h"
#include "protocol/terms.h"

static bool is_answerable(const struct amp_view *of)
{
    return of->id.n > 0;
}

static int answer_write(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                        struct amp_error *err)
{
    if (!is_answerable(of))
        return amp_terms_record(of, a, out, err);
    bool known = amp_rtp_kind_of(of) < AMP_RTP_CATALOG;
    struct amp_rtp_answer to = {.id = of->id,
                                .type = known ? of->type : AMP_SPAN(""),
                                .source = of->from,
                                .correlation = of->correlation,
                                .node = a->node ? a->node : a->by,
                                .by = a->by,
                                .sequence = a->sequence,
                                .retryable = a->retryable,
                                .now_ms = a->now_ms};
    return amp_rtp_ack(&to, a->stage, amp_span_str(a->code), amp_span_str(a->note), out, err);
}

static int next_id(const struct amp_view *of, int64_t now_ms, char out[AMP_MSG_ID_MAX])
{
    (void)of;
    (void)now_ms;
    memcpy(out, "evt_", 4);
    amp_uuid4(out + 4);
    return 0;
}

static int attempt_edit(struct amp_edit *e, const struct amp_again *a)
{
    const struct amp_view *v = e->v;
    uint32_t trace = amp_tape_get(v->tape, 0, AMP_SPAN("trace"));
    if (trace == AMP_TOK_NONE || v->tape->tok[trace].type != AMP_JSON_OBJECT)
        return amp_fail(e->err, AMP_NO, "bad_value", "an event without trace has no attempts");
    if (amp_edit_text(e, 0, "eventId", amp_span_str(a->id)) < 0 ||
        amp_edit_text(e, 0, "sourceNodeId", amp_span_str(a->node)) < 0 ||
        amp_edit_int(e, 0, "seq", a->sequence) < 0 ||
        amp_edit_int(e, trace, "attempt", amp_attempt_after(v->attempt, INT64_MAX)) < 0)
        return -1;
    if (v->token.n > 0)
        return 0;
    return amp_edit_text(e, trace, "idempotencyKey", a->first);
}

static uint32_t version_at(const struct amp_tape *t, const char *pointer)
{
    uint32_t tok = amp_tape_pointer(t, 0, amp_span_str(pointer));
    return tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_STRING ? tok : AMP_TOK_NONE;
}

/* A skill distribution is done when its completion confirms the version (§7). */
static bool is_confirmed(struct amp_span request, const struct amp_view *done)
{
    static const char *const places[] = {"/payload/delegationSkillRef/version",
                                         "/payload/installedVersion", "/payload/version"};
    struct amp_json_fault fault;
    struct amp_tape t;
    bool good = true;
    if (!memmem(request.p, request.n, "skill_distribution", 18))
        return true;
    amp_tape_init(&t, NULL);
    uint32_t payload = amp_tape_scan(&t, request.p, request.n, &fault) < 0
                           ? AMP_TOK_NONE
                           : amp_tape_pointer(&t, 0, AMP_SPAN("/payload"));
    if (payload != AMP_TOK_NONE && t.tok[payload].type == AMP_JSON_OBJECT &&
        amp_object_is(&t, payload, "taskType", "skill_distribution")) {
        uint32_t wanted = version_at(&t, places[0]);
        good = wanted == AMP_TOK_NONE;
        for (unsigned i = 0; !good && i < AMP_SPEC_COUNT(places); i++) {
            uint32_t said = version_at(done->tape, places[i]);
            good = said != AMP_TOK_NONE && amp_tape_equal(&t, wanted, done->tape, said);
        }
    }
    amp_tape_release(&t);
    return good;
}

static const char *const silent[] = {"ack", "signal", "dead_letter", NULL};

/* An event is a dead letter after five attempts. */
const struct amp_terms amp_terms_rtp = {
    .acknowledges = true,
    .ends = is_confirmed,
    .waits_for = AMP_STAGE_RECEIVED,
    .ack_timeout_ms = 20000,
    .sla_ms = 120000,
    .silent = silent,
    .acks_are_durable = true,
    .stages_follow = true,
    .tells = AMP_TELLS_NOTICE,
    .not_holder = "not_claimant",
    .not_addressee = "not_assignee",
    .retries = {.budget = 4, .base_ms = 1000, .cap_ms = 300000},
    .again_id = next_id,
    .again = attempt_edit,
    .numbering = AMP_NUMBERED_BY_NODE,
    .no_stages = 1u << AMP_STAGE_READ | 1u << AMP_STAGE_TIMED_OUT,
    .stages = "an ack of the Runtime Protocol says accepted, processed or failed_terminal",
    .answer = answer_write,
    .answers = is_answerable,
};
