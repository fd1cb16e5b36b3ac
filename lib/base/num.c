/* Parses numbers. */
#include <amp/base/num.h>

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"

static int fail_bad(struct amp_span text, const char *what, struct amp_error *err)
{
    int n = text.n > 64 ? 64 : (int)text.n;
    return amp_fail(err, AMP_USAGE, bad_number, "'%.*s' is not %s", n, n ? text.p : "", what);
}

static int fail_outside(struct amp_span text, int64_t min, int64_t max, struct amp_error *err)
{
    int n = text.n > 64 ? 64 : (int)text.n;
    return amp_fail(err, AMP_USAGE, out_of_range, "'%.*s' is not between %" PRId64 " and %" PRId64,
                    n, text.p, min, max);
}

int amp_num_parse(struct amp_span text, int64_t min, int64_t max, int64_t *out,
                  struct amp_error *err)
{
    bool neg = text.n > 0 && text.p[0] == '-';
    int64_t v = 0;
    size_t i = neg;
    bool big = false;
    /* Counted down, because INT64_MIN has no positive counterpart. */
    for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++)
        if (!big)
            big =
                __builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, text.p[i] - '0', &v);
    if (i != text.n || i == (size_t)neg)
        return fail_bad(text, "an integer", err);
    if (!big && !neg)
        big = __builtin_sub_overflow((int64_t)0, v, &v);
    if (big || v < min || v > max)
        return fail_outside(text, min, max, err);
    *out = v;
    return 0;
}

struct unit {
    const char *name;
    int64_t factor;
};

static int with_unit(struct amp_span text, const struct unit *units, const char *what, int64_t min,
                     int64_t max, int64_t *out, struct amp_error *err)
{
    int64_t v = 0;
    size_t used = 0;
    bool big = false;
    for (; used < text.n && text.p[used] >= '0' && text.p[used] <= '9'; used++)
        if (!big)
            big = __builtin_mul_overflow(v, 10, &v) ||
                  __builtin_add_overflow(v, text.p[used] - '0', &v);
    if (used == 0)
        return fail_bad(text, what, err);
    struct amp_span suffix = {text.p + used, text.n - used};
    for (; units->name; units++) {
        if (!amp_span_is(suffix, units->name))
            continue;
        if (big || __builtin_mul_overflow(v, units->factor, &v) || v < min || v > max)
            return fail_outside(text, min, max, err);
        *out = v;
        return 0;
    }
    return fail_bad(text, what, err);
}

int amp_num_duration(struct amp_span text, int64_t min_ms, int64_t max_ms, int64_t *ms,
                     struct amp_error *err)
{
    static const struct unit units[] = {{"", 1000},     {"ms", 1},       {"s", 1000}, {"m", 60000},
                                        {"h", 3600000}, {"d", 86400000}, {NULL, 0}};
    return with_unit(text, units, "a duration (250ms, 30s, 5m, 2h, 1d)", min_ms, max_ms, ms, err);
}

int amp_num_size(struct amp_span text, int64_t min, int64_t max, int64_t *bytes,
                 struct amp_error *err)
{
    static const struct unit units[] = {{"", 1},        {"K", 1 << 10}, {"k", 1 << 10},
                                        {"M", 1 << 20}, {"G", 1 << 30}, {NULL, 0}};
    return with_unit(text, units, "a size (4096, 64K, 32M, 1G)", min, max, bytes, err);
}

/* Moves *i past digits. Returns their number. */
static size_t digits_skip(struct amp_span text, size_t *i)
{
    size_t from = *i;
    while (*i < text.n && text.p[*i] >= '0' && text.p[*i] <= '9')
        ++*i;
    return *i - from;
}

int amp_num_real(struct amp_span text, double min, double max, double *out, struct amp_error *err)
{
    char s[64];
    /* The grammar is checked here, because strtod also accepts hexadecimal, "inf" and blanks. */
    size_t i = text.n > 0 && text.p[0] == '-';
    bool ok = text.n < sizeof s && digits_skip(text, &i) > 0;
    if (i < text.n && text.p[i] == '.') {
        i++;
        ok = digits_skip(text, &i) > 0 && ok;
    }
    if (ok && i < text.n && (text.p[i] == 'e' || text.p[i] == 'E')) {
        i++;
        if (i < text.n && (text.p[i] == '+' || text.p[i] == '-'))
            i++;
        ok = digits_skip(text, &i) > 0;
    }
    if (!ok || i != text.n)
        return fail_bad(text, "a number", err);
    amp_span_copy(text, s, sizeof s);
    /* Not the user's locale, whose decimal sign may be a comma. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double v = c ? strtod_l(s, NULL, c) : strtod(s, NULL);
    if (c)
        freelocale(c);
    if (!isfinite(v) || v < min || v > max)
        return amp_fail(err, AMP_USAGE, out_of_range, "'%s' is not between %g and %g", s, min, max);
    *out = v;
    return 0;
}
