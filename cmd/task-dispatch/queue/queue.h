/* The verbs of the queue: submit, queue, cancel and preempt of jobs. */
#ifndef TASK_DISPATCH_QUEUE_H
#define TASK_DISPATCH_QUEUE_H

#include "cli/cli.h"

extern const struct amp_opt queue_submit_opts[], queue_list_opts[], queue_status_opts[],
    queue_ask_opts[], queue_rank_opts[];
int queue_submit(int argc, char **argv);
int queue_list(int argc, char **argv);
int queue_status(int argc, char **argv);
int queue_preempt(int argc, char **argv);
int queue_cancel(int argc, char **argv);
int queue_rank(int argc, char **argv);

#endif
