/* The filter: four bits in the one word that the hash chooses. */
#include "store/cache/filter.h"

#include <stdlib.h>

enum { WORDS_LEAST = 4096 };

void amp_filter_release(struct amp_filter *f)
{
    free(f->word);
    *f = (struct amp_filter){0};
}

void amp_filter_make(struct amp_filter *f, uint64_t ids)
{
    uint64_t words = WORDS_LEAST;
    amp_filter_release(f);
    while (words < AMP_FILTER_WORDS && words * AMP_FILTER_SHARE < 2 * ids)
        words *= 2;
    f->word = calloc(words, sizeof *f->word);
    if (f->word)
        f->words = words;
}

static uint64_t bits(uint64_t h)
{
    return 1ull << (h & 63) | 1ull << (h >> 6 & 63) | 1ull << (h >> 12 & 63) |
           1ull << (h >> 18 & 63);
}

void amp_filter_add(struct amp_filter *f, uint64_t hash)
{
    if (!f->word)
        return;
    f->word[hash >> 24 & (f->words - 1)] |= bits(hash);
    f->n++;
}

bool amp_filter_may(const struct amp_filter *f, uint64_t hash)
{
    uint64_t want = bits(hash);
    return !f->word || (f->word[hash >> 24 & (f->words - 1)] & want) == want;
}

bool amp_filter_crowded(const struct amp_filter *f)
{
    return f->word && f->words < AMP_FILTER_WORDS && f->n > f->words * AMP_FILTER_SHARE * 2;
}
