/* Edit distances of short words. */
#include "base/nearest.h"

#include <string.h>

static unsigned smaller_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Ignores case, and the difference of "-" and "_", which are often confused. */
static unsigned char char_plain(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned char)(c - 'A' + 'a');
    return c == '-' ? '_' : (unsigned char)c;
}

/* The number of letters added, lost or changed, and of neighbours swapped. */
static unsigned edit_distance(struct amp_span a, struct amp_span b)
{
    unsigned rows[3][AMP_NEAREST_MOST + 1], *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = char_plain(a.p[i - 1]) == char_plain(b.p[j - 1]);
            now[j] = smaller_of(smaller_of(last[j] + 1, now[j - 1] + 1), last[j - 1] + !same);
            if (i > 1 && j > 1 && char_plain(a.p[i - 1]) == char_plain(b.p[j - 2]) &&
                char_plain(a.p[i - 2]) == char_plain(b.p[j - 1]))
                now[j] = smaller_of(now[j], before[j - 2] + 1);
        }
        unsigned *free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b.n];
}

void amp_nearest_init(struct amp_nearest *n, struct amp_span found)
{
    n->found = found;
    n->distance = AMP_NEAREST_MOST;
    n->word[0] = '\0';
}

void amp_nearest_try(struct amp_nearest *n, struct amp_span word)
{
    if (!word.n || word.n >= AMP_NEAREST_MOST || !n->found.n || n->found.n >= AMP_NEAREST_MOST)
        return;
    size_t gap = word.n > n->found.n ? word.n - n->found.n : n->found.n - word.n;
    if (gap > 2)
        return;
    unsigned d = edit_distance(n->found, word);
    if (d <= 2 && d * 2 <= word.n && d < n->distance) {
        n->distance = d;
        amp_span_copy(word, n->word, sizeof n->word);
    }
}
