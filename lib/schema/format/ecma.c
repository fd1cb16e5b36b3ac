/*
 * The syntax of ECMA-262 regular expressions. PCRE2 takes more than ECMA-262 does (inline flags,
 * possessive counts, verbs, its own escapes); what ECMA-262 refuses is refused here first, so that
 * a schema means the same everywhere. Literal braces and brackets pass, as in Annex B.
 */
#include <string.h>

#include "schema/format/format.h"

enum { NEST = 200 };

struct reader {
    const char *p, *end;
    int depth;
};

static bool hex_digits(struct reader *r, int n)
{
    for (; n > 0; n--, r->p++)
        if (r->p == r->end || !amp_is_hex(*r->p))
            return false;
    return true;
}

static bool upto(struct reader *r, char last)
{
    const char *from = r->p;
    while (r->p<r->end && * r->p != last && * r->p> 0x20)
        r->p++;
    return r->p > from && r->p < r->end && *r->p++ == last;
}

/* Behind the backslash. *single: the character it stands for, -1 for a class. */
static bool escape(struct reader *r, bool in_class, int *single)
{
    if (r->p == r->end)
        return false;
    char c = *r->p++;
    *single = -1;
    if (!amp_is_alpha(c) && !amp_is_digit(c)) {
        *single = (unsigned char)c;
        return true; /* punctuation and beyond stand for themselves */
    }
    if (amp_is_digit(c))
        return true;
    if (strchr("dDsSwW", c))
        return true;
    switch (c) {
    case 'b':
    case 'B':
        return c == 'b' || !in_class;
    case 'f':
    case 'n':
    case 'r':
    case 't':
    case 'v':
        return true;
    case 'c':
        return r->p < r->end && amp_is_alpha(*r->p++);
    case 'x':
        return hex_digits(r, 2);
    case 'u':
        if (r->p < r->end && *r->p == '{') {
            r->p++;
            return upto(r, '}');
        }
        return hex_digits(r, 4);
    case 'p':
    case 'P':
        return r->p < r->end && *r->p++ == '{' && upto(r, '}');
    case 'k':
        return !in_class && r->p < r->end && *r->p++ == '<' && upto(r, '>');
    default:
        return false;
    }
}

static bool char_class(struct reader *r)
{
    int low = -1; /* the character before a dash */
    bool range = false;
    if (r->p < r->end && *r->p == '^')
        r->p++;
    while (r->p < r->end && *r->p != ']') {
        int c = (unsigned char)*r->p++;
        if (c == '\\' && !escape(r, true, &c))
            return false;
        if (range && low >= 0 && c >= 0 && low < 128 && c < 128 && c < low)
            return false;
        if (range) {
            range = false;
            low = -1;
            continue;
        }
        if (low >= 0 && c == '-' && r->p < r->end && *r->p != ']') {
            range = true;
            continue;
        }
        low = c;
    }
    return r->p < r->end && *r->p++ == ']';
}

/* Behind "(": what kind of group it is. */
static bool group(struct reader *r)
{
    if (++r->depth > NEST)
        return false;
    if (r->p < r->end && *r->p == '*')
        return false;
    if (r->p == r->end || *r->p != '?')
        return true;
    r->p++;
    if (r->p == r->end)
        return false;
    char c = *r->p++;
    if (c == ':' || c == '=' || c == '!')
        return true;
    if (c != '<' || r->p == r->end)
        return false;
    if (*r->p == '=' || *r->p == '!') {
        r->p++;
        return true;
    }
    return !amp_is_digit(*r->p) && upto(r, '>');
}

/* At "{": true and past it when it is a count. */
static bool count(struct reader *r, bool *wrong)
{
    const char *q = r->p + 1, *from = q;
    unsigned long low = 0, high = 0;
    while (q < r->end && amp_is_digit(*q) && q - from < 9)
        low = low * 10 + (unsigned long)(*q++ - '0');
    if (q == from)
        return false;
    high = low;
    if (q < r->end && *q == ',') {
        from = ++q;
        high = 0;
        while (q < r->end && amp_is_digit(*q) && q - from < 9)
            high = high * 10 + (unsigned long)(*q++ - '0');
        if (q == from)
            high = low;
    }
    if (q == r->end || *q != '}')
        return false;
    *wrong = high < low;
    r->p = q + 1;
    return true;
}

bool amp_format_regex(const char *p, size_t n)
{
    struct reader r = {p, p + n, 0};
    bool atom = false; /* something that a count may follow */
    while (r.p < r.end) {
        char c = *r.p;
        bool wrong = false;
        int single;
        if (c == '*' || c == '+' || c == '?' || (c == '{' && count(&r, &wrong))) {
            if (!atom || wrong)
                return false;
            r.p += c != '{';
            if (r.p < r.end && *r.p == '?')
                r.p++;
            atom = false;
            continue;
        }
        r.p++;
        atom = true;
        if (c == '\\') {
            if (!escape(&r, false, &single))
                return false;
        } else if (c == '[') {
            if (!char_class(&r))
                return false;
        } else if (c == '(') {
            if (!group(&r))
                return false;
            atom = false;
        } else if (c == ')') {
            if (r.depth-- == 0)
                return false;
        } else if (c == '|' || c == '^' || c == '$') {
            atom = false;
        }
    }
    return r.depth == 0;
}
