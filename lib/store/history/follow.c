/* Reading on from a place. */
#include "store/history/follow.h"

#include "store/store_int.h"

struct reading {
    uint64_t after, to;
    struct amp_store_place *at;
    amp_store_frame_fn fn;
    void *ctx;
};

static int one(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
               const struct amp_pos *after, struct amp_error *err)
{
    struct reading *r = ctx;
    if (head->n > r->to)
        return 1;
    if (head->n <= r->after)
        return 0;
    r->at->pos = *after;
    return r->fn(r->ctx, head->n, (struct amp_span){frame.p, frame.n - 1}) != 0;
}

static int verified_end(struct amp_store *s, uint64_t *n, struct amp_error *err)
{
    bool own;
    int rc = 0;
    if (s->batch)
        return amp_fail(err, AMP_INTERNAL, "nested_turn", "frames are read outside of a batch");
    if (amp_turn_enter(s, &own, err) != 0)
        return -1;
    *n = s->log.end.n;
    if (*n)
        rc = amp_log_list(&s->log, err);
    if (amp_turn_leave(s, own, rc < 0 ? NULL : err) != 0)
        rc = -1;
    return rc;
}

int amp_store_frames_on(struct amp_store *s, struct amp_store_place *at, amp_store_frame_fn fn,
                        void *ctx, struct amp_error *err)
{
    struct reading r = {.after = at->pos.n, .at = at, .fn = fn, .ctx = ctx};
    struct amp_pos pos = at->pos;
    bool bad;
    /* What fn is told may leave the process: a crash must not take it back. */
    if (verified_end(s, &r.to, err) < 0 || amp_store_sync(s, err) < 0)
        return -1;
    if (r.to <= r.after)
        return 0;
    int rc = amp_log_scan(&s->log, &pos, &bad, one, &r, err);
    if (rc == 0 && bad && at->pos.n < r.to && at->pos.seg != 0) {
        /* A repair moved what stood behind the place: from the start, past what was read. */
        r.after = at->pos.n;
        pos = (struct amp_pos){0};
        rc = amp_log_scan(&s->log, &pos, &bad, one, &r, err);
    }
    if (rc < 0)
        return -1;
    if (rc == 0 && bad && at->pos.n < r.to)
        return amp_log_damaged(&pos, "no intact frame there", err);
    return 0;
}
