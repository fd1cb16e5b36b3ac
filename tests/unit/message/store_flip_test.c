/* Flipped bits: in the log, where repair keeps all but the damaged frame, and in the index, where
 * nothing wrong is ever answered. FLIP_SEED and FLIP_ROUNDS change what is flipped. */
#include <amp/base/file.h>
#include <amp/base/num.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../tap.h"
#include "../tree.h"
#include "message/store/index/index.h"
#include "message/store/store.h"

enum { KEYS = 60, FILES = 24, ROUNDS = 60 };

static struct amp_error err;

struct kept {
    char name[64];
    struct amp_buf data;
};
static struct kept kept[FILES];
static int n_kept;

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    static const struct amp_store_emit emit = {{"out", 3}, {"{\"line\":1}", 10}, true};
    (void)e;
    *c = (struct amp_store_change){
        .event = "step", .to = now->found ? "AGAIN" : "NEW", .json = amp_span_str(ctx)};
    c->emits = &emit;
    c->n_emits = 1;
    c->due_ms = 5;
    return 0;
}

static struct amp_store *open_store(const char *dir)
{
    struct amp_store_options o = {
        .lock_timeout_ms = 5000, .segment_bytes = 4096, .keep_segments = 1000};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) != 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

/* Two revisions of each key, so that a row that is lost or stale shows. */
static void fill(const char *dir)
{
    struct amp_store *s = open_store(dir);
    int64_t due;
    for (int i = 1; i <= 2 * KEYS; i++) {
        char id[24], json[80];
        snprintf(id, sizeof id, "key-%02d", (i - 1) % KEYS + 1);
        snprintf(json, sizeof json, "{\"i\":%d,\"pad\":\"%024d\"}", i, i);
        if (amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, json, NULL, &err) !=
                0 ||
            amp_store_sync(s, &err) != 0)
            printf("# fill: %s %s\n", err.code, err.what);
    }
    amp_store_next_due(s, "task", &due, &err); /* brings the index up */
    amp_store_close(s);
}

static void path_of(const char *dir, const char *name, char out[600])
{
    snprintf(out, 600, "%.255s/%.255s", dir, name);
}

static void keep(const char *dir, const char *below, const char *pattern)
{
    char path[600];
    path_of(dir, below, path);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!amp_span_glob(amp_span_str(e->d_name), amp_span_str(pattern)) || n_kept == FILES)
            continue;
        struct kept *k = &kept[n_kept++];
        snprintf(k->name, sizeof k->name, "%s/%.50s", below, e->d_name);
        path_of(dir, k->name, path);
        amp_buf_init(&k->data, 1 << 20);
        if (amp_file_read(AT_FDCWD, path, 1 << 20, &k->data, &err) != 0)
            printf("# %s\n", err.what);
    }
    closedir(d);
}

static void keep_all(const char *dir)
{
    keep(dir, ".", "index*");
    keep(dir, "log", "0*");
    keep(dir, "log", "watermark");
    keep(dir, "keys", "log.end");
}

static void release(void)
{
    for (int i = 0; i < n_kept; i++)
        amp_buf_release(&kept[i].data);
    n_kept = 0;
}

static void forget(const char *dir, const char *below, const char *pattern)
{
    char path[600];
    path_of(dir, below, path);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (amp_span_glob(amp_span_str(e->d_name), amp_span_str(pattern)))
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

/* As it was. same_boot: with what this boot knew of it. */
static void restore(const char *dir, bool same_boot)
{
    char path[600];
    forget(dir, ".", "index*");
    forget(dir, "log", "0*");
    for (int i = 0; i < n_kept; i++) {
        path_of(dir, kept[i].name, path);
        AMP_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0 || amp_write_all(fd, amp_buf_span(&kept[i].data), &err) != 0)
            printf("# cannot restore %s\n", path);
    }
    if (!same_boot)
        tree_remove_file(dir, "log/watermark");
}

/* Flips a bit of a file that the pattern names, any of all of them as likely as another. */
static void flip(const char *dir, const char *pattern, char said[100])
{
    size_t all = 0;
    char path[600], *p;
    for (int i = 0; i < n_kept; i++)
        all +=
            amp_span_glob(amp_span_str(kept[i].name), amp_span_str(pattern)) ? kept[i].data.len : 0;
    size_t at = (size_t)rand() % all;
    int bit = rand() % 8;
    for (int i = 0; i < n_kept; i++) {
        if (!amp_span_glob(amp_span_str(kept[i].name), amp_span_str(pattern)))
            continue;
        if (at >= kept[i].data.len) {
            at -= kept[i].data.len;
            continue;
        }
        p = kept[i].data.data + at;
        *p = (char)(*p ^ 1 << bit);
        path_of(dir, kept[i].name, path);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || pwrite(fd, p, 1, (off_t)at) != 1)
            printf("# cannot flip\n");
        close(fd);
        *p = (char)(*p ^ 1 << bit);
        snprintf(said, 100, "bit %d of byte %zu of %.60s", bit, at, kept[i].name);
        return;
    }
}

