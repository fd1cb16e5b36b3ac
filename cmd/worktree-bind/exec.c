/*
 * exec: runs a command confined to a worktree (SW4RM §6.4, §16). This process stays outside of the
 * sandbox: it passes signals on, waits, removes what the sandbox needed, and ends as the command
 * ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "base/process/process.h"
#include "bind.h"
#include "message/pause/watch.h"
#include "work/confine/confine.h"
#include "work/confine/confinement.h"
#include "work/confine/gate.h"
#include "work/git/repository/quarantine.h"
#include "json/text.h"

#define PLACES_MAX 24
#define ACCESS_MAX ((size_t)4 << 20)

/* Signals that are passed on to the command. */
static const int passed[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH};

struct execution {
    char worktree[PATH_MAX], state[PATH_MAX]; /* state "": none */
    char scratch[PATH_MAX];                   /* "": none */
    char git[PATH_MAX];                       /* holds the private git directory; "": none */
    int scratch_lock, git_lock;
    bool git_inside;                      /* the worktree contains the git directory */
    struct amp_git_quarantine quarantine; /* the git directory is GIT/git */
    struct amp_confine_policy policy;
    struct amp_confine_report report;
    struct amp_gate gate;
    struct amp_store *store; /* to learn of suspensions by people; NULL: there is no state */
    struct amp_pause_watch pauses;
    char agent[128]; /* that is bound to the worktree, or "" */
    char **env;      /* NULL-terminated; the strings are those of environ, and these */
    char env_git[PATH_MAX + 16], env_tree[PATH_MAX + 16]; /* "": none */
};

const char *scratch_parent(void)
{
    const char *tmp = getenv("TMPDIR");
    return tmp && tmp[0] == '/' ? tmp : "/tmp";
}

static void execution_release(struct execution *x)
{
    struct amp_error err;
    amp_gate_end(&x->gate);
    amp_pause_watch_close(&x->pauses);
    amp_confine_policy_release(&x->policy);
    free(x->env);
    amp_git_quarantine_release(&x->quarantine);
    if (x->scratch[0] && amp_confine_scratch_remove(x->scratch, &err) < 0)
        amp_warn("%s", err.what);
    if (x->git[0] && amp_confine_scratch_remove(x->git, &err) < 0)
        amp_warn("%s", err.what);
    amp_auto_close(&x->scratch_lock);
    amp_auto_close(&x->git_lock);
    /* Now, when nobody waits for the command. */
    amp_confine_scratch_sweep(scratch_parent());
}
#define EXECUTION AMP_CLEANUP(execution_release) struct execution

/* The worktree that contains the directory: the nearest one above it with a .git. */
static int worktree_find(struct execution *x, struct amp_error *err)
{
    char git[PATH_MAX + 8];
    const char *dir = opt.repo;
    struct stat st;
    if (chdir(dir) < 0 || !getcwd(x->worktree, sizeof x->worktree))
        return amp_fail_errno(err, AMP_UNAVAILABLE, "%s", dir);
    opt.repo = x->worktree; /* git-worker is in the earlier directory */
    for (;;) {
        snprintf(git, sizeof git, "%s/.git", x->worktree);
        if (lstat(git, &st) == 0) {
            x->git_inside = !S_ISREG(st.st_mode);
            return amp_utf8_path(x->worktree, err);
        }
        char *slash = strrchr(x->worktree, '/');
        if (!slash || slash == x->worktree)
            return amp_fail(err, AMP_UNAVAILABLE, worktree_not_found, "%s is not in a git worktree",
                            dir);
        *slash = '\0';
    }
}

/* The policy of the options, and what is enforced of it. AMP_CONFINE does not count: a command that
 * is not to be confined needs no exec. */
static int confinement_choose(struct execution *x, struct amp_span access, struct amp_error *err)
{
    const struct amp_confinement_args args = {.require = !opt.walls.best_effort,
                                              .best_effort = opt.walls.best_effort,
                                              .policy = opt.walls.policy,
                                              .network = opt.walls.network,
                                              .access = access,
                                              .read = opt.walls.read.v,
                                              .n_read = opt.walls.read.n,
                                              .write = opt.walls.write.v,
                                              .n_write = opt.walls.write.n};
    return amp_confinement_choose(&args, amp_warn, &x->policy, &x->report, err);
}

