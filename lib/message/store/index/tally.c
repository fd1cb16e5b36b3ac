/* The counters: how many records of a kind are in a state, and how many have a due time. */
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "message/store/index/index.h"

static struct amp_span kind_of(struct amp_span key)
{
    const char *dot = key.n ? memchr(key.p, '.', key.n) : NULL;
    return (struct amp_span){key.p, dot ? (size_t)(dot - key.p) : key.n};
}

static int count_add(struct amp_index *ix, struct amp_span kind, struct amp_span state, int64_t by,
                     struct amp_error *err)
{
    struct amp_index_tally *t = &ix->tally;
    if (kind.n > AMP_KEY_KIND_MAX)
        kind.n = AMP_KEY_KIND_MAX;
    if (state.n > sizeof t->v->state - 1)
        state.n = sizeof t->v->state - 1;
    size_t i = 0;
    while (i < t->n && !(amp_span_is(kind, t->v[i].kind) && amp_span_is(state, t->v[i].state)))
        i++;
    if (i == t->n) {
        if (amp_grow(&t->v, &t->cap, t->n, sizeof *t->v, err) < 0)
            return -1;
        t->v[i].n = 0;
        amp_span_copy(kind, t->v[i].kind, sizeof t->v[i].kind);
        amp_span_copy(state, t->v[i].state, sizeof t->v[i].state);
        t->n++;
    }
    t->v[i].n += by;
    return 0;
}

static int record_add(struct amp_index *ix, struct amp_span kind, struct amp_span state,
                      int64_t due, int64_t by, struct amp_error *err)
{
    if (state.n && count_add(ix, kind, state, by, err) < 0)
        return -1;
    return due > 0 ? count_add(ix, kind, AMP_SPAN(AMP_INDEX_DUE), by, err) : 0;
}

int amp_index_count(struct amp_index *ix, struct amp_span key, const struct amp_index_rec *before,
                    const struct amp_index_rec *after, struct amp_error *err)
{
    struct amp_span kind = kind_of(key);
    if (before && record_add(ix, kind, amp_span_str(before->state), before->due, -1, err) < 0)
        return -1;
    return after ? record_add(ix, kind, amp_span_str(after->state), after->due, 1, err) : 0;
}

void amp_index_tally_clear(struct amp_index *ix)
{
    ix->tally.n = 0;
}

static struct amp_span column_text(sqlite3_stmt *st, int i)
{
    const char *p = sqlite3_column_blob(st, i);
    return (struct amp_span){p ? p : "", p ? (size_t)sqlite3_column_bytes(st, i) : 0};
}

int amp_index_tally_write(struct amp_index *ix, struct amp_error *err)
{
    for (size_t i = 0; i < ix->tally.n; i++) {
        const struct amp_index_count *c = &ix->tally.v[i];
        if (!c->n)
            continue;
        sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_TALLY, err);
        if (!st)
            return -1;
        sqlite3_bind_text(st, 1, c->kind, -1, SQLITE_STATIC);
        sqlite3_bind_text(st, 2, c->state, -1, SQLITE_STATIC);
        int rc = amp_index_next(ix, st, AMP_INDEX_TALLY, err);
        if (rc < 0)
            return -1;
        uint64_t n = (uint64_t)c->n + (rc ? (uint64_t)sqlite3_column_int64(st, 2) : 0);
        sqlite3_reset(st);
        if (amp_index_put(ix, AMP_IX_PUT_TALLY, AMP_INDEX_TALLY, amp_span_str(c->kind),
                          amp_span_str(c->state), &n, err) < 0)
            return -1;
    }
    amp_index_tally_clear(ix);
    return 0;
}

/* Counts the rows. Returns 0 or -1. */
static int rows_count(struct amp_index *ix, struct amp_error *err)
{
    int rc;
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_ALL_REC, err);
    if (!st)
        return -1;
    while ((rc = amp_index_next(ix, st, AMP_INDEX_REC, err)) == 1)
        if (record_add(ix, kind_of(column_text(st, 0)), column_text(st, 2),
                       sqlite3_column_int64(st, 3), 1, err) < 0) {
            sqlite3_reset(st);
            return -1;
        }
    return rc;
}

/* Counts again and stores the result. The noted changes are of later frames and are kept. */
static int tally_renew(struct amp_index *ix, struct amp_error *err)
{
    struct amp_index_tally later = ix->tally;
    ix->tally = (struct amp_index_tally){0};
    int rc = amp_index_begin(ix, err);
    if (rc == 0 && sqlite3_exec(ix->db, "DELETE FROM tally", NULL, NULL, NULL) != SQLITE_OK)
        rc = amp_index_failed(ix, "empty", err);
    if (rc == 0)
        rc = rows_count(ix, err);
    if (rc == 0)
        rc = amp_index_tally_write(ix, err);
    amp_index_will_write(ix);
    if (rc == 0 &&
        sqlite3_exec(ix->db, "UPDATE meta SET tally=n;COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        rc = amp_index_failed(ix, "count", err);
    amp_index_has_written(ix);
    if (rc == 0)
        ix->writing = false;
    else
        amp_index_rollback(ix);
    free(ix->tally.v);
    ix->tally = later;
    return rc;
}

/* Whether the counters are those of the meta row: 1, 0 or -1. */
static int is_tallied(struct amp_index *ix, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_IS_TALLIED, err);
    if (!st)
        return -1;
    int rc = amp_index_step(ix, st, err);
    int is = rc == 1 ? sqlite3_column_int(st, 0) : rc;
    sqlite3_reset(st);
    return is;
}

int amp_index_tally(struct amp_index *ix, bool write, struct amp_error *err)
{
    int rc = is_tallied(ix, err);
    if (rc < 0)
        return -1;
    if (rc == 0 && !write)
        return rows_count(ix, err);
    if (rc == 0 && tally_renew(ix, err) < 0)
        return -1;
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_TALLIES, err);
    if (!st)
        return -1;
    while ((rc = amp_index_next(ix, st, AMP_INDEX_TALLY, err)) == 1)
        if (count_add(ix, column_text(st, 0), column_text(st, 1), sqlite3_column_int64(st, 2),
                      err) < 0) {
            sqlite3_reset(st);
            return -1;
        }
    return rc;
}
