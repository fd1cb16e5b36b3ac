/* The table of the protocols' terms: a row for each entry of AMP_PROTOCOL_LIST. */
#include "protocol/terms.h"

#include "base/codes.h"
#include "protocol/question.h"

static const struct amp_terms unknown = {
    .sender_at = "/from",
    .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(permission_denied)},
    .retries = {.base_ms = 1000, .cap_ms = 300000},
    .answer = amp_terms_record,
};

const struct amp_terms *amp_terms_of(enum amp_protocol p)
{
    static const struct amp_terms *const terms[AMP_PROTO_COUNT] = {[AMP_PROTO_NONE] = &unknown,
#define X(id, name, title) [AMP_PROTO_##id] = &amp_terms_##name,
                                                                   AMP_PROTOCOL_LIST(X)
#undef X
    };
    return (unsigned)p < AMP_PROTO_COUNT ? terms[p] : &unknown;
}

/* JSON may write 5 as 5.0, and 0.29 has no exact double. */
int64_t amp_usage_amount(double n, double scale)
{
    double amount = n * scale;
    if (!(amount < (double)AMP_USAGE_MOST))
        return AMP_USAGE_MOST;
    int64_t whole = amount > 0 ? (int64_t)(amount + 0.5) : 0;
    return whole + (amount - (double)whole > 1e-3);
}

int64_t amp_usage_at(const struct amp_tape *t, const char *pointer, double scale)
{
    uint32_t tok = amp_tape_pointer(t, 0, amp_span_str(pointer));
    double n;
    if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_NUMBER)
        return 0;
    if (amp_tok_real(t, tok, &n))
        return amp_usage_amount(n, scale);
    return *amp_tok_raw(t, tok).p == '-' ? 0 : AMP_USAGE_MOST;
}

bool amp_outcome_read(const struct amp_view *v, struct amp_outcome *out)
{
    const struct amp_terms *t = amp_terms_of(v->protocol);
    *out = (struct amp_outcome){.stage = AMP_STAGE_FULFILLED, .by = v->from, .by_at = t->sender_at};
    return t->outcome && t->outcome(v, out);
}

enum amp_work_verdict amp_work_judge(const struct amp_work_claim *c)
{
    if (c->is_claimed && c->is_claimant)
        return AMP_WORK_ALLOWED;
    if (c->is_claimed)
        return c->begins ? AMP_WORK_TAKEN : AMP_WORK_NOT_HOLDER;
    if (!c->is_addressee)
        return AMP_WORK_NOT_ADDRESSEE;
    return c->must_accept && !c->begins ? AMP_WORK_NOT_ACCEPTED : AMP_WORK_ALLOWED;
}

const char *amp_terms_denial(const struct amp_terms *t, enum amp_work_verdict v)
{
    return t->denied[v] ? t->denied[v] : t->denied[AMP_WORK_NOT_HOLDER];
}

bool amp_terms_has(const char *const *list, struct amp_span word)
{
    while (list && *list && !amp_span_is(word, *list))
        list++;
    return list && *list;
}

const char *amp_reason_name(enum amp_reason r)
{
    static const char *const names[] = {
#define X(id) [AMP_REASON_##id] = #id,
        AMP_REASONS(X)
#undef X
    };
    return names[r];
}

int amp_reason_find(struct amp_span name)
{
    int i = AMP_REASON_COUNT;
    while (i-- > 0 && !amp_span_is(name, amp_reason_name((enum amp_reason)i)))
        ;
    return i;
}

const char *amp_fallback_name(enum amp_fallback f)
{
    static const char *const names[] = {
#define X(id, word) [AMP_FALLBACK_##id] = word,
        AMP_FALLBACKS(X)
#undef X
    };
    return names[f];
}

int amp_fallback_find(struct amp_span name)
{
    int i = AMP_FALLBACK_COUNT;
    while (i-- > 0 && !amp_span_is(name, amp_fallback_name((enum amp_fallback)i)))
        ;
    return i;
}
