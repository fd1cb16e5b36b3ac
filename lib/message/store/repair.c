/*
 * Repair by amp-ack repair, after a failed write or after damage.
 *
 * A damaged segment is written again: its intact frames byte for byte, and a repair frame where
 * frames are lost, after which the next frame's number may jump and its link is not checked. The
 * damaged file is kept as NNNNNN.damaged-<ms>. After a failed write or sync, the frames that are
 * not known to be on disk are written into a new segment, byte for byte: a segment ends before the
 * number of the next segment's first frame. Each file is complete and synced under a temporary name
 * before it gets its name, so after a crash the repair is only run again. In a rewritten segment
 * frames move, and the index has their places. So the next generation of the index begins before
 * the first rewritten segment gets its name, and a crash never leaves the old index in use.
 *
 * A repair frame names the number of the frame behind the gap, so that no more than that gap is
 * missing for amp_store_verify. The noted end of the log is lowered last.
 *
 * A turn that is not known to be on disk is kept with all its frames or not at all. Of a turn that
 * was on disk and is damaged, the intact frames are kept, and the repair frame ends it.
 */
#include "base/codes.h"
#include "message/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

enum { SEGMENT_MAX = 2000 * 1024 * 1024 };

struct repair {
    struct amp_store *s;
    struct amp_buf *said;
    struct amp_buf old, new; /* a segment's bytes */
    struct amp_pos pos;      /* after the last frame that was added to new */
    uint64_t next;           /* the number that the last repair frame names */
    uint64_t lost;           /* bytes */
    uint64_t durable;        /* the last frame of the segment that is known to have been on disk */
    struct amp_pos turn;     /* before the turn of the last frame in new, */
    size_t turn_at;          /* and its offset in new */
    bool renewed;            /* the index has a new generation */
};

/* next: the number of the frame behind the gap; 0: the frame that is appended next. */
static int put_repair_frame(struct repair *r, const char *note, uint64_t next,
                            struct amp_error *err)
{
    struct amp_log *l = &r->s->log;
    if (amp_chain_ready(l->chain, r->pos.n + 1, amp_log_first_number(l, l->first), err) < 0)
        return -1;
    struct amp_frame f = {
        .head = {.log = AMP_FRAME_repair,
                 .n = r->pos.n + 1,
                 .prev = r->pos.sum,
                 .gen = r->s->index.gen},
        .note = amp_span_str(note),
        .at = amp_now_ms(),
        .next = (int64_t)next,
    };
    if (amp_frame_encode(&f, l->chain, &r->new, err) < 0)
        return -1;
    r->next = next;
    amp_pos_advance(&r->pos, &f.head);
    return 0;
}

static int put_frame(struct repair *r, const char *p, const struct amp_frame_head *h,
                     struct amp_error *err)
{
    if (!r->pos.open) {
        r->turn = r->pos;
        r->turn_at = r->new.len;
    }
    if (amp_buf_add(&r->new, p, h->size, err) < 0)
        return -1;
    amp_pos_advance(&r->pos, h);
    return 0;
}

/* Adds and reports a repair frame for the frames up to `last`, which are lost. */
static int put_gap(struct repair *r, uint64_t last, bool goes_on, struct amp_error *err)
{
    char note[128];
    uint64_t first = r->pos.n + 1;
    if (last > first)
        snprintf(note, sizeof note, "frames %" PRIu64 " to %" PRIu64 " are lost", first, last);
    else
        snprintf(note, sizeof note, "frame %" PRIu64 " is lost", first);
    if (amp_buf_fmt(r->said, err, "%s\n", note) != 0)
        return -1;
    return put_repair_frame(r, note, goes_on ? last + 1 : 0, err);
}

/* Whether only the line feed of the frame at p is damaged; restores it. Otherwise the next frame
 * would be taken for a part of this line. */
static bool line_feed_was_lost(char *p, size_t n, struct amp_frame_head *h)
{
    if (!amp_frame_peek(p, n, h) || h->size > n)
        return false;
    char was = p[h->size - 1];
    p[h->size - 1] = '\n';
    if (amp_frame_check(p, n, h))
        return true;
    p[h->size - 1] = was;
    return false;
}

