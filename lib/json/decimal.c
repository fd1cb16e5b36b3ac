/* Exact decimal arithmetic on the digits in the text. */
#include "json/decimal.h"

#include <string.h>

#include "json/hash.h"

#define EXPONENT_MAX 1000000000000000000ll

struct amp_decimal amp_decimal_read(struct amp_span text)
{
    const char *p = text.p, *end = text.p + text.n, *dot = NULL, *stop;
    struct amp_decimal d = {NULL, NULL, 0, false, 0};
    if (p < end && *p == '-') {
        d.neg = true;
        p++;
    }
    for (stop = p; stop < end && (*stop | 0x20) != 'e'; stop++) {
        if (*stop == '.')
            dot = stop;
        else if (*stop != '0') {
            if (!d.first)
                d.first = stop;
            d.last = stop;
        }
    }
    if (!d.first) {
        d.neg = false;
        return d;
    }
    d.n = (uint32_t)(d.last - d.first) + 1;
    if (dot && dot > d.first && dot < d.last)
        d.n--;
    if (!dot)
        dot = stop;
    d.point = dot > d.first ? dot - d.first : -(int64_t)(d.first - dot - 1);
    if (stop < end) {
        const char *e = stop + 1;
        bool minus = e < end && *e == '-';
        int64_t v = 0;
        if (e < end && (*e == '-' || *e == '+'))
            e++;
        for (; e < end; e++) {
            if (v < EXPONENT_MAX / 10)
                v = v * 10 + (*e - '0');
            else
                v = EXPONENT_MAX;
        }
        d.point += minus ? -v : v;
    }
    return d;
}

/* The value of the next digit; moves *p past it. */
static inline unsigned digit_next(const char **p)
{
    *p += **p == '.';
    return (unsigned)(*(*p)++ - '0');
}

static int size_compare(const struct amp_decimal *a, const struct amp_decimal *b)
{
    if (!a->n || !b->n)
        return (a->n != 0) - (b->n != 0);
    if (a->point != b->point)
        return a->point < b->point ? -1 : 1;
    const char *p = a->first, *q = b->first;
    for (uint32_t i = 0; i < a->n && i < b->n; i++) {
        unsigned x = digit_next(&p), y = digit_next(&q);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a->n > b->n) - (a->n < b->n);
}

int amp_decimal_compare(const struct amp_decimal *a, const struct amp_decimal *b)
{
    if (a->neg != b->neg)
        return a->neg ? -1 : 1;
    int c = size_compare(a, b);
    return a->neg ? -c : c;
}

bool amp_decimal_is_integer(const struct amp_decimal *d)
{
    return !d->n || d->point >= (int64_t)d->n;
}

bool amp_decimal_int64(const struct amp_decimal *d, int64_t *out)
{
    if (!d->n) {
        *out = 0;
        return true;
    }
    if (!amp_decimal_is_integer(d) || d->point > 19)
        return false;
    uint64_t v = 0, most = d->neg ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    const char *p = d->first;
    for (int64_t i = 0; i < d->point; i++) {
        unsigned digit = i < (int64_t)d->n ? digit_next(&p) : 0;
        if (v > (most - digit) / 10)
            return false;
        v = v * 10 + digit;
    }
    *out = d->neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* Whether a divisor below 10^18 divides the digits of a followed by `zeros` zeros. */
static bool divides_small(const struct amp_decimal *a, uint64_t zeros, uint64_t divisor)
{
    unsigned __int128 r = 0;
    const char *p = a->first;
    for (uint32_t i = 0; i < a->n; i++)
        r = (r * 10 + digit_next(&p)) % divisor;
    /* 64 zeros contain every factor 2 and 5 of the divisor. */
    for (uint64_t i = 0; i < zeros && i < 64 && r; i++)
        r = r * 10 % divisor;
    return r == 0;
}

/* Tests divisors of any length, by long division: r is the remainder as digits. */
static bool divides_long(const struct amp_decimal *a, uint64_t zeros, const struct amp_decimal *b)
{
    signed char divisor[AMP_DECIMAL_DIVISOR + 1], r[AMP_DECIMAL_DIVISOR + 1];
    size_t n = b->n + 1;
    const char *p = b->first;
    divisor[0] = 0;
    for (size_t i = 1; i < n; i++)
        divisor[i] = (signed char)digit_next(&p);
    memset(r, 0, n);
    uint64_t most = 4 * (uint64_t)n, steps = a->n + (zeros < most ? zeros : most);
    bool zero = true;
    p = a->first;
    for (uint64_t i = 0; i < steps; i++) {
        if (i >= a->n && zero)
            break;
        signed char digit = i < a->n ? (signed char)digit_next(&p) : 0;
        memmove(r, r + 1, n - 1);
        r[n - 1] = digit;
        while (memcmp(r, divisor, n) >= 0) {
            for (size_t k = n; k-- > 0;) {
                r[k] = (signed char)(r[k] - divisor[k]);
                if (r[k] < 0) {
                    r[k] = (signed char)(r[k] + 10);
                    r[k - 1]--;
                }
            }
        }
        zero = true;
        for (size_t k = 0; k < n && zero; k++)
            zero = r[k] == 0;
    }
    return zero;
}

bool amp_decimal_multiple(const struct amp_decimal *a, const struct amp_decimal *b)
{
    if (!a->n)
        return true;
    if (!b->n || b->n > AMP_DECIMAL_DIVISOR)
        return false;
    /* Both mantissas end in a digit other than 0, so a must have the larger power of ten. */
    int64_t ea = a->point - (int64_t)a->n, eb = b->point - (int64_t)b->n;
    if (ea < eb)
        return false;
    if (b->n > 18)
        return divides_long(a, (uint64_t)(ea - eb), b);
    uint64_t divisor = 0;
    const char *p = b->first;
    for (uint32_t i = 0; i < b->n; i++)
        divisor = divisor * 10 + digit_next(&p);
    return divides_small(a, (uint64_t)(ea - eb), divisor);
}

uint64_t amp_decimal_hash(const struct amp_decimal *d, const struct amp_json_hash_key *k)
{
    uint64_t h = k->a ^ (uint64_t)d->point ^ (d->neg ? k->b : 0);
    const char *p = d->first;
    uint64_t word = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        word = word << 4 | digit_next(&p);
        if (i % 16 == 15) {
            h = amp_json_mix(h ^ k->b, word ^ k->a);
            word = 0;
        }
    }
    return amp_json_mix(h ^ k->b, word ^ d->n ^ k->a);
}
