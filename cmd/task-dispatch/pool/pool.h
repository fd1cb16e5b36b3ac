/* The verbs for pools of agents: work, shutdown. */
#ifndef TASK_DISPATCH_POOL_H
#define TASK_DISPATCH_POOL_H

#include <jansson.h>

#include "cli/cli.h"
#include "store/store.h"

/* work.c: runs a pool with task_worker and the settings of the queue. opt has the rest but worker,
 * queue (but judge), budgets, stop and identify. */
struct amp_pool_options;
int pool_run(struct amp_store *store, struct amp_pool_options *opt, const json_t *config,
             enum amp_status *status, struct amp_error *err);

#endif
