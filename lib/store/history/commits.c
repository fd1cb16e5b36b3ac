/* The commits of the log, read again from a position on. */

#include "store/history/history.h"
#include "store/store_int.h"

#define BLOB_MOST ((size_t)256 << 20)

struct reading {
    struct amp_store *s;
    uint64_t from, to;
    amp_store_commit_fn fn;
    void *ctx;
    struct amp_frame_arena arena;
    struct amp_buf blob; /* all blobs of one frame */
    struct amp_error *err;
};

/* Puts the blobs in the place of their names. */
static int fetch(struct reading *w, struct amp_frame *f, struct amp_frame_out *out,
                 struct amp_error *err)
{
    amp_buf_reset(&w->blob);
    if (f->state_blob.n > 0) {
        if (amp_blob_get(w->s, f->state_blob, &w->blob, err) < 0)
            return -1;
        f->state = amp_buf_span(&w->blob);
    }
    for (uint32_t i = 0; i < f->n_out; i++) {
        if (out[i].blob.n == 0)
            continue;
        size_t before = w->blob.len;
        const char *was = w->blob.data;
        if (amp_blob_get(w->s, out[i].blob, &w->blob, err) < 0)
            return -1;
        out[i].line = (struct amp_span){w->blob.data + before, w->blob.len - before};
        if (w->blob.data == was)
            continue;
        /* It moved: so did what was fetched before. */
        size_t off = 0;
        if (f->state_blob.n > 0) {
            f->state.p = w->blob.data;
            off = f->state.n;
        }
        for (uint32_t k = 0; k <= i; k++)
            if (out[k].blob.n > 0) {
                out[k].line.p = w->blob.data + off;
                off += out[k].line.n;
            }
    }
    return 0;
}

static int one_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                     const struct amp_pos *after, struct amp_error *err)
{
    struct reading *w = ctx;
    struct amp_frame f;
    (void)after;
    if (head->n > w->to)
        return 1;
    if (head->n < w->from || head->log != AMP_FRAME_none)
        return 0;
    if (amp_frame_decode(frame, head, &w->arena, &f, err) != 0 ||
        fetch(w, &f, w->arena.out, err) < 0)
        return -1;
    struct amp_store_commit c = {.n = head->n,
                                 .was = f.was,
                                 .at_ms = f.at,
                                 .key = f.key,
                                 .full = f.full,
                                 .event = f.event,
                                 .actor = f.actor,
                                 .json = f.state};
    for (c.index = 0; c.index < f.n_out || (c.index == 0 && f.n_out == 0); c.index++) {
        c.has_line = f.n_out > 0;
        c.id = c.has_line ? f.out[c.index].id : (struct amp_span){"", 0};
        c.line = c.has_line ? f.out[c.index].line : (struct amp_span){"", 0};
        c.role = c.has_line ? (enum amp_role)f.out[c.index].role : AMP_ROLE_message;
        c.last = c.index + 1 >= f.n_out;
        if (w->fn(w->ctx, &c) != 0)
            return 1;
    }
    return 0;
}

/* Where a scan for frame number `from` may begin. */
static struct amp_pos begin_at(struct amp_log *l, uint64_t from)
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

static int ends(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err)
{
    bool own;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, "nested_turn", "frames are read outside of a batch");
    if (amp_turn_enter(s, &own, err) != 0)
        return -1;
    *last = s->log.end.n;
    if (*last && amp_log_list(&s->log, err) != 0) {
        amp_turn_leave(s, own, NULL);
        return -1;
    }
    *first = *last ? amp_log_first_number(&s->log, s->log.first) : 0;
    return amp_turn_leave(s, own, err);
}

int amp_store_range(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err)
{
    return ends(s, first, last, err) != 0 ? -1 : 0;
}

int amp_store_commits(struct amp_store *s, uint64_t from, uint64_t to, amp_store_commit_fn fn,
                      void *ctx, struct amp_error *err)
{
    struct reading w = {.s = s, .from = from, .to = to, .fn = fn, .ctx = ctx, .err = err};
    uint64_t first, last;
    bool bad;
    if (ends(s, &first, &last, err) != 0)
        return -1;
    if (w.to > last)
        w.to = last;
    if (last == 0 || from > w.to)
        return 0;
    amp_frame_arena_init(&w.arena);
    amp_buf_init(&w.blob, BLOB_MOST);
    struct amp_pos pos = begin_at(&s->log, from);
    int rc = amp_log_scan(&s->log, &pos, &bad, one_frame, &w, err);
    amp_frame_arena_release(&w.arena);
    amp_buf_release(&w.blob);
    if (rc == 0 && bad && pos.n < w.to)
        return amp_log_damaged(&pos, "no intact frame there", err);
    return rc < 0 ? -1 : 0;
}