/* The file of an option, and the directory that has its name; "": none. The worktree is found after
 * a change of the directory. */
struct policy_place {
    char file[PATH_MAX], dir[PATH_MAX];
};
static int policy_place_find(const char *policy, struct policy_place *p, struct amp_error *err)
{
    *p->file = *p->dir = '\0';
    if (!policy)
        return 0;
    const char *slash = strrchr(policy, '/');
    snprintf(p->file, sizeof p->file, "%.*s", slash ? (int)(slash - policy + 1) : 1,
             slash ? policy : ".");
    return realpath(p->file, p->dir) && realpath(policy, p->file)
               ? 0
               : amp_fail(err, AMP_CONFIG, bad_policy, "%s: %s", policy, strerror(errno));
}

static bool is_in(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return strncmp(path, dir, n) == 0 && (!path[n] || path[n] == '/');
}

/* The command could change a policy in the worktree, or a link to one, for its next start. */
static int policy_place_check(const struct execution *x, const struct policy_place *p,
                              const char *name, struct amp_error *err)
{
    if (!is_in(p->file, x->worktree) && !is_in(p->dir, x->worktree))
        return 0;
    return amp_fail(err, AMP_CONFIG, bad_policy,
                    "%s is in the worktree, where the command could change it", name);
}

/* Without the option: the default state directory, if it exists. */
static void state_find(struct execution *x, const struct binder *s)
{
    struct stat st;
    if (snprintf(x->state, sizeof x->state, "%s/amp", s->info.common) >= PATH_MAX ||
        stat(x->state, &st) < 0)
        x->state[0] = '\0';
}

/* A git directory for reading: HEAD, its branch, a copy of the index, and the repository's objects.
 * The mounts of the level full put it into the place of the worktree's own; at the level landlock
 * variables name it, unless the worktree has a git directory inside, which git can use. */
static int git_make(struct execution *x, const struct binder *s, const char *tmp,
                    struct amp_error *err)
{
    char dir[PATH_MAX + 8], file[PATH_MAX + 8];
    AMP_BUF struct amp_buf text = {0};
    bool named = !x->report.means.namespaces;
    if (named && (!x->report.means.landlock || x->git_inside))
        return 0;
    if ((x->git_lock = amp_confine_scratch_make(tmp, x->git, sizeof x->git - 8, err)) < 0)
        return -1;
    snprintf(dir, sizeof dir, "%s/git", x->git);
    snprintf(file, sizeof file, "%s/dotgit", x->git);
    const struct amp_git_quarantine_spec spec = {s->info.common, x->worktree, dir, "confined",
                                                 "confined@localhost"};
    amp_buf_init(&text, 2 * PATH_MAX);
    if (amp_git_quarantine_make(s->git, &spec, &x->quarantine, err) < 0 ||
        amp_buf_fmt(&text, err, "gitdir: %s\n", dir) < 0)
        return -1;
    if (named) {
        snprintf(x->env_git, sizeof x->env_git, "GIT_DIR=%s", dir);
        snprintf(x->env_tree, sizeof x->env_tree, "GIT_WORK_TREE=%s", x->worktree);
        return 0;
    }
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, file, O_WRONLY | O_CREAT | O_EXCL, 0400, err);
    return fd < 0 ? -1 : amp_write_all(fd, amp_buf_span(&text), err);
}

/* The state directory and the git of the command. */
static int repository_use(struct execution *x, struct binder *s, const char *tmp,
                          struct amp_error *err)
{
    if (binder_open(s, err) < 0) {
        if (!x->state[0])
            return -1;
    } else {
        if (!x->state[0])
            state_find(x, s);
        int rc = git_make(x, s, tmp, err);
        amp_git_rest(s->git);
        if (rc == 0)
            return 0;
    }
    if (amp_code_is(err->code, no_memory))
        return -1;
    amp_warn("git does not work in the sandbox: %s", err->what);
    amp_git_quarantine_release(&x->quarantine);
    return 0;
}

