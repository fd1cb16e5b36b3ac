/* The tables of the protocols' terms: a row for each entry of AMP_PROTOCOL_LIST. */
#include "base/codes.h"
#include "base/words.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/question.h"
#include "message/protocol/routing.h"
#include "message/protocol/work.h"

static const struct amp_delivery_terms amp_delivery_none = {
    .retries = {.base_ms = 1000, .cap_ms = 300000}};
static const struct amp_routing_terms amp_routing_none = {0};
static const struct amp_work_terms amp_work_none = {
    .sender_at = "/from", .denied = {[AMP_WORK_NOT_HOLDER] = AMP_CODE(permission_denied)}};
static const struct amp_answer_terms amp_answers_none = {.answer = amp_terms_record};

/* The function that returns a protocol's row of a table. */
#define LOOK_UP(type, table)                                                                       \
    const struct type *amp_##table##_of(enum amp_protocol p)                                       \
    {                                                                                              \
        static const struct type *const rows[] = {                                                 \
            [AMP_PROTO_NONE] = &amp_##table##_none,   [AMP_PROTO_AMP] = &amp_##table##_amp,        \
            [AMP_PROTO_SW4RM] = &amp_##table##_sw4rm, [AMP_PROTO_AOP] = &amp_##table##_aop,        \
            [AMP_PROTO_AOF] = &amp_##table##_aof,     [AMP_PROTO_RTP] = &amp_##table##_rtp,        \
        };                                                                                         \
        _Static_assert(sizeof rows / sizeof rows[0] == AMP_PROTO_COUNT, "a row per protocol");     \
        return rows[(unsigned)p < AMP_PROTO_COUNT ? p : AMP_PROTO_NONE];                           \
    }
LOOK_UP(amp_delivery_terms, delivery)
LOOK_UP(amp_routing_terms, routing)
LOOK_UP(amp_work_terms, work)
LOOK_UP(amp_answer_terms, answers)

const struct amp_question_terms *amp_questions_of(enum amp_protocol p)
{
    static const struct amp_question_terms *const rows[AMP_PROTO_COUNT] = {
#define X(id, name, title) [AMP_PROTO_##id] = &amp_questions_##name,
        AMP_PROTOCOL_LIST(X)
#undef X
    };
    return (unsigned)p < AMP_PROTO_COUNT ? rows[p] : NULL;
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
    const struct amp_work_terms *t = amp_work_of(v->protocol);
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

const char *amp_terms_denial(const struct amp_work_terms *t, enum amp_work_verdict v)
{
    return t->denied[v] ? t->denied[v] : t->denied[AMP_WORK_NOT_HOLDER];
}

bool amp_terms_has(const char *const *list, struct amp_span word)
{
    while (list && *list && !amp_span_is(word, *list))
        list++;
    return list && *list;
}

AMP_WORDS_OF_NAMES(reasons, AMP_REASONS);

const char *amp_reason_name(enum amp_reason r)
{
    return reasons[r];
}

int amp_reason_find(struct amp_span name)
{
    return amp_word_find(reasons, name);
}

AMP_WORDS(fallbacks, AMP_FALLBACKS);

const char *amp_fallback_name(enum amp_fallback f)
{
    return fallbacks[f];
}

int amp_fallback_find(struct amp_span name)
{
    return amp_word_find(fallbacks, name);
}
