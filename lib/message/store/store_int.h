/* Shared by the files of the store. */
#ifndef AMP_MESSAGE_STORE_STORE_INT_H
#define AMP_MESSAGE_STORE_STORE_INT_H

#include <signal.h>

#include <amp/base/file.h>

#include "message/store/cache/cache.h"
#include "message/store/index/index.h"
#include "message/store/log/log.h"
#include "message/store/store.h"
#include "message/store/terms/terms.h"

enum {
    AMP_TURN_FRAMES = 256,
    AMP_TURN_BYTES = 1024 * 1024,
    AMP_TURN_PENDING = 4 * 1024 * 1024, /* a larger turn is written in parts */
    AMP_STATE_MAX = 63,
    AMP_DIGEST_MAX = 72,
};

/* Records that are about to leave the live set (turn/keep.c). */
struct amp_leaving {
    struct amp_buf text; /* keys and states */
    struct amp_leaver {
        uint32_t key, n_key, state, n_state; /* in text */
        struct amp_place at;                 /* of the record's frame */
        int64_t since;                       /* 0: the key is not remembered */
    } * v;
    size_t n, cap;
};

/* The progress of the oldest segment's removal (compact.c). */
struct amp_compaction {
    uint32_t seg;     /* the segment; 0: none is being removed */
    uint64_t bound;   /* the first frame that stays */
    uint64_t off;     /* in the segment: the first frame that was not checked */
    uint64_t settled; /* before it all that had to be written is in the log */
    struct amp_leaving leaving;
    struct amp_buf bytes; /* the frame that is checked */
    struct amp_frame_arena frame;
};

/* The time of a segment's first frame. */
struct amp_age {
    uint32_t seg;
    int64_t at;
};

/* The keys that were last looked up without result in this turn: callers look before they write. */
struct amp_absent {
    char text[2][AMP_KEY_MAX];
    size_t n[2];
    unsigned next;
};

struct amp_store {
    char *dir, *real; /* as given, and without links and dots */
    int dirfd, logfd;
    struct amp_store_options opt;
    struct amp_turnstile lock;
    sigset_t mask; /* to restore when the turn ends */
    struct amp_log log;
    struct amp_chain chain;
    bool repairs; /* frames may be missing at the log's end */
    struct amp_index index;
    struct amp_cache cache;
    struct amp_absent absent;
    struct amp_watermark wm;
    int termfd; /* STATE/terms; -1: not open */
    struct amp_term_names names;
    struct amp_term_file terms; /* of segment terms_seg */
    uint32_t terms_seg;         /* all segments before it have their postings */
    bool known;                 /* log.end is a verified place */
    bool verified;       /* the complete last segment was checked, by this handle or in this boot */
    uint32_t epoch;      /* of the watermark, when log.end was verified */
    bool new_generation; /* the index was replaced, and no frame records it yet */
    bool far, helped;    /* a reader's index is far behind; a writer brought it up, or could not */
    bool in_turn, batch, appended; /* appended: this handle wrote a frame, */
    uint64_t wrote;                /* the last one has this number */
    bool unit;                     /* in a batch: the next update may begin another turn */
    unsigned turns, turn_frames;
    size_t turn_bytes;
    uint64_t need; /* the highest frame that this process read or wrote */
    bool failed;
    struct amp_error why;
    bool is_late; /* the end of a batch failed: the next sync reports it */
    struct amp_error late;
    struct amp_frame_arena arena; /* replay */
    struct amp_frame_arena check; /* records of callers, frames read back */
    struct amp_buf rec;           /* the record that was read last */
    uint64_t last;                /* the frame of the latest update */
    struct amp_compaction old;
    struct amp_age oldest, newest; /* of the second and the last segment */
    struct {
        uint64_t bound;
        int64_t at_ms;
        bool held;
    } pins; /* the result of the last check */
};

/* ---- each group calls only groups above it ---- */

/* digest.c: the digest of an input's bytes; whether a sum of the log is of these bytes. */
void amp_store_digest(struct amp_span bytes, char out[AMP_DIGEST_MAX]);
bool amp_store_digest_is(const char *sum, const char *digest, struct amp_span bytes);

/* blob.c */
enum { AMP_BLOB_MAX = 64 * 1024 * 1024 };
int amp_blob_get(struct amp_store *s, struct amp_span name, struct amp_buf *out,
                 struct amp_error *err);
/* Under main, with the index at the log's end: removes blobs that no frame from `bound` on names.
 */
int amp_blob_sweep(struct amp_store *s, uint64_t bound, struct amp_error *err);
/* Moves large parts of f into blobs, so that it fits a frame; names holds the blobs' names. */
int amp_blob_shrink(struct amp_store *s, struct amp_frame *f, struct amp_frame_out *out,
                    struct amp_buf *names, struct amp_error *err);