struct seen {
    int rows, wrong;
    bool by_log;
    const char *before;
};

/* Rows come in order (of the keys, or of the log, which a lost frame changes), each with what was
 * written to it last, or before. */
static int row(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
               struct amp_error *failed)
{
    struct seen *s = ctx;
    char want[24], json[2][80];
    int64_t i = ++s->rows;
    if (s->by_log &&
        (id.n != 6 || amp_num_parse((struct amp_span){id.p + 4, 2}, 1, KEYS, &i, NULL) < 0))
        i = 0;
    snprintf(want, sizeof want, "key-%02d", (int)i);
    for (int k = 0; k < 2; k++)
        snprintf(json[k], 80, "{\"i\":%d,\"pad\":\"%024d\"}", (int)i + k * KEYS, (int)i + k * KEYS);
    bool last =
        amp_span_is(rec->json, json[1]) && amp_span_is(rec->state, "AGAIN") && rec->rev == 2;
    bool first = amp_span_is(rec->json, json[0]) && amp_span_is(rec->state, "NEW") && rec->rev == 1;
    if (!amp_span_is(id, want) || (!last && !first) || rec->due_ms != 5)
        s->wrong += 1000;
    s->wrong += !last;
    return 0;
}

static int line(void *ctx, const struct amp_store_entry *e, struct amp_error *failed)
{
    (void)e;
    ++*(int *)ctx;
    return 0;
}

/* How much is missing or wrong: 1 for a revision that is not the last, 1000 for what is false. */
static int wrong(const char *dir)
{
    struct amp_store *s = open_store(dir);
    struct seen all = {0}, due = {.by_log = true};
    int by_key = 0, lines = 0;
    if (!s)
        return 100000;
    for (int i = 1; i <= KEYS; i++) {
        char id[24];
        struct amp_store_rec rec;
        struct seen one = {.rows = i - 1};
        snprintf(id, sizeof id, "key-%02d", i);
        if (amp_store_get(s, AMP_KEY("task", amp_span_str(id)), &rec, &err) != 0) {
            printf("# get: %s %s\n", err.code, err.what);
            by_key = 100000;
            break;
        }
        if (!rec.found)
            by_key += 1000;
        else
            row(&one, amp_span_str(id), &rec, &err);
        by_key += one.wrong;
    }
    if (amp_store_each(s, "task", NULL, row, &all, &err) != 0 || all.rows != KEYS ||
        amp_store_due(s, "task", 100, row, &due, &err) != 0 || due.rows != KEYS)
        all.wrong += 1000;
    if (amp_store_outbox(s, "", line, &lines, &err) != 0)
        lines = 100000;
    lines = 2 * KEYS - lines;
    amp_store_close(s);
    if (all.wrong != by_key || due.wrong != by_key)
        return by_key + all.wrong + due.wrong + 100000;
    return by_key > lines ? by_key : lines;
}

static int rounds(void)
{
    const char *text = getenv("FLIP_ROUNDS");
    int64_t n = ROUNDS;
    if (text)
        amp_num_parse(amp_span_str(text), 1, 1000000, &n, NULL);
    return (int)n;
}

static void test_log(const char *dir)
{
    AMP_BUF struct amp_buf said = {0};
    int bad = 0;
    amp_buf_init(&said, 1 << 20);
    for (int i = 0; i < rounds(); i++) {
        char what[100];
        restore(dir, i % 2 == 0);
        flip(dir, "log/0*", what);
        amp_buf_reset(&said);
        int rc = amp_store_repair(dir, &said, &err);
        int n = rc == 0 ? wrong(dir) : 100000;
        if (n > 1) {
            printf("# %s: repair %d, wrong %d: %s%.*s", what, rc, n, rc ? err.what : "",
                   (int)said.len, said.data);
            bad++;
        }
    }
    TAP_INT(bad, 0, "after a flipped bit and a repair, all but the damaged frame is there");
}

/* Writes to a key: what is there already must be seen. */
static int update(const char *dir, int key)
{
    struct amp_store *s = open_store(dir);
    struct amp_store_rec rec;
    char id[24];
    snprintf(id, sizeof id, "key-%02d", key);
    int rc = 1;
    if (s &&
        amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, (char[]){"{}"}, NULL,
                         &err) == 0 &&
        amp_store_get(s, AMP_KEY("task", amp_span_str(id)), &rec, &err) == 0)
        rc = rec.rev != 3 || !amp_span_is(rec.state, "AGAIN");
    amp_store_close(s);
    return rc;
}

