/* Tasks of the Runtime Protocol in a worker's loop (work/attempt/worker.h). */
#ifndef AMP_WORK_RTP_RUN_RUNTIME_H
#define AMP_WORK_RTP_RUN_RUNTIME_H

#include "work/attempt/worker.h"
#include "work/rtp/runtime.h"

/* Whether the message is a task of the Runtime Protocol. */
bool amp_runtime_is_task(const struct amp_view *v);
/* Whether the message is a task for the worker's agent: one that names it, or one that names no
 * agent and asks for capabilities for which it is eligible. 1, 0, or -1: failure. */
int amp_runtime_is_ours(const struct amp_worker *w, const struct amp_view *v,
                        struct amp_error *err);
/* The ack "accepted" of a task that is taken for the first time. */
int amp_runtime_taken(struct amp_worker *w, const struct amp_view *v, struct amp_buf *out,
                      struct amp_error *err);
/* Works on the task of a job: accepts it, runs the command, reports the outcome, and acknowledges
 * it as processed. Whether the job has to wait (suspended); if not, it made a step. */
int amp_runtime_work(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                     const struct amp_runtime_options *opt, struct amp_error *err);

#endif
