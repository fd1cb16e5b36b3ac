/*
 * The index in SQLite. Rows do not hold records, they hold where in the log a record stands; the
 * frame's checksum is checked again at each read. Write-ahead log, synchronous=NORMAL: after a
 * power loss it may be behind the log or ahead of it, which its meta row (the checksum of the last
 * frame) tells, and never torn.
 */
#include "store/index.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/id.h>
#include <amp/base/num.h>

enum { FORMAT = 1, BUSY_MS = 10000 };

static const char *const sql[AMP_IX_COUNT] = {
#define X(name, text) text,
    AMP_INDEX_STATEMENTS(X)
#undef X
};

static const char schema[] =
    "CREATE TABLE meta(seg INT,off INT,len INT,n INT,sum INT,flags INT,salt INT);"
    "CREATE TABLE rec(h INT,key TEXT,rev INT,state TEXT,due INT,seg INT,off INT,len INT,joff INT,"
    " jlen INT,n INT,PRIMARY KEY(h,key)) WITHOUT ROWID;"
    "CREATE INDEX rec_key ON rec(key);"
    "CREATE INDEX rec_due ON rec(due) WHERE due>0;"
    "CREATE TABLE seen(h INT,c TEXT,id TEXT,sum TEXT,n INT,PRIMARY KEY(h,c,id)) WITHOUT ROWID;"
    "CREATE TABLE outbox(n INT,i INT,h INT,c TEXT,seg INT,off INT,len INT,PRIMARY KEY(n,i))"
    " WITHOUT ROWID;"
    "CREATE INDEX outbox_h ON outbox(h);"
    "CREATE INDEX outbox_c ON outbox(c);";

static int failed(struct amp_index *ix, const char *what, struct amp_error *err)
{
    int rc = ix->db ? sqlite3_errcode(ix->db) : SQLITE_NOMEM;
    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_ERROR || rc == SQLITE_SCHEMA)
        ix->corrupt = true;
    return amp_fail(err, AMP_TEMPFAIL, "index_failed", "cannot %s the index: %s", what,
                    ix->db ? sqlite3_errmsg(ix->db) : "no memory");
}

void amp_index_init(struct amp_index *ix, int dirfd, const char *dir, bool read_only)
{
    *ix = (struct amp_index){.dirfd = dirfd, .dir = dir, .read_only = read_only};
}

void amp_index_close(struct amp_index *ix)
{
    for (int i = 0; i < AMP_IX_COUNT; i++) {
        sqlite3_finalize(ix->st[i]);
        ix->st[i] = NULL;
    }
    sqlite3_close(ix->db);
    ix->db = NULL;
    ix->writing = false;
    ix->reading = false;
    ix->memory = false;
    ix->pos = (struct amp_pos){0};
}

static void file_name(uint64_t gen, char out[48])
{
    if (gen)
        snprintf(out, 48, "index.%" PRIu64 ".db", gen);
    else
        snprintf(out, 48, "index.db");
}

/* The highest generation that has a file. */
static uint64_t highest(int dirfd)
{
    uint64_t gen = 0;
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return 0;
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        int64_t v;
        size_t n = strlen(e->d_name);
        if (n > 9 && strncmp(e->d_name, "index.", 6) == 0 &&
            strcmp(e->d_name + n - 3, ".db") == 0 &&
            amp_num_parse((struct amp_span){e->d_name + 6, n - 9}, 1, INT64_MAX, &v, NULL) == 0 &&
            (uint64_t)v > gen)
            gen = (uint64_t)v;
    }
    closedir(d);
    return gen;
}

