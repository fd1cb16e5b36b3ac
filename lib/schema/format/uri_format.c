/* URIs (RFC 3986), IRIs (RFC 3987) and URI templates (RFC 6570), by their grammars. */
#include <string.h>

#include "schema/format/format.h"
#include "schema/format/uri.h"
#include "json/text.h"

static uint32_t code_point(const unsigned char *p, size_t n)
{
    switch (n) {
    case 2:
        return (uint32_t)(p[0] & 0x1f) << 6 | (p[1] & 0x3f);
    case 3:
        return (uint32_t)(p[0] & 0xf) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (p[2] & 0x3f);
    default:
        return (uint32_t)(p[0] & 7) << 18 | (uint32_t)(p[1] & 0x3f) << 12 |
               (uint32_t)(p[2] & 0x3f) << 6 | (p[3] & 0x3f);
    }
}

static bool ucschar(uint32_t c)
{
    if (c < 0x10000)
        return (c >= 0xa0 && c <= 0xd7ff) || (c >= 0xf900 && c <= 0xfdcf) ||
               (c >= 0xfdf0 && c <= 0xffef);
    return (c & 0xffff) <= 0xfffd && c >= 0x10000 && c <= 0xefffd && !(c >= 0xe0000 && c < 0xe1000);
}

static bool iprivate(uint32_t c)
{
    return (c >= 0xe000 && c <= 0xf8ff) || (c >= 0xf0000 && c <= 0xffffd) ||
           (c >= 0x100000 && c <= 0x10fffd);
}

/* Unreserved and sub-delims, escapes, the characters of `also`, and beyond ASCII in an IRI. */
static bool only(struct amp_span s, const char *also, bool iri, bool query)
{
    const unsigned char *p = (const unsigned char *)s.p, *end = p + s.n;
    while (p < end) {
        char c = (char)*p;
        if (*p >= 0x80) {
            size_t n = amp_utf8_length(p, (size_t)(end - p));
            uint32_t point = n ? code_point(p, n) : 0;
            if (!iri || !n || !(ucschar(point) || (query && iprivate(point))))
                return false;
            p += n;
        } else if (c == '%') {
            if (end - p < 3 || !amp_is_hex((char)p[1]) || !amp_is_hex((char)p[2]))
                return false;
            p += 3;
        } else {
            if (!amp_is_alpha(c) && !amp_is_digit(c) && !amp_is_one_of(c, "-._~!$&'()*+,;=") &&
                !amp_is_one_of(c, also))
                return false;
            p++;
        }
    }
    return true;
}

static bool future_address(struct amp_span s) /* v1.anything */
{
    size_t i = 1;
    if (s.n < 4 || (s.p[0] | 0x20) != 'v')
        return false;
    while (i < s.n && amp_is_hex(s.p[i]))
        i++;
    return i > 1 && i + 1 < s.n && s.p[i] == '.' &&
           only((struct amp_span){s.p + i + 1, s.n - i - 1}, ":", false, false) &&
           !memchr(s.p, '%', s.n);
}

static bool authority(struct amp_span a, bool iri)
{
    const char *at = a.n ? memchr(a.p, '@', a.n) : NULL;
    if (at) {
        if (!only((struct amp_span){a.p, (size_t)(at - a.p)}, ":", iri, false))
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
        return amp_format_ipv6(in.p, in.n) || future_address(in);
    }
    return only((struct amp_span){a.p, host}, "", iri, false);
}

static bool reference(const char *p, size_t n, bool iri, bool absolute)
{
    struct amp_uri u = amp_uri_split((struct amp_span){p, n});
    if (absolute && !u.scheme.n)
        return false;
    if (u.has_authority && !authority(u.authority, iri))
        return false;
    if (!u.scheme.n && !u.has_authority && u.path.n) {
        /* A colon in the first segment would make it a scheme. */
        const char *slash = memchr(u.path.p, '/', u.path.n);
        size_t first = slash ? (size_t)(slash - u.path.p) : u.path.n;
        if (memchr(u.path.p, ':', first))
            return false;
    }
    return only(u.path, ":@/", iri, false) && (!u.has_query || only(u.query, ":@/?", iri, true)) &&
           (!u.has_fragment || only(u.fragment, ":@/?", iri, false));
}

bool amp_format_uri(const char *p, size_t n)
{
    return reference(p, n, false, true);
}

bool amp_format_uri_reference(const char *p, size_t n)
{
    return reference(p, n, false, false);
}

bool amp_format_iri(const char *p, size_t n)
{
    return reference(p, n, true, true);
}

bool amp_format_iri_reference(const char *p, size_t n)
{
    return reference(p, n, true, false);
}

static bool escape(const char **p, const char *end)
{
    if (end - *p < 3 || **p != '%' || !amp_is_hex((*p)[1]) || !amp_is_hex((*p)[2]))
        return false;
    *p += 3;
    return true;
}

static bool name_char(const char **p, const char *end)
{
    if (*p < end && (amp_is_alpha(**p) || amp_is_digit(**p) || **p == '_')) {
        ++*p;
        return true;
    }
    return escape(p, end);
}

/* Characters and escapes, single dots between them. */
static bool name(const char **p, const char *end)
{
    for (;;) {
        if (!name_char(p, end))
            return false;
        while (name_char(p, end))
            continue;
        if (*p == end || **p != '.')
            return true;
        ++*p;
    }
}

/* Behind the opening brace; the operators that are reserved are refused. */
static bool expression(const char **p, const char *end)
{
    if (*p < end && amp_is_one_of(**p, "+#./;?&"))
        ++*p;
    for (;;) {
        if (!name(p, end) || *p == end)
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
            if (!expression(&p, end))
                return false;
        } else if (c == '%') {
            if (!escape(&p, end))
                return false;
        } else if (c >= 0x80) {
            size_t len = amp_utf8_length((const unsigned char *)p, (size_t)(end - p));
            uint32_t point = len ? code_point((const unsigned char *)p, len) : 0;
            if (!ucschar(point) && !iprivate(point))
                return false;
            p += len;
        } else {
            if (c <= 0x20 || c == 0x7f || amp_is_one_of((char)c, "\"<>\\^`|}"))
                return false;
            p++;
        }
    }
    return true;
}
