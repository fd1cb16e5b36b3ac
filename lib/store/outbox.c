/*
 * The outbox: what transitions emitted and nobody is known to have. A frame with lines opens
 * entries, a close frame closes them; a close that a crash loses only means one more repetition.
 */
#include "store/store_int.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

struct place {
    uint64_t n;
    uint32_t i;
    struct amp_index_place at;
};

struct places {
    struct place *p;
    size_t n, cap;
};

static int add(struct places *out, const struct place *place, struct amp_error *err)
{
    if (amp_grow(&out->p, &out->cap, out->n, sizeof *out->p, err) < 0)
        return -1;
    out->p[out->n++] = *place;
    return 0;
}

/* From a row of outbox. */
static struct place row_place(sqlite3_stmt *st)
{
    return (struct place){
        .n = (uint64_t)sqlite3_column_int64(st, 0),
        .i = (uint32_t)sqlite3_column_int64(st, 1),
        .at = amp_index_read_place(st, 4),
    };
}

/* Rows of the index, but for those of which the cache knows more. */
static int collect(struct amp_store *s, sqlite3_stmt *st, struct places *out, struct amp_error *err)
{
    int rc;
    out->n = 0;
    while ((rc = amp_index_next(&s->index, st, AMP_INDEX_OUT, err)) == 1) {
        struct place p = row_place(st);
        if (!amp_cache_out(&s->cache, p.n, p.i) && add(out, &p, err) != 0) {
            rc = -1;
            break;
        }
    }
    sqlite3_reset(st);
    return rc;
}

/* What the cache has open for an id, or for a consumer. */
static int collect_cached(struct amp_store *s, struct amp_span id, struct amp_span consumer,
                          struct places *out, struct amp_error *err)
{
    const struct amp_cache_out *o;
    for (uint32_t at = 0; (o = amp_cache_next_out(&s->cache, id, consumer, &at)) != NULL;) {
        struct place p = {.n = o->n, .i = o->i, .at = {o->seg, o->len, o->off}};
        if (add(out, &p, err) != 0)
            return -1;
    }
    return 0;
}

static int by_number(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int of_consumer(struct amp_store *s, const char *consumer, struct places *out,
                       struct amp_error *err)
{
    sqlite3_stmt *st;
    if (amp_index_begin_read(&s->index, err) != 0 ||
        !(st = amp_index_stmt(&s->index, AMP_IX_OUT, err)))
        return -1;
    sqlite3_bind_text(st, 1, consumer, -1, SQLITE_STATIC);
    if (collect(s, st, out, err) != 0 ||
        collect_cached(s, (struct amp_span){0}, amp_span_str(consumer), out, err) != 0)
        return -1;
    if (out->n)
        qsort(out->p, out->n, sizeof *out->p, by_number);
    return 0;
}

/* Entries whose id has the hash of id. */
static int of_id(struct amp_store *s, struct amp_span id, struct places *out, struct amp_error *err)
{
    sqlite3_stmt *st;
    if (amp_index_begin_read(&s->index, err) != 0 ||
        !(st = amp_index_stmt(&s->index, AMP_IX_OUT_ID, err)))
        return -1;
    uint64_t h = amp_store_hash(s->index.salt, id, (struct amp_span){0});
    sqlite3_bind_int64(st, 1, (sqlite3_int64)h);
    return collect(s, st, out, err) != 0 ? -1
                                         : collect_cached(s, id, (struct amp_span){0}, out, err);
}

/* The entry at a place, decoded; it lives until the next call. 1: it is not there. */
static int entry(struct amp_store *s, const struct place *p, struct amp_frame_out *out,
                 struct amp_span *consumer, struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f;
    bool whole = amp_log_frame(&s->log, p->at.seg, p->at.off, p->at.len, &frame, &head, err) == 0;
    if (whole && amp_frame_decode(frame, &head, &s->check, &f, err) != 0)
        return -1;
    for (uint32_t i = 0; whole && i < f.n_out; i++)
        if (f.out[i].n == p->n && f.out[i].i == p->i) {
            *out = f.out[i];
            *consumer = amp_frame_consumer(&f, i);
            return 0;
        }
    amp_fail(err, AMP_TEMPFAIL, "index_failed",
             "the index has a wrong place for line %u of frame %llu", p->i,
             (unsigned long long)p->n);
    return 1;
}

/* Where an entry stands by now: 1, 0 when it is closed, -1. */
static int find(struct amp_store *s, struct place *p, struct amp_error *err)
{
    const struct amp_cache_out *o = amp_cache_out(&s->cache, p->n, p->i);
    if (o) {
        p->at = (struct amp_index_place){o->seg, o->len, o->off};
        return o->open;
    }
    sqlite3_stmt *st = amp_index_begin_read(&s->index, err) == 0
                           ? amp_index_stmt(&s->index, AMP_IX_OUT_AT, err)
                           : NULL;
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)p->n);
    sqlite3_bind_int64(st, 2, p->i);
    int rc = amp_index_next(&s->index, st, AMP_INDEX_OUT, err);
    if (rc == 1) {
        *p = row_place(st);
        sqlite3_reset(st);
    }
    return rc;
}

