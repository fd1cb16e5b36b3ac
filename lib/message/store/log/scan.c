/*
 * Scanning the log, and judging a bad frame.
 *
 * A bad frame B is a torn tail unless there is evidence that B was completely on disk: a later
 * frame that is valid by itself and whose s includes B, this boot's watermark, or the noted end of
 * the log. Then it is damage, and nothing is cut. A turn is read and cut completely: B is the first
 * frame of a turn of which a frame is bad or missing. A sync comes after the end of a turn, so it
 * includes B only with all frames of the turn.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/store/log/log.h"

/* A moving window over one segment. */
struct window {
    struct amp_buf *buf;
    int fd;
    uint64_t off; /* of buf's first byte */
    uint64_t size;
    unsigned reads;
};

enum { STEP = 2 * AMP_FRAME_MAX };

/* Whether the frame at `at` was read as a whole. */
static bool has_frame(const struct window *w, uint64_t at)
{
    struct amp_frame_head h;

    if (at < w->off || at >= w->off + w->buf->len)
        return false;
    size_t n = w->buf->len - (size_t)(at - w->off);
    return amp_frame_peek(w->buf->data + (at - w->off), n, &h) && h.size <= n;
}

/* Makes the frame at `at` available; of bytes that are none, the largest size of a frame, or those
 * up to the segment's end. */
static int window_at(struct window *w, uint64_t at, const char **p, size_t *n,
                     struct amp_error *err)
{
    uint64_t rest = w->size - at;
    uint64_t want = rest < AMP_FRAME_MAX ? rest : AMP_FRAME_MAX;
    if ((at < w->off || at + want > w->off + w->buf->len) && !has_frame(w, at)) {
        uint64_t take = rest < STEP ? rest : STEP;
        amp_buf_reset(w->buf);
        w->off = at;
        w->reads++;
        if (amp_buf_reserve(w->buf, take, err) < 0)
            return -1;
        while (w->buf->len < take) {
            ssize_t r = pread(w->fd, w->buf->data + w->buf->len, take - w->buf->len,
                              (off_t)(at + w->buf->len));
            if (r < 0 && errno == EINTR)
                continue;
            if (r < 0)
                return amp_fail_errno(err, AMP_IOERR, "cannot read the log");
            if (r == 0) {
                w->size = at + w->buf->len;
                break;
            }
            w->buf->len += (size_t)r;
        }
    }
    *p = w->buf->data + (at - w->off);
    *n = w->buf->len - (size_t)(at - w->off);
    return 0;
}

static int window_open(struct window *w, struct amp_log *l, uint32_t seg, struct amp_error *err)
{
    struct stat st;
    amp_buf_reset(&l->scan);
    int fd = amp_log_fd(l, seg, err);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat the log");
    *w = (struct window){.buf = &l->scan, .fd = fd, .size = (uint64_t)st.st_size};
    return 0;
}

