/* Equality of values. Objects with many members are compared by sorted hashes, in n log n instead
 * of n squared. */
#include "json/equal.h"

#include <stdlib.h>
#include <string.h>

#include "json/decimal.h"
#include "json/hash.h"
#include "json/text.h"

enum { FEW = 24 };

struct member {
    uint32_t hash, key;
};

static int by_hash(const void *x, const void *y)
{
    const struct member *a = x, *b = y;
    return a->hash < b->hash ? -1 : a->hash > b->hash;
}

static struct member *members_sorted(const struct amp_tape *t, uint32_t object)
{
    uint32_t n = t->tok[object].count, k = object + 1;
    struct member *m = malloc(n * sizeof *m);
    if (!m)
        return NULL;
    for (uint32_t i = 0; i < n; i++, k = t->tok[k + 1].next)
        m[i] = (struct member){t->tok[k].count, k};
    qsort(m, n, sizeof *m, by_hash);
    return m;
}

static bool many_equal(const struct amp_tape *a, uint32_t x, const struct amp_tape *b, uint32_t y)
{
    AMP_FREE struct member *p = members_sorted(a, x);
    AMP_FREE struct member *q = members_sorted(b, y);
    uint32_t n = a->tok[x].count;
    if (!p || !q)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        bool found = false;
        /* Members with the same hash are adjacent, in any order: start at the first of them. */
        uint32_t j = i;
        while (j > 0 && q[j - 1].hash == p[i].hash)
            j--;
        for (; j < n && q[j].hash == p[i].hash && !found; j++)
            found = amp_json_same_text(a, p[i].key, b, q[j].key) &&
                    amp_tape_equal(a, p[i].key + 1, b, q[j].key + 1);
        if (!found)
            return false;
    }
    return true;
}

static bool objects_equal(const struct amp_tape *a, uint32_t x, const struct amp_tape *b,
                          uint32_t y)
{
    uint32_t n = a->tok[x].count, k = x + 1, j = y + 1;
    if (n > FEW)
        return many_equal(a, x, b, y);
    for (uint32_t i = 0; i < n; i++, k = a->tok[k + 1].next) {
        uint32_t seen = 0;
        /* The order is usually the same: continue after the last match. */
        while (seen < n &&
               !(a->tok[k].count == b->tok[j].count && amp_json_same_text(a, k, b, j))) {
            j = b->tok[j + 1].next;
            if (j == b->tok[y].next)
                j = y + 1;
            seen++;
        }
        if (seen == n || !amp_tape_equal(a, k + 1, b, j + 1))
            return false;
    }
    return true;
}

static bool numbers_equal(const struct amp_tape *a, uint32_t x, const struct amp_tape *b,
                          uint32_t y)
{
    struct amp_span p = amp_tok_raw(a, x), q = amp_tok_raw(b, y);
    if (p.n == q.n && memcmp(p.p, q.p, p.n) == 0)
        return true;
    struct amp_decimal d = amp_decimal_read(p), e = amp_decimal_read(q);
    return amp_decimal_compare(&d, &e) == 0;
}

bool amp_tape_equal(const struct amp_tape *a, uint32_t x, const struct amp_tape *b, uint32_t y)
{
    const struct amp_tok *p = &a->tok[x], *q = &b->tok[y];
    if (p->type != q->type)
        return false;
    switch (p->type) {
    case AMP_JSON_NUMBER:
        return numbers_equal(a, x, b, y);
    case AMP_JSON_STRING:
        return amp_json_same_text(a, x, b, y);
    case AMP_JSON_ARRAY: {
        if (p->count != q->count)
            return false;
        uint32_t k = x + 1, j = y + 1;
        for (; k < p->next; k = a->tok[k].next, j = b->tok[j].next)
            if (!amp_tape_equal(a, k, b, j))
                return false;
        return true;
    }
    case AMP_JSON_OBJECT:
        return p->count == q->count && objects_equal(a, x, b, y);
    default:
        return true;
    }
}

static uint64_t text_hash(const struct amp_tape *t, uint32_t tok, const struct amp_json_hash_key *k)
{
    const struct amp_tok *s = &t->tok[tok];
    const char *p = t->text + s->off, *end = p + s->len;
    if (!(s->flags & AMP_TOK_ESCAPED))
        return amp_json_hash64(k, p, s->len);
    char few[256];
    AMP_FREE char *many = s->len > sizeof few ? malloc(s->len) : NULL;
    char *dst = s->len > sizeof few ? many : few;
    if (dst)
        return amp_json_hash64(k, dst, amp_json_decode(p, (size_t)(end - p), dst));
    return k->a; /* out of memory: a weak but valid hash */
}

uint64_t amp_tape_hash(const struct amp_tape *t, uint32_t tok)
{
    const struct amp_json_hash_key *key = amp_json_hash_key();
    const struct amp_tok *v = &t->tok[tok];
    uint64_t h = amp_json_mix(key->a ^ v->type, key->b ^ 0x9e3779b97f4a7c15u);
    switch (v->type) {
    case AMP_JSON_NUMBER: {
        struct amp_decimal d = amp_decimal_read(amp_tok_raw(t, tok));
        return h ^ amp_decimal_hash(&d, key);
    }
    case AMP_JSON_STRING:
        return h ^ text_hash(t, tok, key);
    case AMP_JSON_ARRAY:
        for (uint32_t k = tok + 1; k < v->next; k = t->tok[k].next)
            h = amp_json_mix(h ^ key->b, amp_tape_hash(t, k) ^ key->a);
        return h;
    case AMP_JSON_OBJECT: {
        uint64_t sum = 0;
        for (uint32_t k = tok + 1; k < v->next; k = t->tok[k + 1].next)
            sum += amp_json_mix(t->tok[k].count ^ key->b, amp_tape_hash(t, k + 1) ^ key->a);
        return amp_json_mix(h ^ key->b, sum ^ key->a);
    }
    default:
        return h;
    }
}
