/*
 * What a question to a person is about. An AMP escalation names its task; one about work of another
 * protocol names none (AMP_TASK_NONE) and is about the message that it affects. The question ends
 * when its subject does.
 */
#ifndef AMP_FLOW_SUBJECT_H
#define AMP_FLOW_SUBJECT_H

#include "flow/intake.h"
#include "json/record.h"

#define AMP_SUBJECT_MAX (AMP_INTAKE_ID_MAX + 1)

struct amp_subject {
    enum amp_subject_kind {
        AMP_SUBJECT_UNKNOWN, /* nothing that this state knows: it never ends by itself */
        AMP_SUBJECT_TASK,    /* of AMP */
        AMP_SUBJECT_MESSAGE, /* of the ledger */
    } kind;
    char protocol[16];          /* "" where it is unknown */
    char id[AMP_SUBJECT_MAX];   /* the message's; "" for a task */
    char task[AMP_SUBJECT_MAX]; /* as its protocol names it, or "" */
};

/* The subject of an escalation as the state knows it now. */
int amp_subject_find(struct amp_store *s, const struct amp_view *escalation,
                     struct amp_subject *out, struct amp_error *err);

extern const struct amp_rec amp_subject_rec;

/* Whether there is nothing left to decide: the task is over, the message's work has an outcome. */
int amp_subject_ended(struct amp_store *s, const struct amp_subject *a, bool *ended,
                      struct amp_error *err);

#endif
