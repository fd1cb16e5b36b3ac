/*
 * Removing old segments, by number and by age.
 *
 * When the oldest segment must be removed, each turn that appends also checks some of its frames,
 * in order. The newest frame of a key, and the newest frame with an open outbox entry, is repeated
 * in a stand frame; a record that is final and old leaves the live set instead (keep/keep.h), and
 * keys of such records are repeated while they are remembered. When all frames were checked, the
 * log is synced and the segment is removed, so a crash leaves the old frame and the repetition, or
 * only the repetition. The segment's inputs (for the detection of duplicates) are forgotten, and
 * blobs that only it named are removed.
 */
#include "message/store/store_int.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"

/* Frames checked and frames written: for each frame of a turn, and at most per turn. LEAVE: records
 * that one frame removes. */
enum { CHECKS = 8, STANDS = 2, CHECKS_MOST = 512, STANDS_MOST = 64, LEAVE = 128 };

static int frame_read(struct amp_store *s, struct amp_place at, struct amp_frame *f,
                      struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    if (amp_log_frame(&s->log, at, &frame, &head, err) < 0)
        return -1;
    return amp_frame_decode(frame, &head, &s->check, f, err);
}

/* The work that a turn may still do. */
struct share {
    int checks, stands;
};

static int stand_append(struct amp_store *s, struct amp_frame *f, struct share *left,
                        struct amp_error *err)
{
    struct amp_pos at;
    f->head.log = AMP_FRAME_stand;
    left->stands--;
    return amp_turn_append(s, f, &at, err);
}

static bool is_at(struct amp_place a, struct amp_place b)
{
    return a.seg == b.seg && a.off == b.off;
}

/* Repeats the record of the frame if it is the newest of its key, or notes that it leaves. */
static int key_check(struct amp_store *s, const struct amp_frame *old, struct amp_place place,
                     struct share *left, struct amp_error *err)
{
    struct amp_index_rec row;
    int64_t since;
    bool remembered;
    int rc = amp_cache_find(&s->cache, old->key, &row);
    if (rc < 0)
        rc = amp_index_rec(&s->index, old->key, &row, err);
    if (rc <= 0 || !is_at(row.at, place))
        return rc < 0 ? -1 : 0;
    if ((rc = amp_keep_is_over(s, old->key, &row, &since, &remembered, err)) < 0)
        return -1;
    if (rc == 1)
        return amp_keep_leave(&s->old.leaving, old->key, &row,
                              remembered && amp_keep_remembers(s, since) ? since : 0, err);
    struct amp_frame f = {
        .key = old->key,
        .full = old->full,
        .was = old->rev,
        .rev = old->rev,
        .to = old->to,
        .state = old->state,
        .state_blob = old->state_blob,
        .due = old->due,
        .since = old->since ? old->since : old->at,
    };
    return stand_append(s, &f, left, err);
}

/* The place of an open entry of the outbox: 1, 0: it is closed, -1. */
static int out_find(struct amp_store *s, uint64_t n, uint32_t i, struct amp_place *at,
                    struct amp_error *err)
{
    const struct amp_cache_out *o = amp_cache_out(&s->cache, n, i);
    if (o) {
        *at = o->at;
        return o->open;
    }
    sqlite3_stmt *st = amp_index_query(&s->index, AMP_IX_OUT_AT, err);
    if (!st)
        return -1;
    sqlite3_bind_int64(st, 1, (sqlite3_int64)n);
    sqlite3_bind_int64(st, 2, i);
    int rc = amp_index_next(&s->index, st, AMP_INDEX_OUT, err);
    if (rc == 1) {
        *at = amp_index_read_place(st, 4);
        sqlite3_reset(st);
    }
    return rc;
}

static int outs_check(struct amp_store *s, const struct amp_frame *old, struct amp_place place,
                      struct share *left, struct amp_error *err)
{
    for (uint32_t i = 0; i < old->n_out; i++) {
        struct amp_frame_out out = old->out[i];
        struct amp_place at = {0};
        int rc = out_find(s, out.n, out.i, &at, err);
        if (rc < 0)
            return -1;
        if (!rc || !is_at(at, place))
            continue;
        out.consumer = amp_frame_consumer(old, i);
        struct amp_frame f = {.out = &out, .n_out = 1};
        if (stand_append(s, &f, left, err) < 0)
            return -1;
    }
    return 0;
}

/* Repeats the keys of the frame that are still remembered. */
static int past_check(struct amp_store *s, const struct amp_frame *old, struct share *left,
                      struct amp_error *err)
{
    AMP_FREE struct amp_frame_past *past = calloc(old->n_past + 1u, sizeof *past);
    struct amp_frame f = {.past = past};
    if (!past)
        return amp_fail_memory(err);
    for (uint32_t i = 0; i < old->n_past; i++)
        if (amp_keep_remembers(s, old->past[i].since))
            past[f.n_past++] = old->past[i];
    return f.n_past ? stand_append(s, &f, left, err) : 0;
}

static int frame_check(struct amp_store *s, struct amp_place place, struct share *left,
                       struct amp_error *err)
{
    struct amp_compaction *c = &s->old;
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f;
    if (amp_log_frame(&s->log, place, &frame, &head, err) < 0)
        return -1;
    left->checks--;
    if (head.log != AMP_FRAME_none && head.log != AMP_FRAME_stand)
        return 0;
    /* The checks read other frames. */
    amp_buf_reset(&c->bytes);
    if (amp_buf_add(&c->bytes, frame.p, frame.n, err) < 0 ||
        amp_frame_decode(amp_buf_span(&c->bytes), &head, &c->frame, &f, err) < 0)
        return -1;
    if ((f.key.n && !f.gone && key_check(s, &f, place, left, err) < 0) ||
        outs_check(s, &f, place, left, err) < 0 || (f.n_past && past_check(s, &f, left, err) < 0))
        return -1;
    return c->leaving.n >= LEAVE ? amp_keep_forget(s, &c->leaving, err) : 0;
}

