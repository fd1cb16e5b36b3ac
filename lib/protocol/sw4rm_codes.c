/* The codes of SW4RM 0.5.0: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

const struct amp_meaning amp_meanings_sw4rm[] = {
    {"validation_error", AMP_SEV_ERROR, "The envelope is not as the protocol says.", "", ""},
    {"unsupported_message_type", AMP_SEV_ERROR, "The message_type is none of the eleven.", "", ""},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
