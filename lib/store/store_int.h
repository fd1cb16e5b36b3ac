/* What the files of the store share. */
#ifndef AMP_STORE_STORE_INT_H
#define AMP_STORE_STORE_INT_H

#include <signal.h>

#include <amp/base/file.h>

#include "store/cache/cache.h"
#include "store/index/index.h"
#include "store/log/log.h"
#include "store/store.h"

enum {
    AMP_TURN_FRAMES = 256,
    AMP_TURN_BYTES = 1024 * 1024,
    AMP_STATE_MAX = 63,
    AMP_DIGEST_MAX = 72,
};

/* How far the oldest segment's live things were repeated. */
struct amp_compaction {
    uint32_t seg;       /* the segment; 0: none is being let go */
    uint64_t bound;     /* the first frame that stays */
    struct amp_buf key; /* the last key looked at */
    bool keys_done;
    uint64_t out_n; /* the last entry of the outbox looked at */
    uint32_t out_i;
};

/* When a segment's first frame was made. */
struct amp_age {
    uint32_t seg;
    int64_t at;
};

struct amp_store {
    char *dir, *real; /* as given, and without links and dots */
    int dirfd, logfd;
    struct amp_store_options opt;
    struct amp_turnstile lock;
    sigset_t mask; /* to restore when the turn ends */
    struct amp_log log;
    struct amp_index index;
    struct amp_cache cache;
    struct amp_watermark wm;
    bool known;          /* log.end is a verified place */
    bool verified;       /* the last segment was read whole, by us or in this boot */
    uint32_t epoch;      /* of the watermark, when log.end was verified */
    bool new_generation; /* the index was replaced, and no frame tells of it yet */
    bool in_turn, batch;
    unsigned turns, turn_frames;
    size_t turn_bytes;
    uint64_t need; /* the highest frame that this process read or wrote */
    bool failed;
    struct amp_error why;
    bool is_late; /* the end of a batch failed: the sync says so */
    struct amp_error late;
    struct amp_frame_arena arena; /* replay */
    struct amp_frame_arena check; /* records given to us, frames read back */
    struct amp_buf rec;           /* the record last read */
    uint64_t last;                /* the frame of the latest update */
    struct amp_compaction old;
    struct amp_age oldest, newest; /* of the second and of the last segment */
    struct {
        uint64_t bound;
        int64_t at_ms;
        bool held;
    } pins; /* what was seen of them last */
};

/* ---- each of these groups calls those above it ---- */

/* digest.c: the digest of an input's bytes; whether a sum of the log is of these bytes. */
void amp_store_digest(struct amp_span bytes, char out[AMP_DIGEST_MAX]);
bool amp_store_digest_is(const char *sum, const char *digest, struct amp_span bytes);

/* blob.c */
int amp_blob_get(struct amp_store *s, struct amp_span name, struct amp_buf *out,
                 struct amp_error *err);
/* Under main, the index at the log's end: removes the blobs that no frame from `bound` on names. */
int amp_blob_sweep(struct amp_store *s, uint64_t bound, struct amp_error *err);
/* Moves large parts of f into blobs so that it fits a frame; names is memory for their names. */
int amp_blob_shrink(struct amp_store *s, struct amp_frame *f, struct amp_frame_out *out,
                    struct amp_buf *names, struct amp_error *err);

/* turn/failure.c: marks the store failed, for all: err says why. Returns -1. */
int amp_store_fail(struct amp_store *s, const struct amp_error *err);
/* Refuses what failed. look: in the directory too. That is done where a turn starts and after a
 * sync, which is what an acknowledgement rests on; between them what is known in memory does. */
int amp_store_check_failed(struct amp_store *s, bool look, struct amp_error *err);
/* The same without this handle's own memory of it, which a read-only store does not keep. */
int amp_store_failed_before(const struct amp_store *s, bool look, struct amp_error *err);

/* turn/pins.c: whether somebody still needs frames before that one. */
bool amp_store_pinned(struct amp_store *s, uint64_t before);

/* turn/recover.c: under main, brings log.end, and the cache or the index, to the log's end. */
int amp_store_catch_up(struct amp_store *s, struct amp_error *err);
/* An empty file of the next generation; the next catching up fills it and tells the others. */
int amp_store_renew_index(struct amp_store *s, struct amp_error *err);
/* Appends a frame in this turn. */
int amp_turn_append(struct amp_store *s, struct amp_frame *f, struct amp_pos *at,
                    struct amp_error *err);
/* Brings the index up to the log's end, for a query by ranges. */
int amp_turn_index(struct amp_store *s, struct amp_error *err);
/* After a query failed: a corrupt index is replaced and 0 returned, try again; else -1. */
int amp_turn_heal(struct amp_store *s, struct amp_error *err);
/* In a turn, where a row of the index does not lead to its frame in that segment: 0 when the index
 * is to blame, which was replaced: try again. -1: the log is damaged (IOERR log_damaged). */
int amp_turn_misled(struct amp_store *s, uint32_t seg, struct amp_error *err);

/* turn/compact.c: at the end of a turn that appended, one step towards removing the oldest segment.
 */
int amp_store_compact(struct amp_store *s, struct amp_error *err);
/* Whether the last segment is to end, by its size or its age. */
bool amp_store_segment_full(struct amp_store *s);

/* turn/turn.c: takes a turn, unless a batch has one. *own: leave must end it. leave returns rc, or
 * -1 if ending the turn fails; err keeps the error of a negative rc. */
int amp_turn_enter(struct amp_store *s, bool *own, struct amp_error *err);
int amp_turn_leave(struct amp_store *s, bool own, int rc, struct amp_error *err);
/* In a batch: ends the turn and takes the next when this one is used up. */
int amp_turn_renew(struct amp_store *s, struct amp_error *err);
/* Before closing: leaves a short write-ahead log to the next process, if nobody is in the way. */
void amp_turn_last(struct amp_store *s);

/* The outcome of a look-up, or -1 with an error. */
enum amp_look {
    AMP_LOOK_NONE,
    AMP_LOOK_FOUND,
    AMP_LOOK_MISLED, /* the index led to a wrong place; err is filled */
};

/* query.c: in a turn, the record of a key, its JSON read into buf: FOUND, NONE, or -1. */
int amp_store_find(struct amp_store *s, struct amp_span key, struct amp_buf *buf,
                   struct amp_store_rec *out, struct amp_error *err);
/* In a turn, the digest of an input's bytes: FOUND, NONE if the input is unknown, or -1. */
int amp_store_find_input(struct amp_store *s, struct amp_span consumer, struct amp_span id,
                         char sum[AMP_DIGEST_MAX], struct amp_error *err);

/* open.c: opens also what has failed, for repair. */
int amp_store_open_failed(const char *dir, const struct amp_store_options *opt,
                          struct amp_store **out, struct amp_error *err);

#endif
