/*
 * What claims to be a message. An object in a log that has nothing of a protocol but a member named
 * as its id (chat services have a message_id, too) claims nothing.
 */
#include <string.h>

#include "protocol/extract/extract.h"
#include "protocol/spec.h"

/* A protocol that is told by the name of its id, and what has to stand beside it. */
static const struct {
    enum amp_protocol protocol;
    const char *id;
    const char *beside[8];
} by_id[] = {
    {AMP_PROTO_AMP, "msg_id", {"protocol_version", "type", "from", "task_id", "payload"}},
    {AMP_PROTO_SW4RM,
     "message_id",
     {"message_type", "producer_id", "correlation_id", "sequence_number", "payload"}},
    {AMP_PROTO_RTP, "eventId", {"kind", "seq", "sourceNodeId", "sourceAgentId", "createdAt"}},
};

static bool by_id_alone(enum amp_protocol p, const struct amp_tape *t, uint32_t object)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(by_id); i++) {
        if (by_id[i].protocol != p || !amp_spec_has(t, object, by_id[i].id))
            continue;
        for (unsigned k = 0; by_id[i].beside[k]; k++)
            if (amp_tape_get(t, object, amp_span_str(by_id[i].beside[k])) != AMP_TOK_NONE)
                return false;
        return true;
    }
    return false;
}

bool amp_claim_object(const struct amp_tape *t, uint32_t object, enum amp_protocol only)
{
    for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
        if ((only == AMP_PROTO_NONE || only == p) && amp_spec_detects(amp_spec_of(p), t, object) &&
            !by_id_alone(p, t, object))
            return true;
    return false;
}

/* The members that tell, in text that cannot be scanned. */
static const struct mark {
    const char *key;
    enum amp_protocol protocol;
    unsigned weight; /* 2 claim */
    const char *value;
} marks[] = {
    {"protocol_version", AMP_PROTO_AMP, 2, "AMP/"},
    {"msg_id", AMP_PROTO_AMP, 1, ""},
    {"type", AMP_PROTO_AMP, 1, ""},
    {"task_id", AMP_PROTO_AMP, 1, ""},
    {"aop_version", AMP_PROTO_AOP, 2, ""},
    {"protocol_family", AMP_PROTO_AOP, 2, "AOP"},
    {"protocol", AMP_PROTO_AOF, 2, "aof"},
    {"eventId", AMP_PROTO_RTP, 1, ""},
    {"kind", AMP_PROTO_RTP, 1, ""},
    {"sourceNodeId", AMP_PROTO_RTP, 1, ""},
    {"sourceAgentId", AMP_PROTO_RTP, 1, ""},
    {"message_id", AMP_PROTO_SW4RM, 1, ""},
    {"message_type", AMP_PROTO_SW4RM, 1, ""},
    {"producer_id", AMP_PROTO_SW4RM, 1, ""},
    {"correlation_id", AMP_PROTO_SW4RM, 1, ""},
};
/* One key of these must be among them: task_id beside type is anybody's. */
static const char *const tell[] = {"msg_id", "eventId", "message_id", "message_type",
                                   "sourceNodeId"};

struct sum {
    unsigned weight[AMP_PROTO_COUNT];
    bool told[AMP_PROTO_COUNT];
};

static void note(struct sum *s, struct amp_span key, struct amp_span value)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(marks); i++) {
        const struct mark *m = &marks[i];
        size_t n = strlen(m->value);
        if (!amp_span_is(key, m->key) || value.n < n || memcmp(value.p, m->value, n) != 0)
            continue;
        s->weight[m->protocol] += m->weight;
        s->told[m->protocol] |= m->weight == 2;
        for (unsigned k = 0; k < AMP_SPEC_COUNT(tell); k++)
            s->told[m->protocol] |= strcmp(m->key, tell[k]) == 0;
    }
}

bool amp_claim_text(struct amp_span text, enum amp_protocol only)
{
    struct sum sum = {0};
    struct amp_span key = {NULL, 0};
    unsigned depth = 0;
    bool want_key = false;
    uint8_t ansi = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (amp_ansi_takes(&ansi, c))
            continue;
        if (c == '"') {
            size_t from = ++i;
            while (i < text.n && text.p[i] != '"')
                i += text.p[i] == '\\' ? 2 : 1;
            if (i >= text.n)
                break;
            struct amp_span s = {text.p + from, i - from};
            if (depth == 1 && want_key)
                key = s;
            else if (depth == 1)
                note(&sum, key, s);
            want_key = false;
        } else if (c == '{' || c == '[') {
            want_key = ++depth == 1;
        } else if (c == '}' || c == ']') {
            if (depth > 0)
                depth--;
        } else if (c == ',' && depth == 1) {
            want_key = true;
        }
    }
    for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
        if ((only == AMP_PROTO_NONE || only == p) && sum.told[p] && sum.weight[p] >= 2)
            return true;
    return false;
}
