/*
 * Composing messages and control records of AMP/1.0. Functions append one line with LF to out; on
 * failure out is unchanged. Texts are UTF-8.
 */
#ifndef AMP_COMPOSE_H
#define AMP_COMPOSE_H

#include <amp/base/api.h>
#include <amp/protocol/protocol.h>

AMP_API_BEGIN

/* The envelope of a message. The functions generate msg_id (amp_id_tail) and copy it to id_out if
 * that is not NULL. */
#define AMP_MSG_ID_MAX 256
struct amp_envelope {
    const char *type, *from, *to, *task_id;
    int64_t now_ms;
    const char *const *context_ref; /* NULL-terminated, or NULL */
    int64_t ack_timeout_sec;        /* 0: the type's default */
};
/* Composes a message whose payload is given as the text of a JSON object; fails with invalid_json
 * for any other text. The payload is not checked against the type's schema (amp_reader_line does
 * that). */
int amp_compose_text(const struct amp_envelope *e, struct amp_span payload, struct amp_buf *out,
                     char id_out[AMP_MSG_ID_MAX], struct amp_error *err);

/* The AMP control records that answer a viewed message, in its protocol. */
int amp_compose_ack(const struct amp_view *of, enum amp_ack_stage stage, const char *from,
                    const char *note, int64_t now_ms, struct amp_buf *out, struct amp_error *err);
int amp_compose_nack(const struct amp_view *of, enum amp_ack_stage failed_stage, const char *from,
                     const char *code, const char *message, const char *rule, bool retryable,
                     int64_t now_ms, struct amp_buf *out, struct amp_error *err);

#define AMP_AFFECTED_MAX 200 /* bytes of an id among those that an escalation affects */

struct amp_escalation_args {
    const char *type; /* "hallucination_lock" … */
    const char *from; /* the sender's role */
    enum amp_level severity;
    const char *triggered_by, *task_id, *description;
    const char *const *affected;               /* NULL-terminated msg_ids */
    const char *const *suggested;              /* NULL-terminated */
    const char *task_status, *last_successful; /* "" allowed for the last */
    int64_t reject_count, now_ms;
};
int amp_compose_escalation(const struct amp_escalation_args *a, struct amp_buf *out,
                           char id_out[AMP_MSG_ID_MAX], struct amp_error *err);
struct amp_decision_args {
    const char *ref_msg_id, *task_id;
    enum amp_operator_word word;
    const char *note, *commit; /* or NULL */
    const char *criteria;      /* of a redispatch: a JSON array of texts; or NULL */
    const char *op;            /* the operator */
    int64_t now_ms;
};
int amp_compose_decision(const struct amp_decision_args *a, struct amp_buf *out,
                         struct amp_error *err);

AMP_API_END

#endif
