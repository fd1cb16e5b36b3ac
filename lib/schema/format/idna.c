/*
 * Labels of internationalized host names: Punycode (RFC 3492) is decoded, then the code points are
 * checked against IDNA 2008 (RFC 5892). Its derived property is approximated by PCRE2's general
 * category, with the exceptions and the contextual rules of the RFC.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdatomic.h>
#include <string.h>

#include "schema/format/format.h"

enum { POINTS = AMP_IDNA_POINTS };

/* The bias of the next delta (RFC 3492 section 6.1). */
static uint32_t adapt_bias(uint32_t delta, size_t points, bool first)
{
    uint32_t steps = 0;
    delta = first ? delta / 700 : delta / 2;
    for (delta += delta / (uint32_t)points; delta > 455; steps += 36)
        delta /= 35;
    return steps + 36 * delta / (delta + 38);
}

/* The values below which a digit is the last one of a delta. */
static uint32_t digit_limit(uint32_t k, uint32_t bias)
{
    return k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
}

static bool decode_punycode(const char *p, size_t n, uint32_t *out, size_t *count)
{
    size_t dash = n, length = 0;
    while (dash > 0 && p[dash - 1] != '-')
        dash--;
    if (dash > 0) {
        for (size_t k = 0; k < dash - 1; k++)
            out[length++] = (unsigned char)(p[k] >= 'A' && p[k] <= 'Z' ? p[k] | 0x20 : p[k]);
    }
    uint32_t code = 128, bias = 72, i = 0;
    for (size_t at = dash; at < n;) {
        uint32_t old = i, weight = 1;
        for (uint32_t k = 36;; k += 36) {
            if (at == n)
                return false;
            char c = p[at++];
            uint32_t digit = amp_is_digit(c)   ? (uint32_t)(c - '0') + 26
                             : amp_is_alpha(c) ? (uint32_t)((c | 0x20) - 'a')
                                               : 99;
            if (digit > 35 || digit > (UINT32_MAX - i) / weight)
                return false;
            i += digit * weight;
            uint32_t limit = digit_limit(k, bias);
            if (digit < limit)
                break;
            if (weight > UINT32_MAX / (36 - limit))
                return false;
            weight *= 36 - limit;
        }
        length++;
        bias = adapt_bias(i - old, length, old == 0);
        if (i / (uint32_t)length > 0x10ffff - code || length > POINTS)
            return false;
        code += i / (uint32_t)length;
        i %= (uint32_t)length;
        if (code >= 0xd800 && code <= 0xdfff)
            return false;
        memmove(out + i + 1, out + i, (length - 1 - i) * sizeof *out);
        out[i++] = code;
    }
    *count = length;
    return length > 0 && dash < n;
}

enum class {
    MARK,
    LETTER,
    CURSIVE,
    GREEK,
    HEBREW,
    JAPANESE,
    LEFT_LETTER, /* by direction, RFC 5893 */
    RIGHT_LETTER,
    RIGHT,
    EUROPEAN,
    ARABIC,
    NONSPACING,
    CLASSES,
};

/* Compiled at first use. If two threads compile one class, one of the results stays. */
static pcre2_code *class_code(enum class class)
{
    static const char *const text[CLASSES] = {
        [MARK] = "\\p{M}",
        [LETTER] = "[\\p{Ll}\\p{Lo}\\p{Lm}\\p{Mn}\\p{Mc}\\p{Nd}]",
        [CURSIVE] = "[\\p{Arabic}\\p{Syriac}\\p{Mongolian}\\p{Nko}\\p{Mandaic}]",
        [GREEK] = "\\p{Greek}",
        [HEBREW] = "\\p{Hebrew}",
        [JAPANESE] = "[\\p{Hiragana}\\p{Katakana}\\p{Han}]",
        [LEFT_LETTER] = "\\p{bc:L}",
        [RIGHT_LETTER] = "[\\p{bc:R}\\p{bc:AL}]",
        [RIGHT] = "[\\p{bc:R}\\p{bc:AL}\\p{bc:AN}]",
        [EUROPEAN] = "\\p{bc:EN}",
        [ARABIC] = "\\p{bc:AN}",
        [NONSPACING] = "\\p{bc:NSM}",
    };
    static _Atomic(pcre2_code *) compiled[CLASSES];
    pcre2_code *re = atomic_load(&compiled[class]), *none = NULL;
    int code;
    PCRE2_SIZE at;
    if (re)
        return re;
    re = pcre2_compile((PCRE2_SPTR)text[class], PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_ANCHORED,
                       &code, &at, NULL);
    if (re && !atomic_compare_exchange_strong(&compiled[class], &none, re)) {
        pcre2_code_free(re);
        re = none;
    }
    return re;
}

