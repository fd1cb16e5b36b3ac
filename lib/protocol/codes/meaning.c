/* Which table explains which protocol's codes. */
#include <amp/protocol/meaning.h>

#include "protocol/codes/meanings.h"

const struct amp_meaning *amp_meanings(enum amp_protocol p)
{
    static const struct amp_meaning *const tables[AMP_PROTO_COUNT] = {[AMP_PROTO_NONE] =
                                                                          amp_meanings_any,
#define X(id, name, title) [AMP_PROTO_##id] = amp_meanings_##name,
                                                                      AMP_PROTOCOL_LIST(X)
#undef X
    };
    return (unsigned)p < AMP_PROTO_COUNT ? tables[p] : amp_meanings_any;
}
