/* Keys: encoding, splitting. */
#include "message/store/key.h"

#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "json/bytes.h"

#define DIGEST     "sha256:"
#define DIGEST_LEN (sizeof DIGEST - 1)
#define LINE       "line:"
#define HEX_LEN    64

static bool is_hex(const char *p, size_t n)
{
    size_t i = 0;
    while (i < n && ((p[i] >= '0' && p[i] <= '9') || (p[i] >= 'a' && p[i] <= 'f')))
        i++;
    return i == n;
}

static bool is_line_name(struct amp_span part)
{
    return part.n == DIGEST_LEN + HEX_LEN && amp_span_starts(part, DIGEST) &&
           is_hex(part.p + DIGEST_LEN, HEX_LEN);
}

static bool is_plain(struct amp_span part)
{
    if (part.n > AMP_KEY_PART_MAX || (part.n > DIGEST_LEN && amp_span_starts(part, DIGEST)))
        return false;
    const unsigned char *p = (const unsigned char *)(part.n ? part.p : ""), *end = p + part.n;
    for (p = amp_skip_plain(p, end); p < end; p++)
        if (*p < 0x20)
            return false;
    return true;
}

/* Whether a byte stands for itself. */
static const bool byte_is_plain[256] = {
    ['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true, ['_'] = true,
};

static char *part_encode(struct amp_span part, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < part.n; i++) {
        unsigned char c = (unsigned char)part.p[i];
        if (byte_is_plain[c]) {
            *out++ = (char)c;
        } else {
            *out++ = '%';
            *out++ = digits[c >> 4];
            *out++ = digits[c & 15];
        }
    }
    return out;
}

/* The marker of the digest that replaces a part, with the digest in hex; NULL: the part is kept. */
static const char *part_digest(const struct amp_key *key, struct amp_span part,
                               char hex[AMP_SHA256_MAX])
{
    if (key->named && is_line_name(part)) {
        memcpy(hex, part.p + DIGEST_LEN, HEX_LEN);
        hex[HEX_LEN] = '\0';
        return LINE;
    }
    if (is_plain(part))
        return NULL;
    amp_sha256_hex(part, hex);
    return DIGEST;
}

static int key_check(const struct amp_key *key, struct amp_error *err)
{
    if (key->n == 0 || (key->n == 1 && key->part[0].n == 0))
        return amp_fail(err, AMP_NO, bad_id, "an id is empty");
    if (strlen(key->kind) > AMP_KEY_KIND_MAX)
        return amp_fail(err, AMP_INTERNAL, bad_kind, "a kind's name is too long");
    return 0;
}

int amp_key_text(const struct amp_key *key, char out[AMP_KEY_MAX], struct amp_span *text,
                 struct amp_error *err)
{
    if (key->text.n) {
        if (key->text.n >= AMP_KEY_MAX)
            return amp_fail(err, AMP_NO, bad_id, "a key of %zu bytes", key->text.n);
        memcpy(out, key->text.p, key->text.n);
        out[key->text.n] = '\0';
        *text = (struct amp_span){out, key->text.n};
        return 0;
    }
    if (key_check(key, err) < 0)
        return -1;
    char *p = out, hex[AMP_SHA256_MAX];
    p = mempcpy(p, key->kind, strlen(key->kind));
    for (uint32_t i = 0; i < key->n; i++) {
        const char *marker = part_digest(key, key->part[i], hex);
        *p++ = '.';
        if (marker)
            p = stpcpy(stpcpy(p, marker), hex);
        else
            p = part_encode(key->part[i], p);
    }
    *p = '\0';
    *text = (struct amp_span){out, (size_t)(p - out)};
    return 0;
}

int amp_key_full(const struct amp_key *key, struct amp_buf *out, struct amp_error *err)
{
    size_t most = AMP_KEY_KIND_MAX + 1;
    if (key_check(key, err) < 0)
        return -1;
    for (uint32_t i = 0; i < key->n; i++)
        most += 1 + 3 * key->part[i].n;
    if (amp_buf_reserve(out, most, err) < 0 || amp_buf_str(out, key->kind, err) < 0)
        return -1;
    for (uint32_t i = 0; i < key->n; i++) {
        out->data[out->len++] = '.';
        out->len = (size_t)(part_encode(key->part[i], out->data + out->len) - out->data);
    }
    return 0;
}

