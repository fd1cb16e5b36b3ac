/* The log as it stands: its frames, and what each segment is worth. */
#include "store/history/history.h"

#include <fcntl.h>
#include <unistd.h>

#include "store/store_int.h"

struct frames {
    uint64_t from, to;
    amp_store_frame_fn fn;
    void *ctx;
};

static int one_frame(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                     const struct amp_pos *after, struct amp_error *err)
{
    struct frames *f = ctx;
    if (head->n > f->to)
        return 1;
    if (head->n < f->from)
        return 0;
    return f->fn(f->ctx, head->n, (struct amp_span){frame.p, frame.n - 1}) != 0;
}

int amp_store_frames(struct amp_store *s, uint64_t from, amp_store_frame_fn fn, void *ctx,
                     struct amp_error *err)
{
    struct frames f = {from, 0, fn, ctx};
    struct amp_pos pos = {0};
    bool own, bad;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, "nested_turn", "frames are read outside of a batch");
    if (amp_turn_enter(s, &own, err) != 0)
        return -1;
    f.to = s->log.end.n;
    if (f.to && amp_log_list(&s->log, err) != 0) {
        amp_turn_leave(s, own, NULL);
        return -1;
    }
    if (amp_turn_leave(s, own, err) != 0)
        return -1;
    if (!f.to)
        return 0;
    int rc = amp_log_scan(&s->log, &pos, &bad, one_frame, &f, err);
    if (rc < 0)
        return -1;
    if (rc == 0 && bad && pos.n < f.to)
        return amp_log_damaged(&pos, "no intact frame there", err);
    return 0;
}

/* Goes on behind *pos, to the end of its segment; *damage is left alone where there is none. */
static int read_segment(struct amp_store *s, struct amp_pos *pos, bool *whole,
                        struct amp_error *damage, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    *whole = true;
    if (amp_log_scan_segment(l, pos, whole, NULL, NULL, err) != 0)
        return -1;
    if (*whole)
        return 0;
    /* What is no torn tail: judged says so. */
    *whole = amp_log_judge(l, pos, damage) == 0;
    return 0;
}

int amp_store_segments(struct amp_store *s, amp_store_segment_fn fn, void *ctx,
                       struct amp_error *err)
{
    struct amp_log *l = &s->log;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, "nested_turn", "segments are read outside of a batch");
    s->known = false; /* the segments that it has open are others afterwards */
    if (amp_log_list(l, err) != 0)
        return -1;
    uint32_t first = l->first, last = l->last;
    struct amp_pos pos = {.seg = first};
    for (; pos.seg && pos.seg <= last; pos.seg++, pos.off = 0, pos.len = 0, pos.sealed = false) {
        struct amp_error damage;
        bool whole;
        if (amp_log_fd(l, pos.seg, err) < 0) {
            char name[32];
            amp_log_name(pos.seg, name);
            if (faccessat(l->dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                return -1;
            pos.n = 0; /* it was let go meanwhile */
            continue;
        }
        if (read_segment(s, &pos, &whole, &damage, err) != 0)
            return -1;
        struct amp_store_segment seg = {pos.seg, first, last, whole ? NULL : &damage};
        if (fn(ctx, &seg) != 0)
            break;
        if (!whole)
            pos.n = 0; /* what the next one is to follow is not known */
    }
    return 0;
}
