/* The tables of amp_meanings, one per protocol. */
#ifndef AMP_MESSAGE_PROTOCOL_CODES_MEANINGS_H
#define AMP_MESSAGE_PROTOCOL_CODES_MEANINGS_H

#include <amp/protocol/meaning.h>

#define X(id, name, title) extern const struct amp_meaning amp_meanings_##name[];
AMP_PROTOCOL_LIST(X)
#undef X

#endif
