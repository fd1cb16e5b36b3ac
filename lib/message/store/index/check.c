/* Checks that the index has not changed. Reading the complete file is for a file without checksums
 * of its pages, and for amp_store_check_index. */
#include "message/store/index/index.h"

#include <sqlite3.h>
#include <string.h>

#include "message/store/index/pages.h"

static const char *const tables[] = {
    [AMP_INDEX_REC] = "SELECT * FROM rec",     [AMP_INDEX_SEEN] = "SELECT * FROM seen",
    [AMP_INDEX_BLOB] = "SELECT * FROM blob",   [AMP_INDEX_OUT] = "SELECT * FROM outbox",
    [AMP_INDEX_TALLY] = "SELECT * FROM tally",
};

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
    /* It reports a page that cannot be read like other damage. */
    if (rc == SQLITE_ROW && !sound)
        return amp_pages_bad(ix->db) ? amp_index_page_wrong(ix, err)
                                     : amp_index_wrong(ix, "its structure is not sound", err);
    return sound ? 0 : -1;
}

static int check_table(struct amp_index *ix, enum amp_index_table table, struct amp_error *err)
{
    sqlite3_stmt *st = NULL;
    int rc;
    if (sqlite3_prepare_v2(ix->db, tables[table], -1, &st, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "check", err);
    while ((rc = amp_index_next(ix, st, table, err)) == 1)
        continue;
    sqlite3_finalize(st);
    return rc;
}

int amp_index_check(struct amp_index *ix, struct amp_error *err)
{
    if (check_structure(ix, err) < 0)
        return -1;
    for (unsigned t = 0; t < sizeof tables / sizeof *tables; t++)
        if (check_table(ix, t, err) < 0)
            return -1;
    return 0;
}

bool amp_index_trusted(const struct amp_index *ix)
{
    return ix->memory || ix->checked || amp_pages_trusted(ix->db);
}

void amp_index_note_checked(struct amp_index *ix)
{
    amp_pages_note_checked(ix->db);
    ix->checked = true;
}

int amp_index_check_writer(struct amp_index *ix, struct amp_error *err)
{
    uint64_t known, now = ix->wm && !ix->memory ? amp_pages_wal(ix->db) : 0;
    if (!now || !amp_wm_index(ix->wm, ix->ino, &known) || !known || known == now)
        return 0;
    return amp_index_wrong(ix, "another program has written to it", err);
}

void amp_index_will_write(struct amp_index *ix)
{
    if (ix->wm && !ix->memory)
        amp_wm_set_index(ix->wm, ix->ino, 0);
}

void amp_index_has_written(struct amp_index *ix)
{
    if (ix->wm && !ix->memory)
        amp_wm_set_index(ix->wm, ix->ino, amp_pages_wal(ix->db));
}
