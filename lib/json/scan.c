/*
 * The tape scanner: one pass over one JSON text, one token per value.
 *
 * While a container is open, `next` of its token is the index of the enclosing container, so
 * nesting needs no stack. Keys are compared when their object ends: a few in pairs by their hashes,
 * many with a table, so an object of 100,000 keys takes linear time.
 */
#include <amp/json/tape.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "json/bytes.h"
#include "json/scan.h"
#include "json/text.h"

const struct amp_json_limits amp_json_limits_default = {
    .max_bytes = 32u << 20,
    .max_depth = 128,
    .max_tokens = 1000000,
};

enum { PAIRS = 12, FIRST_TOKENS = 256 };

static int fail_unexpected(struct amp_scan *s, const char *wanted)
{
    if (s->p >= s->end) {
        char what[120];
        snprintf(what, sizeof what, "the text ends where %s is wanted", wanted);
        return amp_scan_fail(s, AMP_CODE(invalid_json), s->end, what);
    }
    unsigned char c = *s->p;
    char what[120];
    if (c >= 0x80 && !amp_utf8_length(s->p, (size_t)(s->end - s->p)))
        return amp_scan_fail_utf8(s, s->p);
    if (c > 0x20 && c < 0x7f)
        snprintf(what, sizeof what, "found '%c' where %s is wanted", c, wanted);
    else
        snprintf(what, sizeof what, "found byte 0x%02X where %s is wanted", c, wanted);
    return amp_scan_fail(s, AMP_CODE(invalid_json), s->p, what);
}

static void add_hint(struct amp_scan *s, const char *hint)
{
    size_t n = strlen(s->fault->what);
    snprintf(s->fault->what + n, sizeof s->fault->what - n, "%s", hint);
}

static int tokens_grow(struct amp_scan *s)
{
    struct amp_tape *t = s->t;
    if (t->memory->cap >= t->limits.max_tokens)
        return amp_scan_fail(s, AMP_CODE(too_many_tokens), s->p,
                             "more values than the limit allows");
    uint64_t cap = t->memory->cap ? (uint64_t)t->memory->cap * 2 : FIRST_TOKENS;
    if (cap > t->limits.max_tokens)
        cap = t->limits.max_tokens;
    struct amp_tok *tok = realloc(t->tok, (size_t)cap * sizeof *tok);
    if (!tok)
        return amp_scan_fail(s, AMP_CODE(no_memory), s->p, "no memory for the tokens");
    t->tok = tok;
    t->memory->cap = (uint32_t)cap;
    return 0;
}

static inline const unsigned char *digits_skip(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (unsigned)(*p - '0') < 10)
        p++;
    return p;
}

/* Scans a number at s->p, which moves past it. Returns its flags. */
static int scan_number(struct amp_scan *s)
{
    const unsigned char *first = s->p, *p = first, *end = s->end, *from;
    unsigned flags = 0;
    if (*p == '-')
        p++;
    from = p;
    p = digits_skip(p, end);
    if (p == from) {
        s->p = p;
        return fail_unexpected(s, "a digit");
    }
    if (*from == '0' && p - from > 1)
        return amp_scan_fail(s, AMP_CODE(invalid_json), first, "a number cannot begin with 0");
    if (p < end && *p == '.') {
        flags = AMP_TOK_FRACTION;
        from = ++p;
        p = digits_skip(p, end);
        if (p == from) {
            s->p = p;
            return fail_unexpected(s, "a digit after the decimal point");
        }
    }
    if (p < end && (*p | 0x20) == 'e') {
        flags = AMP_TOK_FRACTION;
        p++;
        if (p < end && (*p == '+' || *p == '-'))
            p++;
        from = p;
        p = digits_skip(p, end);
        if (p == from) {
            s->p = p;
            return fail_unexpected(s, "a digit of the exponent");
        }
    }
    s->p = p;
    return (int)flags;
}

/* Scans true, false or null. Returns its type. */
static int scan_word(struct amp_scan *s)
{
    size_t left = (size_t)(s->end - s->p);
    if (left >= 4 && !memcmp(s->p, "true", 4)) {
        s->p += 4;
        return AMP_JSON_TRUE;
    }
    if (left >= 4 && !memcmp(s->p, "null", 4)) {
        s->p += 4;
        return AMP_JSON_NULL;
    }
    if (left >= 5 && !memcmp(s->p, "false", 5)) {
        s->p += 5;
        return AMP_JSON_FALSE;
    }
    return fail_unexpected(s, "a value");
}