/* turn/failure.c: marks the store as failed because of err, for all processes. Returns -1. */
int amp_store_fail(struct amp_store *s, const struct amp_error *err);
/* Fails if the store has failed. look: also checks the directory. That is done where a turn starts
 * and after a sync, on which acknowledgements depend; in between, the state in memory is enough. */
int amp_store_check_failed(struct amp_store *s, bool look, struct amp_error *err);
/* Checks shared state only, for a read-only store. */
int amp_store_failed_before(const struct amp_store *s, bool look, struct amp_error *err);

/* turn/pins.c: whether a pin keeps frames before that number. */
bool amp_store_pinned(struct amp_store *s, uint64_t before);

/* turn/recover.c: under main, moves log.end, and the cache or the index, to the log's end. */
int amp_store_catch_up(struct amp_store *s, struct amp_error *err);
/* Without the lock: brings the index up for a reader that found it far behind, if the directory can
 * be written. */
void amp_turn_help(struct amp_store *s);
/* Creates an empty index of the next generation. The next catch-up fills it and records it. */
int amp_store_renew_index(struct amp_store *s, struct amp_error *err);
/* Appends a frame in this turn. */
int amp_turn_append(struct amp_store *s, struct amp_frame *f, struct amp_pos *at,
                    struct amp_error *err);
/* Updates the index to the log's end, for a query of a range. */
int amp_turn_index(struct amp_store *s, struct amp_error *err);
/* After a failed query: replaces a corrupt index and returns 0, so that the caller tries again;
 * otherwise -1. */
int amp_turn_heal(struct amp_store *s, struct amp_error *err);
/* In a turn, if a row of the index does not lead to its frame in that segment. 0: the index was
 * wrong and was replaced, try again. -1: the log is damaged (IOERR log_damaged). */
int amp_turn_misled(struct amp_store *s, uint32_t seg, struct amp_error *err);

/* turn/terms.c: under main, with no frames in memory: makes postings for at most about `most` bytes
 * of frames. Returns whether there is more to do. */
bool amp_turn_terms(struct amp_store *s, uint64_t most);
/* Removes the postings of a segment. */
void amp_turn_terms_drop(struct amp_store *s, uint32_t seg);
/* The terms of a frame and of the blob with its record; newest, unless NULL, becomes its time if
 * that is later. */
int amp_terms_of_frame(struct amp_store *s, struct amp_postings *t, struct amp_span frame,
                       uint32_t off, char newest[32], struct amp_error *err);

/* turn/keep.c: in a turn. Whether the record of a row is final and old, and no other needs it: 1,
 * with the time of its last change and whether its key is remembered; 0; -1. */
int amp_keep_is_over(struct amp_store *s, struct amp_span key, const struct amp_index_rec *row,
                     int64_t *since, bool *remembered, struct amp_error *err);
/* Whether keys with this time are still remembered. */
bool amp_keep_remembers(const struct amp_store *s, int64_t since);
/* Notes a record that leaves; removes all that are noted from the live set. */
int amp_keep_leave(struct amp_leaving *l, struct amp_span key, const struct amp_index_rec *row,
                   int64_t since, struct amp_error *err);
int amp_keep_forget(struct amp_store *s, struct amp_leaving *l, struct amp_error *err);
/* In a turn, for a key without a record: 1 if its record left and the key is remembered, 0, -1. */
int amp_keep_is_forgotten(struct amp_store *s, struct amp_span key, struct amp_error *err);

/* turn/compact.c: at the end of a turn that appended: one step of the oldest segment's removal. */
int amp_store_compact(struct amp_store *s, struct amp_error *err);
/* Before closing: notes how far the removal came, for the next process. */
void amp_store_compact_leave(struct amp_store *s);
/* Whether the last segment must end, by its size or its age. */
bool amp_store_segment_full(struct amp_store *s);

/* turn/turn.c: takes a turn, unless a batch has one. *own: leave must end it. leave returns rc, or
 * -1 if ending the turn fails; err keeps the error of a negative rc. */
int amp_turn_enter(struct amp_store *s, bool *own, struct amp_error *err);
int amp_turn_leave(struct amp_store *s, bool own, int rc, struct amp_error *err);
/* In a batch, at the first update of a unit: when the turn's limits are reached, ends it and takes
 * the next one. */
int amp_turn_renew(struct amp_store *s, struct amp_error *err);
/* Before closing a store that wrote: shortens the write-ahead log for the next process, if it can
 * have the lock at once. After a crash the next writer does this; readers need not wait for it. */
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
/* In a turn that writes a key: it is no longer absent. */
void amp_store_written(struct amp_store *s, struct amp_span key);
/* In a turn, the digest of an input's bytes: FOUND, NONE if the input is unknown, or -1. */
int amp_store_find_input(struct amp_store *s, struct amp_span consumer, struct amp_span id,
                         char sum[AMP_DIGEST_MAX], struct amp_error *err);

/* open.c: also opens a failed store, for repair. */
int amp_store_open_failed(const char *dir, const struct amp_store_options *opt,
                          struct amp_store **out, struct amp_error *err);

#endif
