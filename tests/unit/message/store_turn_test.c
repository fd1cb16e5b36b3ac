/* Turns of several frames: after a crash or a failed write all of them are there, or none. */
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <amp/base/file.h>

#include "../abandon.h"
#include "../tap.h"
#include "../tree.h"

enum { TURN = 5 };

static struct amp_error err;

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    static const struct amp_store_emit emit = {{"out", 3}, {"{\"line\":1}", 10}, true};
    *c = (struct amp_store_change){.event = "step", .to = "A", .json = amp_span_str(ctx)};
    c->emits = &emit;
    c->n_emits = 1;
    return 0;
}

static struct amp_store *open_store(const char *dir, bool read_only)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000, .read_only = read_only};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) != 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

static void change(struct amp_store *s, const char *name, int i)
{
    char id[32], text[] = "{}";
    snprintf(id, sizeof id, "%s%d", name, i);
    if (amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, text, NULL, &err) != 0)
        printf("# update: %s %s\n", err.code, err.what);
}

/* One turn: NAME1 … NAMEn, and a query that needs the index after the change `middle` (0: never).
 */
static void turn(struct amp_store *s, const char *name, int n, int middle)
{
    int64_t any;
    amp_store_begin(s, &err);
    for (int i = 1; i <= n; i++) {
        change(s, name, i);
        if (i == middle && amp_store_next_due(s, "task", &any, &err) != 0)
            printf("# next: %s %s\n", err.code, err.what);
    }
    amp_store_end(s);
}

/* How many of NAME1 … NAMEn there are. -1: the store refuses. */
static int present(const char *dir, const char *name, int n, bool read_only)
{
    struct amp_store *s = open_store(dir, read_only);
    int found = 0;
    for (int i = 1; s && i <= n; i++) {
        char id[32];
        struct amp_store_rec rec;
        snprintf(id, sizeof id, "%s%d", name, i);
        if (amp_store_get(s, AMP_KEY("task", amp_span_str(id)), &rec, &err) != 0) {
            found = -1;
            break;
        }
        found += rec.found;
    }
    amp_store_close(s);
    return s ? found : -1;
}

