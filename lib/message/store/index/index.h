/*
 * The index: an SQLite file for look-ups about the log, which can be rebuilt from the log. Its one
 * meta row has the place of the last frame that the index contains. The index is read and written
 * under main. Its file is index.db, or index.<generation>.db after a damaged one. Statements that
 * read rows of a table read all its columns, in order: amp_index_next checks the row's checksum.
 */
#ifndef AMP_MESSAGE_STORE_INDEX_INDEX_H
#define AMP_MESSAGE_STORE_INDEX_INDEX_H

#include "message/store/log/log.h"

struct sqlite3;
struct sqlite3_stmt;

#define AMP_INDEX_STATEMENTS(X)                                                                    \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(BEGIN_READ, "BEGIN")                                                                         \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(META, "SELECT seg,off,len,n,sum,flags,salt FROM meta")                                       \
    /* The counters are right if `tally` is n; an earlier build does not write it. */              \
    X(SET_META, "UPDATE meta SET seg=?1,off=?2,len=?3,n=?4,sum=?5,flags=?6,"                       \
                "tally=CASE WHEN tally=n THEN ?4 ELSE -1 END")                                     \
    X(IS_TALLIED, "SELECT tally=n FROM meta")                                                      \
    X(TALLY, "SELECT * FROM tally WHERE kind=?1 AND state=?2")                                     \
    X(TALLIES, "SELECT * FROM tally")                                                              \
    X(PUT_TALLY, "REPLACE INTO tally VALUES(?1,?2,?3,?4)")                                         \
    X(ALL_REC, "SELECT * FROM rec")                                                                \
    X(REC, "SELECT * FROM rec WHERE key=?1")                                                       \
    X(PUT_REC, "REPLACE INTO rec VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")                      \
    X(DEL_REC, "DELETE FROM rec WHERE key=?1")                                                     \
    X(SEEN, "SELECT * FROM seen WHERE c=?1 AND id=?2")                                             \
    X(ANY_PAST, "SELECT 1 FROM seen WHERE c='' LIMIT 1")                                           \
    X(PUT_SEEN, "REPLACE INTO seen VALUES(?1,?2,?3,?4,?5,?6,?7)")                                  \
    X(PUT_BLOB, "REPLACE INTO blob VALUES(?1,?2,?3)")                                              \
    X(BLOB, "SELECT * FROM blob WHERE name=?1")                                                    \
    X(BLOBS, "SELECT * FROM blob")                                                                 \
    X(DROP_BLOB, "DELETE FROM blob WHERE n<?1")                                                    \
    X(PUT_OUT, "REPLACE INTO outbox VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                              \
    X(DEL_OUT, "DELETE FROM outbox WHERE n=?1 AND i=?2")                                           \
    X(OUT, "SELECT * FROM outbox WHERE c=?1 ORDER BY n,i")                                         \
    X(OUT_AT, "SELECT * FROM outbox WHERE n=?1 AND i=?2")                                          \
    X(OUT_ID, "SELECT * FROM outbox WHERE h=?1 ORDER BY n,i")                                      \
    X(EACH, "SELECT * FROM rec"                                                                    \
            " WHERE key>?1 AND key<?2 AND (?3 IS NULL OR state=?3) ORDER BY key")                  \
    X(DUE, "SELECT * FROM rec"                                                                     \
           " WHERE due>0 AND due<=?3 AND key>?1 AND key<?2 ORDER BY due,n")                        \
    /* DUE by the keys: for a kind with fewer records than others have deadlines. */               \
    X(DUE_OF_FEW, "SELECT * FROM rec WHERE +due>0 AND +due<=?3 AND key>?1 AND key<?2"              \
                  " ORDER BY +due,n")                                                              \
    X(DUE_AFTER, "SELECT * FROM rec WHERE due>0 AND (due,key)>(?3,?4) AND key>?1 AND key<?2"       \
                 " ORDER BY due,key LIMIT ?5 OFFSET ?6")                                           \
    X(DUE_BEFORE, "SELECT * FROM rec WHERE due>0 AND (due,key)<(?3,?4) AND key>?1 AND key<?2"      \
                  " ORDER BY due DESC,key DESC LIMIT ?5 OFFSET ?6")                                \
    X(COUNT_OVERDUE, "SELECT count(*) FROM (SELECT 1 FROM rec WHERE due>0 AND due<=?3 AND key>?1"  \
                     " AND key<?2 LIMIT ?4)")                                                      \
    /* Among the first records that are due: the first of that kind or NULL, and how many there    \
     * are. */                                                                                     \
    X(NEXT_DUE_SOON, "SELECT min(CASE WHEN key>?1 AND key<?2 THEN due END),count(*) FROM"          \
                     " (SELECT due,key FROM rec WHERE due>0 ORDER BY due LIMIT 64)")               \
    X(NEXT_DUE, "SELECT due FROM rec WHERE due>0 AND key>?1 AND key<?2 ORDER BY due LIMIT 1")      \
    X(NEXT_DUE_OF_FEW,                                                                             \
      "SELECT due FROM rec WHERE +due>0 AND key>?1 AND key<?2 ORDER BY +due LIMIT 1")              \
    X(DROP_SEEN, "DELETE FROM seen WHERE n<?1")

enum amp_index_statement {
#define X(name, sql) AMP_IX_##name,
    AMP_INDEX_STATEMENTS(X)
#undef X
        AMP_IX_COUNT
};

enum { AMP_INDEX_BUSY_MS = 10000, AMP_INDEX_SOON = 64 /* the limit of NEXT_DUE_SOON */ };
enum amp_index_table {
    AMP_INDEX_REC,
    AMP_INDEX_SEEN,
    AMP_INDEX_BLOB,
    AMP_INDEX_OUT,
    AMP_INDEX_TALLY
};

/* Changes of the numbers of records by kind and state, which a commit adds to the counters. */
struct amp_index_tally {
    struct amp_index_count {
        char kind[AMP_KEY_KIND_MAX + 1], state[64];
        int64_t n;
    } * v;
    size_t n, cap;
};

struct amp_index {
    int dirfd;
    const char *dir;
    struct sqlite3 *db;
    struct sqlite3_stmt *st[AMP_IX_COUNT];
    uint64_t gen;
    uint64_t salt; /* the key of the hash */
    bool writing;  /* a transaction is open */
    bool reading;  /* a transaction for look-ups is open */
    bool memory;   /* of this handle only: made from the complete log, in a file without a name */
    bool overlay;  /* read-only, with the newer rows beside it (overlay.c) */
    bool read_only;
    bool corrupt;             /* SQLite or a checksum found damage: call amp_turn_heal */
    bool checked;             /* this handle checked the complete file */
    struct amp_watermark *wm; /* where commits are noted; NULL: nowhere */
    uint64_t dev, ino;
    int wal_pages;
    struct amp_pos pos; /* of the meta row, as last read or written */
    struct amp_index_tally tally;
};

/* A row of rec: a key's record. */
struct amp_index_rec {
    uint64_t rev;
    char state[64];
    int64_t due;
    struct amp_place at; /* of its frame */
    uint32_t joff, jlen; /* of its JSON within the frame; jlen 0: it is in a blob */
};

void amp_index_init(struct amp_index *ix, int dirfd, const char *dir, bool read_only);
void amp_index_close(struct amp_index *ix);
/* Opens or creates the file of the highest generation, at least gen, and reads its meta row. Sets
 * ix->corrupt if the file is not an index. */
int amp_index_open(struct amp_index *ix, uint64_t gen, struct amp_error *err);
/* Whether the open file still has its name. */
bool amp_index_current(const struct amp_index *ix);
/* An empty index of this handle. Its pages spill into an unlinked file. */
int amp_index_open_memory(struct amp_index *ix, struct amp_error *err);
/* Makes an open read-only index take rows, without changing its file. The next open ends it. */
int amp_index_overlay(struct amp_index *ix, struct amp_error *err);
/* True if the file behind an overlay now reaches further than the overlay. */
bool amp_index_is_passed(struct amp_index *ix);
/* Ends the prepared statements. */
void amp_index_statements_end(struct amp_index *ix);
int amp_index_read_meta(struct amp_index *ix, struct amp_error *err);
/* Deletes all rows, in the turn's transaction. */
int amp_index_wipe(struct amp_index *ix, struct amp_error *err);

/* Writes one row in the open transaction. at NULL: deletes it. n: the frame's number. */
int amp_index_put_rec(struct amp_index *ix, struct amp_span key, const struct amp_index_rec *at,
                      uint64_t n, struct amp_error *err);
int amp_index_put_seen(struct amp_index *ix, struct amp_span consumer, struct amp_span id,
                       struct amp_place at, uint64_t n, struct amp_error *err);
int amp_index_put_out(struct amp_index *ix, uint64_t n, uint32_t i, struct amp_span id,
                      struct amp_span consumer, const struct amp_place *at, struct amp_error *err);
int amp_index_put_blob(struct amp_index *ix, struct amp_span name, uint64_t n,
                       struct amp_error *err);
/* Notes that the record of a key changes from `before` to `after`; NULL: there is none. Counted are
 * the records in each state, and those with a due time, under a name that is no state. */
#define AMP_INDEX_DUE "*due"
int amp_index_count(struct amp_index *ix, struct amp_span key, const struct amp_index_rec *before,
                    const struct amp_index_rec *after, struct amp_error *err);
/* Adds the stored counters to the noted changes (ix->tally), which the caller clears. They are
 * counted again if another program has written the index; write: and stored. */
int amp_index_tally(struct amp_index *ix, bool write, struct amp_error *err);
void amp_index_tally_clear(struct amp_index *ix);
/* Adds the noted changes to the counters, in the open transaction. */
int amp_index_tally_write(struct amp_index *ix, struct amp_error *err);
/* The row of a frame's key. after: the place after the frame. */
struct amp_index_rec amp_index_rec_of(const struct amp_frame *f, const struct amp_pos *after);
/* Writes the rows of one frame. */
int amp_index_apply(struct amp_index *ix, const struct amp_frame *f, const struct amp_pos *after,
                    struct amp_error *err);
/* Writes pos into the meta row and commits the turn's transaction. */
int amp_index_commit(struct amp_index *ix, const struct amp_pos *pos, struct amp_error *err);
void amp_index_rollback(struct amp_index *ix);
/* Moves the write-ahead log into the file if it has more pages than that. truncate (under main)
 * also empties it, because the next process that opens the index reads all of it. */
void amp_index_checkpoint(struct amp_index *ix, int above_pages, bool truncate);

/* The row of a key, and the place of the frame of an input: 1 found, 0 not, -1 error. */
int amp_index_rec(struct amp_index *ix, struct amp_span key, struct amp_index_rec *out,
                  struct amp_error *err);
int amp_index_seen(struct amp_index *ix, struct amp_span consumer, struct amp_span id,
                   struct amp_place *out, struct amp_error *err);
/* Whether a key is remembered without its record: 1, 0, -1. */
int amp_index_any_past(struct amp_index *ix, struct amp_error *err);
/* Reads a row of rec; a place from three columns of a row: segment, offset and length. */
void amp_index_read_rec(struct sqlite3_stmt *st, struct amp_index_rec *out);
struct amp_place amp_index_read_place(struct sqlite3_stmt *st, int column);

/* The error of a failed call of SQLite; notes corruption. Returns -1. */
int amp_index_failed(struct amp_index *ix, const char *what, struct amp_error *err);
/* A statement, reset; NULL on failure. query: in the transaction for look-ups. */
struct sqlite3_stmt *amp_index_stmt(struct amp_index *ix, enum amp_index_statement which,
                                    struct amp_error *err);
struct sqlite3_stmt *amp_index_query(struct amp_index *ix, enum amp_index_statement which,
                                     struct amp_error *err);
/* The next row of a statement: 1, 0 if there is no more, or -1. */
int amp_index_step(struct amp_index *ix, struct sqlite3_stmt *st, struct amp_error *err);
/* Steps to the next row of a table; a row with a wrong checksum is corruption. */
int amp_index_next(struct amp_index *ix, struct sqlite3_stmt *st, enum amp_index_table table,
                   struct amp_error *err);
/* Runs a statement that writes a row of a table: its texts a and b and its numbers v, each in the
 * order of the columns, and their checksum. */
int amp_index_put(struct amp_index *ix, enum amp_index_statement which, enum amp_index_table table,
                  struct amp_span a, struct amp_span b, const uint64_t *v, struct amp_error *err);
/* Note corruption; return -1. The first: of the page that amp_pages_bad gives. */
int amp_index_page_wrong(struct amp_index *ix, struct amp_error *err);
int amp_index_wrong(struct amp_index *ix, const char *what, struct amp_error *err);
int amp_index_begin(struct amp_index *ix, struct amp_error *err);
/* One transaction for all look-ups of a turn; it must not outlast the turn. */
int amp_index_begin_read(struct amp_index *ix, struct amp_error *err);
void amp_index_end_read(struct amp_index *ix);

/* Under main. Whether the pages of the open file have checksums that were not computed from a file
 * of unknown contents. A check reads the complete file and notes corruption; that it succeeded is
 * noted for all processes. */
bool amp_index_trusted(const struct amp_index *ix);
int amp_index_check(struct amp_index *ix, struct amp_error *err);
void amp_index_note_checked(struct amp_index *ix);
/* Fails, and notes corruption, if another program has committed to the index. */
int amp_index_check_writer(struct amp_index *ix, struct amp_error *err);
/* Call these under main around each commit, and each truncation of the write-ahead log, so that
 * other processes do not take it for that of another program. */
void amp_index_will_write(struct amp_index *ix);
void amp_index_has_written(struct amp_index *ix);

#endif
