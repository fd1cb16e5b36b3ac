/* Reads the log again: its frames, its commits, and the state of its segments. */
#include "message/store/history/history.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "message/store/store_int.h"

#define BLOB_MOST ((size_t)256 << 20)

int amp_store_range(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err)
{
    bool own;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, nested_turn, "frames are read outside of a batch");
    if (amp_turn_enter(s, &own, err) < 0)
        return -1;
    *last = s->log.end.n;
    int rc = *last ? amp_log_list(&s->log, err) : 0;
    *first = rc == 0 && *last ? amp_log_first_number(&s->log, s->log.first) : 0;
    return amp_turn_leave(s, own, rc, err);
}

/* The place at which a scan for frame number `from` may begin. */
static struct amp_pos scan_start(struct amp_log *l, uint64_t from)
{
    struct amp_pos pos = {0};
    for (uint32_t seg = l->first; seg <= l->last; seg++) {
        uint64_t n = amp_log_first_number(l, seg);
        if (n == 0 || n > from)
            break;
        pos = (struct amp_pos){.seg = seg, .n = n - 1, .loose = true};
    }
    return pos;
}

/* ---- frames ---- */

struct frames {
    uint64_t after, to;
    struct amp_store_place *at;
    amp_store_frame_fn fn;
    void *ctx;
};

static int frame_visit(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                       const struct amp_pos *after, struct amp_error *err)
{
    struct frames *f = ctx;
    if (head->n > f->to)
        return 1;
    if (head->n <= f->after)
        return 0;
    f->at->pos = *after;
    return f->fn(f->ctx, head->n, (struct amp_span){frame.p, frame.n - 1}, err);
}

static int frames_read(struct amp_store *s, struct amp_pos pos, struct frames *f,
                       struct amp_error *err)
{
    struct amp_store_place *at = f->at;
    bool bad;
    if (f->to <= f->after)
        return 0;
    int rc = amp_log_scan(&s->log, &pos, &bad, frame_visit, f, err);
    if (rc == 0 && bad && at->pos.n < f->to && at->pos.seg != 0) {
        /* A repair moved the frames after the place: read again from the start, and skip those that
         * fn was called with. */
        f->after = at->pos.n;
        pos = (struct amp_pos){0};
        rc = amp_log_scan(&s->log, &pos, &bad, frame_visit, f, err);
    }
    if (rc == 0 && bad && at->pos.n < f->to)
        return amp_log_damaged(&pos, "no intact frame there", err);
    return rc < 0 ? -1 : 0;
}

int amp_store_frames(struct amp_store *s, uint64_t after, amp_store_frame_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct amp_store_place at = {.pos = {0}};
    struct frames f = {.after = after, .at = &at, .fn = fn, .ctx = ctx};
    uint64_t first;
    if (amp_store_range(s, &first, &f.to, err) < 0)
        return -1;
    return frames_read(s, scan_start(&s->log, after + 1), &f, err);
}

int amp_store_place_near_end(struct amp_store *s, uint64_t most, struct amp_store_place *out,
                             uint64_t *after, struct amp_error *err)
{
    uint64_t first, last;
    if (amp_store_range(s, &first, &last, err) < 0)
        return -1;
    *after = last > most ? last - most : 0;
    out->pos = scan_start(&s->log, *after + 1);
    if (out->pos.seg)
        amp_log_approach(&s->log, *after + 1, &out->pos);
    return 0;
}

int amp_store_frames_on(struct amp_store *s, struct amp_store_place *at, amp_store_frame_fn fn,
                        void *ctx, struct amp_error *err)
{
    struct frames f = {.after = at->pos.n, .at = at, .fn = fn, .ctx = ctx};
    uint64_t first;
    /* fn may pass the frames on to other processes: a crash must not undo them. */
    if (amp_store_range(s, &first, &f.to, err) < 0 || amp_store_sync(s, err) < 0)
        return -1;
    return frames_read(s, at->pos, &f, err);
}

struct changes {
    const char *const *kinds;
    amp_store_changed_fn fn;
    void *ctx;
};

/* Whether the key is one of a record of these kinds. */
static bool key_is_of(struct amp_span key, const char *const *kinds)
{
    for (const char *const *kind = kinds; *kind; kind++) {
        size_t len = strlen(*kind);
        if (key.n > len && key.p[len] == '.' && memcmp(key.p, *kind, len) == 0)
            return true;
    }
    return false;
}

static int change_visit(void *ctx, uint64_t n, struct amp_span frame, struct amp_error *err)
{
    const struct changes *c = ctx;
    struct amp_span key = amp_frame_key(frame);

    (void)n;
    return key_is_of(key, c->kinds) ? c->fn(c->ctx, key, err) : 0;
}

/* The end of the log. In a batch the frames of this turn are written first, and the turn is renewed
 * if it is full, so that the caller's next update is in the same turn. */
static int changes_end(struct amp_store *s, const struct amp_store_place *at, uint64_t *to,
                       struct amp_error *err)
{
    bool own;

    if (!s->batch) {
        if (amp_turn_enter(s, &own, err) < 0)
            return -1;
        *to = s->log.end.n;
        return amp_turn_leave(s, own, at->pos.seg == 0 ? amp_log_list(&s->log, err) : 0, err);
    }
    if (amp_turn_renew(s, err) < 0 || (at->pos.seg == 0 && amp_log_list(&s->log, err) < 0))
        return -1;
    if (s->log.pending.len && amp_log_flush(&s->log, err) < 0)
        return amp_store_fail(s, err);
    *to = s->log.end.n;
    return 0;
}

