/*
 * Finding the terms of a frame, in its bytes, without parsing it. A quote behind an even number of
 * backslashes belongs to the frame; behind 1, 5, 9 … to a JSON text in one of its strings, whose
 * own escaped quotes are behind 3, 7, 11 …. So both levels are read in one pass. Text that only
 * looks like JSON may give terms too many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "message/store/terms/terms.h"
#include "json/bytes.h"
#include "json/hash.h"
#include "json/text.h"

enum { SEED = 0x7465726d, LEVELS = 2 };
enum what { NOTHING, VALUE, KEY, CLOSE, BLOB, AT };

uint32_t amp_term_of(struct amp_span text)
{
    /* Terms are in files, so the key is always the same. */
    static const struct amp_json_hash_key of_text = {SEED, SEED * UINT64_C(0x9e3779b97f4a7c15)};
    if (text.n > AMP_TERM_TEXT_MAX)
        text.n = AMP_TERM_TEXT_MAX;
    uint32_t h = amp_json_hash32(&of_text, text.p, text.n);
    return h ? h : 1;
}

uint32_t amp_term_of_frame(uint64_t n)
{
    uint32_t h = (uint32_t)amp_store_hash(SEED + 1, (struct amp_span){(const char *)&n, sizeof n},
                                          (struct amp_span){0});
    return h ? h : 1;
}

/* ---- the members ---- */

static unsigned name_slot(const char *p, size_t n)
{
    unsigned a = (unsigned char)p[0], b = (unsigned char)p[n - 1], c = (unsigned char)p[n / 2];
    return (a * 7 + b * 31 + c * 131 + (unsigned)n * 17) & 255;
}

/* Hashes the three bytes before `end`. */
static inline unsigned end_hash(const char *end)
{
    uint32_t v = (uint32_t)(unsigned char)end[-3] << 16 | (uint32_t)(unsigned char)end[-2] << 8 |
                 (unsigned char)end[-1];
    return (v * 2654435761u) >> 20;
}

static void end_add(struct amp_term_names *t, const char *end, unsigned slot)
{
    unsigned h = end_hash(end);
    t->row[t->n_rows].slot = (uint8_t)slot;
    t->row[t->n_rows].next = t->by_end[h];
    t->by_end[h] = (uint8_t)++t->n_rows;
}

/* A name of one letter follows a quote, which follows one of these. */
static void ends_add(struct amp_term_names *t, const char *text, size_t n, unsigned slot)
{
    char mem[8];
    if (n > 2) {
        end_add(t, text + n, slot);
        return;
    }
    for (const char *c = n == 1 ? "{, \\" : "\""; *c; c++) {
        int len = n == 1 ? snprintf(mem, sizeof mem, "%c\"%s", *c, text)
                         : snprintf(mem, sizeof mem, "%c%s", *c, text);
        end_add(t, mem + len, slot);
    }
}

static void name_add(struct amp_term_names *t, const char *text, enum what what)
{
    size_t n = strlen(text);
    unsigned i = name_slot(text, n);
    while (t->slot[i].n)
        i = (i + 1) & 255;
    t->slot[i].text = text;
    t->slot[i].n = (uint8_t)n;
    t->slot[i].what = (uint8_t)what;
    ends_add(t, text, n, i);
    t->hash = amp_store_hash(t->hash, (struct amp_span){text, n}, (struct amp_span){0});
}

void amp_term_names_make(struct amp_term_names *t, const char *const *names)
{
    *t = (struct amp_term_names){.made = true, .hash = SEED};
    name_add(t, "key", KEY);
    name_add(t, "full", KEY);
    name_add(t, "close", CLOSE);
    name_add(t, "state_blob", BLOB);
    name_add(t, "at", AT);
    for (unsigned i = 0; names[i] && i < AMP_TERM_NAMES; i++)
        name_add(t, names[i], VALUE);
}

static enum what name_find(const struct amp_term_names *t, const char *p, size_t n)
{
    if (n == 0)
        return NOTHING;
    for (unsigned i = name_slot(p, n); t->slot[i].n; i = (i + 1) & 255)
        if (t->slot[i].n == n && amp_same_bytes(t->slot[i].text, p, n))
            return (enum what)t->slot[i].what;
    /* An escaped name may be any. */
    return memchr(p, '\\', n) ? VALUE : NOTHING;
}

