/*
 * The text of a question and its evidence, on a page (cli/page/page.h).
 */
#ifndef HITL_EVIDENCE_H
#define HITL_EVIDENCE_H

#include "cli/page/page.h"
#include "people/answer/evidence.h"
#include "people/answer/text/told.h"

/* A page ends its notice about omitted lines with this text. */
#define EVIDENCE_MORE "s shows everything"

/* Writes a question in full: what is asked and why, by whom, the task's history, what each answer
 * does. ev NULL: without the task and its history. */
int evidence_question(const struct amp_question *q, const struct amp_evidence *ev,
                      const struct amp_page *page);
/* The answers, as the last lines before the prompt: the form and the effect of each. */
int evidence_answers(const struct amp_question *q, const struct amp_page *page);
/* The task's record, or that there is none. */
int evidence_task(const struct amp_question *q, const struct amp_evidence *ev,
                  const struct amp_page *page);
/* Everything that agents wrote, without limits: the question, the last result, the last verdict. */
int evidence_words(const struct amp_question *q, const struct amp_evidence *ev,
                   const struct amp_page *page);
/* The log of the task or message: all events with their times. */
int evidence_log(struct amp_store *s, const struct amp_question *q, const struct amp_page *page);
/* A unified diff: the files first, then the text, coloured. */
int evidence_diff(const struct amp_evidence *ev, const struct amp_git_diff *diff,
                  struct amp_span patch, const struct amp_page *page);

/* The digest of what was shown: of the question's text, which does not depend on the width. */
#define EVIDENCE_DIGEST_MAX AMP_SHOWN_MAX
int evidence_digest(const struct amp_question *q, const struct amp_evidence *ev,
                    char out[EVIDENCE_DIGEST_MAX], struct amp_error *err);

#endif
