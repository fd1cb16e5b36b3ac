/*
 * The cache: the contents of the frames after the index's meta row, in memory. It is only for
 * speed. Each frame that this process appends, or that it reads because another process appended
 * it, is noted here. The index gets many frames at once, and of a key that changed often only the
 * last one. Each process has its own cache. In a turn it has every frame after number `from`, which
 * the index has reached, up to the log's end: an entry is newer than the index's row, and a key
 * without an entry is looked up in the index. A query of a range uses the index, which is updated
 * first.
 *
 * With four writers and one commit per turn (bench/cache.sh), commits per second are 8,300 with it
 * and 4,300 without it on a disk, and 19,700 and 13,200 in memory. With sixteen commits per turn
 * there is no difference.
 */
#ifndef AMP_MESSAGE_STORE_CACHE_CACHE_H
#define AMP_MESSAGE_STORE_CACHE_CACHE_H

#include "message/store/index/index.h"

enum { AMP_CACHE_FRAMES = 4096 }; /* the cache is full then */

struct amp_cache_entry {
    uint64_t h, n;   /* n: of the latest frame */
    uint32_t a, n_a; /* in text: a key, an input's consumer, a blob's name */
    uint32_t b, n_b; /* an input's id */
    uint8_t kind;
    bool gone;
    bool existed;             /* before its first frame here */
    uint64_t first;           /* n of that frame */
    struct amp_index_rec rec; /* of an input, only its frame's place */
};

/* An entry of the outbox that was opened, closed or moved after the end of the index. */
struct amp_cache_out {
    uint64_t n;
    uint64_t h, c; /* hashes of the message's id and of the consumer's name */
    uint32_t i;
    struct amp_place at;
    uint32_t id, n_id, name, n_name; /* both, in text */
    bool open;
};

struct amp_cache {
    bool off;        /* for the bench: the index is updated in each turn */
    bool incomplete; /* a frame could not be noted: the index must read the log */
    struct amp_cache_entry *entry;
    uint32_t n, cap;
    uint64_t *slot; /* upper half: of the hash; lower half: entry number + 1, 0 free */
    uint32_t slots;
    uint32_t frames;
    uint64_t from; /* the cache has the frames after this number */
    /* Whether a key is remembered without its record (keep/keep.h), here or in the index. */
    enum amp_cache_past { AMP_CACHE_PAST_UNKNOWN, AMP_CACHE_PAST_NONE, AMP_CACHE_PAST_SOME } past;
    struct amp_buf text;
    struct amp_cache_out *out;
    uint32_t n_out, cap_out;
    uint32_t *out_slot; /* number in out + 1, by n and i; 0 free */
    uint32_t out_slots;
};

void amp_cache_init(struct amp_cache *c);
void amp_cache_release(struct amp_cache *c);
/* Empties the cache: the index has all frames up to `from`. */
void amp_cache_clear(struct amp_cache *c, uint64_t from);

/* The place of a key's record: 1 found, 0 it was removed, -1 ask the index. out may be NULL. */
int amp_cache_find(const struct amp_cache *c, struct amp_span key, struct amp_index_rec *out);
/* The place of an input's frame; false: ask the index. */
bool amp_cache_seen(const struct amp_cache *c, struct amp_span consumer, struct amp_span id,
                    struct amp_place *out);
/* Adds the log's next frame; after is the place after it. After a failure the cache is incomplete
 * until it is cleared. */
int amp_cache_note(struct amp_cache *c, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err);

/* An entry of the outbox; NULL: ask the index. */
const struct amp_cache_out *amp_cache_out(const struct amp_cache *c, uint64_t n, uint32_t i);
/* The next open entry from *at on whose id, or if id is empty whose consumer, has the same hash as
 * the given one; moves *at past it. */
const struct amp_cache_out *amp_cache_next_out(const struct amp_cache *c, struct amp_span id,
                                               struct amp_span consumer, uint32_t *at);

/* Whether the index should be updated at the end of this turn. */
bool amp_cache_full(const struct amp_cache *c);
/* Whether there is room for a frame that was read. There is room past `full`, so that a process
 * that follows others need not update the index while it reads. */
bool amp_cache_takes(const struct amp_cache *c, bool follows);
/* Notes in the index how the counters differ from those at ix->pos. */
int amp_cache_count(const struct amp_cache *c, struct amp_index *ix, struct amp_error *err);
/* Writes all entries in the index's open transaction, in the order of its tables. */
int amp_cache_into(const struct amp_cache *c, struct amp_index *ix, struct amp_error *err);

#endif
