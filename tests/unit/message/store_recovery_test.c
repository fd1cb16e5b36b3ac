/* The log after a crash: torn tails, damage, lost and wrong indexes, failed writes, repair. */
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <amp/base/file.h>

#include "../abandon.h"
#include "../tap.h"
#include "../tree.h"

static struct amp_error err;

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    static const struct amp_store_emit emit = {{"out", 3}, {"{\"line\":1}", 10}, true};
    *c = (struct amp_store_change){.event = "step", .to = "A", .json = amp_span_str(ctx)};
    c->emits = &emit;
    c->n_emits = 1;
    c->due_ms = 5;
    return 0;
}

static struct amp_store *open_store(const char *dir)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) != 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

/* Keys k1..kn, each synced before the next; the last one only when all. */
static void fill(const char *dir, int n, bool all)
{
    struct amp_store *s = open_store(dir);
    for (int i = 1; i <= n; i++) {
        char id[16], json[40], *text = json;
        snprintf(id, sizeof id, "k%d", i);
        snprintf(json, sizeof json, "{\"i\":%d}", i);
        struct amp_store_input in = {"c", amp_span_str(id), AMP_SPAN("b")};
        if (amp_store_update(s, AMP_KEY("task", amp_span_str(id)), &in, take, text, NULL, &err) !=
                0 ||
            ((all || i < n) && amp_store_sync(s, &err) != 0))
            printf("# fill: %s %s\n", err.code, err.what);
    }
    (all ? amp_store_close : store_abandon)(s);
}

/* How many of k1..kn are there with what was written. -1: the store refuses. */
static int present(const char *dir, int n)
{
    struct amp_store *s = open_store(dir);
    int found = 0;
    for (int i = 1; s && i <= n; i++) {
        char id[16], json[40];
        struct amp_store_rec rec;
        snprintf(id, sizeof id, "k%d", i);
        snprintf(json, sizeof json, "{\"i\":%d}", i);
        if (amp_store_get(s, AMP_KEY("task", amp_span_str(id)), &rec, &err) != 0) {
            found = -1;
            break;
        }
        found += rec.found && amp_span_is(rec.json, json);
    }
    amp_store_close(s);
    return s ? found : -1;
}

static struct amp_buf file;

static const char *path_of(const char *dir, const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void load(const char *dir)
{
    amp_buf_reset(&file);
    if (amp_file_read(AT_FDCWD, path_of(dir, "log/000001.ndjson"), 1 << 20, &file, &err) != 0)
        printf("# %s\n", err.what);
}

static void store_file(const char *dir, const char *name, struct amp_span data)
{
    if (amp_file_write_atomic(AT_FDCWD, path_of(dir, name), 0600, data, &err) != 0)
        printf("# %s\n", err.what);
}

/* Where frame number n (from 1) begins. */
static size_t frame_at(int n)
{
    const char *p = file.data;
    while (--n)
        p = strchr(p, '\n') + 1;
    return (size_t)(p - file.data);
}

/* As after a restart of the machine. */
static void new_boot(const char *dir)
{
    tree_remove_file(dir, "log/watermark");
}

static void no_index(const char *dir)
{
    tree_remove_file(dir, "index.db");
    tree_remove_file(dir, "index.db-wal");
    tree_remove_file(dir, "index.db-shm");
}

static void test_torn_tail(const char *dir)
{
    AMP_BUF struct amp_buf whole = {0};
    amp_buf_init(&whole, 1 << 20);
    fill(dir, 3, false);
    load(dir);
    amp_buf_add(&whole, file.data, file.len, &err);
    size_t last = frame_at(3), wrong = 0, not_cut = 0;
    for (size_t n = last; n < whole.len; n++) {
        store_file(dir, "log/000001.ndjson", (struct amp_span){whole.data, n});
        if (n % 3 == 0)
            no_index(dir);
        wrong += present(dir, 3) != 2;
        load(dir);
        not_cut += n > last && !strstr(file.data + last, "\"log\":\"cut\"");
    }
    TAP_INT((int64_t)wrong, 0, "cut at every byte of the last frame, the others stand");
    TAP_INT((int64_t)not_cut, 0, "and a cut frame tells of it");
    store_file(dir, "log/000001.ndjson", amp_buf_span(&whole));
    TAP_INT(present(dir, 3), 3, "whole, all stand");
    char *zero = whole.data + last;
    memset(zero, 0, whole.len - last);
    store_file(dir, "log/000001.ndjson", amp_buf_span(&whole));
    new_boot(dir);
    TAP_INT(present(dir, 3), 2, "a tail of zeros is cut");
    fill(dir, 3, true);
    TAP_INT(present(dir, 3), 3, "and the log goes on");
}

static void test_read_only_torn(const char *dir)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000, .read_only = true};
    struct amp_store *r;
    struct amp_store_rec rec;
    fill(dir, 3, false);
    load(dir);
    size_t torn = file.len - 10;
    store_file(dir, "log/000001.ndjson", (struct amp_span){file.data, torn});
    for (int round = 0; round < 2; round++) {
        TAP_INT(amp_store_open(dir, &o, &r, &err), 0, "a reader opens a torn log");
        TAP_INT(amp_store_get(r, AMP_KEY("task", AMP_SPAN("k2")), &rec, &err), 0, "and reads");
        TAP_SPAN(rec.json, "{\"i\":2}", "what stands");
        TAP_INT(amp_store_get(r, AMP_KEY("task", AMP_SPAN("k3")), &rec, &err), 0, "again");
        TAP_OK(!rec.found, "and not what is torn");
        amp_store_close(r);
        no_index(dir);
    }
    load(dir);
    TAP_INT((int64_t)file.len, (int64_t)torn, "it cuts nothing");
}

