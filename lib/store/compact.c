/*
 * Letting old segments go.
 *
 * When there are more segments than are kept, each turn that appends also repeats a few of the live
 * keys and open outbox entries whose newest frame is in the oldest segment, in stand frames. When
 * none is left there, the log is synced and the segment removed: a crash at any point leaves either
 * both or the later. The memory of inputs (deduplication) goes with the segment.
 */
#include "store/store_int.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

enum { KEEP = 16, AT_ONCE = 64 };

struct stood {
    char key[AMP_KEY_MAX]; /* or the consumer of an entry */
    size_t n_key;
    uint64_t n, off;
    uint32_t i, seg, len;
};

static int old_rows(struct amp_store *s, enum amp_index_statement which, uint64_t bound, int limit,
                    struct stood *out, struct amp_error *err)
{
    int n = 0, rc, c = which == AMP_IX_OLD_OUT ? 2 : 0;
    sqlite3_stmt *st = amp_index_stmt(&s->index, which, err);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)bound);
    sqlite3_bind_int(st, 2, limit);
    while (n < limit && (rc = amp_index_step(&s->index, st, err)) != 0) {
        if (rc < 0)
            return -1;
        struct stood *o = &out[n++];
        o->n_key = (size_t)sqlite3_column_bytes(st, c);
        if (o->n_key > sizeof o->key)
            o->n_key = sizeof o->key;
        if (o->n_key)
            memcpy(o->key, sqlite3_column_blob(st, c), o->n_key);
        if (c) {
            o->n = (uint64_t)sqlite3_column_int64(st, 0);
            o->i = (uint32_t)sqlite3_column_int64(st, 1);
        }
        o->seg = (uint32_t)sqlite3_column_int64(st, c + 1);
        o->off = (uint64_t)sqlite3_column_int64(st, c + 2);
        o->len = (uint32_t)sqlite3_column_int64(st, c + 3);
    }
    sqlite3_reset(st);
    return n;
}

static int old_frame(struct amp_store *s, const struct stood *o, struct amp_frame *f,
                     struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    if (amp_log_frame(&s->log, o->seg, o->off, o->len, &frame, &head, err) != 0)
        return -1;
    return amp_frame_decode(frame, &head, &s->check, f, err);
}

static int stand_key(struct amp_store *s, const struct stood *o, struct amp_error *err)
{
    struct amp_frame old;
    struct amp_pos at;
    if (old_frame(s, o, &old, err) != 0)
        return -1;
    struct amp_frame f = {
        .head.log = AMP_FRAME_stand,
        .key = {o->key, o->n_key},
        .was = old.rev,
        .rev = old.rev,
        .to = old.to,
        .state = old.state,
        .state_blob = old.state_blob,
        .due = old.due,
    };
    return amp_turn_append(s, &f, &at, err);
}

static int stand_entry(struct amp_store *s, const struct stood *o, struct amp_error *err)
{
    struct amp_frame old;
    struct amp_pos at;
    if (old_frame(s, o, &old, err) != 0)
        return -1;
    for (uint32_t k = 0; k < old.n_out; k++) {
        if (old.out[k].n != o->n || old.out[k].i != o->i)
            continue;
        struct amp_frame_out out = old.out[k];
        out.consumer = (struct amp_span){o->key, o->n_key};
        struct amp_frame f = {.head.log = AMP_FRAME_stand, .out = &out, .n_out = 1};
        return amp_turn_append(s, &f, &at, err);
    }
    return amp_fail(err, AMP_IOERR, "log_damaged", "frame %llu has no line %u",
                    (unsigned long long)o->n, o->i);
}

static int drop_seen(struct amp_store *s, uint64_t before, struct amp_error *err)
{
    sqlite3_stmt *st;
    if (amp_index_begin(&s->index, err) != 0 ||
        !(st = amp_index_stmt(&s->index, AMP_IX_DROP_SEEN, err)))
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)before);
    if (amp_index_step(&s->index, st, err) < 0)
        return -1;
    struct amp_pos pos = s->index.pos;
    return amp_index_commit(&s->index, &pos, err);
}

/* Nothing lives in the oldest segment any more. */
static int let_go(struct amp_store *s, uint64_t before, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    char name[32];
    /* What stands again must be on disk first: here or, in a sealed segment, already. */
    if (amp_log_flush(l, err) != 0 || amp_log_datasync(l, err) != 0)
        return amp_store_fail(s, err);
    amp_wm_raise(&s->wm, l->end.n);
    amp_log_name(l->first, name);
    if (unlinkat(l->dirfd, name, 0) != 0 || fsync(l->dirfd) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove log/%s", name);
    l->first++;
    return drop_seen(s, before, err);
}

int amp_store_compact(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct stood old[AT_ONCE];
    unsigned keep = s->opt.keep_segments ? s->opt.keep_segments : KEEP;
    int limit = s->turn_frames < AT_ONCE / 2 ? (int)s->turn_frames * 2 : AT_ONCE;
    if (l->last - l->first + 1 <= keep || !limit || l->first + 1 >= l->last)
        return 0;
    uint64_t next = amp_log_first_number(l, l->first + 1);
    if (!next)
        return 0;
    if (amp_turn_index(s, err) != 0)
        return -1;
    int n = old_rows(s, AMP_IX_OLD_REC, next, limit, old, err), left = n;
    for (int i = 0; i < n; i++)
        if (stand_key(s, &old[i], err) != 0)
            return -1;
    if (n >= 0 && n < limit) {
        int m = old_rows(s, AMP_IX_OLD_OUT, l->first, limit - n, old, err);
        for (int i = 0; i < m; i++)
            if (stand_entry(s, &old[i], err) != 0)
                return -1;
        left = m < 0 ? -1 : n + m;
    }
    if (left < 0)
        return -1;
    return left == 0 ? let_go(s, next, err) : 0;
}
