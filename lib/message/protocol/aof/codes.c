/* The codes of AOF/1: see meaning.h. */
#include <stddef.h>

#include "message/protocol/codes/meanings.h"

const struct amp_meaning amp_meanings_aof[] = {
    {"payload_too_large", AMP_SEV_ERROR, "The envelope has more than 10485760 bytes.",
     "AOF/1 Message Routing", "Put large contents into a file and name it in contextRefs."},
    {"invalid_envelope", AMP_SEV_ERROR,
     "The envelope or its payload violates the protocol: a field is missing, too long or "
     "malformed.",
     "AOF/1 Protocol Envelope", "Fix the field. Times end in Z; version is the number 1."},
    {"invalid_project_id", AMP_SEV_ERROR,
     "The projectId is empty or too long, or differs from project_id.", "AOF/1 Protocol Envelope",
     "Remove it, or use one of the two spellings."},
    {"taskId_mismatch", AMP_SEV_ERROR, "The payload names another task than the envelope.",
     "AOF/1 Message Routing", "Use the same taskId in both."},
    {"protocol.message.unknown", AMP_SEV_ERROR,
     "The protocol does not define the type, so the message is ignored.",
     "AOF/1 Message Routing, Error Cases",
     "Use handoff.request, handoff.accepted, handoff.rejected, status.update or "
     "completion.report."},
    {"invalid_acceptance_criteria", AMP_SEV_WARNING,
     "The acceptance criteria of a handoff are not strings, are empty or are too many; the handoff "
     "is still accepted.",
     "AOF/1 Handoff Protocol, Error Cases",
     "Use a list of at most 50 strings of at most 256 characters."},
    {NULL, AMP_SEV_ERROR, NULL, NULL, NULL},
};