static int take_gone(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *e)
{
    *c = (struct amp_store_change){.event = "end", .to = "B", .remove = true};
    return 0;
}

static int entry_count(void *ctx, const struct amp_store_entry *e, struct amp_error *why)
{
    struct amp_store_entry_id *id = ctx;
    if (!id->n)
        *id = (struct amp_store_entry_id){e->n, 0};
    id->index++;
    return 0;
}

static int state_count(void *ctx, struct amp_span kind, struct amp_span state, uint64_t n,
                       struct amp_error *e)
{
    *(uint64_t *)ctx += n;
    return 0;
}

static int key_note(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *e)
{
    return amp_buf_add(ctx, id.p, id.n, e) < 0 || amp_buf_str(ctx, " ", e) < 0 ? -1 : 0;
}

/* A reader whose index lacks frames adds these, and does not read the frames before them: one of
 * them is damaged, so a rebuilt index would be refused. */
static void test_reader_behind(const char *dir)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000, .read_only = true, .look = true};
    struct amp_store *r;
    struct amp_store_rec rec;
    struct amp_store_entry_id first = {0};
    uint64_t n = 0;
    char newer[3][8] = {"{\"i\":0}", "{\"i\":1}", "{\"i\":3}"};
    fill(dir, 300, true);
    load(dir);
    memset(file.data + frame_at(150) + 30, '!', 8);
    store_file(dir, "log/000001.ndjson", amp_buf_span(&file));
    struct amp_store *s = open_store(dir);
    amp_store_outbox(s, "c", entry_count, &first, &err);
    TAP_INT(amp_store_outbox_close(s, "c", &(struct amp_store_entry_id){first.n, 0}, 1, &err), 0,
            "a writer closes an entry");
    struct amp_store_input in = {"c", AMP_SPAN("new"), AMP_SPAN("b")};
    amp_store_update(s, AMP_KEY("task", AMP_SPAN("k20")), &in, take, newer[0], NULL, &err);
    amp_store_update(s, AMP_KEY("task", AMP_SPAN("k21")), NULL, take_gone, NULL, NULL, &err);
    amp_store_update(s, AMP_KEY("task", AMP_SPAN("k2a")), NULL, take, newer[1], NULL, &err);
    amp_store_close(s);

    TAP_INT(amp_store_open(dir, &o, &r, &err), 0, "a reader of an index that lacks frames");
    TAP_INT(amp_store_count(r, "task", &n, &err), 0, "does not read the log again");
    TAP_INT((int64_t)n, 300, "counts what was added and what was removed");
    n = 0;
    amp_store_tally(r, "task", state_count, &n, &err);
    TAP_INT((int64_t)n, 300, "as the tallies do");
    AMP_BUF struct amp_buf keys = {0};
    amp_buf_init(&keys, 4096);
    amp_store_each_of(r, "task", AMP_SPAN("k2"), key_note, &keys, &err);
    TAP_OK(amp_span_is((struct amp_span){keys.data, keys.len < 20 ? keys.len : 20},
                       "k20 k200 k201 k202 k"),
           "gives the keys in order");
    TAP_OK(!memmem(keys.data, keys.len, "k21 ", 4), "without the removed one");
    TAP_OK(keys.len > 4 && memcmp(keys.data + keys.len - 4, "k2a ", 4) == 0, "with the new one");
    amp_store_get(r, AMP_KEY("task", AMP_SPAN("k20")), &rec, &err);
    TAP_SPAN(rec.json, "{\"i\":0}", "reads the newest record");
    TAP_INT(amp_store_seen(r, &in, &err), AMP_STORE_SEEN, "knows the input");
    uint64_t closed = first.n;
    first = (struct amp_store_entry_id){0};
    amp_store_outbox(r, "c", entry_count, &first, &err);
    TAP_OK(first.n > closed, "and that the entry is closed");
    int64_t due = 0;
    amp_store_next_due(r, "task", &due, &err);
    TAP_INT(due, 5, "and the next deadline");

    s = open_store(dir);
    for (int i = 0; i < 200; i++)
        amp_store_update(s, AMP_KEY("task", AMP_SPAN("k22")), NULL, i % 2 ? take : take_gone,
                         newer[2], NULL, &err);
    amp_store_close(s);
    amp_buf_reset(&keys);
    amp_store_each_of(r, "task", AMP_SPAN("k2"), key_note, &keys, &err);
    amp_store_get(r, AMP_KEY("task", AMP_SPAN("k22")), &rec, &err);
    TAP_SPAN(rec.json, "{\"i\":3}", "it goes on behind a writer that brought the index up");
    TAP_OK(memmem(keys.data, keys.len, "k22 ", 4), "and lists it");
    amp_store_close(r);
}

