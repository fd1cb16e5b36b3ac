/* Edit distance over short words; everything longer gets no suggestion. */
#include "protocol/suggest.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD_MOST = 48 };

struct nearest {
    struct amp_span found;
    char word[WORD_MOST];
    unsigned distance;
};

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Letters are compared without case: a word in the wrong case is the nearest of all. */
static unsigned distance(struct amp_span a, struct amp_span b)
{
    unsigned row[WORD_MOST + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; i <= a.n; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b.n; j++) {
            unsigned up = row[j];
            bool same = tolower((unsigned char)a.p[i - 1]) == tolower((unsigned char)b.p[j - 1]);
            row[j] = least(least(row[j] + 1, row[j - 1] + 1), corner + !same);
            corner = up;
        }
    }
    return row[b.n];
}

static void consider(struct nearest *best, struct amp_span word)
{
    if (word.n == 0 || word.n >= WORD_MOST || best->found.n >= WORD_MOST)
        return;
    unsigned d = distance(best->found, word);
    bool near = d <= 2 && d * 2 <= word.n;
    if (near && d < best->distance) {
        best->distance = d;
        amp_span_copy(word, best->word, sizeof best->word);
    }
}

static void say(const struct nearest *best, char *out, size_t size)
{
    if (best->word[0])
        snprintf(out, size, "; did you mean \"%s\"?", best->word);
}

void amp_suggest_word(const char *expected, struct amp_span found, char *out, size_t size)
{
    struct nearest best = {.found = found, .distance = WORD_MOST};
    const char *p = expected;
    while (*p) {
        size_t n = strcspn(p, ", \"");
        consider(&best, (struct amp_span){p, n});
        p += n;
        p += strspn(p, ", \"");
    }
    say(&best, out, size);
}
