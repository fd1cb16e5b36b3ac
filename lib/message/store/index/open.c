/*
 * The files of the index: finding the current one, opening it, making its tables. A corrupt file,
 * or one that is not an index, is left unchanged; the next generation replaces it.
 */
#include "message/store/index/index.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "base/codes.h"
#include "message/store/index/pages.h"

enum { FORMAT = 5 };

static const char schema[] =
    "CREATE TABLE meta(seg INT,off INT,len INT,n INT,sum INT,flags INT,salt INT,tally INT);"
    "CREATE TABLE rec(key TEXT PRIMARY KEY,rev INT,state TEXT,due INT,seg INT,off INT,len INT,"
    " joff INT,jlen INT,n INT,ck INT) WITHOUT ROWID;"
    "CREATE INDEX rec_due ON rec(due) WHERE due>0;"
    "CREATE TABLE seen(c TEXT,id TEXT,seg INT,off INT,len INT,n INT,ck INT,PRIMARY KEY(c,id))"
    " WITHOUT ROWID;"
    "CREATE TABLE blob(name TEXT PRIMARY KEY,n INT,ck INT) WITHOUT ROWID;"
    "CREATE TABLE outbox(n INT,i INT,h INT,c TEXT,seg INT,off INT,len INT,ck INT,PRIMARY KEY(n,i))"
    " WITHOUT ROWID;"
    "CREATE INDEX outbox_h ON outbox(h);"
    "CREATE INDEX outbox_c ON outbox(c);"
    "CREATE TABLE tally(kind TEXT,state TEXT,n INT,ck INT,PRIMARY KEY(kind,state)) WITHOUT ROWID;";

void amp_index_statements_end(struct amp_index *ix)
{
    for (int i = 0; i < AMP_IX_COUNT; i++) {
        sqlite3_finalize(ix->st[i]);
        ix->st[i] = NULL;
    }
}

void amp_index_close(struct amp_index *ix)
{
    amp_index_statements_end(ix);
    sqlite3_close(ix->db);
    free(ix->tally.v);
    ix->tally = (struct amp_index_tally){0};
    ix->db = NULL;
    ix->writing = false;
    ix->reading = false;
    ix->memory = false;
    ix->overlay = false;
    ix->checked = false;
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
static uint64_t highest_generation(int dirfd)
{
    uint64_t gen = 0;
    AMP_DIR DIR *d = amp_dir_open(dirfd, ".");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        int64_t v;
        size_t n = strlen(e->d_name);
        if (n > 9 && strncmp(e->d_name, "index.", 6) == 0 &&
            strcmp(e->d_name + n - 3, ".db") == 0 &&
            amp_num_parse((struct amp_span){e->d_name + 6, n - 9}, 1, INT64_MAX, &v, NULL) == 0 &&
            (uint64_t)v > gen)
            gen = (uint64_t)v;
    }
    return gen;
}

bool amp_index_current(const struct amp_index *ix)
{
    struct stat st;
    char name[48];
    if (ix->memory)
        return true;
    file_name(ix->gen, name);
    return fstatat(ix->dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == ix->dev &&
           st.st_ino == ix->ino;
}

static int on_wal(void *ctx, sqlite3 *db, const char *name, int pages)
{
    ((struct amp_index *)ctx)->wal_pages = pages;
    return SQLITE_OK;
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
        return amp_fail(err, AMP_TEMPFAIL, index_failed, "the index has no meta row");
    }
    ix->pos = (struct amp_pos){
        .seg = (uint32_t)(uint64_t)sqlite3_column_int64(st, 0),
        .off = (uint64_t)sqlite3_column_int64(st, 1),
        .len = (uint32_t)(uint64_t)sqlite3_column_int64(st, 2),
        .n = (uint64_t)sqlite3_column_int64(st, 3),
        .sum = (uint64_t)sqlite3_column_int64(st, 4),
        .loose = (sqlite3_column_int(st, 5) & 1) != 0,
        .sealed = (sqlite3_column_int(st, 5) & 2) != 0,
        .open = (sqlite3_column_int(st, 5) & 4) != 0,
    };
    ix->salt = (uint64_t)sqlite3_column_int64(st, 6);
    sqlite3_reset(st);
    return 0;
}

