/* Reads a tape: members, elements, pointers, paths and numbers. */
#include <amp/json/tape.h>

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "json/bytes.h"
#include "json/decimal.h"
#include "json/hash.h"
#include "json/shapes.h"
#include "json/text.h"

void amp_json_shapes_start(struct amp_json_shapes *s)
{
    static atomic_uint_least64_t ids;
    memset(s, 0, sizeof *s);
    s->id = atomic_fetch_add(&ids, 1) + 1;
}

void amp_tape_init(struct amp_tape *t, const struct amp_json_limits *limits)
{
    *t = (struct amp_tape){.limits = limits ? *limits : amp_json_limits_default};
    if (t->limits.max_bytes > INT32_MAX)
        t->limits.max_bytes = INT32_MAX;
}

static void memory_free(struct amp_tape *t)
{
    if (t->memory)
        free(t->memory->scratch);
    free(t->memory);
    t->memory = NULL;
}

void amp_tape_release(struct amp_tape *t)
{
    free(t->tok);
    memory_free(t);
    *t = (struct amp_tape){.limits = t->limits};
}

bool amp_json_fault_is_memory(const struct amp_json_fault *fault)
{
    return amp_code_is(fault->code, no_memory);
}

int amp_json_fail(struct amp_error *err, enum amp_status status, const char *code, const char *what,
                  const struct amp_json_fault *fault)
{
    return amp_json_fault_is_memory(fault)
               ? amp_fail_memory(err)
               : amp_fail_text(err, status, code, "%s: %s", what, fault->what);
}

void amp_tape_settle(struct amp_tape *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        t->tok[i].shape = 0; /* numbers of the table that is freed */
    struct amp_tok *tok = t->n ? realloc(t->tok, t->n * sizeof *tok) : NULL;
    if (tok)
        t->tok = tok;
    memory_free(t);
}

struct amp_span amp_tok_raw(const struct amp_tape *t, uint32_t tok)
{
    return (struct amp_span){t->text + t->tok[tok].off, t->tok[tok].len};
}

struct amp_span amp_tok_source(const struct amp_tape *t, uint32_t tok)
{
    const struct amp_tok *k = &t->tok[tok];
    uint32_t quote = k->type == AMP_JSON_STRING;
    return (struct amp_span){t->text + k->off - quote, k->len + 2 * quote};
}

bool amp_tok_int(const struct amp_tape *t, uint32_t tok, int64_t *out)
{
    const struct amp_tok *k = &t->tok[tok];
    if (k->type != AMP_JSON_NUMBER)
        return false;
    if (!(k->flags & AMP_TOK_FRACTION) && k->len <= 18) {
        *out = amp_small_int(t->text + k->off, k->len);
        return true;
    }
    struct amp_decimal d = amp_decimal_read(amp_tok_raw(t, tok));
    return amp_decimal_int64(&d, out);
}

bool amp_tok_real(const struct amp_tape *t, uint32_t tok, double *out)
{
    if (t->tok[tok].type != AMP_JSON_NUMBER)
        return false;
    struct amp_decimal d = amp_decimal_read(amp_tok_raw(t, tok));
    if (!d.n) {
        *out = 0;
        return true;
    }
    if (d.point > 400)
        return false;
    if (d.point < -400) {
        *out = 0;
        return true;
    }
    /* Of the digits after the 770th, only the fact that there are any can change a double. */
    char text[800];
    size_t n = 0;
    const char *p = d.first;
    text[n++] = d.neg ? '-' : '+';
    text[n++] = '.';
    for (uint32_t i = 0; i < d.n && i < 770; i++, p++) {
        if (*p == '.')
            p++;
        text[n++] = *p;
    }
    if (d.n > 770)
        text[n++] = '1';
    snprintf(text + n, sizeof text - n, "e%d", (int)d.point);
    double v = strtod(text, NULL);
    if (!isfinite(v))
        return false;
    *out = v;
    return true;
}

const char *amp_json_type_name(enum amp_json_type type)
{
    static const char *const names[] = {
        [AMP_JSON_NULL] = "null",     [AMP_JSON_FALSE] = "boolean", [AMP_JSON_TRUE] = "boolean",
        [AMP_JSON_NUMBER] = "number", [AMP_JSON_STRING] = "string", [AMP_JSON_ARRAY] = "array",
        [AMP_JSON_OBJECT] = "object",
    };
    return (unsigned)type < sizeof names / sizeof *names ? names[type] : "value";
}

/* Recognizing a protocol looks up many absent names in the outermost object: the scanner's bits
 * answer most of these look-ups with one hash. */
static uint32_t get_outermost(const struct amp_tape *t, struct amp_span key)
{
    const struct amp_tok *tok = t->tok;
    uint32_t hash = amp_json_hash32(amp_json_hash_key(), key.p, key.n), k = 1;
    if (t->memory && !(t->memory->names >> (hash & 63) & 1))
        return AMP_TOK_NONE;
    for (uint32_t i = 0; i < tok[0].count; i++, k = tok[k + 1].next)
        if (tok[k].count == hash &&
            (tok[k].flags & AMP_TOK_ESCAPED
                 ? amp_tok_is(t, k, key)
                 : tok[k].len == key.n && amp_same_bytes(t->text + tok[k].off, key.p, key.n)))
            return k + 1;
    return AMP_TOK_NONE;
}

