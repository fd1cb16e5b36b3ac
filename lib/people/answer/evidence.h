/*
 * The evidence for a question: the record of its task, what happened to the task or message so far,
 * and the two commits of the diff. All texts are untrusted; print them through amp_text_safe.
 */
#ifndef AMP_PEOPLE_ANSWER_EVIDENCE_H
#define AMP_PEOPLE_ANSWER_EVIDENCE_H

#include "people/question/question.h"
#include "work/git/repository/git.h"
#include "work/task/record.h"

/* One event: a dispatch, a result, a verdict, an attempt to deliver. */
struct amp_evidence_row {
    int64_t at_ms;
    uint32_t place; /* rows of one time keep their order */
    uint32_t depth; /* 0: an event; 1: a reason or detail of the event before it */
    char *text;
};

struct amp_evidence {
    struct amp_task task;
    bool has_task;
    /* From the question's record; 0 and "": none. */
    int64_t deadline_ms, extensions;
    char fallback[64], risk[32], reason[64];
    uint32_t n_votes;
    struct amp_evidence_row *rows; /* the oldest first */
    size_t n_rows, cap_rows;
    /* The work that the question is about: differences from base to commit in repo. Empty: there is
     * none; why_no_diff then says why. */
    char repo[4096], base[AMP_OID_MAX], commit[AMP_OID_MAX];
    const char *why_no_diff;
    char *dispatch, *work, *verdict; /* the last ones, as recorded, without their signatures; or
                                        NULL */
};
/* Initialises and fills ev; it must be released also after a failure. */
int amp_evidence_load(struct amp_store *s, const struct amp_question *q, struct amp_evidence *ev,
                      struct amp_error *err);
void amp_evidence_release(struct amp_evidence *ev); /* also of a zeroed struct */
#define AMP_EVIDENCE_EVENTS 8                       /* of the history are shown, the newest */
/* The first row of these events. */
size_t amp_evidence_recent(const struct amp_evidence *ev);
/* Appends the row with its time to the minute; a reason begins with "  - ". */
int amp_evidence_row_text(const struct amp_evidence_row *row, struct amp_buf *out,
                          struct amp_error *err);
#define AMP_EVIDENCE AMP_CLEANUP(amp_evidence_release) struct amp_evidence

#endif
