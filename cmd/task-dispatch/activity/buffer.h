/* The verbs of the activity buffer. */
#ifndef TASK_DISPATCH_BUFFER_H
#define TASK_DISPATCH_BUFFER_H

#include "cli/cli.h"

extern const struct amp_opt activity_opts[], activity_purge_opts[];
int activity_list(int argc, char **argv);
int activity_purge(int argc, char **argv);

#endif
