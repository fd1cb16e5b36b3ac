/*
 * The tape scanner: one pass over one JSON text, one token a value.
 *
 * While a container is open its token's `next` holds the index of the container around it, so
 * nesting needs no stack. Keys are compared when their object closes: a few by their hashes in
 * pairs, many through a table, so that an object of 100,000 keys costs linear time.
 */
#include <amp/json/tape.h>

#include <stdio.h>
#include <stdlib.h>

#include "json/bytes.h"
#include "json/hash.h"
#include "json/text.h"

const struct amp_json_limits amp_json_limits_default = {
    .max_bytes = 32u << 20,
    .max_depth = 128,
    .max_tokens = 1000000,
};

enum { PAIRS = 12, FIRST_TOKENS = 256 };

struct scan {
    struct amp_tape *t;
    const unsigned char *base, *p, *end;
    const struct amp_json_hash_key *key;
    struct amp_json_fault *fault;
};

static int fail_at(struct scan *s, const char *code, const unsigned char *at, const char *what)
{
    s->fault->code = code;
    s->fault->offset = (uint32_t)(at - s->base);
    snprintf(s->fault->what, sizeof s->fault->what, "%s", what);
    return -1;
}

static int fail_unexpected(struct scan *s, const char *wanted)
{
    if (s->p >= s->end) {
        char what[120];
        snprintf(what, sizeof what, "the text ends where %s is wanted", wanted);
        return fail_at(s, "invalid_json", s->end, what);
    }
    unsigned char c = *s->p;
    char what[120];
    if (c > 0x20 && c < 0x7f)
        snprintf(what, sizeof what, "found '%c' where %s is wanted", c, wanted);
    else
        snprintf(what, sizeof what, "found byte 0x%02X where %s is wanted", c, wanted);
    return fail_at(s, "invalid_json", s->p, what);
}

static void add_hint(struct scan *s, const char *hint)
{
    size_t n = strlen(s->fault->what);
    snprintf(s->fault->what + n, sizeof s->fault->what - n, "%s", hint);
}

static int grow(struct scan *s)
{
    struct amp_tape *t = s->t;
    if (t->cap >= t->limits.max_tokens)
        return fail_at(s, "too_many_tokens", s->p, "more values than the limit allows");
    uint64_t cap = t->cap ? (uint64_t)t->cap * 2 : FIRST_TOKENS;
    if (cap > t->limits.max_tokens)
        cap = t->limits.max_tokens;
    struct amp_tok *tok = realloc(t->tok, (size_t)cap * sizeof *tok);
    if (!tok)
        return fail_at(s, "no_memory", s->p, "no memory for the tokens");
    t->tok = tok;
    t->cap = (uint32_t)cap;
    return 0;
}

static int scratch(struct scan *s, size_t bytes)
{
    struct amp_tape *t = s->t;
    if (bytes <= t->scratch_cap)
        return 0;
    void *p = bytes <= UINT32_MAX ? realloc(t->scratch, bytes) : NULL;
    if (!p)
        return fail_at(s, "no_memory", s->p, "no memory to compare the keys");
    t->scratch = p;
    t->scratch_cap = (uint32_t)bytes;
    return 0;
}

