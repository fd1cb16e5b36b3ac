/*
 * A pack's entries and sizes, checked before the library resolves its deltas. Each entry is
 * inflated once into nothing, so that a pack that expands without bounds is refused early. The
 * library computes the objects' hashes and the pack's checksum afterwards.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "quarantine.h"

#define READ_SIZE    65536
#define TRAILER_SIZE 20
#define DELTA_HEAD   32 /* enough for the two sizes at the beginning of a delta */

struct pack {
    struct request *r;
    const char *name;
    int fd;
    unsigned char in[READ_SIZE];
    size_t at, n;
};

static int pack_damaged(const struct pack *p, const char *why)
{
    return refuse_incoming(p->r, "the pack %s %s", p->name, why);
}

/* 1: the buffer has a byte; 0: end of file; -1: failure. */
static int pack_fill(struct pack *p)
{
    while (p->at == p->n) {
        ssize_t n = read(p->fd, p->in, sizeof p->in);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(p->r->err, AMP_IOERR, "%s", p->name);
        if (n == 0)
            return 0;
        p->at = 0;
        p->n = (size_t)n;
    }
    return 1;
}

static int pack_byte(struct pack *p, unsigned char *c)
{
    int rc = pack_fill(p);
    *c = 0;
    if (rc <= 0)
        return rc < 0 ? -1 : pack_damaged(p, "ends early");
    *c = p->in[p->at++];
    return 0;
}

static int pack_skip(struct pack *p, size_t n)
{
    unsigned char c;
    while (n--)
        if (pack_byte(p, &c) < 0)
            return -1;
    return 0;
}

static int pack_word(struct pack *p, uint32_t *out)
{
    unsigned char c;
    *out = 0;
    for (int i = 0; i < 4; i++) {
        if (pack_byte(p, &c) < 0)
            return -1;
        *out = *out << 8 | c;
    }
    return 0;
}

/* A size of 7 bits in each byte, the least significant first. */
static int pack_varint(struct pack *p, unsigned char c, unsigned shift, uint64_t *size)
{
    while (c & 0x80) {
        if (pack_byte(p, &c) < 0)
            return -1;
        if (shift > 56)
            return pack_damaged(p, "has an entry with an invalid size");
        *size |= (uint64_t)(c & 0x7f) << shift;
        shift += 7;
    }
    return 0;
}

/* Inflates an entry of `size` bytes; the first of them go to head. */
static int pack_inflate(struct pack *p, uint64_t size, unsigned char head[DELTA_HEAD])
{
    unsigned char out[READ_SIZE];
    z_stream z = {0};
    uint64_t got = 0;
    int rc, ended = 0;
    if (inflateInit(&z) != Z_OK)
        return amp_fail_memory(p->r->err);
    while (!ended && (rc = pack_fill(p)) > 0) {
        z.next_in = p->in + p->at;
        z.avail_in = (uInt)(p->n - p->at);
        z.next_out = out;
        z.avail_out = sizeof out;
        rc = inflate(&z, Z_NO_FLUSH);
        p->at = p->n - z.avail_in;
        size_t n = sizeof out - z.avail_out;
        if (got < DELTA_HEAD)
            memcpy(head + got, out, n > DELTA_HEAD - got ? DELTA_HEAD - got : n);
        got += n;
        ended = rc == Z_STREAM_END;
        if (got > size || (rc != Z_OK && rc != Z_BUF_ERROR && !ended))
            break;
    }
    inflateEnd(&z);
    if (rc < 0 && p->r->err->code[0])
        return -1;
    return ended && got == size ? 0 : pack_damaged(p, "has a damaged entry");
}

/* The size of the object that a delta makes: the second number of the delta. */
static int delta_size(const struct pack *p, const unsigned char *head, uint64_t n, uint64_t *size)
{
    uint64_t at = 0;
    for (int number = 0; number < 2; number++) {
        unsigned shift = 0;
        unsigned char c;
        *size = 0;
        do {
            if (at >= n || at >= DELTA_HEAD || shift > 56)
                return pack_damaged(p, "has a damaged delta");
            c = head[at++];
            *size |= (uint64_t)(c & 0x7f) << shift;
            shift += 7;
        } while (c & 0x80);
    }
    return 0;
}

static int pack_entry(struct pack *p, const struct incoming_limits *limits,
                      struct incoming_count *count)
{
    enum { COMMIT = 1, TAG = 4, OFFSET_DELTA = 6, REF_DELTA = 7 };
    unsigned char c, head[DELTA_HEAD] = {0};
    if (pack_byte(p, &c) < 0)
        return -1;
    unsigned type = c >> 4 & 7;
    uint64_t size = c & 15, whole;
    if (pack_varint(p, c, 4, &size) < 0)
        return -1;
    if (type == OFFSET_DELTA) {
        do {
            if (pack_byte(p, &c) < 0)
                return -1;
        } while (c & 0x80);
    } else if (type == REF_DELTA) {
        if (pack_skip(p, GIT_OID_RAWSZ) < 0)
            return -1;
    } else if (type < COMMIT || type > TAG) {
        return pack_damaged(p, "has an entry of an unknown type");
    }
    /* A delta may be a little larger than what it makes. */
    if (size > (uint64_t)limits->object_bytes + DELTA_HEAD)
        return refuse_limit(p->r, "the pack %s has an object larger than %lld bytes", p->name,
                            (long long)limits->object_bytes);
    if (pack_inflate(p, size, head) < 0)
        return -1;
    whole = size;
    if (type >= OFFSET_DELTA && delta_size(p, head, size, &whole) < 0)
        return -1;
    if (whole > (uint64_t)limits->object_bytes)
        return refuse_limit(p->r, "the pack %s has an object larger than %lld bytes", p->name,
                            (long long)limits->object_bytes);
    count->bytes += (int64_t)whole;
    if (++count->objects > limits->objects)
        return refuse_limit(p->r, "there are more than %lld objects in packs",
                            (long long)limits->objects);
    if (count->bytes > limits->bytes)
        return refuse_limit(p->r, "the objects in packs have more than %lld bytes",
                            (long long)limits->bytes);
    return 0;
}

int pack_check(struct request *r, int fd, const char *name, const struct incoming_limits *limits,
               struct incoming_count *count)
{
    struct pack p = {.r = r, .name = name, .fd = fd};
    uint32_t magic, version, n;
    if (pack_word(&p, &magic) < 0 || pack_word(&p, &version) < 0 || pack_word(&p, &n) < 0)
        return -1;
    if (magic != 0x5041434b /* PACK */ || version < 2 || version > 3)
        return pack_damaged(&p, "has an unknown format");
    for (; n; n--)
        if (pack_entry(&p, limits, count) < 0)
            return -1;
    if (pack_skip(&p, TRAILER_SIZE) < 0)
        return -1;
    int more = pack_fill(&p);
    return more > 0 ? pack_damaged(&p, "has bytes after its end") : more;
}
