/* Locks: exclusion between descriptions, time limits, the turnstile's order. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "scratch.h"
#include "tap.h"

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
    TAP_OK(t >= 80 && t < 2000, "the limit was kept (%d ms)", (int)t);
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
    TAP_OK(!amp_lock(fd, 5000, &err), "got from a holder that ended");
    TAP_OK(amp_mono_ms() - t < 4000, "as soon as it ended");
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
    int64_t until = amp_mono_ms() + 400;
    for (int i = 0; i < WRITERS; i++) {
        if (fork() != 0)
            continue;
        struct amp_turnstile t = {.next = open_lock(path_next), .main = open_lock(path_main)};
        t.crowd = crowd ? &s->crowd : NULL;
        /* Half of them wait for ever, half with a limit: both must get their turns. */
        while (amp_mono_ms() < until) {
            if (amp_turnstile_enter(&t, i % 2 ? 5000 : -1, NULL))
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
    handed_over();
    turnstile_times();
    fairness(false);
    fairness(true);
    crowd();
    return tap_done();
}
