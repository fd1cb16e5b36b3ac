/* Precedence of semantic versions. Numbers are compared by length and digits: none overflows. */
#include <string.h>

#include "agent/capability.h"

/* Takes the part before the next `sep` off the front. */
static struct amp_span part(struct amp_span *s, char sep)
{
    const char *end = s->n > 0 ? memchr(s->p, sep, s->n) : NULL;
    size_t n = end ? (size_t)(end - s->p) : s->n;
    struct amp_span out = {s->p, n};
    size_t skip = n + (end ? 1 : 0);
    s->p += skip;
    s->n -= skip;
    return out;
}

static bool digits(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    return s.n > 0;
}

static int bytes(struct amp_span a, struct amp_span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n > 0 ? memcmp(a.p, b.p, n) : 0;
    return c != 0 ? c : (a.n > b.n) - (a.n < b.n);
}

static int number(struct amp_span a, struct amp_span b)
{
    while (a.n > 1 && *a.p == '0')
        a.p++, a.n--;
    while (b.n > 1 && *b.p == '0')
        b.p++, b.n--;
    return a.n != b.n ? (a.n > b.n) - (a.n < b.n) : bytes(a, b);
}

/* The identifiers of a pre-release: numbers are below words, fewer below more. */
static int pre_release(struct amp_span a, struct amp_span b)
{
    while (a.n > 0 && b.n > 0) {
        struct amp_span x = part(&a, '.'), y = part(&b, '.');
        bool nx = digits(x), ny = digits(y);
        int c = nx && ny ? number(x, y) : nx != ny ? (nx ? -1 : 1) : bytes(x, y);
        if (c != 0)
            return c;
    }
    return (a.n > 0) - (b.n > 0);
}

int amp_semver_compare(struct amp_span a, struct amp_span b)
{
    struct amp_span ra = part(&a, '+'), rb = part(&b, '+');
    struct amp_span ca = part(&ra, '-'), cb = part(&rb, '-');
    for (int i = 0; i < 3; i++) {
        int c = number(part(&ca, '.'), part(&cb, '.'));
        if (c != 0)
            return c;
    }
    if (ra.n == 0 || rb.n == 0) /* what is no pre-release is above all of them */
        return (ra.n == 0) - (rb.n == 0);
    return pre_release(ra, rb);
}
