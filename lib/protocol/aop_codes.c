/* The codes of AOP 2.0.2-C: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

const struct amp_meaning amp_meanings_aop[] = {
    {"E_SCHEMA_VALIDATION", AMP_SEV_ERROR,
     "The header or a demanded part is not as the contract says.", "", ""},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
