/*
 * Exponential back-off: each wait is twice the previous one, up to a maximum. Full jitter chooses
 * the wait evenly between 0 and that, so that clients that failed together do not retry together.
 * The functions are pure: the random number is an argument. All times are in milliseconds.
 */
#ifndef AMP_BASE_BACKOFF_H
#define AMP_BASE_BACKOFF_H

#include <stdint.h>

struct amp_backoff {
    int64_t first_ms, most_ms;
};

/* The wait after a wait of last_ms; 0: there was none. */
int64_t amp_backoff_next(const struct amp_backoff *b, int64_t last_ms);
/* The wait after n waits: min(most, first * 2^n). */
int64_t amp_backoff_nth(const struct amp_backoff *b, uint32_t n);
/* Full jitter: 0 to wait_ms. `random` is an evenly distributed number. */
int64_t amp_backoff_jitter(int64_t wait_ms, uint64_t random);

#endif