static int fail_duplicate(struct amp_scan *s, uint32_t key)
{
    const struct amp_tok *k = &s->t->tok[key];
    char name[64], what[120];
    size_t n = k->len < sizeof name - 4 ? k->len : sizeof name - 4;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = s->base[k->off + i];
        name[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    memcpy(name + n, n < k->len ? "..." : "", n < k->len ? 4 : 1);
    snprintf(what, sizeof what, "duplicate key \"%s\" in an object", name);
    return amp_scan_fail(s, AMP_CODE(duplicate_key), s->base + k->off - 1, what);
}

static bool same_key(const struct amp_tape *t, uint32_t a, uint32_t b)
{
    return t->tok[a].count == t->tok[b].count && amp_json_same_text(t, a, t, b);
}

/* Fails if the object has a duplicate key. *names: a bit for each key. */
static int check_keys(struct amp_scan *s, uint32_t object, uint64_t *names)
{
    struct amp_tape *t = s->t;
    const struct amp_tok *tok = t->tok;
    uint32_t count = tok[object].count, k = object + 1;
    if (count <= PAIRS) {
        const struct amp_tok *key = tok + k, *keys[PAIRS];
        uint64_t seen = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint64_t bit = 1ull << (key->count & 63);
            if (__builtin_expect(seen & bit, 0)) {
                for (uint32_t j = 0; j < i; j++)
                    if (keys[j]->count == key->count &&
                        same_key(t, (uint32_t)(keys[j] - tok), (uint32_t)(key - tok)))
                        return fail_duplicate(s, (uint32_t)(key - tok));
            }
            seen |= bit;
            keys[i] = key;
            key = key[1].next == (uint32_t)(key - tok) + 2 ? key + 2 : tok + key[1].next;
        }
        *names = seen;
        return 0;
    }
    *names = UINT64_MAX;
    size_t slots = 32;
    while (slots < (size_t)count * 2)
        slots *= 2;
    if (amp_scan_scratch(s, slots * sizeof(uint32_t)) < 0)
        return -1;
    uint32_t *table = t->memory->scratch; /* 0: free; no key has token 0 */
    memset(table, 0, slots * sizeof *table);
    for (uint32_t i = 0; i < count; i++, k = tok[k + 1].next) {
        size_t at = tok[k].count & (slots - 1);
        for (; table[at]; at = (at + 1) & (slots - 1))
            if (same_key(t, table[at], k))
                return fail_duplicate(s, k);
        table[at] = k;
    }
    return 0;
}

static int before_text(struct amp_scan *s)
{
    s->p = amp_skip_space(s->p, s->end);
    if (s->p == s->end)
        return amp_scan_fail(s, AMP_CODE(invalid_json), s->p, "no JSON value");
    if (s->end - s->p >= 3 && !memcmp(s->p, "\xef\xbb\xbf", 3))
        return amp_scan_fail(s, AMP_CODE(invalid_json), s->p, "a byte order mark before the value");
    return 0;
}

/* Three stores if the byte order allows them; compilers assemble a structure in vector registers.
 */
static inline void put_token(struct amp_tok *k, uint32_t off, uint32_t len, uint32_t next,
                             uint32_t count, unsigned type, unsigned flags)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    char *at = (char *)k;
    uint64_t place = off | (uint64_t)len << 32, links = next | (uint64_t)count << 32;
    uint32_t kind = type | flags << 8;
    _Static_assert(offsetof(struct amp_tok, len) == 4 && offsetof(struct amp_tok, next) == 8 &&
                       offsetof(struct amp_tok, count) == 12 &&
                       offsetof(struct amp_tok, type) == 16 &&
                       offsetof(struct amp_tok, flags) == 17 && sizeof *k == 20,
                   "the token's fields as they are stored here");
    memcpy(at, &place, sizeof place);
    memcpy(at + 8, &links, sizeof links);
    memcpy(at + 16, &kind, sizeof kind);
#else
    *k = (struct amp_tok){off, len, next, count, (uint8_t)type, (uint8_t)flags, 0};
#endif
}

