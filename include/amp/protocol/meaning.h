/* What each code says, where it comes from and how to mend what it complains of: one table a
 * protocol, beside the protocol's own files. */
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
    const char *mend;   /* what to do about it */
};

/* A protocol's table ends with a NULL code. AMP_PROTO_NONE: the codes of any protocol. The same
 * code may mean something else in another protocol. */
const struct amp_meaning *amp_meanings(enum amp_protocol p);

AMP_API_END

#endif
