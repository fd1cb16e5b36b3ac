/*
 * The user's patterns. Each match has a limit of steps, and each text a limit of time for each
 * pattern: the text is searched in pieces, with a look at the time before each. Above a limit the
 * rest of the text counts as secret.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "message/protocol/redact/redact.h"

#include <pcre2.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"

enum { PATTERNS_MOST = 64, PATTERN_MOST = 4096, KIND_MOST = 32, PIECE = 4096 };
enum { STEPS = 10000, DEPTH = 1000, HEAP_KIB = 4096 };

static const int64_t TIME_NS = 250 * INT64_C(1000000);

static struct {
    pcre2_code *code;
    char kind[KIND_MOST];
} patterns[PATTERNS_MOST];
static unsigned n_patterns;

bool amp_redact_has_patterns(void)
{
    return n_patterns > 0;
}

/* The kind of matches: "invoice" for "(?#invoice)INV-\d+", else "pattern". */
static void kind_of(const char *regex, char kind[KIND_MOST])
{
    size_t n = 0;
    snprintf(kind, KIND_MOST, "pattern");
    if (strncmp(regex, "(?#", 3) != 0)
        return;
    const char *p = regex + 3;
    while (n + 1 < KIND_MOST && ((p[n] >= 'a' && p[n] <= 'z') || (p[n] >= '0' && p[n] <= '9') ||
                                 p[n] == '_' || p[n] == '-'))
        n++;
    if (n > 0 && p[n] == ')')
        snprintf(kind, KIND_MOST, "%.*s", (int)n, p);
}

int amp_redact_pattern(const char *regex, struct amp_error *err)
{
    int code;
    PCRE2_SIZE at;
    PCRE2_UCHAR why[120];
    if (n_patterns == PATTERNS_MOST)
        return amp_fail(err, AMP_USAGE, too_many, "more than %d patterns to redact", PATTERNS_MOST);
    if (!*regex || strlen(regex) > PATTERN_MOST)
        return amp_fail(err, AMP_USAGE, bad_pattern, "a pattern to redact has 1 to %d bytes",
                        PATTERN_MOST);
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
                                  PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_NEVER_BACKSLASH_C |
                                      PCRE2_USE_OFFSET_LIMIT,
                                  &code, &at, NULL);
    if (!c) {
        pcre2_get_error_message(code, why, sizeof(why));
        return amp_fail(err, AMP_USAGE, bad_pattern, "the pattern to redact '%.100s': %s at %zu",
                        regex, (const char *)why, (size_t)at);
    }
    patterns[n_patterns].code = c;
    kind_of(regex, patterns[n_patterns].kind);
    n_patterns++;
    return 0;
}

int amp_redact_pattern_list(const char *const *v, struct amp_error *err)
{
    for (; v && *v; v++)
        if (amp_redact_pattern(*v, err) < 0)
            return -1;
    return 0;
}

struct matching {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    int64_t until_ns;
};

enum match { MATCH_NONE, MATCH_FOUND, MATCH_LIMIT };

/* Searches from `at` on, in pieces, and sets the bounds of the next match. */
static enum match match_next(const struct matching *m, const pcre2_code *code, struct amp_span text,
                             bool cut, size_t at, size_t *from, size_t *to)
{
    while (at <= text.n) {
        size_t limit = text.n - at > PIECE ? at + PIECE - 1 : text.n;
        if (amp_cpu_ns() > m->until_ns)
            return MATCH_LIMIT;
        pcre2_set_offset_limit(m->limits, limit);
        int rc = pcre2_match(code, (PCRE2_SPTR)text.p, text.n, at,
                             PCRE2_NOTEMPTY | (cut ? PCRE2_PARTIAL_HARD : 0), m->data, m->limits);
        if (rc >= 0 || rc == PCRE2_ERROR_PARTIAL) {
            const PCRE2_SIZE *o = pcre2_get_ovector_pointer(m->data);
            *from = o[0];
            *to = rc == PCRE2_ERROR_PARTIAL ? text.n : o[1];
            /* \K may move the begin after the end, or before `at`. */
            if (*from < at)
                *from = at;
            if (*to > *from)
                return MATCH_FOUND;
            at = *from + 1;
        } else if (rc == PCRE2_ERROR_NOMATCH) {
            at = limit + 1;
        } else {
            return MATCH_LIMIT;
        }
    }
    return MATCH_NONE;
}

static int pattern_redact(const struct matching *m, unsigned i, struct amp_span text, bool cut,
                          struct amp_buf *out, struct amp_error *err)
{
    size_t at = 0, from, to;
    enum match found;
    while ((found = match_next(m, patterns[i].code, text, cut, at, &from, &to)) == MATCH_FOUND) {
        if (amp_buf_add(out, text.p + at, from - at, err) < 0 ||
            amp_buf_fmt(out, err, "[redacted:%s]", patterns[i].kind) < 0)
            return -1;
        at = to;
    }
    if (found == MATCH_LIMIT)
        return amp_buf_str(out, "[redacted:not_judged]", err);
    return amp_buf_add(out, text.p + at, text.n - at, err);
}

int amp_redact_patterns(struct amp_span text, bool cut, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf a = {0}, b = {0};
    struct amp_buf *in = &a, *to = &b;
    amp_buf_init(&a, out->max);
    amp_buf_init(&b, out->max);
    struct matching m = {.data = pcre2_match_data_create(1, NULL),
                         .limits = pcre2_match_context_create(NULL)};
    int rc = m.data && m.limits ? amp_buf_add(in, text.p, text.n, err) : amp_fail_memory(err);
    if (rc == 0) {
        pcre2_set_match_limit(m.limits, STEPS);
        pcre2_set_depth_limit(m.limits, DEPTH);
        pcre2_set_heap_limit(m.limits, HEAP_KIB);
    }
    for (unsigned i = 0; rc == 0 && i < n_patterns; i++) {
        struct amp_buf *done = in;
        m.until_ns = amp_cpu_ns() + TIME_NS;
        amp_buf_reset(to);
        rc = pattern_redact(&m, i, amp_buf_span(in), cut, to, err);
        in = to;
        to = done;
    }
    pcre2_match_data_free(m.data);
    pcre2_match_context_free(m.limits);
    return rc < 0 ? -1 : amp_buf_add(out, in->data, in->len, err);
}
