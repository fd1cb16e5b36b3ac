/*
 * The record of a question to a person: kind "escalation", states of amp_escalation_fsm, and the
 * steps of it.
 */
#ifndef AMP_HITL_RECORD_H
#define AMP_HITL_RECORD_H

#include "hitl/escalation.h"
#include "hitl/subject.h"

#define AMP_QUESTION_KEY_MAX (AMP_SUBJECT_MAX + 16)
#define AMP_QUESTION_BYTES   (1u << 20) /* of a record, of a line that answers */

/* Times are 0 and texts are empty until something sets them. */
struct amp_question_rec {
    struct amp_span task, type, severity, protocol;
    int64_t arrived_ms;
    struct amp_subject about;
    int64_t asked_ms;
    struct amp_span decision, operator, note;
    int64_t decided_ms;
    struct amp_span passed; /* why there is no decision */
    struct amp_span refused;
    int64_t refused_ms, ended_ms;
};
/* What is read lives in mem. */
int amp_question_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_question_rec *out,
                          struct amp_error *err);

enum amp_protocol amp_question_protocol(const struct amp_question_rec *r);

/* The key of the record: an id that a nack about the decision names is the key; other ids stand
 * behind the name of their protocol. amp_question_key_id: the id in the key of a record. */
void amp_question_key(enum amp_protocol p, struct amp_span id, char out[AMP_QUESTION_KEY_MAX]);
const char *amp_question_key_id(enum amp_protocol p, const char *key);

/* The coordinator's refusal of a decision about `ref`. */
struct amp_refusal {
    struct amp_span ref, task, code, why;
    const char *by; /* who records it */
    int64_t at_ms;
};

/* One step of the record. */
struct amp_question_update {
    uint8_t event;
    uint32_t facts, effects;     /* effects: of the step that was made, 0 for none */
    struct amp_question_rec set; /* the fields that the step sets */
    int64_t now_ms;              /* of ASK */
    struct amp_store_emit emit;
    struct amp_buf mem, json;
    const char *actor; /* whose outbox the line enters */
    const struct amp_refusal *refusal;
};
/* NO already_decided, ended. */
int amp_question_update(struct amp_store *s, struct amp_span key, struct amp_question_update *u,
                        enum amp_store_outcome *outcome, struct amp_error *err);

/* Opens the question of a refused decision again, with the reason. Nothing changes where it has no
 * record here, where it is not decided, or where this refusal (known by its time) was recorded
 * before. Call amp_store_sync before it is reported. */
int amp_question_reopen(struct amp_store *s, const struct amp_refusal *r, bool *reopened,
                        struct amp_error *err);
/* Whether a refusal with this code opens the question again: not where it is settled all the same
 * (already_decided, terminal). */
bool amp_question_reopens(struct amp_span code);

#endif