/* One record in the state's error log: the command's start, with what is enforced. */
static int start_log(const struct execution *x, struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_BUF struct amp_buf record = {0};
    struct amp_jw w;
    amp_buf_init(&text, 8192);
    amp_buf_init(&record, 64 << 10);
    amp_jw_init(&w, &text);
    amp_confine_report_put(&x->report, &w);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    AMP_BUF struct amp_buf message = {0};
    amp_buf_init(&message, 32 << 10);
    if (amp_buf_fmt(&message, err, "%.200s starts in %.400s: ", c->argv[0], x->worktree) < 0 ||
        amp_buf_add(&message, text.data, text.len, err) < 0)
        return -1;
    const struct amp_finding f = {.severity = AMP_SEV_WARNING,
                                  .protocol = AMP_PROTO_NONE,
                                  .code =
                                      x->report.lacks ? AMP_CODE(not_confined) : AMP_CODE(confined),
                                  .field = "",
                                  .pointer = "",
                                  .rule = "confinement",
                                  .message = message.data,
                                  .found = "",
                                  .expected = ""};
    const struct amp_line_place at = {.tool = amp_cli_name(), .line = 1, .now_ms = amp_now_ms()};
    if (amp_finding_record(&f, &at, &record, err) < 0 || amp_state_open(c, err) < 0)
        return -1;
    int rc = amp_store_error_log(c->store, amp_buf_span(&record), err);
    amp_state_close(c);
    return rc;
}

/* The variables that pass into the sandbox. */
static int environment_make(struct execution *x, struct amp_error *err)
{
    static char no_system[] = "GIT_CONFIG_NOSYSTEM=1"; /* it exists, and cannot be read */
    size_t n = 0, kept = 0;
    while (environ[n])
        n++;
    if (!(x->env = calloc(n + 4, sizeof *x->env)))
        return amp_fail_memory(err);
    for (size_t i = 0; i < n; i++)
        if (amp_confine_env_passes(&x->policy, environ[i]))
            x->env[kept++] = environ[i];
    if (x->env_git[0]) {
        x->env[kept++] = x->env_git;
        x->env[kept++] = x->env_tree;
    }
    if (!x->report.means.namespaces && x->report.means.landlock)
        x->env[kept++] = no_system;
    return 0;
}

static int gate_make(struct execution *x, struct amp_error *err)
{
    if (x->policy.network != AMP_NETWORK_EGRESS_RESTRICTED)
        return 0;
    AMP_CLOSE int log = -1;
    if (x->state[0] && (log = amp_gate_log(x->state, err)) < 0)
        return -1;
    return amp_gate_start(&x->policy, "worktree-bind exec", log < 0 ? STDERR_FILENO : log,
                          STDERR_FILENO, &x->gate, err);
}

/* Reads the text of --access. It leaves nothing of standard input for the command. */
static int access_read(struct amp_buf *out, struct amp_error *err)
{
    char part[4096];
    ssize_t n;
    amp_buf_init(out, ACCESS_MAX + 1);
    if (!opt.access)
        return 0;
    if (strcmp(opt.access, "-") != 0)
        return amp_file_read_any(opt.access, ACCESS_MAX, out, err);
    while ((n = read(STDIN_FILENO, part, sizeof part)) != 0) {
        if (n < 0 && errno != EINTR)
            return amp_fail_errno(err, AMP_IOERR, "standard input");
        if (n > 0 && amp_buf_add(out, part, (size_t)n, err) < 0)
            return -1;
    }
    return 0;
}

/* Whether people suspended everything, or the agent of the worktree. 1: yes, and it is said in
 * *err, NOPERM suspended. */
static int suspension_look(struct execution *x, struct amp_error *err)
{
    char said[AMP_PAUSE_SAID_MAX];
    const struct amp_pause *by;
    if (!x->store)
        return 0;
    int rc = amp_pause_look(&x->pauses, AMP_SPAN(""), amp_span_str(x->agent), &by, err);
    if (rc > 0) {
        amp_pause_say(by, said);
        amp_fail(err, AMP_NOPERM, suspended, "%s", said);
    }
    return rc;
}

static int suspension_check(struct execution *x, struct amp_error *err)
{
    amp_pause_watch_open(&x->pauses, x->store);
    return amp_binding_holder(x->store, x->worktree, "", false, x->agent, err) < 0 ||
                   suspension_look(x, err)
               ? -1
               : 0;
}

