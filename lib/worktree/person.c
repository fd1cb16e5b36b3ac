/* Recognises an agent's processes, even if AMP_AGENT was removed from their environment. */
#include "worktree/person.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process/process.h"
#include "worktree/rule.h"

#define ANCESTORS_MAX 1000

static bool environment_names(struct amp_span env, const char **variable,
                              struct amp_agent_caller *out)
{
    static const char *const variables[] = {"AMP_AGENT", "AMP_RESULT"};
    struct amp_span value;

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (amp_environ_get(env, variables[i], &value)) {
            *variable = variables[i];
            amp_span_copy(i == 0 && value.n ? value : AMP_SPAN("unknown"), out->name,
                          sizeof out->name);
            return true;
        }
    return false;
}

static bool own_environment(char *const *envp, struct amp_agent_caller *out)
{
    const char *variable;

    for (size_t i = 0; envp && envp[i]; i++)
        if (environment_names(amp_span_str(envp[i]), &variable, out)) {
            snprintf(out->how, sizeof out->how, "%s is set in the environment", variable);
            return true;
        }
    return false;
}

static bool other_process(pid_t pid, struct amp_buf *env, struct amp_agent_caller *out)
{
    const char *variable;

    if (pid <= 1 || pid == getpid() || !amp_process_environ(pid, env) ||
        !environment_names(amp_buf_span(env), &variable, out))
        return false;
    snprintf(out->how, sizeof out->how, "process %d, which led to this one, was started with %s",
             (int)pid, variable);
    return true;
}

static bool started_by_agent(struct amp_agent_caller *out)
{
    AMP_BUF struct amp_buf env = {0};
    pid_t pid = getppid();

    amp_buf_init(&env, AMP_ENVIRON_MAX + 65536);
    for (int n = 0; pid > 1 && n < ANCESTORS_MAX; n++, pid = amp_process_parent(pid))
        if (other_process(pid, &env, out))
            return true;
    /* An orphan has no ancestors any more, but is still in their session. */
    return other_process(getpgrp(), &env, out) || other_process(getsid(0), &env, out);
}

/* Opens the git directory of the worktree at dir: ".git" itself, or the directory that the file
 * ".git" names. -1 on failure; *none: .git does not exist. */
static int open_gitdir(const char *dir, bool *none)
{
    char path[PATH_MAX + 8], text[PATH_MAX + 16];
    struct stat st;

    snprintf(path, sizeof path, "%s/.git", dir);
    /* Without blocking, if it is a FIFO. */
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    *none = fd < 0 && errno == ENOENT;
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (S_ISDIR(st.st_mode)) {
        int found = fd;
        fd = -1;
        return found;
    }
    ssize_t n = S_ISREG(st.st_mode) ? read(fd, text, sizeof text - 1) : -1;
    if (n < 8 || memcmp(text, "gitdir: ", 8) != 0)
        return -1;
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    AMP_CLOSE int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return at < 0 ? -1 : openat(at, text + 8, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool in_agents_worktree(struct amp_agent_caller *out)
{
    char dir[PATH_MAX];
    bool none = true;
    int gitdir = -1;

    if (!getcwd(dir, sizeof dir) || dir[0] != '/')
        return false;
    for (;;) {
        gitdir = open_gitdir(dir, &none);
        if (!none || !dir[0])
            break;
        *strrchr(dir, '/') = '\0';
    }
    bool found = gitdir >= 0 && amp_rule_agent(NULL, gitdir, out->name, sizeof out->name);
    if (gitdir >= 0)
        close(gitdir);
    if (found)
        snprintf(out->how, sizeof out->how, "the work directory is in the agent's worktree %.200s",
                 dir);
    return found;
}

bool amp_agent_calls(char *const *envp, struct amp_agent_caller *out)
{
    return own_environment(envp, out) || started_by_agent(out) || in_agents_worktree(out);
}

int amp_person_only(char *const *envp, const char *act, struct amp_error *err)
{
    struct amp_agent_caller c;

    if (!amp_agent_calls(envp, &c))
        return 0;
    return amp_fail(err, AMP_NOPERM, "permission_denied",
                    "only people may %s; the caller is the agent \"%s\" (%s)", act, c.name, c.how);
}