static void test_lost_page(const char *dir)
{
    fill(dir, 3, true);
    struct amp_store *s = open_store(dir);
    for (int i = 4; i <= 6; i++) { /* in one turn's worth of unsynced frames */
        char id[16], json[16] = "{\"i\":0}";
        snprintf(id, sizeof id, "k%d", i);
        amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, json, NULL, &err);
    }
    store_abandon(s);
    load(dir);
    memset(file.data + frame_at(5) + 20, 0, 30);
    store_file(dir, "log/000001.ndjson", amp_buf_span(&file));
    new_boot(dir);
    TAP_INT(present(dir, 3), 3, "a hole before an unsynced frame that stands is a torn tail");
    load(dir);
    TAP_OK(strstr(file.data, "\"log\":\"cut\"") != NULL, "and is cut");
}

static void test_damage(const char *dir)
{
    AMP_BUF struct amp_buf said = {0};
    char where[40];
    amp_buf_init(&said, 4096);
    fill(dir, 6, true);
    load(dir);
    size_t at = frame_at(3);
    file.data[at + 60] ^= 1;
    store_file(dir, "log/000001.ndjson", amp_buf_span(&file));
    new_boot(dir);
    TAP_INT(present(dir, 6), -1, "a flipped bit in a frame that was durable is damage");
    TAP_STR(err.code, "log_damaged", "with its code");
    snprintf(where, sizeof where, "offset %zu ", at);
    TAP_OK(strstr(err.what, where) != NULL, "and the offset");
    load(dir);
    TAP_OK(!strstr(file.data, "\"log\":\"cut\""), "nothing is cut");
    no_index(dir);
    TAP_INT(present(dir, 6), -1, "nor without an index");
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "repair");
    TAP_INT(present(dir, 6), 5, "keeps all but that frame");
    TAP_OK(strstr(said.data, "damaged bytes") != NULL, "and says what it did");
    fill(dir, 3, true);
    TAP_INT(present(dir, 6), 6, "the log goes on");
    new_boot(dir);
    no_index(dir);
    TAP_INT(present(dir, 6), 6, "and can be read anew");
}

