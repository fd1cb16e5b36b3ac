/* AMP/1.0: rules and refusals. */
#ifndef AMP_MESSAGE_PROTOCOL_AMP_AMP_H
#define AMP_MESSAGE_PROTOCOL_AMP_AMP_H

#include <amp/json/writer.h>

#include "message/protocol/check/check.h"

#define AMP_VERSION_WORD "AMP/1.0"

void amp_amp_rules(struct amp_check *c);

/* A longer id, and a task that is not T-YYYY-NNN, are empty in a nack. */
#define AMP_NACK_REF_MAX 200
bool amp_is_task_id(struct amp_span s);

/* Begins a control record: its version and type. */
void amp_record_open(struct amp_jw *w, const char *type, struct amp_buf *out);

/* The refusal, a nack; NONE for a nack. See spec.h. */
enum amp_refuse_result amp_amp_refuse(const struct amp_view *v, const struct amp_finding *first,
                                      int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* The key of the first failed check of a review request or a CI record, or AMP_TOK_NONE. */
uint32_t amp_amp_failed_check(const struct amp_view *v);
/* The key of the first check under an object that is in the state, or AMP_TOK_NONE. */
uint32_t amp_amp_check_in_state(const struct amp_tape *t, uint32_t checks, const char *state);

#endif
