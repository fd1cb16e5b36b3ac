/*
 * Removing old segments, by number and by age.
 *
 * When the oldest segment must be removed, each turn that appends also checks some of the live keys
 * and open outbox entries, in order. Those whose newest frame is in that segment are repeated in
 * stand frames. When all were checked, the log is synced and the segment is removed, so a crash
 * leaves the old frame and the repetition, or only the repetition. Frames after the index were
 * appended since, so they are in later segments. The segment's inputs (for the detection of
 * duplicates) are forgotten, and blobs that only it named are removed.
 */
#include "store/store_int.h"

#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

/* Rows checked and rows repeated: for each frame of a turn, and at most per turn. */
enum { ROWS = 32, STANDS = 2, ROWS_MOST = 1024, STANDS_MOST = 64 };

static struct amp_span column_text(sqlite3_stmt *st, int i)
{
    const char *p = sqlite3_column_blob(st, i);
    return (struct amp_span){p, p ? (size_t)sqlite3_column_bytes(st, i) : 0};
}

static int frame_read(struct amp_store *s, struct amp_place at, struct amp_frame *f,
                      struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    if (amp_log_frame(&s->log, at, &frame, &head, err) < 0)
        return -1;
    return amp_frame_decode(frame, &head, &s->check, f, err);
}

static int key_repeat(struct amp_store *s, struct amp_span key, struct amp_place place,
                      struct amp_error *err)
{
    struct amp_frame old;
    struct amp_pos at;
    if (frame_read(s, place, &old, err) < 0)
        return -1;
    if (!amp_span_eq(old.key, key))
        return amp_index_wrong(&s->index, "a row leads to the frame of another key", err);
    struct amp_frame f = {
        .head.log = AMP_FRAME_stand,
        .key = key,
        .full = old.full,
        .was = old.rev,
        .rev = old.rev,
        .to = old.to,
        .state = old.state,
        .state_blob = old.state_blob,
        .due = old.due,
    };
    return amp_turn_append(s, &f, &at, err);
}

static int entry_repeat(struct amp_store *s, uint64_t n, uint32_t i, struct amp_span consumer,
                        struct amp_place place, struct amp_error *err)
{
    struct amp_frame old;
    struct amp_pos at;
    if (frame_read(s, place, &old, err) < 0)
        return -1;
    for (uint32_t k = 0; k < old.n_out; k++) {
        if (old.out[k].n != n || old.out[k].i != i)
            continue;
        struct amp_frame_out out = old.out[k];
        out.consumer = consumer;
        struct amp_frame f = {.head.log = AMP_FRAME_stand, .out = &out, .n_out = 1};
        return amp_turn_append(s, &f, &at, err);
    }
    return amp_fail(err, AMP_IOERR, "log_damaged", "frame %llu has no line %u",
                    (unsigned long long)n, i);
}

/* Checks further keys. rows and stands: how many the turn may still check and repeat. */
static int pass_keys(struct amp_store *s, int *rows, int *stands, struct amp_error *err)
{
    struct amp_compaction *c = &s->old;
    int rc = 0, taken = 0;
    sqlite3_stmt *st = amp_index_query(&s->index, AMP_IX_OLD_REC, err);
    if (!st)
        return -1;
    AMP_BUF struct amp_buf from = {0};
    amp_buf_init(&from, AMP_KEY_MAX);
    if (amp_buf_add(&from, c->key.data, c->key.len, err) < 0)
        return -1;
    sqlite3_bind_text(st, 1, from.data, (int)from.len, SQLITE_STATIC);
    sqlite3_bind_int(st, 2, *rows);
    while (*stands > 0 && (rc = amp_index_next(&s->index, st, AMP_INDEX_REC, err)) == 1) {
        struct amp_span key = column_text(st, 0);
        taken++;
        /* A key in the cache has a newer frame. */
        if ((uint64_t)sqlite3_column_int64(st, 9) < c->bound &&
            amp_cache_find(&s->cache, key, NULL) < 0) {
            if (key_repeat(s, key, amp_index_read_place(st, 4), err) < 0) {
                rc = -1;
                break;
            }
            --*stands;
        }
        amp_buf_reset(&c->key);
        if (amp_buf_add(&c->key, key.p, key.n, err) < 0) {
            rc = -1;
            break;
        }
    }
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    c->keys_done = rc == 0 && *stands > 0 && taken < *rows;
    *rows -= taken;
    return rc < 0 ? -1 : 0;
}

/* The same for the outbox; *done: there are no more entries. */
static int pass_outs(struct amp_store *s, int *rows, int *stands, bool *done, struct amp_error *err)
{
    struct amp_compaction *c = &s->old;
    int rc = 0, taken = 0;
    sqlite3_stmt *st = amp_index_query(&s->index, AMP_IX_OLD_OUT, err);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)c->out_n);
    sqlite3_bind_int64(st, 2, c->out_i);
    sqlite3_bind_int(st, 3, *rows);
    while (*stands > 0 && (rc = amp_index_next(&s->index, st, AMP_INDEX_OUT, err)) == 1) {
        struct amp_place place = amp_index_read_place(st, 4);
        uint64_t n = (uint64_t)sqlite3_column_int64(st, 0);
        uint32_t i = (uint32_t)sqlite3_column_int64(st, 1);
        taken++;
        if (place.seg <= c->seg && !amp_cache_out(&s->cache, n, i)) {
            if (entry_repeat(s, n, i, column_text(st, 3), place, err) < 0) {
                rc = -1;
                break;
            }
            --*stands;
        }
        c->out_n = n;
        c->out_i = i;
    }
    sqlite3_reset(st);
    *done = rc == 0 && *stands > 0 && taken < *rows;
    return rc < 0 ? -1 : 0;
}

