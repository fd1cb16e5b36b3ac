/* The formats that can be asserted. Each function gets decoded text: valid UTF-8, perhaps with NUL.
 */
#ifndef AMP_SCHEMA_FORMAT_FORMAT_H
#define AMP_SCHEMA_FORMAT_FORMAT_H

#include <amp/base/buf.h>

#include "json/text.h"

typedef bool (*amp_format_fn)(const char *p, size_t n);

struct amp_format {
    const char *name;
    amp_format_fn check;
    const char *wanted; /* description for people */
};

const struct amp_format *amp_format_find(struct amp_span name);

/* time.c */
bool amp_format_date_time(const char *p, size_t n);
bool amp_format_date(const char *p, size_t n);
bool amp_format_time(const char *p, size_t n);
bool amp_format_duration(const char *p, size_t n);

/* host.c */
bool amp_format_hostname(const char *p, size_t n);
bool amp_format_email(const char *p, size_t n);
bool amp_format_idn_hostname(const char *p, size_t n);
bool amp_format_idn_email(const char *p, size_t n);
bool amp_format_ipv4(const char *p, size_t n);
bool amp_format_ipv6(const char *p, size_t n);

/* idna.c: one label of a host name, in ASCII, as Punycode after "xn--", or in UTF-8. */
enum { AMP_IDNA_POINTS = 64 };
struct amp_idna {
    uint32_t c[AMP_IDNA_POINTS + 1];
    size_t n;
    size_t length; /* of its ASCII form */
};
/* False if the text is not a label, or has a code point that IDNA 2008 does not allow. */
bool amp_idna_read(const char *p, size_t n, struct amp_idna *out);
/* Whether the label has right-to-left characters; whether it follows the Bidi rule (RFC 5893). If
 * one label of a name has such characters, all its labels must follow the rule. */
bool amp_idna_is_rtl(const struct amp_idna *l);
bool amp_idna_bidi(const struct amp_idna *l);

/* uri.c */
bool amp_format_uri(const char *p, size_t n);
bool amp_format_uri_reference(const char *p, size_t n);
bool amp_format_iri(const char *p, size_t n);
bool amp_format_iri_reference(const char *p, size_t n);
bool amp_format_uri_template(const char *p, size_t n);

/* ecma.c: the syntax of ECMA-262 expressions, with the leniency of its Annex B. */
bool amp_format_regex(const char *p, size_t n);

/* Character classes, independent of the locale. */
static inline bool amp_is_digit(char c)
{
    return (unsigned)(c - '0') <= 9;
}
static inline bool amp_is_alpha(char c)
{
    return (unsigned)((c | 0x20) - 'a') < 26;
}
static inline bool amp_is_hex(char c)
{
    return amp_is_digit(c) || (unsigned)((c | 0x20) - 'a') < 6;
}
/* Whether the set has the character; false for NUL. */
static inline bool amp_is_one_of(char c, const char *set)
{
    for (; *set; set++)
        if (*set == c)
            return true;
    return false;
}
/* The value of a hexadecimal digit, or -1. */
static inline int amp_hex_value(char c)
{
    return amp_is_digit(c) ? c - '0' : amp_is_hex(c) ? (c | 0x20) - 'a' + 10 : -1;
}
/* Whether the text begins with "%" and two hexadecimal digits. */
static inline bool amp_is_percent(const char *p, size_t n)
{
    return n >= 3 && p[0] == '%' && amp_is_hex(p[1]) && amp_is_hex(p[2]);
}
/* Reads the code point at p; returns its length in bytes, 0 if the text is not UTF-8. */
static inline size_t amp_utf8_get(const char *p, size_t n, uint32_t *out)
{
    size_t length = amp_utf8_length((const unsigned char *)p, n);
    *out = (unsigned char)*p & (length > 1 ? 0x7fu >> length : 0x7fu);
    for (size_t i = 1; i < length; i++)
        *out = *out << 6 | ((unsigned char)p[i] & 0x3f);
    return length;
}

#endif
