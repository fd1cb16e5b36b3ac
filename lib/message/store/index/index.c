/*
 * The index in SQLite. A row holds the place of a record in the log, not the record. Each read
 * checks the frame's checksum again and compares its key. With a write-ahead log and
 * synchronous=NORMAL, a power loss may leave the index behind the log or ahead of it, but never
 * torn; the meta row (the checksum of the last frame) shows which.
 */
#include "message/store/index/index.h"

#include <sqlite3.h>
#include <string.h>

#include "message/store/index/pages.h"

void amp_index_init(struct amp_index *ix, int dirfd, const char *dir, bool read_only)
{
    *ix = (struct amp_index){.dirfd = dirfd, .dir = dir, .read_only = read_only};
}

static int statement_run(struct amp_index *ix, enum amp_index_statement which,
                         struct amp_error *err)
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

int amp_index_begin(struct amp_index *ix, struct amp_error *err)
{
    if (ix->writing)
        return 0;
    amp_index_end_read(ix);
    if (statement_run(ix, AMP_IX_BEGIN, err) < 0)
        return -1;
    ix->writing = true;
    return amp_index_check_writer(ix, err);
}

int amp_index_begin_read(struct amp_index *ix, struct amp_error *err)
{
    if (ix->writing || ix->reading)
        return 0;
    if (amp_index_check_writer(ix, err) < 0 || statement_run(ix, AMP_IX_BEGIN_READ, err) < 0)
        return -1;
    ix->reading = true;
    return 0;
}

void amp_index_end_read(struct amp_index *ix)
{
    if (ix->reading)
        statement_run(ix, AMP_IX_COMMIT, NULL);
    ix->reading = false;
}

int amp_index_commit(struct amp_index *ix, const struct amp_pos *pos, struct amp_error *err)
{
    if (!ix->writing)
        return 0;
    if (amp_index_tally_write(ix, err) < 0)
        return -1;
    const uint64_t v[] = {
        pos->seg, pos->off, pos->len,
        pos->n,   pos->sum, (pos->loose ? 1 : 0) | (pos->sealed ? 2 : 0) | (pos->open ? 4 : 0)};
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_SET_META, err);
    if (!st)
        return -1;
    for (int i = 0; i < 6; i++)
        bind_u64(st, i + 1, v[i]);
    if (amp_index_step(ix, st, err) < 0)
        return -1;
    amp_index_will_write(ix);
    if (statement_run(ix, AMP_IX_COMMIT, err) < 0)
        return -1;
    amp_index_has_written(ix);
    amp_pages_reached(ix->db, pos->n);
    ix->writing = false;
    ix->pos = *pos;
    return 0;
}

void amp_index_rollback(struct amp_index *ix)
{
    if (ix->writing && !sqlite3_get_autocommit(ix->db))
        statement_run(ix, AMP_IX_ROLLBACK, NULL);
    amp_index_tally_clear(ix);
    ix->writing = false;
}

void amp_index_checkpoint(struct amp_index *ix, int above_pages, bool truncate)
{
    if (!ix->db || ix->memory || ix->read_only || ix->wal_pages <= above_pages)
        return;
    /* Do not wait for other readers or checkpoints. */
    sqlite3_busy_timeout(ix->db, 0);
    amp_pages_checkpoint(ix->db);
    if (truncate)
        amp_index_will_write(ix);
    if (sqlite3_wal_checkpoint_v2(ix->db, NULL,
                                  truncate ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
                                  NULL, NULL) == SQLITE_OK)
        ix->wal_pages = 0;
    if (truncate)
        amp_index_has_written(ix);
    sqlite3_busy_timeout(ix->db, AMP_INDEX_BUSY_MS);
}

