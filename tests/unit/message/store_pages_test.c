/* Damage of the index's files: which is found, by which message, and that what is answered is right
 * in any case. PAGES_ROUNDS changes how many pages the store is opened with. */
#include <amp/base/file.h>
#include <amp/base/num.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../tap.h"
#include "../tree.h"
#include "message/store/index/index.h"
#include "message/store/index/pages.h"
#include "message/store/store.h"

enum { KEYS = 700, HALF = KEYS / 2, ROUNDS = 8, FILE_MAX = 1 << 22 };

static struct amp_error err;
static char dir[80];

/* The index's files at a time, and the log's. */
static const char *const files[] = {"index.db", "index.db-sums", "index.db-wal",
                                    "log/000001.ndjson", "keys/log.end"};
enum { DB, SUMS, WAL, LOG, FILES = LOG + 2 };
struct copy {
    struct amp_buf file[FILES];
};
static struct copy early, late;

static int take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                struct amp_error *e)
{
    *c = (struct amp_store_change){
        .event = "step", .to = now->found ? "AGAIN" : "NEW", .json = amp_span_str(ctx)};
    c->due_ms = 5;
    return 0;
}

static struct amp_store *store_open(void)
{
    struct amp_store_options o = {.lock_timeout_ms = 5000};
    struct amp_store *s = NULL;
    if (amp_store_open(dir, &o, &s, &err) < 0)
        printf("# open: %s %s\n", err.code, err.what);
    return s;
}

static void key_of(int i, char id[24])
{
    snprintf(id, 24, "key-%04d", i);
}

/* The next revision of the keys from..to, in the index's file when the store is closed. */
static void fill(int from, int to)
{
    struct amp_store *s = store_open();
    amp_store_begin(s, &err);
    for (int i = from; i <= to; i++) {
        char id[24], json[80];
        key_of(i, id);
        snprintf(json, sizeof json, "{\"i\":%d}", i);
        struct amp_store_input in = {"c", amp_span_str(id), AMP_SPAN("b")};
        if (amp_store_update(s, AMP_KEY("task", amp_span_str(id)), to - from > HALF ? &in : NULL,
                             take, json, NULL, &err) < 0)
            printf("# fill: %s %s\n", err.code, err.what);
    }
    amp_store_end(s);
    amp_store_sync(s, &err);
    amp_store_close(s);
}

static int index_open(struct amp_index *ix, int *fd)
{
    *fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    amp_index_init(ix, *fd, dir, false);
    return amp_index_open(ix, 0, &err);
}

/* Moves the write-ahead log into the file. truncate: and empties it. */
static void checkpoint(bool truncate)
{
    struct amp_index ix;
    int fd;
    if (index_open(&ix, &fd) < 0)
        printf("# checkpoint: %s %s\n", err.code, err.what);
    amp_index_checkpoint(&ix, -1, truncate);
    amp_index_close(&ix);
    close(fd);
}

static const char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void copy_read(struct copy *c)
{
    for (int i = 0; i < FILES; i++) {
        amp_buf_release(&c->file[i]);
        amp_buf_init(&c->file[i], FILE_MAX);
        amp_file_read(AT_FDCWD, path_of(files[i]), FILE_MAX, &c->file[i], NULL);
    }
}

static void file_put(int i, struct amp_span data)
{
    AMP_CLOSE int fd = open(path_of(files[i]), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || amp_write_all(fd, data, &err) < 0)
        printf("# cannot write %s\n", files[i]);
}

/* The files as they were, after a restart of the machine: the index of c, the log of `log`. */
static void both_put(const struct copy *c, const struct copy *log)
{
    for (int i = 1; i < 9; i++) {
        char name[80];
        snprintf(name, sizeof name, "index.%d.db", i);
        tree_remove_file(dir, name);
        snprintf(name, sizeof name, "index.%d.db-wal", i);
        tree_remove_file(dir, name);
        snprintf(name, sizeof name, "index.%d.db-sums", i);
        tree_remove_file(dir, name);
    }
    tree_remove_file(dir, "index.db-shm");
    tree_remove_file(dir, "log/watermark");
    for (int i = 0; i < FILES; i++)
        file_put(i, amp_buf_span(i < LOG ? &c->file[i] : &log->file[i]));
}

