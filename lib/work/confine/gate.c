/* Starts and ends egress-gate. */
#include "work/confine/gate.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"

#define END_MS 2000

static int gate_launch(char *const *hosts, const char *client, int control, int log_fd, int err_fd,
                       struct amp_gate *g, struct amp_error *err)
{
    char program[PATH_MAX];
    size_t n = 0, k = 0;
    if (amp_helper_path("egress-gate", program, sizeof program, err) < 0)
        return -1;
    while (hosts && hosts[n])
        n++;
    AMP_FREE const char **argv = calloc(n + 4, sizeof *argv);
    if (!argv)
        return amp_fail_memory(err);
    argv[k++] = program;
    argv[k++] = "--client";
    argv[k++] = client;
    for (size_t i = 0; i < n; i++)
        argv[k++] = hosts[i];
    const struct amp_child_spec spec = {
        .argv = argv,
        .fd_in = -1,
        .fd_out = log_fd,
        .fd_err = err_fd,
        .fds = &control,
        .n_fds = 1,
        .no_new_privs = true,
        .dies_with_us = true,
    };
    return amp_child_start(&spec, &g->child, err);
}

int amp_gate_start(const struct amp_confine_policy *policy, const char *client, int log_fd,
                   int err_fd, struct amp_gate *out, struct amp_error *err)
{
    struct amp_gate g = AMP_GATE_NONE;
    int pair[2];
    if (policy->network == AMP_NETWORK_EGRESS_RESTRICTED) {
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
            return amp_fail_errno(err, AMP_INTERNAL, "cannot make a socket pair");
        int rc =
            gate_launch(policy->grants[AMP_GRANT_HOST], client, pair[1], log_fd, err_fd, &g, err);
        close(pair[1]);
        if (rc < 0) {
            close(pair[0]);
            return -1;
        }
        g.fd = pair[0];
    }
    *out = g;
    return 0;
}

int amp_gate_log(const char *state_dir, struct amp_error *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/egress.ndjson", state_dir);
    if (n < 0 || (size_t)n >= sizeof path)
        return amp_fail(err, AMP_CANTCREAT, path_too_long, "%s: too long", state_dir);
    return amp_file_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0600, err);
}

void amp_gate_end(struct amp_gate *g)
{
    struct amp_child_end end;
    if (g->fd >= 0)
        close(g->fd);
    if (g->child.pid > 0)
        amp_child_wait(&g->child, END_MS, 100, NULL, &end, NULL);
    *g = AMP_GATE_NONE;
}