enum copied {
    COPY_NONE, /* it is closed, or not for this consumer */
    COPY_DONE,
    COPY_MISLED, /* it is not where the index says */
};

/* Reads an entry into memory of its own; out's spans are of text. One of these, or -1. */
static int copy(struct amp_store *s, const struct place *p, const char *to, struct amp_buf *text,
                struct amp_store_entry *out, struct amp_error *err)
{
    struct amp_frame_out o;
    struct amp_span consumer;
    int rc = entry(s, p, &o, &consumer, err);
    if (rc != 0)
        return rc < 0 ? -1 : COPY_MISLED;
    if (!amp_span_is(consumer, to))
        return COPY_NONE; /* only the hash was the same */
    amp_buf_reset(text);
    if (amp_buf_add(text, o.id.p, o.id.n, err) != 0 ||
        (o.blob.n ? amp_blob_get(s, o.blob, text, err)
                  : amp_buf_add(text, o.line.p, o.line.n, err)) != 0)
        return -1;
    *out = (struct amp_store_entry){
        .n = p->n,
        .index = p->i,
        .id = {text->data, o.id.n},
        .line = {text->data + o.id.n, text->len - o.id.n},
        .wants_ack = o.ack,
        .role = (enum amp_role)o.role,
    };
    return COPY_DONE;
}

/* The same where its segment may have gone, or the index may be wrong; never COPY_MISLED. */
static int copy_again(struct amp_store *s, struct place *p, const char *to, struct amp_buf *text,
                      struct amp_store_entry *out, struct amp_error *err)
{
    for (int round = 0;; round++) {
        int rc = find(s, p, err);
        if (rc < 0 && amp_turn_heal(s, err) == 0)
            rc = find(s, p, err);
        if (rc <= 0)
            return rc < 0 ? -1 : COPY_NONE;
        rc = copy(s, p, to, text, out, err);
        if (rc != COPY_MISLED)
            return rc;
        if (round || amp_turn_misled(s, p->at.seg, err) != 0)
            return -1;
    }
}

/* Hands out one entry, outside of the turn, so that fn may use the store. Its segment may have gone
 * since: then it was closed, or stands elsewhere. */
static int hand_out(struct amp_store *s, const struct place *place, const char *to,
                    amp_store_entry_fn fn, void *ctx, struct amp_buf *text, struct amp_error *err)
{
    struct amp_store_entry e;
    struct place p = *place;
    bool own;
    int rc = copy(s, &p, to, text, &e, err);
    if (rc < 0 || rc == COPY_MISLED) {
        if (amp_turn_enter(s, &own, err) != 0)
            return -1;
        rc = copy_again(s, &p, to, text, &e, err);
        if (amp_turn_leave(s, own, rc < 0 ? NULL : err) != 0)
            return -1;
    }
    if (rc < 0)
        return -1;
    return rc == COPY_DONE ? fn(ctx, &e, err) : 0;
}

