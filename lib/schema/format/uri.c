/* URI references, and the grammars of URIs (RFC 3986), IRIs (RFC 3987) and URI templates (RFC
 * 6570). */
#include "schema/format/uri.h"

#include <string.h>

#include "schema/format/format.h"

static bool is_scheme_char(char c)
{
    return amp_is_alpha(c) || amp_is_digit(c) || c == '+' || c == '-' || c == '.';
}

static struct amp_span span_to(const char *p, const char *end)
{
    return (struct amp_span){p, (size_t)(end - p)};
}

static const char *find_any(const char *p, const char *end, const char *set)
{
    while (p < end && !(*p && strchr(set, *p)))
        p++;
    return p;
}

struct amp_uri amp_uri_split(struct amp_span text)
{
    struct amp_uri u = {0};
    if (!text.n) {
        u.path = (struct amp_span){"", 0};
        return u;
    }
    const char *p = text.p, *end = text.p + text.n, *q = p;
    while (q < end && is_scheme_char(*q))
        q++;
    if (q < end && *q == ':' && q > p && amp_is_alpha(*p)) {
        u.scheme = span_to(p, q);
        p = q + 1;
    }
    if (end - p >= 2 && p[0] == '/' && p[1] == '/') {
        q = find_any(p + 2, end, "/?#");
        u.authority = span_to(p + 2, q);
        u.has_authority = true;
        p = q;
    }
    q = find_any(p, end, "?#");
    u.path = span_to(p, q);
    p = q;
    if (p < end && *p == '?') {
        q = find_any(p + 1, end, "#");
        u.query = span_to(p + 1, q);
        u.has_query = true;
        p = q;
    }
    if (p < end) {
        u.fragment = span_to(p + 1, end);
        u.has_fragment = true;
    }
    return u;
}

/* Removes dot segments (section 5.2.4) from the buffer's text after `start`. */
static void remove_dots(struct amp_buf *b, size_t start)
{
    char *base = b->data + start, *out = base;
    const char *in = base, *end = b->data + b->len;
    bool relative = in < end && *in != '/';
    while (in < end) {
        const char *seg = in;
        if (*in == '/')
            in++;
        while (in < end && *in != '/')
            in++;
        size_t n = (size_t)(in - seg);
        const char *name = seg + (*seg == '/');
        size_t len = n - (*seg == '/');
        bool one = len == 1 && name[0] == '.', two = len == 2 && name[0] == '.' && name[1] == '.';
        if (!one && !two) {
            memmove(out, seg, n);
            out += n;
            continue;
        }
        if (two) {
            while (out > base && *--out != '/')
                continue;
            if (relative && out == base) {
                in += in < end;
                continue;
            }
        }
        if (in == end && *seg == '/') /* "/." and "/.." at the end keep the slash */
            *out++ = '/';
        else if (*seg != '/' && in < end)
            in++; /* "./x" and "../x" at the front lose the slash */
    }
    b->len = (size_t)(out - b->data);
}

int amp_uri_resolve(struct amp_span base_text, struct amp_span ref_text, struct amp_buf *out,
                    struct amp_error *err)
{
    struct amp_uri base = amp_uri_split(base_text), ref = amp_uri_split(ref_text), *from = &ref;
    bool complete = ref.scheme.n || ref.has_authority;
    struct amp_span scheme = ref.scheme.n ? ref.scheme : base.scheme;
    const struct amp_uri *authority = complete ? &ref : &base;

