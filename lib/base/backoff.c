/* Exponential back-off. */
#include "base/backoff.h"

int64_t amp_backoff_next(const struct amp_backoff *b, int64_t last_ms)
{
    if (last_ms > b->most_ms / 2)
        return b->most_ms;
    int64_t wait = last_ms > 0 ? last_ms * 2 : b->first_ms;
    return wait < b->most_ms ? wait : b->most_ms;
}

int64_t amp_backoff_nth(const struct amp_backoff *b, uint32_t n)
{
    int64_t wait = amp_backoff_next(b, 0);
    for (uint32_t i = 0; i < n && wait > 0 && wait < b->most_ms; i++)
        wait = amp_backoff_next(b, wait);
    return wait;
}

int64_t amp_backoff_jitter(int64_t wait_ms, uint64_t random)
{
    return wait_ms > 0 ? (int64_t)(random % ((uint64_t)wait_ms + 1)) : 0;
}
