/* FIFOs: opening without blocking, whole lines from many writers, half lines of killed ones. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <amp/base/clock.h>
#include <amp/base/pipe.h>

#include "../scratch.h"
#include "../tap.h"

static const char *fifo(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", scratch_dir, name);
    mkfifo(path, 0600);
    return path;
}

static short look(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    poll(&p, 1, 0);
    return p.revents;
}

static void opening(void)
{
    struct amp_error err;
    struct amp_input in;
    char buf[64];
    int fd = -5;
    const char *path = fifo("open");
    TAP_OK(amp_output_open(path, 0, -1, NULL, &fd, &err) == -1 && fd == -5,
           "no reader, tried once");
    TAP_STR(err.code, "no_reader", "its code");
    int64_t t = amp_mono_ms();
    TAP_OK(amp_output_open(path, 60, -1, NULL, &fd, &err) == -1 && amp_mono_ms() - t >= 60,
           "with a limit");
    volatile int stop = 2;
    int input[2];
    TAP_OK(!pipe(input), "an input");
    TAP_OK(amp_output_open(path, 60, input[0], NULL, &fd, &err) == -1 && fd == -5,
           "no reader, and an input that goes on");
    TAP_OK(write(input[1], "x", 1) == 1 && !close(input[1]) &&
               amp_output_open(path, 60, input[0], NULL, &fd, &err) == -1 && fd == -5,
           "nor one that ended with something to read");
    char byte;
    TAP_OK(read(input[0], &byte, 1) == 1 &&
               amp_output_open(path, -1, input[0], NULL, &fd, &err) == 1 && fd == -1,
           "an input that has ended ends the wait");
    close(input[0]);
    TAP_OK(amp_output_open(path, -1, -1, &stop, &fd, &err) == -1 && err.status == AMP_INTERRUPTED,
           "cancelled");
    TAP_OK(!amp_input_open(path, false, &in, &err) && in.fifo, "a reader does not wait");
    TAP_OK(look(in.fd) == 0, "no writer yet: poll is silent");
    TAP_OK(!amp_output_open(path, 0, -1, NULL, &fd, &err), "a writer");
    TAP_OK(look(in.fd) == 0, "it wrote nothing yet");
    (void)!write(fd, "x\n", 2);
    close(fd);
    TAP_OK(look(in.fd) & POLLIN && read(in.fd, buf, sizeof buf) == 2, "what it wrote");
    TAP_OK(look(in.fd) & POLLHUP && read(in.fd, buf, sizeof buf) == 0, "then the end");
    amp_input_close(&in);

    TAP_OK(!amp_input_open(path, true, &in, &err) && in.hold >= 0, "held");
    TAP_OK(!amp_output_open(path, 0, -1, NULL, &fd, &err), "a writer");
    close(fd);
    TAP_OK(look(in.fd) == 0, "and no end when it leaves");
    amp_input_close(&in);
    TAP_OK(amp_input_open("/no/such", false, &in, &err) == -1, "no such input");
    TAP_STR(err.code, "enoent", "its code");
    TAP_OK(amp_output_open("/no/such", 0, -1, NULL, &fd, &err) == -1, "no such output is not made");
    TAP_STR(err.code, "enoent", "its code");
}

/* A line of n bytes: who, a number, filling, and the number again. */
static size_t make_line(char *line, size_t n, int who, int number)
{
    int k = snprintf(line, n, "%d:%06d:", who, number);
    memset(line + k, 'a' + who, n - (size_t)k);
    memcpy(line + n - 8, line + 2, 6);
    line[n - 2] = '.';
    line[n - 1] = '\n';
    return n;
}

static void writer(int fd, bool own, int who, int lines, size_t most)
{
    struct amp_outq q;
    struct amp_error err;
    char *line = malloc(most);
    signal(SIGPIPE, SIG_IGN);
    if (!line || amp_outq_open(&q, fd, own, 8 << 20, &err))
        _exit(1);
    for (int i = 0; i < lines; i++) {
        size_t n = i % 3 ? most : 100;
        if (amp_outq_add(&q, (struct amp_span){line, make_line(line, n, who, i)}, &err) ||
            (i % 5 == 0 && amp_outq_drain(&q, 20000, NULL, &err)))
            _exit(2);
    }
    int rc = amp_outq_drain(&q, 20000, NULL, &err);
    amp_outq_close(&q);
    _exit(rc ? 3 : 0);
}