static void copy_put(const struct copy *c)
{
    both_put(c, c);
}

struct rows {
    int n, wrong;
};

static int row_count(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                     struct amp_error *e)
{
    struct rows *r = ctx;
    char want[80];
    r->n++;
    key_of(r->n, want);
    r->wrong += !amp_span_is(id, want) || rec->rev != 2;
    return 0;
}

/* How many answers are wrong. */
static int wrong(void)
{
    struct amp_store *s = store_open();
    struct rows rows = {0};
    int bad = 0;
    for (int i = 1; s && i <= KEYS; i++) {
        char id[24], json[80];
        struct amp_store_rec rec = {0};
        key_of(i, id);
        snprintf(json, sizeof json, "{\"i\":%d}", i);
        if (amp_store_get(s, AMP_KEY("task", amp_span_str(id)), &rec, &err) < 0 || !rec.found ||
            rec.rev != 2 || !amp_span_is(rec.json, json))
            bad++;
    }
    if (!s || amp_store_each(s, "task", NULL, row_count, &rows, &err) < 0 || rows.n != KEYS)
        bad += KEYS;
    /* A redelivery changes nothing. */
    enum amp_store_outcome what = AMP_STORE_COMMITTED;
    struct amp_store_input in = {"c", AMP_SPAN("key-0001"), AMP_SPAN("b")};
    if (!s ||
        amp_store_update(s, AMP_KEY("task", AMP_SPAN("key-0001")), &in, take, (char[]){"{}"}, &what,
                         &err) < 0 ||
        what != AMP_STORE_REDELIVERED)
        bad++;
    amp_store_close(s);
    return bad + rows.wrong;
}

/* Whether reading the complete index fails with this text. */
static bool is_found(const char *text)
{
    struct amp_index ix;
    int fd, rc = index_open(&ix, &fd);
    if (rc == 0)
        rc = amp_index_check(&ix, &err);
    bool corrupt = ix.corrupt;
    amp_index_close(&ix);
    close(fd);
    return rc < 0 && corrupt && strcmp(err.code, "index_failed") == 0 && strstr(err.what, text);
}

enum damage { FLIP, ZERO, OLDER, SWAP, CUT, DAMAGES };
static const char *const names[] = {
    [FLIP] = "with a flipped bit",
    [ZERO] = "with zeros",
    [OLDER] = "from an earlier time",
    [SWAP] = "in another's place",
    [CUT] = "behind the end of a shorter file",
};

/* Damages page p (from 0 on) of the late index. false: it would stay as it is. */
static bool page_damage(enum damage how, size_t p)
{
    static char data[FILE_MAX];
    const struct amp_buf *now = &late.file[DB], *old = &early.file[DB];
    size_t n = now->len, at = p * AMP_PAGE;
    memcpy(data, now->data, n);
    switch (how) {
    case FLIP:
        data[at + (p * 131 + 17) % AMP_PAGE] ^= (char)(1 << (p % 8));
        break;
    case ZERO:
        memset(data + at, 0, AMP_PAGE);
        break;
    case OLDER:
        if (at + AMP_PAGE > old->len)
            return false;
        memcpy(data + at, old->data + at, AMP_PAGE);
        break;
    case SWAP:
        if (at + 2 * AMP_PAGE > n)
            return false;
        memcpy(data + at, now->data + at + AMP_PAGE, AMP_PAGE);
        memcpy(data + at + AMP_PAGE, now->data + at, AMP_PAGE);
        break;
    case CUT:
        n = at;
        break;
    default:
        return false;
    }
    if (n == now->len && memcmp(data, now->data, n) == 0)
        return false;
    copy_put(&late);
    file_put(DB, (struct amp_span){data, n});
    return true;
}

static int rounds(void)
{
    const char *text = getenv("PAGES_ROUNDS");
    int64_t n = ROUNDS;
    if (text)
        amp_num_parse(amp_span_str(text), 1, 1000000, &n, NULL);
    return (int)n;
}

