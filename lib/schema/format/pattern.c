/* Regular expressions on PCRE2. ECMA-262 differs in a few escapes, which are rewritten first. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "schema/format/pattern.h"

#include <errno.h>
#include <pcre2.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "schema/format/format.h"
#include "schema/format/plain_pattern.h"

enum {
    PATTERN_MAX = 64 << 10,
    MATCH_LIMIT = 500000,
    LONG_TEXT = 4096, /* bytes */
    FIRST_STEPS = 500,
    DEPTH_LIMIT = 20000,
    HEAP_LIMIT = 16 << 10, /* KiB */
    FREE_MATCHES = 100,
    LEAST_STEPS = 5000,
    HOT = 64,
    HOT_USES = 1000,
};

static const int64_t TIME_LIMIT_NS = 4000 * INT64_C(1000000);

struct amp_pattern {
    struct amp_pattern *next;
    uint64_t id;      /* unlike the address, never used again */
    pcre2_code *code; /* NULL: plain */
    struct amp_plain_pattern *plain;
};

/* Each checker makes its own machine code for a pattern that it uses often. So a compiled schema is
 * immutable, and the start costs nothing. */
struct hot {
    uint64_t id;
    uint32_t uses;
    bool tried;
    pcre2_code *code;
};

struct amp_matcher {
    pcre2_match_data *data;
    pcre2_match_context *limits;
    pcre2_jit_stack *stack;
    uint32_t limit;   /* of steps, as set in `limits` */
    int64_t spent_ns; /* on the long texts of this check */
    struct hot hot[HOT];
};

#define SPACES                                                                                     \
    "\\t-\\r "                                                                                     \
    "\\u{a0}\\u{1680}\\u{2000}-\\u{200a}\\u{2028}\\u{2029}\\u{202f}\\u{205f}\\u{3000}\\u{feff}"

