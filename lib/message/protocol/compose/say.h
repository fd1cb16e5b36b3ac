/* Words from one agent to others that are about no task: a message of the Runtime Protocol. */
#ifndef AMP_MESSAGE_PROTOCOL_COMPOSE_SAY_H
#define AMP_MESSAGE_PROTOCOL_COMPOSE_SAY_H

#include <amp/base/id.h>
#include <amp/protocol/protocol.h>

#define AMP_SAY_TEXT_MAX    10000 /* of the text, in characters */
#define AMP_SAY_SUBJECT_MAX 200

struct amp_say {
    const char *from, *to;
    const char *node;    /* the owner of the sequence */
    const char *subject; /* NULL or "": none */
    const char *routing; /* routingPolicyVersion; NULL: none */
    const char *text;
    bool expects_reply;
    int64_t sequence, now_ms;
};
/* Appends one line with LF. */
int amp_say_line(const struct amp_say *s, struct amp_buf *out, char id[AMP_UUID_MAX],
                 struct amp_error *err);

#endif
