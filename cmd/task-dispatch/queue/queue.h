/* The verbs of the queue: submit, queue, preempt; the end of jobs for cancel. */
#ifndef TASK_DISPATCH_QUEUE_H
#define TASK_DISPATCH_QUEUE_H

#include "cli/cli.h"
#include "store/store.h"

/* Cancels the jobs that a name means: a job's id, or an unambiguous beginning of it of at least 6
 * digits; the id of the message that asked for it; a task, whose jobs end. Prints a note for each.
 * NO ambiguous_job; USAGE why_required: the job of another person where hitl.operators is set. */
struct tasks_person;
struct queue_who {
    const char *name, *task; /* task: also of this task; NULL: none */
    const char *why;         /* NULL: no reason */
    const struct tasks_person *person;
};
struct queue_named {
    size_t found, cancelled; /* found: also those that have ended */
    uint8_t state;           /* of one of them */
    bool is_job_id;          /* the name looks like the id of a job */
};
int queue_jobs_cancel(struct amp_store *s, const struct queue_who *who, struct queue_named *out,
                      struct amp_error *err);

#endif
