/* Starts child processes (the only fork and exec of the project), waits for them, ends them with
 * their descendants, and finds the helper programs. */
#include <amp/base/child.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/process/process.h"
#include "base/trace.h"

extern char **environ;

/* The child's report through the pipe if it fails before its program starts. */
struct failure {
    int stage, sys;
};
enum { STAGE_FDS, STAGE_CHDIR, STAGE_LIMIT, STAGE_EXEC };

/* Everything that the child needs, prepared before the fork: after it only system calls are safe.
 */
struct start {
    const struct amp_child_spec *spec;
    char program[PATH_MAX];
    char *const *argv;
    char *const *envp;
    int null_fd, report;
    pid_t parent;
};

static const char *find_env(char *const *envp, const char *name)
{
    size_t n = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}

/* Finds argv[0] as a shell would, but never in the current directory. */
static int find_program(const char *name, char *const *envp, char *out, size_t size,
                        struct amp_error *err)
{
    if (strchr(name, '/')) {
        if (!amp_span_copy(amp_span_str(name), out, size))
            return amp_fail(err, AMP_UNAVAILABLE, command_not_found, "the path is too long: %s",
                            name);
        return 0;
    }
    const char *path = find_env(envp, "PATH");
    if (!path)
        path = "/usr/local/bin:/usr/bin:/bin";
    bool seen = false;
    for (const char *p = path; *name;) {
        size_t n = strcspn(p, ":");
        int len = p[0] == '/' ? snprintf(out, size, "%.*s/%s", (int)n, p, name) : -1;
        struct stat st;
        if (len > 0 && (size_t)len < size && stat(out, &st) == 0 && S_ISREG(st.st_mode)) {
            if (access(out, X_OK) == 0)
                return 0;
            seen = true;
        }
        if (!p[n])
            break;
        p += n + 1;
    }
    if (seen)
        return amp_fail(err, AMP_UNAVAILABLE, not_executable, "%s: not executable", name);
    return amp_fail(err, AMP_UNAVAILABLE, command_not_found, "%s: command not found", name);
}

int amp_child_find(const char *name, char *const *envp, char *out, size_t size,
                   struct amp_error *err)
{
    struct stat st;
    if (find_program(name, envp, out, size, err) < 0)
        return -1;
    if (stat(out, &st) != 0)
        return amp_fail_errno(err, AMP_UNAVAILABLE, "%s", name);
    if (!S_ISREG(st.st_mode) || access(out, X_OK) != 0)
        return amp_fail(err, AMP_UNAVAILABLE, not_executable, "%s: not executable", name);
    return 0;
}

static void child_give_up(const struct start *s, int stage)
{
    struct failure f = {stage, errno};
    ssize_t n = write(s->report, &f, sizeof f);
    (void)n;
    _exit(127);
}

static void close_from(int first)
{
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0U) == 0)
        return;
    struct rlimit r;
    int last = getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < 65536 ? (int)r.rlim_cur : 65536;
    for (int fd = first; fd < last; fd++)
        close(fd);
}

static int fd_raise(const struct start *s, int fd)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 10 + AMP_CHILD_FDS_MAX);
    if (high < 0)
        child_give_up(s, STAGE_FDS);
    return high;
}

/* Moves the spec's descriptors to 0, 1, 2, 3, … and the report pipe behind them; closes all others.
 */
static void place_fds(struct start *s)
{
    int want[3 + AMP_CHILD_FDS_MAX] = {s->spec->fd_in, s->spec->fd_out, s->spec->fd_err};
    int n = 3 + (int)s->spec->n_fds;
    for (int i = 3; i < n; i++)
        want[i] = s->spec->fds[i - 3];
    for (int i = 0; i < n; i++)
        want[i] = fd_raise(s, want[i] < 0 ? s->null_fd : want[i]);
    s->report = fd_raise(s, s->report);
    for (int i = 0; i < n; i++)
        if (dup2(want[i], i) < 0)
            child_give_up(s, STAGE_FDS);
    if (dup3(s->report, n, O_CLOEXEC) < 0)
        child_give_up(s, STAGE_FDS);
    s->report = n;
    close_from(n + 1);
}

