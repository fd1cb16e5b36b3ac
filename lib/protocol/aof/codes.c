/* The codes of AOF/1: see meaning.h. */
#include <stddef.h>

#include "protocol/codes/meanings.h"

const struct amp_meaning amp_meanings_aof[] = {
    {"payload_too_large", AMP_SEV_ERROR, "The envelope has more than 10485760 bytes.",
     "AOF/1 Message Routing", "Put what is large into a file and name it in contextRefs."},
    {"invalid_envelope", AMP_SEV_ERROR,
     "The envelope or its payload is not as the protocol says: a field is missing, too long or of "
     "another form.",
     "AOF/1 Protocol Envelope", "See the field; times end in Z, version is the number 1."},
    {"invalid_project_id", AMP_SEV_ERROR, "The projectId is empty, or differs from project_id.",
     "AOF/1 Protocol Envelope", "Leave it out, or give one of the two spellings."},
    {"taskId_mismatch", AMP_SEV_ERROR, "The payload names another task than the envelope.",
     "AOF/1 Message Routing", "Give the same taskId in both."},
    {"protocol.message.unknown", AMP_SEV_ERROR,
     "The type is none of the protocol's, so the message is ignored.",
     "AOF/1 Message Routing, Error Cases",
     "Use handoff.request, handoff.accepted, handoff.rejected, status.update or "
     "completion.report."},
    {"invalid_acceptance_criteria", AMP_SEV_WARNING,
     "The acceptance criteria of a hand-over are not texts, are empty or too many; it is accepted "
     "all the same.",
     "AOF/1 Handoff Protocol, Error Cases",
     "Give a list of at most 50 texts of at most 256 characters."},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