/* ---- postings ---- */

struct scan {
    struct amp_postings *t;
    const struct amp_term_names *names;
    uint32_t off;
    const char *start, *end;
    struct amp_postings_found found;
    struct amp_error *err;
};

/* A frame may have a term more than once; amp_postings_sort keeps one of them. */
static inline int term_add(struct scan *c, uint32_t h)
{
    struct amp_postings *t = c->t;
    if (t->n == t->cap && amp_grow(&t->v, &t->cap, t->n, sizeof *t->v, c->err) < 0)
        return -1;
    t->v[t->n++] = (struct amp_term){h, c->off};
    return 0;
}

/* A string without its quotes, which is escaped `levels` times. */
static int text_add(struct scan *c, const char *p, size_t n, int levels)
{
    if (n == 0)
        return 0;
    if (!memchr(p, '\\', n))
        return term_add(c, amp_term_of((struct amp_span){p, n}));
    struct amp_buf *mem = &c->t->mem;
    amp_buf_reset(mem);
    if (amp_buf_reserve(mem, 2 * n + 8, c->err) < 0)
        return -1;
    size_t len = amp_json_decode(p, n, mem->data);
    struct amp_span text = {mem->data, len};
    if (levels > 1 && memchr(mem->data, '\\', len)) {
        text.p = mem->data + n;
        text.n = amp_json_decode(mem->data, len, mem->data + n);
    }
    return term_add(c, amp_term_of(text));
}

/* The parts of a key; of several, also their text. */
static int key_add(struct scan *c, struct amp_span text)
{
    const char *dot = memchr(text.p, '.', text.n);
    if (!dot)
        return 0;
    struct amp_span rest = {dot + 1, text.n - (size_t)(dot + 1 - text.p)};
    if (text_add(c, rest.p, rest.n, 1) < 0)
        return -1;
    if (!memchr(rest.p, '.', rest.n) && !memchr(rest.p, '%', rest.n))
        return 0;
    if (!memchr(rest.p, '%', rest.n) && !memchr(rest.p, ':', rest.n)) { /* nothing to decode */
        for (const char *p = rest.p, *end = rest.p + rest.n; p < end; p = dot + 1) {
            dot = memchr(p, '.', (size_t)(end - p));
            dot = dot ? dot : end;
            if (dot > p && term_add(c, amp_term_of((struct amp_span){p, (size_t)(dot - p)})) < 0)
                return -1;
        }
        return 0;
    }
    struct amp_key key;
    if (amp_key_split(text, &c->t->mem, &key, NULL) < 0)
        return 0; /* not a key */
    for (uint32_t i = 0; i < key.n; i++)
        if (key.part[i].n && term_add(c, amp_term_of(key.part[i])) < 0)
            return -1;
    return 0;
}

/* The frames of "close":[[n,i],…]. p is after the colon. */
static int close_add(struct scan *c, const char *p)
{
    while (p + 2 < c->end && (*p == '[' || *p == ',')) {
        uint64_t n = 0;
        while (p < c->end && (*p == '[' || *p == ','))
            p++;
        while (p < c->end && *p >= '0' && *p <= '9')
            n = n * 10 + (uint64_t)(*p++ - '0');
        if (term_add(c, amp_term_of_frame(n)) < 0)
            return -1;
        while (p < c->end && *p != ']')
            p++;
        p++;
        if (p < c->end && *p == ']')
            break;
    }
    return 0;
}

struct level {
    const char *open; /* of the string that is open, or NULL */
    enum what what;   /* of the last member */
};

static const char *spaces_skip(const struct scan *c, const char *p)
{
    while (p < c->end && (*p == ' ' || (p[0] == '\\' && p + 1 < c->end && p[1] == 't')))
        p += *p == ' ' ? 1 : 2;
    return p;
}

/* A string that is a member's value. */
static int value_add(struct scan *c, enum what what, struct amp_span text, int levels)
{
    if (what == VALUE)
        return text_add(c, text.p, text.n, levels);
    if (levels > 1)
        return 0;
    if (what == KEY && !memchr(text.p, '\\', text.n))
        return key_add(c, text);
    if (what == BLOB)
        c->found.blob = text;
    if (what == AT && !c->found.at.n)
        c->found.at = text;
    return 0;
}