int amp_store_changes_on(struct amp_store *s, struct amp_store_place *at, const char *const *kinds,
                         amp_store_changed_fn fn, void *ctx, struct amp_error *err)
{
    struct changes c = {.kinds = kinds, .fn = fn, .ctx = ctx};
    struct frames f = {.after = at->pos.n, .at = at, .fn = change_visit, .ctx = &c};

    return changes_end(s, at, &f.to, err) < 0 ? -1 : frames_read(s, at->pos, &f, err);
}

/* ---- commits ---- */

struct commits {
    struct amp_store *s;
    uint64_t from, to;
    const char *const *kinds; /* NULL: all */
    amp_store_commit_fn fn;
    void *ctx;
    struct amp_frame_arena arena;
    struct amp_buf blob; /* all blobs of one frame */
};

/* Appends a blob; *size is its size. */
static int blob_append(struct commits *w, struct amp_span name, size_t *size, struct amp_error *err)
{
    size_t before = w->blob.len;
    if (amp_blob_get(w->s, name, &w->blob, err) < 0)
        return -1;
    *size = w->blob.len - before;
    return 0;
}

/* Replaces the names of blobs by their contents. */
static int blobs_load(struct commits *w, struct amp_frame *f, struct amp_frame_out *out,
                      struct amp_error *err)
{
    amp_buf_reset(&w->blob);
    if (f->state_blob.n > 0 && blob_append(w, f->state_blob, &f->state.n, err) < 0)
        return -1;
    for (uint32_t i = 0; i < f->n_out; i++)
        if (out[i].blob.n > 0 && blob_append(w, out[i].blob, &out[i].line.n, err) < 0)
            return -1;
    /* The buffer moves while it grows, so the pointers are set at the end. */
    const char *p = w->blob.data;
    if (f->state_blob.n > 0) {
        f->state.p = p;
        p += f->state.n;
    }
    for (uint32_t i = 0; i < f->n_out; i++)
        if (out[i].blob.n > 0) {
            out[i].line.p = p;
            p += out[i].line.n;
        }
    return 0;
}

static int commit_visit(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                        const struct amp_pos *after, struct amp_error *err)
{
    struct commits *w = ctx;
    struct amp_frame f;
    int rc = 0;
    if (head->n > w->to)
        return 1;
    if (head->n < w->from || head->log != AMP_FRAME_none ||
        (w->kinds && !key_is_of(amp_frame_key(frame), w->kinds)))
        return 0;
    if (amp_frame_decode(frame, head, &w->arena, &f, err) < 0 ||
        blobs_load(w, &f, w->arena.out, err) < 0)
        return -1;
    struct amp_store_commit c = {.n = head->n,
                                 .was = f.was,
                                 .at_ms = f.at,
                                 .key = f.key,
                                 .full = f.full,
                                 .event = f.event,
                                 .actor = f.actor,
                                 .json = f.state,
                                 .has_line = f.n_out > 0,
                                 .role = AMP_ROLE_message,
                                 .id = {"", 0},
                                 .line = {"", 0}};
    do {
        if (c.has_line) {
            c.id = f.out[c.index].id;
            c.line = f.out[c.index].line;
            c.role = (enum amp_role)f.out[c.index].role;
        }
        c.last = c.index + 1 >= f.n_out;
        rc = w->fn(w->ctx, &c, err);
        c.index++;
    } while (rc == 0 && !c.last);
    return rc;
}

int amp_store_commits(struct amp_store *s, uint64_t from, uint64_t to, const char *const *kinds,
                      amp_store_commit_fn fn, void *ctx, struct amp_error *err)
{
    struct commits w = {.s = s, .from = from, .to = to, .kinds = kinds, .fn = fn, .ctx = ctx};
    uint64_t first, last;
    bool bad;
    if (amp_store_range(s, &first, &last, err) < 0)
        return -1;
    if (w.to > last)
        w.to = last;
    if (last == 0 || from > w.to)
        return 0;
    amp_frame_arena_init(&w.arena);
    amp_buf_init(&w.blob, BLOB_MOST);
    struct amp_pos pos = scan_start(&s->log, from);
    int rc = amp_log_scan(&s->log, &pos, &bad, commit_visit, &w, err);
    amp_frame_arena_release(&w.arena);
    amp_buf_release(&w.blob);
    if (rc == 0 && bad && pos.n < w.to)
        return amp_log_damaged(&pos, "no intact frame there", err);
    return rc < 0 ? -1 : 0;
}

/* ---- segments ---- */

int amp_store_segments(struct amp_store *s, amp_store_segment_fn fn, void *ctx,
                       struct amp_error *err)
{
    struct amp_log *l = &s->log;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, nested_turn, "segments are read outside of a batch");
    s->known = false; /* other segments are open afterwards */
    if (amp_log_list(l, err) < 0)
        return -1;
    uint32_t first = l->first, last = l->last;
    struct amp_pos pos = {.seg = first};
    for (; pos.seg && pos.seg <= last; amp_pos_next_segment(&pos)) {
        struct amp_error damage;
        bool intact = true;
        if (amp_log_fd(l, pos.seg, err) < 0) {
            char name[32];
            amp_log_name(pos.seg, name);
            if (faccessat(l->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return -1;
            pos.n = 0; /* the segment was removed meanwhile */
            continue;
        }
        if (amp_log_scan_segment(l, &pos, &intact, NULL, NULL, err) < 0)
            return -1;
        if (!intact)
            intact = amp_log_judge(l, &pos, &damage) == 0;
        fn(ctx, &(struct amp_store_segment){pos.seg, first, last, intact ? NULL : &damage});
        if (!intact)
            pos.n = 0; /* the number that the next segment must begin with is unknown */
    }
    return 0;
}
