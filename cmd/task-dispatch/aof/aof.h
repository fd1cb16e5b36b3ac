/* The verbs of AOF/1. */
#ifndef TASK_DISPATCH_AOF_H
#define TASK_DISPATCH_AOF_H

#include "cli/cli.h"

extern const struct amp_opt aof_opts[], aof_poll_opts[], aof_end_opts[], aof_new_opts[];
int aof_route(int argc, char **argv);
int aof_poll(int argc, char **argv);
int aof_end(int argc, char **argv);
int aof_new(int argc, char **argv);

#endif
