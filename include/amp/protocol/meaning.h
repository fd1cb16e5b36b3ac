/* The meaning of each code, its source, and how to fix the message: one table per protocol. */
#ifndef AMP_PROTOCOL_MEANING_H
#define AMP_PROTOCOL_MEANING_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

struct amp_meaning {
    const char *code;
    enum amp_severity severity;
    const char *means;  /* one or two sentences */
    const char *source; /* "AMP review_verdict", "SW4RM §11.1", "RFC 8259 §7" */
    const char *fix;    /* how to fix the message */
};

/* A protocol's table, which ends with a NULL code. AMP_PROTO_NONE: the codes of all protocols. A
 * code may have another meaning in another protocol. */
const struct amp_meaning *amp_meanings(enum amp_protocol p);

AMP_API_END

#endif
