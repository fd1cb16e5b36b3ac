/*
 * An index that cannot be written, brought up to the log's end all the same: tables of the
 * connection's own (SQLite's "temp"), which spill into an unlinked file, hold the newer rows, and
 * views in front of the file's tables show both. The file is not changed.
 *
 * A key that a newer frame has is hidden in the file. So the view stays right while other processes
 * bring the file up as well.
 */
#include <sqlite3.h>

#include "message/store/index/index.h"

/* The view `name` over a table of the file, without the rows that `over` has a name of. */
#define OVER(name, same)                                                                           \
    "CREATE TEMP VIEW " name " AS SELECT * FROM main." name " f WHERE NOT EXISTS"                  \
    " (SELECT 1 FROM " name "_over o WHERE " same ") UNION ALL SELECT * FROM " name "_new;"

static const char tables[] =
    "CREATE TEMP TABLE meta AS SELECT * FROM main.meta;"
    "CREATE TEMP TABLE tally(kind TEXT,state TEXT,n INT,ck INT,PRIMARY KEY(kind,state))"
    " WITHOUT ROWID;"
    "INSERT INTO temp.tally SELECT * FROM main.tally;"
    "CREATE TEMP TABLE blob(name TEXT PRIMARY KEY,n INT,ck INT) WITHOUT ROWID;"

    "CREATE TEMP TABLE rec_new(key TEXT PRIMARY KEY,rev INT,state TEXT,due INT,seg INT,off INT,"
    " len INT,joff INT,jlen INT,n INT,ck INT) WITHOUT ROWID;"
    "CREATE INDEX temp.rec_new_due ON rec_new(due) WHERE due>0;"
    "CREATE TEMP TABLE rec_over(key TEXT PRIMARY KEY) WITHOUT ROWID;" OVER(
        "rec",
        "o.key=f.key") "CREATE TEMP TRIGGER rec_put INSTEAD OF INSERT ON rec BEGIN"
                       " REPLACE INTO rec_over VALUES(NEW.key);"
                       " REPLACE INTO rec_new "
                       "VALUES(NEW.key,NEW.rev,NEW.state,NEW.due,NEW.seg,NEW.off,NEW.len,"
                       "  NEW.joff,NEW.jlen,NEW.n,NEW.ck); END;"
                       "CREATE TEMP TRIGGER rec_drop INSTEAD OF DELETE ON rec BEGIN"
                       " REPLACE INTO rec_over VALUES(OLD.key);"
                       " DELETE FROM rec_new WHERE key=OLD.key; END;"

                       "CREATE TEMP TABLE seen_new(c TEXT,id TEXT,seg INT,off INT,len INT,n INT,ck "
                       "INT,"
                       " PRIMARY KEY(c,id)) WITHOUT ROWID;"
                       "CREATE TEMP VIEW seen_over AS SELECT c,id FROM seen_new;" OVER(
                           "seen",
                           "o.c=f.c AND o.id=f.id") "CREATE TEMP TRIGGER seen_put INSTEAD OF "
                                                    "INSERT ON seen BEGIN"
                                                    " REPLACE INTO seen_new "
                                                    "VALUES(NEW.c,NEW.id,NEW.seg,NEW.off,NEW.len,"
                                                    "NEW.n,NEW.ck); END;"

                                                    "CREATE TEMP TABLE outbox_new(n INT,i INT,h "
                                                    "INT,c TEXT,seg INT,off INT,len INT,ck INT,"
                                                    " PRIMARY KEY(n,i)) WITHOUT ROWID;"
                                                    "CREATE INDEX temp.outbox_new_h ON "
                                                    "outbox_new(h);"
                                                    "CREATE INDEX temp.outbox_new_c ON "
                                                    "outbox_new(c);"
                                                    "CREATE TEMP TABLE outbox_over(n INT,i "
                                                    "INT,PRIMARY KEY(n,i)) WITHOUT ROWID;" OVER(
                                                        "outbox",
                                                        "o.n=f.n AND o.i=f.i") "CREATE TEMP "
                                                                               "TRIGGER outbox_put "
                                                                               "INSTEAD OF INSERT "
                                                                               "ON outbox BEGIN"
                                                                               " REPLACE INTO "
                                                                               "outbox_over "
                                                                               "VALUES(NEW.n,NEW.i)"
                                                                               ";"
                                                                               " REPLACE INTO "
                                                                               "outbox_new "
                                                                               "VALUES(NEW.n,NEW.i,"
                                                                               "NEW.h,NEW.c,NEW."
                                                                               "seg,NEW.off,NEW."
                                                                               "len,NEW.ck); END;"
                                                                               "CREATE TEMP "
                                                                               "TRIGGER "
                                                                               "outbox_drop "
                                                                               "INSTEAD OF DELETE "
                                                                               "ON outbox BEGIN"
                                                                               " REPLACE INTO "
                                                                               "outbox_over "
                                                                               "VALUES(OLD.n,OLD.i)"
                                                                               ";"
                                                                               " DELETE FROM "
                                                                               "outbox_new WHERE "
                                                                               "n=OLD.n AND "
                                                                               "i=OLD.i; END;";

int amp_index_overlay(struct amp_index *ix, struct amp_error *err)
{
    amp_index_end_read(ix);
    /* The names of prepared statements still mean the file's tables. */
    amp_index_statements_end(ix);
    if (sqlite3_exec(ix->db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(ix->db, tables, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_exec(ix->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "extend", err);
    ix->overlay = true;
    return amp_index_read_meta(ix, err);
}

bool amp_index_is_passed(struct amp_index *ix)
{
    sqlite3_stmt *st = NULL;
    bool is = ix->overlay &&
              sqlite3_prepare_v2(ix->db, "SELECT m.n>t.n FROM main.meta m, temp.meta t", -1, &st,
                                 NULL) == SQLITE_OK &&
              sqlite3_step(st) == SQLITE_ROW && sqlite3_column_int(st, 0) != 0;
    sqlite3_finalize(st);
    return is;
}
