/* Locks: exclusion between descriptions, time limits, the turnstile's order. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "../scratch.h"
#include "../tap.h"

static char path_next[128], path_main[128];

static int open_lock(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void times(void)
{
    struct amp_error err;
    int a = open_lock(path_main), b = open_lock(path_main);
    TAP_OK(!amp_lock(a, 0, &err), "free");
    TAP_OK(amp_lock(b, 0, &err) == -1, "held by another description of the same process");
    TAP_STR(err.code, "lock_timeout", "code");
    TAP_INT(err.status, AMP_TEMPFAIL, "status");
    int64_t t = amp_mono_ms();
    TAP_OK(amp_lock(b, 80, &err) == -1, "still held after the limit");
    t = amp_mono_ms() - t;
    TAP_OK(t >= 80 && t < tap_patient(2000), "the limit was kept (%d ms)", (int)t);
    struct sigaction sa;
    sigaction(SIGRTMIN + 11, NULL, &sa);
    TAP_OK(sa.sa_handler == SIG_DFL, "the timer's signal is as it was");
    amp_unlock(a);
    TAP_OK(!amp_lock(b, 80, &err), "free again");
    close(b);
    TAP_OK(!amp_lock(a, -1, &err), "closing gave it back");
    close(a);
    TAP_OK(amp_lock(a, 10, &err) == -1 && err.status == AMP_IOERR, "no descriptor");
}

static volatile sig_atomic_t handled;

static void on_signal(int sig)
{
    handled = sig;
}

/* A child sends the signal when it sees that we wait, and ends. */
static void signal_later(int sig)
{
    if (fork() != 0)
        return;
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/syscall", (int)getppid());
    for (int i = 0; i < 1000; i++) {
        int fd = open(path, O_RDONLY);
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        close(fd);
        text[n > 0 ? n : 0] = '\0';
        if (n <= 0 ? i > 20 : atoi(text) == SYS_fcntl)
            break;
        poll(NULL, 0, 5);
    }
    kill(getppid(), sig);
    _exit(0);
}

static void signals(void)
{
    struct amp_error err;
    struct sigaction sa = {.sa_handler = on_signal}, now;
    sigset_t stops, mask;
    int a = open_lock(path_main), b = open_lock(path_main);
    sigaction(SIGTERM, &sa, NULL);
    amp_lock(a, 0, &err);
    signal_later(SIGTERM);
    TAP_OK(amp_lock(b, -1, &err) == -1 && err.status == AMP_INTERRUPTED, "TERM ends a wait");
    TAP_STR(err.code, "interrupted", "its code");
    TAP_OK(handled == SIGTERM, "the program's handler ran");
    sigaction(SIGTERM, NULL, &now);
    TAP_OK(now.sa_handler == on_signal, "and is in its place");
    while (wait(NULL) > 0)
        ;
    handled = 0;
    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigprocmask(SIG_BLOCK, &stops, &mask);
    signal_later(SIGTERM);
    TAP_OK(amp_lock(b, tap_patient(20000), &err) == -1 && err.status == AMP_INTERRUPTED,
           "also one that is blocked");
    TAP_INT(handled, 0, "whose handler waits for that");
    sigprocmask(SIG_SETMASK, &mask, NULL);
    TAP_INT(handled, SIGTERM, "and then runs");
    while (wait(NULL) > 0)
        ;
    sigprocmask(SIG_BLOCK, &stops, &mask);
    raise(SIGTERM);
    TAP_OK(amp_lock_shared(b, -1, &err) == -1 && err.status == AMP_INTERRUPTED,
           "one that came before the wait");
    amp_unlock(a);
    raise(SIGTERM);
    TAP_OK(!amp_lock(b, -1, &err), "without a wait the lock is taken");
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(b);
    amp_lock(a, 0, &err);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGTERM, SIG_DFL);
        sigprocmask(SIG_BLOCK, &stops, NULL);
        int fd = open_lock(path_main);
        raise(SIGTERM);
        amp_lock(fd, -1, NULL);
        _exit(9);
    }
    int status;
    waitpid(pid, &status, 0);
    TAP_OK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "without a handler it ends us");
    close(a);
    sa.sa_handler = SIG_DFL;
    sigaction(SIGTERM, &sa, NULL);
}

