/* Host names (RFC 1123), IP addresses (RFC 2673, RFC 4291), mail addresses (RFC 5321). */
#include <string.h>

#include "schema/format.h"

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

static bool label(const char *p, size_t n)
{
    if (n < 1 || n > 63 || p[0] == '-' || p[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!amp_is_alpha(p[i]) && !amp_is_digit(p[i]) && p[i] != '-')
            return false;
    if (n > 4 && (p[0] | 0x20) == 'x' && (p[1] | 0x20) == 'n' && p[2] == '-' && p[3] == '-')
        return amp_idna_label(p + 4, n - 4);
    return true;
}

bool amp_format_hostname(const char *p, size_t n)
{
    const char *end = p + n;
    if (n < 1 || n > 253)
        return false;
    for (;;) {
        const char *dot = memchr(p, '.', (size_t)(end - p));
        if (!label(p, (size_t)((dot ? dot : end) - p)))
            return false;
        if (!dot)
            return true;
        p = dot + 1;
    }
}

static bool atom_char(char c)
{
    return amp_is_alpha(c) || amp_is_digit(c) || amp_is_one_of(c, "!#$%&'*+-/=?^_`{|}~");
}

/* The part before the @, which *p is left at. */
static bool local_part(const char **p, const char *end)
{
    const char *q = *p;
    if (q < end && *q == '"') {
        for (q++; q < end && *q != '"'; q++) {
            if (*q == '\\')
                q++;
            if (q == end || *q < 0x20 || *q == 0x7f)
                return false;
        }
        if (q == end)
            return false;
        *p = q + 1;
        return true;
    }
    for (;;) {
        const char *from = q;
        while (q < end && atom_char(*q))
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

bool amp_format_email(const char *p, size_t n)
{
    const char *first = p, *end = p + n;
    if (n > 254 || !local_part(&p, end) || p - first > 64 || p == end || *p++ != '@')
        return false;
    size_t left = (size_t)(end - p);
    if (left > 2 && p[0] == '[' && end[-1] == ']') {
        p++;
        left -= 2;
        if (left > 5 && !strncasecmp(p, "IPv6:", 5))
            return amp_format_ipv6(p + 5, left - 5);
        return amp_format_ipv4(p, left);
    }
    return amp_format_hostname(p, left);
}
