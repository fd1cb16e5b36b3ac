/* Spellings of the enums, each from its one list. */
#include <amp/protocol/protocol.h>

#include "protocol/view/names.h"

#define X(id, name) name,
static const char *const kind_names[] = {AMP_KIND_LIST(X)};
static const char *const risk_names[] = {AMP_RISK_LIST(X)};
static const char *const completion_names[] = {AMP_COMPLETION_LIST(X)};
static const char *const verdict_names[] = {AMP_VERDICT_LIST(X)};
static const char *const level_names[] = {AMP_LEVEL_LIST(X)};
static const char *const do_names[] = {AMP_DO_LIST(X)};
static const char *const stage_names[] = {AMP_STAGE_LIST(X)};
#undef X
#define X(id, name, title) #name,
static const char *const protocol_names[] = {"", AMP_PROTOCOL_LIST(X)};
#undef X

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define WORDS(a)                                                                                   \
    {                                                                                              \
        (a), COUNT(a)                                                                              \
    }

const struct amp_words amp_words_risk = WORDS(risk_names);
const struct amp_words amp_words_completion = WORDS(completion_names);
const struct amp_words amp_words_verdict = WORDS(verdict_names);
const struct amp_words amp_words_level = WORDS(level_names);
const struct amp_words amp_words_do = WORDS(do_names);
const struct amp_words amp_words_stage = WORDS(stage_names);

static const char *name_of(const char *const *names, size_t n, unsigned i)
{
    return i < n ? names[i] : "unknown";
}

const char *amp_kind_name(enum amp_kind k)
{
    return name_of(kind_names, COUNT(kind_names), k);
}
const char *amp_risk_name(enum amp_risk v)
{
    return name_of(risk_names, COUNT(risk_names), v);
}
const char *amp_completion_name(enum amp_completion v)
{
    return name_of(completion_names, COUNT(completion_names), v);
}
const char *amp_verdict_name(enum amp_decision_word v)
{
    return name_of(verdict_names, COUNT(verdict_names), v);
}
const char *amp_level_name(enum amp_level v)
{
    return name_of(level_names, COUNT(level_names), v);
}
const char *amp_operator_word_name(enum amp_operator_word v)
{
    return name_of(do_names, COUNT(do_names), v);
}
const char *amp_ack_stage_name(enum amp_ack_stage v)
{
    return name_of(stage_names, COUNT(stage_names), v);
}

const char *amp_protocol_name(enum amp_protocol p)
{
    return name_of(protocol_names, COUNT(protocol_names), p);
}

enum amp_protocol amp_protocol_find(struct amp_span name)
{
    for (unsigned i = 1; i < COUNT(protocol_names); i++)
        if (amp_span_is(name, protocol_names[i]))
            return (enum amp_protocol)i;
    return AMP_PROTO_NONE;
}
