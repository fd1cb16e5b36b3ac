/* Edit distance over short words; everything longer gets no suggestion. */
#include "base/nearest.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Without case, and "-" and "_" are one: nobody remembers which it was. */
static unsigned char plain(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (unsigned char)(c - 'A' + 'a');
    return c == '-' ? '_' : (unsigned char)c;
}

/* Letters added, lost, changed, and neighbours swapped. */
static unsigned distance(struct amp_span a, struct amp_span b)
{
    unsigned rows[3][AMP_NEAREST_MOST + 1], *before = rows[0], *last = rows[1], *now = rows[2];
    for (size_t j = 0; j <= b.n; j++)
        last[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            bool same = plain(a.p[i - 1]) == plain(b.p[j - 1]);
            now[j] = least(least(last[j] + 1, now[j - 1] + 1), last[j - 1] + !same);
            if (i > 1 && j > 1 && plain(a.p[i - 1]) == plain(b.p[j - 2]) &&
                plain(a.p[i - 2]) == plain(b.p[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
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
    unsigned d = distance(n->found, word);
    if (d <= 2 && d * 2 <= word.n && d < n->distance) {
        n->distance = d;
        amp_span_copy(word, n->word, sizeof n->word);
    }
}