static void make_old(const char *dir)
{
    char path[600];
    const struct timespec old[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    path_of(dir, "index.db", path);
    if (utimensat(AT_FDCWD, path, old, 0) != 0)
        printf("# cannot set a time\n");
}

/* checked: the index was found sound in this boot, then the bit flips. */
static void test_index(const char *dir, const char *file, bool checked, const char *says)
{
    int bad = 0, renewed = 0;
    for (int i = 0; i < rounds(); i++) {
        char what[100];
        int n = 0;
        restore(dir, i % 2 == 0);
        make_old(dir);
        if (checked)
            n = wrong(dir);
        flip(dir, file, what);
        n += wrong(dir);
        n += update(dir, rand() % KEYS + 1);
        renewed += tree_has(dir, "index.1.db");
        if (n) {
            printf("# %s: wrong %d: %s\n", what, n, err.what);
            bad++;
        }
    }
    TAP_INT(bad, 0, says);
    printf("# %d new generations\n", renewed);
}

/* What is in the write-ahead log goes into the file. */
static void checkpoint(const char *dir)
{
    struct amp_index ix;
    AMP_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    amp_index_init(&ix, fd, dir, false);
    TAP_INT(amp_index_open(&ix, 0, &err), 0, "the index is opened");
    amp_index_checkpoint(&ix, -1, true);
    amp_index_close(&ix);
    struct stat st;
    char path[600];
    path_of(dir, "index.db-wal", path);
    TAP_OK(stat(path, &st) == 0 && st.st_size == 0, "and all of it written into its file");
}

/* An index of a log before a repair: its rows are sound, and lead to other frames or to none. */
static void test_misled(const char *dir)
{
    AMP_BUF struct amp_buf said = {0};
    char path[600];
    int id = 0;
    amp_buf_init(&said, 1 << 20);
    restore(dir, true);
    while (strcmp(kept[id].name, "log/000002.ndjson") != 0)
        id++;
    path_of(dir, kept[id].name, path);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    TAP_INT(pwrite(fd, "??", 2, 60), 2, "the second segment is damaged");
    close(fd);
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "and repaired");
    TAP_INT(wrong(dir), 1, "of the damaged frame the revision before it is there");
    TAP_OK(tree_has(dir, "index.1.db"), "a new generation of the index has the places");
    forget(dir, ".", "index*");
    for (id = 0; strcmp(kept[id].name, "./index.db") != 0;)
        id++;
    path_of(dir, "index.9.db", path);
    TAP_INT(amp_file_write_atomic(AT_FDCWD, path, 0600, amp_buf_span(&kept[id].data), &err), 0,
            "with an index of before the repair");
    TAP_INT(wrong(dir), 1, "all is there");
    TAP_OK(tree_has(dir, "index.10.db"), "by the next generation");
}

static void test_missing(const char *dir)
{
    AMP_BUF struct amp_buf said = {0};
    amp_buf_init(&said, 1 << 20);
    restore(dir, true);
    tree_remove_file(dir, "log/000003.ndjson");
    tree_remove_file(dir, "log/000004.ndjson");
    forget(dir, ".", "index*");
    TAP_INT(wrong(dir) >= 100000, 1, "a log without two of its segments is refused");
    TAP_STR(err.code, "log_damaged", "with its code");
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "repair");
    TAP_OK(strstr(said.data, "log/000003.ndjson is missing") != NULL, "says what is missing");
    int n = wrong(dir);
    TAP_OK(n > 0 && n < KEYS, "and keeps all that was in the others");
    forget(dir, ".", "index*");
    tree_remove_file(dir, "log/watermark");
    TAP_INT(wrong(dir), n, "also when all is read anew");
}

int main(void)
{
    char dir[64], sub[80];
    const char *seed = getenv("FLIP_SEED");
    int64_t n = 1;
    if (seed)
        amp_num_parse(amp_span_str(seed), 1, 1 << 30, &n, NULL);
    srand((unsigned)n);
    tree_temporary(dir, sizeof dir);
    snprintf(sub, sizeof sub, "%s/state", dir);
    fill(sub);
    keep_all(sub);
    TAP_INT(wrong(sub), 0, "all is there");
    restore(sub, true);
    TAP_INT(wrong(sub), 0, "and again");
    test_log(sub);
    test_index(sub, "./index.db-wal", false,
               "after a flipped bit in its write-ahead log, all is there");
    restore(sub, true);
    checkpoint(sub);
    release();
    keep_all(sub);
    test_index(sub, "./index.db", false, "after a flipped bit in the index, all is there");
    test_index(sub, "./index.db", true, "and where it had been checked in this boot");
    test_misled(sub);
    test_missing(sub);
    release();
    tree_remove(dir);
    return tap_done();
}
