/* The records of RESPONSEs that wait, or waited, for a person (review.c). */
#ifndef AMP_WORK_AOP_RUN_REVIEW_H
#define AMP_WORK_AOP_RUN_REVIEW_H

#include "message/store/store.h"

#define AMP_SESSION_REVIEW_KIND "session_review"

#endif
