/* The records of RESPONSEs that wait, or waited, for a person (review.c). */
#ifndef AMP_FLOW_WORK_SESSION_REVIEW_H
#define AMP_FLOW_WORK_SESSION_REVIEW_H

#include "store/store.h"

#define AMP_SESSION_REVIEW_KIND "session_review"

/* Removes the records, a week after the question's time has passed. */
int amp_session_reviews_forget(struct amp_store *s, int64_t now_ms, const char *actor,
                               uint32_t *gone, struct amp_error *err);

#endif