static int string_end(struct scan *c, struct level *l, const char *end, const char *after,
                      int levels)
{
    struct amp_span text = {l->open, (size_t)(end - l->open)};
    l->open = NULL;
    after = spaces_skip(c, after);
    if (after < c->end && *after == ':') {
        l->what = name_find(c->names, text.p, text.n);
        if (l->what == CLOSE)
            return levels == 1 ? close_add(c, after + 1) : 0;
        return 0;
    }
    return value_add(c, l->what, text, levels);
}

/* A quote. */
static inline int quote_take(struct scan *c, struct level level[LEVELS], const char *start,
                             const char *q)
{
    size_t slashes = 0;
    while (q - slashes > start && q[-1 - (ptrdiff_t)slashes] == '\\')
        slashes++;
    if (!(slashes & 1)) {
        level[1] = (struct level){0};
        if (level[0].open)
            return string_end(c, &level[0], q, q + 1, 1);
        level[0].open = q + 1;
    } else if (slashes % 4 == 1 && level[0].open) {
        if (level[1].open)
            return string_end(c, &level[1], q - 1, q + 1, 2);
        level[1].open = q + 1;
    }
    return 0;
}

static int strings_scan(struct scan *c, struct amp_span text)
{
    struct level level[LEVELS] = {{0}};
    for (const char *p = memchr(text.p, '"', text.n); p;
         p = memchr(p + 1, '"', (size_t)(c->end - p - 1)))
        if (quote_take(c, level, text.p, p) < 0)
            return -1;
    return 0;
}

/* ---- the short way: from a member's name to its value ---- */

/* The quote that ends a string of this level from p on, or NULL. */
static const char *string_close(struct scan *c, const char *p, int levels)
{
    for (const char *q = p; (q = memchr(q, '"', (size_t)(c->end - q))); q++) {
        size_t slashes = 0;
        while (q - slashes > p && q[-1 - (ptrdiff_t)slashes] == '\\')
            slashes++;
        if (levels == 1 ? !(slashes & 1) : !(slashes & 1) || slashes % 4 == 1)
            return q;
    }
    return NULL;
}

/* The strings of a value: one, or those of an array. p: after the colon. */
static int value_take(struct scan *c, enum what what, const char *p, int levels)
{
    /* Nearly all values: a plain string. */
    if (levels == 1 && p + 1 < c->end && *p == '"') {
        const char *end = p + 1;
        end =
            (const char *)amp_skip_plain((const unsigned char *)end, (const unsigned char *)c->end);
        if (end < c->end && *end == '"') {
            struct amp_span text = {p + 1, (size_t)(end - p - 1)};
            if (what != VALUE)
                return value_add(c, what, text, 1);
            return text.n ? term_add(c, amp_term_of(text)) : 0;
        }
    }
    size_t quote = (size_t)levels; /* the bytes of a quote */
    p = spaces_skip(c, p);
    if (what == CLOSE)
        return levels == 1 ? close_add(c, p) : 0;
    bool list = p < c->end && *p == '[';
    if (list)
        p = spaces_skip(c, p + 1);
    while (p + quote < c->end && p[quote - 1] == '"' && (levels == 1 || *p == '\\')) {
        struct level one = {p + quote, what};
        const char *end = string_close(c, p + quote, levels);
        if (!end)
            return 0;
        if (string_end(c, &one, end - (levels - 1), end + 1, levels) < 0)
            return -1;
        p = spaces_skip(c, end + 1);
        if (!list || p >= c->end || *p != ',')
            return 0;
        p = spaces_skip(c, p + 1);
    }
    return 0;
}

/* q: a quote that may end a name. */
static inline int name_take(struct scan *c, const char *q)
{
    int levels = q[-1] == '\\' ? 2 : 1;
    const char *end = q - (levels - 1);
    for (unsigned i = c->names->by_end[end_hash(end)]; i; i = c->names->row[i - 1].next) {
        unsigned slot = c->names->row[i - 1].slot;
        size_t n = c->names->slot[slot].n;
        if ((size_t)(end - c->start) <= n || end[-1 - (ptrdiff_t)n] != '"' ||
            !amp_same_bytes(end - n, c->names->slot[slot].text, n))
            continue;
        const char *p = spaces_skip(c, q + 1);
        return p < c->end && *p == ':'
                   ? value_take(c, (enum what)c->names->slot[slot].what, p + 1, levels)
                   : 0;
    }
    return 0;
}

