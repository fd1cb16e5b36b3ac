/* The clocks; writing and parsing RFC 3339 times without the C library's time zones. */
#include <amp/base/clock.h>

#include <string.h>
#include <time.h>

#define DAY_MS 86400000LL
/* 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z: years of four digits. */
#define TIME_MIN (-62167219200000LL)
#define TIME_MAX 253402300799999LL

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int64_t amp_now_ms(void)
{
    return read_clock(CLOCK_REALTIME);
}

int64_t amp_mono_ms(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t amp_cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Days since 1970-01-01 in the proleptic Gregorian calendar. Years start in March here, so that
 * the leap day is a year's last. */
static int64_t days_from_civil(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    return era * 146097 + doe - 719468;
}

static void civil_from_days(int64_t z, int *y, int *m, int *d)
{
    z += 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    int64_t mp = (5 * doy + 2) / 153;
    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = (int)(yoe + era * 400 + (*m <= 2));
}

static void put_digits(char *p, int n, int v)
{
    for (; n-- > 0; v /= 10)
        p[n] = (char)('0' + v % 10);
}

void amp_time_format(int64_t ms, char out[AMP_TIME_MAX])
{
    if (ms < TIME_MIN)
        ms = TIME_MIN;
    if (ms > TIME_MAX)
        ms = TIME_MAX;
    int64_t day = ms / DAY_MS;
    int64_t rest = ms % DAY_MS;
    if (rest < 0) {
        rest += DAY_MS;
        day--;
    }
    int y, m, d;
    civil_from_days(day, &y, &m, &d);
    static const char zero[] = "0000-00-00T00:00:00.000Z";
    int t = (int)rest;
    memcpy(out, zero, sizeof zero);
    put_digits(out, 4, y);
    put_digits(out + 5, 2, m);
    put_digits(out + 8, 2, d);
    put_digits(out + 11, 2, t / 3600000);
    put_digits(out + 14, 2, t / 60000 % 60);
    put_digits(out + 17, 2, t / 1000 % 60);
    put_digits(out + 20, 3, t % 1000);
}

/* The value of two digits; more than 99: they are not digits. */
static inline unsigned two_digits(const char *p)
{
    unsigned tens = (unsigned char)p[0] - '0', ones = (unsigned char)p[1] - '0';
    return tens > 9 || ones > 9 ? 1000 : tens * 10 + ones;
}

static bool char_skip(const char **p, const char *end, char c)
{
    if (*p == end || **p != c)
        return false;
    (*p)++;
    return true;
}

static bool fraction_read(const char **p, const char *end, int *ms)
{
    *ms = 0;
    if (!char_skip(p, end, '.'))
        return true;
    int n = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; (*p)++, n++)
        if (n < 3)
            *ms = *ms * 10 + (**p - '0');
    for (int i = n; i < 3; i++)
        *ms *= 10;
    return n > 0;
}

/* Minutes east of UTC. */
static bool zone_read(const char **p, const char *end, int *minutes)
{
    *minutes = 0;
    if (char_skip(p, end, 'Z') || char_skip(p, end, 'z'))
        return true;
    int sign = char_skip(p, end, '+') ? 1 : char_skip(p, end, '-') ? -1 : 0;
    if (!sign || end - *p < 5 || (*p)[2] != ':')
        return false;
    unsigned h = two_digits(*p), m = two_digits(*p + 3);
    if (h > 23 || m > 59)
        return false;
    *p += 5;
    *minutes = sign * (int)(h * 60 + m);
    return true;
}

bool amp_time_parse(struct amp_span text, int64_t *ms)
{
    static const unsigned char month_days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (text.n < sizeof "2026-02-26T14:32:07Z" - 1)
        return false;
    const char *p = text.p, *end = text.p + text.n;
    if (p[4] != '-' || p[7] != '-' || (p[10] | 0x20) != 't' || p[13] != ':' || p[16] != ':')
        return false;
    unsigned century = two_digits(p), y = two_digits(p + 2), mo = two_digits(p + 5),
             d = two_digits(p + 8), h = two_digits(p + 11), mi = two_digits(p + 14),
             s = two_digits(p + 17);
    int frac, off;
    if (century > 99 || y > 99 || mo < 1 || mo > 12 || h > 23 || mi > 59 || s > 60)
        return false;
    p += 19;
    if (!fraction_read(&p, end, &frac) || !zone_read(&p, end, &off) || p != end)
        return false;
    y += century * 100;
    bool leap_year = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    if (d < 1 || d > month_days[mo - 1] + (unsigned)(mo == 2 && leap_year))
        return false;
    int64_t minutes = days_from_civil(y, (int)mo, (int)d) * 1440 + h * 60 + mi - off;
    if (s == 60) {
        /* A leap second is the last of a UTC day; it counts as the one before it. */
        int64_t of_day = (minutes % 1440 + 1440) % 1440;
        if (of_day != 1439)
            return false;
        s = 59;
        frac = 999;
    }
    *ms = (minutes * 60 + s) * 1000 + frac;
    return true;
}
