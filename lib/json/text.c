/* Strings of scanned texts: decoding, comparing and counting. The scanner has checked the bytes, so
 * every escape is valid. */
#include "json/text.h"

#include <string.h>

#include "base/codes.h"
#include "json/bytes.h"

int32_t amp_json_hex4(const unsigned char *p)
{
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        unsigned c = p[i];
        if (c - '0' < 10)
            c -= '0';
        else if ((c | 0x20) - 'a' < 6)
            c = (c | 0x20) - 'a' + 10;
        else
            return -1;
        v = v << 4 | (int32_t)c;
    }
    return v;
}

const char amp_json_escapes[128] = {['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
                                    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t amp_utf8_length(const unsigned char *p, size_t n)
{
    if (n < 1)
        return 0;
    unsigned char c = p[0];
    if (c < 0x80)
        return 1;
    if (c >= 0xc2 && c <= 0xdf)
        return n >= 2 && is_tail(p[1]) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        if (n < 3 || !is_tail(p[1]) || !is_tail(p[2]))
            return 0;
        /* No overlong forms, no surrogates. */
        return (c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) ? 0 : 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (n < 4 || !is_tail(p[1]) || !is_tail(p[2]) || !is_tail(p[3]))
            return 0;
        return (c == 0xf0 && p[1] < 0x90) || (c == 0xf4 && p[1] > 0x8f) ? 0 : 4;
    }
    return 0;
}

void amp_utf8_clean(char *text)
{
    size_t n = strlen(text);
    for (size_t at = 0, len; at < n; at += len ? len : 1)
        if (!(len = amp_utf8_length((const unsigned char *)text + at, n - at)))
            text[at] = '?';
}

int amp_utf8_path(const char *path, struct amp_error *err)
{
    size_t n = strlen(path), at = 0;
    for (size_t len; at < n; at += len)
        if (!(len = amp_utf8_length((const unsigned char *)path + at, n - at)))
            return amp_fail(err, AMP_DATAERR, path_not_utf8,
                            "%s: byte %zu of the path, 0x%02X, is not UTF-8, which records and "
                            "messages need: rename it",
                            path, at + 1, (unsigned char)path[at]);
    return 0;
}

size_t amp_utf8_put(uint32_t c, char *dst)
{
    if (c < 0x80) {
        dst[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        dst[0] = (char)(0xc0 | c >> 6);
        dst[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        dst[0] = (char)(0xe0 | c >> 12);
        dst[1] = (char)(0x80 | (c >> 6 & 0x3f));
        dst[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    dst[0] = (char)(0xf0 | c >> 18);
    dst[1] = (char)(0x80 | (c >> 12 & 0x3f));
    dst[2] = (char)(0x80 | (c >> 6 & 0x3f));
    dst[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

size_t amp_json_decode_one(const char **p, const char *end, char dst[4])
{
    const char *q = *p;
    if (*q != '\\') {
        size_t n = amp_utf8_length((const unsigned char *)q, (size_t)(end - q));
        if (!n)
            n = 1;
        memcpy(dst, q, n);
        *p = q + n;
        return n;
    }
    *p = q + 2;
    if (q[1] != 'u') {
        dst[0] = amp_json_escapes[q[1] & 127];
        return 1;
    }
    uint32_t c = (uint32_t)amp_json_hex4((const unsigned char *)q + 2);
    *p = q + 6;
    if (c >= 0xd800 && c <= 0xdbff) {
        uint32_t low = (uint32_t)amp_json_hex4((const unsigned char *)q + 8);
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        *p = q + 12;
    }
    return amp_utf8_put(c, dst);
}

size_t amp_json_decode(const char *raw, size_t n, char *dst)
{
    const char *p = raw, *end = raw + n;
    char *out = dst;
    while (p < end) {
        const char *back = memchr(p, '\\', (size_t)(end - p));
        size_t plain = (size_t)((back ? back : end) - p);
        memmove(out, p, plain);
        out += plain;
        if (!back)
            break;
        p = back;
        out += amp_json_decode_one(&p, end, out);
    }
    return (size_t)(out - dst);
}

bool amp_json_same_text(const struct amp_tape *a, uint32_t x, const struct amp_tape *b, uint32_t y)
{
    const struct amp_tok *s = &a->tok[x], *r = &b->tok[y];
    const char *p = a->text + s->off, *q = b->text + r->off;
    if (!((s->flags | r->flags) & AMP_TOK_ESCAPED))
        return s->len == r->len && amp_same_bytes(p, q, s->len);
    const char *pe = p + s->len, *qe = q + r->len;
    while (p < pe && q < qe) {
        char c[4], d[4];
        size_t n = amp_json_decode_one(&p, pe, c);
        if (n != amp_json_decode_one(&q, qe, d) || memcmp(c, d, n) != 0)
            return false;
    }
    return p == pe && q == qe;
}

bool amp_tok_is(const struct amp_tape *t, uint32_t tok, struct amp_span s)
{
    const struct amp_tok *k = &t->tok[tok];
    if (k->type != AMP_JSON_STRING)
        return false;
    const char *p = t->text + k->off, *end = p + k->len;
    if (!(k->flags & AMP_TOK_ESCAPED))
        return k->len == s.n && amp_same_bytes(p, s.p, s.n);
    size_t at = 0;
    while (p < end) {
        char c[4];
        size_t n = amp_json_decode_one(&p, end, c);
        if (s.n - at < n || memcmp(s.p + at, c, n) != 0)
            return false;
        at += n;
    }
    return at == s.n;
}

int amp_tok_text(const struct amp_tape *t, uint32_t tok, struct amp_buf *arena,
                 struct amp_span *out, struct amp_error *err)
{
    const struct amp_tok *k = &t->tok[tok];
    struct amp_span raw = {t->text + k->off, k->len};
    if (k->type != AMP_JSON_STRING || !(k->flags & AMP_TOK_ESCAPED)) {
        *out = raw;
        return 0;
    }
    if (amp_buf_reserve(arena, raw.n, err) < 0)
        return -1;
    char *dst = arena->data + arena->len;
    size_t n = amp_json_decode(raw.p, raw.n, dst);
    dst[n] = '\0';
    arena->len += n;
    *out = (struct amp_span){dst, n};
    return 0;
}

uint32_t amp_json_length(const struct amp_tape *t, uint32_t tok)
{
    const struct amp_tok *k = &t->tok[tok];
    if (!(k->flags & (AMP_TOK_ESCAPED | AMP_TOK_NONASCII)))
        return k->len;
    const char *p = t->text + k->off, *end = p + k->len;
    uint32_t n = 0;
    if (!(k->flags & AMP_TOK_ESCAPED)) {
        for (; p < end; p++)
            n += (*p & 0xc0) != 0x80;
        return n;
    }
    for (; p < end; n++) {
        char c[4];
        amp_json_decode_one(&p, end, c);
    }
    return n;
}

int amp_base64_add(struct amp_buf *out, struct amp_span bytes, struct amp_error *err)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = bytes.n - i;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? (unsigned char)bytes.p[i + k] : 0);
        const char four[] = {letters[v >> 18], letters[v >> 12 & 63],
                             n > 1 ? letters[v >> 6 & 63] : '=', n > 2 ? letters[v & 63] : '='};
        if (amp_buf_add(out, four, sizeof four, err) < 0)
            return -1;
    }
    return 0;
}

static int base64_value(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

int amp_base64_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    const size_t before = out->len;
    uint32_t bits = 0;
    unsigned have = 0;
    size_t n = text.n;

    while (n > 0 && text.n - n < 2 && text.p[n - 1] == '=')
        n--;
    bool whole = text.n % 4 == 0 && n % 4 != 1;
    for (size_t i = 0; whole && i < n; i++) {
        int v = base64_value(text.p[i]);
        whole = v >= 0;
        bits = bits << 6 | (uint32_t)(v & 63);
        have += 6;
        if (!whole || have < 8)
            continue;
        have -= 8;
        const char byte = (char)(bits >> have);
        if (amp_buf_add(out, &byte, 1, err) < 0)
            return -1;
    }
    /* The bits that are left must be 0: each value has one text. */
    if (whole && (bits & ((1u << have) - 1)) == 0)
        return 0;
    out->len = before;
    return amp_fail(err, AMP_DATAERR, bad_value, "not base64");
}
