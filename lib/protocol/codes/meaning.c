/* Which table explains which protocol's codes. */
#include <amp/protocol/meaning.h>

#include "protocol/codes/meanings.h"

const struct amp_meaning *amp_meanings(enum amp_protocol p)
{
    static const struct amp_meaning *const tables[AMP_PROTO_COUNT] = {
        [AMP_PROTO_NONE] = amp_meanings_any,    [AMP_PROTO_AMP] = amp_meanings_amp,
        [AMP_PROTO_SW4RM] = amp_meanings_sw4rm, [AMP_PROTO_AOP] = amp_meanings_aop,
        [AMP_PROTO_AOF] = amp_meanings_aof,     [AMP_PROTO_RTP] = amp_meanings_rtp,
    };
    return (unsigned)p < AMP_PROTO_COUNT ? tables[p] : amp_meanings_any;
}
