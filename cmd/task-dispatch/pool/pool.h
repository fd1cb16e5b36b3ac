/* The verbs for pools of agents: work, shutdown. */
#ifndef TASK_DISPATCH_POOL_H
#define TASK_DISPATCH_POOL_H

#include "cli/cli.h"

extern const struct amp_opt pool_work_opts[], pool_shutdown_opts[];
int pool_work(int argc, char **argv);
int pool_shutdown(int argc, char **argv);

#endif
