/* A process that is killed at its n-th system call. */
#ifndef TESTS_KILLED_H
#define TESTS_KILLED_H

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static bool killed_denied; /* a process may not be traced here */

/* Runs fn in a process that is killed at its n-th system call, at the beginning or the end of it.
 * false: it ended before. */
static bool killed_at(int (*fn)(void), long n)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(99);
        raise(SIGSTOP);
        _exit(fn() ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    killed_denied |= WIFEXITED(status) && WEXITSTATUS(status) == 99;
    if (!WIFSTOPPED(status))
        return false;
    for (; n > 0; n--) {
        int pass = WIFSTOPPED(status) && WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP
                       ? WSTOPSIG(status)
                       : 0;
        if (ptrace(PTRACE_SYSCALL, pid, NULL, pass) < 0 || waitpid(pid, &status, 0) < 0 ||
            WIFEXITED(status) || WIFSIGNALED(status))
            return false;
    }
    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return true;
}

#endif
