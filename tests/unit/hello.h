/* Composes the first message of a TLS client, right or wrong. */
#ifndef TESTS_HELLO_H
#define TESTS_HELLO_H

#include <string.h>

#include <amp/base/buf.h>

struct hello {
    unsigned char bytes[4096];
    size_t n;
};

static inline void hello_put(struct hello *h, unsigned value, unsigned bytes)
{
    while (bytes-- && h->n < sizeof h->bytes)
        h->bytes[h->n++] = (unsigned char)(value >> (8 * bytes));
}

static inline void hello_text(struct hello *h, const char *text, size_t n)
{
    memcpy(h->bytes + h->n, text, n);
    h->n += n;
}

/* An extension with n names (0: an empty list). */
static inline void hello_names(struct hello *h, const char *const *names, unsigned n)
{
    unsigned total = 0;
    for (unsigned i = 0; i < n; i++)
        total += 3 + (unsigned)strlen(names[i]);
    hello_put(h, 0, 2);
    hello_put(h, total + 2, 2);
    hello_put(h, total, 2);
    for (unsigned i = 0; i < n; i++) {
        hello_put(h, 0, 1);
        hello_put(h, (unsigned)strlen(names[i]), 2);
        hello_text(h, names[i], strlen(names[i]));
    }
}

/* The message in one record. exts: the extensions; pad: bytes of an extension of padding before
 * them. */
static inline struct hello hello_of(const struct hello *exts, unsigned pad)
{
    struct hello body = {0}, out = {0};
    hello_put(&body, 0x0303, 2);
    for (unsigned i = 0; i < 32; i++)
        hello_put(&body, i, 1);
    hello_put(&body, 0, 1);
    hello_put(&body, 2, 2);
    hello_put(&body, 0x1301, 2);
    hello_put(&body, 1, 1);
    hello_put(&body, 0, 1);
    hello_put(&body, (unsigned)exts->n + (pad ? pad + 4 : 0), 2);
    if (pad) {
        hello_put(&body, 21, 2);
        hello_put(&body, pad, 2);
        for (unsigned i = 0; i < pad; i++)
            hello_put(&body, 0, 1);
    }
    hello_text(&body, (const char *)exts->bytes, exts->n);
    hello_put(&out, 22, 1);
    hello_put(&out, 0x0301, 2);
    hello_put(&out, (unsigned)body.n + 4, 2);
    hello_put(&out, 1, 1);
    hello_put(&out, (unsigned)body.n, 3);
    hello_text(&out, (const char *)body.bytes, body.n);
    return out;
}

/* The hello of a usual client for one host; NULL: without a name. */
static inline struct hello hello_for(const char *name)
{
    struct hello exts = {0};
    if (name)
        hello_names(&exts, &name, 1);
    return hello_of(&exts, 0);
}

/* The same message in records of at most `most` bytes. */
static inline struct hello hello_split(const struct hello *h, size_t most)
{
    struct hello out = {0};
    for (size_t at = 5; at < h->n; at += most) {
        size_t n = h->n - at < most ? h->n - at : most;
        hello_put(&out, 22, 1);
        hello_put(&out, 0x0301, 2);
        hello_put(&out, (unsigned)n, 2);
        hello_text(&out, (const char *)h->bytes + at, n);
    }
    return out;
}

static inline struct amp_span hello_span(const struct hello *h)
{
    return (struct amp_span){(const char *)h->bytes, h->n};
}

#endif
