/* Children: starting, statuses, limits, and ending a tree whatever it did to get away. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "../scratch.h"
#include "../tap.h"

static const char *top;

static const char *in_top(const char *name)
{
    static char path[4][160];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof path[i], "%s/%s", top, name);
    return path[i];
}

static struct amp_child_spec spec_of(const char *const *argv)
{
    return (struct amp_child_spec){.argv = argv, .fd_in = -1, .fd_out = -1, .fd_err = -1};
}

static struct amp_child_spec shell(const char *text)
{
    static const char *argv[4] = {"/bin/sh", "-c"};
    argv[2] = text;
    return spec_of(argv);
}

static struct amp_child_end run(const struct amp_child_spec *spec, int64_t timeout)
{
    struct amp_child c;
    struct amp_child_end end = {0};
    struct amp_error err;
    if (amp_child_start(spec, &c, &err) ||
        amp_child_wait(&c, timeout < 0 ? -1 : tap_patient((int)timeout), tap_patient(200), NULL,
                       &end, &err))
        printf("# %s\n", err.what);
    return end;
}

static bool file_is(const char *name, const char *text)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 65536);
    bool ok = !amp_file_read(AT_FDCWD, in_top(name), 65536, &b, NULL) &&
              amp_span_is(amp_buf_span(&b), text);
    if (!ok)
        printf("# %s holds '%s'\n", name, b.data ? b.data : "");
    return ok;
}

static pid_t pid_in(const char *name)
{
    AMP_BUF struct amp_buf b = {0};
    int64_t until = amp_mono_ms() + tap_patient(5000);
    while (amp_mono_ms() < until) {
        amp_buf_init(&b, 100);
        if (!amp_file_read(AT_FDCWD, in_top(name), 100, &b, NULL) && b.len > 0 &&
            b.data[b.len - 1] == '\n')
            return (pid_t)strtol(b.data, NULL, 10);
        amp_buf_release(&b);
        poll(NULL, 0, 10);
    }
    return -1;
}

static bool lives(pid_t pid)
{
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    AMP_CLOSE int fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0)
        return false;
    const char *p = strrchr(text, ')');
    return p && p[2] != 'Z' && p[2] != 'X';
}

static void statuses(void)
{
    struct amp_child_spec s = shell("exit 7");
    struct amp_child_end e = run(&s, -1);
    TAP_OK(e.exited && e.exit_code == 7 && !e.signaled && !e.timed_out && !e.stopped_by_us,
           "exit 7");
    s = shell("kill -SEGV $$");
    e = run(&s, -1);
    TAP_OK(!e.exited && e.signaled && e.signal == SIGSEGV, "a signal");
    static const char *const truth[] = {"true", NULL};
    s = spec_of(truth);
    e = run(&s, 5000);
    TAP_OK(e.exited && e.exit_code == 0 && e.wall_ms < tap_patient(5000), "found by PATH");
}

static const char *start_code(const char *program, const char *cwd, const char *const *envp)
{
    static char code[48];
    const char *argv[] = {program, NULL};
    struct amp_child_spec s = spec_of(argv);
    s.cwd = cwd;
    s.envp = envp;
    struct amp_child c = {.pid = -3};
    struct amp_error err = {.code = "none"};
    int rc = amp_child_start(&s, &c, &err);
    snprintf(code, sizeof code, "%s", err.code);
    if (rc == 0)
        amp_child_wait(&c, tap_patient(5000), 100, NULL, &(struct amp_child_end){0}, NULL);
    else if (c.pid != -3)
        return "output touched";
    return code;
}

static void failures(void)
{
    TAP_STR(start_code("no-such-program-here", NULL, NULL), "command_not_found", "not in PATH");
    TAP_STR(start_code("/no/such/program", NULL, NULL), "command_not_found", "no such path");
    TAP_STR(start_code("", NULL, NULL), "command_not_found", "the empty name");
    TAP_STR(start_code("/etc/passwd", NULL, NULL), "not_executable", "not executable");
    TAP_STR(start_code("/tmp", NULL, NULL), "not_executable", "a directory");
    amp_file_write_atomic(AT_FDCWD, in_top("text"), 0755, AMP_SPAN("true\n"), NULL);
    TAP_STR(start_code(in_top("text"), NULL, NULL), "not_executable",
            "no format: no shell steps in");
    amp_file_write_atomic(AT_FDCWD, in_top("lost"), 0755, AMP_SPAN("#!/no/such\n"), NULL);
    TAP_STR(start_code(in_top("lost"), NULL, NULL), "command_not_found", "no interpreter");
    TAP_STR(start_code("/bin/true", "/no/such/dir", NULL), "enoent", "no such directory");
    char path[200];
    snprintf(path, sizeof path, "PATH=%s", top);
    const char *const envp[] = {path, NULL};
    TAP_STR(start_code("true", NULL, envp), "command_not_found", "PATH is the child's");
    TAP_STR(start_code("text", NULL, envp), "not_executable", "found there, but no program");
    const char *const dot[] = {"PATH=:.", NULL};
    TAP_STR(start_code("text", top, dot), "command_not_found", "never from the current directory");
    TAP_OK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no zombie stays");
}

static void surroundings(void)
{
    /* Descriptors in every order, and some that must not get across. */
    int stray = open("/dev/null", O_RDONLY);
    int out = open(in_top("out"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    int in = open("/etc/hostname", O_RDONLY);
    struct amp_child_spec s = shell("ls /proc/$$/fd; echo \"$X\"; pwd; cat >/dev/null");
    static const char *const envp[] = {"X=y", "PATH=/usr/bin:/bin", NULL};
    s.envp = envp;
    s.cwd = "/";
    s.fd_out = out;
    s.fd_in = in;
    signal(SIGUSR1, SIG_IGN);
    /* Signal 33 is the C library's own; a parent may have left it ignored all the same. */
    unsigned long ignored[8] = {1};
    syscall(SYS_rt_sigaction, 33, ignored, NULL, 8);
    run(&s, -1);
    TAP_OK(file_is("out", "0\n1\n2\ny\n/\n"), "descriptors, environment and directory are as told");
    close(out);
    close(stray);
    close(in);

    out = open(in_top("out2"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    s = shell("grep -E 'Sig(Ign|Blk)|NoNew' /proc/self/status; ps -o tty= -o sid= -o pid= -p $$ | "
              "{ read t s p; echo $t; [ $s = $p ] && echo leader; }");
    s.fd_out = out;
    s.new_session = true;
    s.no_new_privs = true;
    run(&s, -1);
    TAP_OK(file_is("out2", "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nNoNewPrivs:\t1\n"
                           "?\nleader\n") ||
               access("/bin/ps", X_OK) != 0,
           "signals reset, no new privileges, a session of its own");
    close(out);
    signal(SIGUSR1, SIG_DFL);

    static const char *argv[5] = {"/bin/sh", "-c", "exec head -c 100000 /dev/zero >\"$0\""};
    argv[3] = in_top("limited");
    s = spec_of(argv);
    s.max_file_bytes = 1000;
    run(&s, -1);
    struct stat st;
    TAP_OK(stat(in_top("limited"), &st) == 0 && st.st_size == 1000, "the file size limit");

    signal(SIGCHLD, SIG_IGN);
    s = shell("exit 3");
    TAP_INT(run(&s, -1).exit_code, 3, "a parent that ignored SIGCHLD");
}

static void limits(void)
{
    struct amp_child_spec s = shell("sleep 100 & wait");
    int64_t t = amp_mono_ms();
    struct amp_child_end e = run(&s, 50);
    TAP_OK(e.timed_out && e.stopped_by_us && e.signaled && e.signal == SIGTERM,
           "TERM at the limit");
    TAP_OK(amp_mono_ms() - t < tap_patient(5000), "at once");
    s = shell("trap '' TERM; while :; do sleep 0.01; done");
    e = run(&s, 50);
    TAP_OK(e.timed_out && e.signaled && e.signal == SIGKILL, "KILL after the grace");
    s = shell("trap 'exit 5' TERM; while :; do sleep 0.01; done");
    e = run(&s, 50);
    TAP_OK(e.timed_out && e.exited && e.exit_code == 5, "one that ends itself at TERM");

    volatile int stop = 1;
    struct amp_child c;
    s = shell("sleep 100");
    amp_child_start(&s, &c, NULL);
    struct amp_child_end end;
    amp_child_wait(&c, -1, tap_patient(200), &stop, &end, NULL);
    TAP_OK(end.stopped_by_us && !end.timed_out && end.signal == SIGTERM, "cancelled");

    s = shell("read x");
    int p[2];
    if (pipe(p))
        return;
    s.fd_in = p[0];
    amp_child_start(&s, &c, NULL);
    close(p[0]);
    TAP_INT(amp_child_poll(&c, &end, NULL), 0, "poll: it still runs");
    close(p[1]);
    struct pollfd pf = {.fd = c.pidfd, .events = POLLIN};
    poll(&pf, 1, tap_patient(5000));
    TAP_INT(amp_child_poll(&c, &end, NULL), 1, "poll: it has ended");
    TAP_OK(end.exited && c.pid == 0, "and is released");
}

/* Its shell starts a process that forks away for good: a session of its own, its parent gone. */
static struct amp_child_spec daemon_spec(const char *argv[5], const char *after, char *text,
                                         size_t size, const char *pidfile)
{
    snprintf(
        text, size,
        "export F='%s'; setsid sh -c 'trap \"\" TERM HUP; (echo $(exec sh -c \"echo \\$PPID\") "
        ">$F.tmp; mv $F.tmp $F; exec sleep 100) & exit 0'; %s",
        in_top(pidfile), after);
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = text;
    argv[3] = NULL;
    struct amp_child_spec s = spec_of(argv);
    s.owns_tree = s.new_session = true;
    return s;
}

static void trees(void)
{
    char text[1000];
    const char *argv[5];
    struct amp_child c;
    struct amp_child_end end;
    struct amp_child_spec s = daemon_spec(argv, "sleep 100", text, sizeof text, "d1");
    amp_child_start(&s, &c, NULL);
    pid_t daemon_pid = pid_in("d1");
    TAP_OK(daemon_pid > 1 && lives(daemon_pid), "a daemon left its parent and session");
    amp_child_kill_tree(&c, SIGKILL);
    TAP_OK(!lives(daemon_pid), "the tree's KILL reaches it");
    amp_child_wait(&c, -1, 100, NULL, &end, NULL);
    TAP_OK(end.signaled && end.signal == SIGKILL && !end.stopped_by_us, "and the child");

    s = daemon_spec(argv, "while [ ! -e $F ]; do sleep 0.01; done; exit 4", text, sizeof text,
                    "d2");
    end = run(&s, 10000);
    TAP_OK(end.exited && end.exit_code == 4, "a child that ends by itself");
    TAP_OK(pid_in("d2") > 1 && !lives(pid_in("d2")), "leaves nothing behind");

    s = daemon_spec(argv, "sleep 100", text, sizeof text, "d3");
    end = run(&s, 300);
    TAP_OK(end.timed_out && pid_in("d3") > 1 && !lives(pid_in("d3")), "nor at its limit");
    TAP_OK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "the orphans were reaped");

    /* Another child must not suffer. */
    struct amp_child other;
    struct amp_child_spec o = shell("sleep 100");
    amp_child_start(&o, &other, NULL);
    s = daemon_spec(argv, "while [ ! -e $F ]; do sleep 0.01; done", text, sizeof text, "d4");
    run(&s, 10000);
    TAP_OK(!lives(pid_in("d4")), "a neighbour that owns no tree changes nothing");
    TAP_INT(amp_child_poll(&other, &end, NULL), 0, "a neighbour lives on");
    amp_child_kill_tree(&other, SIGKILL);
    amp_child_wait(&other, -1, 0, NULL, &end, NULL);
}

static void helpers(void)
{
    char path[200];
    struct amp_error err;
    setenv("AMP_LIBEXEC", top, 1);
    TAP_OK(!amp_helper_path("text", path, sizeof path, &err) && strcmp(path, in_top("text")) == 0,
           "a helper where AMP_LIBEXEC says");
    TAP_OK(amp_helper_path("absent", path, sizeof path, &err) == -1, "one that is absent");
    TAP_STR(err.code, "helper_missing", "its code");
    unsetenv("AMP_LIBEXEC");
    TAP_OK(amp_helper_path("child_test", path, sizeof path, &err) == 0, "one beside the program");
}

int main(void)
{
    top = scratch();
    statuses();
    failures();
    surroundings();
    limits();
    trees();
    helpers();
    return tap_done();
}
