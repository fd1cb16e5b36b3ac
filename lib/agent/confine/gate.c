/* Starts the gate of EGRESS_RESTRICTED (libexec/egress-gate). */
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/confine/private.h"

static const char **gate_argv(const char *gate, const char *client, char **hosts)
{
    size_t n = 0, at = 0;
    while (hosts && hosts[n])
        n++;
    const char **argv = calloc(n + 4, sizeof *argv);
    if (!argv)
        return NULL;
    argv[at++] = gate;
    if (client && *client) {
        argv[at++] = "--client";
        argv[at++] = client;
    }
    for (size_t i = 0; i < n; i++)
        argv[at++] = hosts[i];
    return argv;
}

int amp_confine_gate(const struct amp_confine_policy *policy, const char *client, int log_fd,
                     struct amp_child *out, int *gate_fd, struct amp_error *err)
{
    char gate[PATH_MAX];
    int pair[2];
    if (amp_helper_path("egress-gate", gate, sizeof gate, err) < 0)
        return -1;
    AMP_FREE const char **argv = gate_argv(gate, client, policy->grants[AMP_GRANT_HOST]);
    if (!argv)
        return amp_fail_memory(err);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a socket pair for the gate");
    const int fds[] = {pair[1]};
    const struct amp_child_spec spec = {.argv = argv,
                                        .fd_in = -1,
                                        .fd_out = log_fd,
                                        .fd_err = STDERR_FILENO,
                                        .fds = fds,
                                        .n_fds = 1,
                                        .dies_with_us = true};
    int rc = amp_child_start(&spec, out, err);
    close(pair[1]);
    if (rc < 0) {
        close(pair[0]);
        return -1;
    }
    *gate_fd = pair[0];
    return 0;
}
