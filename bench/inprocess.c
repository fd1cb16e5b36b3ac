/* The scanner and the checker without a pipe: inprocess FILE reads a corpus of AMP messages and
 * prints MB/s of processor time for a walk over the lines alone, for scanning, and for scanning and checking; the
 * best of three rounds each. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <amp/schema/schema.h>

enum { TYPES = 5 };

static const char *const types[TYPES] = {"task_dispatch", "task_result", "review_request",
                                         "review_verdict", "escalation"};

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    const struct amp_schema_file *f = amp_schema_file_find(uri);
    if (!f)
        return -1;
    *text = f->text;
    return 0;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct amp_error err;
    struct amp_schema *schema[TYPES];
    struct stat st;
    int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
    if (fd < 0 || fstat(fd, &st))
        return 64;
    char *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    for (int i = 0; i < TYPES; i++) {
        char path[64];
        snprintf(path, sizeof path, "amp/%s.json", types[i]);
        const struct amp_schema_file *f = amp_schema_file_find(amp_span_str(path));
        struct amp_schema_options opt = {.resolve = resolve, .base_uri = path, .formats = true};
        schema[i] = f ? amp_schema_compile(f->text, &opt, &err) : NULL;
        if (!schema[i])
            return 70;
    }
    struct amp_schema_run *run = amp_schema_run_new(&err);
    struct amp_tape tape;
    struct amp_json_fault fault;
    unsigned long good = 0;
    amp_tape_init(&tape, NULL);
    for (int mode = 0; mode < 3; mode++) {
        double best = 1e9;
        for (int round = 0; round < 3; round++) {
            double start = now();
            const char *p = text, *end = text + st.st_size;
            good = 0;
            while (p < end) {
                const char *lf = memchr(p, '\n', (size_t)(end - p));
                size_t n = (size_t)((lf ? lf : end) - p);
                if (mode > 0 && !amp_tape_scan(&tape, p, n, &fault) && mode > 1) {
                    uint32_t type = amp_tape_get(&tape, 0, AMP_SPAN("type"));
                    for (int i = 0; i < TYPES && type != AMP_TOK_NONE; i++)
                        if (amp_tok_is(&tape, type, amp_span_str(types[i])))
                            good += amp_schema_check(schema[i], run, &tape, 0, &err) == 1;
                }
                p += n + 1;
            }
            double took = now() - start;
            best = took < best ? took : best;
        }
        printf("%s %.0f\n",
               mode == 0   ? "lines"
               : mode == 1 ? "scan"
                           : "scan+check",
               (double)st.st_size / 1e6 / best);
    }
    printf("valid %lu\n", good);
    for (int i = 0; i < TYPES; i++)
        amp_schema_free(schema[i]);
    amp_schema_run_free(run);
    amp_tape_release(&tape);
    return 0;
}
