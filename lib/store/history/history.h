/* The log's history: its frames and commits, and how much of it there is. */
#ifndef AMP_STORE_HISTORY_H
#define AMP_STORE_HISTORY_H

#include "store/store.h"

/* Frames as they stand in the log, from frame number `from` on: for history and tests. */
typedef int (*amp_store_frame_fn)(void *ctx, uint64_t n, struct amp_span frame);
int amp_store_frames(struct amp_store *s, uint64_t from, amp_store_frame_fn fn, void *ctx,
                     struct amp_error *err);
/* Commits from frame `from` to `to`, in order, each of their lines by itself (one without lines
 * comes once); blobs stand in their places. fn must not call the store; 1 ends it. */
struct amp_store_commit {
    uint64_t n, was; /* the frame; the revision before it */
    int64_t at_ms;
    struct amp_span key, full, event, actor, json; /* full: the key without digests, or empty */
    bool has_line, last;                           /* last: no more lines of this frame */
    uint32_t index;
    enum amp_role role;
    struct amp_span id, line;
};
typedef int (*amp_store_commit_fn)(void *ctx, const struct amp_store_commit *c);
int amp_store_commits(struct amp_store *s, uint64_t from, uint64_t to, amp_store_commit_fn fn,
                      void *ctx, struct amp_error *err);
/* The numbers of the first and the last frame that the log still has; 0, 0: it is empty. */
int amp_store_range(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err);
/* Reads all segments, whatever the index says, outside of a turn. fn hears of each: damage is NULL,
 * or log_damaged with the place; a torn end of the last one is no damage. 1 from fn ends it. */
struct amp_store_segment {
    uint32_t number, first, last; /* it, and those that there are */
    const struct amp_error *damage;
};
typedef int (*amp_store_segment_fn)(void *ctx, const struct amp_store_segment *seg);
int amp_store_segments(struct amp_store *s, amp_store_segment_fn fn, void *ctx,
                       struct amp_error *err);

#endif