static void test_pages(void)
{
    size_t pages = late.file[DB].len / AMP_PAGE;
    for (enum damage how = FLIP; how < DAMAGES; how++) {
        int tried = 0, missed = 0, bad = 0, renewed = 0, opened = 0;
        for (size_t p = how == CUT; p < pages; p++) {
            char text[60] = "is not what was written";
            if (!page_damage(how, p))
                continue;
            tried++;
            if (how == CUT) /* which SQLite itself may find */
                text[0] = '\0';
            else if (how != SWAP) /* which damages two pages */
                snprintf(text, sizeof text, "page %zu is not what was written", p + 1);
            if (!is_found(text) && missed++ < 5)
                printf("# page %zu %s: %s\n", p + 1, names[how], err.what);
        }
        for (size_t p = 0; p < pages && opened < rounds(); p += 1 + pages / (size_t)rounds()) {
            if (!page_damage(how, p))
                continue;
            opened++;
            bad += wrong();
            renewed += tree_has(dir, "index.1.db");
        }
        TAP_OK(tried >= (how == OLDER ? 10 : 25) && missed == 0,
               "each of %d pages %s is found, by index_failed", tried, names[how]);
        TAP_OK(opened > 1 && bad == 0, "and with %d of them all is answered right (%d new indexes)",
               opened, renewed);
    }
}

static void all_right(const char *what, bool new_index)
{
    int n = wrong();
    TAP_OK(n == 0, "%s: all is answered right: %d", what, n);
    TAP_INT(tree_has(dir, "index.1.db"), new_index, new_index ? "by a new index" : "by this index");
}

static void test_copies(void)
{
    copy_put(&late);
    all_right("nothing damaged", false);
    both_put(&early, &late);
    all_right("an earlier copy of all files", false);
    copy_put(&late);
    file_put(DB, amp_buf_span(&early.file[DB]));
    TAP_OK(is_found("is not what was written"), "an earlier copy of the index alone is found: %s",
           err.what);
    copy_put(&late);
    file_put(DB, amp_buf_span(&early.file[DB]));
    all_right("an earlier copy of the index alone", true);
    copy_put(&late);
    file_put(SUMS, amp_buf_span(&early.file[SUMS]));
    all_right("earlier checksums", true);
}

static void test_sums(void)
{
    copy_put(&late);
    tree_remove_file(dir, "index.db-sums");
    all_right("without checksums", false);
    TAP_OK(!is_found(""), "they are made again");
    page_damage(ZERO, 9);
    tree_remove_file(dir, "index.db-sums");
    all_right("without checksums, and a page with zeros", true);
    copy_put(&late);
    file_put(SUMS, (struct amp_span){late.file[SUMS].data, 200});
    all_right("checksums cut short", true);
    int bad = 0, tried = 0;
    for (size_t i = 0; i < late.file[SUMS].len; i += 29) {
        copy_put(&late);
        char *p = late.file[SUMS].data + i;
        *p ^= 4;
        file_put(SUMS, amp_buf_span(&late.file[SUMS]));
        *p ^= 4;
        bad += wrong();
        tried++;
    }
    TAP_OK(tried > 10 && bad == 0, "with each of %d flipped bits in them all is answered right",
           tried);
}

