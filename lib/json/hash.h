/* The keyed hash of texts: object keys in tapes and in compiled schemas. The key is drawn once per
 * process, so inputs cannot be chosen to collide. */
#ifndef AMP_JSON_HASH_H
#define AMP_JSON_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct amp_json_hash_key {
    uint64_t a, b;
};

extern struct amp_json_hash_key amp_json_drawn_key; /* for the function below */
extern int amp_json_key_state;
const struct amp_json_hash_key *amp_json_draw_key(void);
static inline const struct amp_json_hash_key *amp_json_hash_key(void)
{
    if (__builtin_expect(__atomic_load_n(&amp_json_key_state, __ATOMIC_ACQUIRE) == 2, 1))
        return &amp_json_drawn_key;
    return amp_json_draw_key();
}

static inline uint64_t amp_json_mix(uint64_t a, uint64_t b)
{
    unsigned __int128 m = (unsigned __int128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

static inline uint64_t amp_json_read8(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t amp_json_read4(const char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* One multiplication for keys of up to 16 bytes, which are most. */
static inline uint64_t amp_json_hash64(const struct amp_json_hash_key *k, const char *p, size_t n)
{
    uint64_t h = k->a * (n + 1), x = 0, y = 0;
    if (n > 16) {
        size_t left = n;
        const char *q = p;
        for (; left > 16; left -= 16, q += 16)
            h = amp_json_mix(amp_json_read8(q) ^ k->b, amp_json_read8(q + 8) ^ h);
        x = amp_json_read8(p + n - 16);
        y = amp_json_read8(p + n - 8);
    } else if (n >= 8) {
        x = amp_json_read8(p);
        y = amp_json_read8(p + n - 8);
    } else if (n >= 4) {
        x = amp_json_read4(p);
        y = amp_json_read4(p + n - 4);
    } else if (n > 0) {
        x = (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[n / 2] << 8 |
            (unsigned char)p[n - 1];
    }
    return amp_json_mix(x ^ k->b, y ^ h);
}

static inline uint32_t amp_json_fold(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

static inline uint32_t amp_json_hash32(const struct amp_json_hash_key *k, const char *p, size_t n)
{
    return amp_json_fold(amp_json_hash64(k, p, n));
}

#endif
