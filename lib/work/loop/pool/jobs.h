/* The pool's view of the queue's jobs has what an attempt needs, and how it leaves the job. For the
 * files of pool/. */
#ifndef AMP_WORK_LOOP_POOL_JOBS_H
#define AMP_WORK_LOOP_POOL_JOBS_H

#include <limits.h>

#include "work/attempt/worker.h"
#include "work/item/claim/queue.h"

/* A claimed job. */
struct amp_pool_job {
    char id[AMP_QUEUE_ID_MAX], msg_id[256], task[256], type[AMP_QUEUE_TYPE_MAX];
    int64_t priority, attempts; /* attempts: with this one */
    int64_t seq;                /* with attempts: the claim */
    int64_t losses;             /* workers that were lost with it */
    int64_t submitted_ms;
    /* They are of its scope, if it names exactly one repository, and one branch; else "". */
    char repo[PATH_MAX], branch[256];
    char agent[128];               /* the one that has its worktree; "": none */
    char session[257];             /* under which this agent resumes its work; "" */
    char failed[AMP_QUEUE_ID_MAX]; /* a job that it follows and that did not do its work, so that
                                      this one fails; "" */
    bool again;                    /* an attempt was stopped, and goes on in its worktree */
};

/* The results of an attempt for its job. */
enum amp_pool_end {
    AMP_POOL_DONE,
    AMP_POOL_FAILED, /* with a code */
    AMP_POOL_PARKED, /* until until_ms */
    AMP_POOL_AGAIN,  /* it is queued again, in its old place */
};
struct amp_pool_outcome {
    enum amp_pool_end end;
    char code[48], why[512];
    bool keeps;       /* its worktree is as the attempt left it */
    int64_t until_ms; /* PARKED */
    char agent[128];  /* PARKED: that gets it next; "": the one that had it */
};

#endif
