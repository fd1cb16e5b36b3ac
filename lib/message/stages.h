/* What each protocol says of acknowledgements, as data: which stage its messages wait for, and for
 * how long where a message does not say so itself. */
#ifndef AMP_MESSAGE_STAGES_H
#define AMP_MESSAGE_STAGES_H

#include <amp/protocol/protocol.h>

struct amp_stages {
    enum amp_protocol protocol;
    enum amp_ack_stage waits_for; /* RECEIVED: admission is enough */
    int64_t ack_timeout_ms;       /* of messages that cannot say whether they want one; 0: none */
    int64_t sla_ms;               /* from admission to an outcome; 0: none is waited for */
    const char *const *silent;    /* types that nobody acknowledges; NULL-terminated */
    const char *source;
};
/* NULL for a protocol without acknowledgements. */
const struct amp_stages *amp_stages_of(enum amp_protocol p);

/* What a team sets differently. 0: as the protocol says. */
struct amp_message_terms {
    int64_t ack_timeout_ms[AMP_PROTO_COUNT]; /* a message's own time goes before it */
    int64_t sla_ms; /* from admission to the outcome that somebody waits for; < 0: no matter */
};

/* How long to wait for the acknowledgement of a message, 0: not at all. terms may be NULL. */
int64_t amp_stages_timeout(const struct amp_view *v, const struct amp_message_terms *terms);
/* How long after its admission an outcome must be known, 0: nobody waits for one. */
int64_t amp_stages_sla(const struct amp_view *v, const struct amp_message_terms *terms);

#endif