static void test_same_boot(const char *dir)
{
    fill(dir, 3, true);
    load(dir);
    store_file(dir, "log/000001.ndjson", (struct amp_span){file.data, frame_at(3)});
    TAP_INT(present(dir, 3), -1, "a synced frame that is missing in the same boot is damage");
    TAP_STR(err.code, "log_damaged", "with its code");
    store_file(dir, "log/000001.ndjson", (struct amp_span){file.data, frame_at(3) + 50});
    TAP_INT(present(dir, 3), -1, "as is half of it");
}

static char *dump(const char *dir, const char *name)
{
    struct amp_store *s = open_store(dir);
    int64_t due;
    amp_store_next_due(s, "task", &due, &err); /* a query by ranges brings the file up */
    amp_store_close(s);
    static const char *const queries[] = {
        "SELECT key||rev||state||due||seg||off||len||joff||jlen||n FROM rec ORDER BY key",
        "SELECT c||id||seg||off||len||n FROM seen ORDER BY c,id",
        "SELECT name||n FROM blob ORDER BY name",
        "SELECT n||i||c||seg||off||len FROM outbox ORDER BY n,i",
        "SELECT seg||off||len||n||sum||flags FROM meta",
    };
    struct amp_buf out;
    sqlite3 *db;
    amp_buf_init(&out, 1 << 20);
    sqlite3_open(path_of(dir, name), &db);
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        sqlite3_stmt *st;
        TAP_INT(sqlite3_prepare_v2(db, queries[i], -1, &st, NULL), SQLITE_OK, "a table is asked");
        while (sqlite3_step(st) == SQLITE_ROW)
            amp_buf_fmt(&out, &err, "%s\n", (const char *)sqlite3_column_text(st, 0));
        sqlite3_finalize(st);
    }
    sqlite3_close(db);
    return out.data;
}

static void test_index(const char *dir)
{
    fill(dir, 6, true);
    struct amp_store *s = open_store(dir);
    amp_store_outbox_acked(s, AMP_SPAN("out"), &err);
    amp_store_close(s);
    fill(dir, 9, true);
    AMP_FREE char *live = dump(dir, "index.db");
    tree_remove_file(dir, "index.db"); /* and its write-ahead log left behind */
    TAP_INT(present(dir, 9), 9, "a lost index is rebuilt");
    AMP_FREE char *built = dump(dir, "index.db");
    TAP_STR(built, live, "and is what it was");

    struct amp_buf old;
    amp_buf_init(&old, 1 << 20);
    amp_file_read(AT_FDCWD, path_of(dir, "index.db"), 1 << 20, &old, &err);
    fill(dir, 12, true);
    no_index(dir);
    store_file(dir, "index.db", amp_buf_span(&old));
    TAP_INT(present(dir, 12), 12, "a stale one is brought up to date");
    amp_buf_release(&old);

    struct amp_store *a = open_store(dir);
    struct amp_store_rec rec;
    TAP_INT(amp_store_get(a, AMP_KEY("task", AMP_SPAN("k1")), &rec, &err), 0, "one process reads");
    store_file(dir, "index.db",
               AMP_SPAN("this is not a database, it is a sentence of some length, "
                        "long enough to be taken for a file header of 100 bytes"));
    TAP_INT(present(dir, 12), 12, "garbage in its place makes another process build a new one");
    TAP_OK(tree_has(dir, "index.1.db"), "of the next generation");
    TAP_INT(amp_store_update(a, AMP_KEY("task", AMP_SPAN("k13")), NULL, take,
                             (char[]){"{\"i\":13}"}, NULL, &err),
            0, "the first process goes on");
    TAP_INT(present(dir, 13), 13, "and both see one log");
    amp_store_close(a);
    load(dir);
    TAP_OK(strstr(file.data, "\"log\":\"index\"") != NULL, "a frame tells of the new generation");
}

