/* Checks that the index has not changed: reads the complete file once per boot and after a foreign
 * write to it. */
#include "store/index/index.h"

#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>

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
    if (rc == SQLITE_ROW && !sound)
        return amp_index_wrong(ix, "its structure is not sound", err);
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

/* The time of the last write to the file, not 0; 0: unknown. */
static uint64_t file_written(const struct amp_index *ix)
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
    return !known || known == file_written(ix);
}

void amp_index_note_checked(struct amp_index *ix)
{
    ix->checked = !ix->wm || !amp_wm_set_index(ix->wm, ix->ino, file_written(ix));
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
        amp_wm_set_index(ix->wm, ix->ino, file_written(ix));
}
