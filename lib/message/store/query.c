/* Reading: one key or input, keys in order, what is due. */
#include "message/store/store_int.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"

static int absent_find(const struct amp_absent *a, struct amp_span key)
{
    for (int i = 0; i < 2; i++)
        if (a->n[i] == key.n && memcmp(a->text[i], key.p, key.n) == 0)
            return i;
    return -1;
}

void amp_store_written(struct amp_store *s, struct amp_span key)
{
    int i = key.n ? absent_find(&s->absent, key) : -1;
    if (i >= 0)
        s->absent.n[i] = 0;
}

/* The place of a key's record: FOUND, NONE, or -1. */
static int key_find(struct amp_store *s, struct amp_span key, struct amp_index_rec *out,
                    struct amp_error *err)
{
    struct amp_absent *a = &s->absent;
    int rc = amp_cache_find(&s->cache, key, out);
    if (rc >= 0)
        return rc;
    if (absent_find(a, key) >= 0)
        return AMP_LOOK_NONE;
    rc = amp_index_rec(&s->index, key, out, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = amp_index_rec(&s->index, key, out, err);
    if (rc == AMP_LOOK_NONE && key.n <= AMP_KEY_MAX) {
        memcpy(a->text[a->next], key.p, key.n);
        a->n[a->next] = key.n;
        a->next = !a->next;
    }
    return rc;
}

/* The place of an input's frame: FOUND, NONE, or -1. */
static int input_find(struct amp_store *s, struct amp_span consumer, struct amp_span id,
                      struct amp_place *at, struct amp_error *err)
{
    if (amp_cache_seen(&s->cache, consumer, id, at))
        return AMP_LOOK_FOUND;
    int rc = amp_index_seen(&s->index, consumer, id, at, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = amp_index_seen(&s->index, consumer, id, at, err);
    return rc;
}

/* The digest in an input's frame: FOUND; NONE: the frame was removed with its segment; MISLED, or
 * -1. */
static int digest_read(struct amp_store *s, struct amp_place at, struct amp_span consumer,
                       struct amp_span id, char sum[AMP_DIGEST_MAX], struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f;
    if (at.seg < s->log.first || amp_log_fd(&s->log, at.seg, NULL) < 0)
        return AMP_LOOK_NONE;
    if (amp_log_frame(&s->log, at, &frame, &head, err) < 0)
        return AMP_LOOK_MISLED;
    if (amp_frame_decode(frame, &head, &s->check, &f, err) < 0)
        return -1;
    if (!amp_span_eq(f.in_id, id) || !amp_span_eq(f.in_consumer, consumer)) {
        amp_fail(err, AMP_TEMPFAIL, index_failed, "the index has a wrong place for an input");
        return AMP_LOOK_MISLED;
    }
    amp_span_copy(f.in_sum, sum, AMP_DIGEST_MAX);
    return AMP_LOOK_FOUND;
}

int amp_store_find_input(struct amp_store *s, struct amp_span consumer, struct amp_span id,
                         char sum[AMP_DIGEST_MAX], struct amp_error *err)
{
    struct amp_place at;
    for (int round = 0;; round++) {
        int rc = input_find(s, consumer, id, &at, err);
        if (rc != AMP_LOOK_FOUND)
            return rc;
        rc = digest_read(s, at, consumer, id, sum, err);
        if (rc != AMP_LOOK_MISLED)
            return rc;
        if (round || amp_turn_misled(s, at.seg, err) < 0)
            return -1;
    }
}

/* Reads the record of a row into buf, and its key without digests into full (NULL: not needed),
 * which stays empty if the frame does not have it. FOUND; MISLED: the row leads to no such frame;
 * or -1. */
static int record_load(struct amp_store *s, struct amp_span key, const struct amp_index_rec *row,
                       struct amp_buf *buf, struct amp_buf *full, struct amp_store_rec *out,
                       struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f = {.full = {"", 0}};
    bool digested = full && amp_key_is_digested(key);
    amp_buf_reset(buf);
    if (full)
        amp_buf_reset(full);
    if (amp_log_frame(&s->log, row->at, &frame, &head, err) < 0 || !amp_frame_is_of(frame, key) ||
        (uint64_t)row->joff + row->jlen > frame.n) {
        amp_fail(err, AMP_TEMPFAIL, index_failed, "the index has a wrong place for %.*s",
                 (int)(key.n > 200 ? 200 : key.n), key.p);
        return AMP_LOOK_MISLED;
    }
    if ((!row->jlen || digested) && amp_frame_decode(frame, &head, &s->check, &f, err) < 0)
        return -1;
    if (row->jlen ? amp_buf_add(buf, frame.p + row->joff, row->jlen, err) < 0
                  : amp_blob_get(s, f.state_blob, buf, err) < 0)
        return -1;
    if (digested && amp_buf_add(full, f.full.p ? f.full.p : "", f.full.n, err) < 0)
        return -1;
    /* The state's name is after the record in buf, so that it is valid as long. */
    size_t n = buf->len;
    if (amp_buf_str(buf, row->state, err) < 0)
        return -1;
    *out = (struct amp_store_rec){
        .found = true,
        .rev = row->rev,
        .state = {buf->data + n, buf->len - n},
        .json = {buf->data, n},
        .due_ms = row->due,
    };
    return AMP_LOOK_FOUND;
}

static int record_find(struct amp_store *s, struct amp_span key, struct amp_buf *buf,
                       struct amp_buf *full, struct amp_store_rec *out, struct amp_error *err)
{
    struct amp_index_rec row;
    for (int round = 0;; round++) {
        int rc = key_find(s, key, &row, err);
        if (rc != AMP_LOOK_FOUND)
            return rc;
        rc = record_load(s, key, &row, buf, full, out, err);
        if (rc != AMP_LOOK_MISLED)
            return rc;
        if (round || amp_turn_misled(s, row.at.seg, err) < 0)
            return -1;
    }
}

int amp_store_find(struct amp_store *s, struct amp_span key, struct amp_buf *buf,
                   struct amp_store_rec *out, struct amp_error *err)
{
    int rc = record_find(s, key, buf, NULL, out, err);
    if (rc == AMP_LOOK_NONE) {
        int gone = amp_keep_is_forgotten(s, key, err);
        out->forgotten = gone == 1;
        return gone < 0 ? -1 : AMP_LOOK_NONE;
    }
    return rc;
}

int amp_store_get(struct amp_store *s, struct amp_key key, struct amp_store_rec *out,
                  struct amp_error *err)
{
    char mem[AMP_KEY_MAX];
    struct amp_span text;
    struct amp_store_rec rec = {0};
    bool own;
    if (amp_key_text(&key, mem, &text, err) < 0 || amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = amp_store_find(s, text, &s->rec, &rec, err);
    if (amp_turn_leave(s, own, rc, err) < 0)
        return -1;
    *out = rec;
    return 0;
}

struct row {
    size_t key_off, key_len; /* in the rows' text */
    struct amp_index_rec rec;
};

struct rows {
    struct row *row;
    size_t n, cap;
    struct amp_buf *keys;
};

/* The keys of a kind are between "kind." and "kind/"; those whose first part begins with a prefix
 * between "kind.prefix" and the same with a higher last byte. */
struct bounds {
    char text[2][AMP_KEY_KIND_MAX + AMP_KEY_PART_MAX + 2];
    size_t n;
};

static int bounds_make(const char *kind, struct amp_span prefix, struct bounds *b,
                       struct amp_error *err)
{
    size_t n = strlen(kind);
    if (n > AMP_KEY_KIND_MAX)
        return amp_fail(err, AMP_INTERNAL, bad_kind, "a kind's name is too long");
    if (prefix.n > AMP_KEY_PART_MAX)
        return amp_fail(err, AMP_INTERNAL, bad_prefix, "a prefix of keys is too long");
    memcpy(b->text[0], kind, n);
    b->text[0][n++] = '.';
    if (prefix.n)
        memcpy(b->text[0] + n, prefix.p, prefix.n);
    b->n = n + prefix.n;
    memcpy(b->text[1], b->text[0], b->n);
    b->text[1][b->n - 1]++;
    return 0;
}

/* A statement over these keys. */
static sqlite3_stmt *kind_select(struct amp_store *s, enum amp_index_statement which,
                                 const struct bounds *b, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(&s->index, which, err);
    for (int i = 0; st && i < 2; i++)
        sqlite3_bind_text(st, i + 1, b->text[i], (int)b->n, SQLITE_STATIC);
    return st;
}

static int row_add(struct rows *rows, sqlite3_stmt *st, struct amp_error *err)
{
    if (amp_grow(&rows->row, &rows->cap, rows->n, sizeof *rows->row, err) < 0)
        return -1;
    struct row *r = &rows->row[rows->n];
    r->key_off = rows->keys->len;
    r->key_len = (size_t)sqlite3_column_bytes(st, 0);
    amp_index_read_rec(st, &r->rec);
    if (amp_buf_add(rows->keys, sqlite3_column_blob(st, 0), r->key_len, err) < 0)
        return -1;
    rows->n++;
    return 0;
}

/* The selection of a statement within its bounds. */
struct selection {
    enum amp_index_statement which;
    const char *state;
    int64_t now_ms;
    const struct amp_store_window *window;
};

static void selection_bind(const struct selection *how, sqlite3_stmt *st)
{
    const struct amp_store_window *w = how->window;
    if (w) {
        sqlite3_bind_int64(st, 3, w->due_ms);
        sqlite3_bind_text(st, 4, w->key.n ? w->key.p : "", (int)w->key.n, SQLITE_STATIC);
        sqlite3_bind_int64(st, 5, w->most);
        sqlite3_bind_int64(st, 6, (int64_t)w->skip);
    } else if (how->which == AMP_IX_DUE || how->which == AMP_IX_DUE_OF_FEW) {
        sqlite3_bind_int64(st, 3, how->now_ms);
    } else if (how->state) {
        sqlite3_bind_text(st, 3, how->state, -1, SQLITE_STATIC);
    } else {
        sqlite3_bind_null(st, 3);
    }
}

static int rows_collect(struct amp_store *s, const struct selection *how, const struct bounds *b,
                        struct rows *rows, struct amp_error *err)
{
    int rc;
    rows->n = 0;
    amp_buf_reset(rows->keys);
    if (amp_turn_index(s, err) < 0)
        return -1;
    sqlite3_stmt *st = kind_select(s, how->which, b, err);
    if (!st)
        return -1;
    selection_bind(how, st);
    while ((rc = amp_index_next(&s->index, st, AMP_INDEX_REC, err)) == 1) {
        if ((rc = row_add(rows, st, err)) < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

/* record_find in a turn of its own. */
static int record_find_again(struct amp_store *s, struct amp_span key, struct amp_buf *buf,
                             struct amp_buf *full, struct amp_store_rec *out, struct amp_error *err)
{
    bool own;
    if (amp_turn_enter(s, &own, err) < 0)
        return -1;
    return amp_turn_leave(s, own, record_find(s, key, buf, full, out, err), err);
}

static int rows_give(struct amp_store *s, const struct rows *rows, amp_store_each_fn fn, void *ctx,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf full = {0}, parts = {0}, rec = {0};
    amp_buf_init(&full, AMP_KEY_MAX);
    amp_buf_init(&parts, 2 * AMP_KEY_MAX);
    amp_buf_init(&rec, 64 * AMP_FRAME_MAX);
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->row[i];
        struct amp_store_rec out;
        struct amp_span key = {rows->keys->data + r->key_off, r->key_len};
        struct amp_key k;
        int rc = record_load(s, key, &r->rec, &rec, &full, &out, err);
        /* The row's segment may have been removed since: the key is elsewhere then, or gone. */
        if (rc != AMP_LOOK_FOUND)
            rc = record_find_again(s, key, &rec, &full, &out, err);
        if (rc < 0)
            return -1;
        if (rc == AMP_LOOK_NONE)
            continue;
        if (amp_key_split(full.len ? amp_buf_span(&full) : key, &parts, &k, err) < 0)
            return -1;
        k.text = key;
        k.full = amp_buf_span(&full);
        out.key = &k;
        rc = fn(ctx, k.part[0], &out, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
    return 0;
}

static int keys_each(struct amp_store *s, const struct selection *how, const struct bounds *b,
                     amp_store_each_fn fn, void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf keys = {0};
    struct rows rows = {.keys = &keys};
    bool own;
    amp_buf_init(&keys, SIZE_MAX / 2);
    if (amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = rows_collect(s, how, b, &rows, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = rows_collect(s, how, b, &rows, err);
    rc = amp_turn_leave(s, own, rc, err);
    if (rc == 0)
        rc = rows_give(s, &rows, fn, ctx, err);
    free(rows.row);
    return rc;
}

int amp_store_each(struct amp_store *s, const char *kind, const char *state, amp_store_each_fn fn,
                   void *ctx, struct amp_error *err)
{
    struct bounds b;
    if (bounds_make(kind, AMP_SPAN(""), &b, err) < 0)
        return -1;
    const struct selection how = {.which = AMP_IX_EACH, .state = state};
    return keys_each(s, &how, &b, fn, ctx, err);
}

int amp_store_each_of(struct amp_store *s, const char *kind, struct amp_span prefix,
                      amp_store_each_fn fn, void *ctx, struct amp_error *err)
{
    struct bounds b;
    if (bounds_make(kind, prefix, &b, err) < 0)
        return -1;
    const struct selection how = {.which = AMP_IX_EACH};
    return keys_each(s, &how, &b, fn, ctx, err);
}

/* The counters with the changes of the newest frames, in ix->tally. */
static int tally_read(struct amp_store *s, struct amp_error *err)
{
    struct amp_index *ix = &s->index;
    if (s->cache.incomplete)
        return amp_turn_index(s, err) < 0 ? -1 : amp_index_tally(ix, !s->opt.read_only, err);
    amp_index_end_read(ix);
    amp_index_tally_clear(ix);
    if (amp_index_begin_read(ix, err) < 0 || amp_index_read_meta(ix, err) < 0 ||
        amp_cache_count(&s->cache, ix, err) < 0)
        return -1;
    amp_index_end_read(ix);
    return amp_index_tally(ix, !s->opt.read_only && !ix->memory, err);
}

/* Takes the counters; the caller frees their list. */
static int tally_take(struct amp_store *s, struct amp_index_tally *out, struct amp_error *err)
{
    bool own;
    if (amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = tally_read(s, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = tally_read(s, err);
    if (rc == 0) {
        *out = s->index.tally;
        s->index.tally = (struct amp_index_tally){0};
    }
    amp_index_tally_clear(&s->index);
    return amp_turn_leave(s, own, rc, err);
}

static bool is_state(const struct amp_index_count *c)
{
    return c->state[0] != AMP_INDEX_DUE[0];
}

/* The ways to find the records of a kind with a deadline. A scan of all deadlines is long where
 * another kind has very many. */
enum due_way { DUE_NONE, DUE_OF_FEW, DUE_OF_ALL };
static int due_way_find(struct amp_store *s, const char *kind, enum due_way *way,
                        struct amp_error *err)
{
    struct amp_index_tally now = {0};
    int64_t records = 0, own = 0, all = 0;
    if (tally_take(s, &now, err) < 0) {
        free(now.v);
        return -1;
    }
    for (size_t i = 0; i < now.n; i++) {
        const struct amp_index_count *c = &now.v[i];
        bool is_own = strcmp(kind, c->kind) == 0;
        if (is_state(c)) {
            records += is_own ? c->n : 0;
        } else {
            all += c->n;
            own += is_own ? c->n : 0;
        }
    }
    free(now.v);
    *way = own <= 0 ? DUE_NONE : records < all / 4 ? DUE_OF_FEW : DUE_OF_ALL;
    return 0;
}

int amp_store_due(struct amp_store *s, const char *kind, int64_t now_ms, amp_store_each_fn fn,
                  void *ctx, struct amp_error *err)
{
    struct bounds b;
    enum due_way way;
    if (bounds_make(kind, AMP_SPAN(""), &b, err) < 0 || due_way_find(s, kind, &way, err) < 0)
        return -1;
    const struct selection how = {.which = way == DUE_OF_FEW ? AMP_IX_DUE_OF_FEW : AMP_IX_DUE,
                                  .now_ms = now_ms};
    return way == DUE_NONE ? 0 : keys_each(s, &how, &b, fn, ctx, err);
}

int amp_store_due_window(struct amp_store *s, const struct amp_store_window *w,
                         amp_store_each_fn fn, void *ctx, struct amp_error *err)
{
    struct bounds b;
    if (bounds_make(w->kind, AMP_SPAN(""), &b, err) < 0)
        return -1;
    const struct selection how = {.which = w->before ? AMP_IX_DUE_BEFORE : AMP_IX_DUE_AFTER,
                                  .window = w};
    return keys_each(s, &how, &b, fn, ctx, err);
}

/* The number that a statement over a kind gives, 0 if it gives none; of: its second number, or
 * NULL. */
static int kind_number_read(struct amp_store *s, enum amp_index_statement which,
                            const struct bounds *b, int64_t *n, int64_t *of, struct amp_error *err)
{
    if (amp_turn_index(s, err) < 0)
        return -1;
    sqlite3_stmt *st = kind_select(s, which, b, err);
    int rc = st ? amp_index_step(&s->index, st, err) : -1;
    if (rc < 0)
        return -1;
    *n = rc == 1 ? sqlite3_column_int64(st, 0) : 0;
    if (of)
        *of = rc == 1 ? sqlite3_column_int64(st, 1) : 0;
    sqlite3_reset(st);
    return 0;
}

int amp_store_next_due(struct amp_store *s, const char *kind, int64_t *due_ms,
                       struct amp_error *err)
{
    struct bounds b;
    int64_t n = 0, soon = 0;
    bool own;
    if (bounds_make(kind, AMP_SPAN(""), &b, err) < 0 || amp_turn_enter(s, &own, err) < 0)
        return -1;
    /* The first statement is quick. If it has all deadlines, or one of this kind, it is enough. */
    enum due_way way = DUE_NONE;
    int rc = kind_number_read(s, AMP_IX_NEXT_DUE_SOON, &b, &n, &soon, err);
    if (rc == 0 && !n && soon == AMP_INDEX_SOON)
        rc = due_way_find(s, kind, &way, err);
    if (rc == 0 && way != DUE_NONE)
        rc = kind_number_read(s, way == DUE_OF_FEW ? AMP_IX_NEXT_DUE_OF_FEW : AMP_IX_NEXT_DUE, &b,
                              &n, NULL, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = kind_number_read(s, AMP_IX_NEXT_DUE, &b, &n, NULL, err);
    if (amp_turn_leave(s, own, rc, err) < 0)
        return -1;
    *due_ms = n;
    return 0;
}

static int overdue_count(struct amp_store *s, const struct bounds *b, int64_t now_ms, uint32_t most,
                         uint64_t *n, struct amp_error *err)
{
    if (amp_turn_index(s, err) < 0)
        return -1;
    sqlite3_stmt *st = kind_select(s, AMP_IX_COUNT_OVERDUE, b, err);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 3, now_ms);
    sqlite3_bind_int64(st, 4, most);
    int rc = amp_index_step(&s->index, st, err);
    *n = rc == 1 ? (uint64_t)sqlite3_column_int64(st, 0) : 0;
    sqlite3_reset(st);
    return rc < 0 ? -1 : 0;
}

int amp_store_count_overdue(struct amp_store *s, const char *kind, int64_t now_ms, uint32_t most,
                            uint64_t *n, struct amp_error *err)
{
    struct bounds b;
    uint64_t count = 0;
    bool own;
    if (bounds_make(kind, AMP_SPAN(""), &b, err) < 0 || amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = overdue_count(s, &b, now_ms, most, &count, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = overdue_count(s, &b, now_ms, most, &count, err);
    if (amp_turn_leave(s, own, rc, err) < 0)
        return -1;
    *n = count;
    return 0;
}

static int tally_give(const struct amp_index_tally *t, const char *kind, amp_store_tally_fn fn,
                      void *ctx, struct amp_error *err)
{
    for (size_t i = 0; i < t->n; i++) {
        const struct amp_index_count *c = &t->v[i];
        if (c->n <= 0 || !is_state(c) || (kind && strcmp(kind, c->kind) != 0))
            continue;
        int rc = fn(ctx, amp_span_str(c->kind), amp_span_str(c->state), (uint64_t)c->n, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
    return 0;
}

int amp_store_tally(struct amp_store *s, const char *kind, amp_store_tally_fn fn, void *ctx,
                    struct amp_error *err)
{
    struct amp_index_tally now = {0};
    int rc = tally_take(s, &now, err);
    if (rc == 0)
        rc = tally_give(&now, kind, fn, ctx, err);
    free(now.v);
    return rc;
}

static int kind_count(struct amp_store *s, const char *kind, bool due, uint64_t *n,
                      struct amp_error *err)
{
    struct amp_index_tally now = {0};
    int64_t sum = 0;
    if (tally_take(s, &now, err) < 0) {
        free(now.v);
        return -1;
    }
    for (size_t i = 0; i < now.n; i++)
        if (strcmp(kind, now.v[i].kind) == 0 && is_state(&now.v[i]) != due)
            sum += now.v[i].n;
    free(now.v);
    *n = sum > 0 ? (uint64_t)sum : 0;
    return 0;
}

int amp_store_count(struct amp_store *s, const char *kind, uint64_t *n, struct amp_error *err)
{
    return kind_count(s, kind, false, n, err);
}

int amp_store_count_due(struct amp_store *s, const char *kind, uint64_t *n, struct amp_error *err)
{
    return kind_count(s, kind, true, n, err);
}
