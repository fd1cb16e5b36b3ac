/* The formats that can be asserted, each over decoded text (valid UTF-8, NUL possible). */
#ifndef SCHEMA_FORMAT_H
#define SCHEMA_FORMAT_H

#include <amp/base/buf.h>

typedef bool (*amp_format_fn)(const char *p, size_t n);

struct amp_format {
    const char *name;
    amp_format_fn check;
    const char *wanted; /* for people */
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

/* idna.c: one label of a host name, in ASCII, after "xn--" or in UTF-8. */
enum { AMP_IDNA_POINTS = 64 };
struct amp_idna {
    uint32_t c[AMP_IDNA_POINTS + 1];
    size_t n;
    size_t length; /* of its ASCII form */
};
/* False when it is none, or names something that IDNA 2008 does not allow. */
bool amp_idna_read(const char *p, size_t n, struct amp_idna *out);
/* Whether it holds what is written from right to left; whether it keeps the Bidi rule (RFC 5893),
 * which every label must once one of the name does. */
bool amp_idna_is_rtl(const struct amp_idna *l);
bool amp_idna_bidi(const struct amp_idna *l);

/* uri.c */
bool amp_format_uri(const char *p, size_t n);
bool amp_format_uri_reference(const char *p, size_t n);
bool amp_format_iri(const char *p, size_t n);
bool amp_format_iri_reference(const char *p, size_t n);
bool amp_format_uri_template(const char *p, size_t n);

/* text.c */

/* ecma.c: the syntax of ECMA-262 expressions, leniently where its Annex B is. */
bool amp_format_regex(const char *p, size_t n);

/* Character classes by name, no locale. */
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
/* One of the set; a NUL is in none. */
static inline bool amp_is_one_of(char c, const char *set)
{
    for (; *set; set++)
        if (*set == c)
            return true;
    return false;
}

#endif
