/* Messages of SW4RM about a delivery: acknowledgements, refusals, the outcome of an earlier
 * attempt. The envelope names no recipient, so each is {"to":…,"msg":…}, addressed to the producer
 * of the message that it answers. Functions append one line with LF. */
#ifndef AMP_MESSAGE_PROTOCOL_SW4RM_ANSWER_H
#define AMP_MESSAGE_PROTOCOL_SW4RM_ANSWER_H

#include <amp/json/writer.h>

#include "message/protocol/answers.h"

/* Appends a message, one line with LF, with a JSON object as its payload. `to` is the recipient
 * beside the message; empty: none. */
struct amp_sw4rm_said {
    const char *from, *type;
    const char *token;           /* NULL: none */
    const char *id;              /* of the message; NULL: a new one */
    const char *content;         /* its type; NULL: application/json */
    struct amp_span correlation; /* empty: a new one */
    int64_t sequence;            /* 0: from the clock */
    int64_t now_ms;
};
int amp_sw4rm_line(struct amp_span to, const struct amp_sw4rm_said *said, struct amp_span payload,
                   struct amp_buf *out, struct amp_error *err);

/* The code in capitals, cut to fit. */
void amp_sw4rm_capitals(struct amp_span code, char *out, size_t size);

/* An ACKNOWLEDGEMENT (DATA, if its result is large): of a stage that was reached, with the note and
 * the result unless empty; or of the stage REJECTED, FAILED or TIMED_OUT, with the code in capitals
 * and the note. */
int amp_sw4rm_ack(const struct amp_view *of, const struct amp_answer *a, struct amp_buf *out,
                  struct amp_error *err);

/* HITL_DECISION (§15.2), the answer to an invocation. DATAERR buffer_full. */
struct amp_operator_answer; /* protocol/question.h */
int amp_sw4rm_decision(const struct amp_view *of, const struct amp_answer *a,
                       const char *invocation, const struct amp_operator_answer *d,
                       struct amp_buf *out, struct amp_error *err);

/* Any other message in reply: a payload, a JSON object, in an envelope of this type. */
int amp_sw4rm_say(const struct amp_view *of, const struct amp_answer *a, const char *type,
                  struct amp_span payload, struct amp_buf *out, struct amp_error *err);

/* DUPLICATE_DETECTED: the outcome of the first attempt (§21). */
int amp_sw4rm_duplicate(const struct amp_view *of, const struct amp_answer *a,
                        const struct amp_first_attempt *first, struct amp_buf *out,
                        struct amp_error *err);

#endif