/* The write-ahead log was moved into the file, but is still there. */
static void test_wal(void)
{
    static struct copy both;
    both_put(&early, &late);
    struct amp_store *s = store_open();
    int64_t due;
    for (int i = 0; i < 3; i++) {
        struct amp_store_rec rec;
        amp_store_update(s, AMP_KEY("other", AMP_SPAN("x")), NULL, take, (char[]){"{}"}, NULL,
                         &err);
        amp_store_sync(s, &err);
        amp_store_get(s, AMP_KEY("task", AMP_SPAN("key-0001")), &rec, &err);
        amp_store_next_due(s, "task", &due, &err);
    }
    amp_store_close(s);
    checkpoint(false);
    copy_read(&both);
    size_t wal = both.file[WAL].len;
    TAP_OK(wal > 5 * AMP_PAGE, "the write-ahead log has %zu bytes", wal);
    copy_put(&both);
    all_right("a write-ahead log that was moved into the file", false);
    copy_put(&both);
    tree_remove_file(dir, "index.db-wal");
    all_right("and then removed", false);
    int bad = 0, tried = 0, found = 0;
    for (size_t n = 0; n < wal; n += 2000) {
        copy_put(&both);
        file_put(WAL, (struct amp_span){both.file[WAL].data, n});
        found += is_found("a part of its write-ahead log is missing");
        copy_put(&both);
        file_put(WAL, (struct amp_span){both.file[WAL].data, n});
        bad += wrong();
        tried++;
    }
    TAP_OK(found > 1 && bad == 0, "cut at %d places all is answered right; %d are found", tried,
           found);
    /* As if it was lost while its pages were moved. */
    copy_put(&both);
    AMP_CLOSE int fd = open(path_of("index.db-sums"), O_WRONLY | O_CLOEXEC);
    TAP_INT(pwrite(fd, "\1", 1, 32), 1, "the pages are being moved");
    copy_read(&both);
    TAP_OK(!is_found(""), "with the write-ahead log the index is complete");
    copy_put(&both);
    tree_remove_file(dir, "index.db-wal");
    TAP_OK(is_found("a part of its write-ahead log is missing"), "without it, it is not: %s",
           err.what);
    copy_put(&both);
    tree_remove_file(dir, "index.db-wal");
    all_right("lost while its pages were moved", true);
    for (int i = 0; i < FILES; i++)
        amp_buf_release(&both.file[i]);
}

static void sqlite_run(const char *sql)
{
    sqlite3 *db;
    TAP_INT(sqlite3_open(path_of("index.db"), &db), SQLITE_OK, "SQLite opens the index");
    TAP_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "and changes it");
    sqlite3_close(db);
}

static void test_others(void)
{
    static const char sql[] = "DELETE FROM rec WHERE key LIKE '%key-0123'";
    struct amp_store_rec rec;
    copy_put(&late);
    sqlite_run(sql);
    TAP_OK(is_found("is not what was written"), "a row that another program deleted is found: %s",
           err.what);
    copy_put(&late);
    sqlite_run(sql);
    all_right("a row that another program deleted", true);

    /* While a process has it open, so that it stays in the write-ahead log. */
    copy_put(&late);
    struct amp_store *s = store_open();
    int64_t due;
    amp_store_update(s, AMP_KEY("other", AMP_SPAN("y")), NULL, take, (char[]){"{}"}, NULL, &err);
    amp_store_next_due(s, "task", &due, &err);
    sqlite_run(sql);
    TAP_INT(amp_store_get(s, AMP_KEY("task", AMP_SPAN("key-0123")), &rec, &err), 0,
            "a row deleted in the write-ahead log");
    TAP_OK(rec.found && rec.rev == 2, "is there");
    amp_store_close(s);
    TAP_OK(tree_has(dir, "index.1.db"), "by a new index");

    copy_put(&late);
    tree_remove_file(dir, "index.db-sums");
    tree_remove_file(dir, "index.db");
    tree_remove_file(dir, "index.db-wal");
    sqlite_run("PRAGMA page_size=1024;CREATE TABLE meta(seg);PRAGMA user_version=4");
    all_right("a database of another program", true);
}

int main(void)
{
    char base[64];
    tree_temporary(base, sizeof base);
    snprintf(dir, sizeof dir, "%s/state", base);
    fill(1, KEYS);
    fill(1, HALF);
    checkpoint(true);
    copy_read(&early);
    fill(HALF + 1, KEYS);
    checkpoint(true);
    copy_read(&late);
    TAP_INT(wrong(), 0, "all is there");
    test_pages();
    test_copies();
    test_sums();
    test_wal();
    test_others();
    for (int i = 0; i < FILES; i++) {
        amp_buf_release(&early.file[i]);
        amp_buf_release(&late.file[i]);
    }
    tree_remove(base);
    return tap_done();
}
