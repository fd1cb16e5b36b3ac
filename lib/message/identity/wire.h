/* The SSH wire format (RFC 4251 §5): strings with their length as 4 bytes, the highest first. */
#ifndef AMP_MESSAGE_IDENTITY_WIRE_H
#define AMP_MESSAGE_IDENTITY_WIRE_H

#include <string.h>

#include <amp/base/buf.h>

/* Takes a number or a string from the front. False: the bytes end before. */
static inline bool wire_u32(struct amp_span *in, uint32_t *out)
{
    const unsigned char *p = (const unsigned char *)in->p;
    if (in->n < 4)
        return false;
    *out = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    in->p += 4;
    in->n -= 4;
    return true;
}

static inline bool wire_string(struct amp_span *in, struct amp_span *out)
{
    struct amp_span rest = *in;
    uint32_t n;
    if (!wire_u32(&rest, &n) || n > rest.n)
        return false;
    *out = (struct amp_span){rest.p, n};
    *in = (struct amp_span){rest.p + n, rest.n - n};
    return true;
}

/* Writes to p, which has room; return the next byte. */
static inline unsigned char *wire_put_u32(unsigned char *p, uint32_t n)
{
    p[0] = (unsigned char)(n >> 24);
    p[1] = (unsigned char)(n >> 16);
    p[2] = (unsigned char)(n >> 8);
    p[3] = (unsigned char)n;
    return p + 4;
}

static inline unsigned char *wire_put(unsigned char *p, const void *data, size_t n)
{
    p = wire_put_u32(p, (uint32_t)n);
    if (n > 0)
        memcpy(p, data, n);
    return p + n;
}

static inline int wire_add(struct amp_buf *b, const void *data, size_t n, struct amp_error *err)
{
    unsigned char head[4];
    wire_put_u32(head, (uint32_t)n);
    return amp_buf_add(b, head, 4, err) < 0 ? -1 : amp_buf_add(b, data, n, err);
}

#endif
