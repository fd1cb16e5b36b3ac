/*
 * Untrusted text for a terminal. Control characters, direction overrides, invisible and tag
 * characters, and bytes that are not UTF-8 become visible escapes.
 */
#include "cli/cli.h"

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}

#define IN(c, table) in_ranges((c), (table), sizeof(table) / sizeof((table)[0]))

static const struct range hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0x061c, 0x061c},    {0x180e, 0x180e}, {0x200b, 0x200b},
    {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},    {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
    {0xfdd0, 0xfdef}, {0xe000, 0xf8ff}, {0xe0000, 0x10ffff},
};
static const struct range combining[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x064b, 0x065f}, {0x1ab0, 0x1aff},
    {0x1dc0, 0x1dff}, {0x200c, 0x200d}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},   {0xac00, 0xd7a3},
    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},
    {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

/* The length of the well-formed UTF-8 character at p; 0 if there is none. */
static size_t char_decode(const unsigned char *p, size_t n, uint32_t *c)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80 ? 1 : p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    if (len == 0 || len > n || p[0] > 0xf4)
        return 0;
    uint32_t v = len == 1 ? p[0] : p[0] & (0x7fU >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        v = v << 6 | (p[i] & 0x3f);
    }
    if (v < least[len] || v > 0x10ffff || (v >= 0xd800 && v <= 0xdfff))
        return 0;
    *c = v;
    return len;
}

/* The printable text of one character and its columns; returns the length of the character. */
static size_t char_format(const unsigned char *p, size_t n, char out[AMP_TEXT_PIECE], int *columns)
{
    uint32_t c;
    size_t len = char_decode(p, n, &c);
    if (len == 0) {
        *columns = snprintf(out, 16, "\\x%02x", p[0]);
        return 1;
    }
    if (c == '\n' || c == '\t' || c == '\r') {
        *columns = snprintf(out, 16, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        return len;
    }
    if (IN(c, hidden)) {
        *columns = snprintf(out, 16, c < 0x100 ? "\\x%02x" : "\\u{%x}", (unsigned)c);
        return len;
    }
    for (size_t i = 0; i < len; i++)
        out[i] = (char)p[i];
    out[len] = '\0';
    *columns = IN(c, combining) ? 0 : IN(c, wide) ? 2 : 1;
    return len;
}

size_t amp_text_piece(struct amp_span text, char out[AMP_TEXT_PIECE], int *columns)
{
    return char_format((const unsigned char *)text.p, text.n, out, columns);
}

/* The number of leading characters of one byte and one column. */
static size_t plain_length(const unsigned char *p, size_t n)
{
    size_t i = 0;
    while (i < n && p[i] >= 0x20 && p[i] < 0x7f)
        i++;
    return i;
}

int amp_text_safe(struct amp_span text, int width, struct amp_buf *out, struct amp_error *err)
{
    const unsigned char *p = (const unsigned char *)text.p;
    size_t start = out->len;
    size_t cut = start; /* the end of the text if "…" must fit, too */
    int column = 0, marks = 0;
    for (size_t i = 0; i < text.n;) {
        char piece[16];
        int columns;
        size_t run = width > 0 ? 0 : plain_length(p + i, text.n - i);
        if (run > 0) { /* without a width, columns are not counted */
            if (amp_buf_add(out, p + i, run, err) < 0) {
                out->len = start;
                return -1;
            }
            marks = 0;
            i += run;
            continue;
        }
        i += char_format(p + i, text.n - i, piece, &columns);
        /* Many combining characters would overlap other lines. */
        marks = columns ? 0 : marks + 1;
        if (marks > 4)
            continue;
        if (width > 0 && column + columns > width) {
            out->len = cut;
            return amp_buf_str(out, "\xe2\x80\xa6", err);
        }
        if (amp_buf_str(out, piece, err) < 0) {
            out->len = start;
            return -1;
        }
        column += columns;
        if (column <= width - 1)
            cut = out->len;
    }
    return 0;
}
