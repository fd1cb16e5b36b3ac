/* The input of an agent's command: its directory of files and its environment. It also kills the
 * processes that an earlier command left running. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "base/grow.h"
#include "base/process/process.h"
#include "work/agent/contract/contract.h"

void amp_env_release(struct amp_env *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->v[i]);
    free(e->v);
    *e = (struct amp_env){0};
}

/* Takes the entry, also on failure. */
static int env_push(struct amp_env *e, char *entry, struct amp_error *err)
{
    if (!entry)
        return amp_fail_memory(err);
    if (amp_grow(&e->v, &e->cap, e->n + 1, sizeof *e->v, err) < 0) {
        free(entry);
        return -1;
    }
    e->v[e->n++] = entry;
    e->v[e->n] = NULL;
    return 0;
}

/* Replaces or adds a variable. */
static int env_set(struct amp_env *e, const char *name, const char *value, struct amp_error *err)
{
    size_t n = strlen(name);
    char *entry;

    if (asprintf(&entry, "%s=%s", name, value ? value : "") < 0)
        return amp_fail_memory(err);
    for (size_t i = 0; i < e->n; i++) {
        if (!strncmp(e->v[i], name, n) && e->v[i][n] == '=') {
            free(e->v[i]);
            e->v[i] = entry;
            return 0;
        }
    }
    return env_push(e, entry, err);
}

/* Adds a directory at the end of PATH, so that it hides no other program. */
static int path_extend(struct amp_env *e, const char *dir, struct amp_error *err)
{
    const char *path = "/usr/local/bin:/usr/bin:/bin";

    for (size_t i = 0; i < e->n; i++)
        if (strncmp(e->v[i], "PATH=", 5) == 0)
            path = e->v[i] + 5;
    AMP_FREE char *all = NULL;
    return asprintf(&all, "%s:%s", path, dir) < 0 ? amp_fail_memory(err)
                                                  : env_set(e, "PATH", all, err);
}

/* Whether the agent inherits a variable: none that controls git or these tools, except how git
 * reaches a server. */
static bool env_is_inherited(const char *entry)
{
    static const char *const keep[] = {"GIT_SSH=", "GIT_SSH_COMMAND=", "GIT_EXEC_PATH=", NULL};

    for (int i = 0; keep[i]; i++)
        if (!strncmp(entry, keep[i], strlen(keep[i])))
            return true;
    return strncmp(entry, "GIT_", 4) && strncmp(entry, "AMP_", 4);
}

void amp_agent_email(const char *agent, char *out, size_t size)
{
    snprintf(out, size, "%s@agents.invalid", agent);
}

int amp_contract_env(const struct amp_contract *c, const struct amp_attempt *a, char *const *parent,
                     struct amp_env *out, struct amp_error *err)
{
    char email[256], attempt[24];
    AMP_CLEANUP(amp_env_release) struct amp_env e = {0};