/* Logs the start in the state directory, which is then open for the pauses of people. */
static int state_use(struct execution *x, struct amp_command *c, struct amp_error *err)
{
    if (!x->state[0])
        return 0;
    c->state = x->state;
    c->opens = AMP_OPENS_MADE;
    if (start_log(x, c, err) < 0)
        return -1;
    c->opens = AMP_OPENS_READ;
    if (amp_state_open(c, err) < 0)
        return -1;
    x->store = c->store;
    return suspension_check(x, err);
}

static int execution_prepare(struct execution *x, struct amp_command *c, struct amp_error *err)
{
    struct policy_place policy, access;
    AMP_BUF struct amp_buf text = {0};
    const char *tmp = scratch_parent();
    /* Paths of options are relative to the directory of the start, which worktree_find changes. */
    if (opt.state && !realpath(opt.state, x->state))
        return amp_fail_errno(err, AMP_UNAVAILABLE, "%s", opt.state);
    bool from_stdin = opt.access && strcmp(opt.access, "-") == 0;
    if (policy_place_find(opt.walls.policy, &policy, err) < 0 ||
        policy_place_find(from_stdin ? NULL : opt.access, &access, err) < 0 ||
        access_read(&text, err) < 0)
        return -1;
    const struct amp_span given = {opt.access ? text.len ? text.data : "" : NULL, text.len};
    AMP_CLEANUP(binder_close) struct binder s = {0};
    if (binder_wake(&s, err) < 0 || confinement_choose(x, given, err) < 0 ||
        worktree_find(x, err) < 0 || policy_place_check(x, &policy, opt.walls.policy, err) < 0 ||
        policy_place_check(x, &access, opt.access, err) < 0 || repository_use(x, &s, tmp, err) < 0)
        return -1;
    /* Only the mounts of the level full can cover a part of the worktree. */
    if (x->git_inside && !x->report.means.namespaces && !(x->report.lacks & 1u << AMP_LACK_FILES)) {
        x->report.lacks |= 1u << AMP_LACK_FILES;
        amp_warn("not enforced: the git directory is in the worktree and can be changed");
    }
    if (!x->report.means.namespaces &&
        (x->scratch_lock = amp_confine_scratch_make(tmp, x->scratch, sizeof x->scratch, err)) < 0)
        return -1;
    return environment_make(x, err) < 0 || gate_make(x, err) < 0 ? -1 : state_use(x, c, err);
}

static int command_start(struct execution *x, char **argv, struct amp_child *child,
                         struct amp_error *err)
{
    char git[PATH_MAX + 8], dir[PATH_MAX + 8], file[PATH_MAX + 8];
    snprintf(git, sizeof git, "%s/.git", x->worktree);
    const char *const hidden[] = {x->state[0] ? x->state : NULL, NULL};
    struct amp_confine_place places[PLACES_MAX];
    size_t n = 0;
    snprintf(dir, sizeof dir, "%s/git", x->git);
    snprintf(file, sizeof file, "%s/dotgit", x->git);
    /* A replaced .git file would lead the git of others to a repository of the command. So it is
     * covered, read-only: a mount point cannot be replaced. */
    bool own = x->quarantine.n_objects;
    const char *cover = x->git_inside ? own ? dir : NULL : own ? file : git;
    if (x->report.means.namespaces)
        places[n++] = (struct amp_confine_place){.path = cover, .at = git};
    if (own && !x->git_inside)
        places[n++] = (struct amp_confine_place){.path = dir};
    if (x->quarantine.n_objects > PLACES_MAX - 2)
        return amp_fail(err, AMP_CONFIG, too_many_paths, "more than %d object directories",
                        PLACES_MAX - 2);
    for (uint32_t i = 0; i < x->quarantine.n_objects; i++)
        places[n++] = (struct amp_confine_place){.path = x->quarantine.objects[i]};
    const struct amp_confine c = {.policy = &x->policy,
                                  .report = &x->report,
                                  .worktree = x->worktree,
                                  .home = getenv("HOME"),
                                  .hidden = hidden,
                                  .places = places,
                                  .n_places = n,
                                  .scratch = x->scratch[0] ? x->scratch : NULL,
                                  .gate_fd = x->gate.fd};
    const struct amp_child_spec spec = {.argv = (const char *const *)argv,
                                        .envp = (const char *const *)x->env,
                                        .fd_in = STDIN_FILENO,
                                        .fd_out = STDOUT_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .keep_group = true,
                                        .dies_with_us = true};
    return amp_confine_start(&c, &spec, child, err);
}

