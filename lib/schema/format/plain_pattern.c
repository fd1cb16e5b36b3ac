/*
 * The matcher for plain patterns. Each step takes as many characters as it can. This is correct
 * because a step whose count varies shares no character with a step that may follow it. Patterns
 * where it does share one are left to PCRE2.
 */
#include "schema/format/plain_pattern.h"

#include <string.h>

#include "schema/format/format.h"

static inline bool set_has(const uint64_t set[4], unsigned char c)
{
    return set[c >> 6] >> (c & 63) & 1;
}

static void add_range(uint64_t set[4], unsigned first, unsigned last)
{
    for (unsigned c = first; c <= last; c++)
        set[c >> 6] |= 1ull << (c & 63);
}

static void add_char(uint64_t set[4], int c)
{
    add_range(set, (unsigned)c, (unsigned)c);
}

/* An escape for ASCII characters only. *single becomes its character, -1 for a class. */
static bool read_escape(const char **p, const char *end, uint64_t set[4], int *single)
{
    if (*p == end)
        return false;
    char c = *(*p)++;
    *single = -1;
    if (c == 'd' || c == 'w')
        add_range(set, '0', '9');
    if (c == 'w') {
        add_range(set, 'a', 'z');
        add_range(set, 'A', 'Z');
        add_char(set, '_');
    }
    if (amp_is_one_of(c, ".-/\\^$*+?()[]{}|"))
        add_char(set, *single = c);
    return *single >= 0 || c == 'd' || c == 'w';
}

static bool read_class(const char **p, const char *end, uint64_t set[4])
{
    if (*p < end && (**p == '^' || **p == ']'))
        return false;
    while (*p < end && **p != ']') {
        int first = (unsigned char)*(*p)++, last = 0;
        if (first >= 128 || first == '[' || first < 0x20)
            return false;
        if (first == '\\' && !read_escape(p, end, set, &first))
            return false;
        if (end - *p >= 2 && (*p)[0] == '-' && (*p)[1] != ']') {
            last = (unsigned char)(*p)[1];
            *p += 2;
            if (first < 0 || last >= 128 || last == '\\' || last == '[' || last < first)
                return false;
            add_range(set, (unsigned)first, (unsigned)last);
        } else if (first >= 0) {
            add_char(set, first);
        }
    }
    return *p < end && *(*p)++ == ']';
}

static bool read_number(const char **p, const char *end, uint32_t *out)
{
    uint32_t v = 0;
    const char *from = *p;
    while (*p < end && amp_is_digit(**p) && *p - from < 6)
        v = v * 10 + (uint32_t)(*(*p)++ - '0');
    *out = v;
    return *p > from;
}

static bool read_count(const char **p, const char *end, struct amp_plain_step *s)
{
    s->min = s->max = 1;
    if (*p == end)
        return true;
    char c = **p;
    if (c == '*' || c == '+' || c == '?') {
        ++*p;
        s->min = c == '+';
        s->max = c == '?' ? 1 : UINT32_MAX;
    } else if (c == '{') {
        ++*p;
        if (!read_number(p, end, &s->min) || *p == end)
            return false;
        s->max = s->min;
        if (**p == ',') {
            ++*p;
            if (*p < end && **p == '}')
                s->max = UINT32_MAX;
            else if (!read_number(p, end, &s->max))
                return false;
        }
        if (*p == end || *(*p)++ != '}' || s->max < s->min)
            return false;
    } else {
        return true;
    }
    return *p == end || !strchr("*+?{", **p); /* not a lazy or a second count */
}

static bool is_deterministic(const struct amp_plain_pattern *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->step[i].min == r->step[i].max)
            continue;
        for (uint32_t j = i + 1; j < r->n; j++) {
            if ((r->step[i].set[0] & r->step[j].set[0]) || (r->step[i].set[1] & r->step[j].set[1]))
                return false;
            if (r->step[j].min > 0)
                break;
        }
    }
    return true;
}

bool amp_plain_pattern_read(struct amp_span text, struct amp_plain_pattern *out)
{
    const char *p = text.p, *end = text.p + text.n;
    struct amp_plain_pattern r = {0};
    if (!text.n || *p++ != '^')
        return false;
    while (p < end) {
        if (*p == '$' && p + 1 == end) {
            r.to_end = true;
            break;
        }
        if (r.n == AMP_PLAIN_MOST)
            return false;
        struct amp_plain_step *s = &r.step[r.n++];
        unsigned char c = (unsigned char)*p++;
        int single;
        if (c == '[') {
            if (!read_class(&p, end, s->set))
                return false;
        } else if (c == '\\') {
            if (!read_escape(&p, end, s->set, &single))
                return false;
        } else if (c < 0x20 || c >= 128 || strchr("^$.*+?(){}|]", c)) {
            return false;
        } else {
            add_char(s->set, c);
        }
        if (!read_count(&p, end, s))
            return false;
    }
    if (!is_deterministic(&r))
        return false;
    *out = r;
    return true;
}

bool amp_plain_pattern_match(const struct amp_plain_pattern *p, struct amp_span subject)
{
    const unsigned char *at = (const unsigned char *)subject.p, *end = at + subject.n;
    const struct amp_plain_step *s = p->step, *last = s + p->n;
    for (; s < last; s++) {
        size_t left = (size_t)(end - at);
        const unsigned char *first = at, *stop = s->max < left ? at + s->max : end;
        while (at < stop && set_has(s->set, *at))
            at++;
        if ((size_t)(at - first) < s->min)
            return false;
    }
    return !p->to_end || at == end;
}
