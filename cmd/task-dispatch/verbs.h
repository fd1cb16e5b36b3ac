/* What main.c puts together: each verb's option table and function, in the file of its name. */
#ifndef TASK_DISPATCH_VERBS_H
#define TASK_DISPATCH_VERBS_H

#include "cli/cli.h"

extern const struct amp_opt task_run_opts[], task_review_opts[], task_verify_opts[];
int task_run(int argc, char **argv);
int task_review(int argc, char **argv);
int task_verify(int argc, char **argv);

#endif