bool amp_key_is_digested(struct amp_span text)
{
    return memchr(text.p, ':', text.n) != NULL;
}

static int hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes a part to p. Returns the end of the text; NULL: the part is not encoded. */
static char *part_decode(struct amp_span part, char *p)
{
    if (amp_span_starts(part, LINE)) {
        p = stpcpy(p, DIGEST);
        part.p += sizeof LINE - 1;
        part.n -= sizeof LINE - 1;
    }
    for (size_t i = 0; i < part.n; i++) {
        if (part.p[i] != '%') {
            *p++ = part.p[i];
            continue;
        }
        if (i + 2 >= part.n || hex_value(part.p[i + 1]) < 0 || hex_value(part.p[i + 2]) < 0)
            return NULL;
        *p++ = (char)(hex_value(part.p[i + 1]) << 4 | hex_value(part.p[i + 2]));
        i += 2;
    }
    return p;
}

int amp_key_split(struct amp_span text, struct amp_buf *mem, struct amp_key *out,
                  struct amp_error *err)
{
    struct amp_key key = {.text = text};
    const char *end = text.p + text.n, *dot = text.n ? memchr(text.p, '.', text.n) : NULL;
    amp_buf_reset(mem);
    /* Each part needs a NUL, and two bytes more if it is the digest of a line. */
    if (amp_buf_reserve(mem, text.n + 2 + 3 * AMP_KEY_PARTS, err) < 0)
        return -1;
    char *p = mem->data;
    if (!dot)
        goto bad;
    key.kind = p;
    p = mempcpy(p, text.p, (size_t)(dot - text.p));
    *p++ = '\0';
    while (dot < end) {
        struct amp_span part = {dot + 1, (size_t)(end - dot - 1)};
        dot = memchr(part.p, '.', part.n);
        dot = dot ? dot : end;
        part.n = (size_t)(dot - part.p);
        char *to = key.n < AMP_KEY_PARTS ? part_decode(part, p) : NULL;
        if (!to)
            goto bad;
        key.part[key.n++] = (struct amp_span){p, (size_t)(to - p)};
        *to = '\0';
        p = to + 1;
    }
    mem->len = (size_t)(p - mem->data);
    *out = key;
    return 0;
bad:
    return amp_fail(err, AMP_IOERR, log_damaged, "%.*s is not a key",
                    (int)(text.n > 200 ? 200 : text.n), text.p);
}

static struct amp_span digest_write(struct amp_span of, char *out)
{
    char hex[AMP_SHA256_MAX];
    amp_sha256_hex(of, hex);
    return (struct amp_span){out, (size_t)(stpcpy(stpcpy(out, DIGEST), hex) - out)};
}

struct amp_span amp_key_message_name(struct amp_span id, struct amp_span line,
                                     char out[AMP_KEY_NAME_MAX])
{
    return id.n > 0 && !is_line_name(id) ? id : digest_write(line, out);
}

struct amp_span amp_key_part_name(struct amp_span part, char out[AMP_KEY_PART_MAX + 1])
{
    if (!is_plain(part))
        return digest_write(part, out);
    amp_span_copy(part, out, AMP_KEY_PART_MAX + 1);
    return (struct amp_span){out, part.n};
}

int amp_key_digest(const struct amp_span *parts, uint32_t n, char out[AMP_KEY_NAME_MAX],
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++)
        most += parts[i].n + 24;
    amp_buf_init(&text, most + 1);
    for (uint32_t i = 0; i < n; i++)
        if (amp_buf_fmt(&text, err, "%zu\n", parts[i].n) < 0 ||
            (parts[i].n && amp_buf_add(&text, parts[i].p, parts[i].n, err) < 0))
            return -1;
    amp_sha256_hex(amp_buf_span(&text), out);
    return 0;
}

struct amp_span amp_key_prefix(struct amp_span part)
{
    size_t n = 0;

    while (n < part.n && n < 64 && part.p[n] &&
           strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", part.p[n]))
        n++;
    return (struct amp_span){part.p, part.n > AMP_KEY_PART_MAX ? 0 : n};
}
