/* The table of the protocols and small looks at an object's members. */
#include "protocol/spec.h"

#include <string.h>

static const struct amp_spec *const specs[AMP_PROTO_COUNT] = {
    [AMP_PROTO_AMP] = &amp_spec_amp, [AMP_PROTO_SW4RM] = &amp_spec_sw4rm,
    [AMP_PROTO_AOP] = &amp_spec_aop, [AMP_PROTO_AOF] = &amp_spec_aof,
    [AMP_PROTO_RTP] = &amp_spec_rtp,
};

const struct amp_fill_table amp_fill_nothing = {NULL, 0, 0};

const struct amp_spec *amp_spec_of(enum amp_protocol p)
{
    return (unsigned)p < AMP_PROTO_COUNT ? specs[p] : NULL;
}

static uint32_t string_at(const struct amp_tape *t, uint32_t object, const char *key)
{
    if (t->tok[object].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    return tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_STRING ? tok : AMP_TOK_NONE;
}

bool amp_spec_starts(const struct amp_tape *t, uint32_t object, const char *key, const char *text)
{
    uint32_t tok = string_at(t, object, key);
    if (tok == AMP_TOK_NONE)
        return false;
    struct amp_span raw = amp_tok_raw(t, tok);
    size_t n = strlen(text);
    AMP_BUF struct amp_buf room = {0};
    amp_buf_init(&room, 64 * 1024 * 1024);
    if ((t->tok[tok].flags & AMP_TOK_ESCAPED) && amp_tok_text(t, tok, &room, &raw, NULL) < 0)
        return false;
    return raw.n >= n && memcmp(raw.p, text, n) == 0;
}

const struct amp_kind_row *amp_spec_kind(const struct amp_spec *s, struct amp_span type)
{
    for (unsigned i = 0; i < s->n_kinds; i++)
        if (amp_span_is(type, s->kinds[i].type))
            return &s->kinds[i];
    return NULL;
}
