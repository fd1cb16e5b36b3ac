/*
 * The tail: what the frames behind the index's meta row say, in memory. Appending brings a frame in
 * here; the index gets many at once, and of a key that changed often only the last. Each process
 * has its own, read from the log, so it holds at every turn all frames from `from` on, a place that
 * the index has reached, up to the log's end. Whoever asks for ranges has the index brought up
 * first.
 */
#ifndef AMP_STORE_TAIL_H
#define AMP_STORE_TAIL_H

#include "store/cache/filter.h"
#include "store/index/index.h"

/* It is full at so many frames or lines, and takes this many times as much. */
enum { AMP_TAIL_MAX = 4096, AMP_TAIL_OUTS = 8192, AMP_TAIL_TIMES = 4 };

enum amp_tail_kind { AMP_TAIL_KEY, AMP_TAIL_INPUT, AMP_TAIL_BLOB };

struct amp_tail_entry {
    uint64_t h, n;   /* n: of the latest frame */
    uint32_t a, n_a; /* in text: a key, an input's consumer, a blob's name */
    uint32_t b, n_b; /* an input's id */
    uint8_t kind;
    bool gone;
    struct amp_index_rec rec; /* of an input only where its frame stands */
};

/* An entry of the outbox that was opened, closed or moved behind the index. */
struct amp_tail_out {
    uint64_t n, off;
    uint64_t h, c; /* hashes of the message's id and of the consumer's name */
    uint32_t i, seg, len;
    uint32_t id, n_id, name, n_name; /* both, in text */
    bool open;
};

struct amp_tail {
    struct amp_tail_entry *entry;
    uint32_t n, cap;
    uint64_t *slot; /* the upper half of its hash; entry number + 1, 0 free */
    uint32_t slots;
    uint32_t frames;
    uint64_t from; /* the first frame that is here has a number past it */
    uint64_t upto; /* the last one that ever was here */
    struct amp_buf text;
    struct amp_tail_out *out;
    uint32_t n_out, cap_out;
    uint32_t *out_slot; /* number in out + 1, by n and i; 0 free */
    uint32_t out_slots;
};

void amp_tail_init(struct amp_tail *t);
void amp_tail_release(struct amp_tail *t);
/* Empties it: the index has all up to frame `from`. */
void amp_tail_clear(struct amp_tail *t, uint64_t from);
int amp_tail_apply(struct amp_tail *t, const struct amp_frame *f, const struct amp_pos *after,
                   struct amp_error *err);
/* 1 found, 0 removed, -1 not here: ask the index. h is its amp_tail_hash; out may be NULL. */
int amp_tail_rec(const struct amp_tail *t, uint64_t h, struct amp_span key,
                 struct amp_index_rec *out);
/* 1 found (where its frame stands in out), -1 not here. */
int amp_tail_seen(const struct amp_tail *t, uint64_t h, struct amp_span consumer,
                  struct amp_span id, struct amp_index_rec *out);
/* Brings all of it into the index's open transaction, in the order of its tables. */
int amp_tail_into(struct amp_tail *t, struct amp_index *ix, struct amp_error *err);
/* NULL: not here, ask the index. */
const struct amp_tail_out *amp_tail_out(const struct amp_tail *t, uint64_t n, uint32_t i);
/* The next open entry from *at on whose id (or, with that empty, whose consumer) has the hash of
 * what is given; *at is moved behind it. */
const struct amp_tail_out *amp_tail_next_out(const struct amp_tail *t, struct amp_span id,
                                             struct amp_span consumer, uint32_t *at);
bool amp_tail_full(const struct amp_tail *t);
bool amp_tail_brimming(const struct amp_tail *t);
/* By what an id is known in a filter, and all that are here into one. */
uint64_t amp_tail_hash(enum amp_tail_kind kind, struct amp_span a, struct amp_span b);
void amp_tail_into_filter(const struct amp_tail *t, struct amp_filter *out);

#endif
