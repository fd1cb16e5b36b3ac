/*
 * The outbox: emitted lines that are not known to be written or acknowledged. A frame with lines
 * opens entries, a close frame closes them. If a crash loses a close frame, its lines are only
 * emitted once more.
 */
#include "message/store/store_int.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "base/codes.h"
#include "base/grow.h"

struct place {
    uint64_t n;
    uint32_t i;
    struct amp_place at;
};

struct places {
    struct place *p;
    size_t n, cap;
};

static int place_add(struct places *out, struct place place, struct amp_error *err)
{
    if (amp_grow(&out->p, &out->cap, out->n, sizeof *out->p, err) < 0)
        return -1;
    out->p[out->n++] = place;
    return 0;
}

static struct place place_of_row(sqlite3_stmt *st)
{
    return (struct place){
        .n = (uint64_t)sqlite3_column_int64(st, 0),
        .i = (uint32_t)sqlite3_column_int64(st, 1),
        .at = amp_index_read_place(st, 4),
    };
}

/* Rows of the index, except those that the cache has newer. */
static int rows_collect(struct amp_store *s, sqlite3_stmt *st, struct places *out,
                        struct amp_error *err)
{
    int rc;
    out->n = 0;
    while ((rc = amp_index_next(&s->index, st, AMP_INDEX_OUT, err)) == 1) {
        struct place p = place_of_row(st);
        if (!amp_cache_out(&s->cache, p.n, p.i) && (rc = place_add(out, p, err)) < 0)
            break;
    }
    sqlite3_reset(st);
    return rc;
}

static int place_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

/* The open entries of a consumer, in order; or, if id is not empty, those of that id. Both are
 * looked up by a hash, so there may be others among them. */
static int entries_collect(struct amp_store *s, const char *consumer, struct amp_span id,
                           struct places *out, struct amp_error *err)
{
    struct amp_span none = {0};
    const struct amp_cache_out *o;
    sqlite3_stmt *st = amp_index_query(&s->index, id.n ? AMP_IX_OUT_ID : AMP_IX_OUT, err);
    if (!st)
        return -1;
    if (id.n)
        sqlite3_bind_int64(st, 1, (sqlite3_int64)amp_store_hash(s->index.salt, id, none));
    else
        sqlite3_bind_text(st, 1, consumer, -1, SQLITE_STATIC);
    if (rows_collect(s, st, out, err) < 0)
        return -1;
    for (uint32_t at = 0;
         (o = amp_cache_next_out(&s->cache, id, amp_span_str(consumer), &at)) != NULL;)
        if (place_add(out, (struct place){o->n, o->i, o->at}, err) < 0)
            return -1;
    if (!id.n && out->n)
        qsort(out->p, out->n, sizeof *out->p, place_order);
    return 0;
}

/* The entry at a place, decoded, valid until the next call: FOUND, MISLED, or -1. */
static int entry_read(struct amp_store *s, const struct place *p, struct amp_frame_out *out,
                      struct amp_span *consumer, struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f = {.n_out = 0};
    if (amp_log_frame(&s->log, p->at, &frame, &head, err) == 0 &&
        amp_frame_decode(frame, &head, &s->check, &f, err) < 0)
        return -1;
    for (uint32_t i = 0; i < f.n_out; i++)
        if (f.out[i].n == p->n && f.out[i].i == p->i) {
            *out = f.out[i];
            *consumer = amp_frame_consumer(&f, i);
            return AMP_LOOK_FOUND;
        }
    amp_fail(err, AMP_TEMPFAIL, index_failed,
             "the index has a wrong place for line %u of frame %llu", p->i,
             (unsigned long long)p->n);
    return AMP_LOOK_MISLED;
}

/* The current place of an entry: FOUND; NONE: it is closed; -1. */
static int place_find(struct amp_store *s, struct place *p, struct amp_error *err)
{
    const struct amp_cache_out *o = amp_cache_out(&s->cache, p->n, p->i);
    if (o) {
        p->at = o->at;
        return o->open ? AMP_LOOK_FOUND : AMP_LOOK_NONE;
    }
    sqlite3_stmt *st = amp_index_query(&s->index, AMP_IX_OUT_AT, err);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)p->n);
    sqlite3_bind_int64(st, 2, p->i);
    int rc = amp_index_next(&s->index, st, AMP_INDEX_OUT, err);
    if (rc == 1) {
        *p = place_of_row(st);
        sqlite3_reset(st);
    }
    return rc;
}

/* Copies an entry for the consumer `to` into text: FOUND; NONE: it is another consumer's with the
 * same hash; MISLED, or -1. */
static int entry_copy(struct amp_store *s, const struct place *p, const char *to,
                      struct amp_buf *text, struct amp_store_entry *out, struct amp_error *err)
{
    struct amp_frame_out o;
    struct amp_span consumer;
    int rc = entry_read(s, p, &o, &consumer, err);
    if (rc != AMP_LOOK_FOUND)
        return rc;
    if (!amp_span_is(consumer, to))
        return AMP_LOOK_NONE;
    amp_buf_reset(text);
    if (amp_buf_add(text, o.id.p, o.id.n, err) < 0 ||
        (o.blob.n ? amp_blob_get(s, o.blob, text, err)
                  : amp_buf_add(text, o.line.p, o.line.n, err)) < 0)
        return -1;
    *out = (struct amp_store_entry){
        .n = p->n,
        .index = p->i,
        .id = {text->data, o.id.n},
        .line = {text->data + o.id.n, text->len - o.id.n},
        .wants_ack = o.ack,
        .role = (enum amp_role)o.role,
    };
    return AMP_LOOK_FOUND;
}

