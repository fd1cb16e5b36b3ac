/*
 * The evidence of a question (people/answer/evidence.h) for the channels: what happened to its
 * task, the files and the beginning of the diff, and what each answer would do. Lines that others
 * wrote begin with "| ". Every part is bounded and says when it is cut.
 */
#ifndef AMP_PEOPLE_ANSWER_TEXT_EVIDENCE_FACTS_H
#define AMP_PEOPLE_ANSWER_TEXT_EVIDENCE_FACTS_H

#include "people/answer/decide.h"
#include "people/answer/evidence.h"
#include "people/answer/text/facts.h"

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

/* Makes the diff of the evidence, which has one (why_no_diff is NULL): diff, and the text up to the
 * size of `patch`; more: that is not all of it. Release diff also after a failure. */
int amp_evidence_diff(struct amp_decider *d, const struct amp_evidence *ev,
                      struct amp_git_diff *diff, struct amp_buf *patch, bool *more,
                      struct amp_error *err);

#endif
