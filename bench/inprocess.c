/* The library without pipes: inprocess FILE prints MB/s of processor time for a walk over the lines
 * alone, for scanning them, for judging them as amp-validate does (a bare view) and for judging
 * with the view filled; the best of five rounds each, the kinds of work taking turns. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <amp/protocol/protocol.h>

enum { LINES, SCAN, JUDGE, VIEW, WORKS };

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct amp_tape tape;
static struct amp_reader *reader;

static unsigned long run(int work, const char *p, const char *end)
{
    struct amp_check_options opt = {.bare = work == JUDGE};
    struct amp_json_fault fault;
    struct amp_error err;
    struct amp_view view;
    unsigned long good = 0;
    while (p < end) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        size_t n = (size_t)((lf ? lf : end) - p);
        if (work == SCAN)
            good += amp_tape_scan(&tape, p, n, &fault) == 0;
        else if (work != LINES)
            good += amp_reader_line(reader, (struct amp_span){p, n}, &opt, &view, NULL, NULL,
                                    &err) == 1;
        p += n + 1;
    }
    return good;
}

int main(int argc, char **argv)
{
    static const char *const names[WORKS] = {"lines", "scan", "judge", "view"};
    struct amp_error err;
    struct stat st;
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &st))
        return 64;
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    reader = amp_reader_new(&amp_json_limits_default, &err);
    if (text == MAP_FAILED || !reader)
        return 70;
    amp_tape_init(&tape, NULL);
    double best[WORKS] = {1e9, 1e9, 1e9, 1e9};
    for (int round = 0; round < 5; round++) {
        for (int work = 0; work < WORKS; work++) {
            double start = now();
            run(work, text, text + st.st_size);
            double took = now() - start;
            best[work] = took < best[work] ? took : best[work];
        }
    }
    for (int work = 0; work < WORKS; work++)
        printf("%s %.0f\n", names[work], (double)st.st_size / 1e6 / best[work]);
    amp_reader_free(reader);
    amp_tape_release(&tape);
    return 0;
}