/* Looks up the entry's place again, in a turn, and copies the entry; never MISLED. */
static int entry_copy_again(struct amp_store *s, struct place *p, const char *to,
                            struct amp_buf *text, struct amp_store_entry *out,
                            struct amp_error *err)
{
    for (int round = 0;; round++) {
        int rc = place_find(s, p, err);
        if (rc < 0 && amp_turn_heal(s, err) == 0)
            rc = place_find(s, p, err);
        if (rc != AMP_LOOK_FOUND)
            return rc;
        rc = entry_copy(s, p, to, text, out, err);
        if (rc != AMP_LOOK_MISLED)
            return rc;
        if (round || amp_turn_misled(s, p->at.seg, err) < 0)
            return -1;
    }
}

/* Calls fn with one entry, outside of a turn, so that fn may use the store. The entry's segment may
 * have been removed since its place was read: then it was closed, or it is elsewhere. */
static int entry_give(struct amp_store *s, const struct place *place, const char *to,
                      amp_store_entry_fn fn, void *ctx, struct amp_buf *text, struct amp_error *err)
{
    struct amp_store_entry e;
    struct place p = *place;
    bool own;
    int rc = entry_copy(s, &p, to, text, &e, err);
    if (rc < 0 || rc == AMP_LOOK_MISLED) {
        if (amp_turn_enter(s, &own, err) < 0)
            return -1;
        rc = entry_copy_again(s, &p, to, text, &e, err);
        rc = amp_turn_leave(s, own, rc, err);
    }
    return rc == AMP_LOOK_FOUND ? fn(ctx, &e, err) : rc;
}

int amp_store_outbox(struct amp_store *s, const char *consumer, amp_store_entry_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct places places = {0};
    struct amp_span none = {0};
    AMP_BUF struct amp_buf text = {0};
    bool own;
    amp_buf_init(&text, 72 * AMP_FRAME_MAX);
    if (amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = entries_collect(s, consumer, none, &places, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = entries_collect(s, consumer, none, &places, err);
    rc = amp_turn_leave(s, own, rc, err);
    for (size_t i = 0; rc == 0 && i < places.n; i++)
        rc = entry_give(s, &places.p[i], consumer, fn, ctx, &text, err);
    free(places.p);
    return rc < 0 ? -1 : 0;
}

static int entries_close(struct amp_store *s, const char *consumer, struct amp_span acked,
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
        if (amp_turn_append(s, &f, &at, err) < 0)
            return -1;
    }
    return 0;
}

static int open_close(struct amp_store *s, const char *consumer,
                      const struct amp_store_entry_id *ids, uint32_t n_ids,
                      struct amp_frame_ref *refs, struct amp_error *err)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ids; i++) {
        struct place p = {.n = ids[i].n, .i = ids[i].index};
        int rc = place_find(s, &p, err); /* closing twice writes no frame */
        if (rc < 0)
            return -1;
        if (rc == AMP_LOOK_FOUND)
            refs[n++] = (struct amp_frame_ref){ids[i].n, ids[i].index};
    }
    return entries_close(s, consumer, (struct amp_span){0}, refs, n, err);
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
    if (amp_turn_renew(s, err) < 0 || amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = open_close(s, consumer, ids, n_ids, refs, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = open_close(s, consumer, ids, n_ids, refs, err);
    return amp_turn_leave(s, own, rc, err);
}

/* Closes the open entries of a message. MISLED: the index was wrong and was replaced. */
static int message_close(struct amp_store *s, struct amp_span id, bool waiting_only,
                         struct places *places, struct amp_error *err)
{
    if (entries_collect(s, NULL, id, places, err) < 0)
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
        const struct place *p = &places->p[i];
        int rc = entry_read(s, p, &o, &consumer, err);
        if (rc == AMP_LOOK_MISLED && amp_turn_misled(s, p->at.seg, err) == 0)
            return AMP_LOOK_MISLED;
        if (rc != AMP_LOOK_FOUND)
            return -1;
        if (amp_span_eq(o.id, id) && o.role == AMP_ROLE_message && (o.ack || !waiting_only))
            refs[n++] = (struct amp_frame_ref){p->n, p->i};
    }
    return entries_close(s, NULL, id, refs, n, err);
}

static int acked_close(struct amp_store *s, struct amp_span msg_id, bool waiting_only,
                       struct amp_error *err)
{
    struct places places = {0};
    bool own;
    if (!msg_id.n)
        return 0;
    if (amp_turn_renew(s, err) < 0 || amp_turn_enter(s, &own, err) < 0)
        return -1;
    int rc = message_close(s, msg_id, waiting_only, &places, err);
    if (rc == AMP_LOOK_MISLED || (rc < 0 && amp_turn_heal(s, err) == 0))
        rc = message_close(s, msg_id, waiting_only, &places, err) == 0 ? 0 : -1;
    rc = amp_turn_leave(s, own, rc, err);
    free(places.p);
    return rc;
}

int amp_store_outbox_acked(struct amp_store *s, struct amp_span msg_id, struct amp_error *err)
{
    return acked_close(s, msg_id, false, err);
}

int amp_store_outbox_answered(struct amp_store *s, struct amp_span msg_id, struct amp_error *err)
{
    return acked_close(s, msg_id, true, err);
}