static bool is_in_class(uint32_t c, enum class class)
{
    char text[4];
    pcre2_code *re = class_code(class);
    pcre2_match_data *data = re ? pcre2_match_data_create(1, NULL) : NULL;
    size_t n = amp_utf8_put(c, text);
    bool ok = data && pcre2_match(re, (PCRE2_SPTR)text, n, 0, PCRE2_NO_UTF_CHECK, data, NULL) >= 0;
    pcre2_match_data_free(data);
    return ok;
}

static bool is_listed(uint32_t c, const uint32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == c)
            return true;
    return false;
}

static bool is_allowed(uint32_t c)
{
    /* RFC 5892 section 2.6 */
    static const uint32_t good[] = {0xdf, 0x3c2, 0x6fd, 0x6fe, 0xf0b, 0x3007};
    static const uint32_t bad[] = {0x640,  0x7fa,  0x302e, 0x302f, 0x3031,
                                   0x3032, 0x3033, 0x3034, 0x3035, 0x303b};
    if (is_listed(c, good, sizeof good / sizeof *good))
        return true;
    if (is_listed(c, bad, sizeof bad / sizeof *bad))
        return false;
    if (c < 128)
        return amp_is_digit((char)c) || amp_is_alpha((char)c) || c == '-';
    return is_in_class(c, LETTER);
}

/* A joiner is allowed after a virama. The non-joiner is also allowed between letters of cursive
 * scripts. */
static bool is_joiner_allowed(const uint32_t *c, size_t n, size_t i)
{
    static const uint32_t viramas[] = {
        0x94d,  0x9cd,  0xa4d,  0xacd,  0xb4d,  0xbcd,  0xc4d,  0xccd,  0xd3b,  0xd3c,  0xd4d,
        0xdca,  0xe3a,  0xeba,  0xf84,  0x1039, 0x103a, 0x1714, 0x1734, 0x17d2, 0x1a60, 0x1b44,
        0x1baa, 0x1bab, 0x1bf2, 0x1bf3, 0x2d7f, 0xa806, 0xa8c4, 0xa953, 0xa9c0, 0xaaf6, 0xabed};
    if (i > 0 && is_listed(c[i - 1], viramas, sizeof viramas / sizeof *viramas))
        return true;
    return c[i] == 0x200c && i > 0 && i + 1 < n && is_in_class(c[i - 1], CURSIVE) &&
           is_in_class(c[i + 1], CURSIVE);
}

static bool is_in_context(const uint32_t *c, size_t n, size_t i)
{
    switch (c[i]) {
    case 0xb7: /* middle dot: between two l */
        return i > 0 && i + 1 < n && c[i - 1] == 'l' && c[i + 1] == 'l';
    case 0x375: /* Greek keraia */
        return i + 1 < n && is_in_class(c[i + 1], GREEK);
    case 0x5f3: /* Hebrew geresh and gershayim */
    case 0x5f4:
        return i > 0 && is_in_class(c[i - 1], HEBREW);
    case 0x30fb: /* Katakana middle dot */
        for (size_t k = 0; k < n; k++)
            if (c[k] != 0x30fb && is_in_class(c[k], JAPANESE))
                return true;
        return false;
    default:
        return (c[i] == 0x200c || c[i] == 0x200d) && is_joiner_allowed(c, n, i);
    }
}

/* Checks a label's code points. At least one must be beyond ASCII. */
static bool is_label(const uint32_t *c, size_t count)
{
    bool arabic = false, extended = false, beyond = false;
    if (c[0] == '-' || c[count - 1] == '-' || (count > 3 && c[2] == '-' && c[3] == '-'))
        return false;
    if (is_in_class(c[0], MARK))
        return false;
    for (size_t i = 0; i < count; i++) {
        static const uint32_t contextual[] = {0xb7, 0x375, 0x5f3, 0x5f4, 0x30fb, 0x200c, 0x200d};
        beyond |= c[i] >= 128;
        arabic |= c[i] >= 0x660 && c[i] <= 0x669;
        extended |= c[i] >= 0x6f0 && c[i] <= 0x6f9;
        if (is_listed(c[i], contextual, sizeof contextual / sizeof *contextual)
                ? !is_in_context(c, count, i)
                : !is_allowed(c[i]))
            return false;
    }
    return beyond && !(arabic && extended);
}

