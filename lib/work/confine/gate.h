/* The way out of a confined command with EGRESS_RESTRICTED: one process of libexec/amp/egress-gate
 * for each command. amp-egress(7) describes it. */
#ifndef AMP_WORK_CONFINE_GATE_H
#define AMP_WORK_CONFINE_GATE_H

#include <amp/base/child.h>

#include "work/confine/confine.h"

struct amp_gate {
    struct amp_child child; /* pid 0: not started */
    int fd;                 /* for struct amp_confine.gate_fd; -1: none */
};
#define AMP_GATE_NONE ((struct amp_gate){.fd = -1})

/* Starts a gate for the hosts of the policy. With another network policy it starts nothing and
 * returns AMP_GATE_NONE. client: the agent or task in its records; log_fd: where it writes them, a
 * file opened with O_APPEND, or a pipe; err_fd: its diagnostics. UNAVAILABLE: no helper. */
int amp_gate_start(const struct amp_confine_policy *policy, const char *client, int log_fd,
                   int err_fd, struct amp_gate *out, struct amp_error *err);
/* Opens STATE/egress.ndjson (0600) for log_fd. Returns the descriptor. */
int amp_gate_log(const char *state_dir, struct amp_error *err);
/* Closes fd and waits for the end of the gate: at most 2 s, then it is killed. Call it after the
 * command has ended; before that it ends the command's network. */
void amp_gate_end(struct amp_gate *g);
#define AMP_GATE AMP_CLEANUP(amp_gate_end) struct amp_gate

#endif