/* Removes the last turn from new again if it has no end. */
static bool open_turn_drop(struct repair *r)
{
    if (!r->pos.open || r->turn.n < r->durable)
        return false;
    r->lost += r->new.len - r->turn_at;
    r->new.len = r->turn_at;
    r->pos = r->turn;
    return true;
}

/* Copies the intact frames of old to new. */
static int frames_salvage(struct repair *r, struct amp_error *err)
{
    char *p = r->old.data, *end = p + r->old.len;
    while (p < end) {
        struct amp_frame_head h;
        bool whole = amp_frame_check(p, (size_t)(end - p), &h) ||
                     line_feed_was_lost(p, (size_t)(end - p), &h);
        /* A frame of a turn whose beginning is lost. */
        if (whole && h.turn && h.n > r->durable && !(r->pos.open && h.n == r->pos.n + 1)) {
            r->lost += h.size;
            p += h.size;
            continue;
        }
        bool named =
            !r->pos.loose || h.n == r->next || (h.n == r->pos.n + 1 && h.prev == r->pos.sum);
        if (whole && amp_pos_precedes(&r->pos, &h) && named) {
            if (put_frame(r, p, &h, err) < 0)
                return -1;
            p += h.size;
            continue;
        }
        if (whole && h.n > r->pos.n + 1 && open_turn_drop(r))
            continue;
        if (whole && h.n > r->pos.n + 1 && (!r->pos.loose || !named)) {
            if (put_gap(r, h.n - 1, true, err) < 0)
                return -1;
            continue;
        }
        char *lf = memchr(p, '\n', (size_t)(end - p));
        char *next = lf ? lf + 1 : end;
        r->lost += (uint64_t)(next - p);
        p = next;
    }
    open_turn_drop(r);
    return 0;
}

/* Writes new as segment seg: synced under a temporary name, then renamed. */
static int segment_publish(struct repair *r, uint32_t seg, struct amp_error *err)
{
    char name[32];
    amp_log_name(seg, name);
    return amp_file_write_atomic(r->s->logfd, name, 0600, amp_buf_span(&r->new), err);
}

static int read_segment(struct repair *r, uint32_t seg, struct amp_error *err)
{
    char name[32];
    amp_log_name(seg, name);
    amp_buf_reset(&r->old);
    amp_buf_reset(&r->new);
    return amp_file_read(r->s->logfd, name, SEGMENT_MAX, &r->old, err);
}

/* The last frame that was on disk, by this boot's watermark or the noted end. */
static uint64_t durable_end(const struct amp_store *s)
{
    uint64_t wm = amp_wm_get(&s->wm), end = amp_chain_end(&s->chain);
    return wm > end ? wm : end;
}

/* Adds a gap for frames that are missing at the end, by the next segment's first number or this
 * boot's watermark. */
static int put_end(struct repair *r, uint64_t next, struct amp_error *err)
{
    if (r->pos.loose)
        return 0;
    if (next)
        return r->pos.n + 1 < next ? put_gap(r, next - 1, true, err) : 0;
    if (r->pos.seg != r->s->log.last)
        return r->pos.sealed ? 0 : put_repair_frame(r, "the frames behind are lost", 0, err);
    uint64_t durable = durable_end(r->s);
    return durable > r->pos.n ? put_gap(r, durable, false, err) : 0;
}

