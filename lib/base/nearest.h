/* The known word nearest to an unknown one: at most two letters added, lost, changed or swapped. */
#ifndef AMP_BASE_NEAREST_H
#define AMP_BASE_NEAREST_H

#include <amp/base/buf.h>

enum { AMP_NEAREST_MOST = 64 };

struct amp_nearest {
    struct amp_span found;
    unsigned distance;
    char word[AMP_NEAREST_MOST]; /* "": none is near */
};

/* Call init with the unknown word, then try with each known word. Longer words are ignored. */
void amp_nearest_init(struct amp_nearest *n, struct amp_span found);
void amp_nearest_try(struct amp_nearest *n, struct amp_span word);

#endif