static const char *path_of(const char *dir, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void load(const char *dir, struct amp_buf *out)
{
    amp_buf_reset(out);
    if (amp_file_read(AT_FDCWD, path_of(dir, "log/000001.ndjson"), 1 << 26, out, &err) != 0)
        printf("# %s\n", err.what);
}

static void store_log(const char *dir, struct amp_span data)
{
    if (amp_file_write_atomic(AT_FDCWD, path_of(dir, "log/000001.ndjson"), 0600, data, &err) != 0)
        printf("# %s\n", err.what);
}

static void no_index(const char *dir)
{
    tree_remove_file(dir, "index.db");
    tree_remove_file(dir, "index.db-wal");
    tree_remove_file(dir, "index.db-shm");
}

/* Where frame number n (from 1) begins. */
static size_t frame_at(const struct amp_buf *log, int n)
{
    const char *p = log->data;
    while (--n)
        p = strchr(p, '\n') + 1;
    return (size_t)(p - log->data);
}

/* A state with a1 … a3 that was synced, and a turn b1 … b5 that was not; *at: where it begins. */
static void prepare(const char *dir, struct amp_buf *log, size_t *at)
{
    struct amp_store *s = open_store(dir, false);
    for (int i = 1; i <= 3; i++)
        change(s, "a", i);
    amp_store_sync(s, &err);
    *at = (size_t)s->log.end.off;
    turn(s, "b", TURN, 0);
    load(dir, log);
    store_abandon(s);
}

/* The frames from `at` on as turns of their own, with right checksums. */
static void marks_remove(struct amp_buf *log, size_t at)
{
    static const char end[] = ",\"end\":";
    char prev[17] = "";
    for (char *p = log->data + at; p < log->data + log->len;) {
        struct amp_frame_head h;
        amp_frame_peek(p, (size_t)(log->data + log->len - p), &h);
        char *link = (char *)memmem(p, h.size, ",\"p\":\"", 6) + 6;
        char *digit = (char *)memmem(p, h.size, end, sizeof end - 1) + sizeof end - 1;
        if (*prev)
            memcpy(link, prev, 16);
        uint64_t sum = amp_frame_finish(p, h.size, (uint32_t)(digit - p), true, NULL);
        snprintf(prev, sizeof prev, "%016llx", (unsigned long long)sum);
        p += h.size;
    }
}

/* How far to the next cut: each byte around the end of a frame, others by steps. */
static size_t cut_step(const struct amp_buf *log, size_t n, size_t step)
{
    size_t ahead = log->len - n < step + 2 ? log->len - n : step + 2;
    return log->data[n - 1] == '\n' || memchr(log->data + n, '\n', ahead) ? 1 : step;
}

/* How often a part of the turn is there, for a cut at each step-th byte of it. */
static int parts_count(const char *dir, const struct amp_buf *log, size_t at, size_t step,
                       bool repairs, int *wrong)
{
    AMP_BUF struct amp_buf end = {.max = 8192};
    int parts = 0;
    if (amp_file_read(AT_FDCWD, path_of(dir, "keys/log.end"), 8192, &end, &err) != 0)
        printf("# %s\n", err.what);
    for (size_t n = at; n < log->len; n += cut_step(log, n, step)) {
        AMP_BUF struct amp_buf said = {.max = 65536};
        store_log(dir, (struct amp_span){log->data, n});
        if (n % 2 == 0)
            no_index(dir);
        int before = n % 4 ? 0 : present(dir, "b", TURN, true);
        if (repairs) {
            FILE *f = fopen(path_of(dir, "log/FAILED"), "w");
            if (f)
                fclose(f);
            if (amp_store_repair(dir, &said, &err) != 0)
                printf("# repair: %s %s\n", err.code, err.what);
        }
        int after = present(dir, "b", TURN, false);
        parts += before > 0 || after > 0;
        *wrong += present(dir, "a", 3, false) != 3;
        tree_remove_file(dir, "log/000002.ndjson");
        tree_remove_file(dir, "log/watermark");
        no_index(dir);
        /* What is known of the log's end is that of the moment of the crash. */
        if (amp_file_write_atomic(AT_FDCWD, path_of(dir, "keys/log.end"), 0600, amp_buf_span(&end),
                                  &err) != 0)
            printf("# %s\n", err.what);
    }
    return parts;
}

static void test_cut(const char *dir)
{
    AMP_BUF struct amp_buf log = {.max = 1 << 26};
    int wrong = 0;
    size_t at;
    prepare(dir, &log, &at);
    TAP_INT(parts_count(dir, &log, at, 5, false, &wrong), 0, "cut anywhere, the turn is not there");
    TAP_INT(parts_count(dir, &log, at, 11, true, &wrong), 0,
            "nor after a repair of a failed write");
    TAP_INT(wrong, 0, "and the changes before it are");
    store_log(dir, amp_buf_span(&log));
    TAP_INT(present(dir, "b", TURN, true), TURN, "not cut, it is there");
    TAP_INT(present(dir, "b", TURN, false), TURN, "also for a writer");
    marks_remove(&log, at);
    wrong = 0;
    TAP_OK(parts_count(dir, &log, at, 13, false, &wrong) > 50 &&
               parts_count(dir, &log, at, 13, true, &wrong) > 50 && wrong == 0,
           "control: without its mark, parts of it are");
}

/* A bad page in the middle of a turn that was not synced, with intact turns after it. */
static void test_hole(const char *dir)
{
    AMP_BUF struct amp_buf log = {.max = 1 << 26}, said = {.max = 65536};
    struct amp_store *s;
    size_t at;
    prepare(dir, &log, &at);
    s = open_store(dir, false);
    turn(s, "c", 2, 0);
    store_abandon(s);
    load(dir, &log);
    log.data[frame_at(&log, 6) + 40] ^= 1;
    store_log(dir, amp_buf_span(&log));
    tree_remove_file(dir, "log/watermark");
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "a hole in a turn is repaired");
    TAP_OK(present(dir, "a", 3, false) == 3 && present(dir, "b", TURN, false) == 0,
           "without the rest of the turn");
    TAP_INT(present(dir, "c", 2, false), 2, "and with the turn after it");
}

/* Ends a process in the middle of a turn whose first changes are in the index. */
static void killed_in_turn(const char *dir)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct amp_store *s = open_store(dir, false);
        uint64_t any;
        int64_t due;
        amp_store_begin(s, &err);
        for (int i = 1; i < TURN; i++)
            change(s, "b", i);
        _exit(amp_store_next_due(s, "task", &due, &err) != 0 ||
              amp_store_count(s, "task", &any, &err) != 0 || any != 3 + TURN - 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    TAP_INT(status, 0, "a part of the turn is in the index");
}