static void handed_over(void)
{
    struct amp_error err;
    int ready[2];
    if (pipe(ready))
        return;
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open_lock(path_main);
        amp_lock(fd, -1, NULL);
        (void)!write(ready[1], "x", 1);
        poll(NULL, 0, 60);
        _exit(0);
    }
    char c;
    (void)!read(ready[0], &c, 1);
    int fd = open_lock(path_main);
    int64_t t = amp_mono_ms();
    TAP_OK(!amp_lock(fd, tap_patient(5000), &err), "got from a holder that ended");
    TAP_OK(amp_mono_ms() - t < tap_patient(4000), "as soon as it ended");
    close(fd);
    waitpid(pid, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

/* Writers that would each like every turn: how often another gets two turns while one waits. */
static void fairness(bool crowd)
{
    enum { WRITERS = 4, TURNS = 150 };
    struct shared {
        _Atomic uint32_t crowd;
        volatile int inside, broken, turns[WRITERS], most[WRITERS];
    } *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int patience = tap_patient(5000);
    int64_t until = amp_mono_ms() + tap_patient(400);
    for (int i = 0; i < WRITERS; i++) {
        if (fork() != 0)
            continue;
        struct amp_turnstile t = {.next = open_lock(path_next), .main = open_lock(path_main)};
        t.crowd = crowd ? &s->crowd : NULL;
        /* Half of them wait for ever, half with a limit: both must get their turns. */
        while (amp_mono_ms() < until) {
            if (amp_turnstile_enter(&t, i % 2 ? patience : -1, NULL))
                _exit(1);
            if (__atomic_add_fetch(&s->inside, 1, __ATOMIC_SEQ_CST) != 1)
                s->broken = 1;
            s->turns[i]++;
            for (int k = 0; k < 2000; k++)
                __asm__ volatile("");
            __atomic_sub_fetch(&s->inside, 1, __ATOMIC_SEQ_CST);
            amp_turnstile_leave(&t);
        }
        _exit(0);
    }
    int failed = 0, status, least = 1 << 30, most = 0;
    while (wait(&status) > 0)
        failed += status != 0;
    for (int i = 0; i < WRITERS; i++) {
        least = s->turns[i] < least ? s->turns[i] : least;
        most = s->turns[i] > most ? s->turns[i] : most;
    }
    TAP_OK(!failed, "all writers ended well%s", crowd ? ", with a word for the crowd" : "");
    TAP_OK(!s->broken, "never two inside");
    TAP_OK(least > 20 && most < least * 8, "nobody starves: %d to %d turns", least, most);
    munmap(s, sizeof *s);
}

static void turnstile_times(void)
{
    struct amp_error err;
    struct amp_turnstile a = {.next = open_lock(path_next), .main = open_lock(path_main)};
    struct amp_turnstile b = {.next = open_lock(path_next), .main = open_lock(path_main)};
    TAP_OK(!amp_turnstile_enter(&a, 0, &err), "the first one in");
    TAP_OK(amp_turnstile_enter(&b, 60, &err) == -1, "the second one not");
    TAP_OK(amp_turnstile_enter(&b, 0, &err) == -1, "nor at once");
    amp_turnstile_leave(&a);
    TAP_OK(!amp_turnstile_enter(&b, 60, &err), "after the first has left");
    close(a.next);
    close(a.main);
    close(b.next);
    close(b.main);
}

/* The word for a crowd: raised by who waits, taken down when nobody did for some turns. */
static void crowd(void)
{
    _Atomic uint32_t word = 0;
    int next = open_lock(path_next);
    struct amp_turnstile a = {.next = open_lock(path_next), .main = open_lock(path_main)};
    struct amp_turnstile b = {.next = open_lock(path_next), .main = open_lock(path_main)};
    a.crowd = b.crowd = &word;
    TAP_OK(!amp_lock(next, 0, NULL), "somebody is next");
    TAP_OK(!amp_turnstile_enter(&a, 0, NULL), "without a crowd main is free all the same");
    TAP_OK(amp_turnstile_enter(&b, 0, NULL) == -1 && word == 1, "who finds it taken says so");
    amp_turnstile_leave(&a);
    TAP_OK(amp_turnstile_enter(&a, 0, NULL) == -1, "and then nobody passes the one that is next");
    amp_unlock(next);
    int turns = 0;
    while (word && turns < 1000 && !amp_turnstile_enter(&a, 0, NULL)) {
        amp_turnstile_leave(&a);
        turns++;
    }
    TAP_OK(!word && turns > 1, "after %d turns without a wait there is no crowd", turns);
    close(next);
    close(a.next);
    close(a.main);
    close(b.next);
    close(b.main);
}

int main(void)
{
    const char *top = scratch();
    snprintf(path_next, sizeof path_next, "%s/next", top);
    snprintf(path_main, sizeof path_main, "%s/main", top);
    times();
    signals();
    handed_over();
    turnstile_times();
    fairness(false);
    fairness(true);
    crowd();
    return tap_done();
}
