/*
 * Catching up: the first thing that the holder of main does.
 *
 * Usually nothing changed, or another process appended frames and indexed them: the index's meta
 * row is at the log's end. Otherwise the frames after the meta row are replayed. If the place of
 * the meta row is not in the log (a power loss may leave the index ahead), the index is emptied and
 * rebuilt from the first segment. A bad frame is judged; only a torn tail is cut. After a start of
 * the machine, the first holder of main reads the frames that may not have been synced, because a
 * lost page may come before an intact frame.
 */
#include "message/store/store_int.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/codes.h"

enum {
    LOOK_EVERY = 64,
    TERMS = 8 << 20, /* bytes of frames that get postings when the index is updated */
    FAR = 16 << 20,  /* bytes of frames that a reader adds to the index for itself only */
};

struct replay {
    struct amp_store *s;
    uint64_t gen;
};

static int replay_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                        const struct amp_pos *after, struct amp_error *err)
{
    struct replay *r = ctx;
    struct amp_frame f;
    if (head->gen > r->gen)
        r->gen = head->gen;
    if (amp_frame_decode(frame, head, &r->s->arena, &f, err) < 0)
        return -1;
    return amp_index_apply(&r->s->index, &f, after, err);
}

static int read_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                      const struct amp_pos *after, struct amp_error *err)
{
    struct amp_store *s = ctx;
    struct amp_frame f;
    if (head->gen > s->index.gen || !amp_cache_takes(&s->cache, s->known))
        return 1;
    if (amp_frame_decode(frame, head, &s->arena, &f, err) < 0)
        return -1;
    return amp_cache_note(&s->cache, &f, after, err);
}

/* Reads the frames after `from` into the cache and moves the log's end. false: there are too many
 * or a bad one, so the index must be updated. */
static bool log_read_on(struct amp_store *s, const struct amp_pos *from)
{
    struct amp_pos pos = *from;
    bool bad;
    if (amp_log_scan(&s->log, &pos, &bad, read_frame, s, NULL) != 0 || bad ||
        pos.seg != s->log.last)
        return false;
    s->log.end = pos;
    return true;
}

/* The start of the last segment, with the number and sum of the frame before it. */
static int segment_start(struct amp_log *l, struct amp_pos *pos, struct amp_error *err)
{
    struct amp_pos p = {.seg = l->last};
    bool ends;
    if (l->last > l->first) {
        p.seg--;
        if (amp_log_scan_segment(l, &p, &ends, NULL, NULL, err) < 0)
            return -1;
        p = (struct amp_pos){.seg = l->last, .n = p.n, .sum = p.sum, .loose = p.loose};
    }
    *pos = p;
    return 0;
}

/* Whether the meta row's place is in this log. */
static bool place_stands(struct amp_log *l, const struct amp_pos *pos)
{
    struct amp_pos start;
    if (!pos->n || !amp_log_stands(l, pos))
        return false;
    /* If its segment has no frame yet, only the frame before it can be compared. */
    return pos->len || (pos->seg == l->last && segment_start(l, &start, NULL) == 0 &&
                        start.n == pos->n && start.sum == pos->sum);
}

/* True if the index has no frame and the log has its first segment only: the index is at the
 * beginning of that segment, and no frame is missing. */
static bool place_is_first(const struct amp_log *l, const struct amp_pos *pos)
{
    return !pos->n && !pos->off && pos->seg == 1 && l->first == 1 && l->last == 1;
}

/* Checks the end of the last segment, without the index; cuts a torn tail (*cut). Synced frames
 * are not read: a page that a power loss left out is behind them. */
static int segment_verify(struct amp_store *s, bool *cut, struct amp_pos *end,
                          struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct amp_pos pos = {.seg = l->last};
    bool bad;
    *cut = false;
    if (amp_chain_open(&s->chain, err) < 0)
        return -1;
    amp_log_tail(l, amp_chain_end(&s->chain), &pos);
    if (amp_log_scan(l, &pos, &bad, NULL, NULL, err) < 0)
        return -1;
    if (bad && pos.off == 0 && segment_start(l, &pos, err) < 0)
        return -1;
    if (bad) {
        if (amp_log_judge(l, &pos, err) < 0)
            return -1;
        *cut = true;
        if (!s->opt.read_only) {
            l->gen = s->index.gen;
            if (amp_log_cut(l, &pos, err) < 0)
                return amp_store_fail(s, err);
            pos = l->end;
        }
    }
    amp_wm_set_verified(&s->wm, true);
    s->verified = true;
    *end = pos;
    return 0;
}

static int generation_next(struct amp_store *s, struct amp_error *err)
{
    s->new_generation = true;
    if (amp_index_open(&s->index, s->index.gen + 1, err) < 0)
        return -1;
    amp_index_note_checked(&s->index);
    return 0;
}