/* 1: the text has an escape that may be in a name. */
static int names_scan(struct scan *c)
{
    const char *p = c->start + 4;
#if AMP_JSON_SSE2
    const __m128i quote = _mm_set1_epi8('"'), colon = _mm_set1_epi8(':');
    const __m128i space = _mm_set1_epi8(' '), slash = _mm_set1_epi8('\\');
    const __m128i u = _mm_set1_epi8('u');
    for (; c->end - p >= 17; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i w = _mm_loadu_si128((const __m128i *)(const void *)(p + 1));
        __m128i after = _mm_or_si128(_mm_cmpeq_epi8(w, colon), _mm_cmpeq_epi8(w, space));
        __m128i is = _mm_and_si128(_mm_cmpeq_epi8(v, quote), after);
        __m128i odd = _mm_and_si128(_mm_cmpeq_epi8(v, slash), _mm_cmpeq_epi8(w, u));
        if (_mm_movemask_epi8(odd))
            return 1;
        for (unsigned at = (unsigned)_mm_movemask_epi8(is); at; at &= at - 1)
            if (name_take(c, p + __builtin_ctz(at)) < 0)
                return -1;
    }
#endif
    for (; p + 1 < c->end; p++) {
        if (*p == '\\' && p[1] == 'u')
            return 1;
        if (*p == '"' && (p[1] == ':' || p[1] == ' ' || p[1] == '\\') && name_take(c, p) < 0)
            return -1;
    }
    return 0;
}

int amp_postings_scan(struct amp_postings *t, const struct amp_term_names *names,
                      struct amp_span text, uint32_t off, struct amp_postings_found *found,
                      struct amp_error *err)
{
    size_t first = t->n;
    struct scan c = {
        .t = t, .names = names, .off = off, .start = text.p, .end = text.p + text.n, .err = err};
    int rc = text.n > AMP_FRAME_HEAD ? names_scan(&c) : 1;
    if (rc > 0) {
        t->n = first;
        c.found = (struct amp_postings_found){0};
        rc = strings_scan(&c, text);
    }
    *found = c.found;
    return rc;
}

void amp_postings_init(struct amp_postings *t)
{
    *t = (struct amp_postings){0};
    amp_buf_init(&t->mem, 64 * AMP_FRAME_MAX);
}

void amp_postings_release(struct amp_postings *t)
{
    free(t->v);
    amp_buf_release(&t->mem);
    *t = (struct amp_postings){0};
}

/* Radix sort by term: frames come in the order of their offsets, which the sort keeps. */
int amp_postings_sort(struct amp_postings *t, struct amp_error *err)
{
    enum { BITS = 11, BUCKETS = 1 << BITS, PASSES = 3 };
    if (t->n < 2)
        return 0;
    struct amp_term *to = malloc(t->n * sizeof *to), *from = t->v;
    if (!to)
        return amp_fail_memory(err);
    uint32_t count[PASSES][BUCKETS] = {{0}};
    for (size_t i = 0; i < t->n; i++)
        for (unsigned k = 0; k < PASSES; k++)
            count[k][(from[i].h >> k * BITS) & (BUCKETS - 1)]++;
    for (unsigned k = 0; k < PASSES; k++) {
        uint32_t *at = count[k], sum = 0;
        for (size_t b = 0; b < BUCKETS; b++) {
            uint32_t n = at[b];
            at[b] = sum;
            sum += n;
        }
        for (size_t i = 0; i < t->n; i++)
            to[at[(from[i].h >> k * BITS) & (BUCKETS - 1)]++] = from[i];
        struct amp_term *swap = from;
        from = to;
        to = swap;
    }
    /* Three passes: the result is in the other array. */
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (!n || from[i].h != to[n - 1].h || from[i].off != to[n - 1].off)
            to[n++] = from[i];
    free(from);
    t->v = to;
    t->n = n;
    t->cap = t->n;
    return 0;
}

size_t amp_postings_first(const struct amp_term *v, size_t n, uint32_t term)
{
    size_t a = 0, b = n;
    while (a < b) {
        size_t mid = a + (b - a) / 2;
        if (v[mid].h < term)
            a = mid + 1;
        else
            b = mid;
    }
    return a;
}
