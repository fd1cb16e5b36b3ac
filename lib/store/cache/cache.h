/*
 * The cache: what the frames behind the index's meta row say, in memory. It is only for speed. Each
 * frame that is appended, or read because another process appended it, is noted here; the index
 * gets many at once, and of a key that changed often only the last. Each process has its own. In a
 * turn it holds every frame from `from` on, which the index has reached, up to the log's end: what
 * it finds is newer than what the index says, and what it does not know the index does. A query by
 * ranges asks the index, which is brought up first.
 *
 * What it gains, in commits a second of four writers with one commit to a turn (bench/cache.sh): on
 * a disk 8,300 against 4,300 without it, in memory 19,700 against 13,200. Sixteen to a turn gain
 * nothing and lose nothing.
 */
#ifndef AMP_STORE_CACHE_CACHE_H
#define AMP_STORE_CACHE_CACHE_H

#include "store/index/index.h"

enum { AMP_CACHE_FRAMES = 4096 }; /* it is full then */

struct amp_cache_entry {
    uint64_t h, n;   /* n: of the latest frame */
    uint32_t a, n_a; /* in text: a key, an input's consumer, a blob's name */
    uint32_t b, n_b; /* an input's id */
    uint8_t kind;
    bool gone;
    struct amp_index_rec rec; /* of an input only where its frame stands */
};

/* An entry of the outbox that was opened, closed or moved behind the index. */
struct amp_cache_out {
    uint64_t n;
    uint64_t h, c; /* hashes of the message's id and of the consumer's name */
    uint32_t i;
    struct amp_place at;
    uint32_t id, n_id, name, n_name; /* both, in text */
    bool open;
};

struct amp_cache {
    bool off; /* for the bench: the index is brought up in each turn */
    struct amp_cache_entry *entry;
    uint32_t n, cap;
    uint64_t *slot; /* the upper half of its hash; entry number + 1, 0 free */
    uint32_t slots;
    uint32_t frames;
    uint64_t from; /* the first frame that is here has a number past it */
    struct amp_buf text;
    struct amp_cache_out *out;
    uint32_t n_out, cap_out;
    uint32_t *out_slot; /* number in out + 1, by n and i; 0 free */
    uint32_t out_slots;
};

void amp_cache_init(struct amp_cache *c);
void amp_cache_release(struct amp_cache *c);
/* Empties it: the index has all frames up to `from`. */
void amp_cache_clear(struct amp_cache *c, uint64_t from);

/* Where a key's record stands: 1 found, 0 it was removed, -1 ask the index. out may be NULL. */
int amp_cache_find(const struct amp_cache *c, struct amp_span key, struct amp_index_rec *out);
/* The place of an input's frame; false: ask the index. */
bool amp_cache_seen(const struct amp_cache *c, struct amp_span consumer, struct amp_span id,
                    struct amp_place *out);
/* Takes the log's next frame in; after is the place behind it. When this fails, the cache is of no
 * use until the index was brought up. */
int amp_cache_note(struct amp_cache *c, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err);

/* An entry of the outbox; NULL: ask the index. */
const struct amp_cache_out *amp_cache_out(const struct amp_cache *c, uint64_t n, uint32_t i);
/* The next open entry from *at on whose id (or, with that empty, whose consumer) has the hash of
 * what is given; *at is moved behind it. */
const struct amp_cache_out *amp_cache_next_out(const struct amp_cache *c, struct amp_span id,
                                               struct amp_span consumer, uint32_t *at);

/* Whether the index should be brought up at the end of this turn. */
bool amp_cache_full(const struct amp_cache *c);
/* Whether a frame that was read may be noted. It takes more than makes it full, so that a process
 * that follows others need not bring the index up in the middle of its reading. */
bool amp_cache_takes(const struct amp_cache *c, bool follows);
/* Brings all of it into the index's open transaction, in the order of its tables. */
int amp_cache_into(const struct amp_cache *c, struct amp_index *ix, struct amp_error *err);

#endif