/* s->p is at a backslash inside a string. */
static int scan_escape(struct scan *s)
{
    const unsigned char *at = s->p;
    if (s->end - at < 2)
        return fail_at(s, "invalid_json", at, "string not closed");
    switch (at[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        s->p += 2;
        return 0;
    case 'u':
        break;
    default:
        return fail_at(s, "invalid_json", at, "unknown escape in a string");
    }
    int32_t unit = s->end - at >= 6 ? amp_json_hex4(at + 2) : -1;
    if (unit < 0)
        return fail_at(s, "invalid_json", at, "\\u wants four hexadecimal digits");
    s->p += 6;
    if (unit < 0xd800 || unit > 0xdfff)
        return 0;
    int32_t low = -1;
    if (unit <= 0xdbff && s->end - s->p >= 6 && s->p[0] == '\\' && s->p[1] == 'u')
        low = amp_json_hex4(s->p + 2);
    if (low < 0xdc00 || low > 0xdfff)
        return fail_at(s, "invalid_utf8", at, "half of a surrogate pair in a \\u escape");
    s->p += 6;
    return 0;
}

/* s->p is at a byte of 0x80 or above; passes every such character in a row. */
static int scan_utf8(struct scan *s)
{
    const unsigned char *p = s->p, *end = s->end;
    while (p < end && *p >= 0x80) {
        size_t n = amp_utf8_length(p, (size_t)(end - p));
        if (!n) {
            char what[80];
            snprintf(what, sizeof what, "byte 0x%02X does not begin a UTF-8 character here", *p);
            return fail_at(s, "invalid_utf8", p, what);
        }
        p += n;
    }
    s->p = p;
    return 0;
}

/* A string that is more than plain characters: s->p is where those end. On success s->p is at the
 * closing quote and the result is the token's flags, else it is -1. */
static __attribute__((noinline)) int rest_of_string(struct scan *s, const unsigned char *first)
{
    unsigned flags = 0;
    for (;;) {
        s->p = amp_skip_plain(s->p, s->end);
        if (s->p == s->end)
            return fail_at(s, "invalid_json", first - 1, "string not closed");
        unsigned char c = *s->p;
        if (c == '"')
            return (int)flags;
        if (c == '\\') {
            flags |= AMP_TOK_ESCAPED;
            if (s->end - s->p >= 6 && !memcmp(s->p, "\\u0000", 6))
                flags |= AMP_TOK_NUL;
            if (scan_escape(s)) {
                /* A string that is never closed is that, whatever its last escape is. */
                if (!memchr(s->p, '"', (size_t)(s->end - s->p)))
                    return fail_at(s, "invalid_json", first - 1, "string not closed");
                return -1;
            }
        } else if (c < 0x20) {
            return fail_at(s, "invalid_json", s->p,
                           c ? "control character in a string" : "NUL byte in a string");
        } else {
            flags |= AMP_TOK_NONASCII;
            if (scan_utf8(s))
                return -1;
        }
    }
}

/* The hash of a key with escapes in it is that of the text that it means. */
static int escaped_hash(struct scan *s, const unsigned char *raw, size_t len, uint32_t *hash)
{
    if (scratch(s, len))
        return -1;
    size_t n = amp_json_decode((const char *)raw, len, s->t->scratch);
    *hash = amp_json_hash32(s->key, s->t->scratch, n);
    return 0;
}

static inline const unsigned char *digits(const unsigned char *p, const unsigned char *end)
{
    while (p < end && (unsigned)(*p - '0') < 10)
        p++;
    return p;
}

/* s->p is at the minus or the first digit; on success behind the number, the result its flags. */
static int scan_number(struct scan *s)
{
    const unsigned char *first = s->p, *p = first, *end = s->end, *from;
    unsigned flags = 0;
    if (*p == '-')
        p++;
    from = p;
    p = digits(p, end);
    if (p == from) {
        s->p = p;
        return fail_unexpected(s, "a digit");
    }
    if (*from == '0' && p - from > 1)
        return fail_at(s, "invalid_json", first, "a number cannot begin with 0");
    if (p < end && *p == '.') {
        flags = AMP_TOK_FRACTION;
        from = ++p;
        p = digits(p, end);
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
        p = digits(p, end);
        if (p == from) {
            s->p = p;
            return fail_unexpected(s, "a digit of the exponent");
        }
    }
    s->p = p;
    return (int)flags;
}

static int scan_word(struct scan *s, const char *word, size_t n)
{
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
        return fail_unexpected(s, "a value");
    s->p += n;
    return 0;
}

static int fail_duplicate(struct scan *s, uint32_t key)
{
    const struct amp_tok *k = &s->t->tok[key];
    char name[64], what[120];
    size_t n = k->len < sizeof name - 4 ? k->len : sizeof name - 4;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = s->base[k->off + i];
        name[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
    }
    memcpy(name + n, n < k->len ? "..." : "", n < k->len ? 4 : 1);
    snprintf(what, sizeof what, "key \"%s\" stands twice in one object", name);
    return fail_at(s, "duplicate_key", s->base + k->off - 1, what);
}

static bool same_key(const struct amp_tape *t, uint32_t a, uint32_t b)
{
    return t->tok[a].count == t->tok[b].count && amp_json_same_text(t, a, t, b);
}

/* After an object has closed: finds a key that stands twice. */
static int check_keys(struct scan *s, uint32_t object)
{
    struct amp_tape *t = s->t;
    const struct amp_tok *tok = t->tok;
    uint32_t count = tok[object].count, k = object + 1;
    if (count <= PAIRS) {
        uint32_t keys[PAIRS];
        uint64_t seen = 0;
        for (uint32_t i = 0; i < count; i++, k = tok[k + 1].next) {
            uint64_t bit = 1ull << (tok[k].count & 63);
            if (seen & bit) {
                for (uint32_t j = 0; j < i; j++)
                    if (same_key(t, keys[j], k))
                        return fail_duplicate(s, k);
            }
            seen |= bit;
            keys[i] = k;
        }
        if (object == 0)
            t->names = seen;
        return 0;
    }
    size_t slots = 32;
    while (slots < (size_t)count * 2)
        slots *= 2;
    if (scratch(s, slots * sizeof(uint32_t)))
        return -1;
    uint32_t *table = t->scratch; /* 0: free; no key has token 0 */
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

static int before_text(struct scan *s)
{
    s->p = amp_skip_space(s->p, s->end);
    if (s->p == s->end)
        return fail_at(s, "invalid_json", s->p, "no JSON value");
    if (s->end - s->p >= 3 && !memcmp(s->p, "\xef\xbb\xbf", 3))
        return fail_at(s, "invalid_json", s->p, "a byte order mark before the value");
    return 0;
}

/* s->p is at a value that is neither string nor container. */
static int scan_scalar(struct scan *s, struct amp_tok *tok, uint32_t next)
{
    const unsigned char *first = s->p;
    int type, flags = 0;
    switch (*first) {
    case 't':
        type = scan_word(s, "true", 4) ? -1 : AMP_JSON_TRUE;
        break;
    case 'f':
        type = scan_word(s, "false", 5) ? -1 : AMP_JSON_FALSE;
        break;
    case 'n':
        type = scan_word(s, "null", 4) ? -1 : AMP_JSON_NULL;
        break;
    default:
        if (*first != '-' && (unsigned)(*first - '0') > 9)
            return fail_unexpected(s, "a value");
        flags = scan_number(s);
        type = flags < 0 ? -1 : AMP_JSON_NUMBER;
    }
    if (type < 0)
        return -1;
    *tok = (struct amp_tok){
        .off = (uint32_t)(first - s->base),
        .len = (uint32_t)(s->p - first),
        .next = next,
        .type = (uint8_t)type,
        .flags = (uint8_t)flags,
    };
    return 0;
}

/* The place in the text and the number of tokens are kept in local variables and handed to the
 * functions above only where the usual course is left. */
static int scan_text(struct scan *s)
{
    struct amp_tape *t = s->t;
    const struct amp_json_hash_key hash_key = *s->key;
    const unsigned char *const base = s->base, *const end = s->end, *p, *first;
    struct amp_tok *tok = t->tok;
    uint32_t n = 0, cap = t->cap, open = AMP_TOK_NONE, depth = 0, hash;
    bool object = false, key = false;
    int flags;

    if (before_text(s))
        return -1;
    p = s->p;

value:
    p = amp_skip_space(p, end);
    if (__builtin_expect(n == cap, 0)) {
        s->p = p;
        if (p == end)
            return fail_unexpected(s, "a value");
        if (grow(s))
            return -1;
        tok = t->tok;
        cap = t->cap;
    }
    if (p == end) {
        s->p = p;
        return fail_unexpected(s, key ? "a key in quotes" : "a value");
    }
    if (*p == '"') {
        first = p + 1;
        p = amp_skip_plain(first, end);
        flags = 0;
        if (p == end || *p != '"') {
            s->p = p;
            flags = rest_of_string(s, first);
            if (flags < 0)
                return -1;
            p = s->p;
        }
        if (!key) {
            tok[n] = (struct amp_tok){(uint32_t)(first - base), (uint32_t)(p - first), n + 1, 0,
                                      AMP_JSON_STRING,          (uint8_t)flags};
            n++;
            p++;
            goto after;
        }
        if (!(flags & AMP_TOK_ESCAPED))
            hash = amp_json_hash32(&hash_key, (const char *)first, (size_t)(p - first));
        else if (escaped_hash(s, first, (size_t)(p - first), &hash))
            return -1;
        tok[n] =
            (struct amp_tok){(uint32_t)(first - base), (uint32_t)(p - first),         n + 1, hash,
                             AMP_JSON_STRING,          (uint8_t)(flags | AMP_TOK_KEY)};
        n++;
        key = false;
        p = amp_skip_space(p + 1, end);
        if (p == end || *p != ':') {
            s->p = p;
            return fail_unexpected(s, "a colon");
        }
        p++;
        goto value;
    }
    if (key) {
        s->p = p;
        return fail_unexpected(s, "a key in quotes");
    }
    if (*p == '{' || *p == '[') {
        s->p = p;
        if (++depth > t->limits.max_depth)
            return fail_at(s, "too_deep", p, "nested deeper than the limit allows");
        object = *p == '{';
        tok[n] = (struct amp_tok){
            .off = (uint32_t)(p - base),
            .next = open,
            .type = object ? AMP_JSON_OBJECT : AMP_JSON_ARRAY,
        };
        open = n++;
        p = amp_skip_space(p + 1, end);
        if (p < end && *p == (object ? '}' : ']'))
            goto close;
        tok[open].count = 1;
        key = object;
        goto value;
    }
    s->p = p;
    if (scan_scalar(s, &tok[n], n + 1))
        return -1;
    n++;
    p = s->p;

after:
    if (open == AMP_TOK_NONE)
        goto done;
    p = amp_skip_space(p, end);
    if (p < end && *p == ',') {
        p++;
        tok[open].count++;
        key = object;
        goto value;
    }
    if (p == end || *p != (object ? '}' : ']')) {
        s->p = p;
        fail_unexpected(s, object ? "a comma or }" : "a comma or ]");
        if (p < end && tok[n - 1].type == AMP_JSON_STRING && *p != '"')
            add_hint(s, "; perhaps a quote is missing or one too many before it");
        return -1;
    }

close:
    p++;
    depth--;
    {
        uint32_t closed = open;
        open = tok[closed].next;
        tok[closed].len = (uint32_t)(p - base) - tok[closed].off;
        tok[closed].next = n;
        s->p = p;
        if (object && tok[closed].count > 1 && check_keys(s, closed))
            return -1;
        object = open != AMP_TOK_NONE && tok[open].type == AMP_JSON_OBJECT;
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
    struct scan s = {
        .t = t,
        .base = (const unsigned char *)text,
        .p = (const unsigned char *)text,
        .end = (const unsigned char *)text + n,
        .key = amp_json_hash_key(),
        .fault = fault ? fault : &unread,
    };
    t->n = 0;
    t->len = 0;
    t->text = text;
    t->names = UINT64_MAX;
    if (n > t->limits.max_bytes)
        return fail_at(&s, "line_too_long", s.base, "longer than the limit allows");
    if (scan_text(&s)) {
        t->n = 0;
        return -1;
    }
    t->len = (uint32_t)n;
    return 0;
}
