/*
 * An acknowledgement or refusal in the protocol of the message that it answers: AMP's ack and nack,
 * SW4RM's ACKNOWLEDGEMENT, the Runtime Protocol's ack. It names the message, the stage and the
 * code, and repeats the correlation id.
 */
#ifndef AMP_PROTOCOL_ANSWER_H
#define AMP_PROTOCOL_ANSWER_H

#include <amp/protocol/protocol.h>

struct amp_answer {
    enum amp_ack_stage stage; /* REJECTED, FAILED: a refusal, of `code` and `note` */
    const char *by;
    const char *code, *note; /* NULL or "": none */
    const char *rule;        /* AMP: what it breaks */
    bool retryable;          /* sending again may help; SW4RM tells it by the code */
    struct amp_span result;  /* SW4RM: a JSON value; or empty */
    const char *node;        /* the Runtime Protocol's outbox; NULL: `by` */
    int64_t sequence;        /* in that outbox, or of SW4RM's producer `by`; 0: by the clock */
    int64_t now_ms;
};

/* Whether the protocol has a word for the stage: 0, or NO unsupported_stage. */
int amp_answer_check(enum amp_protocol p, enum amp_ack_stage stage, struct amp_error *err);

/* Appends one line with LF. A message of no protocol, or of one without acknowledgements, is
 * answered by AMP's records. */
int amp_answer_line(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                    struct amp_error *err);

#endif
