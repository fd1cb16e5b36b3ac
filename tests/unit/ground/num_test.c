/* Numbers from text: grammar and edges. */
#include <math.h>

#include <amp/base/num.h>

#include "../tap.h"

static void whole(const char *text, int64_t min, int64_t max, bool good, int64_t want)
{
    int64_t v = 77;
    struct amp_error err;
    int rc = amp_num_parse(amp_span_str(text), min, max, &v, &err);
    TAP_OK((rc == 0) == good && v == (good ? want : 77), "whole number '%s'", text);
}

static void unit(int (*fn)(struct amp_span, int64_t, int64_t, int64_t *, struct amp_error *),
                 const char *text, int64_t want)
{
    int64_t v = -1;
    struct amp_error err;
    int rc = fn(amp_span_str(text), 0, INT64_MAX, &v, &err);
    TAP_OK(want < 0 ? rc == -1 && v == -1 : rc == 0 && v == want, "with a unit: '%s'", text);
}

static void real(const char *text, bool good, double want)
{
    double v = 77;
    struct amp_error err;
    int rc = amp_num_real(amp_span_str(text), -1e300, 1e300, &v, &err);
    TAP_OK((rc == 0) == good && (!good || fabs(v - want) < 1e-12), "real number '%s'", text);
}

int main(void)
{
    whole("0", 0, 9, true, 0);
    whole("-0", 0, 9, true, 0);
    whole("007", 0, 9, true, 7);
    whole("9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX);
    whole("-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN);
    whole("9223372036854775808", INT64_MIN, INT64_MAX, false, 0);
    whole("-9223372036854775809", INT64_MIN, INT64_MAX, false, 0);
    whole("99999999999999999999999999", INT64_MIN, INT64_MAX, false, 0);
    whole("10", 0, 9, false, 0);
    whole("-1", 0, 9, false, 0);
    static const char *const no[] = {"", "-", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "--1", "٣"};
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        whole(no[i], INT64_MIN, INT64_MAX, false, 0);
    int64_t v = 5;
    TAP_OK(amp_num_parse((struct amp_span){NULL, 0}, 0, 9, &v, NULL) == -1, "the empty span");
    struct amp_error err;
    amp_num_parse(AMP_SPAN("12"), 0, 9, &v, &err);
    TAP_STR(err.code, "out_of_range", "past the bound has its code");
    amp_num_parse(AMP_SPAN("x"), 0, 9, &v, &err);
    TAP_STR(err.code, "bad_number", "no number has its code");

    unit(amp_num_duration, "250ms", 250);
    unit(amp_num_duration, "30s", 30000);
    unit(amp_num_duration, "30", 30000);
    unit(amp_num_duration, "5m", 300000);
    unit(amp_num_duration, "2h", 7200000);
    unit(amp_num_duration, "1d", 86400000);
    unit(amp_num_duration, "0", 0);
    unit(amp_num_duration, "9223372036854775807ms", INT64_MAX);
    unit(amp_num_duration, "9223372036854775807s", -1);
    unit(amp_num_duration, "9223372036854775808ms", -1);
    unit(amp_num_duration, "106751991168d", -1);
    unit(amp_num_duration, "1w", -1);
    unit(amp_num_duration, "-1s", -1);
    unit(amp_num_duration, "s", -1);
    unit(amp_num_duration, "1.5s", -1);
    unit(amp_num_duration, "1 s", -1);
    unit(amp_num_size, "4096", 4096);
    unit(amp_num_size, "64K", 65536);
    unit(amp_num_size, "32M", 33554432);
    unit(amp_num_size, "1G", 1073741824);
    unit(amp_num_size, "8589934591G", 8589934591LL << 30);
    unit(amp_num_size, "8589934592G", -1);
    unit(amp_num_size, "1T", -1);
    unit(amp_num_size, "K", -1);

    real("0.5", true, 0.5);
    real("-2", true, -2);
    real("1e-3", true, 0.001);
    static const char *const bad[] = {"",   "-",   ".5",  "5.", "inf", "nan",  "0x10",
                                      "1e", "1e+", "1,5", " 1", "1 ",  "1e400"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        real(bad[i], false, 0);
    return tap_done();
}
