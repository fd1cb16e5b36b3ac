/* Waiting for children, and ending them with all that they started. */
#include <amp/base/child.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/child_tree.h"

/* Kills until nothing of the tree is left: what forks while we look is met in the next round. */
static void kill_all(pid_t pid)
{
    for (int round = 0; round < 200; round++) {
        if (amp_child_tree_signal(pid, SIGKILL) == 0)
            return;
        poll(NULL, 0, round < 20 ? 1 : 10);
    }
}

void amp_child_kill_tree(struct amp_child *c, int sig)
{
    if (c->pid <= 0)
        return;
    if (!c->owns_tree) {
        kill(-c->pid, sig);
        kill(c->pid, sig);
    } else if (sig == SIGKILL) {
        kill_all(c->pid);
    } else {
        amp_child_tree_signal(c->pid, sig);
    }
}

/* 1 and *si filled when it ended (still waitable then), 0 while it runs. */
static int look(struct amp_child *c, siginfo_t *si, struct amp_error *err)
{
    si->si_pid = 0;
    int rc;
    do
        rc = waitid(P_PID, (id_t)c->pid, si, WEXITED | WNOHANG | WNOWAIT);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot wait for a child");
    return si->si_pid != 0;
}

static void finish(struct amp_child *c, const siginfo_t *si, struct amp_child_end *end)
{
    /* Its zombie still holds its number, so nobody else is hit. */
    if (c->owns_tree)
        kill_all(c->pid);
    siginfo_t gone;
    while (waitid(P_PID, (id_t)c->pid, &gone, WEXITED) < 0 && errno == EINTR)
        ;
    amp_child_tree_forget(c->pid);
    end->exited = si->si_code == CLD_EXITED;
    end->exit_code = end->exited ? si->si_status : 0;
    end->signaled = !end->exited;
    end->signal = end->signaled ? si->si_status : 0;
    end->core = si->si_code == CLD_DUMPED;
    end->wall_ms = amp_mono_ms() - c->started_ms;
    close(c->pidfd);
    c->pidfd = -1;
    c->pid = 0;
}

int amp_child_poll(struct amp_child *c, struct amp_child_end *end, struct amp_error *err)
{
    siginfo_t si;
    int rc = look(c, &si, err);
    if (rc <= 0)
        return rc;
    struct amp_child_end e = {0};
    finish(c, &si, &e);
    *end = e;
    return 1;
}