bool amp_index_current(const struct amp_index *ix)
{
    char name[48];
    struct stat st;
    if (ix->memory)
        return true;
    file_name(ix->gen, name);
    return fstatat(ix->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == ix->dev &&
           st.st_ino == ix->ino;
}

static int on_wal(void *ctx, sqlite3 *db, const char *name, int pages)
{
    (void)db;
    (void)name;
    ((struct amp_index *)ctx)->wal_pages = pages;
    return SQLITE_OK;
}

/* Makes the tables of an empty file. */
static int create_schema(struct amp_index *ix, struct amp_error *err)
{
    char text[160];
    int64_t salt;
    amp_random(&salt, sizeof salt);
    if (sqlite3_exec(ix->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(ix->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return failed(ix, "make", err);
    snprintf(text, sizeof text,
             "INSERT INTO meta VALUES(0,0,0,0,0,0,%" PRId64 ");PRAGMA user_version=%d;COMMIT", salt,
             FORMAT);
    if (sqlite3_exec(ix->db, text, NULL, NULL, NULL) != SQLITE_OK)
        return failed(ix, "make", err);
    return 0;
}

static int user_version(struct amp_index *ix)
{
    sqlite3_stmt *st = NULL;
    int v = -1;
    if (sqlite3_prepare_v2(ix->db, "PRAGMA user_version", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        v = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    return v;
}

int amp_index_open(struct amp_index *ix, uint64_t gen, struct amp_error *err)
{
    char name[48], path[4200];
    struct stat st;
    amp_index_close(ix);
    ix->corrupt = false;
    uint64_t found = highest(ix->dirfd);
    ix->gen = found > gen ? found : gen;
    file_name(ix->gen, name);
    /* Made here first, so that its mode is ours and a symbolic link is refused. */
    int fd = openat(ix->dirfd, name,
                    (ix->read_only ? O_RDONLY : O_RDWR | O_CREAT) | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) != 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot open %s", name);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    close(fd);
    ix->dev = st.st_dev;
    ix->ino = st.st_ino;
    if (snprintf(path, sizeof path, "%s/%s", ix->dir, name) >= (int)sizeof path)
        return amp_fail(err, AMP_IOERR, "bad_path", "the state directory's path is too long");
    int flags = ix->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    if (sqlite3_open_v2(path, &ix->db, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
        return failed(ix, "open", err);
    sqlite3_busy_timeout(ix->db, BUSY_MS);
    /* A checkpoint at the end would sync twice for each run of a tool. */
    sqlite3_db_config(ix->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_wal_autocheckpoint(ix->db, 0);
    sqlite3_wal_hook(ix->db, on_wal, ix);
    if (!ix->read_only && st.st_size == 0 &&
        sqlite3_exec(ix->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL) != SQLITE_OK)
        return failed(ix, "open", err);
    if (sqlite3_exec(ix->db, "PRAGMA synchronous=NORMAL;PRAGMA cache_size=-16384", NULL, NULL,
                     NULL) != SQLITE_OK)
        return failed(ix, "open", err);
    if (amp_index_read_meta(ix, NULL) == 0)
        return 0;
    int version = user_version(ix);
    if (version == 0 && !ix->read_only) {
        ix->corrupt = false;
        if (create_schema(ix, err) != 0)
            return -1;
    }
    return amp_index_read_meta(ix, err);
}

int amp_index_open_memory(struct amp_index *ix, struct amp_error *err)
{
    amp_index_close(ix);
    ix->corrupt = false;
    if (sqlite3_open_v2(":memory:", &ix->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return failed(ix, "make", err);
    ix->memory = true;
    if (create_schema(ix, err) != 0)
        return -1;
    return amp_index_read_meta(ix, err);
}

sqlite3_stmt *amp_index_stmt(struct amp_index *ix, enum amp_index_statement which,
                             struct amp_error *err)
{
    sqlite3_stmt *st = ix->st[which];
    if (st) {
        sqlite3_reset(st);
        return st;
    }
    if (sqlite3_prepare_v3(ix->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, &ix->st[which],
                           NULL) != SQLITE_OK) {
        failed(ix, "ask", err);
        return NULL;
    }
    return ix->st[which];
}

int amp_index_step(struct amp_index *ix, sqlite3_stmt *st, struct amp_error *err)
{
    int rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        return 1;
    if (rc == SQLITE_DONE) {
        sqlite3_reset(st);
        return 0;
    }
    failed(ix, "use", err);
    sqlite3_reset(st);
    return -1;
}

static int run(struct amp_index *ix, enum amp_index_statement which, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(ix, which, err);
    return st && amp_index_step(ix, st, err) >= 0 ? 0 : -1;
}

static void bind_text(sqlite3_stmt *st, int i, struct amp_span v)
{
    sqlite3_bind_text(st, i, v.n ? v.p : "", (int)v.n, SQLITE_STATIC);
}

static void bind_u64(sqlite3_stmt *st, int i, uint64_t v)
{
    sqlite3_bind_int64(st, i, (sqlite3_int64)v);
}

static uint64_t column_u64(sqlite3_stmt *st, int i)
{
    return (uint64_t)sqlite3_column_int64(st, i);
}

int amp_index_read_meta(struct amp_index *ix, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_META, err);
    if (!st)
        return -1;
    int rc = amp_index_step(ix, st, err);
    if (rc < 0)
        return -1;
    if (rc == 0) {
        ix->corrupt = true;
        return amp_fail(err, AMP_TEMPFAIL, "index_failed", "the index has no meta row");
    }
    ix->pos = (struct amp_pos){
        .seg = (uint32_t)column_u64(st, 0),
        .off = column_u64(st, 1),
        .len = (uint32_t)column_u64(st, 2),
        .n = column_u64(st, 3),
        .sum = column_u64(st, 4),
        .loose = (sqlite3_column_int(st, 5) & 1) != 0,
        .sealed = (sqlite3_column_int(st, 5) & 2) != 0,
    };
    ix->salt = column_u64(st, 6);
    sqlite3_reset(st);
    return 0;
}

int amp_index_begin(struct amp_index *ix, struct amp_error *err)
{
    if (ix->writing)
        return 0;
    amp_index_end_read(ix);
    if (run(ix, AMP_IX_BEGIN, err) != 0)
        return -1;
    ix->writing = true;
    return 0;
}

int amp_index_begin_read(struct amp_index *ix, struct amp_error *err)
{
    if (ix->writing || ix->reading)
        return 0;
    if (run(ix, AMP_IX_BEGIN_READ, err) != 0)
        return -1;
    ix->reading = true;
    return 0;
}

void amp_index_end_read(struct amp_index *ix)
{
    if (ix->reading)
        run(ix, AMP_IX_COMMIT, NULL);
    ix->reading = false;
}

int amp_index_commit(struct amp_index *ix, const struct amp_pos *pos, struct amp_error *err)
{
    if (!ix->writing)
        return 0;
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_SET_META, err);
    if (!st)
        return -1;
    bind_u64(st, 1, pos->seg);
    bind_u64(st, 2, pos->off);
    bind_u64(st, 3, pos->len);
    bind_u64(st, 4, pos->n);
    bind_u64(st, 5, pos->sum);
    sqlite3_bind_int(st, 6, (pos->loose ? 1 : 0) | (pos->sealed ? 2 : 0));
    if (amp_index_step(ix, st, err) < 0 || run(ix, AMP_IX_COMMIT, err) != 0)
        return -1;
    ix->writing = false;
    ix->pos = *pos;
    return 0;
}

void amp_index_rollback(struct amp_index *ix)
{
    if (ix->writing && !sqlite3_get_autocommit(ix->db))
        run(ix, AMP_IX_ROLLBACK, NULL);
    ix->writing = false;
}

void amp_index_checkpoint(struct amp_index *ix, int above_pages, bool truncate)
{
    if (!ix->db || ix->memory || ix->read_only || ix->wal_pages <= above_pages)
        return;
    /* Whoever reads or checkpoints besides us is not waited for. */
    sqlite3_busy_timeout(ix->db, 0);
    if (sqlite3_wal_checkpoint_v2(ix->db, NULL,
                                  truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
                                  NULL, NULL) == SQLITE_OK)
        ix->wal_pages = 0;
    sqlite3_busy_timeout(ix->db, BUSY_MS);
}

int amp_index_wipe(struct amp_index *ix, struct amp_error *err)
{
    if (amp_index_begin(ix, err) != 0)
        return -1;
    if (sqlite3_exec(ix->db, "DELETE FROM rec;DELETE FROM seen;DELETE FROM outbox", NULL, NULL,
                     NULL) != SQLITE_OK)
        return failed(ix, "empty", err);
    return 0;
}

void amp_index_place(const struct amp_frame *f, const struct amp_pos *after,
                     struct amp_index_rec *out)
{
    *out = (struct amp_index_rec){
        .rev = f->rev,
        .due = f->due,
        .seg = after->seg,
        .off = after->off - after->len,
        .len = after->len,
        .joff = f->state_off,
        .jlen = f->state_blob.n ? 0 : (uint32_t)f->state.n,
    };
    amp_span_copy(f->to, out->state, sizeof out->state);
}

static int put_rec(struct amp_index *ix, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err)
{
    struct amp_index_rec r;
    sqlite3_stmt *st = amp_index_stmt(ix, f->gone ? AMP_IX_DEL_REC : AMP_IX_PUT_REC, err);
    if (!st)
        return -1;
    bind_u64(st, 1, amp_store_hash(ix->salt, f->key, (struct amp_span){0}));
    bind_text(st, 2, f->key);
    if (!f->gone) {
        amp_index_place(f, after, &r);
        bind_u64(st, 3, r.rev);
        bind_text(st, 4, amp_span_str(r.state));
        sqlite3_bind_int64(st, 5, r.due);
        bind_u64(st, 6, r.seg);
        bind_u64(st, 7, r.off);
        bind_u64(st, 8, r.len);
        bind_u64(st, 9, r.joff);
        bind_u64(st, 10, r.jlen);
        bind_u64(st, 11, f->head.n);
    }
    return amp_index_step(ix, st, err) < 0 ? -1 : 0;
}

static int put_out(struct amp_index *ix, const struct amp_frame *f, const struct amp_pos *after,
                   uint32_t i, struct amp_error *err)
{
    const struct amp_frame_out *o = &f->out[i];
    bool stand = f->head.log == AMP_FRAME_stand;
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_PUT_OUT, err);
    if (!st)
        return -1;
    bind_u64(st, 1, stand ? o->n : f->head.n);
    bind_u64(st, 2, stand ? o->i : i);
    bind_u64(st, 3, amp_store_hash(ix->salt, o->id, (struct amp_span){0}));
    bind_text(st, 4, amp_frame_consumer(f, i));
    bind_u64(st, 5, after->seg);
    bind_u64(st, 6, after->off - after->len);
    bind_u64(st, 7, after->len);
    return amp_index_step(ix, st, err) < 0 ? -1 : 0;
}

int amp_index_apply(struct amp_index *ix, const struct amp_frame *f, const struct amp_pos *after,
                    struct amp_error *err)
{
    sqlite3_stmt *st;
    if (amp_index_begin(ix, err) != 0)
        return -1;
    if (f->key.n && put_rec(ix, f, after, err) != 0)
        return -1;
    if (f->in_id.n) {
        if (!(st = amp_index_stmt(ix, AMP_IX_PUT_SEEN, err)))
            return -1;
        bind_u64(st, 1, amp_store_hash(ix->salt, f->in_id, f->in_consumer));
        bind_text(st, 2, f->in_consumer);
        bind_text(st, 3, f->in_id);
        bind_text(st, 4, f->in_sum);
        bind_u64(st, 5, f->head.n);
        if (amp_index_step(ix, st, err) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < f->n_out; i++)
        if (put_out(ix, f, after, i, err) != 0)
            return -1;
    for (uint32_t i = 0; i < f->n_close; i++) {
        if (!(st = amp_index_stmt(ix, AMP_IX_DEL_OUT, err)))
            return -1;
        bind_u64(st, 1, f->close[i].n);
        bind_u64(st, 2, f->close[i].i);
        if (amp_index_step(ix, st, err) < 0)
            return -1;
    }
    return 0;
}

int amp_index_rec(struct amp_index *ix, struct amp_span key, struct amp_index_rec *out,
                  struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_REC, err);
    if (!st)
        return -1;
    bind_u64(st, 1, amp_store_hash(ix->salt, key, (struct amp_span){0}));
    bind_text(st, 2, key);
    int rc = amp_index_step(ix, st, err);
    if (rc == 1) {
        amp_index_read_rec(st, 0, out);
        sqlite3_reset(st);
    }
    return rc;
}

void amp_index_read_rec(sqlite3_stmt *st, int column, struct amp_index_rec *out)
{
    *out = (struct amp_index_rec){
        .rev = column_u64(st, column),
        .due = sqlite3_column_int64(st, column + 2),
        .seg = (uint32_t)column_u64(st, column + 3),
        .off = column_u64(st, column + 4),
        .len = (uint32_t)column_u64(st, column + 5),
        .joff = (uint32_t)column_u64(st, column + 6),
        .jlen = (uint32_t)column_u64(st, column + 7),
    };
    const unsigned char *state = sqlite3_column_text(st, column + 1);
    snprintf(out->state, sizeof out->state, "%s", state ? (const char *)state : "");
}

int amp_index_seen(struct amp_index *ix, struct amp_span consumer, struct amp_span id, char sum[72],
                   struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_SEEN, err);
    if (!st)
        return -1;
    bind_u64(st, 1, amp_store_hash(ix->salt, id, consumer));
    bind_text(st, 2, consumer);
    bind_text(st, 3, id);
    int rc = amp_index_step(ix, st, err);
    if (rc == 1) {
        snprintf(sum, 72, "%s", (const char *)sqlite3_column_text(st, 0));
        sqlite3_reset(st);
    }
    return rc;
}
