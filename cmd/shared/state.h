/*
 * The state directory of a verb: members of a tool (cli/cli.h) that has the options "state" and
 * "lock-timeout".
 */
#ifndef CLI_STATE_H
#define CLI_STATE_H

#include "cli/rows.h"
#include "message/store/store.h"

#define AMP_STATE_OF_TOOL                                                                          \
    .refuse = amp_state_refuse, .open = amp_state_open, .close = amp_state_close

/* NOPERM permission_denied: the caller is an agent, and not the one that the first operand of a
 * verb for AMP_WHO_SELF names. */
int amp_state_refuse(const struct amp_command *c, struct amp_error *err);
/* Opens the store as c->opens says. Ends the program with USAGE if the verb needs a state directory
 * and none was given. */
int amp_state_open(struct amp_command *c, struct amp_error *err);
void amp_state_close(struct amp_command *c);

#endif