int amp_index_wipe(struct amp_index *ix, struct amp_error *err)
{
    if (amp_index_begin(ix, err) < 0)
        return -1;
    amp_index_tally_clear(ix);
    amp_pages_restart(ix->db);
    if (sqlite3_exec(ix->db,
                     "DELETE FROM rec;DELETE FROM seen;DELETE FROM outbox;DELETE FROM blob;"
                     "DELETE FROM tally;UPDATE meta SET tally=n",
                     NULL, NULL, NULL) != SQLITE_OK)
        return amp_index_failed(ix, "empty", err);
    return 0;
}

struct amp_index_rec amp_index_rec_of(const struct amp_frame *f, const struct amp_pos *after)
{
    struct amp_index_rec rec = {
        .rev = f->rev,
        .due = f->due,
        .at = amp_pos_frame(after),
        .joff = f->state_off,
        .jlen = f->state_blob.n ? 0 : (uint32_t)f->state.n,
    };
    amp_span_copy(f->to, rec.state, sizeof rec.state);
    return rec;
}

int amp_index_put_rec(struct amp_index *ix, struct amp_span key, const struct amp_index_rec *at,
                      uint64_t n, struct amp_error *err)
{
    if (at) {
        const uint64_t v[] = {at->rev,    (uint64_t)at->due, at->at.seg, at->at.off,
                              at->at.len, at->joff,          at->jlen,   n};
        return amp_index_put(ix, AMP_IX_PUT_REC, AMP_INDEX_REC, key, amp_span_str(at->state), v,
                             err);
    }
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_DEL_REC, err);
    if (!st)
        return -1;
    bind_text(st, 1, key);
    return amp_index_step(ix, st, err);
}

int amp_index_put_seen(struct amp_index *ix, struct amp_span consumer, struct amp_span id,
                       struct amp_place at, uint64_t n, struct amp_error *err)
{
    const uint64_t v[] = {at.seg, at.off, at.len, n};
    return amp_index_put(ix, AMP_IX_PUT_SEEN, AMP_INDEX_SEEN, consumer, id, v, err);
}

int amp_index_put_out(struct amp_index *ix, uint64_t n, uint32_t i, struct amp_span id,
                      struct amp_span consumer, const struct amp_place *at, struct amp_error *err)
{
    struct amp_span none = {0};
    if (at) {
        const uint64_t v[] = {n, i, amp_store_hash(ix->salt, id, none), at->seg, at->off, at->len};
        return amp_index_put(ix, AMP_IX_PUT_OUT, AMP_INDEX_OUT, consumer, none, v, err);
    }
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_DEL_OUT, err);
    if (!st)
        return -1;
    bind_u64(st, 1, n);
    bind_u64(st, 2, i);
    return amp_index_step(ix, st, err);
}

int amp_index_put_blob(struct amp_index *ix, struct amp_span name, uint64_t n,
                       struct amp_error *err)
{
    return amp_index_put(ix, AMP_IX_PUT_BLOB, AMP_INDEX_BLOB, name, (struct amp_span){0}, &n, err);
}

/* Earlier frames of the key may be gone, so the index's row decides. after NULL: it is removed. */
static int record_count(struct amp_index *ix, struct amp_span key,
                        const struct amp_index_rec *after, struct amp_error *err)
{
    struct amp_index_rec old;
    int rc = amp_index_rec(ix, key, &old, err);
    return rc < 0 ? -1 : amp_index_count(ix, key, rc ? &old : NULL, after, err);
}

/* A key that is remembered is a row of seen without a consumer, whose offset is the time. */
static int past_put(struct amp_index *ix, const struct amp_frame_past *p, uint64_t n,
                    struct amp_error *err)
{
    const struct amp_place at = {.off = (uint64_t)p->since};
    return amp_index_put_seen(ix, (struct amp_span){0}, p->key, at, n, err);
}

static int past_apply(struct amp_index *ix, const struct amp_frame *f, struct amp_error *err)
{
    for (uint32_t i = 0; i < f->n_past; i++) {
        const struct amp_frame_past *p = &f->past[i];
        if ((f->forgets && (record_count(ix, p->key, NULL, err) < 0 ||
                            amp_index_put_rec(ix, p->key, NULL, f->head.n, err) < 0)) ||
            (p->since && past_put(ix, p, f->head.n, err) < 0))
            return -1;
    }
    return 0;
}

