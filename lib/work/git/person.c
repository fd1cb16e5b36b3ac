/* Recognises an agent's processes, even if AMP_AGENT was removed from their environment. */
#include "work/git/person.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/process/process.h"
#include "work/git/rule.h"

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
    const char *variable = "";
    bool found = false;

    /* AMP_AGENT has the name. */
    for (size_t i = 0; envp && envp[i] && strcmp(variable, "AMP_AGENT") != 0; i++)
        if (environment_names(amp_span_str(envp[i]), &variable, out)) {
            snprintf(out->how, sizeof out->how, "%s is set in the environment", variable);
            found = true;
        }
    return found;
}

/* The ancestors of this process, then the leaders of its process group and session, because an
 * orphan has no ancestors any more. */
struct relatives {
    pid_t pid[ANCESTORS_MAX + 2];
    size_t n;
};

static void relatives_find(struct relatives *r)
{
    pid_t pid = getppid(), leaders[] = {getpgrp(), getsid(0)};

    /* Also process 1: in a sandbox it is the agent's; elsewhere it cannot be read, or is not. */
    for (r->n = 0; pid >= 1 && r->n < ANCESTORS_MAX; pid = amp_process_parent(pid))
        r->pid[r->n++] = pid;
    for (size_t i = 0; i < sizeof leaders / sizeof *leaders; i++) {
        size_t known = 0;
        while (known < r->n && r->pid[known] != leaders[i])
            known++;
        if (known == r->n && leaders[i] > 1 && leaders[i] != getpid())
            r->pid[r->n++] = leaders[i];
    }
}

static bool relatives_match(const struct relatives *r, bool (*fn)(pid_t pid, void *ctx), void *ctx)
{
    for (size_t i = 0; i < r->n; i++)
        if (fn(r->pid[i], ctx))
            return true;
    return false;
}

struct started {
    struct amp_agent_caller *out;
    struct amp_buf env;
};

static bool was_started_as_agent(pid_t pid, void *ctx)
{
    struct started *s = ctx;
    const char *variable;

    if (!amp_process_environ(pid, &s->env) ||
        !environment_names(amp_buf_span(&s->env), &variable, s->out))
        return false;
    snprintf(s->out->how, sizeof s->out->how,
             "process %d, which led to this one, was started with %s", (int)pid, variable);
    return true;
}

static bool relatives_started(const struct relatives *r, struct amp_agent_caller *out)
{
    struct started s = {out, {0}};

    amp_buf_init(&s.env, AMP_ENVIRON_MAX + 65536);
    bool found = relatives_match(r, was_started_as_agent, &s);
    amp_buf_release(&s.env);
    return found;
}

bool amp_agent_started(struct amp_agent_caller *out)
{
    struct relatives r;

    relatives_find(&r);
    return relatives_started(&r, out);
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

/* Whether the directory, an absolute path, is in an agent's worktree; cuts dir to its top. */
static bool is_in_agents_worktree(char dir[PATH_MAX], struct amp_agent_caller *out)
{
    bool none = true;
    int gitdir = -1;

    if (dir[0] != '/')
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
    return found;
}

static bool works_in_agents_worktree(pid_t pid, void *ctx)
{
    struct amp_agent_caller *out = ctx;
    char link[64], dir[PATH_MAX];

    snprintf(link, sizeof link, "/proc/%d/cwd", (int)pid);
    ssize_t n = readlink(link, dir, sizeof dir - 1);
    if (n <= 0)
        return false;
    dir[n] = '\0';
    if (!is_in_agents_worktree(dir, out))
        return false;
    if (pid == getpid())
        snprintf(out->how, sizeof out->how, "the work directory is in the agent's worktree %.180s",
                 dir);
    else
        snprintf(out->how, sizeof out->how,
                 "process %d, which led to this one, works in the agent's worktree %.160s",
                 (int)pid, dir);
    return true;
}

bool amp_agent_calls(char *const *envp, struct amp_agent_caller *out)
{
    struct relatives r;

    if (own_environment(envp, out))
        return true;
    relatives_find(&r);
    return relatives_started(&r, out) || works_in_agents_worktree(getpid(), out) ||
           relatives_match(&r, works_in_agents_worktree, out);
}

/* ---- reporting a refusal ---- */

/* The control FIFO of the attempt, from the environment that names the agent. */
static bool control_find(struct amp_span env, char path[PATH_MAX])
{
    struct amp_span value;
    return amp_environ_get(env, "AMP_CONTROL", &value) && value.n > 0 && value.p[0] == '/' &&
           amp_span_copy(value, path, PATH_MAX);
}

struct finding_control {
    char *path;
    struct amp_buf env;
};

static bool has_control(pid_t pid, void *ctx)
{
    struct finding_control *f = ctx;
    return amp_process_environ(pid, &f->env) && control_find(amp_buf_span(&f->env), f->path);
}

/* Tells the worker of the attempt, if there is one; a confined agent reaches no state directory. */
static void refusal_report(char *const *envp, const struct amp_error *why)
{
    char path[PATH_MAX] = "";
    struct stat st;
    struct finding_control f = {path, {0}};
    struct amp_jw w;
    AMP_BUF struct amp_buf line = {0};
    bool found = false;

    for (size_t i = 0; envp && envp[i] && !found; i++)
        found = control_find(amp_span_str(envp[i]), path);
    if (!found) {
        struct relatives r;
        relatives_find(&r);
        amp_buf_init(&f.env, AMP_ENVIRON_MAX + 65536);
        found = relatives_match(&r, has_control, &f);
        amp_buf_release(&f.env);
    }
    /* The FIFO and its reader belong to the agent's worker: nothing is waited for. */
    AMP_CLOSE int fd = found ? open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
        return;
    amp_buf_init(&line, PIPE_BUF);
    amp_jw_init(&w, &line);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "type", "refused");
    amp_jw_member_text(&w, "code", why->code);
    amp_jw_member_text(&w, "detail", why->what);
    amp_jw_close(&w, '}');
    if (amp_jw_end_line(&w, NULL) == 0 && write(fd, line.data, line.len) < 0)
        return; /* the action is refused in any case */
}

int amp_person_or_self(char *const *envp, const char *name, const char *act, struct amp_error *err)
{
    struct amp_agent_caller c;
    const char *slash = name ? strrchr(name, '/') : NULL;

    if (!amp_agent_calls(envp, &c) || (name && strcmp(c.name, name) == 0) ||
        (slash && strcmp(c.name, slash + 1) == 0))
        return 0;
    amp_fail(err, AMP_NOPERM, permission_denied,
             "only people%s may %s; the caller is the agent \"%s\" (%s)",
             name ? " and the agent itself" : "", act, c.name, c.how);
    refusal_report(envp, err);
    return -1;
}

int amp_person_only(char *const *envp, const char *act, struct amp_error *err)
{
    return amp_person_or_self(envp, NULL, act, err);
}