/* Opens the index if there is none or its file was replaced. */
static int index_open(struct amp_store *s, uint64_t gen, struct amp_error *err)
{
    struct amp_index *ix = &s->index;
    if (ix->memory || (ix->db && !ix->corrupt && ix->gen >= gen && amp_index_current(ix)))
        return 0;
    if (s->opt.read_only) {
        if (amp_index_open(ix, gen, NULL) == 0)
            return 0;
        return amp_index_open_memory(ix, err);
    }
    if (amp_index_open(ix, gen, err) == 0)
        return 0;
    if (!ix->corrupt)
        return -1;
    return generation_next(s, err);
}

/* Checks a complete index whose pages had no checksums. The file is opened again, because the pages
 * that SQLite has read may be wrong. */
static int index_check(struct amp_store *s, struct amp_error *err)
{
    struct amp_index *ix = &s->index;
    if (amp_index_trusted(ix))
        return 0;
    if (amp_index_open(ix, ix->gen, err) == 0 && amp_index_check(ix, err) == 0) {
        amp_index_note_checked(ix);
        return 0;
    }
    if (s->opt.read_only)
        return amp_index_open_memory(ix, err);
    return ix->corrupt ? generation_next(s, err) : -1;
}

/* Replays from *pos. *again: the index's contents do not fit the log, start with an empty index. */
static int index_replay(struct amp_store *s, struct amp_pos *pos, bool from_start, bool *again,
                        uint64_t *gen, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct replay r = {s, s->index.gen};
    bool bad, cut;
    *again = false;
    if (amp_log_scan(l, pos, &bad, replay_frame, &r, err) < 0)
        return -1;
    *gen = r.gen;
    if (!bad)
        return 0;
    if (pos->seg != l->last) {
        if (from_start)
            return amp_log_damaged(pos, "only the last segment may be torn", err);
        *again = true;
        return 0;
    }
    struct amp_pos end;
    if (segment_verify(s, &cut, &end, err) < 0)
        return -1;
    if (!cut) {
        if (from_start)
            return amp_log_damaged(pos, "it does not follow the segment before", err);
        *again = true;
        return 0;
    }
    if (s->opt.read_only) {
        *again = pos->open; /* the index has frames of the turn without its end */
        return 0;
    }
    /* The cut frame itself. */
    if (amp_log_scan(l, pos, &bad, replay_frame, &r, err) < 0)
        return -1;
    if (bad && from_start)
        return amp_log_damaged(pos, "it does not follow the frame before", err);
    *again = bad;
    return 0;
}

static int index_bring_up(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct amp_index *ix = &s->index;
    uint64_t gen = 0;
    for (int round = 0; round < 4; round++) {
        uint64_t size;
        bool again = false;
        if (amp_index_read_meta(ix, err) < 0)
            return -1;
        struct amp_pos pos = ix->pos;
        bool fits = place_stands(l, &pos) || place_is_first(l, &pos);
        if (fits && pos.seg == l->last) {
            if (amp_log_size(l, &size, NULL, err) < 0)
                return -1;
            if (size == pos.off && !pos.sealed && !pos.open) {
                l->end = pos;
                amp_cache_clear(&s->cache, pos.n);
                return 0;
            }
        }
        if (s->opt.read_only && !ix->memory && !(ix->overlay && fits)) {
            if ((fits ? amp_index_overlay(ix, err) : amp_index_open_memory(ix, err)) < 0)
                return -1;
            continue;
        }
        if (!fits) {
            pos = (struct amp_pos){0};
            /* From the first segment on, which may have changed. */
            if (amp_log_list(l, err) < 0)
                return -1;
            if (amp_index_wipe(ix, err) < 0)
                return -1;
        }
        if (index_replay(s, &pos, !fits, &again, &gen, err) < 0)
            return -1;
        if (again) {
            if ((ix->overlay ? amp_index_open_memory(ix, err) : amp_index_wipe(ix, err)) < 0)
                return -1;
            pos = (struct amp_pos){0};
            if (index_replay(s, &pos, true, &again, &gen, err) < 0)
                return -1;
        }
        if (amp_index_commit(ix, &pos, err) < 0)
            return -1;
        l->end = pos;
        amp_cache_clear(&s->cache, pos.n);
        if (gen <= ix->gen || s->opt.read_only)
            return 0;
        if (index_open(s, gen, err) < 0)
            return -1;
    }
    return amp_fail(err, AMP_TEMPFAIL, index_failed, "the index's generation does not settle");
}

/* True if a reader should leave it to a writer to bring the index up: then each look need not do
 * it again. */