static const struct {
    const char *name, *code;
} categories[] = {
    {"Letter", "L"},
    {"Cased_Letter", "L&"},
    {"Uppercase_Letter", "Lu"},
    {"Lowercase_Letter", "Ll"},
    {"Titlecase_Letter", "Lt"},
    {"Modifier_Letter", "Lm"},
    {"Other_Letter", "Lo"},
    {"Mark", "M"},
    {"Nonspacing_Mark", "Mn"},
    {"Spacing_Mark", "Mc"},
    {"Enclosing_Mark", "Me"},
    {"Number", "N"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Letter_Number", "Nl"},
    {"Other_Number", "No"},
    {"Symbol", "S"},
    {"Math_Symbol", "Sm"},
    {"Currency_Symbol", "Sc"},
    {"Modifier_Symbol", "Sk"},
    {"Other_Symbol", "So"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Connector_Punctuation", "Pc"},
    {"Dash_Punctuation", "Pd"},
    {"Open_Punctuation", "Ps"},
    {"Close_Punctuation", "Pe"},
    {"Initial_Punctuation", "Pi"},
    {"Final_Punctuation", "Pf"},
    {"Other_Punctuation", "Po"},
    {"Separator", "Z"},
    {"Space_Separator", "Zs"},
    {"Line_Separator", "Zl"},
    {"Paragraph_Separator", "Zp"},
    {"Other", "C"},
    {"Control", "Cc"},
    {"Format", "Cf"},
    {"Surrogate", "Cs"},
    {"Private_Use", "Co"},
    {"Unassigned", "Cn"},
};

/* \p{Letter}, \p{gc=Lu}, \p{Script=Greek}: PCRE2 has only the short names. *p is at the brace. */
static int rewrite_property(const char **p, const char *end, struct amp_buf *out)
{
    const char *close = memchr(*p, '}', (size_t)(end - *p));
    if (!close)
        return 0;
    struct amp_span name = {*p + 1, (size_t)(close - *p - 1)};
    const char *equals = name.n ? memchr(name.p, '=', name.n) : NULL;
    if (equals) {
        name.n -= (size_t)(equals + 1 - name.p);
        name.p = equals + 1;
    }
    *p = close + 1;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        if (amp_span_is(name, categories[i].name))
            name = amp_span_str(categories[i].code);
    return amp_buf_fmt(out, NULL, "{%.*s}", (int)name.n, name.p);
}

static int rewrite_pattern(struct amp_span text, struct amp_buf *out)
{
    const char *p = text.p, *end = text.p + text.n;
    bool in_class = false;
    while (p < end) {
        char c = *p++;
        if (c != '\\' || p == end) {
            if (c == '[' && in_class) { /* [[:digit:]] is not a POSIX class in ECMA-262 */
                if (amp_buf_str(out, "\\[", NULL) < 0)
                    return -1;
                continue;
            }
            if (c == '[' || c == ']')
                in_class = c == '[';
            if (amp_buf_add(out, &c, 1, NULL) < 0)
                return -1;
            if (c == '[' && p < end && *p == '^' && amp_buf_add(out, p++, 1, NULL) < 0)
                return -1;
            continue;
        }
        c = *p++;
        int r = 0;
        if (c == 'v') /* any vertical space to PCRE2 */
            r = amp_buf_str(out, "\\x0b", NULL);
        else if (c == 's')
            r = amp_buf_str(out, in_class ? SPACES : "[" SPACES "]", NULL);
        else if (c == 'S' && !in_class)
            r = amp_buf_str(out, "[^" SPACES "]", NULL);
        else {
            r = amp_buf_str(out, "\\", NULL) || amp_buf_add(out, &c, 1, NULL);
            if (!r && (c == 'p' || c == 'P') && p < end && *p == '{')
                r = rewrite_property(&p, end, out);
        }
        if (r)
            return -1;
    }
    return 0;
}

static pcre2_code *compile_code(struct amp_span text, char *why, size_t size)
{
    AMP_BUF struct amp_buf source = {0};
    int code;
    PCRE2_SIZE offset;
    amp_buf_init(&source, PATTERN_MAX);
    if (rewrite_pattern(text, &source) < 0) {
        snprintf(why, size, "longer than 64 KiB");
        return NULL;
    }
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return NULL;
    pcre2_set_newline(context, PCRE2_NEWLINE_ANYCRLF);
    pcre2_set_compile_extra_options(context, PCRE2_EXTRA_ALT_BSUX);
    pcre2_set_parens_nest_limit(context, 100);
    pcre2_code *re =
        pcre2_compile((PCRE2_SPTR)(source.data ? source.data : ""), source.len,
                      PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS |
                          PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C,
                      &code, &offset, context);
    pcre2_compile_context_free(context);
    if (!re)
        pcre2_get_error_message(code, (PCRE2_UCHAR *)why, size);
    return re;
}

struct amp_pattern *amp_pattern_compile(struct amp_arena *arena, struct amp_pattern **list,
                                        struct amp_span text, char why[AMP_PATTERN_WHY])
{
    struct amp_plain_pattern plain;
    struct amp_pattern *p = amp_arena_get(arena, sizeof *p);
    why[0] = '\0';
    if (!p)
        return NULL;
    if (amp_plain_pattern_read(text, &plain)) {
        size_t n = offsetof(struct amp_plain_pattern, step) + plain.n * sizeof *plain.step;
        p->plain = amp_arena_get(arena, n);
        if (!p->plain)
            return NULL;
        memcpy(p->plain, &plain, n);
    } else {
        char fault[128] = "";
        errno = 0; /* out of memory is not a fault of the pattern */
        bool is_regex = amp_format_regex(text.p, text.n);
        if (is_regex)
            p->code = compile_code(text, fault, sizeof fault);
        if (!p->code && errno != ENOMEM && is_regex)
            snprintf(why, AMP_PATTERN_WHY, "not a regular expression: %s", fault);
        else if (!p->code && errno != ENOMEM)
            snprintf(why, AMP_PATTERN_WHY, "not a regular expression of ECMA-262");
        if (!p->code)
            return NULL;
    }
    static atomic_uint_least64_t ids;
    p->id = atomic_fetch_add(&ids, 1) + 1;
    p->next = *list;
    *list = p;
    return p;
}

void amp_pattern_free_all(struct amp_pattern *p)
{
    for (; p; p = p->next)
        pcre2_code_free(p->code);
}

struct amp_matcher *amp_matcher_new(struct amp_error *err)
{
    struct amp_matcher *m = calloc(1, sizeof *m);
    if (!m)
        amp_fail_memory(err);
    return m;
}

void amp_matcher_free(struct amp_matcher *m)
{
    if (!m)
        return;
    for (int i = 0; i < HOT; i++)
        pcre2_code_free(m->hot[i].code);
    pcre2_jit_stack_free(m->stack);
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->limits);
    free(m);
}

static bool matcher_prepare(struct amp_matcher *m)
{
    if (m->data)
        return true;
    m->limits = pcre2_match_context_create(NULL);
    if (!m->limits)
        return false;
    pcre2_set_depth_limit(m->limits, DEPTH_LIMIT);
    pcre2_set_heap_limit(m->limits, HEAP_LIMIT);
    m->data = pcre2_match_data_create(1, NULL);
    return m->data != NULL;
}

/* The pattern's machine code, or NULL if it is not used often enough or cannot be made. */
static pcre2_code *machine_code(const struct amp_pattern *p, struct amp_matcher *m)
{
    struct hot *h = &m->hot[p->id % HOT];
    if (h->id != p->id) {
        pcre2_code_free(h->code);
        *h = (struct hot){.id = p->id};
    }
    if (h->tried || ++h->uses < HOT_USES)
        return h->code;
    h->tried = true;
    if (!m->stack) {
        m->stack = pcre2_jit_stack_create(32 << 10, 1 << 20, NULL);
        if (!m->stack)
            return NULL;
        pcre2_jit_stack_assign(m->limits, NULL, m->stack);
    }
    h->code = pcre2_code_copy(p->code);
    if (h->code && pcre2_jit_compile(h->code, PCRE2_JIT_COMPLETE)) {
        pcre2_code_free(h->code);
        h->code = NULL;
    }
    return h->code;
}

/* The step limit of a match. After FREE_MATCHES in one check it falls to what long texts need. */
static uint32_t steps_for(uint32_t used, size_t length)
{
    uint64_t least = LEAST_STEPS + 4 * (uint64_t)length, limit = MATCH_LIMIT;
    if (used > FREE_MATCHES) {
        limit = limit * FREE_MATCHES / used;
        if (limit < least)
            limit = least < MATCH_LIMIT ? least : MATCH_LIMIT;
    }
    return (uint32_t)limit;
}

static int match_text(const struct amp_pattern *p, struct amp_matcher *m, struct amp_span subject,
                      uint32_t limit)
{
    PCRE2_SPTR text = (PCRE2_SPTR)(subject.n ? subject.p : "");
    pcre2_code *fast = machine_code(p, m);
    int r = PCRE2_ERROR_JIT_STACKLIMIT;
    if (limit != m->limit)
        pcre2_set_match_limit(m->limits, limit);
    m->limit = limit;
    if (fast)
        r = pcre2_match(fast, text, subject.n, 0, PCRE2_NO_UTF_CHECK, m->data, m->limits);
    if (r == PCRE2_ERROR_JIT_STACKLIMIT)
        r = pcre2_match(p->code, text, subject.n, 0, PCRE2_NO_UTF_CHECK, m->data, m->limits);
    return r;
}

/* A single step may read a complete long text, so a step limit does not bound the time. The limit
 * therefore grows tenfold for as long as a hundred times the time is left. */
static int match_long(const struct amp_pattern *p, struct amp_matcher *m, struct amp_span subject,
                      uint32_t most)
{
    for (uint32_t limit = FIRST_STEPS;; limit *= 10) {
        bool last = limit >= most;
        int64_t before = amp_cpu_ns();
        int r = match_text(p, m, subject, last ? most : limit);
        int64_t took = amp_cpu_ns() - before;
        m->spent_ns += took;
        if (last || r != PCRE2_ERROR_MATCHLIMIT || m->spent_ns + 100 * took > TIME_LIMIT_NS)
            return r;
    }
}

int amp_pattern_match(const struct amp_pattern *p, struct amp_matcher *m, struct amp_span subject,
                      uint32_t *used, struct amp_error *err)
{
    if (!p->code)
        return amp_plain_pattern_match(p->plain, subject);
    if (!matcher_prepare(m))
        return amp_fail_memory(err);
    if (*used == 0)
        m->spent_ns = 0;
    uint32_t limit = steps_for((*used)++, subject.n);
    int r =
        subject.n > LONG_TEXT ? match_long(p, m, subject, limit) : match_text(p, m, subject, limit);
    if (r >= 0)
        return 1;
    if (r == PCRE2_ERROR_NOMATCH)
        return 0;
    return amp_fail(err, AMP_DATAERR, pattern_limit,
                    "a pattern needs more steps or memory than the limit allows");
}
