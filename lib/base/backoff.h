/*
 * Exponential back-off: each wait is twice the one before it, up to a longest. With full jitter the
 * wait is anything from 0 to that, evenly, so that those who failed together do not come back
 * together. Pure: the random number is an argument. All times are in milliseconds.
 */
#ifndef AMP_BASE_BACKOFF_H
#define AMP_BASE_BACKOFF_H

#include <stdint.h>

struct amp_backoff {
    int64_t first_ms, most_ms;
};

/* The wait after one of last_ms; 0: there was none. */
int64_t amp_backoff_next(const struct amp_backoff *b, int64_t last_ms);
/* The wait after n others: min(most, first * 2^n). */
int64_t amp_backoff_nth(const struct amp_backoff *b, uint32_t n);
/* Full jitter: 0 to wait_ms. `random` is an evenly distributed number. */
int64_t amp_backoff_jitter(int64_t wait_ms, uint64_t random);

#endif