int amp_index_apply(struct amp_index *ix, const struct amp_frame *f, const struct amp_pos *after,
                    struct amp_error *err)
{
    struct amp_index_rec rec = amp_index_rec_of(f, after);
    bool stand = f->head.log == AMP_FRAME_stand;
    uint64_t n = f->head.n;
    if (amp_index_begin(ix, err) < 0)
        return -1;
    if (f->key.n && (record_count(ix, f->key, f->gone ? NULL : &rec, err) < 0 ||
                     amp_index_put_rec(ix, f->key, f->gone ? NULL : &rec, n, err) < 0))
        return -1;
    if (f->state_blob.n && amp_index_put_blob(ix, f->state_blob, n, err) < 0)
        return -1;
    if (f->in_id.n && amp_index_put_seen(ix, f->in_consumer, f->in_id, rec.at, n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < f->n_out; i++) {
        const struct amp_frame_out *o = &f->out[i];
        if (amp_index_put_out(ix, stand ? o->n : n, stand ? o->i : i, o->id,
                              amp_frame_consumer(f, i), &rec.at, err) < 0 ||
            (o->blob.n && amp_index_put_blob(ix, o->blob, n, err) < 0))
            return -1;
    }
    for (uint32_t i = 0; i < f->n_close; i++)
        if (amp_index_put_out(ix, f->close[i].n, f->close[i].i, (struct amp_span){0},
                              (struct amp_span){0}, NULL, err) < 0)
            return -1;
    return past_apply(ix, f, err);
}

int amp_index_rec(struct amp_index *ix, struct amp_span key, struct amp_index_rec *out,
                  struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_query(ix, AMP_IX_REC, err);
    if (!st)
        return -1;
    bind_text(st, 1, key);
    int rc = amp_index_next(ix, st, AMP_INDEX_REC, err);
    if (rc == 1) {
        amp_index_read_rec(st, out);
        sqlite3_reset(st);
    }
    return rc;
}

struct amp_place amp_index_read_place(sqlite3_stmt *st, int column)
{
    return (struct amp_place){
        .seg = (uint32_t)column_u64(st, column),
        .off = column_u64(st, column + 1),
        .len = (uint32_t)column_u64(st, column + 2),
    };
}

void amp_index_read_rec(sqlite3_stmt *st, struct amp_index_rec *out)
{
    *out = (struct amp_index_rec){
        .rev = column_u64(st, 1),
        .due = sqlite3_column_int64(st, 3),
        .at = amp_index_read_place(st, 4),
        .joff = (uint32_t)column_u64(st, 7),
        .jlen = (uint32_t)column_u64(st, 8),
    };
    /* sqlite3_column_text would allocate memory for a NUL, and return NULL without it. */
    struct amp_span state = {.p = sqlite3_column_blob(st, 2)};
    state.n = state.p ? (size_t)sqlite3_column_bytes(st, 2) : 0;
    amp_span_copy(state, out->state, sizeof out->state);
}

int amp_index_seen(struct amp_index *ix, struct amp_span consumer, struct amp_span id,
                   struct amp_place *out, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_query(ix, AMP_IX_SEEN, err);
    if (!st)
        return -1;
    bind_text(st, 1, consumer);
    bind_text(st, 2, id);
    int rc = amp_index_next(ix, st, AMP_INDEX_SEEN, err);
    if (rc == 1) {
        *out = amp_index_read_place(st, 2);
        sqlite3_reset(st);
    }
    return rc;
}

int amp_index_any_past(struct amp_index *ix, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_query(ix, AMP_IX_ANY_PAST, err);
    int rc = st ? amp_index_step(ix, st, err) : -1;
    if (st)
        sqlite3_reset(st);
    return rc;
}
