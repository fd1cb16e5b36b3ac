/* The settings transport.*: the limits of messages in chunks, and of batches. */
#include <amp/base/num.h>

#include "message/delivery/transfer/units.h"

struct amp_unit_limits amp_unit_limits = {.timeout_ms = 60000,
                                          .unfinished = 64,
                                          .waiting = (size_t)64 << 20,
                                          .message = (size_t)32 << 20,
                                          .chunks = 4096,
                                          .batch = 256};

int amp_unit_set_timeout(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return amp_num_duration(amp_span_str(text), 10, 86400000, &amp_unit_limits.timeout_ms, err);
}

static int count_set(const char *text, int64_t most, uint32_t *out, struct amp_error *err)
{
    int64_t n;
    if (amp_num_parse(amp_span_str(text), 1, most, &n, err) < 0)
        return -1;
    *out = (uint32_t)n;
    return 0;
}

static int size_set(const char *text, int64_t most, size_t *out, struct amp_error *err)
{
    int64_t n;
    if (amp_num_size(amp_span_str(text), 1024, most, &n, err) < 0)
        return -1;
    *out = (size_t)n;
    return 0;
}

int amp_unit_set_unfinished(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return count_set(text, 1024, &amp_unit_limits.unfinished, err);
}

int amp_unit_set_waiting(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return size_set(text, (int64_t)1 << 32, &amp_unit_limits.waiting, err);
}

int amp_unit_set_message(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return size_set(text, (int64_t)32 << 20, &amp_unit_limits.message, err);
}

int amp_unit_set_chunks(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return count_set(text, 65536, &amp_unit_limits.chunks, err);
}

int amp_unit_set_batch(void *arg, const char *text, struct amp_error *err)
{
    (void)arg;
    return count_set(text, 4096, &amp_unit_limits.batch, err);
}
