/*
 * The evidence of a question (flow/decide/evidence.h) for the channels: what happened to its task,
 * the files and the beginning of the diff, and what each answer would do. Lines that others wrote
 * begin with "| ". Every part is bounded and says when it is cut.
 */
#ifndef AMP_FLOW_DECIDE_EVIDENCE_FACTS_H
#define AMP_FLOW_DECIDE_EVIDENCE_FACTS_H

#include "flow/decide/answer/facts.h"
#include "flow/decide/decide.h"

struct amp_evidence_texts {
    bool known;
    struct amp_buf history, files, diff, effects;
    struct amp_buf all; /* all of them, with headings; not NUL-terminated, as the others */
};
/* Collects the texts; t is zeroed, or has them already. A part that cannot be read, such as a
 * repository that is gone, is reported in the text and is no failure. */
int amp_evidence_texts(struct amp_decider *d, const struct amp_question *q,
                       struct amp_evidence_texts *t, struct amp_error *err);
void amp_evidence_texts_release(struct amp_evidence_texts *t); /* also of a zeroed struct */
/* Sets the facts history, files, diff, effects and evidence. */
int amp_facts_evidence(struct amp_facts *f, const struct amp_evidence_texts *t,
                       struct amp_error *err);

#endif
