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

#define ENVIRON_MAX (4u << 20)
#define ROUNDS      20

int amp_agent_hold(const char *state_dir, const char *agent, int *fd, struct amp_error *err)
{
    char path[4200];

    snprintf(path, sizeof path, "%s/run", state_dir);
    if (amp_mkdirs(path, 0700, err))
        return -1;
    snprintf(path, sizeof path, "%s/run/%s.lock", state_dir, agent);
    AMP_CLOSE int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "%s", path);
    if (amp_lock(lock, 0, err)) {
        if (!strcmp(err->code, "lock_timeout"))
            amp_fail(err, AMP_TEMPFAIL, "agent_busy",
                     "another process acts as %s in %s: give --agent another name", agent,
                     state_dir);
        return -1;
    }
    *fd = lock;
    lock = -1;
    return 0;
}

static bool has(struct amp_span env, const char *name, const char *value, bool whole)
{
    size_t n = strlen(name), m = strlen(value);

    for (size_t at = 0; at < env.n;) {
        const char *entry = env.p + at;
        size_t len = strnlen(entry, env.n - at);
        if (len >= n + 1 + m && !memcmp(entry, name, n) && entry[n] == '=' &&
            !memcmp(entry + n + 1, value, m) && (!whole || len == n + 1 + m))
            return true;
        at += len + 1;
    }
    return false;
}

static bool read_environ(pid_t pid, struct amp_buf *out)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    amp_buf_reset(out);
    while (fd >= 0 && !amp_buf_reserve(out, 65536, NULL)) {
        ssize_t n = read(fd, out->data + out->len, 65536);
        if (n <= 0)
            return n == 0 && out->len;
        out->len += (size_t)n;
    }
    return false;
}

static pid_t parent_of(pid_t pid)
{
    char path[64];
    AMP_BUF struct amp_buf b = {0};
    int64_t parent = 0;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    amp_buf_init(&b, 65536);
    if (amp_file_read(AT_FDCWD, path, 65536, &b, NULL) || !b.len)
        return 0;
    const char *at = memmem(b.data, b.len, "\nPPid:\t", 7);
    if (at)
        amp_num_parse((struct amp_span){at + 7, strspn(at + 7, "0123456789")}, 0, 1 << 30, &parent,
                      NULL);
    return (pid_t)parent;
}

static bool is_ancestor(pid_t pid)
{
    pid_t p = getpid();

    for (int depth = 0; p > 1 && depth < 1000; depth++, p = parent_of(p))
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
            !read_environ((pid_t)pid, env))
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

    amp_buf_init(&env, ENVIRON_MAX + 65536);
    /* What forks while we look is met in the next round. */
    for (int round = 0; round < ROUNDS && (n = end_once(state_dir, agent, &env)); round++) {
        all += n;
        usleep(2000);
    }
    return all;
}