/* Ends the command when people suspend its agent: TERM, after the grace KILL. Returns the longest
 * wait in ms until the next call; -1: any. */
static int64_t suspension_follow(struct execution *x, struct amp_child *child, int64_t *ends_ms)
{
    struct amp_error why;
    int64_t now = amp_mono_ms();
    if (!x->store)
        return -1;
    if (*ends_ms == 0 && amp_pause_watch_due(&x->pauses) && suspension_look(x, &why) > 0) {
        amp_warn("%s", why.what);
        amp_child_kill_tree(child, SIGTERM);
        *ends_ms = now + AMP_PAUSE_GRACE_MS;
    }
    if (*ends_ms == 0)
        return amp_pause_watch_wait(&x->pauses);
    if (now < *ends_ms)
        return *ends_ms - now;
    amp_child_kill_tree(child, SIGKILL);
    *ends_ms = now + AMP_PAUSE_GRACE_MS;
    return AMP_PAUSE_GRACE_MS;
}

/* Waits for the end. Signals of the terminal reach the command directly, because it is in the same
 * group; signals of a process are passed on. */
static int command_supervise(struct execution *x, struct amp_child *child, int signals,
                             struct amp_child_end *end, struct amp_error *err)
{
    int64_t ends_ms = 0;
    for (;;) {
        int64_t wait = suspension_follow(x, child, &ends_ms);
        struct pollfd fds[] = {
            {.fd = child->pidfd, .events = POLLIN},
            {.fd = signals, .events = POLLIN},
            {.fd = x->store ? amp_pause_watch_fd(&x->pauses) : -1, .events = POLLIN}};
        struct signalfd_siginfo si;
        if (poll(fds, 3, wait < 0 || wait > INT_MAX ? -1 : (int)wait) < 0 && errno != EINTR)
            return amp_fail_errno(err, AMP_INTERNAL, "cannot wait for the command");
        if ((fds[1].revents & POLLIN) && read(signals, &si, sizeof si) == sizeof si &&
            si.ssi_code != SI_KERNEL)
            amp_child_kill_tree(child, (int)si.ssi_signo);
        int rc = amp_child_poll(child, end, err);
        if (rc)
            return rc < 0 ? -1 : 0;
    }
}

static int command_run(struct execution *x, struct amp_command *c, struct amp_child_end *end,
                       struct amp_error *err)
{
    struct amp_child child;
    sigset_t set;
    if (execution_prepare(x, c, err) < 0)
        return -1;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        sigaddset(&set, passed[i]);
    sigprocmask(SIG_BLOCK, &set, NULL);
    AMP_CLOSE int signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (signals < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot wait for signals");
    /* At the level full the namespace ends with the command; at the others, what it left is killed
     * here. Its tree is not marked as ours (owns_tree): that would open its scope of signals. */
    amp_orphans_adopt();
    if (command_start(x, c->argv, &child, err) < 0)
        return -1;
    int rc = command_supervise(x, &child, signals, end, err);
    amp_orphans_end();
    return rc;
}

static int verb_exec(struct amp_command *c, struct amp_error *err)
{
    struct amp_child_end end = {0};
    int rc;
    if (opt.walls.require && opt.walls.best_effort)
        amp_die_usage("--require and --best-effort exclude each other");
    {
        EXECUTION x = {.gate = AMP_GATE_NONE, .scratch_lock = -1, .git_lock = -1};
        rc = command_run(&x, c, &end, err);
    }
    if (rc == 0)
        return end.signaled ? amp_process_end_by(end.signal) : end.exit_code;
    bool missing = amp_code_is(err->code, command_not_found);
    if (!missing && !amp_code_is(err->code, not_executable))
        return -1;
    amp_complain(err);
    return missing ? 127 : 126;
}

static const struct amp_opt exec_opts[] = {
    AMP_OPT_CONFINE(opt.walls),
    {0, "access", AMP_OPT_PATH, &opt.access, "FILE",
     .doc = "allow at most the effective access of the AOP task in FILE (-: standard input)"},
    AMP_OPT_END,
};

const struct amp_verb exec_verbs[] = {
    {"exec", "COMMAND [ARG…]", "run a command confined to the worktree", exec_opts, verb_exec,
     .least = 1, .usage = "no COMMAND given", .group = "Agents"},
    {0},
};
