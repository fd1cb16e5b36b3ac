/* The table of the protocols' terms: a row for each entry of AMP_PROTOCOL_LIST. */
#include "protocol/terms.h"

static const struct amp_terms unknown = {
    .not_holder = "permission_denied",
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