/* Keys in an order that was compared before are not compared again. */
static inline int close_object(struct amp_scan *s, uint32_t object, uint64_t chain)
{
    struct amp_tape *t = s->t;
    struct amp_json_shapes *shapes = &t->memory->shapes;
    struct amp_tok *k = &t->tok[object];
    uint64_t names = UINT64_MAX;
    unsigned at = 0;
    bool shaped = chain && shapes->id && k->count <= AMP_SHAPE_KEYS;
    if (shaped)
        k->shape = amp_shape_find(shapes, chain, &at);
    if (k->shape) {
        names = shapes->names[at];
    } else {
        if (k->count > 1 && check_keys(s, object, &names))
            return -1;
        if (shaped)
            k->shape = amp_shape_add(shapes, chain, at, names);
    }
    if (object == 0)
        t->memory->names = names;
    return 0;
}

/* The position and the number of tokens are local variables, and are passed to the functions above
 * only in unusual cases. A sign is looked for at its usual place before white space is skipped. */
static int scan_text(struct amp_scan *s)
{
    struct amp_tape *t = s->t;
    const struct amp_json_hash_key hash_key = *s->key;
    const unsigned char *const base = s->base, *const end = s->end, *p, *first;
    const unsigned char *const last = end - base < 16 ? base : end - 15; /* see amp_to_quote */
    struct amp_tok *tok = t->tok, *k = tok, *open = NULL; /* k: the next token, number n */
    uint32_t n = 0, cap = t->memory->cap, depth = 0;
    /* The chain of the keys of the object that is open, and of those around it. */
    uint64_t chain = 0, around[AMP_SHAPE_DEPTH], hash, escaped;
    bool object = false;
    int flags;

    if (before_text(s) < 0)
        return -1;
    p = s->p;
    goto value;

key:
    if (__builtin_expect(p == end || *p != '"', 0)) {
        p = amp_skip_space(p, end);
        if (p == end || *p != '"') {
            s->p = p;
            return fail_unexpected(s, "a key in quotes");
        }
    }
    if (__builtin_expect(n == cap, 0)) {
        uint32_t at = (uint32_t)(open - tok);
        s->p = p;
        if (tokens_grow(s) < 0)
            return -1;
        tok = t->tok;
        cap = t->memory->cap;
        k = tok + n;
        open = tok + at;
    }
    first = ++p;
    flags = AMP_TOK_KEY;
    if (__builtin_expect(amp_to_quote(&p, end, last), 1)) {
        hash = amp_json_hash64(&hash_key, (const char *)first, (size_t)(p - first));
    } else {
        s->p = p;
        flags = amp_scan_rest_of_string(s, first);
        if (flags < 0)
            return -1;
        p = s->p;
        if (!(flags & AMP_TOK_ESCAPED))
            hash = amp_json_hash64(&hash_key, (const char *)first, (size_t)(p - first));
        else if (amp_scan_escaped_hash(s, first, (size_t)(p - first), &escaped))
            return -1;
        else
            hash = escaped;
        flags |= AMP_TOK_KEY;
    }
    chain = amp_shape_chain(chain, hash, hash_key.a);
    n++;
    put_token(k++, (uint32_t)(first - base), (uint32_t)(p - first), n, amp_json_fold(hash),
              AMP_JSON_STRING, (unsigned)flags);
    p++;
    if (__builtin_expect(p == end || *p != ':', 0)) {
        p = amp_skip_space(p, end);
        if (p == end || *p != ':') {
            s->p = p;
            return fail_unexpected(s, "a colon");
        }
    }
    p++;

value:
    if (__builtin_expect(n == cap, 0)) {
        uint32_t at = open ? (uint32_t)(open - tok) : 0;
        s->p = p = amp_skip_space(p, end);
        if (p == end)
            return fail_unexpected(s, "a value");
        if (tokens_grow(s) < 0)
            return -1;
        tok = t->tok;
        cap = t->memory->cap;
        k = tok + n;
        open = open ? tok + at : NULL;
    }
    if (p == end || *p != '"')
        p = amp_skip_space(p, end);
    if (p == end) {
        s->p = p;
        return fail_unexpected(s, "a value");
    }
    if (*p == '"') {
        first = ++p;
        flags = 0;
        if (__builtin_expect(!amp_to_quote(&p, end, last), 0)) {
            s->p = p;
            flags = amp_scan_rest_of_string(s, first);
            if (flags < 0)
                return -1;
            p = s->p;
        }
        n++;
        put_token(k++, (uint32_t)(first - base), (uint32_t)(p - first), n, 0, AMP_JSON_STRING,
                  (unsigned)flags);
        p++;
        goto after;
    }
    if (*p == '{' || *p == '[') {
        s->p = p;
        if (++depth > t->limits.max_depth)
            return amp_scan_fail(s, AMP_CODE(too_deep), p, "nested deeper than the limit allows");
        object = *p == '{';
        put_token(k, (uint32_t)(p - base), 0, open ? (uint32_t)(open - tok) : AMP_TOK_NONE, 0,
                  object ? AMP_JSON_OBJECT : AMP_JSON_ARRAY, 0);
        if (depth <= AMP_SHAPE_DEPTH)
            around[depth - 1] = chain;
        chain = hash_key.b;
        open = k++;
        n++;
        p = amp_skip_space(p + 1, end);
        if (p < end && *p == (object ? '}' : ']'))
            goto close;
        open->count = 1;
        if (object)
            goto key;
        goto value;
    }
    first = p;
    if ((unsigned)(*p - '0') < 10 || *p == '-') {
        /* Usually a few digits without a leading zero. */
        p = digits_skip(p + 1, end);
        flags = 0;
        if (p == end || (unsigned)(first[*first == '-'] - '1') > 8 || (*p | 0x20) == 'e' ||
            *p == '.') {
            s->p = first;
            flags = scan_number(s);
            if (flags < 0)
                return -1;
            p = s->p;
        }
        n++;
        put_token(k++, (uint32_t)(first - base), (uint32_t)(p - first), n, 0, AMP_JSON_NUMBER,
                  (unsigned)flags);
    } else {
        s->p = p;
        int type = scan_word(s);
        if (type < 0)
            return -1;
        p = s->p;
        n++;
        put_token(k++, (uint32_t)(first - base), (uint32_t)(p - first), n, 0, (unsigned)type, 0);
    }

after:
    if (!open)
        goto done;
    if (p == end || *p != ',')
        p = amp_skip_space(p, end);
    if (__builtin_expect(p != end && *p == ',', 1)) {
        p++;
        open->count++;
        if (object)
            goto key;
        goto value;
    }
    if (p == end || *p != (object ? '}' : ']')) {
        s->p = p;
        fail_unexpected(s, object ? "a comma or }" : "a comma or ]");
        if (p < end && k[-1].type == AMP_JSON_STRING && *p != '"')
            add_hint(s, "; perhaps a quote is missing or one too many before it");
        return -1;
    }

close:
    p++;
    depth--;
    {
        struct amp_tok *closed = open;
        uint32_t outer = closed->next;
        open = outer == AMP_TOK_NONE ? NULL : tok + outer;
        closed->len = (uint32_t)(p - base) - closed->off;
        closed->next = n;
        s->p = p;
        if (object &&
            close_object(s, (uint32_t)(closed - tok), depth < AMP_SHAPE_DEPTH ? chain : 0))
            return -1;
        if (depth < AMP_SHAPE_DEPTH)
            chain = around[depth];
        object = open && open->type == AMP_JSON_OBJECT;
    }
    goto after;

done:
    s->p = amp_skip_space(p, end);
    if (s->p != end)
        return fail_unexpected(s, "the end of the text");
    t->n = n;
    return 0;
}

