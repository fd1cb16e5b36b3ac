/*
 * Whether the index is what was written to it. Each row ends with a checksum of its other columns,
 * keyed by the salt of the meta row: a row that a fault of the disk changed is noticed when it is
 * read. A row that is gone is noticed only by going through all of them.
 */
#include "store/index/index.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

enum { NUMBERS_MAX = 8 };

/* A row's columns, but for the checksum: t text, i integer. */
static const struct {
    const char *columns, *query;
} tables[] = {
    [AMP_INDEX_REC] = {"titiiiiiii", "SELECT * FROM rec"},
    [AMP_INDEX_SEEN] = {"ttiiii", "SELECT * FROM seen"},
    [AMP_INDEX_BLOB] = {"ti", "SELECT * FROM blob"},
    [AMP_INDEX_OUT] = {"iiitiii", "SELECT * FROM outbox"},
};

uint64_t amp_index_row_sum(const struct amp_index *ix, enum amp_index_table table,
                           struct amp_span a, struct amp_span b, const uint64_t *v, unsigned n)
{
    uint64_t h = amp_store_hash(ix->salt + table, a, b);
    return amp_store_hash(h ^ a.n, (struct amp_span){(const char *)v, n * sizeof *v},
                          (struct amp_span){0});
}

static bool row_fits(const struct amp_index *ix, sqlite3_stmt *st, enum amp_index_table table)
{
    const char *columns = tables[table].columns;
    struct amp_span text[2] = {{0}};
    uint64_t v[NUMBERS_MAX];
    unsigned n_text = 0, n = 0;
    int i = 0;
    for (; columns[i]; i++) {
        if (columns[i] == 'i') {
            if (sqlite3_column_type(st, i) != SQLITE_INTEGER)
                return false;
            v[n++] = (uint64_t)sqlite3_column_int64(st, i);
        } else {
            if (sqlite3_column_type(st, i) != SQLITE_TEXT)
                return false;
            text[n_text].p = sqlite3_column_blob(st, i);
            text[n_text].n = text[n_text].p ? (size_t)sqlite3_column_bytes(st, i) : 0;
            n_text++;
        }
    }
    return sqlite3_column_type(st, i) == SQLITE_INTEGER &&
           (uint64_t)sqlite3_column_int64(st, i) ==
               amp_index_row_sum(ix, table, text[0], text[1], v, n);
}

int amp_index_wrong(struct amp_index *ix, const char *what, struct amp_error *err)
{
    ix->corrupt = true;
    return amp_fail(err, AMP_TEMPFAIL, "index_failed", "the index is damaged: %s", what);
}

int amp_index_next(struct amp_index *ix, sqlite3_stmt *st, enum amp_index_table table,
                   struct amp_error *err)
{
    int rc = amp_index_step(ix, st, err);
    if (rc != 1 || row_fits(ix, st, table))
        return rc;
    sqlite3_reset(st);
    return amp_index_wrong(ix, "a row is not what was written", err);
}

static int check_structure(struct amp_index *ix, struct amp_error *err)
{
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(ix->db, "PRAGMA integrity_check(1)", -1, &st, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "check", err);
    int rc = sqlite3_step(st);
    const char *said = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(st, 0) : NULL;
    bool sound = said && strcmp(said, "ok") == 0;
    if (rc != SQLITE_ROW)
        amp_index_failed(ix, "check", err);
    sqlite3_finalize(st);
    if (rc == SQLITE_ROW && !sound)
        return amp_index_wrong(ix, "its structure is not sound", err);
    return sound ? 0 : -1;
}

static int check_table(struct amp_index *ix, enum amp_index_table table, struct amp_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc;
    if (sqlite3_prepare_v2(ix->db, tables[table].query, -1, &st, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "check", err);
    while ((rc = amp_index_next(ix, st, table, err)) == 1)
        continue;
    sqlite3_finalize(st);
    return rc;
}

int amp_index_check(struct amp_index *ix, struct amp_error *err)
{
    if (check_structure(ix, err) != 0)
        return -1;
    for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
        if (check_table(ix, t, err) != 0)
            return -1;
    return 0;
}

/* When the file was written last, in a number that is not 0; 0: it cannot be told. */
static uint64_t written(const struct amp_index *ix)
{
    struct stat st;
    if (amp_index_stat(ix, &st) != 0 || st.st_ino != ix->ino)
        return 0;
    return ((uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec) | 1;
}

bool amp_index_trusted(const struct amp_index *ix)
{
    uint64_t known;
    if (ix->memory || ix->checked)
        return true;
    if (!ix->wm || !amp_wm_index(ix->wm, ix->ino, &known))
        return false;
    return !known || known == written(ix);
}

void amp_index_note_checked(struct amp_index *ix)
{
    ix->checked = !ix->wm || !amp_wm_set_index(ix->wm, ix->ino, written(ix));
}

bool amp_index_will_write(struct amp_index *ix)
{
    uint64_t known;
    return ix->wm && amp_wm_index(ix->wm, ix->ino, &known) && amp_wm_set_index(ix->wm, ix->ino, 0);
}

void amp_index_has_written(struct amp_index *ix)
{
    uint64_t known;
    if (amp_wm_index(ix->wm, ix->ino, &known))
        amp_wm_set_index(ix->wm, ix->ino, written(ix));
}
