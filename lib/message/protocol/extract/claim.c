/*
 * Decides which objects and texts claim to be a message. An object in a log whose only member of a
 * protocol is named like its id (chat services also have a message_id) does not.
 */
#include "message/protocol/extract/extract.h"
#include "message/protocol/spec.h"

/* Whether the only member of the protocol is named like its id. */
static bool by_id_alone(const struct amp_spec *s, const struct amp_tape *t, uint32_t object)
{
    if (!s->id || !amp_object_has(t, object, s->id))
        return false;
    for (unsigned k = 0; s->beside[k]; k++)
        if (amp_object_has(t, object, s->beside[k]))
            return false;
    return true;
}

bool amp_claim_object(const struct amp_tape *t, uint32_t object, enum amp_protocol only)
{
    for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
        if ((only == AMP_PROTO_NONE || only == p) && amp_spec_detects(amp_spec_of(p), t, object) &&
            !by_id_alone(amp_spec_of(p), t, object))
            return true;
    return false;
}

/* The marks of each protocol in a text: two are needed, and one of them must be distinctive. */
struct sum {
    unsigned weight[AMP_PROTO_COUNT];
    bool distinct[AMP_PROTO_COUNT];
};

static void sum_mark(struct sum *s, struct amp_span key, struct amp_span value)
{
    for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
        for (const struct amp_mark *m = amp_spec_of(p)->marks; m->key; m++) {
            if (!amp_span_is(key, m->key) || !amp_span_starts(value, m->value))
                continue;
            s->weight[p] += m->claims ? 2 : 1;
            s->distinct[p] |= m->claims || m->tells;
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
                sum_mark(&sum, key, s);
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
        if ((only == AMP_PROTO_NONE || only == p) && sum.distinct[p] && sum.weight[p] >= 2)
            return true;
    return false;
}