    amp_agent_email(c->agent, email, sizeof email);
    snprintf(attempt, sizeof attempt, "%lld", (long long)c->attempt);
    const struct {
        const char *name, *value;
    } vars[] = {
        {"AMP_MESSAGE", a->message},
        {"AMP_ROLE", c->role},
        {"AMP_AGENT", c->agent},
        {"AMP_TASK_ID", c->task},
        {"AMP_SUBTASK_ID", c->subtask},
        {"AMP_ATTEMPT", attempt},
        {"AMP_WORKTREE", c->worktree},
        {"AMP_BRANCH", c->branch},
        {"AMP_BASE", c->base},
        {"AMP_CRITERIA", a->criteria},
        {"AMP_DIFF", c->diff.p ? a->diff : ""},
        {"AMP_CONTEXT", c->context.p ? a->context : ""},
        {"AMP_ACTIVITY", c->activity.p ? a->activity : ""},
        {"AMP_RESULT", a->result},
        {"AMP_WORK_LOG", a->work_log},
        {"AMP_CONTROL", a->control},
        {"AMP_KEPT", a->kept},
        {"AMP_KEPT_DIR", a->kept_dir},
        {"AMP_CONFINED", c->walls ? c->walls : "none"},
        {c->type ? "AMP_AGENT_TYPE" : NULL, c->type},
        {c->session ? "AMP_SESSION" : NULL, c->session},
        {c->confined ? NULL : "AMP_STATE", c->state_dir},
        /* At the level landlock it exists, and cannot be read. */
        {c->confined ? "GIT_CONFIG_NOSYSTEM" : NULL, "1"},
        {c->git_dir ? "GIT_DIR" : NULL, c->git_dir},
        {c->git_dir ? "GIT_WORK_TREE" : NULL, c->worktree},
        {"GIT_AUTHOR_NAME", c->agent},
        {"GIT_AUTHOR_EMAIL", email},
        {"GIT_COMMITTER_NAME", c->agent},
        {"GIT_COMMITTER_EMAIL", email},
        {"NO_COLOR", "1"},
        {"TERM", "dumb"},
        {"CI", "1"},
        {"GIT_TERMINAL_PROMPT", "0"},
        {"GIT_EDITOR", "true"},
        {"GIT_SEQUENCE_EDITOR", "true"},
        {"GIT_PAGER", "cat"},
        {"GIT_ASKPASS", "true"},
    };
    for (size_t i = 0; parent && parent[i]; i++)
        if (strchr(parent[i], '=') && env_is_inherited(parent[i]) &&
            (!c->passes || c->passes(c->passes_ctx, parent[i])) &&
            env_push(&e, strdup(parent[i]), err) < 0)
            return -1;
    if (c->helpers && path_extend(&e, c->helpers, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++)
        if (vars[i].name && env_set(&e, vars[i].name, vars[i].value, err) < 0)
            return -1;
    for (int i = 0; c->extra && c->extra[i]; i++)
        if (env_push(&e, strdup(c->extra[i]), err) < 0)
            return -1;
    *out = e;
    e = (struct amp_env){0};
    return 0;
}

/* Sets the path of a file, and writes the file if data has an address. */
static int file_put(const char *dir, const char *name, char *path, size_t size,
                    struct amp_span data, struct amp_error *err)
{
    snprintf(path, size, "%s/%s", dir, name);
    if (!data.p)
        return 0;
    /* Not synced: an attempt does not survive a crash, and nobody else knows the directory yet. */
    AMP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return fd < 0 ? amp_fail_errno(err, AMP_CANTCREAT, "%s", path) : amp_write_all(fd, data, err);
}

/* Earlier attempts may have made it. */
static int kept_make(const struct amp_contract *c, const char *sub, struct amp_attempt *a,
                     struct amp_error *err)
{
    struct stat st;

