/* JSON numbers by their exact decimal value, of any size, without rounding. Exponents above 10^18
 * count as 10^18. */
#ifndef AMP_JSON_DECIMAL_H
#define AMP_JSON_DECIMAL_H

#include <amp/base/buf.h>

struct amp_json_hash_key;

/* value = (neg ? -1 : 1) * 0.d1d2...dn * 10^point. The digits are in [first, last], which may also
 * contain one '.'; d1 and dn are not 0. Zero has n == 0. */
struct amp_decimal {
    const char *first, *last;
    uint32_t n;
    bool neg;
    int64_t point;
};

/* The text must be a number by JSON's grammar. */
struct amp_decimal amp_decimal_read(struct amp_span text);
int amp_decimal_compare(const struct amp_decimal *a, const struct amp_decimal *b); /* <0 0 >0 */
bool amp_decimal_is_integer(const struct amp_decimal *d);
bool amp_decimal_int64(const struct amp_decimal *d, int64_t *out);
/* Whether a is an integer multiple of b, which is > 0 and has at most AMP_DECIMAL_DIVISOR digits.
 */
bool amp_decimal_multiple(const struct amp_decimal *a, const struct amp_decimal *b);
uint64_t amp_decimal_hash(const struct amp_decimal *d, const struct amp_json_hash_key *k);

/* The value of an integer by JSON's grammar, without an exponent, of at most 18 characters. */
static inline int64_t amp_small_int(const char *p, uint32_t n)
{
    const char *end = p + n;
    bool minus = *p == '-';
    int64_t v = 0;
    for (p += minus; p < end; p++)
        v = v * 10 + (*p - '0');
    return minus ? -v : v;
}

enum { AMP_DECIMAL_DIVISOR = 1000 };

#endif