static void test_index(const char *dir)
{
    AMP_BUF struct amp_buf log = {.max = 1 << 26};
    struct amp_store *s;
    size_t at;
    prepare(dir, &log, &at);
    store_log(dir, (struct amp_span){log.data, at});
    no_index(dir);
    present(dir, "a", 3, false);
    killed_in_turn(dir);
    TAP_INT(present(dir, "b", TURN, true), 0, "a reader after a kill has none of it");
    TAP_INT(present(dir, "b", TURN, false), 0, "nor has a writer");
    TAP_INT(present(dir, "a", 3, false), 3, "the changes before it are there");
    s = open_store(dir, false);
    turn(s, "c", TURN, TURN);
    amp_store_close(s);
    load(dir, &log);
    TAP_OK(strstr(log.data, "\"log\":\"turn\""),
           "a turn that ends with a query has a frame for it");
    no_index(dir);
    TAP_INT(present(dir, "c", TURN, false), TURN, "and all of its changes");
    s = open_store(dir, false);
    turn(s, "d", TURN, 2);
    amp_store_close(s);
    no_index(dir);
    TAP_INT(present(dir, "d", TURN, true), TURN, "so has one with a query in the middle");
}

/* The numbers of turns, and of frames. */
static int turns_count(const struct amp_buf *log, int *frames)
{
    int n = 0;
    *frames = 0;
    for (const char *p = log->data; p < log->data + log->len;) {
        struct amp_frame_head h;
        if (!amp_frame_check(p, (size_t)(log->data + log->len - p), &h))
            return -1;
        n += h.ends;
        ++*frames;
        p += h.size;
    }
    return n;
}

static void test_large(const char *dir)
{
    AMP_BUF struct amp_buf log = {.max = 1 << 26};
    struct amp_store *s = open_store(dir, false);
    int frames;
    turn(s, "a", 1000, 0);
    amp_store_sync(s, &err);
    load(dir, &log);
    TAP_OK(turns_count(&log, &frames) == 1 && frames == 1000, "a batch is one turn, of any size");
    amp_store_begin(s, &err);
    for (int i = 1; i <= 1000; i++) {
        amp_store_unit(s);
        change(s, "b", i);
        change(s, "c", i);
    }
    amp_store_end(s);
    amp_store_close(s);
    load(dir, &log);
    int n = turns_count(&log, &frames);
    TAP_OK(n > 5 && n < 12 && frames == 3000, "with units it is several (%d)", n - 1);
    int odd = 0, at = 0;
    for (const char *p = log.data; p < log.data + log.len;) {
        struct amp_frame_head h;
        amp_frame_peek(p, (size_t)(log.data + log.len - p), &h);
        odd += h.ends && (at + 1) % 2;
        at++;
        p += h.size;
    }
    TAP_INT(odd, 0, "and no unit is in two of them");
}

/* More than a turn holds in memory. */
static void test_huge(const char *dir)
{
    AMP_BUF struct amp_buf log = {.max = 1 << 26};
    struct amp_store *s = open_store(dir, false);
    enum { SIZE = 900000, N = 12 };
    char *json = malloc(SIZE + 16), id[16];
    int frames;
    snprintf(json, SIZE + 16, "{\"v\":\"%0*d\"}", SIZE, 0);
    amp_store_begin(s, &err);
    for (int i = 1; i <= N; i++) {
        snprintf(id, sizeof id, "h%d", i);
        if (amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, json, NULL, &err))
            printf("# update: %s %s\n", err.code, err.what);
    }
    amp_store_end(s);
    TAP_INT(amp_store_sync(s, &err), 0, "a turn of 10 MB is written");
    amp_store_close(s);
    load(dir, &log);
    TAP_OK(turns_count(&log, &frames) == 1 && frames == N, "as one");
    no_index(dir);
    TAP_INT(present(dir, "h", N, false), N, "and is read");
    tree_remove(path_of(dir, "keys"));
    tree_remove_file(dir, "log/watermark");
    no_index(dir);
    store_log(dir, (struct amp_span){log.data, log.len - 10});
    TAP_INT(present(dir, "h", N, false), 0, "without its end it is not");
    free(json);
}

/* Frames of earlier builds have no marks. */
static void test_unmarked(void)
{
    static const char text[] =
        "{\"v2\":\"000000000000000000000000\",\"n\":7,\"p\":\"0000000000000000\","
        "\"s\":0,\"gen\":1,\"log\":\"cut\",\"at\":\"x\"}\n";
    struct amp_frame_head h;
    TAP_OK(amp_frame_peek(text, sizeof text - 1, &h) && h.ends && h.turn == 0 &&
               h.log == AMP_FRAME_cut,
           "a frame without a mark is a turn by itself");
}

int main(void)
{
    static void (*const tests[])(const char *) = {test_cut, test_hole, test_index, test_large,
                                                  test_huge};
    char base[256], dir[300];
    tree_temporary(base, sizeof base);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        snprintf(dir, sizeof dir, "%s/%zu", base, i);
        tests[i](dir);
    }
    test_unmarked();
    tree_remove(base);
    return tap_done();
}
