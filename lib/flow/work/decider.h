/*
 * hitl-prompt's inside: the record of a question and its steps (question.c), what arrives
 * (decide.c), what a person answers (answer.c). Private to these.
 */
#ifndef AMP_FLOW_WORK_DECIDER_H
#define AMP_FLOW_WORK_DECIDER_H

#include "flow/question.h"
#include "flow/work/decide.h"
#include "flow/work/worker_io.h"

#define AMP_QUESTION_BYTES (1u << 20) /* of a record, of a line that answers */

struct amp_decider {
    struct amp_worker w;
    struct amp_worker_options opt;
    amp_info_fn on_info;
    void *ctx;
    char (*passed)[AMP_QUESTION_KEY_MAX]; /* the questions that were passed over in this run */
    size_t n_passed, cap_passed;
};

/* The key of the record: AMP's ids are keys; those of another protocol stand behind its name, so
 * that nothing can pass for an escalation of AMP. */
void amp_question_key(enum amp_protocol p, struct amp_span id, char out[AMP_QUESTION_KEY_MAX]);

/* One step of the record. */
struct amp_question_update {
    uint8_t event;
    uint32_t facts, effects;     /* effects: of the step that was made, 0 for none */
    struct amp_question_rec set; /* what the record is to have */
    int64_t now_ms;              /* of ASK */
    struct amp_store_emit emit;
    struct amp_buf mem, json;
    const char *actor; /* whose outbox it is */
    const struct amp_refusal *refusal;
};
/* The same for the decider's outbox. */
int amp_question_step(struct amp_decider *d, const char *key, struct amp_question_update *u,
                      struct amp_error *err);

/* A nack to whoever asked, in the protocol of the question, appended to out. */
int amp_question_nack(struct amp_decider *d, const struct amp_question *q, enum amp_ack_stage stage,
                      const char *code, const char *why, bool retryable, struct amp_buf *out,
                      struct amp_error *err);
/* The question is no longer asked because its subject ended; the sender gets the nack terminal.
 */
int amp_question_end(struct amp_decider *d, const struct amp_question *q, struct amp_error *err);

#endif
