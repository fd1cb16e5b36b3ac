/* Reads the members of a task that its executor honours. */
#include "message/protocol/rtp/task.h"

#include "message/protocol/rtp/rtp.h"

static struct amp_span text_at(const struct amp_tape *t, uint32_t object, const char *key)
{
    uint32_t tok = amp_object_get(t, object, key, AMP_JSON_STRING);
    return tok != AMP_TOK_NONE ? amp_tok_raw(t, tok) : AMP_SPAN("");
}

static void capability_add(struct amp_rtp_task *out, struct amp_span id)
{
    if (id.n > 0 && out->n_capabilities < AMP_RTP_CAPABILITIES_MAX)
        out->capability[out->n_capabilities++] = id;
}

bool amp_rtp_task_read(const struct amp_view *v, struct amp_rtp_task *out)
{
    enum amp_rtp_kind kind = v->protocol == AMP_PROTO_RTP ? amp_rtp_kind_of(v) : AMP_RTP_UNKNOWN;
    const struct amp_tape *t = v->tape;
    struct amp_span version[AMP_RTP_VERSIONS_MAX];
    *out = (struct amp_rtp_task){0};
    if ((kind != AMP_RTP_CREATE && kind != AMP_RTP_SKILL) || v->payload == AMP_TOK_NONE)
        return false;
    out->skill = kind == AMP_RTP_SKILL;
    capability_add(out, text_at(t, v->payload, "capabilityId"));
    uint32_t list = amp_object_get(t, v->payload, "requiredCapabilities", AMP_JSON_ARRAY);
    for (uint32_t i = list + 1; list != AMP_TOK_NONE && i < t->tok[list].next; i = t->tok[i].next)
        if (t->tok[i].type == AMP_JSON_STRING)
            capability_add(out, amp_tok_raw(t, i));
    if (out->skill && amp_rtp_versions(t, version) > 0)
        out->version = version[0];
    struct amp_span until = text_at(t, v->payload, "deadlineAt");
    if (until.n == 0)
        until = text_at(t, v->payload, "requiredBy");
    if (until.n > 0 && !amp_time_parse(until, &out->deadline_ms))
        out->deadline_ms = 0;
    out->routing =
        text_at(t, amp_object_get(t, 0, "trace", AMP_JSON_OBJECT), "routingPolicyVersion");
    return true;
}

bool amp_rtp_task_confirms(const struct amp_view *v, struct amp_span *version)
{
    struct amp_span said[AMP_RTP_VERSIONS_MAX];
    *version = AMP_SPAN("");
    if (v->protocol != AMP_PROTO_RTP || amp_rtp_kind_of(v) != AMP_RTP_COMPLETE)
        return false;
    if (amp_rtp_versions(v->tape, said) > 0)
        *version = said[0];
    return true;
}
