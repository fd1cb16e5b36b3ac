/* The tables behind amp_meanings, one a protocol. */
#ifndef AMP_PROTOCOL_MEANINGS_H
#define AMP_PROTOCOL_MEANINGS_H

#include <amp/protocol/meaning.h>

extern const struct amp_meaning amp_meanings_any[], amp_meanings_amp[], amp_meanings_sw4rm[],
    amp_meanings_aop[], amp_meanings_aof[], amp_meanings_rtp[];

#endif
