/* Composing AMP's messages. Every message is valid. Functions append one line with LF to out. */
#ifndef AMP_MESSAGE_PROTOCOL_AMP_COMPOSE_H
#define AMP_MESSAGE_PROTOCOL_AMP_COMPOSE_H

#include <amp/compose.h>

#include "message/protocol/compose/json.h"

/* A message with this payload, as amp_compose_text. The function takes the payload's reference,
 * also on failure. */
int amp_compose_message(const struct amp_envelope *e, json_t *payload, struct amp_buf *out,
                        char id_out[AMP_MSG_ID_MAX], struct amp_error *err);

/* A task_dispatch. The documents are borrowed; constraints may be NULL. */
struct amp_dispatch_part {
    const char *id, *description;
    int64_t estimated_lines;
};
struct amp_dispatch_args {
    const char *from, *to, *task_id, *description, *repo, *branch;
    const struct amp_dispatch_part *parts;
    size_t n_parts;
    json_t *criteria, *forbidden, *constraints;
    enum amp_risk risk;
    const char *const *context_ref;
    int64_t ack_timeout_sec, now_ms;
};
int amp_compose_dispatch(const struct amp_dispatch_args *a, struct amp_buf *out,
                         char id_out[AMP_MSG_ID_MAX], struct amp_error *err);

struct amp_review_args {
    const char *task_id, *dispatch_ref, *result_ref, *diff_url;
    bool incremental;
    int64_t reject_count, ack_timeout_sec, now_ms;
    const char *notes; /* "" for none */
    json_t *checks;    /* name to state, borrowed; NULL: no CI is configured */
};
int amp_compose_review(const struct amp_review_args *a, struct amp_buf *out,
                       char id_out[AMP_MSG_ID_MAX], struct amp_error *err);

/* The task of an escalation about work that is not AMP's: every one needs some. It names no task,
 * and is never a key: people/question/record.h finds what such an escalation is about. */
#define AMP_TASK_NONE "T-0000-000"

#endif