/* Encodes a label as Punycode; returns its length. At most 63 characters are written. */
static size_t encode_punycode(const uint32_t *c, size_t n, char out[POINTS])
{
    uint32_t code = 128, delta = 0, bias = 72;
    size_t done = 0, length = 0;
    for (size_t i = 0; i < n; i++)
        if (c[i] < 128)
            out[length++] = (char)c[i];
    size_t basic = done = length;
    if (basic)
        out[length++] = '-';
    for (; done < n; delta++, code++) {
        uint32_t next = UINT32_MAX;
        for (size_t i = 0; i < n; i++)
            if (c[i] >= code && c[i] < next)
                next = c[i];
        delta += (next - code) * (uint32_t)(done + 1); /* at most 64 * 0x10ffff */
        code = next;
        for (size_t i = 0; i < n; i++) {
            delta += c[i] < code;
            if (c[i] != code)
                continue;
            uint32_t q = delta;
            for (uint32_t k = 36;; k += 36) {
                uint32_t limit = digit_limit(k, bias);
                uint32_t digit = q < limit ? q : limit + (q - limit) % (36 - limit);
                if (length < POINTS - 1)
                    out[length] = (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
                length++;
                if (q < limit)
                    break;
                q = (q - limit) / (36 - limit);
            }
            bias = adapt_bias(delta, done + 1, done == basic);
            done++;
            delta = 0;
        }
    }
    return length;
}

static bool same_letters(const char *a, const char *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i] != b[i] && !(amp_is_alpha(a[i]) && (a[i] | 0x20) == (b[i] | 0x20)))
            return false;
    return true;
}

static bool read_ascii(const char *p, size_t n, struct amp_idna *out)
{
    char again[POINTS];
    bool is_a_label = n > 4 && same_letters(p, "xn--", 4);
    out->length = n;
    if (is_a_label)
        return n < POINTS && decode_punycode(p + 4, n - 4, out->c, &out->n) &&
               is_label(out->c, out->n) && encode_punycode(out->c, out->n, again) == n - 4 &&
               same_letters(p + 4, again, n - 4);
    if (n < 1 || n > 63 || p[0] == '-' || p[n - 1] == '-')
        return false;
    for (out->n = 0; out->n < n; out->n++) {
        char c = p[out->n];
        if (!amp_is_alpha(c) && !amp_is_digit(c) && c != '-')
            return false;
        out->c[out->n] = (unsigned char)c;
    }
    return true;
}

static bool read_text(const char *p, size_t n, struct amp_idna *out)
{
    char ascii[POINTS];
    for (out->n = 0; n;) {
        uint32_t point;
        size_t length = amp_utf8_get(p, n, &point);
        if (!length || out->n == POINTS - 1)
            return false;
        out->c[out->n++] = point;
        p += length;
        n -= length;
    }
    if (!out->n || !is_label(out->c, out->n))
        return false;
    out->length = encode_punycode(out->c, out->n, ascii) + 4;
    return out->length <= 63;
}

bool amp_idna_read(const char *p, size_t n, struct amp_idna *out)
{
    bool ascii = true;
    for (size_t i = 0; i < n; i++)
        ascii &= (unsigned char)p[i] < 128;
    return ascii ? read_ascii(p, n, out) : read_text(p, n, out);
}

bool amp_idna_is_rtl(const struct amp_idna *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->c[i] >= 0x590 && is_in_class(l->c[i], RIGHT))
            return true;
    return false;
}

bool amp_idna_bidi(const struct amp_idna *l)
{
    bool rtl = is_in_class(l->c[0], RIGHT_LETTER), european = false, arabic = false;
    size_t last = l->n;
    if (!rtl && !is_in_class(l->c[0], LEFT_LETTER))
        return false;
    for (size_t i = 0; i < l->n; i++) {
        european |= is_in_class(l->c[i], EUROPEAN);
        arabic |= is_in_class(l->c[i], ARABIC);
        if (is_in_class(l->c[i], rtl ? LEFT_LETTER : RIGHT))
            return false;
    }
    while (last > 0 && is_in_class(l->c[last - 1], NONSPACING))
        last--;
    if (last == 0 || (rtl && european && arabic))
        return false;
    uint32_t end = l->c[last - 1];
    return is_in_class(end, EUROPEAN) ||
           (rtl ? is_in_class(end, RIGHT) : is_in_class(end, LEFT_LETTER));
}
