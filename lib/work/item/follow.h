/*
 * Jobs that follow other jobs: one is not started before those that it follows have ended. What
 * becomes of it when one of them did not do its work is a setting of the job.
 */
#ifndef AMP_WORK_ITEM_FOLLOW_H
#define AMP_WORK_ITEM_FOLLOW_H

#include "work/item/queue.h"

enum { AMP_FOLLOW_MOST = 64 }; /* jobs that one job follows */

/* X(NAME, word): it fails, with an answer to its sender; it is cancelled; it starts nevertheless.
 */
#define AMP_FOLLOW_ELSE(X)                                                                         \
    X(FAIL, "fail")                                                                                \
    X(SKIP, "skip")                                                                                \
    X(START, "start")
enum amp_follow_else {
#define X(id, word) AMP_FOLLOW_##id,
    AMP_FOLLOW_ELSE(X)
#undef X
};
/* "" is FAIL. -1: no such word. */
int amp_follow_else(struct amp_span word);

/* Takes the next id from a list, `follows` of a job; false: there is none. */
bool amp_follow_next(struct amp_span *list, struct amp_span *id);

/* In a batch: checks the jobs that the new job `id` follows. NO unknown_job; follow_cycle: one of
 * them follows the job, if that was submitted before, and the text names the jobs in between. */
int amp_follow_check(struct amp_store *s, struct amp_span id, struct amp_span follows,
                     struct amp_error *err);

/* Whether one of the jobs that it follows has ended without its work done, or is forgotten. 1:
 * `which` is that; 0; -1. */
int amp_follow_failed(struct amp_store *s, const struct amp_queue_job *job,
                      char which[AMP_QUEUE_ID_MAX], struct amp_error *err);

#endif
