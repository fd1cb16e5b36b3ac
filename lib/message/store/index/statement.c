/*
 * The index's statements and rows. The last column of a row is a checksum of the other columns,
 * keyed by the salt of the meta row, so a row that changed in memory is detected when it is read.
 * What changed in the file is detected by the checksum of its page, also if a row is missing.
 */
#include "message/store/index/index.h"

#include <sqlite3.h>

#include "base/codes.h"
#include "message/store/index/pages.h"

static const char *const sql[AMP_IX_COUNT] = {
#define X(name, text) text,
    AMP_INDEX_STATEMENTS(X)
#undef X
};

int amp_index_page_wrong(struct amp_index *ix, struct amp_error *err)
{
    ix->corrupt = true;
    return amp_fail(err, AMP_TEMPFAIL, index_failed,
                    "the index is damaged: page %u is not what was written", amp_pages_bad(ix->db));
}

int amp_index_failed(struct amp_index *ix, const char *what, struct amp_error *err)
{
    int rc = ix->db ? sqlite3_extended_errcode(ix->db) : SQLITE_NOMEM;
    if (rc == SQLITE_NOMEM || rc == SQLITE_IOERR_NOMEM)
        return amp_fail_memory(err);
    if (rc == SQLITE_IOERR_DATA)
        return amp_index_page_wrong(ix, err);
    rc &= 0xff; /* without its extension */
    if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_ERROR || rc == SQLITE_SCHEMA)
        ix->corrupt = true;
    return amp_fail(err, AMP_TEMPFAIL, index_failed, "cannot %s the index: %s", what,
                    sqlite3_errmsg(ix->db));
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
        amp_index_failed(ix, "ask", err);
        return NULL;
    }
    return ix->st[which];
}

sqlite3_stmt *amp_index_query(struct amp_index *ix, enum amp_index_statement which,
                              struct amp_error *err)
{
    return amp_index_begin_read(ix, err) == 0 ? amp_index_stmt(ix, which, err) : NULL;
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
    amp_index_failed(ix, "use", err);
    sqlite3_reset(st);
    return -1;
}

enum { NUMBERS_MAX = 8 };

/* The columns of a row before its checksum: t text, i integer. */
static const char *const columns_of[] = {
    [AMP_INDEX_REC] = "titiiiiiii", [AMP_INDEX_SEEN] = "ttiiii", [AMP_INDEX_BLOB] = "ti",
    [AMP_INDEX_OUT] = "iiitiii",    [AMP_INDEX_TALLY] = "tti",
};

static uint64_t row_sum(const struct amp_index *ix, enum amp_index_table table, struct amp_span a,
                        struct amp_span b, const uint64_t *v, unsigned n)
{
    uint64_t h = amp_store_hash(ix->salt + table, a, b);
    return amp_store_hash(h ^ a.n, (struct amp_span){(const char *)v, n * sizeof *v},
                          (struct amp_span){0});
}

static bool row_fits(const struct amp_index *ix, sqlite3_stmt *st, enum amp_index_table table)
{
    const char *columns = columns_of[table];
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
           (uint64_t)sqlite3_column_int64(st, i) == row_sum(ix, table, text[0], text[1], v, n);
}

int amp_index_put(struct amp_index *ix, enum amp_index_statement which, enum amp_index_table table,
                  struct amp_span a, struct amp_span b, const uint64_t *v, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(ix, which, err);
    const char *columns = columns_of[table];
    struct amp_span text = a;
    unsigned n = 0;
    int i = 0;
    if (!st)
        return -1;
    for (; columns[i]; i++) {
        if (columns[i] == 'i') {
            sqlite3_bind_int64(st, i + 1, (sqlite3_int64)v[n++]);
        } else {
            sqlite3_bind_text(st, i + 1, text.n ? text.p : "", (int)text.n, SQLITE_STATIC);
            text = b;
        }
    }
    sqlite3_bind_int64(st, i + 1, (sqlite3_int64)row_sum(ix, table, a, b, v, n));
    return amp_index_step(ix, st, err) < 0 ? -1 : 0;
}

int amp_index_wrong(struct amp_index *ix, const char *what, struct amp_error *err)
{
    ix->corrupt = true;
    return amp_fail(err, AMP_TEMPFAIL, index_failed, "the index is damaged: %s", what);
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
