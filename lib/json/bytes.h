/* Inner loops: runs of plain string bytes and of white space, short comparisons. They use SSE2 if
 * the compiler has it, otherwise eight bytes per step; -DAMP_NO_SIMD forces the portable code. */
#ifndef AMP_JSON_BYTES_H
#define AMP_JSON_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(AMP_NO_SIMD)
#define AMP_JSON_SSE2 1
#include <emmintrin.h>
#else
#define AMP_JSON_SSE2 0
#endif

static inline bool amp_byte_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static inline bool amp_byte_space(unsigned char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* memcmp(p, q, n) == 0, fast for short texts like keys and enum values. */
static inline bool amp_same_bytes(const char *p, const char *q, size_t n)
{
    uint64_t a, b;
    uint32_t c, d;
    if (n > 16)
        return memcmp(p, q, n) == 0;
    if (n >= 8) {
        uint64_t e, f;
        memcpy(&a, p, 8);
        memcpy(&b, q, 8);
        memcpy(&e, p + n - 8, 8);
        memcpy(&f, q + n - 8, 8);
        return !((a ^ b) | (e ^ f));
    }
    if (n >= 4) {
        uint32_t e, f;
        memcpy(&c, p, 4);
        memcpy(&d, q, 4);
        memcpy(&e, p + n - 4, 4);
        memcpy(&f, q + n - 4, 4);
        return !((c ^ d) | (e ^ f));
    }
    return n == 0 || (p[0] == q[0] && p[n / 2] == q[n / 2] && p[n - 1] == q[n - 1]);
}

#if AMP_JSON_SSE2
/* A bit for each of 16 bytes that is not plain (amp_byte_plain), or is `other`. The comparison is
 * signed, so bytes of 0x80 and above are below the space. */
static inline uint64_t amp_not_plain_of(__m128i v, __m128i other)
{
    __m128i sign =
        _mm_or_si128(_mm_cmpeq_epi8(_mm_set1_epi8('"'), v), _mm_cmpeq_epi8(_mm_set1_epi8('\\'), v));
    sign = _mm_or_si128(sign, _mm_cmpeq_epi8(other, v));
    __m128i plain = _mm_andnot_si128(sign, _mm_cmpgt_epi8(v, _mm_set1_epi8(0x1f)));
    return (unsigned)_mm_movemask_epi8(plain) ^ 0xffffu;
}

static inline uint64_t amp_not_plain(const unsigned char *p)
{
    return amp_not_plain_of(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8('"'));
}
#endif

/* amp_skip_plain; with `del` also up to a DEL. */
static inline __attribute__((always_inline)) const unsigned char *
amp_skip_run(const unsigned char *p, const unsigned char *end, bool del)
{
#if AMP_JSON_SSE2
    const __m128i other = _mm_set1_epi8(del ? 0x7f : '"');
    const unsigned char *last = end - p < 16 ? p : end - 15;
    while (p < last) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        uint64_t stop = amp_not_plain_of(v, other);
        if (stop)
            return p + __builtin_ctzll(stop);
        p += 16;
    }
    if (end - p >= 8) {
        __m128i v = _mm_loadl_epi64((const __m128i *)(const void *)p);
        uint64_t stop = amp_not_plain_of(v, other) & 0xff;
        if (stop)
            return p + __builtin_ctzll(stop);
        p += 8;
    }
#else
    const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
    const uint64_t other = ones * (del ? 0x7f : '"');
    while (end - p >= 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        uint64_t q = v ^ ones * '"', b = v ^ ones * '\\', d = v ^ other;
        /* The high bit is set where a byte is zero (quote, backslash, DEL), below 0x20, or above
         * 0x7f. A borrow may set a wrong bit above a right one, which only ends the fast loop. */
        uint64_t stop = ((q - ones) & ~q) | ((b - ones) & ~b) | ((d - ones) & ~d) |
                        ((v - ones * 0x20) & ~v) | v;
        if (stop & high)
            break;
        p += 8;
    }
#endif
    while (p < end && amp_byte_plain(*p) && !(del && *p == 0x7f))
        p++;
    return p;
}

/* The first byte from p that is a quote, a backslash, a control character or not ASCII; or end. */
static inline const unsigned char *amp_skip_plain(const unsigned char *p, const unsigned char *end)
{
    return amp_skip_run(p, end, false);
}

/* Like amp_skip_plain, but also finds a DEL: JSON need not escape it, but terminals obey it. */
static inline const unsigned char *amp_skip_shown(const unsigned char *p, const unsigned char *end)
{
    return amp_skip_run(p, end, true);
}

/* Like amp_skip_plain, but not inlined, for the rest of a long string. */
__attribute__((noinline, unused)) static const unsigned char *
amp_skip_long(const unsigned char *p, const unsigned char *end)
{
    return amp_skip_plain(p, end);
}

/* Moves *at like amp_skip_plain; true: it is at a quote, usually within 16 bytes. Before `last`, 16
 * bytes can be read. */
static inline bool amp_to_quote(const unsigned char **at, const unsigned char *end,
                                const unsigned char *last)
{
    const unsigned char *p = *at;
#if AMP_JSON_SSE2
    if (__builtin_expect(p < last, 1)) {
        uint64_t stop = amp_not_plain(p);
        if (__builtin_expect(stop != 0, 1)) {
            p += __builtin_ctzll(stop);
            *at = p;
            return *p == '"';
        }
        p += 16;
    }
#endif
    *at = p = amp_skip_long(p, end);
    return p < end && *p == '"';
}

static inline const unsigned char *amp_skip_space(const unsigned char *p, const unsigned char *end)
{
    /* Usually there is none, or one space after a colon or comma. */
    if (p<end && * p> 0x20)
        return p;
    if (end - p >= 2 && *p == ' ' && p[1] > 0x20)
        return p + 1;
#if AMP_JSON_SSE2
    const __m128i a = _mm_set1_epi8(' '), b = _mm_set1_epi8('\n'), c = _mm_set1_epi8('\r'),
                  d = _mm_set1_epi8('\t');
    while (end - p >= 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i white = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, a), _mm_cmpeq_epi8(v, b)),
                                     _mm_or_si128(_mm_cmpeq_epi8(v, c), _mm_cmpeq_epi8(v, d)));
        unsigned mask = ~(unsigned)_mm_movemask_epi8(white) & 0xffffu;
        if (mask)
            return p + __builtin_ctz(mask);
        p += 16;
    }
#endif
    while (p < end && amp_byte_space(*p))
        p++;
    return p;
}

#endif
