/* Host names (RFC 1123), IP addresses (RFC 2673, RFC 4291), mail addresses (RFC 5321). */
#include <string.h>

#include "schema/format/format.h"

bool amp_format_ipv4(const char *p, size_t n)
{
    const char *end = p + n;
    for (int part = 0; part < 4; part++) {
        unsigned v = 0;
        const char *from = p;
        if (part && (p == end || *p++ != '.'))
            return false;
        from = p;
        while (p < end && amp_is_digit(*p) && p - from < 3)
            v = v * 10 + (unsigned)(*p++ - '0');
        if (p == from || v > 255 || (*from == '0' && p - from > 1))
            return false;
    }
    return p == end;
}

bool amp_format_ipv6(const char *p, size_t n)
{
    const char *end = p + n;
    int groups = 0;
    bool gap = false;
    if (n >= 2 && p[0] == ':' && p[1] == ':') {
        gap = true;
        p += 2;
    }
    while (p < end) {
        const char *from = p;
        while (p < end && amp_is_hex(*p) && p - from < 5)
            p++;
        if (p < end && *p == '.') { /* the last 32 bits as an IPv4 address */
            if (!amp_format_ipv4(from, (size_t)(end - from)))
                return false;
            groups += 2;
            p = end;
            break;
        }
        if (p == from || p - from > 4)
            return false;
        groups++;
        if (p == end)
            break;
        if (*p++ != ':' || p == end)
            return false;
        if (*p == ':') {
            if (gap)
                return false;
            gap = true;
            p++;
        }
    }
    return gap ? groups <= 7 : groups == 8;
}

/* The length of a full stop between labels, or 0. Internationalized names may also have those of
 * East Asia (RFC 3490 section 3.1). */
static size_t stop_length(const char *p, size_t n, bool beyond)
{
    if (n && *p == '.')
        return 1;
    bool wide = beyond && n >= 3 &&
                (!memcmp(p, "\xe3\x80\x82", 3) || !memcmp(p, "\xef\xbc\x8e", 3) ||
                 !memcmp(p, "\xef\xbd\xa1", 3));
    return wide ? 3 : 0;
}

static bool is_host(const char *p, size_t n, bool beyond)
{
    const char *end = p + n;
    size_t length = 0;
    bool rtl = false, bidi = true;
    for (;;) {
        const char *from = p;
        struct amp_idna label;
        bool ascii = true, plain = true;
        size_t stop = 0;
        for (; p < end && !(stop = stop_length(p, (size_t)(end - p), beyond)); p++) {
            ascii &= (unsigned char)*p < 128;
            plain &= amp_is_alpha(*p);
        }
        if ((!ascii && !beyond) || !amp_idna_read(from, (size_t)(p - from), &label))
            return false;
        length += label.length + 1;
        if (length - 1 > 253)
            return false;
        rtl |= amp_idna_is_rtl(&label);
        bidi = bidi && (plain || !beyond || amp_idna_bidi(&label));
        if (p == end)
            return !rtl || bidi;
        p += stop;
    }
}

bool amp_format_hostname(const char *p, size_t n)
{
    return is_host(p, n, false);
}

bool amp_format_idn_hostname(const char *p, size_t n)
{
    return is_host(p, n, true);
}

static bool is_atom_char(char c)
{
    return amp_is_alpha(c) || amp_is_digit(c) || amp_is_one_of(c, "!#$%&'*+-/=?^_`{|}~");
}

/* The part before the @; *p moves to the @. */
static bool read_local_part(const char **p, const char *end, bool beyond)
{
    const char *q = *p;
    if (q < end && *q == '"') {
        for (q++; q < end && *q != '"'; q++) {
            if (*q == '\\')
                q++;
            if (q == end || (unsigned char)*q < 0x20 || *q == 0x7f ||
                (!beyond && (unsigned char)*q >= 0x80))
                return false;
        }
        if (q == end)
            return false;
        *p = q + 1;
        return true;
    }
    for (;;) {
        const char *from = q;
        while (q < end && (is_atom_char(*q) || (beyond && (unsigned char)*q >= 0x80)))
            q++;
        if (q == from)
            return false;
        if (q == end || *q != '.')
            break;
        q++;
    }
    *p = q;
    return true;
}

static bool is_mail(const char *p, size_t n, bool beyond)
{
    const char *first = p, *end = p + n;
    if (n > 254 || !read_local_part(&p, end, beyond) || p - first > 64 || p == end || *p++ != '@')
        return false;
    size_t left = (size_t)(end - p);
    if (left > 2 && p[0] == '[' && end[-1] == ']') {
        p++;
        left -= 2;
        if (left > 5 && !strncasecmp(p, "IPv6:", 5))
            return amp_format_ipv6(p + 5, left - 5);
        return amp_format_ipv4(p, left);
    }
    return is_host(p, left, beyond);
}

bool amp_format_email(const char *p, size_t n)
{
    return is_mail(p, n, false);
}

bool amp_format_idn_email(const char *p, size_t n)
{
    return is_mail(p, n, true);
}
