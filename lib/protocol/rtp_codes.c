/* The codes of Runtime Protocol v1: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

const struct amp_meaning amp_meanings_rtp[] = {
    {"unknown_kind", AMP_SEV_ERROR, "The kind is none of the ten.", "", ""},
    {"corr_id_required", AMP_SEV_ERROR, "This kind of event needs corrId.", "", ""},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
