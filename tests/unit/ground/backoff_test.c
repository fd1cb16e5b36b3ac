/* The waits between attempts: doubled up to the longest, with and without jitter. */
#include "base/backoff.h"

#include "../tap.h"

int main(void)
{
    const struct amp_backoff b = {500, 3000};
    static const int64_t want[] = {500, 1000, 2000, 3000, 3000};
    int64_t wait = 0;
    for (uint32_t i = 0; i < 5; i++) {
        wait = amp_backoff_next(&b, wait);
        TAP_INT(wait, want[i], "one after the other");
        TAP_INT(amp_backoff_nth(&b, i), want[i], "by its number");
    }
    TAP_INT(amp_backoff_nth(&b, UINT32_MAX), 3000, "never longer than the longest");
    const struct amp_backoff narrow = {5000, 3000}, none = {0, 3000}, huge = {1, INT64_MAX};
    TAP_INT(amp_backoff_nth(&narrow, 0), 3000, "also the first");
    TAP_INT(amp_backoff_nth(&none, 9), 0, "no wait stays none");
    TAP_OK(amp_backoff_nth(&huge, 200) == INT64_MAX, "and does not overflow");
    TAP_INT(amp_backoff_jitter(1000, 0), 0, "jitter: from nothing");
    TAP_INT(amp_backoff_jitter(1000, 1000), 1000, "to the wait itself");
    TAP_INT(amp_backoff_jitter(1000, 1001), 0, "and no more");
    TAP_INT(amp_backoff_jitter(0, 7), 0, "of no wait: none");
    TAP_OK(amp_backoff_jitter(INT64_MAX, UINT64_MAX) >= 0, "of the longest: no overflow");
    return tap_done();
}
