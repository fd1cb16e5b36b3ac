/* route check|scan OUT <LINES: what routing is measured against: the same lines are checked (scan:
 * only scanned) with the library, and the good ones copied to OUT in pieces of 64 KiB.
 * route hop N PROGRAM ARGS... <LINE: the line goes N times to the program's standard input and is
 * waited for on its standard output. Prints the median in microseconds. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <amp/json/lines.h>
#include <amp/protocol/protocol.h>

#define PIECE ((size_t)64 << 10)

extern char **environ;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int put(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0)
            return -1;
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int copy(bool check, const char *out)
{
    static char piece[PIECE];
    struct amp_error err = {0};
    struct amp_lines lines;
    struct amp_line line;
    struct amp_view v;
    struct amp_tape tape;
    struct amp_json_fault fault;
    struct amp_check_options opt = {.bare = true};
    struct amp_reader *r = amp_reader_new(NULL, &err);
    int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    size_t n = 0;
    int got;
    if (!r || fd < 0)
        return 1;
    amp_lines_init(&lines, (size_t)32 << 20);
    amp_tape_init(&tape, NULL);
    while ((got = amp_lines_fill(&lines, 0, &err)) > 0) {
        while (amp_lines_next(&lines, &line) == AMP_LINE) {
            int good = check ? amp_reader_line(r, line.bytes, &opt, &v, NULL, NULL, &err)
                             : amp_tape_scan(&tape, line.bytes.p, line.bytes.n, &fault) == 0;
            if (good < 0)
                return 1;
            if (good == 0)
                continue;
            if (n + line.bytes.n + 1 > PIECE) {
                if (put(fd, piece, n) < 0)
                    return 1;
                n = 0;
            }
            if (line.bytes.n + 1 > PIECE) {
                if (put(fd, line.bytes.p, line.bytes.n) < 0 || put(fd, "\n", 1) < 0)
                    return 1;
                continue;
            }
            memcpy(piece + n, line.bytes.p, line.bytes.n);
            n += line.bytes.n;
            piece[n++] = '\n';
        }
    }
    return got < 0 || put(fd, piece, n) < 0 || close(fd) < 0;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static int hops(long n, char **argv)
{
    static char line[PIECE], back[PIECE];
    int in[2], out[2];
    pid_t pid;
    posix_spawn_file_actions_t fa;
    ssize_t len = read(0, line, sizeof(line));
    double *took = calloc((size_t)n, sizeof(*took));
    if (n < 1 || len < 1 || !took || pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
        return 1;
    posix_spawn_file_actions_init(&fa);
    posix_spawn_file_actions_adddup2(&fa, in[0], 0);
    posix_spawn_file_actions_adddup2(&fa, out[1], 1);
    if (posix_spawnp(&pid, argv[0], &fa, NULL, argv, environ))
        return 69;
    for (long i = 0; i < n; i++) {
        double start = now();
        ssize_t got = 0, more = 1;
        if (put(in[1], line, (size_t)len) < 0)
            return 1;
        for (; got < len && more > 0; got += more)
            more = read(out[0], back + got, sizeof(back) - (size_t)got);
        if (got != len)
            return 1;
        took[i] = now() - start;
    }
    close(in[1]);
    waitpid(pid, NULL, 0);
    qsort(took, (size_t)n, sizeof(*took), by_size);
    printf("%.1f\n", took[n / 2]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "check") == 0)
        return copy(true, argv[2]);
    if (argc == 3 && strcmp(argv[1], "scan") == 0)
        return copy(false, argv[2]);
    if (argc > 3 && strcmp(argv[1], "hop") == 0)
        return hops(atol(argv[2]), argv + 3);
    return 64;
}