static void run_child(struct start *s) __attribute__((noreturn));
static void run_child(struct start *s)
{
    const struct amp_child_spec *spec = s->spec;
    if (spec->new_session)
        setsid();
    else if (!spec->keep_group)
        setpgid(0, 0);
    if (spec->owns_tree || spec->dies_with_us) {
        /* The child must not outlive the process that ends it or takes its answers. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != s->parent)
            _exit(127);
    }
    place_fds(s);
    /* With the system call: the library's function refuses the two signals that it uses itself,
     * which this process may have inherited as ignored. All zero is the default action. */
    static const unsigned long default_action[8];
    for (int sig = 1; sig < NSIG; sig++)
        syscall(SYS_rt_sigaction, sig, default_action, NULL, NSIG / 8);
    if (spec->no_new_privs)
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (spec->max_file_bytes) {
        struct rlimit r = {spec->max_file_bytes, spec->max_file_bytes};
        if (setrlimit(RLIMIT_FSIZE, &r) < 0)
            child_give_up(s, STAGE_LIMIT);
    }
    if (spec->cwd && chdir(spec->cwd))
        child_give_up(s, STAGE_CHDIR);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(s->program, s->argv, s->envp);
    child_give_up(s, STAGE_EXEC);
    _exit(127);
}

static int failure_explain(const struct start *s, struct failure f, struct amp_error *err)
{
    errno = f.sys;
    switch (f.stage) {
    case STAGE_CHDIR:
        return amp_fail_errno(err, AMP_UNAVAILABLE, "cannot enter %s", s->spec->cwd);
    case STAGE_EXEC:
        break;
    default:
        return amp_fail_errno(err, AMP_INTERNAL, "cannot prepare %s", s->program);
    }
    amp_fail_errno(err, AMP_UNAVAILABLE, "cannot run %s", s->program);
    if (err) {
        /* ENOENT may also be the missing interpreter of a script. */
        const char *code = f.sys == ENOENT || f.sys == ENOTDIR ? AMP_CODE(command_not_found)
                           : f.sys == EACCES || f.sys == ENOEXEC || f.sys == EISDIR
                               ? AMP_CODE(not_executable)
                               : NULL;
        if (code)
            amp_span_copy(amp_span_str(code), err->code, sizeof err->code);
    }
    return -1;
}

/* Waits until the child's exec closes the pipe or the child reports a failure; true: it did. */
static bool read_failure(int fd, struct failure *f)
{
    char *at = (char *)f;
    size_t got = 0;
    while (got < sizeof *f) {
        ssize_t n = read(fd, at + got, sizeof *f - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        got += (size_t)n;
    }
    return true;
}

static void child_reap(pid_t pid)
{
    siginfo_t si;
    while (waitid(P_PID, (id_t)pid, &si, WEXITED) < 0 && errno == EINTR)
        ;
}

static int fork_child(struct start *s, pid_t *pid, struct amp_error *err)
{
    /* If SIGCHLD is ignored, the kernel discards the statuses of children. */
    struct sigaction chld;
    if (sigaction(SIGCHLD, NULL, &chld) == 0 && chld.sa_handler == SIG_IGN) {
        chld.sa_handler = SIG_DFL;
        sigaction(SIGCHLD, &chld, NULL);
    }
    /* Blocked across the fork: this process's handlers must not run in the child. */
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    s->parent = getpid();
    /* This process waits for the child's exec in any case (read_failure); with vfork no page table
     * is copied for it. The child has this memory until then, and only makes system calls. */
    *pid = vfork();
    if (*pid == 0)
        run_child(s);
    int saved = errno;
    sigprocmask(SIG_SETMASK, &old, NULL);
    errno = saved;
    if (*pid < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot fork");
    return 0;
}

int amp_child_start(const struct amp_child_spec *spec, struct amp_child *out, struct amp_error *err)
{
    struct start s = {.spec = spec, .envp = environ};
    memcpy(&s.argv, &spec->argv, sizeof s.argv); /* exec's prototype has no const */
    if (spec->envp)
        memcpy(&s.envp, &spec->envp, sizeof s.envp);
    if (!spec->argv || !spec->argv[0])
        return amp_fail(err, AMP_USAGE, command_not_found, "no command given");
    if (spec->wrap) {
        struct amp_child_spec inner = *spec;
        inner.wrap = NULL;
        return spec->wrap->start(spec->wrap->ctx, &inner, out, err);
    }
    if (spec->n_fds > AMP_CHILD_FDS_MAX)
        return amp_fail(err, AMP_INTERNAL, too_many_descriptors, "%u descriptors for %s",
                        spec->n_fds, spec->argv[0]);
    if (find_program(spec->argv[0], s.envp, s.program, sizeof s.program, err) < 0)
        return -1;
    AMP_CLOSE int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot open /dev/null");
    s.null_fd = null_fd;
    int report[2];
    if (pipe2(report, O_CLOEXEC))
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make a pipe");
    AMP_CLOSE int report_in = report[0];
    s.report = report[1];
    if (spec->owns_tree)
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    struct amp_child c = {.pidfd = -1,
                          .owns_tree = spec->owns_tree,
                          .keep_group = spec->keep_group,
                          .started_ms = amp_mono_ms()};
    int rc = fork_child(&s, &c.pid, err);
    close(report[1]);
    if (rc)
        return -1;
    struct failure f;
    if (read_failure(report_in, &f)) {
        child_reap(c.pid);
        return failure_explain(&s, f, err);
    }
    c.pidfd = (int)syscall(SYS_pidfd_open, c.pid, 0);
    if (c.pidfd < 0 || amp_child_tree_know(c.pid, c.owns_tree, err)) {
        if (c.pidfd < 0)
            amp_fail_errno(err, AMP_INTERNAL, "cannot watch a child");
        else
            close(c.pidfd);
        if (!c.keep_group)
            kill(-c.pid, SIGKILL);
        kill(c.pid, SIGKILL);
        child_reap(c.pid);
        return -1;
    }
    *out = c;
    AMP_TRACE(AMP_TRACE_CHILD, AMP_TRACE_TEXT("event", "start"),
              AMP_TRACE_TEXT("program", spec->argv[0]), AMP_TRACE_NUMBER("child", c.pid));
    return 0;
}

int amp_child_start_piped(struct amp_child_spec *spec, struct amp_child *out, int *to, int *from,
                          struct amp_error *err)
{
    int in[2], answers[2];
    if (pipe2(in, O_CLOEXEC) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make a pipe");
    if (pipe2(answers, O_CLOEXEC) < 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot make a pipe");
        close(in[0]);
        close(in[1]);
        return -1;
    }
    spec->fd_in = in[0];
    spec->fd_out = answers[1];
    int rc = amp_child_start(spec, out, err);
    close(in[0]);
    close(answers[1]);
    if (rc < 0) {
        close(in[1]);
        close(answers[0]);
        return -1;
    }
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    fcntl(answers[0], F_SETFL, O_NONBLOCK);
    *to = in[1];
    *from = answers[0];
    return 0;
}

/* ---- waiting ---- */

/* Kills until the tree is empty: the next round finds processes that were forked meanwhile. */
static void kill_all(pid_t pid)
{
    for (int round = 0; round < 200; round++) {
        if (amp_child_tree_signal(pid, SIGKILL) == 0)
            return;
        poll(NULL, 0, round < 20 ? 1 : 10);
    }
}

void amp_child_kill_tree(struct amp_child *c, int sig)
{
    if (c->pid <= 0)
        return;
    if (!c->owns_tree) {
        if (!c->keep_group)
            kill(-c->pid, sig);
        kill(c->pid, sig);
    } else if (sig == SIGKILL) {
        kill_all(c->pid);
    } else {
        amp_child_tree_signal(c->pid, sig);
    }
}

void amp_orphans_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void amp_orphans_end(void)
{
    kill_all(-1); /* the id of no process, group or session */
}

void amp_child_signal(const struct amp_child *c, int sig)
{
    if (c->pid > 0)
        kill(c->pid, sig);
}

/* 1 and *si filled: the child ended and can still be waited for; 0: it runs. */
static int child_look(struct amp_child *c, siginfo_t *si, struct amp_error *err)
{
    si->si_pid = 0;
    int rc;
    do
        rc = waitid(P_PID, (id_t)c->pid, si, WEXITED | WNOHANG | WNOWAIT);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot wait for a child");
    return si->si_pid != 0;
}

static void child_finish(struct amp_child *c, const siginfo_t *si, struct amp_child_end *end)
{
    /* Its zombie keeps its id, so no other process is signalled. */
    if (c->owns_tree)
        kill_all(c->pid);
    child_reap(c->pid);
    amp_child_tree_forget(c->pid);
    end->exited = si->si_code == CLD_EXITED;
    end->exit_code = end->exited ? si->si_status : 0;
    end->signaled = !end->exited;
    end->signal = end->signaled ? si->si_status : 0;
    end->core = si->si_code == CLD_DUMPED;
    end->wall_ms = amp_mono_ms() - c->started_ms;
    AMP_TRACE(AMP_TRACE_CHILD, AMP_TRACE_TEXT("event", "end"), AMP_TRACE_NUMBER("child", c->pid),
              AMP_TRACE_NUMBER(end->exited ? "status" : "signal", si->si_status));
    close(c->pidfd);
    c->pidfd = -1;
    c->pid = 0;
}

int amp_child_poll(struct amp_child *c, struct amp_child_end *end, struct amp_error *err)
{
    siginfo_t si;
    int rc = child_look(c, &si, err);
    if (rc <= 0)
        return rc;
    struct amp_child_end e = {0};
    child_finish(c, &si, &e);
    *end = e;
    return 1;
}

/* ---- helpers ---- */

int amp_helper_path(const char *name, char *out, size_t size, struct amp_error *err)
{
    const char *dir = secure_getenv("AMP_LIBEXEC");
    if (dir && *dir) {
        int n = snprintf(out, size, "%s/%s", dir, name);
        if (n < 0 || (size_t)n >= size || access(out, X_OK))
            return amp_fail(err, AMP_UNAVAILABLE, helper_missing, "no helper %s in %s", name, dir);
        return 0;
    }
    char self[PATH_MAX];
    ssize_t got = readlink("/proc/self/exe", self, sizeof self - 1);
    if (got <= 0)
        return amp_fail_errno(err, AMP_INTERNAL, "cannot find the running program's path");
    self[got] = '\0';
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    /* Relative to bin; in the directory of a helper; relative to the test programs of the build
     * tree.
     */
    static const char *const places[] = {"../libexec/amp", ".", "../../libexec/amp"};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[PATH_MAX + 64];
        int n = snprintf(path, sizeof path, "%s/%s/%s", self, places[i], name);
        if (n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0 &&
            amp_span_copy(amp_span_str(path), out, size))
            return 0;
    }
    return amp_fail(err, AMP_UNAVAILABLE, helper_missing, "no helper %s beside %s", name, self);
}
