/*
 * A filter: which ids the index may hold. Most ids that are asked for are new; for nearly all of
 * those it says so without a look-up. A blocked Bloom filter of hashes of the tail's, 16 bits an
 * id, at most AMP_FILTER_WORDS words; past that it errs more often, always on the side of "may".
 */
#ifndef AMP_STORE_FILTER_H
#define AMP_STORE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

enum { AMP_FILTER_WORDS = 4 * 1024 * 1024, AMP_FILTER_SHARE = 4 /* ids a word */ };

struct amp_filter {
    uint64_t *word; /* NULL: nothing is known, anything may be there */
    uint64_t words, n;
};

void amp_filter_release(struct amp_filter *f);
/* Empty, with room for so many ids and as many again; without memory there is none. */
void amp_filter_make(struct amp_filter *f, uint64_t ids);
void amp_filter_add(struct amp_filter *f, uint64_t hash);
bool amp_filter_may(const struct amp_filter *f, uint64_t hash);
/* Whether another one, made larger, would err less often. */
bool amp_filter_crowded(const struct amp_filter *f);

#endif
