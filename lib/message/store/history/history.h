/* The log's history: its frames, its commits, and whether its segments are intact. */
#ifndef AMP_MESSAGE_STORE_HISTORY_HISTORY_H
#define AMP_MESSAGE_STORE_HISTORY_HISTORY_H

#include "message/store/log/log.h"
#include "message/store/store.h"

/* The numbers of the first and the last frame that the log still has; 0, 0: it is empty. */
int amp_store_range(struct amp_store *s, uint64_t *first, uint64_t *last, struct amp_error *err);

/* Calls fn with each frame after frame number `after`, as it is in the log. */
typedef int (*amp_store_frame_fn)(void *ctx, uint64_t n, struct amp_span frame,
                                  struct amp_error *err);
int amp_store_frames(struct amp_store *s, uint64_t after, amp_store_frame_fn fn, void *ctx,
                     struct amp_error *err);

/* A place in the log; zeros: before its first frame. */
struct amp_store_place {
    struct amp_pos pos;
};
/* A place before the latest `most` frames and near to them: the frames between it and *after are
 * older. */
int amp_store_place_near_end(struct amp_store *s, uint64_t most, struct amp_store_place *out,
                             uint64_t *after, struct amp_error *err);
/* Calls fn with the frames after the place, also if the log rotated or was repaired meanwhile. They
 * are on disk by then. The place moves past each frame that fn is called with. */
int amp_store_frames_on(struct amp_store *s, struct amp_store_place *at, amp_store_frame_fn fn,
                        void *ctx, struct amp_error *err);

/* Calls fn with the key of each commit of these kinds (NULL-terminated) after the place, without a
 * sync: the caller syncs before anything depends on it. A key may come several times. The place
 * moves. Also in a batch: then fn must not call the store, and until the next update nothing else
 * is appended. */
typedef int (*amp_store_changed_fn)(void *ctx, struct amp_span key, struct amp_error *err);
int amp_store_changes_on(struct amp_store *s, struct amp_store_place *at, const char *const *kinds,
                         amp_store_changed_fn fn, void *ctx, struct amp_error *err);

/* Calls fn for each line of each commit of these kinds (NULL-terminated; NULL: all) from frame
 * `from` to `to`, and once for a commit without lines; blobs are in their places. fn must not call
 * the store. */
struct amp_store_commit {
    uint64_t n, was; /* the frame; the revision before it */
    int64_t at_ms;
    struct amp_span key, full, event, actor, json; /* full: the key without digests, or empty */
    bool has_line, last;                           /* last: no more lines of this frame */
    uint32_t index;
    enum amp_role role;
    struct amp_span id, line;
};
typedef int (*amp_store_commit_fn)(void *ctx, const struct amp_store_commit *c,
                                   struct amp_error *err);
int amp_store_commits(struct amp_store *s, uint64_t from, uint64_t to, const char *const *kinds,
                      amp_store_commit_fn fn, void *ctx, struct amp_error *err);

/* Reads all segments, outside of a turn and without the index, and calls fn for each of them.
 * damage: NULL, or log_damaged with the place. An incomplete last frame of the last segment is not
 * damage. */
struct amp_store_segment {
    uint32_t number, first, last; /* this segment; the first and the last that exist */
    const struct amp_error *damage;
};
typedef void (*amp_store_segment_fn)(void *ctx, const struct amp_store_segment *seg);
int amp_store_segments(struct amp_store *s, amp_store_segment_fn fn, void *ctx,
                       struct amp_error *err);

#endif
