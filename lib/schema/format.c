/* The table of formats. A format that is not in it asserts nothing. */
#include "schema/format.h"

static const struct amp_format formats[] = {
    {"date-time", amp_format_date_time, "a date and time with an offset (RFC 3339)"},
    {"date", amp_format_date, "a date (YYYY-MM-DD)"},
    {"time", amp_format_time, "a time with an offset (RFC 3339)"},
    {"duration", amp_format_duration, "a duration (ISO 8601, P…)"},
};

const struct amp_format *amp_format_find(struct amp_span name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (amp_span_is(name, formats[i].name))
            return &formats[i];
    return NULL;
}
