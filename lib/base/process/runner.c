/* Runs a command with a message, and ends it at its time limit. */
#include "base/process/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "base/loop.h"
#include "base/process/process.h"

#define ROUNDS   50  /* of killing what an ended command left */
#define AGAIN_MS 100 /* after a KILL, in case the kernel takes its time */

struct amp_runner amp_runner_of(const struct amp_child *c, int64_t limit_ms, int64_t grace_ms)
{
    int64_t now = amp_mono_ms();
    bool limited = limit_ms >= 0 && limit_ms <= INT64_MAX - now;
    return (struct amp_runner){.child = *c,
                               .limit_ms = limit_ms,
                               .grace_ms = grace_ms,
                               .until_ms = limited ? now + limit_ms : INT64_MAX};
}

static int message_file(struct amp_span message, struct amp_error *err)
{
    int fd = memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a file for a message");
    if (amp_write_all(fd, message, err) < 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    lseek(fd, 0, SEEK_SET);
    return fd;
}

int amp_runner_start(struct amp_runner *r, const struct amp_child_spec *spec,
                     struct amp_span message, int64_t limit_ms, int64_t grace_ms,
                     struct amp_error *err)
{
    struct amp_child_spec own = *spec;
    struct amp_child child;
    AMP_CLOSE int fd = message_file(message, err);
    own.fd_in = fd;
    if (fd < 0 || amp_child_start(&own, &child, err) < 0)
        return -1;
    *r = amp_runner_of(&child, limit_ms, grace_ms);
    return 0;
}

/* The command has ended and is not waited for yet: ends what it left. */
static void rest_end(const struct amp_runner *r)
{
    struct pollfd fd = {.fd = r->child.pidfd, .events = POLLIN};

    if (poll(&fd, 1, 0) != 1)
        return;
    for (int round = 0; round < ROUNDS && amp_child_tree_signal(r->child.pid, SIGKILL) > 0; round++)
        poll(NULL, 0, 1);
}

int amp_runner_look(struct amp_runner *r, struct amp_child_end *end, struct amp_error *err)
{
    if (r->hurried && !r->child.owns_tree)
        rest_end(r);
    int rc = amp_child_poll(&r->child, end, err);
    if (rc < 0)
        return -1;
    if (rc > 0) {
        end->timed_out = r->timed_out;
        end->stopped_by_us = r->stopped;
        return 1;
    }
    int64_t now = amp_mono_ms();
    if (now < r->until_ms)
        return 0;
    r->timed_out |= r->until_ms > 0 && !r->stopped;
    int sig = r->stopped ? SIGKILL : SIGTERM;
    /* Descendants first: they are found by their parents. */
    if (r->hurried && !r->child.owns_tree)
        amp_child_tree_signal(r->child.pid, sig);
    amp_child_kill_tree(&r->child, sig);
    r->until_ms = now + (r->stopped ? AGAIN_MS : r->grace_ms);
    r->stopped = true;
    return 0;
}

int64_t amp_runner_wait(const struct amp_runner *r)
{
    int64_t left = r->until_ms - amp_mono_ms();
    return r->until_ms == INT64_MAX ? -1 : left > 0 ? left : 0;
}

void amp_runner_stop(struct amp_runner *r)
{
    if (!r->stopped)
        r->until_ms = 0;
}

void amp_runner_hurry(struct amp_runner *r, int64_t grace_ms)
{
    int64_t latest = amp_mono_ms() + grace_ms;
    amp_runner_stop(r);
    r->hurried = true;
    if (r->grace_ms > grace_ms)
        r->grace_ms = grace_ms;
    if (r->stopped && r->until_ms > latest)
        r->until_ms = latest;
}

int amp_runner_finish(struct amp_runner *r, volatile const int *stop, struct amp_child_end *end,
                      struct amp_error *err)
{
    for (;;) {
        if (stop && *stop)
            amp_runner_stop(r);
        int rc = amp_runner_look(r, end, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
        struct pollfd fd;
        struct amp_loop turn = amp_loop_turn(&fd, 1, r->stopped ? NULL : stop, NULL);
        amp_loop_add(&turn, r->child.pidfd, POLLIN);
        amp_loop_within(&turn, amp_runner_wait(r));
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
    }
}

int amp_child_wait(struct amp_child *c, int64_t timeout_ms, int64_t grace_ms,
                   volatile const int *cancel, struct amp_child_end *end, struct amp_error *err)
{
    struct amp_runner r = amp_runner_of(c, timeout_ms, grace_ms);
    int rc = amp_runner_finish(&r, cancel, end, err);
    *c = r.child;
    return rc;
}

/* The statuses of amp-exit(7) for something absent, failed or temporary, and those of a shell that
 * cannot run a command. The others refuse the message. */
static bool status_is_temporary(int status)
{
    return status == AMP_UNAVAILABLE || status == AMP_CANTCREAT || status == AMP_IOERR ||
           status == AMP_TEMPFAIL || status == AMP_TIMEDOUT || status == AMP_INTERRUPTED ||
           status == 126 || status == 127;
}

enum amp_run_verdict amp_runner_verdict(const struct amp_runner *r, const struct amp_child_end *end,
                                        const char *name, struct amp_error *why)
{
    if (end->timed_out) {
        amp_fail(why, AMP_TIMEDOUT, command_timeout, "%s took longer than %lld ms", name,
                 (long long)r->limit_ms);
        return AMP_RUN_AGAIN;
    }
    if (end->signaled) {
        amp_fail(why, AMP_UNAVAILABLE, command_failed, "%s was ended by signal %d", name,
                 end->signal);
        return AMP_RUN_AGAIN;
    }
    if (end->exit_code == 0)
        return AMP_RUN_DONE;
    bool again = status_is_temporary(end->exit_code);
    amp_fail_text(why, again ? AMP_UNAVAILABLE : AMP_NO,
                  again ? AMP_CODE(command_failed) : AMP_CODE(command_refused),
                  "%s ended with status %d (%s)", name, end->exit_code,
                  amp_status_meaning(end->exit_code));
    return again ? AMP_RUN_AGAIN : AMP_RUN_REFUSED;
}
