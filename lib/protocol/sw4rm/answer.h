/* What we say in SW4RM of a message's delivery: refusals on the way, and the outcome of what was
 * done before. Each is addressed to the message's producer, as {"to":…,"msg":…}, because the
 * envelope names no recipient. They append one line with LF. */
#ifndef AMP_PROTOCOL_SW4RM_ANSWER_H
#define AMP_PROTOCOL_SW4RM_ANSWER_H

#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

/* The message that is answered, and the answer's number among what its own producer says. */
struct amp_answered {
    struct amp_span id, producer, correlation;
    int64_t sequence; /* 0: one by the clock */
};

/* The envelope around what we say, a JSON object. */
struct amp_sw4rm_said {
    const char *from, *type, *token;
    struct amp_span correlation; /* empty: a new one */
    int64_t sequence, now_ms;
};
void amp_sw4rm_envelope(struct amp_jw *w, const struct amp_sw4rm_said *said,
                        struct amp_span payload);

/* A code as the protocol writes it, cut to fit. */
void amp_sw4rm_capitals(struct amp_span code, char *out, size_t size);

/* An ACKNOWLEDGEMENT that names the stage where it ended (REJECTED, FAILED, TIMED_OUT) and why. The
 * code is written in capitals. */
int amp_sw4rm_nack(const struct amp_answered *of, enum amp_ack_stage stage, struct amp_span code,
                   struct amp_span note, const char *from, int64_t now_ms, struct amp_buf *out,
                   struct amp_error *err);

/* An ACKNOWLEDGEMENT of a stage that was reached; note and result (a JSON value) may be empty. */
int amp_sw4rm_ack(const struct amp_answered *of, enum amp_ack_stage stage, struct amp_span note,
                  struct amp_span result, const char *from, int64_t now_ms, struct amp_buf *out,
                  struct amp_error *err);

/* HITL_DECISION (§15.2), the answer to an invocation; patch: base64, or NULL. DATAERR buffer_full.
 */
struct amp_sw4rm_decided {
    const char *invocation, *action, *rationale, *patch, *op;
};
int amp_sw4rm_decision(const struct amp_answered *of, const struct amp_sw4rm_decided *what,
                       const char *from, int64_t now_ms, struct amp_buf *out,
                       struct amp_error *err);

/* DUPLICATE_DETECTED: the outcome of the first attempt (§21). */
struct amp_first_attempt; /* protocol/terms.h */
int amp_sw4rm_duplicate(const struct amp_answered *of, const struct amp_first_attempt *first,
                        const char *from, int64_t now_ms, struct amp_buf *out,
                        struct amp_error *err);

#endif
