/*
 * The text of a question and its evidence. Every line of text that others wrote begins with a bar,
 * so that it cannot look like a line of this program, and its control characters and direction
 * overrides are visible escapes. Lines are wrapped here, because a line that the terminal wraps
 * would continue without a bar. Nothing is left out without a line that says how much.
 */
#ifndef HITL_EVIDENCE_H
#define HITL_EVIDENCE_H

#include "flow/decide/evidence.h"

/* Where text goes. */
struct page {
    int width;  /* columns, at least 40 */
    bool color; /* SGR sequences around text; the text itself never has any */
    struct amp_buf *out;
    struct amp_error *err;
};

/* A question in full: what is asked and why, by whom, the task's history, what each answer does.
 * ev NULL: without the task and its history. */
int evidence_question(const struct amp_question *q, const struct amp_evidence *ev,
                      const struct page *page);
/* The answers, as the last lines before the prompt: the form and the effect of each. */
int evidence_answers(const struct amp_question *q, const struct page *page);
/* The task's record, or that there is none. */
int evidence_task(const struct amp_question *q, const struct amp_evidence *ev,
                  const struct page *page);
/* Everything that agents wrote, without limits: the question, the last result, the last verdict. */
int evidence_words(const struct amp_question *q, const struct amp_evidence *ev,
                   const struct page *page);
/* The log of the task or message: all events with their times. */
int evidence_log(struct amp_store *s, const struct amp_question *q, const struct page *page);
/* A unified diff: the files first, then the text, coloured. */
int evidence_diff(const struct amp_evidence *ev, const struct amp_git_diff *diff,
                  struct amp_span patch, const struct page *page);

/* The digest of what was shown: of the question's text, which does not depend on the width. */
#define EVIDENCE_DIGEST_MAX 80
int evidence_digest(const struct amp_question *q, const struct amp_evidence *ev,
                    char out[EVIDENCE_DIGEST_MAX], struct amp_error *err);

/* For the files here. */

#define PAGE_LABEL 12 /* columns of a label */
enum tint { TINT_NONE, TINT_HEAD, TINT_DIM, TINT_OLD, TINT_NEW, TINT_HUNK, TINT_FILE };

/* A line of our own. */
int page_say(const struct page *page, enum tint tint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Text of others with a label, at most `most` bytes (0: all); the rest is counted. */
int page_quote(const struct page *page, const char *label, struct amp_span text, size_t most);
/* One line of others behind a bar without a label, as of a diff. */
int page_line(const struct page *page, enum tint tint, struct amp_span text);

#endif