/* Makes the tables of an empty file. */
static int create_schema(struct amp_index *ix, struct amp_error *err)
{
    char text[160];
    int64_t salt;
    amp_random(&salt, sizeof salt);
    amp_index_will_write(ix);
    if (sqlite3_exec(ix->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(ix->db, schema, NULL, NULL, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "make", err);
    snprintf(text, sizeof text,
             "INSERT INTO meta VALUES(0,0,0,0,0,0,%" PRId64 ",0);PRAGMA user_version=%d;COMMIT",
             salt, FORMAT);
    if (sqlite3_exec(ix->db, text, NULL, NULL, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "make", err);
    amp_index_has_written(ix);
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

/* Finds or creates the file, so that it has the right mode. An existing file is not opened and
 * closed: closing would release the locks that a second store of this process has on it. */
static int find_file(struct amp_index *ix, const char *name, struct stat *st, struct amp_error *err)
{
    char beside[64];
    if (fstatat(ix->dirfd, name, st, AT_SYMLINK_NOFOLLOW) == 0) {
        if (!S_ISREG(st->st_mode))
            return amp_fail(err, AMP_IOERR, bad_path, "%s is not a regular file", name);
        return 0;
    }
    if (ix->read_only)
        return amp_fail_errno(err, AMP_IOERR, "cannot find %s", name);
    /* Remove what a removed index left. */
    static const char *const left[] = {"-wal", "-shm", AMP_PAGES_SUFFIX};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        snprintf(beside, sizeof beside, "%s%s", name, left[i]);
        unlinkat(ix->dirfd, beside, 0);
    }
    AMP_CLOSE int fd =
        openat(ix->dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, st) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot make %s", name);
    return 0;
}

int amp_index_open(struct amp_index *ix, uint64_t gen, struct amp_error *err)
{
    char name[48], path[4200];
    struct stat st;
    amp_index_close(ix);
    ix->corrupt = false;
    uint64_t found = highest_generation(ix->dirfd);
    ix->gen = found > gen ? found : gen;
    file_name(ix->gen, name);
    if (find_file(ix, name, &st, err) < 0)
        return -1;
    ix->dev = st.st_dev;
    ix->ino = st.st_ino;
    if (snprintf(path, sizeof path, "%s/%s", ix->dir, name) >= (int)sizeof path)
        return amp_fail(err, AMP_IOERR, bad_path, "the state directory's path is too long");
    int flags = ix->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    const char *vfs = amp_pages_vfs();
    if (!vfs || sqlite3_open_v2(path, &ix->db, flags | SQLITE_OPEN_NOMUTEX, vfs) != SQLITE_OK)
        return amp_index_failed(ix, "open", err);
    sqlite3_busy_timeout(ix->db, AMP_INDEX_BUSY_MS);
    /* A checkpoint at close would sync twice for each run of a tool. */
    sqlite3_db_config(ix->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    sqlite3_wal_autocheckpoint(ix->db, 0);
    sqlite3_wal_hook(ix->db, on_wal, ix);
    /* A new file has one page by then; after a power loss it is made again. */
    if (!ix->read_only && st.st_size == 0 &&
        sqlite3_exec(ix->db, "PRAGMA synchronous=OFF;PRAGMA journal_mode=WAL", NULL, NULL, NULL) !=
            SQLITE_OK)
        return amp_index_failed(ix, "open", err);
    if (sqlite3_exec(ix->db, "PRAGMA synchronous=NORMAL;PRAGMA cache_size=-16384", NULL, NULL,
                     NULL) != SQLITE_OK)
        return amp_index_failed(ix, "open", err);
    int version = user_version(ix);
    if (version > 0 && version != FORMAT) {
        ix->corrupt = true;
        return amp_fail(err, AMP_TEMPFAIL, index_failed, "the index has another format");
    }
    if (amp_index_read_meta(ix, NULL) == 0) {
        if (!amp_pages_complete(ix->db, ix->pos.n))
            return amp_index_wrong(ix, "a part of its write-ahead log is missing", err);
        return 0;
    }
    if (version == 0 && !ix->read_only) {
        ix->corrupt = false;
        if (create_schema(ix, err) < 0)
            return -1;
    }
    return amp_index_read_meta(ix, err);
}

int amp_index_open_memory(struct amp_index *ix, struct amp_error *err)
{
    amp_index_close(ix);
    ix->corrupt = false;
    if (sqlite3_open_v2("", &ix->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL) !=
            SQLITE_OK ||
        sqlite3_exec(ix->db, "PRAGMA journal_mode=OFF;PRAGMA cache_size=-16384", NULL, NULL,
                     NULL) != SQLITE_OK)
        return amp_index_failed(ix, "make", err);
    ix->memory = true;
    if (create_schema(ix, err) < 0)
        return -1;
    return amp_index_read_meta(ix, err);
}