uint64_t amp_log_first_number(struct amp_log *l, uint32_t seg)
{
    char p[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    struct amp_span frame;
    int fd = seg > l->last ? -1 : amp_log_fd(l, seg, NULL);
    ssize_t n = fd < 0 ? -1 : pread(fd, p, sizeof p, 0);
    /* A damaged number would end the previous segment at a wrong place. */
    return n > 0 && amp_frame_peek(p, (size_t)n, &h) &&
                   amp_log_frame(l, (struct amp_place){seg, h.size, 0}, &frame, &h, NULL) == 0
               ? h.n
               : 0;
}

enum { APPROACH_NEAR = 64 * 1024, APPROACH_READ = 4096 };

/* The first intact frame that begins after a line end at `from` or later, and before `to`. */
static bool frame_after(struct amp_log *l, uint32_t seg, uint64_t from, uint64_t to,
                        struct amp_frame_head *h, uint64_t *off)
{
    char p[APPROACH_READ];
    struct amp_span frame;
    ssize_t n;
    int fd = amp_log_fd(l, seg, NULL);
    const char *lf = NULL;
    for (; fd >= 0 && !lf && from < to; from += (uint64_t)n) {
        n = pread(fd, p, sizeof p, (off_t)from);
        if (n <= 0)
            return false;
        lf = memchr(p, '\n', (size_t)n);
        if (lf)
            break;
    }
    if (!lf || (*off = from + (uint64_t)(lf - p) + 1) >= to)
        return false;
    n = pread(fd, p, AMP_FRAME_PREFIX, (off_t)*off);
    return n > 0 && amp_frame_peek(p, (size_t)n, h) && *off + h->size <= to &&
           amp_log_frame(l, (struct amp_place){seg, h->size, *off}, &frame, h, NULL) == 0;
}

void amp_log_approach(struct amp_log *l, uint64_t n, struct amp_pos *pos)
{
    struct stat st;
    int fd = amp_log_fd(l, pos->seg, NULL);
    if (fd < 0 || fstat(fd, &st) != 0)
        return;
    uint64_t to = pos->seg == l->end.seg ? l->end.off : (uint64_t)st.st_size;
    /* The numbers of the frames rise. */
    while (pos->off + APPROACH_NEAR < to) {
        struct amp_frame_head h;
        uint64_t middle = pos->off + (to - pos->off) / 2, off;
        if (!frame_after(l, pos->seg, middle, to, &h, &off) || h.n >= n) {
            to = middle;
            continue;
        }
        pos->off = off;
        amp_pos_advance(pos, &h);
    }
}

struct amp_place amp_pos_frame(const struct amp_pos *pos)
{
    return (struct amp_place){.seg = pos->seg, .len = pos->len, .off = pos->off - pos->len};
}

bool amp_pos_precedes(const struct amp_pos *pos, const struct amp_frame_head *h)
{
    if (pos->n == 0)
        return true; /* h is of the oldest frame */
    if (pos->loose)
        return h->n > pos->n;
    return h->n == pos->n + 1 && h->prev == pos->sum;
}

void amp_pos_advance(struct amp_pos *pos, const struct amp_frame_head *h)
{
    pos->off += h->size;
    pos->len = h->size;
    pos->n = h->n;
    pos->sum = h->sum;
    pos->loose = h->log == AMP_FRAME_repair;
    pos->sealed = h->log == AMP_FRAME_seal;
    pos->open = !h->ends;
}

void amp_pos_next_segment(struct amp_pos *pos)
{
    pos->seg++;
    pos->off = 0;
    pos->len = 0;
    pos->sealed = false;
}

/* Moves pos past the frames of its turn, up to the first bad one. Returns whether the turn ends.
 * The frames of the turn that this process is writing count without an end. */
static bool turn_ends(struct amp_log *l, struct window *w, struct amp_pos *pos, uint64_t next)
{
    const char *p;
    size_t n;
    do {
        struct amp_frame_head h;
        if (pos->off >= w->size || (next && pos->n + 1 == next))
            return pos->off >= w->size && pos->seg == l->last && l->unended;
        if (window_at(w, pos->off, &p, &n, NULL) < 0 || !amp_frame_check(p, n, &h) ||
            !amp_pos_precedes(pos, &h))
            return false;
        amp_pos_advance(pos, &h);
    } while (pos->open);
    return true;
}

void amp_log_bad_frame(struct amp_log *l, struct amp_pos *pos)
{
    struct window w;
    if (window_open(&w, l, pos->seg, NULL) == 0)
        turn_ends(l, &w, pos, 0);
}

int amp_log_scan_segment(struct amp_log *l, struct amp_pos *pos, bool *ends, amp_scan_fn fn,
                         void *ctx, struct amp_error *err)
{
    struct window w;
    uint64_t next = 0, ended = 0; /* the turn is known to end at this offset */
    unsigned checked = 0;         /* the read that gave the bytes in which it was checked */
    const char *p;
    size_t n;
    bool is_last = pos->seg == l->last;
    if (!is_last)
        next = amp_log_first_number(l, pos->seg + 1);
    if (window_open(&w, l, pos->seg, err) < 0)
        return -1;
    while (pos->off < w.size && !(next && pos->n + 1 == next)) {
        struct amp_frame_head h;
        if (window_at(&w, pos->off, &p, &n, err) < 0)
            return -1;
        bool known = pos->off < ended && w.reads == checked;
        if (!(known ? amp_frame_peek(p, n, &h) : amp_frame_check(p, n, &h)) ||
            !amp_pos_precedes(pos, &h)) {
            *ends = false;
            return 0;
        }
        if (!h.ends && pos->off >= ended) {
            struct amp_pos at = *pos;
            unsigned reads = w.reads;
            amp_pos_advance(&at, &h);
            if (!turn_ends(l, &w, &at, next)) {
                *ends = false;
                return 0;
            }
            ended = at.off;
            checked = w.reads == reads ? reads : 0;
            if (window_at(&w, pos->off, &p, &n, err) < 0)
                return -1;
        }
        amp_pos_advance(pos, &h);
        int rc = fn ? fn(ctx, &h, (struct amp_span){p, h.size}, pos, err) : 0;
        if (rc != 0)
            return rc;
    }
    if (pos->open && !(is_last && l->unended)) {
        *ends = false;
        return 0;
    }
    *ends = is_last || pos->loose || (next ? pos->n + 1 == next : pos->sealed);
    return 0;
}

int amp_log_scan(struct amp_log *l, struct amp_pos *pos, bool *bad, amp_scan_fn fn, void *ctx,
                 struct amp_error *err)
{
    *bad = false;
    if (!l->last)
        return 0;
    if (pos->seg < l->first)
        *pos = (struct amp_pos){.seg = l->first};
    for (;;) {
        bool ends;
        int rc = amp_log_scan_segment(l, pos, &ends, fn, ctx, err);
        if (rc != 0)
            return rc;
        *bad = !ends;
        if (!ends || pos->seg == l->last)
            return 0;
        amp_pos_next_segment(pos);
    }
}

/* The first intact frame that begins after `at` and before `end`; *at becomes its place. */
static bool frame_find(struct window *w, uint64_t *at, uint64_t end, struct amp_frame_head *h)
{
    const char *p;
    size_t n;
    while (*at < end && window_at(w, *at, &p, &n, NULL) == 0) {
        const char *lf = memchr(p, '\n', n);
        if (!lf)
            return false;
        *at += (uint64_t)(lf - p) + 1;
        if (*at < end && window_at(w, *at, &p, &n, NULL) == 0 && amp_frame_check(p, n, h))
            return true;
    }
    return false;
}

void amp_log_tail(struct amp_log *l, uint64_t durable, struct amp_pos *pos)
{
    enum { BACK = 64 << 10 };
    struct window w;
    struct amp_frame_head h;
    if (window_open(&w, l, l->last, NULL) < 0)
        return;
    uint64_t end = w.size;
    for (uint64_t back = BACK; back < w.size; back *= 2) {
        uint64_t at = w.size - back;
        if (frame_find(&w, &at, end, &h)) {
            if (h.s > durable)
                durable = h.s;
            if (h.n <= durable) {
                pos->off = at;
                amp_pos_advance(pos, &h);
                return;
            }
        }
        end = w.size - back;
    }
}

int amp_log_damaged(const struct amp_pos *pos, const char *why, struct amp_error *err)
{
    return amp_fail(err, AMP_IOERR, log_damaged,
                    "log/%06u.ndjson is damaged at offset %llu (frame %llu): %s", pos->seg,
                    (unsigned long long)pos->off, (unsigned long long)pos->n + 1, why);
}

int amp_log_judge(struct amp_log *l, const struct amp_pos *pos, struct amp_error *err)
{
    struct window w;
    uint64_t bad = pos->n + 1, at = pos->off + 1;
    struct amp_pos frame = *pos;
    char why[128];
    if (pos->seg != l->last)
        return amp_log_damaged(pos, "only the last segment may be torn", err);
    amp_log_bad_frame(l, &frame);
    if (amp_wm_get(l->wm) >= bad)
        return amp_log_damaged(&frame, "it was synced in this boot", err);
    if (amp_chain_end(l->chain) >= bad)
        return amp_log_damaged(&frame, "frames that were on disk are gone", err);
    if (window_open(&w, l, pos->seg, err) < 0)
        return -1;
    /* A frame may begin after any line feed. */
    while (at < w.size) {
        const char *p;
        size_t n;
        struct amp_frame_head h;
        if (window_at(&w, at, &p, &n, err) < 0)
            return -1;
        const char *lf = memchr(p, '\n', n);
        if (!lf) {
            at += n;
            if (!n)
                break;
            continue;
        }
        at += (uint64_t)(lf - p) + 1;
        if (at >= w.size || window_at(&w, at, &p, &n, err) < 0)
            break;
        if (amp_frame_check(p, n, &h) && h.s >= bad && h.n > bad) {
            snprintf(why, sizeof why, "frame %llu, behind it, knew it to be durable",
                     (unsigned long long)h.n);
            return amp_log_damaged(&frame, why, err);
        }
    }
    return 0;
}

int amp_log_cut(struct amp_log *l, const struct amp_pos *pos, struct amp_error *err)
{
    uint64_t size;
    char note[96];
    struct amp_pos at;
    if (amp_log_size(l, &size, NULL, err) < 0)
        return -1;
    if (ftruncate(l->fd, (off_t)pos->off) != 0 || fsync(l->fd) != 0)
        return amp_fail_errno(err, AMP_TEMPFAIL, "cannot cut the log's torn tail");
    snprintf(note, sizeof note, "%llu bytes at offset %llu", (unsigned long long)(size - pos->off),
             (unsigned long long)pos->off);
    struct amp_frame cut = {.head.log = AMP_FRAME_cut, .note = amp_span_str(note)};
    l->end = *pos;
    if (amp_log_append(l, &cut, &at, err) < 0)
        return -1;
    return amp_log_flush(l, err);
}
