/*
 * What a question to a person is about. An AMP escalation names its task; one about work of another
 * protocol names none (AMP_TASK_NONE) and is about the message that it affects. The question ends
 * when its subject does.
 */
#ifndef AMP_HITL_SUBJECT_H
#define AMP_HITL_SUBJECT_H

#include "protocol/question.h"
#include "store/store.h"
#include "json/record.h"

#define AMP_SUBJECT_MAX 1001 /* of an id, with its NUL */

struct amp_subject {
    enum amp_subject_kind kind;
    char protocol[16];          /* "" where it is unknown */
    char id[AMP_SUBJECT_MAX];   /* the message's; "" for a task */
    char task[AMP_SUBJECT_MAX]; /* as its protocol names it, or "" */
};

/* The subject of a question, looked up in the state. */
int amp_subject_find(struct amp_store *s, const struct amp_view *question, struct amp_subject *out,
                     struct amp_error *err);

extern const struct amp_rec amp_subject_rec;

/* Whether the work of a message has an outcome, this one's or that of a later attempt. */
int amp_subject_message_ended(struct amp_store *s, const char *id, bool *ended,
                              struct amp_error *err);

#endif