/* Checks further frames of the segment. 1: all were checked. */
static int pass_frames(struct amp_store *s, struct share *left, struct amp_error *err)
{
    struct amp_compaction *c = &s->old;
    char p[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    int fd = amp_log_fd(&s->log, c->seg, err);
    while (left->checks > 0 && left->stands > 0) {
        ssize_t n = fd < 0 ? -1 : pread(fd, p, sizeof p, (off_t)c->off);
        if (n < 0)
            return fd < 0 ? -1 : amp_fail_errno(err, AMP_IOERR, "cannot read the log");
        if (n == 0)
            return 1;
        if (!amp_frame_peek(p, (size_t)n, &h))
            return amp_log_damaged(&(struct amp_pos){.seg = c->seg, .off = c->off},
                                   "no frame begins there", err);
        if (h.n >= c->bound) /* bytes of a failed write are behind the segment's end */
            return 1;
        if (frame_check(s, (struct amp_place){c->seg, h.size, c->off}, left, err) < 0)
            return -1;
        c->off += h.size;
        if (!c->leaving.n)
            c->settled = c->off;
    }
    return 0;
}

/* ---- the next process goes on where this one stops ----
 *
 * log/retention has the place and the number of the segment's first frame that was not checked, and
 * the log's end at that time. While the log has the frame at that end, it also has what was written
 * for the checked frames. The file may be lost, or be that of another process: then more frames are
 * checked again.
 */

#define PROGRESS "retention" /* in log/ */
enum { PROGRESS_MAX = 160 };

/* The number of the frame at a place; 0: there is none. */
static uint64_t number_at(struct amp_store *s, uint32_t seg, uint64_t off)
{
    char p[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    int fd = amp_log_fd(&s->log, seg, NULL);
    ssize_t n = fd < 0 ? -1 : pread(fd, p, sizeof p, (off_t)off);
    return n > 0 && amp_frame_peek(p, (size_t)n, &h) ? h.n : 0;
}

void amp_store_compact_leave(struct amp_store *s)
{
    const struct amp_compaction *c = &s->old;
    const struct amp_pos *end = &s->log.end;
    char text[PROGRESS_MAX];
    uint64_t number = c->seg && c->settled ? number_at(s, c->seg, c->settled) : 0;
    if (s->opt.read_only || s->failed || !number || !s->known || s->log.pending.len)
        return;
    int n = snprintf(text, sizeof text,
                     "%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " %" PRIu32
                     " %" PRIu64 " %" PRIx64 "\n",
                     c->seg, c->settled, number, end->seg, end->off, end->len, end->n, end->sum);
    AMP_CLOSE int fd =
        openat(s->logfd, PROGRESS, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
    if (fd >= 0 && pwrite(fd, text, (size_t)n, 0) == n && ftruncate(fd, n) == 0)
        return;
    unlinkat(s->logfd, PROGRESS, 0);
}

/* The offset at which an earlier process stopped in this segment; 0: its start, or unknown. */
static uint64_t progress_read(struct amp_store *s, uint32_t seg)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_pos end = {0};
    uint32_t of;
    uint64_t off, number;
    amp_buf_init(&text, PROGRESS_MAX);
    if (amp_file_read(s->logfd, PROGRESS, PROGRESS_MAX - 1, &text, NULL) != 0 ||
        sscanf(text.data ? text.data : "",
               "%" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu32 " %" SCNu64
               " %" SCNx64,
               &of, &off, &number, &end.seg, &end.off, &end.len, &end.n, &end.sum) != 8)
        return 0;
    bool fits = of == seg && number && number_at(s, seg, off) == number && end.len &&
                end.seg > seg && amp_log_stands(&s->log, &end);
    return fits ? off : 0;
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
        return amp_fail(err, AMP_TEMPFAIL, index_failed, "the index is behind");
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
    if (n <= 0 || !amp_frame_peek(p, (size_t)n, &h) ||
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
    if (!bound || amp_store_pinned(s, bound))
        return 0;
    c->bound = bound;
    c->off = c->settled = progress_read(s, s->log.first);
    c->leaving.n = 0;
    amp_buf_reset(&c->leaving.text);
    c->seg = s->log.first;
    return 0;
}

static int pass_step(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct amp_compaction *c = &s->old;
    const unsigned frames = s->turn_frames;
    struct share left = {
        .checks = frames < CHECKS_MOST / CHECKS ? (int)frames * CHECKS : CHECKS_MOST,
        .stands = frames < STANDS_MOST / STANDS ? (int)frames * STANDS : STANDS_MOST,
    };
    if (l->first + 1 >= l->last || !frames || !segment_must_go(s))
        return 0;
    if (c->seg != l->first && pass_start(s, err) < 0)
        return -1;
    if (!c->seg)
        return 0;
    int rc = pass_frames(s, &left, err);
    if (rc == 1 && amp_keep_forget(s, &c->leaving, err) < 0)
        return -1;
    return rc == 1 ? segment_remove(s, err) : rc;
}

int amp_store_compact(struct amp_store *s, struct amp_error *err)
{
    int rc = pass_step(s, err);
    if (rc != 0 && amp_turn_heal(s, NULL) == 0)
        s->old.seg = 0; /* the next turn begins again */
    return rc;
}
