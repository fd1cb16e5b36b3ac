/* What we say in the Runtime Protocol of an event's delivery, as events of an outbox of our own.
 * They repeat the correlation id and are addressed to the event's source. Functions append one line
 * with LF. */
#ifndef AMP_PROTOCOL_RTP_ANSWER_H
#define AMP_PROTOCOL_RTP_ANSWER_H

#include <amp/protocol/protocol.h>

struct amp_rtp_answer {
    struct amp_span id, type, source, correlation; /* of the event that is answered */
    const char *node, *by;                         /* whose outbox, who speaks */
    int64_t sequence;                              /* in that outbox; 0: one after the clock */
    bool retryable; /* of a refusal: said beside its code, though the ack's own word is terminal */
    int64_t now_ms;
};

/* An ack: RECEIVED is accepted, FULFILLED processed, REJECTED and FAILED failed_terminal, with code
 * and reason where they are not empty. NO unsupported_stage for the others: the protocol has no
 * word for them. */
int amp_rtp_ack(const struct amp_rtp_answer *a, enum amp_ack_stage stage, struct amp_span code,
                struct amp_span reason, struct amp_buf *out, struct amp_error *err);

/* A dead_letter or a signal about the event: refEventId, code, reason. */
int amp_rtp_notice(const struct amp_rtp_answer *a, const char *kind, struct amp_span code,
                   struct amp_span reason, struct amp_buf *out, struct amp_error *err);

#endif