int amp_tape_scan(struct amp_tape *t, const char *text, size_t n, struct amp_json_fault *fault)
{
    struct amp_json_fault unread;
    struct amp_scan s = {
        .t = t,
        .base = (const unsigned char *)text,
        .p = (const unsigned char *)text,
        .end = (const unsigned char *)text + n,
        .key = amp_json_hash_key(),
        .fault = fault ? fault : &unread,
    };
    uint32_t cap = t->n; /* of a settled tape */
    t->n = 0;
    t->len = 0;
    t->text = text;
    if (!t->memory) {
        if (!(t->memory = malloc(sizeof *t->memory)))
            return amp_scan_fail(&s, AMP_CODE(no_memory), s.base, "no memory for the tokens");
        t->memory->cap = cap;
        t->memory->scratch_cap = 0;
        t->memory->scratch = NULL;
        t->memory->shapes.id = 0;
    } else if (!t->memory->shapes.id || t->memory->shapes.misses > AMP_SHAPE_MISSES) {
        amp_json_shapes_start(&t->memory->shapes);
    }
    t->memory->names = UINT64_MAX;
    if (n > t->limits.max_bytes)
        return amp_scan_fail(&s, AMP_CODE(line_too_long), s.base, "longer than the limit allows");
    if (scan_text(&s)) {
        t->n = 0;
        return -1;
    }
    t->len = (uint32_t)n;
    return 0;
}