/* Reads to the end; counts whole good lines, torn ones and empty ones. */
static void count(int fd, int *good, int *torn, int *empty)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 64 << 20);
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, 10000);
        amp_buf_reserve(&b, 65536, NULL);
        ssize_t n = read(fd, b.data + b.len, 65536);
        if (n <= 0)
            break;
        b.len += (size_t)n;
    }
    *good = *torn = *empty = 0;
    for (char *p = b.data, *end; p && (end = memchr(p, '\n', b.len - (size_t)(p - b.data)));
         p = end + 1) {
        size_t n = (size_t)(end - p) + 1;
        bool ok = n > 20;
        char fill = ok ? (char)('a' + p[0] - '0') : 0;
        for (size_t i = 9; ok && i < n - 8; i++)
            ok = p[i] == fill;
        ok = ok && memcmp(p + 2, end - 7, 6) == 0;
        if (n == 1)
            ++*empty;
        else
            ++*(ok ? good : torn);
    }
}

static void together(void)
{
    const char *path = fifo("many");
    struct amp_input in;
    amp_input_open(path, false, &in, NULL);
    /* No end of file before the last of them has come. */
    int keep = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    for (int who = 0; who < 3; who++)
        if (fork() == 0) {
            int fd;
            if (amp_output_open(path, 5000, -1, NULL, &fd, NULL))
                _exit(4);
            close(keep);
            writer(fd, true, who, 150, who == 2 ? 150000 : 10000);
        }
    close(keep);
    int good, torn, empty, status, failed = 0;
    count(in.fd, &good, &torn, &empty);
    while (wait(&status) > 0)
        failed += status != 0;
    TAP_OK(!failed && good == 450 && !torn && !empty, "three writers: %d good, %d torn, %d empty",
           good, torn, empty);
    struct stat st;
    TAP_OK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600, "the mark is gone");
    amp_input_close(&in);

    int p[2];
    if (pipe(p))
        return;
    for (int who = 0; who < 3; who++)
        if (fork() == 0)
            writer(p[1], false, who, 150, 10000);
    close(p[1]);
    count(p[0], &good, &torn, &empty);
    while (wait(&status) > 0)
        failed += status != 0;
    TAP_OK(!failed && good == 450 && !torn && !empty,
           "three writers that share one description of a pipe: %d good, %d torn, %d empty", good,
           torn, empty);
    close(p[0]);
}

static void killed(void)
{
    const char *path = fifo("killed");
    struct amp_input in;
    struct amp_error err;
    amp_input_open(path, true, &in, NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int fd;
        amp_output_open(path, 0, -1, NULL, &fd, NULL);
        writer(fd, true, 1, 2, 1 << 20); /* does not fit into the FIFO */
    }
    struct stat st;
    for (int i = 0; i < 500 && (stat(path, &st) || !(st.st_mode & S_ISVTX)); i++)
        poll(NULL, 0, 10);
    /* Its short line and a part of the long one are in; it waits for room. */
    poll(NULL, 0, 50);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    int fd;
    struct amp_outq q;
    amp_output_open(path, 0, -1, NULL, &fd, NULL);
    amp_outq_open(&q, fd, true, 1 << 20, NULL);
    char line[200];
    amp_outq_add(&q, (struct amp_span){line, make_line(line, sizeof line, 2, 7)}, NULL);
    TAP_INT(amp_outq_flush(&q, &err), 0, "the FIFO is full");
    char buf[1 << 16];
    ssize_t n = read(in.fd, buf, sizeof buf);
    TAP_INT(amp_outq_flush(&q, &err), 1, "with room it goes out");
    bool half = n > 0 && buf[n - 1] != '\n';
    n = read(in.fd, buf, sizeof buf);
    TAP_OK(half && n == 201 && buf[0] == '\n' && memcmp(buf + 1, line, sizeof line) == 0,
           "and ends the half line first");
    TAP_OK(stat(path, &st) == 0 && !(st.st_mode & S_ISVTX), "the mark is gone");
    amp_outq_close(&q);
    amp_input_close(&in);
}

