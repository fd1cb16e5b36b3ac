/*
 * The syntax of ECMA-262 regular expressions. PCRE2 accepts more than ECMA-262 (inline flags,
 * possessive counts, verbs, its own escapes). What ECMA-262 refuses is refused here first, so that
 * a schema has the same meaning everywhere. Literal braces and brackets pass, as in Annex B.
 */
#include "schema/format/format.h"

enum { NEST = 200 };

struct reader {
    const char *p, *end;
    int depth;
};

static bool take_char(struct reader *r, char c)
{
    bool got = r->p < r->end && *r->p == c;
    r->p += got;
    return got;
}

static bool take_hex(struct reader *r, int n)
{
    for (; n > 0; n--, r->p++)
        if (r->p == r->end || !amp_is_hex(*r->p))
            return false;
    return true;
}

/* Takes at least one ASCII character, none of them a space, and then `last`. */
static bool take_name(struct reader *r, char last)
{
    const char *from = r->p;
    while (r->p<r->end && * r->p != last && * r->p> 0x20 && (unsigned char)*r->p < 128)
        r->p++;
    return r->p > from && take_char(r, last);
}

static bool take_number(struct reader *r, unsigned long *n)
{
    const char *from = r->p;
    for (*n = 0; r->p < r->end && amp_is_digit(*r->p) && r->p - from < 9; r->p++)
        *n = *n * 10 + (unsigned long)(*r->p - '0');
    return r->p > from;
}

/* Reads on after a backslash. *single becomes the escaped character, -1 for a class. */
static bool take_escape(struct reader *r, bool in_class, int *single)
{
    if (r->p == r->end)
        return false;
    char c = *r->p++;
    *single = -1;
    if (!amp_is_alpha(c) && !amp_is_digit(c)) { /* any other character means itself */
        *single = (unsigned char)c;
        return true;
    }
    if (amp_is_digit(c) || amp_is_one_of(c, "dDsSwWbfnrtv"))
        return true;
    switch (c) {
    case 'B':
        return !in_class;
    case 'c':
        return r->p < r->end && amp_is_alpha(*r->p++);
    case 'x':
        return take_hex(r, 2);
    case 'u':
        return take_char(r, '{') ? take_name(r, '}') : take_hex(r, 4);
    case 'p':
    case 'P':
        return take_char(r, '{') && take_name(r, '}');
    case 'k':
        return !in_class && take_char(r, '<') && take_name(r, '>');
    default:
        return false;
    }
}

/* Reads on after the opening bracket. */
static bool take_class(struct reader *r)
{
    int low = -1; /* the character before a dash */
    bool range = false;
    take_char(r, '^');
    while (r->p < r->end && *r->p != ']') {
        int c = (unsigned char)*r->p++;
        if (c == '\\' && !take_escape(r, true, &c))
            return false;
        if (range) {
            if (c >= 0 && c < low && low < 128)
                return false;
            range = false;
            low = -1;
        } else if (low >= 0 && c == '-' && r->p < r->end && *r->p != ']') {
            range = true;
        } else {
            low = c;
        }
    }
    return take_char(r, ']');
}

/* Reads the kind of a group, after "(". */
static bool take_group(struct reader *r)
{
    if (++r->depth > NEST || (r->p < r->end && *r->p == '*'))
        return false;
    if (!take_char(r, '?') || take_char(r, ':') || take_char(r, '=') || take_char(r, '!'))
        return true;
    if (!take_char(r, '<'))
        return false;
    if (take_char(r, '=') || take_char(r, '!'))
        return true;
    return r->p < r->end && !amp_is_digit(*r->p) && take_name(r, '>');
}

/* A count in braces. False, with nothing taken, for a literal brace. */
static bool take_count(struct reader *r, bool *wrong)
{
    struct reader start = *r;
    unsigned long low, high;
    if (take_char(r, '{') && take_number(r, &low)) {
        high = low;
        if (take_char(r, ',') && !take_number(r, &high))
            high = low;
        *wrong = high < low;
        if (take_char(r, '}'))
            return true;
    }
    *r = start;
    return false;
}

bool amp_format_regex(const char *p, size_t n)
{
    struct reader r = {p, p + n, 0};
    bool atom = false; /* a count may follow */
    while (r.p < r.end) {
        bool wrong = false;
        int single;
        if (take_char(&r, '*') || take_char(&r, '+') || take_char(&r, '?') ||
            take_count(&r, &wrong)) {
            if (!atom || wrong)
                return false;
            take_char(&r, '?');
            atom = false;
            continue;
        }
        char c = *r.p++;
        atom = !amp_is_one_of(c, "(|^$");
        if ((c == '\\' && !take_escape(&r, false, &single)) || (c == '[' && !take_class(&r)) ||
            (c == '(' && !take_group(&r)) || (c == ')' && r.depth-- == 0))
            return false;
    }
    return r.depth == 0;
}
