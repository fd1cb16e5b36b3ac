/* Scans strings with escapes or characters outside ASCII. */
#include "json/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "json/bytes.h"
#include "json/text.h"

int amp_scan_fail(struct amp_scan *s, const char *code, const unsigned char *at, const char *what)
{
    s->fault->code = code;
    s->fault->offset = (uint32_t)(at - s->base);
    snprintf(s->fault->what, sizeof s->fault->what, "%s", what);
    return -1;
}

int amp_scan_scratch(struct amp_scan *s, size_t bytes)
{
    struct amp_tape_memory *m = s->t->memory;
    if (bytes <= m->scratch_cap)
        return 0;
    void *p = bytes <= UINT32_MAX ? realloc(m->scratch, bytes) : NULL;
    if (!p)
        return amp_scan_fail(s, AMP_CODE(no_memory), s->p, "no memory to compare the keys");
    m->scratch = p;
    m->scratch_cap = (uint32_t)bytes;
    return 0;
}

/* s->p is at a backslash inside a string. 0 or AMP_TOK_NUL, -1 for a wrong escape. */
static int scan_escape(struct amp_scan *s)
{
    const unsigned char *at = s->p;
    if (s->end - at < 2)
        return amp_scan_fail(s, AMP_CODE(invalid_json), at, "string not closed");
    if (at[1] < 128 && amp_json_escapes[at[1]]) {
        s->p += 2;
        return 0;
    }
    if (at[1] != 'u')
        return amp_scan_fail(s, AMP_CODE(invalid_json), at, "unknown escape in a string");
    int32_t unit = s->end - at >= 6 ? amp_json_hex4(at + 2) : -1;
    if (unit < 0)
        return amp_scan_fail(s, AMP_CODE(invalid_json), at, "\\u wants four hexadecimal digits");
    s->p += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return unit ? 0 : AMP_TOK_NUL;
    int32_t low = -1;
    if (unit <= 0xdbff && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u')
        low = amp_json_hex4(s->p + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return amp_scan_fail(s, AMP_CODE(invalid_utf8), at,
                             "half of a surrogate pair in a \\u escape");
    s->p += 6;
    return 0;
}

int amp_scan_fail_utf8(struct amp_scan *s, const unsigned char *at)
{
    char what[80];
    snprintf(what, sizeof what, "byte 0x%02X does not begin a UTF-8 character here", *at);
    return amp_scan_fail(s, AMP_CODE(invalid_utf8), at, what);
}

/* s->p is at a byte of 0x80 or above; moves past all such characters. */
static int scan_utf8(struct amp_scan *s)
{
    const unsigned char *p = s->p, *end = s->end;
    while (p < end && *p >= 0x80) {
        size_t n = amp_utf8_length(p, (size_t)(end - p));
        if (!n)
            return amp_scan_fail_utf8(s, p);
        p += n;
    }
    s->p = p;
    return 0;
}

/* Moves past a common escape or a two-byte character of UTF-8. Returns its flag; 0: it is another.
 */
static inline unsigned pass_usual(struct amp_scan *s)
{
    const unsigned char *p = s->p;
    if (s->end - p < 2)
        return 0;
    if (*p == '\\' && (p[1] == 'n' || p[1] == '"' || p[1] == '\\' || p[1] == 't')) {
        s->p += 2;
        return AMP_TOK_ESCAPED;
    }
    if (*p >= 0xc2 && *p < 0xe0 && (p[1] & 0xc0) == 0x80) {
        s->p += 2;
        return AMP_TOK_NONASCII;
    }
    return 0;
}

/* s->p is at a byte that is not plain and not a quote: moves past its character or escape. */
static int scan_special(struct amp_scan *s)
{
    unsigned char c = *s->p;
    if (c == '\\') {
        int nul = scan_escape(s);
        return nul < 0 ? -1 : AMP_TOK_ESCAPED | nul;
    }
    if (c < 0x20)
        return amp_scan_fail(s, AMP_CODE(invalid_json), s->p,
                             c ? "control character in a string" : "NUL byte in a string");
    return scan_utf8(s) ? -1 : AMP_TOK_NONASCII;
}

__attribute__((noinline)) int amp_scan_rest_of_string(struct amp_scan *s,
                                                      const unsigned char *first)
{
    int flags = 0;
    for (;;) {
        s->p = amp_skip_plain(s->p, s->end);
        if (s->p == s->end)
            return amp_scan_fail(s, AMP_CODE(invalid_json), first - 1, "string not closed");
        if (*s->p == '"')
            return flags;
        unsigned usual = pass_usual(s);
        flags |= (int)usual;
        if (usual)
            continue;
        bool escape = *s->p == '\\';
        int more = scan_special(s);
        /* A string without a closing quote is reported as such, also if its last escape is wrong.
         */
        if (more < 0 && escape && !memchr(s->p, '"', (size_t)(s->end - s->p)))
            return amp_scan_fail(s, AMP_CODE(invalid_json), first - 1, "string not closed");
        if (more < 0)
            return -1;
        flags |= more;
    }
}

int amp_scan_escaped_hash(struct amp_scan *s, const unsigned char *raw, size_t len, uint64_t *hash)
{
    if (amp_scan_scratch(s, len) < 0)
        return -1;
    size_t n = amp_json_decode((const char *)raw, len, s->t->memory->scratch);
    *hash = amp_json_hash64(s->key, s->t->memory->scratch, n);
    return 0;
}