uint32_t amp_tape_get(const struct amp_tape *t, uint32_t object, struct amp_span key)
{
    if (object >= t->n || t->tok[object].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    const struct amp_tok *tok = t->tok;
    uint32_t k = object + 1;
    if (object == 0 && tok[0].count > 2)
        return get_outermost(t, key);
    /* Most keys differ in their lengths; hashing the name would cost more than it saves. */
    for (uint32_t i = 0; i < tok[object].count; i++, k = tok[k + 1].next) {
        if (__builtin_expect(tok[k].flags & AMP_TOK_ESCAPED, 0)) {
            if (amp_tok_is(t, k, key))
                return k + 1;
        } else if (tok[k].len == key.n && amp_same_bytes(t->text + tok[k].off, key.p, key.n)) {
            return k + 1;
        }
    }
    return AMP_TOK_NONE;
}

uint32_t amp_tape_at(const struct amp_tape *t, uint32_t array, uint32_t index)
{
    if (array >= t->n || t->tok[array].type != AMP_JSON_ARRAY || index >= t->tok[array].count)
        return AMP_TOK_NONE;
    uint32_t k = array + 1;
    while (index--)
        k = t->tok[k].next;
    return k;
}

/* One step of a pointer; name still has its ~ escapes. */
static uint32_t pointer_step(const struct amp_tape *t, uint32_t at, struct amp_span name)
{
    if (t->tok[at].type == AMP_JSON_ARRAY) {
        uint32_t index = 0;
        if (name.n == 0 || name.n > 9 || (name.p[0] == '0' && name.n > 1))
            return AMP_TOK_NONE;
        for (size_t i = 0; i < name.n; i++) {
            if (name.p[i] < '0' || name.p[i] > '9')
                return AMP_TOK_NONE;
            index = index * 10 + (uint32_t)(name.p[i] - '0');
        }
        return amp_tape_at(t, at, index);
    }
    if (!name.n || !memchr(name.p, '~', name.n))
        return amp_tape_get(t, at, name);
    AMP_FREE char *plain = malloc(name.n);
    size_t n = 0;
    if (!plain)
        return AMP_TOK_NONE;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '~') {
            if (++i == name.n || (name.p[i] != '0' && name.p[i] != '1'))
                return AMP_TOK_NONE;
            c = name.p[i] == '0' ? '~' : '/';
        }
        plain[n++] = c;
    }
    return amp_tape_get(t, at, (struct amp_span){plain, n});
}

uint32_t amp_tape_pointer(const struct amp_tape *t, uint32_t from, struct amp_span pointer)
{
    if (from >= t->n || (pointer.n && pointer.p[0] != '/'))
        return AMP_TOK_NONE;
    while (pointer.n && from != AMP_TOK_NONE) {
        pointer.p++;
        pointer.n--;
        const char *slash = pointer.n ? memchr(pointer.p, '/', pointer.n) : NULL;
        size_t n = slash ? (size_t)(slash - pointer.p) : pointer.n;
        from = pointer_step(t, from, (struct amp_span){pointer.p, n});
        pointer.p += n;
        pointer.n -= n;
    }
    return from;
}

/* Adds a key as a segment: with ~ escapes to the pointer; to the dotted form as it is if it is a
 * plain word, otherwise its source text in brackets and quotes. */
static int add_key(const struct amp_tape *t, uint32_t key, struct amp_buf *pointer,
                   struct amp_buf *dotted, struct amp_error *err)
{
    struct amp_span raw = amp_tok_raw(t, key);
    const char *p = raw.p, *end = raw.p + raw.n;
    bool plain = raw.n > 0;
    if (pointer && amp_buf_str(pointer, "/", err) < 0)
        return -1;
    while (p < end) {
        char c[4];
        size_t n = amp_json_decode_one(&p, end, c);
        bool word = n == 1 && ((c[0] >= '0' && c[0] <= '9') || (c[0] >= 'a' && c[0] <= 'z') ||
                               (c[0] >= 'A' && c[0] <= 'Z') || strchr("_-$@", c[0]));
        plain = plain && word && c[0];
        if (!pointer)
            continue;
        const char *tilde = n == 1 && c[0] == '~' ? "~0" : n == 1 && c[0] == '/' ? "~1" : NULL;
        if (tilde ? amp_buf_str(pointer, tilde, err) : amp_buf_add(pointer, c, n, err))
            return -1;
    }
    if (!dotted)
        return 0;
    if (plain)
        return (dotted->len && amp_buf_str(dotted, ".", err)) ||
                       amp_buf_add(dotted, raw.p, raw.n, err)
                   ? -1
                   : 0;
    return amp_buf_str(dotted, "[\"", err) || amp_buf_add(dotted, raw.p, raw.n, err) ||
                   amp_buf_str(dotted, "\"]", err)
               ? -1
               : 0;
}

int amp_tape_path(const struct amp_tape *t, uint32_t tok, struct amp_buf *pointer,
                  struct amp_buf *dotted, struct amp_error *err)
{
    uint32_t at = 0;
    while (at != tok && at < t->n) {
        const struct amp_tok *c = &t->tok[at];
        uint32_t k = at + 1, index = 0;
        if (c->type == AMP_JSON_OBJECT) {
            while (k < c->next && t->tok[k + 1].next <= tok)
                k = t->tok[k + 1].next;
            if (k >= c->next)
                break;
            if (add_key(t, k, pointer, dotted, err) < 0)
                return -1;
            if (tok == k) /* a key has the path of its member */
                return 0;
            at = k + 1;
        } else if (c->type == AMP_JSON_ARRAY) {
            for (; k < c->next && t->tok[k].next <= tok; index++)
                k = t->tok[k].next;
            if (k >= c->next)
                break;
            if ((pointer && amp_buf_fmt(pointer, err, "/%u", index) < 0) ||
                (dotted && amp_buf_fmt(dotted, err, "[%u]", index) < 0))
                return -1;
            at = k;
        } else {
            break;
        }
    }
    return 0;
}