int amp_store_outbox(struct amp_store *s, const char *consumer, amp_store_entry_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct places places = {0};
    AMP_BUF struct amp_buf text = {0};
    bool own;
    amp_buf_init(&text, 72 * AMP_FRAME_MAX);
    if (amp_turn_enter(s, &own, err) != 0)
        return -1;
    int rc = of_consumer(s, consumer, &places, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = of_consumer(s, consumer, &places, err);
    if (amp_turn_leave(s, own, rc < 0 ? NULL : err) != 0)
        rc = -1;
    for (size_t i = 0; rc == 0 && i < places.n; i++)
        rc = hand_out(s, &places.p[i], consumer, fn, ctx, &text, err);
    free(places.p);
    return rc < 0 ? -1 : 0;
}

static int close_entries(struct amp_store *s, const char *consumer, struct amp_span acked,
                         const struct amp_frame_ref *refs, uint32_t n, struct amp_error *err)
{
    enum { AT_ONCE = 8192 };
    for (uint32_t i = 0; i < n; i += AT_ONCE) {
        struct amp_pos at;
        struct amp_frame f = {
            .head.log = AMP_FRAME_close,
            .actor = amp_span_str(consumer),
            .acked = acked,
            .close = refs + i,
            .n_close = n - i < AT_ONCE ? n - i : AT_ONCE,
        };
        if (amp_turn_append(s, &f, &at, err) != 0)
            return -1;
    }
    return 0;
}

static int close_open(struct amp_store *s, const char *consumer,
                      const struct amp_store_entry_id *ids, uint32_t n_ids,
                      struct amp_frame_ref *refs, struct amp_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ids; i++) {
        struct place p = {.n = ids[i].n, .i = ids[i].index};
        int rc = find(s, &p, err); /* closing twice writes no frame */
        if (rc < 0)
            return -1;
        if (rc)
            refs[n++] = (struct amp_frame_ref){ids[i].n, ids[i].index};
    }
    return close_entries(s, consumer, (struct amp_span){0}, refs, n, err);
}

int amp_store_outbox_close(struct amp_store *s, const char *consumer,
                           const struct amp_store_entry_id *ids, uint32_t n_ids,
                           struct amp_error *err)
{
    bool own;
    if (!n_ids)
        return 0;
    AMP_FREE struct amp_frame_ref *refs = calloc(n_ids, sizeof *refs);
    if (!refs)
        return amp_fail_memory(err);
    if (amp_turn_renew(s, err) != 0 || amp_turn_enter(s, &own, err) != 0)
        return -1;
    int rc = close_open(s, consumer, ids, n_ids, refs, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = close_open(s, consumer, ids, n_ids, refs, err);
    if (amp_turn_leave(s, own, rc < 0 ? NULL : err) != 0)
        return -1;
    return rc;
}

/* 1: the index was wrong and is another one now. */
static int close_acked(struct amp_store *s, struct amp_span id, bool waiting_only,
                       struct places *places, struct amp_error *err)
{
    if (of_id(s, id, places, err) != 0)
        return -1;
    if (!places->n)
        return 0;
    AMP_FREE struct amp_frame_ref *refs = calloc(places->n, sizeof *refs);
    if (!refs)
        return amp_fail_memory(err);
    uint32_t n = 0;
    for (size_t i = 0; i < places->n; i++) {
        struct amp_frame_out o;
        struct amp_span consumer;
        int rc = entry(s, &places->p[i], &o, &consumer, err);
        if (rc != 0)
            return rc > 0 && amp_turn_misled(s, places->p[i].at.seg, err) == 0 ? 1 : -1;
        if (amp_span_eq(o.id, id) && o.role == AMP_ROLE_message && (o.ack || !waiting_only))
            refs[n++] = (struct amp_frame_ref){places->p[i].n, places->p[i].i};
    }
    return close_entries(s, NULL, id, refs, n, err);
}

static int close_of_id(struct amp_store *s, struct amp_span msg_id, bool waiting_only,
                       struct amp_error *err)
{
    struct places places = {0};
    bool own;
    if (!msg_id.n)
        return 0;
    if (amp_turn_renew(s, err) != 0 || amp_turn_enter(s, &own, err) != 0)
        return -1;
    int rc = close_acked(s, msg_id, waiting_only, &places, err);
    if (rc > 0 || (rc < 0 && amp_turn_heal(s, err) == 0))
        rc = close_acked(s, msg_id, waiting_only, &places, err) == 0 ? 0 : -1;
    if (amp_turn_leave(s, own, rc < 0 ? NULL : err) != 0)
        rc = -1;
    free(places.p);
    return rc;
}

int amp_store_outbox_acked(struct amp_store *s, struct amp_span msg_id, struct amp_error *err)
{
    return close_of_id(s, msg_id, false, err);
}

int amp_store_outbox_answered(struct amp_store *s, struct amp_span msg_id, struct amp_error *err)
{
    return close_of_id(s, msg_id, true, err);
}
