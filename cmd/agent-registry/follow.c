/* Waiting for the state to change: the log's directory tells when somebody wrote to it. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/loop.h"
#include "registry.h"

int reg_follow(const char *dir, int (*look)(void *ctx, struct amp_error *err), void *ctx,
               struct amp_error *err)
{
    char path[PATH_MAX], events[4096];
    snprintf(path, sizeof(path), "%s/log", dir);
    AMP_CLOSE int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0 || inotify_add_watch(fd, path, IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot watch %s", path);
    amp_signals_install();
    int rc = 0;
    while (rc == 0) {
        while (read(fd, events, sizeof(events)) > 0) {
        }
        rc = look(ctx, err);
        if (rc == 0)
            rc = amp_out_flush(err);
        if (rc == 0 && amp_stop)
            break;
        if (rc != 0)
            break;
        struct pollfd fds[2];
        struct amp_loop turn = amp_loop_turn(fds, 2, &amp_stop, NULL);
        amp_loop_add(&turn, fd, POLLIN);
        const struct pollfd *out = amp_loop_add(&turn, STDOUT_FILENO, 0); /* its reader may go */
        if (amp_loop_wait(&turn, err) < 0)
            return -1;
        if (out->revents & (POLLERR | POLLHUP))
            break;
    }
    return rc;
}