static int rows_drop(struct amp_store *s, enum amp_index_statement which, uint64_t before,
                     struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(&s->index, which, err);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)before);
    return amp_index_step(&s->index, st, err) < 0 ? -1 : 0;
}

static int inputs_forget(struct amp_store *s, uint64_t before, struct amp_error *err)
{
    struct amp_index *ix = &s->index;
    amp_index_end_read(ix);
    if (amp_index_begin(ix, err) < 0 || amp_index_read_meta(ix, err) < 0)
        return -1;
    struct amp_pos pos = ix->pos;
    if (pos.n != s->log.end.n)
        return amp_fail(err, AMP_TEMPFAIL, "index_failed", "the index is behind");
    if (rows_drop(s, AMP_IX_DROP_SEEN, before, err) < 0 ||
        rows_drop(s, AMP_IX_DROP_BLOB, before, err) < 0)
        return -1;
    return amp_index_commit(ix, &pos, err);
}

/* Removes the oldest segment, which has no live frame. */
static int segment_remove(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    uint64_t before = s->old.bound;
    char name[32];
    s->old.seg = 0;
    /* Then the index names every blob that stays and no longer needs the segment to catch up. */
    if (amp_turn_index(s, err) < 0)
        return -1;
    /* The repeated frames must be on disk first: by this sync or, in a sealed segment, already. */
    if (amp_log_flush(l, err) < 0 || amp_log_datasync(l, err) < 0)
        return amp_store_fail(s, err);
    amp_log_synced(l, l->end.n);
    if (amp_chain_drop(&s->chain, before, err) < 0)
        return -1;
    amp_log_name(l->first, name);
    if (unlinkat(l->dirfd, name, 0) != 0 || fsync(l->dirfd) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot remove log/%s", name);
    amp_turn_terms_drop(s, l->first);
    l->first++;
    if (inputs_forget(s, before, err) < 0) {
        amp_index_rollback(&s->index);
        return -1;
    }
    return amp_blob_sweep(s, before, err);
}

/* The time of a segment's first frame; 0: it has none. */
static int64_t first_time(struct amp_store *s, uint32_t seg, struct amp_age *known)
{
    char p[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    struct amp_frame f;
    if (known->seg == seg)
        return known->at;
    int fd = amp_log_fd(&s->log, seg, NULL);
    ssize_t n = fd < 0 ? -1 : pread(fd, p, sizeof p, 0);
    if (n <= 0 || !amp_frame_peek(AMP_FRAME_FORMAT, p, (size_t)n, &h) ||
        frame_read(s, (struct amp_place){.seg = seg, .len = h.size}, &f, NULL) != 0)
        return 0;
    *known = (struct amp_age){seg, f.at};
    return f.at;
}

static bool is_older(int64_t at, uint64_t ms)
{
    int64_t now = amp_now_ms();
    return at > 0 && now > at && (uint64_t)(now - at) > ms;
}

bool amp_store_segment_full(struct amp_store *s)
{
    struct amp_log *l = &s->log;
    if (l->end.off >= s->opt.segment_bytes)
        return true;
    /* Otherwise old frames would stay because they share a segment with new ones. */
    return s->opt.keep_ms && l->end.len &&
           is_older(first_time(s, l->last, &s->newest), s->opt.keep_ms / 4);
}

/* Whether the oldest segment must be removed: there are too many, or all its frames are too old. */
static bool segment_must_go(struct amp_store *s)
{
    const struct amp_log *l = &s->log;
    if (l->last - l->first + 1 > s->opt.keep_segments)
        return true;
    return s->opt.keep_ms && is_older(first_time(s, l->first + 1, &s->oldest), s->opt.keep_ms);
}

static int pass_start(struct amp_store *s, struct amp_error *err)
{
    struct amp_compaction *c = &s->old;
    uint64_t bound = amp_log_first_number(&s->log, s->log.first + 1);
    if (bound && amp_store_pinned(s, bound))
        return 0;
    if (!bound || amp_turn_index(s, err) < 0)
        return bound ? -1 : 0;
    c->bound = bound;
    c->keys_done = false;
    c->out_n = 0;
    c->out_i = 0;
    amp_buf_reset(&c->key);
    c->seg = s->log.first;
    return 0;
}

static int pass_step(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct amp_compaction *c = &s->old;
    int rows = s->turn_frames < ROWS_MOST / ROWS ? (int)s->turn_frames * ROWS : ROWS_MOST;
    int stands = s->turn_frames < STANDS_MOST / STANDS ? (int)s->turn_frames * STANDS : STANDS_MOST;
    bool done = false;
    if (l->first + 1 >= l->last || !stands || !segment_must_go(s))
        return 0;
    if (c->seg != l->first && pass_start(s, err) < 0)
        return -1;
    if (!c->seg)
        return 0;
    if (!c->keys_done && pass_keys(s, &rows, &stands, err) < 0)
        return -1;
    if (c->keys_done && rows > 0 && pass_outs(s, &rows, &stands, &done, err) < 0)
        return -1;
    return done ? segment_remove(s, err) : 0;
}

int amp_store_compact(struct amp_store *s, struct amp_error *err)
{
    int rc = pass_step(s, err);
    if (rc != 0 && amp_turn_heal(s, NULL) == 0)
        s->old.seg = 0; /* the next turn begins again */
    return rc;
}
