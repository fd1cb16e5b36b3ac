/* Times in lists. */
#include "cli/time.h"

#include <stdio.h>

struct amp_span amp_age_text(int64_t ms, char out[AMP_AGE_MAX])
{
    static const struct {
        int64_t ms;
        char unit;
    } units[] = {{86400000, 'd'}, {3600000, 'h'}, {60000, 'm'}, {1000, 's'}};
    unsigned i = 0;

    if (ms < 0)
        ms = 0;
    while (i < 3 && ms < units[i].ms)
        i++;
    snprintf(out, AMP_AGE_MAX, "%lld%c", (long long)(ms / units[i].ms), units[i].unit);
    return amp_span_str(out);
}
