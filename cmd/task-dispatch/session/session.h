/* The verbs about sessions of AOP. */
#ifndef TASK_DISPATCH_SESSION_H
#define TASK_DISPATCH_SESSION_H

#include "cli/cli.h"
#include "store/store.h"

extern const struct amp_opt session_list_opts[], session_show_opts[], session_report_opts[],
    session_escalate_opts[], session_rollback_opts[];
int session_list(int argc, char **argv);
int session_show(int argc, char **argv);
int session_report(int argc, char **argv);
int session_escalate(int argc, char **argv);
int session_rollback(int argc, char **argv);

/* Opens a state directory that exists: UNAVAILABLE state_missing. */
int session_state_open(struct amp_store **s, struct amp_error *err);

#endif