    if (scheme.n &&
        (amp_buf_add(out, scheme.p, scheme.n, err) < 0 || amp_buf_str(out, ":", err) < 0))
        return -1;
    if (authority->has_authority &&
        (amp_buf_str(out, "//", err) < 0 ||
         amp_buf_add(out, authority->authority.p, authority->authority.n, err) < 0))
        return -1;
    size_t start = out->len;
    if (!complete && !ref.path.n) {
        if (amp_buf_add(out, base.path.p, base.path.n, err) < 0)
            return -1;
        if (!ref.has_query)
            from = &base;
    } else {
        if (!complete && ref.path.p[0] != '/') {
            size_t n = base.path.n;
            while (n > 0 && base.path.p[n - 1] != '/')
                n--;
            if (base.has_authority && !base.path.n) {
                if (amp_buf_str(out, "/", err) < 0)
                    return -1;
            } else if (amp_buf_add(out, base.path.p, n, err) < 0) {
                return -1;
            }
        }
        if (amp_buf_add(out, ref.path.p, ref.path.n, err) < 0)
            return -1;
        if (out->data && (out->len > start))
            remove_dots(out, start);
    }
    if (from->has_query &&
        (amp_buf_str(out, "?", err) < 0 || amp_buf_add(out, from->query.p, from->query.n, err) < 0))
        return -1;
    return 0;
}

int amp_uri_decode(struct amp_span text, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (amp_is_percent(text.p + i, text.n - i)) {
            c = (char)(amp_hex_value(text.p[i + 1]) << 4 | amp_hex_value(text.p[i + 2]));
            i += 2;
        }
        if (amp_buf_add(out, &c, 1, err) < 0)
            return -1;
    }
    return 0;
}

int amp_uri_encode(struct amp_span text, const char *keep, struct amp_buf *out,
                   struct amp_error *err)
{
    int bad = 0;
    for (size_t i = 0; i < text.n && !bad; i++) {
        char c = text.p[i];
        bool plain = amp_is_alpha(c) || amp_is_digit(c) || amp_is_one_of(c, keep);
        bad = plain ? amp_buf_add(out, &c, 1, err)
                    : amp_buf_fmt(out, err, "%%%02X", (unsigned char)c);
    }
    return bad;
}

/* ---- the formats ---- */

static bool is_ucschar(uint32_t c)
{
    if (c < 0x10000)
        return (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xfdcf) ||
               (c >= 0xfdf0 && c <= 0xffef);
    return (c & 0xffff) <= 0xfffd && c >= 0x10000 && c <= 0xefffd && !(c >= 0xe0000 && c < 0xe1000);
}

static bool is_private(uint32_t c)
{
    return (c >= 0xe000 && c <= 0xf8ff) || (c >= 0xf0000 && c <= 0xffffd) ||
           (c >= 0x100000 && c <= 0x10fffd);
}

static bool take_percent(const char **p, const char *end)
{
    bool got = amp_is_percent(*p, (size_t)(end - *p));
    *p += got ? 3 : 0;
    return got;
}

/* Tells whether s has only unreserved characters, sub-delims, escapes, characters of `also`, and in
 * an IRI characters beyond ASCII. */
static bool has_only(struct amp_span s, const char *also, bool iri, bool query)
{
    const char *p = s.p, *end = p + s.n;
    while (p < end) {
        uint32_t point;
        if ((unsigned char)*p >= 0x80) {
            size_t n = amp_utf8_get(p, (size_t)(end - p), &point);
            if (!iri || !n || !(is_ucschar(point) || (query && is_private(point))))
                return false;
            p += n;
        } else if (amp_is_alpha(*p) || amp_is_digit(*p) || amp_is_one_of(*p, "-._~!$&'()*+,;=") ||
                   amp_is_one_of(*p, also)) {
            p++;
        } else if (!take_percent(&p, end)) {
            return false;
        }
    }
    return true;
}

static bool is_future_address(struct amp_span s) /* v1.anything */
{
    size_t i = 1;
    if (s.n < 4 || (s.p[0] | 0x20) != 'v')
        return false;
    while (i < s.n && amp_is_hex(s.p[i]))
        i++;
    return i > 1 && i + 1 < s.n && s.p[i] == '.' &&
           has_only((struct amp_span){s.p + i + 1, s.n - i - 1}, ":", false, false) &&
           !memchr(s.p, '%', s.n);
}

