/* The end of jobs by a person: task-dispatch cancel, task-queue cancel. */
#ifndef CLI_WORK_CANCEL_H
#define CLI_WORK_CANCEL_H

#include "cli/cli.h"
#include "message/store/store.h"

/* Cancels the jobs that a name means: a job's id, or an unambiguous beginning of it of at least 6
 * digits; the id of the message that asked for it; a task, whose jobs end. Prints a note for each.
 * NO ambiguous_job; USAGE why_required: the job of another person where hitl.operators is set. */
struct amp_tool_person;
struct amp_tool_cancel {
    const char *name, *task; /* task: also of this task; NULL: none */
    const char *why;         /* NULL: no reason */
    const struct amp_tool_person *person;
};
struct amp_tool_cancelled {
    size_t found, cancelled; /* found: also those that have ended */
    uint8_t state;           /* of one of them */
};
int amp_tool_jobs_cancel(struct amp_store *s, const struct amp_tool_cancel *who,
                         struct amp_tool_cancelled *out, struct amp_error *err);

#endif