static void half_lines(void)
{
    struct amp_outq q, r;
    struct amp_error err;
    struct amp_input in;
    struct stat st;
    char got[64];
    int fd;
    const char *path = fifo("half");
    amp_input_open(path, true, &in, NULL);
    amp_output_open(path, 0, -1, NULL, &fd, NULL);
    amp_outq_open(&q, fd, true, 1000, NULL);
    amp_output_open(path, 0, -1, NULL, &fd, NULL);
    amp_outq_open(&r, fd, true, 1000, NULL);
    amp_outq_add(&r, AMP_SPAN("other\n"), NULL);
    amp_outq_add(&q, AMP_SPAN("ha"), NULL);
    TAP_INT(amp_outq_flush(&q, &err), 1, "half a line goes out");
    TAP_INT(amp_outq_flush(&r, &err), 0, "another writer waits for the rest");
    amp_outq_through(&q, AMP_SPAN("l"), NULL, NULL);
    TAP_INT(amp_outq_drain(&r, 20, NULL, &err), -1, "and waits on after a middle part");
    amp_outq_add(&q, AMP_SPAN("f\n"), NULL);
    TAP_OK(amp_outq_flush(&q, &err) == 1 && amp_outq_drain(&r, 1000, NULL, &err) == 0,
           "then both are out");
    TAP_OK(read(in.fd, got, sizeof got) == 11 && memcmp(got, "half\nother\n", 11) == 0,
           "one after the other");
    amp_outq_add(&q, AMP_SPAN("left"), NULL);
    amp_outq_flush(&q, &err);
    amp_outq_close(&q);
    amp_outq_add(&r, AMP_SPAN("next\n"), NULL);
    TAP_INT(amp_outq_drain(&r, 1000, NULL, &err), 0, "a half line that stayed blocks nobody");
    TAP_OK(read(in.fd, got, sizeof got) == 10 && memcmp(got, "left\nnext\n", 10) == 0,
           "and is ended by the next writer");
    TAP_OK(stat(path, &st) == 0 && !(st.st_mode & S_ISVTX), "the mark is gone");
    amp_outq_close(&r);
    amp_input_close(&in);
}

static void shared(void)
{
    char path[128];
    int p[2];
    snprintf(path, sizeof path, "%s/regular", scratch_dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    int appended = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    TAP_OK(fd >= 0 && !amp_output_shared(fd), "a file written from its start is ours");
    TAP_OK(appended >= 0 && amp_output_shared(appended), "one that is appended to is shared");
    TAP_OK(pipe(p) == 0 && amp_output_shared(p[1]), "so is a pipe");
    close(fd);
    close(appended);
    close(p[0]);
    close(p[1]);
}

static void bounds(void)
{
    struct amp_outq q;
    struct amp_error err;
    int p[2];
    static char big[300000];
    memset(big, 'b', sizeof big);
    big[sizeof big - 1] = '\n';
    if (pipe(p))
        return;
    amp_outq_open(&q, p[1], false, 400000, &err);
    TAP_OK((fcntl(p[1], F_GETFL) & O_NONBLOCK) == 0, "the caller's descriptor stays blocking");
    TAP_OK(amp_outq_events(&q) == 0 && amp_outq_timeout(&q) == -1, "nothing to wait for");
    TAP_OK(!amp_outq_add(&q, (struct amp_span){big, sizeof big}, &err), "within the bound");
    TAP_OK(amp_outq_add(&q, (struct amp_span){big, sizeof big}, &err) == -1, "past it");
    TAP_STR(err.code, "buffer_full", "its code");
    TAP_INT(amp_outq_flush(&q, &err), 0, "a full pipe does not block");
    TAP_OK(amp_outq_events(&q) == POLLOUT && q.written == 65536 && q.added == sizeof big,
           "counted");
    TAP_OK(amp_outq_drain(&q, 50, NULL, &err) == -1, "draining has a limit");
    TAP_STR(err.code, "output_timeout", "its code");
    /* Another writer must wait for the end of the line. */
    struct amp_outq r;
    amp_outq_open(&r, p[1], false, 1000, &err);
    amp_outq_add(&r, AMP_SPAN("second\n"), &err);
    static char got[400000];
    size_t n = 0;
    n += (size_t)read(p[0], got, 65536);
    TAP_OK(amp_outq_flush(&r, &err) == 0 && amp_outq_events(&r) == 0 && amp_outq_timeout(&r) >= 0,
           "another writer waits for the lock, not for the pipe");
    while (amp_outq_flush(&q, &err) == 0)
        n += (size_t)read(p[0], got + n, 65536);
    amp_outq_drain(&r, 1000, NULL, &err);
    n += (size_t)read(p[0], got + n, sizeof got - n);
    n += n < sizeof big + 7 ? (size_t)read(p[0], got + n, sizeof got - n) : 0;
    TAP_OK(n == sizeof big + 7 && memcmp(got, big, sizeof big) == 0 &&
               memcmp(got + sizeof big, "second\n", 7) == 0,
           "then its line follows, and no other byte");
    amp_outq_close(&r);
    close(p[0]);
    amp_outq_add(&q, AMP_SPAN("x\n"), &err);
    signal(SIGPIPE, SIG_IGN);
    TAP_OK(amp_outq_flush(&q, &err) == -1, "no reader any more");
    TAP_STR(err.code, "closed_pipe", "its code");
    amp_outq_close(&q);
    TAP_OK(amp_outq_add(&q, AMP_SPAN("x\n"), &err) == -1, "closed");
    close(p[1]);
}

int main(void)
{
    scratch();
    opening();
    bounds();
    half_lines();
    shared();
    killed();
    together();
    return tap_done();
}