static bool is_far_behind(struct amp_store *s)
{
    struct amp_log *l = &s->log;
    struct stat st;
    if (!s->opt.read_only || !s->opt.look || s->helped || s->index.overlay)
        return false;
    if (!s->index.memory && !amp_index_trusted(&s->index))
        return true;
    bool fits = amp_index_read_meta(&s->index, NULL) == 0 && place_stands(l, &s->index.pos);
    struct amp_pos from = fits ? s->index.pos : (struct amp_pos){.seg = l->first};
    uint64_t bytes = 0;
    for (uint32_t seg = from.seg; seg <= l->last && bytes <= FAR + from.off; seg++) {
        int fd = amp_log_fd(l, seg, NULL);
        if (fd >= 0 && fstat(fd, &st) == 0)
            bytes += (uint64_t)st.st_size;
    }
    return bytes > FAR + from.off;
}

/* Appends a frame of the new generation, so that processes that read it open the new index. */
static int generation_tell(struct amp_store *s, struct amp_error *err)
{
    struct amp_frame f = {.head.log = AMP_FRAME_index, .note = AMP_SPAN("rebuilt")};
    struct amp_pos at;
    s->new_generation = false;
    return amp_turn_append(s, &f, &at, err);
}

static int log_look_again(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct amp_pos end;
    bool cut;
    s->known = false;
    amp_index_rollback(&s->index);
    if (amp_log_list(l, err) < 0)
        return -1;
    if (!l->last && (s->opt.read_only || amp_log_create(l, 1, err) < 0)) {
        if (!s->opt.read_only)
            return -1;
        l->end = (struct amp_pos){0};
        if (amp_chain_open(&s->chain, err) < 0)
            return -1;
        if (amp_chain_end(&s->chain) > 0)
            return amp_log_damaged(&(struct amp_pos){.seg = 1}, "the log is gone", err);
        return index_open(s, 0, err);
    }
    if (amp_index_is_passed(&s->index))
        amp_index_close(&s->index);
    if (index_open(s, 0, err) < 0)
        return -1;
    if ((s->far = is_far_behind(s)))
        return amp_fail(err, AMP_TEMPFAIL, index_failed, "the index is far behind the log");
    if (index_check(s, err) < 0)
        return -1;
    l->gen = s->index.gen;
    if (!s->verified && !s->opt.read_only && segment_verify(s, &cut, &end, err) < 0)
        return -1;
    bool meta = amp_index_read_meta(&s->index, NULL) == 0;
    amp_cache_clear(&s->cache, meta ? s->index.pos.n : 0);
    if (meta && place_stands(l, &s->index.pos) && log_read_on(s, &s->index.pos)) {
        /* The index is only a few frames behind. */
    } else if (index_bring_up(s, err) < 0) {
        amp_index_rollback(&s->index);
        if (!s->index.corrupt || s->opt.read_only)
            return -1;
        if (generation_next(s, err) < 0 || index_bring_up(s, err) < 0)
            return -1;
    }
    if (amp_wm_get(&s->wm) > l->end.n)
        return amp_log_damaged(&l->end, "frames that were synced in this boot are gone", err);
    if (amp_chain_open(&s->chain, err) < 0)
        return -1;
    if (!s->repairs && !s->opt.read_only && s->chain.page_gone)
        return amp_log_damaged(
            &l->end,
            "keys/log.end is gone: frames behind may be missing; amp-ack repair makes it again",
            err);
    if (!s->repairs && amp_chain_end(&s->chain) > l->end.n)
        return amp_log_damaged(&l->end, "frames that were on disk are gone", err);
    l->gen = s->index.gen;
    if (!s->opt.read_only && l->end.sealed && l->end.seg == l->last) {
        if (amp_log_create(l, l->last + 1, err) < 0)
            return amp_store_fail(s, err);
        amp_pos_next_segment(&l->end);
    }
    s->known = true;
    return s->new_generation ? generation_tell(s, err) : 0;
}

int amp_store_catch_up(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    struct amp_index *ix = &s->index;
    if (!s->opt.read_only && amp_wm_claim(&s->wm, s->logfd))
        s->verified = true;
    uint32_t epoch = amp_wm_epoch(&s->wm);
    /* An open index still works after its file was removed, so check for that now and then. */
    bool look = ++s->turns % LOOK_EVERY == 0;
    if (s->known && epoch && epoch == s->epoch && !ix->corrupt &&
        (!look || amp_index_current(ix))) {
        uint64_t size;
        bool linked;
        if (amp_log_size(l, &size, &linked, err) < 0)
            return -1;
        /* Within an epoch, frames that a holder of main has verified are never cut. */
        if (linked && size == l->end.off && !l->end.sealed)
            return 0;
        if (linked && size > l->end.off && !l->end.sealed && amp_log_stands(l, &l->end) &&
            /* If there is more, a part of it may be in the index already. */
            ((size - l->end.off <= AMP_FRAME_MAX && log_read_on(s, &l->end)) ||
             index_bring_up(s, NULL) == 0) &&
            !l->end.sealed)
            return 0;
    }
    s->epoch = epoch;
    return log_look_again(s, err);
}