/* torn: it is a torn tail if no intact frame comes after it, which the catch-up cuts. */
static int rewrite_segment(struct repair *r, const struct amp_pos *start, const struct amp_pos *bad,
                           bool torn, struct amp_error *err)
{
    char name[32], kept[64];
    uint64_t before = r->lost, next = amp_log_first_number(&r->s->log, start->seg + 1);
    r->pos = *start;
    r->durable = next ? UINT64_MAX : durable_end(r->s);
    if (!torn && r->durable <= bad->n)
        r->durable = bad->n + 1;
    if (read_segment(r, start->seg, err) < 0 || frames_salvage(r, err) < 0)
        return -1;
    if (torn && r->pos.n == bad->n)
        return 0;
    if (put_end(r, next, err) < 0)
        return -1;
    if (!r->renewed && amp_store_renew_index(r->s, err) < 0)
        return -1;
    r->renewed = true;
    amp_log_name(start->seg, name);
    snprintf(kept, sizeof kept, "%06u.damaged-%" PRId64, start->seg, amp_now_ms());
    if (linkat(r->s->logfd, name, r->s->logfd, kept, 0) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot keep log/%s", kept);
    if (segment_publish(r, start->seg, err) < 0)
        return -1;
    return amp_buf_fmt(r->said, err,
                       "log/%s: written again without %" PRIu64
                       " damaged bytes; the damaged file is log/%s\n",
                       name, r->lost - before, kept);
}

/* Repairs all segments; *end is the end of the log. The catch-up cuts a torn tail. */
static int segments_repair(struct repair *r, struct amp_pos *end, struct amp_error *err)
{
    struct amp_log *l = &r->s->log;
    struct amp_pos start = {.seg = l->first}, pos = start;
    while (pos.seg <= l->last) {
        bool ends;
        start = pos;
        if (amp_log_scan_segment(l, &pos, &ends, NULL, NULL, err) < 0)
            return -1;
        if (!ends) {
            bool torn = amp_log_judge(l, &pos, NULL) == 0;
            if (rewrite_segment(r, &start, &pos, torn, err) < 0 || amp_log_list(l, err) < 0)
                return -1;
            pos = start;
            if (amp_log_scan_segment(l, &pos, &ends, NULL, NULL, err) < 0)
                return -1;
            if (!ends && start.seg != l->last)
                return amp_log_damaged(&pos, "repair could not fix it", err);
        }
        if (pos.seg == l->last)
            break;
        pos = (struct amp_pos){.seg = pos.seg + 1, .n = pos.n, .sum = pos.sum, .loose = pos.loose};
    }
    *end = pos;
    return 0;
}

struct tail {
    struct repair *r;
    uint64_t above;
    uint64_t n;
};

static int copy_tail(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                     const struct amp_pos *after, struct amp_error *err)
{
    struct tail *t = ctx;
    if (head->n <= t->above)
        return 0;
    t->n++;
    return put_frame(t->r, frame.p, head, err);
}

/* The largest s in the last segment: the last frame that its writers knew to be on disk. */
static int largest_s(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                     const struct amp_pos *after, struct amp_error *err)
{
    uint64_t *s = ctx;
    if (head->s > *s)
        *s = head->s;
    return 0;
}

/* Writes the frames after the durable point into a new segment. */
static int append_again(struct repair *r, const struct amp_pos *end, struct amp_error *err)
{
    struct amp_log *l = &r->s->log;
    struct tail t = {.r = r, .above = amp_wm_get(&r->s->wm)};
    struct amp_pos pos = {.seg = l->last};
    bool ends;
    amp_buf_reset(&r->new);
    if (!t.above && amp_log_scan_segment(l, &pos, &ends, largest_s, &t.above, err) < 0)
        return -1;
    if (t.above > end->n)
        t.above = end->n;
    pos = (struct amp_pos){.seg = l->last};
    r->pos = *end;
    if (amp_log_scan_segment(l, &pos, &ends, copy_tail, &t, err) < 0)
        return -1;
    if (put_repair_frame(r, "a write or sync had failed", 0, err) < 0 ||
        segment_publish(r, l->last + 1, err) < 0)
        return -1;
    return amp_buf_fmt(r->said, err,
                       "%" PRIu64 " frames behind the last durable one written again, into "
                       "log/%06u.ndjson\n",
                       t.n, l->last + 1);
}

/* Creates a missing segment as an empty file, which is then rewritten like a damaged one. */
static int list_segments(struct repair *r, struct amp_error *err)
{
    struct amp_log *l = &r->s->log;
    char name[32];
    if (amp_log_list(l, err) == 0)
        return 0;
    if (!amp_code_is(err->code, log_damaged))
        return -1;
    for (uint32_t seg = l->first; seg < l->last; seg++) {
        amp_log_name(seg, name);
        int fd = openat(r->s->logfd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EEXIST)
            continue;
        if (fd < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot make log/%s", name);
        close(fd);
        if (amp_buf_fmt(r->said, err, "log/%s is missing\n", name) != 0)
            return -1;
    }
    return amp_log_list(l, err);
}

static int text_note(struct repair *r, const char *note, struct amp_error *err)
{
    struct amp_pos at;
    struct amp_frame f = {.head.log = AMP_FRAME_repair, .note = amp_span_str(note)};
    return amp_buf_fmt(r->said, err, "%s\n", note) < 0 ? -1 : amp_turn_append(r->s, &f, &at, err);
}

static int gone_note(struct repair *r, uint64_t from, uint64_t to, struct amp_error *err)
{
    char note[128];
    snprintf(note, sizeof note, "frames %" PRIu64 " to %" PRIu64 " are gone", from, to);
    return text_note(r, note, err);
}

/* Reports and records the frames that are missing before the first segment, and after `end`, the
 * end of the log before this repair. */
static int ends_note(struct repair *r, const struct amp_pos *end, uint64_t gone,
                     struct amp_error *err)
{
    struct amp_store *s = r->s;
    uint64_t first = amp_log_first_number(&s->log, s->log.first);
    uint64_t noted = amp_chain_first(&s->chain);
    if (noted && first > noted && gone_note(r, noted, first - 1, err) < 0)
        return -1;
    if (s->chain.page_gone && text_note(r, "keys/log.end was gone: frames may be missing", err) < 0)
        return -1;
    return gone > end->n ? gone_note(r, end->n + 1, gone, err) : 0;
}

static int log_repair(struct repair *r, struct amp_error *err)
{
    struct amp_store *s = r->s;
    struct amp_pos end;
    amp_wm_claim(&s->wm, s->logfd);
    if (amp_chain_open(&s->chain, err) < 0)
        return -1;
    bool failed = amp_wm_failed(&s->wm) || faccessat(s->logfd, "FAILED", F_OK, 0) == 0;
    if (list_segments(r, err) < 0)
        return -1;
    uint64_t gone = durable_end(s);
    if (!s->log.last && !gone)
        return amp_buf_str(r->said, "there is no log\n", err);
    if (!s->log.last && amp_log_create(&s->log, 1, err) < 0)
        return -1;
    if (segments_repair(r, &end, err) < 0)
        return -1;
    if (failed && append_again(r, &end, err) < 0)
        return -1;
    amp_wm_reset(&s->wm);
    if (unlinkat(s->logfd, "FAILED", 0) == 0 && fsync(s->logfd) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync the log directory");
    amp_wm_set_failed(&s->wm, false);
    s->known = s->verified = false;
    amp_wm_set_verified(&s->wm, false);
    s->repairs = true;
    if (amp_store_catch_up(s, err) < 0 || ends_note(r, &end, gone, err) < 0)
        return -1;
    s->repairs = false;
    if (amp_log_flush(&s->log, err) < 0 || amp_log_datasync(&s->log, err) < 0)
        return amp_store_fail(s, err);
    amp_log_synced(&s->log, s->log.end.n);
    if (amp_chain_reset(&s->chain, amp_log_first_number(&s->log, s->log.first), s->log.end.n, err) <
        0)
        return -1;
    return amp_buf_fmt(r->said, err,
                       "the log can be read completely: %u segments, up to frame %" PRIu64 "\n",
                       s->log.last - s->log.first + 1, s->log.end.n);
}

int amp_store_repair(const char *dir, struct amp_buf *said, struct amp_error *err)
{
    struct amp_store *s;
    struct repair r = {.said = said};
    struct amp_store_options opt = {.lock_timeout_ms = -1};
    if (amp_store_open_failed(dir, &opt, &s, err) < 0)
        return -1;
    r.s = s;
    amp_buf_init(&r.old, SEGMENT_MAX);
    amp_buf_init(&r.new, SEGMENT_MAX);
    int rc = amp_turnstile_enter(&s->lock, -1, err);
    if (rc == 0) {
        rc = log_repair(&r, err);
        amp_turnstile_leave(&s->lock);
    }
    amp_buf_release(&r.old);
    amp_buf_release(&r.new);
    amp_store_close(s);
    return rc;
}