static bool is_authority(struct amp_span a, bool iri)
{
    const char *at = a.n ? memchr(a.p, '@', a.n) : NULL;
    if (at) {
        if (!has_only((struct amp_span){a.p, (size_t)(at - a.p)}, ":", iri, false))
            return false;
        a.n -= (size_t)(at + 1 - a.p);
        a.p = at + 1;
    }
    size_t host = a.n;
    while (host > 0 && amp_is_digit(a.p[host - 1]))
        host--;
    host = host > 0 && a.p[host - 1] == ':' ? host - 1 : a.n; /* without the port */
    if (host >= 2 && a.p[0] == '[' && a.p[host - 1] == ']') {
        struct amp_span in = {a.p + 1, host - 2};
        return amp_format_ipv6(in.p, in.n) || is_future_address(in);
    }
    return has_only((struct amp_span){a.p, host}, "", iri, false);
}

static bool is_reference(const char *p, size_t n, bool iri, bool absolute)
{
    struct amp_uri u = amp_uri_split((struct amp_span){p, n});
    if (absolute && !u.scheme.n)
        return false;
    if (u.has_authority && !is_authority(u.authority, iri))
        return false;
    if (!u.scheme.n && !u.has_authority && u.path.n) {
        /* With a colon, the first segment would be a scheme. */
        const char *slash = memchr(u.path.p, '/', u.path.n);
        size_t first = slash ? (size_t)(slash - u.path.p) : u.path.n;
        if (memchr(u.path.p, ':', first))
            return false;
    }
    return has_only(u.path, ":@/", iri, false) &&
           (!u.has_query || has_only(u.query, ":@/?", iri, true)) &&
           (!u.has_fragment || has_only(u.fragment, ":@/?", iri, false));
}

bool amp_format_uri(const char *p, size_t n)
{
    return is_reference(p, n, false, true);
}

bool amp_format_uri_reference(const char *p, size_t n)
{
    return is_reference(p, n, false, false);
}

bool amp_format_iri(const char *p, size_t n)
{
    return is_reference(p, n, true, true);
}

bool amp_format_iri_reference(const char *p, size_t n)
{
    return is_reference(p, n, true, false);
}

static bool take_name_char(const char **p, const char *end)
{
    if (*p < end && (amp_is_alpha(**p) || amp_is_digit(**p) || **p == '_')) {
        ++*p;
        return true;
    }
    return take_percent(p, end);
}

/* Characters and escapes, with single dots between them. */
static bool take_name(const char **p, const char *end)
{
    for (;;) {
        if (!take_name_char(p, end))
            return false;
        while (take_name_char(p, end))
            continue;
        if (*p == end || **p != '.')
            return true;
        ++*p;
    }
}

/* After the opening brace. Reserved operators are refused. */
static bool take_expression(const char **p, const char *end)
{
    if (*p < end && amp_is_one_of(**p, "+#./;?&"))
        ++*p;
    for (;;) {
        if (!take_name(p, end) || *p == end)
            return false;
        if (**p == '*') {
            ++*p;
        } else if (**p == ':') {
            const char *from = ++*p;
            while (*p < end && amp_is_digit(**p))
                ++*p;
            if (*p == from || *p - from > 4 || *from == '0')
                return false;
        }
        if (*p == end)
            return false;
        char c = *(*p)++;
        if (c == '}')
            return true;
        if (c != ',')
            return false;
    }
}

bool amp_format_uri_template(const char *p, size_t n)
{
    const char *end = p + n;
    while (p < end) {
        unsigned char c = (unsigned char)*p;
        if (c == '{') {
            p++;
            if (!take_expression(&p, end))
                return false;
        } else if (c == '%') {
            if (!take_percent(&p, end))
                return false;
        } else if (c >= 0x80) {
            uint32_t point;
            size_t length = amp_utf8_get(p, (size_t)(end - p), &point);
            if (!length || (!is_ucschar(point) && !is_private(point)))
                return false;
            p += length;
        } else {
            if (c <= 0x20 || c == 0x7f || amp_is_one_of((char)c, "\"<>\\^`|}"))
                return false;
            p++;
        }
    }
    return true;
}