void amp_turn_help(struct amp_store *s)
{
    struct amp_store_options opt = s->opt;
    struct amp_store *w = NULL;
    bool own;
    s->far = false;
    s->helped = true;
    opt.read_only = false;
    amp_index_close(&s->index);
    /* If this fails, the reader goes on alone, and reports what stops it, too. */
    if (faccessat(s->logfd, "main.lock", R_OK | W_OK, AT_EACCESS) == 0 &&
        amp_store_open(s->dir, &opt, &w, NULL) == 0 && amp_turn_enter(w, &own, NULL) == 0)
        amp_turn_leave(w, own, amp_turn_index(w, NULL), NULL);
    amp_store_close(w);
}

int amp_store_renew_index(struct amp_store *s, struct amp_error *err)
{
    if (index_open(s, 0, err) < 0)
        return -1;
    return s->new_generation ? 0 : generation_next(s, err);
}

static int generation_replace(struct amp_store *s, struct amp_error *err)
{
    amp_index_rollback(&s->index);
    if (s->opt.read_only)
        return amp_index_open_memory(&s->index, err) < 0 ? -1 : index_bring_up(s, err);
    if (generation_next(s, err) < 0 || index_bring_up(s, err) < 0)
        return -1;
    s->log.gen = s->index.gen;
    return generation_tell(s, err);
}

int amp_turn_append(struct amp_store *s, struct amp_frame *f, struct amp_pos *at,
                    struct amp_error *err)
{
    if (amp_log_append(&s->log, f, at, err) < 0)
        return -1;
    amp_store_written(s, f->key);
    s->appended = true;
    s->wrote = f->head.n;
    s->turn_frames++;
    s->turn_bytes += f->head.size;
    if (s->log.pending.len > AMP_TURN_PENDING && amp_log_flush(&s->log, err) < 0)
        return amp_store_fail(s, err);
    if (amp_cache_note(&s->cache, f, at, err) == 0 || amp_turn_index(s, NULL) == 0)
        return 0;
    /* No later decision may miss this frame. */
    return amp_store_fail(s, err);
}

int amp_turn_heal(struct amp_store *s, struct amp_error *err)
{
    if (!s->index.corrupt || s->failed)
        return -1;
    if (amp_log_flush(&s->log, err) < 0)
        return amp_store_fail(s, err);
    return generation_replace(s, err);
}

int amp_turn_misled(struct amp_store *s, uint32_t seg, struct amp_error *err)
{
    struct amp_pos pos = {.seg = seg};
    bool ends = true;
    if (amp_log_flush(&s->log, err) < 0)
        return amp_store_fail(s, err);
    if (seg >= s->log.first && seg <= s->log.last &&
        amp_log_scan_segment(&s->log, &pos, &ends, NULL, NULL, err) < 0)
        return -1;
    if (!ends)
        return amp_log_damaged(&pos, "no intact frame there", err);
    s->index.corrupt = true;
    return amp_turn_heal(s, err);
}

/* Writes the cache into the index; -1: that is not possible, the log must be read. */
static int cache_into_index(struct amp_store *s)
{
    struct amp_index *ix = &s->index;
    if (!s->known || s->cache.incomplete || ix->memory || ix->corrupt || s->opt.read_only ||
        !amp_index_current(ix))
        return -1;
    if (amp_index_begin(ix, NULL) == 0 && amp_index_read_meta(ix, NULL) == 0 &&
        ix->pos.n >= s->cache.from && ix->pos.n <= s->log.end.n &&
        amp_cache_into(&s->cache, ix, NULL) == 0 && amp_index_commit(ix, &s->log.end, NULL) == 0) {
        amp_cache_clear(&s->cache, s->log.end.n);
        return 0;
    }
    amp_index_rollback(ix);
    return -1;
}

int amp_turn_index(struct amp_store *s, struct amp_error *err)
{
    if (!s->cache.frames && !s->log.pending.len)
        return 0;
    if (amp_log_flush(&s->log, err) < 0)
        return amp_store_fail(s, err);
    amp_index_end_read(&s->index);
    if (cache_into_index(s) == 0 || index_bring_up(s, err) == 0) {
        amp_turn_terms(s, TERMS);
        return 0;
    }
    amp_index_rollback(&s->index);
    return amp_turn_heal(s, err);
}