    snprintf(a->kept_dir, sizeof a->kept_dir, "%s/run/%s/kept-%s-%s", c->state_dir, c->task,
             c->agent, sub);
    snprintf(a->kept, sizeof a->kept, "%.1080s/kept", a->kept_dir);
    if (mkdir(a->kept_dir, 0700) == 0)
        return 0;
    if (errno == EEXIST && lstat(a->kept_dir, &st) == 0 && !S_ISDIR(st.st_mode))
        errno = ENOTDIR;
    else if (errno == EEXIST)
        return 0;
    return amp_fail_errno(err, AMP_CANTCREAT, "%s", a->kept_dir);
}

bool amp_attempt_kept(const char *state_dir, const char *task, const char *agent)
{
    char path[PATH_MAX], name[300];
    const struct dirent *e;
    bool kept = false;

    snprintf(path, sizeof path, "%s/run/%s", state_dir, task);
    int n = snprintf(name, sizeof name, "kept-%s-", agent);
    DIR *d = opendir(path);
    while (d && !kept && (e = readdir(d)))
        kept = strncmp(e->d_name, name, (size_t)n) == 0;
    if (d)
        closedir(d);
    return kept;
}

int amp_attempt_make(const struct amp_contract *c, struct amp_attempt *a, struct amp_error *err)
{
    struct amp_attempt t = {0};
    const char *sub = c->subtask ? strrchr(c->subtask, '-') : NULL;
    const struct amp_span none = {0};
    uint32_t r;

    if (!amp_id_is_safe(amp_span_str(c->task)) || !amp_id_is_safe(amp_span_str(c->agent)))
        return amp_fail(err, AMP_DATAERR, bad_value, "\"%s\" or \"%s\" cannot name a directory",
                        c->task, c->agent);
    sub = sub && amp_id_is_safe(amp_span_str(sub + 1)) ? sub + 1 : "x";
    amp_random(&r, sizeof r);
    int n = snprintf(t.dir, sizeof t.dir, "%s/run/%s/%s-%s-%lld-%08x", c->state_dir, c->task,
                     c->agent, sub, (long long)c->attempt, r);
    if (n < 0 || (size_t)n >= sizeof t.dir)
        return amp_fail(err, AMP_CANTCREAT, path_too_long, "%s: path too long", c->state_dir);
    if (amp_mkdirs(t.dir, 0700, err) < 0 ||
        file_put(t.dir, "message.json", t.message, sizeof t.message, c->message, err) ||
        file_put(t.dir, "criteria.json", t.criteria, sizeof t.criteria, c->criteria, err) ||
        file_put(t.dir, "diff.patch", t.diff, sizeof t.diff, c->diff, err) ||
        file_put(t.dir, "context.json", t.context, sizeof t.context, c->context, err) ||
        file_put(t.dir, "activity.json", t.activity, sizeof t.activity, c->activity, err) ||
        file_put(t.dir, "result.json", t.result, sizeof t.result, none, err) ||
        file_put(t.dir, "control", t.control, sizeof t.control, none, err) ||
        file_put(t.dir, "git", t.git, sizeof t.git, none, err) || kept_make(c, sub, &t, err) < 0 ||
        file_put(t.dir, "work.ndjson", t.work_log, sizeof t.work_log, none, err) ||
        file_put(t.dir, "stdout", t.out, sizeof t.out, none, err) ||
        file_put(t.dir, "stderr", t.err, sizeof t.err, none, err))
        return -1;
    *a = t;
    return 0;
}

/* ---- leftovers: the death of a worker ends its agent, but not the processes that the agent
 * started. They are found by their environment, which they inherited. */

#define END_MS 1000

static bool environ_has(struct amp_span env, const char *name, const char *value, bool complete)
{
    struct amp_span got;
    size_t n = strlen(value);

    return amp_environ_get(env, name, &got) && got.n >= n && !memcmp(got.p, value, n) &&
           (!complete || got.n == n);
}

static bool process_is_ancestor(pid_t pid)
{
    pid_t p = getpid();

    for (int depth = 0; p > 1 && depth < 1000; depth++, p = amp_process_parent(p))
        if (p == pid)
            return true;
    return false;
}

static bool process_matches(const struct amp_attempt_processes *of, pid_t pid, struct amp_buf *env)
{
    char attempts[4200];

    if (!amp_process_environ(pid, env))
        return false;
    snprintf(attempts, sizeof attempts, "%s/run/", of->state_dir);
    struct amp_span e = amp_buf_span(env);
    /* A confined agent has no AMP_STATE; its AMP_RESULT is below the state directory too. */
    return environ_has(e, "AMP_RESULT", attempts, false) &&
           (!of->agent || environ_has(e, "AMP_AGENT", of->agent, true)) &&
           (!of->task || environ_has(e, "AMP_TASK_ID", of->task, true)) &&
           !process_is_ancestor(pid);
}

static int process_visit(const struct amp_attempt_processes *of, pid_t pid, struct amp_buf *env)
{
    return process_matches(of, pid, env) && (!of->kill || !kill(pid, SIGKILL));
}

static int processes_visit(const struct amp_attempt_processes *of, struct amp_buf *env)
{
    AMP_FREE pid_t *own = NULL;
    struct amp_error e;
    size_t n_own = 0;
    struct dirent *d;
    int64_t pid;
    int n = 0;

    if (of->ours && amp_process_descendants(&own, &n_own, &e) == 0) {
        for (size_t i = 0; i < n_own; i++)
            n += process_visit(of, own[i], env);
        return n;
    }
    DIR *proc = opendir("/proc");
    while (proc && (d = readdir(proc)))
        if (amp_num_parse(amp_span_str(d->d_name), 2, 1 << 30, &pid, NULL) == 0)
            n += process_visit(of, (pid_t)pid, env);
    if (proc)
        closedir(proc);
    return n;
}

int amp_attempt_processes(const struct amp_attempt_processes *of)
{
    AMP_BUF struct amp_buf env = {0};

    amp_buf_init(&env, AMP_ENVIRON_MAX + 65536);
    return processes_visit(of, &env);
}

int amp_attempt_end_processes(const struct amp_attempt_processes *of)
{
    AMP_BUF struct amp_buf env = {0};
    struct amp_attempt_processes kills = *of;
    int64_t until = amp_mono_ms() + END_MS;
    int all = 0, n;

    kills.kill = true;
    amp_buf_init(&env, AMP_ENVIRON_MAX + 65536);
    /* Processes that are forked during a round are found in the next one. */
    while ((n = processes_visit(&kills, &env)) > 0) {
        all += n;
        if (amp_mono_ms() >= until)
            break;
        usleep(2000);
    }
    return all;
}

int amp_agent_end_leftovers(const char *state_dir, const char *agent, bool ours)
{
    const struct amp_attempt_processes of = {state_dir, agent, NULL, true, ours};

    return amp_attempt_end_processes(&of);
}
