/* Dates and times of RFC 3339, durations of its appendix A. */
#include <string.h>

#include "schema/format/format.h"

static unsigned number_of(const char *digits)
{
    return (unsigned)(digits[0] - '0') * 10 + (unsigned)(digits[1] - '0');
}

static bool read_two(const char *p, unsigned *out)
{
    *out = number_of(p);
    return amp_is_digit(p[0]) && amp_is_digit(p[1]);
}

bool amp_format_date(const char *p, size_t n)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    unsigned century, year, month, day;
    if (n != 10 || p[4] != '-' || p[7] != '-' || !read_two(p, &century) ||
        !read_two(p + 2, &year) || !read_two(p + 5, &month) || !read_two(p + 8, &day))
        return false;
    year += century * 100;
    if (month < 1 || month > 12 || day < 1)
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return day <= days[month - 1] + (unsigned)(month == 2 && leap);
}

bool amp_format_time(const char *p, size_t n)
{
    unsigned hour, minute, second, away_hour = 0, away_minute = 0;
    int sign = 1;
    if (n < 9 || p[2] != ':' || p[5] != ':' || !read_two(p, &hour) || !read_two(p + 3, &minute) ||
        !read_two(p + 6, &second) || hour > 23 || minute > 59 || second > 60)
        return false;
    const char *end = p + n, *q = p + 8;
    if (*q == '.') {
        const char *first = ++q;
        while (q < end && amp_is_digit(*q))
            q++;
        if (q == first)
            return false;
    }
    if (end - q == 1 && (*q | 0x20) == 'z') {
        q++;
    } else {
        if (end - q != 6 || (*q != '+' && *q != '-') || q[3] != ':' ||
            !read_two(q + 1, &away_hour) || !read_two(q + 4, &away_minute) || away_hour > 23 ||
            away_minute > 59)
            return false;
        sign = *q == '-' ? -1 : 1;
    }
    if (second < 60)
        return true;
    /* A leap second is the last one of a day in UTC. */
    int utc = (int)(hour * 60 + minute) - sign * (int)(away_hour * 60 + away_minute);
    return (utc + 2 * 1440) % 1440 == 1439;
}

/* Whether eight bytes have the form: digits for its zeroes, and its signs. */
static bool has_form(const char *p, const char form[9])
{
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    uint64_t v, f;
    memcpy(&v, p, sizeof v);
    memcpy(&f, form, sizeof f);
    v ^= f; /* digits become their values, signs 0 */
    /* 0x80 for each sign of the form: signs have no bit 0x10 beside 0x20, or are above '9'. */
    uint64_t sign = ((f ^ ones * '0') + ones * 0x7f) & high;
    return !((v | (v + ones * 0x76 + (sign >> 7) * 9)) & high);
}

/* Whether the text has the usual form, "2026-02-26T14:32:07Z", perhaps with a fraction, and is
 * valid. */
static bool is_usual_date_time(const char *p, size_t n)
{
    if (n < 20 || p[n - 1] != 'Z' || !has_form(p, "0000-00-") || !has_form(p + 8, "00T00:00") ||
        !has_form(p + 11, "00:00:00"))
        return false;
    for (const char *q = p + 20; q < p + n - 1; q++)
        if (!amp_is_digit(*q))
            return false;
    if (n > 20 && (n == 21 || p[19] != '.'))
        return false;
    return number_of(p + 5) - 1 < 12 && number_of(p + 8) - 1 < 28 && number_of(p + 11) < 24 &&
           p[14] < '6' && p[17] < '6';
}

bool amp_format_date_time(const char *p, size_t n)
{
    if (is_usual_date_time(p, n))
        return true;
    return n > 11 && (p[10] | 0x20) == 't' && amp_format_date(p, 10) &&
           amp_format_time(p + 11, n - 11);
}

/* Digits and one of the units, each at most once and in their order; at least one. */
static bool read_parts(const char **p, const char *end, const char *units)
{
    bool any = false;
    while (*p < end && amp_is_digit(**p)) {
        while (*p < end && amp_is_digit(**p))
            ++*p;
        const char *unit = *p < end && **p ? strchr(units, **p) : NULL;
        if (!unit)
            return false;
        /* Units may be left out at the front and at the end, not in the middle. */
        if (any && unit != units)
            return false;
        units = unit + 1;
        any = true;
        ++*p;
    }
    return any;
}

bool amp_format_duration(const char *p, size_t n)
{
    const char *end = p + n;
    if (n < 3 || *p++ != 'P')
        return false;
    if (end[-1] == 'W')
        return read_parts(&p, end, "W") && p == end;
    if (*p != 'T' && !read_parts(&p, end, "YMD"))
        return false;
    if (p == end)
        return true;
    return *p++ == 'T' && read_parts(&p, end, "HMS") && p == end;
}
