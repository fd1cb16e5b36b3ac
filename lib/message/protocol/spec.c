/* The table of the protocols: a row for each entry of AMP_PROTOCOL_LIST. */
#include "message/protocol/spec.h"

const struct amp_spec *amp_spec_of(enum amp_protocol p)
{
    static const struct amp_spec *const specs[AMP_PROTO_COUNT] = {
#define X(id, name, title) [AMP_PROTO_##id] = &amp_spec_##name,
        AMP_PROTOCOL_LIST(X)
#undef X
    };
    return (unsigned)p < AMP_PROTO_COUNT ? specs[p] : NULL;
}
