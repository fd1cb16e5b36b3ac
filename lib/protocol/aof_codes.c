/* The codes of AOF/1: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

const struct amp_meaning amp_meanings_aof[] = {
    {"invalid_envelope", AMP_SEV_ERROR, "The envelope is not as the protocol says.", "", ""},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
