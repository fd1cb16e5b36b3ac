/* The codes of SW4RM 0.5.0: see meaning.h. */
#include <stddef.h>

#include "protocol/meanings.h"

const struct amp_meaning amp_meanings_sw4rm[] = {
    {"validation_error", AMP_SEV_ERROR, "The envelope is not as the protocol says.", "", ""},
    {"oversize_payload", AMP_SEV_ERROR,
     "The payload, or the content_length that is declared for it, is larger than its type may "
     "carry.",
     "SW4RM §5.4", "Send the data in parts or by reference, or allow more with --max-payload."},
    {"unsupported_message_type", AMP_SEV_ERROR, "The message_type is none of the eleven.", "", ""},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
