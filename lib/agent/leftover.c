/* A worker that is killed takes its agent with it, but not what that one started. Those processes
 * are known by the environment they inherited; the lock says that nobody else owns them. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/num.h>

#include "agent/leftover.h"
#include "base/process.h"

#define ROUNDS 20

static bool has(struct amp_span env, const char *name, const char *value, bool whole)
{
    struct amp_span got;
    size_t n = strlen(value);

    return amp_environ_get(env, name, &got) && got.n >= n && !memcmp(got.p, value, n) &&
           (!whole || got.n == n);
}

static bool is_ancestor(pid_t pid)
{
    pid_t p = getpid();

    for (int depth = 0; p > 1 && depth < 1000; depth++, p = amp_process_parent(p))
        if (p == pid)
            return true;
    return false;
}

static int end_once(const char *state_dir, const char *agent, struct amp_buf *env)
{
    char attempts[4200];
    DIR *proc = opendir("/proc");
    struct dirent *d;
    int64_t pid;
    int n = 0;

    snprintf(attempts, sizeof attempts, "%s/run/", state_dir);
    while (proc && (d = readdir(proc))) {
        if (amp_num_parse(amp_span_str(d->d_name), 2, 1 << 30, &pid, NULL) ||
            !amp_process_environ((pid_t)pid, env))
            continue;
        struct amp_span e = amp_buf_span(env);
        if (has(e, "AMP_AGENT", agent, true) && has(e, "AMP_STATE", state_dir, true) &&
            has(e, "AMP_RESULT", attempts, false) && !is_ancestor((pid_t)pid) &&
            !kill((pid_t)pid, SIGKILL))
            n++;
    }
    if (proc)
        closedir(proc);
    return n;
}

int amp_agent_end_leftovers(const char *state_dir, const char *agent)
{
    AMP_BUF struct amp_buf env = {0};
    int all = 0, n;

    amp_buf_init(&env, AMP_ENVIRON_MAX + 65536);
    /* What forks while we look is met in the next round. */
    for (int round = 0; round < ROUNDS && (n = end_once(state_dir, agent, &env)); round++) {
        all += n;
        usleep(2000);
    }
    return all;
}
