/* Spellings of the enums, each from its one list. */
#include <amp/protocol/protocol.h>

#include "message/protocol/view/fill.h"

#define COUNT(a) ((unsigned)(sizeof(a) / sizeof *(a)))

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

#define X(list) const struct amp_word_list amp_words_##list = {list##_names, COUNT(list##_names)};
AMP_WORDS_LIST(X)
#undef X

/* X(function, its enum, list) */
#define NAME_LIST(X)                                                                               \
    X(amp_kind_name, enum amp_kind, kind_names)                                                    \
    X(amp_risk_name, enum amp_risk, risk_names)                                                    \
    X(amp_completion_name, enum amp_completion, completion_names)                                  \
    X(amp_verdict_name, enum amp_decision_word, verdict_names)                                     \
    X(amp_level_name, enum amp_level, level_names)                                                 \
    X(amp_operator_word_name, enum amp_operator_word, do_names)                                    \
    X(amp_ack_stage_name, enum amp_ack_stage, stage_names)                                         \
    X(amp_protocol_name, enum amp_protocol, protocol_names)

#define X(function, type, names)                                                                   \
    const char *function(type value)                                                               \
    {                                                                                              \
        return (unsigned)value < COUNT(names) ? names[value] : "unknown";                          \
    }
NAME_LIST(X)
#undef X

enum amp_protocol amp_protocol_find(struct amp_span name)
{
    for (unsigned i = 1; i < COUNT(protocol_names); i++)
        if (amp_span_is(name, protocol_names[i]))
            return (enum amp_protocol)i;
    return AMP_PROTO_NONE;
}
