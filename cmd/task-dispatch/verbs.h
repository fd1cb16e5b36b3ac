/* What main.c puts together: each verb's option table and function, in the file of its name. */
#ifndef TASK_DISPATCH_VERBS_H
#define TASK_DISPATCH_VERBS_H

#include "cli/cli.h"
#include "store/store.h"

/* --state, --config and --lock-timeout belong to every verb; their table stands in main.c. */
extern const char *task_state, *task_config;
extern int64_t task_lock_timeout;
/* Opens the state directory; without one it is wrong usage. */
int task_open(struct amp_store **out, struct amp_error *err);

extern const struct amp_opt task_new_opts[], task_coordinate_opts[];
int task_new(int argc, char **argv);
int task_coordinate(int argc, char **argv);

extern const struct amp_opt task_run_opts[], task_review_opts[], task_verify_opts[];
int task_run(int argc, char **argv);
int task_review(int argc, char **argv);
int task_verify(int argc, char **argv);

#endif
