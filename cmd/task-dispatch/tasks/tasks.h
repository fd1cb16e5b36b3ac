/* The verbs for people about tasks. */
#ifndef TASK_DISPATCH_TASKS_H
#define TASK_DISPATCH_TASKS_H

#include "../verbs.h"

extern const struct amp_opt tasks_list_opts[], tasks_show_opts[], tasks_open_opts[],
    tasks_cancel_opts[], tasks_land_opts[], tasks_diff_opts[], tasks_log_opts[], tasks_edit_opts[],
    tasks_retry_opts[];
int tasks_list(int argc, char **argv);
int tasks_show(int argc, char **argv);
int tasks_open(int argc, char **argv);
int tasks_cancel(int argc, char **argv);
int tasks_land(int argc, char **argv);
int tasks_diff(int argc, char **argv);
int tasks_log(int argc, char **argv);
int tasks_edit(int argc, char **argv);
int tasks_retry(int argc, char **argv);

/* Opens the state directory for reading; a missing one is UNAVAILABLE state_missing. */
int tasks_look(struct amp_store **out, struct amp_error *err);

#endif
