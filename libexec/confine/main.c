/*
 * confine: executes a command in a sandbox. The tools start it through lib/work/agent/confine.c.
 *
 * usage: confine -- COMMAND [ARG...]   the plan (plan.c) on descriptor 3
 *        confine --probe               prints what can be enforced here, as one JSON line
 *
 * Its exit status is that of the command; a command that a signal ended ends it by the same signal.
 * A failed setup is written to the plan's status_fd as "STATUS CODE TEXT" (see confine.h), and is
 * its exit status. The descriptor is closed when the command starts.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/codes.h"
#include "confine.h"

#define PLAN_FD 3

static void plan_say(const struct plan *p, int status, const char *text)
{
    const char *code = status == 126   ? AMP_CODE(not_executable)
                       : status == 127 ? AMP_CODE(command_not_found)
                       : status == 78  ? AMP_CODE(bad_policy)
                                       : AMP_CODE(confinement_unavailable);
    char line[600];
    int n = p->status_fd >= 0 ? snprintf(line, sizeof line, "%d %s %s", status, code, text)
                              : snprintf(line, sizeof line, "confine: error: %s\n", text);
    ssize_t done = write(p->status_fd >= 0 ? p->status_fd : STDERR_FILENO, line, (size_t)n);
    (void)done;
}

void give_up(const struct plan *p, int status, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    plan_say(p, status, text);
    _exit(status);
}

void give_up_sys(const struct plan *p, const char *fmt, ...)
{
    char text[512];
    int sys = errno;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %s", strerror(sys));
    plan_say(p, 77, text);
    _exit(77);
}

int main(int argc, char **argv)
{
    static struct plan p = {.status_fd = -1, .gate_fd = -1};
    if (argc == 2 && strcmp(argv[1], "--probe") == 0)
        return probe_run();
    if (argc < 3 || strcmp(argv[1], "--") != 0) {
        static const char usage[] = "usage: confine -- COMMAND [ARG...] 3<PLAN\n";
        ssize_t done = write(STDERR_FILENO, usage, sizeof usage - 1);
        (void)done;
        return 64;
    }
    plan_read(&p, PLAN_FD);
    p.argv = argv + 2;
    return outer_run(&p);
}