/* Who has it open goes on with what was removed, and then finds the new one. */
static void test_index_removed(const char *dir)
{
    fill(dir, 6, true);
    struct amp_store *s = open_store(dir);
    struct amp_store_rec rec;
    char id[16], json[32];
    int failed = amp_store_get(s, AMP_KEY("task", AMP_SPAN("k1")), &rec, &err) != 0;
    no_index(dir);
    for (int i = 7; i <= 100; i++) {
        snprintf(id, sizeof id, "k%d", i);
        snprintf(json, sizeof json, "{\"i\":%d}", i);
        failed += amp_store_update(s, AMP_KEY("task", amp_span_str(id)), NULL, take, json, NULL,
                                   &err) != 0;
    }
    TAP_INT(failed, 0, "the index goes, the work goes on");
    TAP_OK(tree_has(dir, "index.db"), "with a new one before long");
    TAP_INT(present(dir, 100), 100, "others see all of it");
    amp_store_close(s);
    no_index(dir);
    TAP_INT(present(dir, 100), 100, "and so does a last new one");
}

static void test_empty(const char *dir)
{
    char path[128];
    struct stat first, last;
    snprintf(path, sizeof path, "%s/index.db-wal", dir);
    for (int i = 0; i < 4; i++) {
        TAP_INT(present(dir, 1), 0, "a look at an empty state");
        if (stat(path, i ? &last : &first) != 0)
            TAP_OK(false, "there is an index");
    }
    TAP_OK(first.st_size > 0 && last.st_size == first.st_size, "does not write the index again");
    fill(dir, 3, false);
    TAP_INT(present(dir, 3), 3, "the first frames are found");
}

static void test_failed(const char *dir)
{
    AMP_BUF struct amp_buf said = {0};
    struct amp_store *s, *other;
    struct amp_store_rec rec;
    amp_buf_init(&said, 4096);
    fill(dir, 3, true);
    fill(dir, 4, false);
    other = open_store(dir);
    TAP_INT(amp_store_get(other, AMP_KEY("task", AMP_SPAN("k1")), &rec, &err), 0,
            "a process at work");
    store_file(dir, "log/FAILED", AMP_SPAN("x\n"));
    TAP_INT(amp_store_open(dir, NULL, &s, &err), -1, "after a failed write nobody opens the log");
    TAP_STR(err.code, "log_failed", "with its code");
    TAP_INT(err.status, AMP_TEMPFAIL, "outcome unknown");
    TAP_INT(amp_store_get(other, AMP_KEY("task", AMP_SPAN("k1")), &rec, &err), -1,
            "nor goes on with it");
    TAP_INT(amp_store_sync(other, &err), -1, "nor calls it durable");
    TAP_INT(amp_store_repair(dir, &said, &err), 0, "repair");
    TAP_OK(tree_has(dir, "log/000002.ndjson"), "writes the frames again, elsewhere");
    TAP_INT(present(dir, 4), 4, "all are there");
    TAP_INT(amp_store_update(other, AMP_KEY("task", AMP_SPAN("k5")), NULL, take,
                             (char[]){"{\"i\":5}"}, NULL, &err),
            0, "the process at work finds the new end");
    TAP_INT(present(dir, 5), 5, "and its frame is there too");
    amp_store_close(other);
    no_index(dir);
    new_boot(dir);
    TAP_INT(present(dir, 5), 5, "also when all is read anew");
}

int main(void)
{
    static void (*const tests[])(const char *) = {
        test_torn_tail, test_read_only_torn, test_reader_behind, test_lost_page, test_damage,
        test_same_boot, test_index,          test_index_removed, test_empty,     test_failed};
    amp_buf_init(&file, 1 << 20);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        char dir[64], sub[80];
        tree_temporary(dir, sizeof dir);
        snprintf(sub, sizeof sub, "%s/state", dir);
        tests[i](sub);
        tree_remove(dir);
    }
    amp_buf_release(&file);
    return tap_done();
}
