/* The check of objects and arrays. Members are found by the hashes that the scanner put into their
 * keys, so a usual object costs one look-up for each member. */
#include <stdlib.h>
#include <string.h>

#include "schema/check/run.h"
#include "json/bytes.h"
#include "json/equal.h"
#include "json/shapes.h"
#include "json/text.h"

enum { PAID = 16 }; /* containers of more children are counted as steps */

const struct amp_property *amp_run_property(const struct amp_schema_run *r,
                                            const struct amp_object_rules *o, uint32_t key)
{
    const struct amp_tok *k = &r->t->tok[key];
    if (!o->slots)
        return NULL;
    for (uint32_t at = k->count & o->mask; o->slots[at]; at = (at + 1) & o->mask) {
        const struct amp_property *p = &o->properties[o->slots[at] - 1];
        if (p->hash != k->count)
            continue;
        if (k->flags & AMP_TOK_ESCAPED
                ? amp_tok_is(r->t, key, p->name)
                : p->name.n == k->len && amp_same_bytes(p->name.p, r->t->text + k->off, k->len))
            return p;
    }
    return NULL;
}

/* One member against the pattern properties; sets *found if one applied. */
static bool check_patterns(struct amp_schema_run *r, const struct amp_node *n, uint32_t key,
                           bool *found)
{
    const struct amp_object_rules *o = n->object;
    bool ok = true;
    if (o->n_patterns >= 16 && !amp_run_spend(r, o->n_patterns / 16))
        return false;
    for (uint32_t i = 0; i < o->n_patterns; i++) {
        struct amp_span name = amp_tok_raw(r->t, key);
        if ((r->t->tok[key].flags & AMP_TOK_ESCAPED) && !amp_run_text(r, key, &name))
            return false;
        if (!amp_run_pattern(r, o->patterns[i].pattern, name)) {
            if (r->failed)
                return false;
            continue;
        }
        *found = true;
        if (!amp_run_spend(r, 1))
            return false;
        if (amp_run_stop_unless(r, &ok, amp_run_node(r, o->patterns[i].node, key + 1, NULL)))
            return false;
    }
    return ok;
}

static bool check_member(struct amp_schema_run *r, const struct amp_node *n, uint32_t key,
                         const struct amp_property *p, bool *known)
{
    const struct amp_object_rules *o = n->object;
    bool ok = true, found = p && p->node;
    if (found && amp_run_stop_unless(r, &ok, amp_run_child(r, p->node, key + 1)))
        return false;
    if (o->n_patterns && amp_run_stop_unless(r, &ok, check_patterns(r, n, key, &found)))
        return false;
    if (!found && o->additional) {
        found = true;
        if (amp_node_is_false(o->additional)) {
            if (amp_run_stop_at(r, &ok, n, "additionalProperties", key + 1, NULL,
                                amp_tok_raw(r->t, key)))
                return false;
        } else if (amp_run_stop_unless(r, &ok, amp_run_node(r, o->additional, key + 1, NULL))) {
            return false;
        }
    }
    *known = found;
    return (!o->names || amp_run_node(r, o->names, key, NULL)) && ok;
}

/* Marks the required properties that are present, by number. */
static bool mark_required(struct amp_schema_run *r, const struct amp_object_rules *o, uint32_t tok,
                          struct amp_marks *seen)
{
    const struct amp_tok *t = r->t->tok;
    if (!amp_marks_push(r, o->n_required, seen))
        return false;
    for (uint32_t key = tok + 1; key < t[tok].next; key = t[key + 1].next) {
        const struct amp_property *p = amp_run_property(r, o, key);
        if (p && p->required)
            amp_mark(r, seen, p->required);
    }
    return true;
}

/* `seen` has a bit for each of the first 64 required properties; if there are more, all are looked
 * up again. */
__attribute__((cold, noinline)) static bool note_missing(struct amp_schema_run *r,
                                                         const struct amp_node *n, uint32_t tok,
                                                         uint64_t seen, bool *ok)
{
    const struct amp_object_rules *o = n->object;
    bool many = o->n_required > 64, stop = false;
    struct amp_marks all;
    if (many && !mark_required(r, o, tok, &all))
        return *ok = false;
    for (uint32_t i = 0; i < o->n_properties && !stop; i++) {
        const struct amp_property *p = &o->properties[i];
        if (!p->required)
            continue;
        bool there = many ? amp_marked(r, &all, p->required) : seen >> (p->required - 1) & 1;
        stop = !there && amp_run_stop_at(r, ok, n, "required", tok, NULL, p->name);
    }
    if (many)
        amp_marks_pop(r, &all);
    return *ok && !stop;
}

static bool check_dependents(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                             const struct amp_marks *m)
{
    const struct amp_object_rules *o = n->object;
    uint64_t cost = (uint64_t)o->n_dependents * r->t->tok[tok].count / 64;
    bool ok = true;
    if (!amp_run_spend(r, cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX))
        return false;
    for (uint32_t i = 0; i < o->n_dependents; i++) {
        const struct amp_dependent *d = &o->dependents[i];
        if (d->n_required > 16 &&
            !amp_run_spend(r, d->n_required / 16 * (r->t->tok[tok].count / 4 + 1)))
            return false;
        if (amp_tape_get(r->t, tok, d->name) == AMP_TOK_NONE)
            continue;
        for (uint32_t k = 0; k < d->n_required; k++) {
            if (amp_tape_get(r->t, tok, d->required[k]) == AMP_TOK_NONE &&
                amp_run_stop_at(r, &ok, n, d->keyword, tok, d, d->required[k]))
                return false;
        }
        if (d->node && amp_run_stop_unless(r, &ok, amp_run_node(r, d->node, tok, m)))
            return false;
    }
    return ok;
}

/* The first of two places for what is known of a shape. */
static struct amp_run_shape *shape_slot(struct amp_schema_run *r, const struct amp_node *n,
                                        uint16_t shape)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)n + shape) * UINT64_C(0x9e3779b97f4a7c15);
    return &r->shapes[mixed >> 40 & (RUN_SHAPES - 2)];
}

static inline bool shape_is(const struct amp_schema_run *r, const struct amp_run_shape *s,
                            const struct amp_node *n, uint16_t shape)
{
    return s->node == n && s->shape == shape && s->program == r->schema->program->id &&
           s->tape == amp_tape_shapes(r->t);
}

/* Finds the one node that checks a member, or NULL; false if several do. */
static bool only_node(struct amp_schema_run *r, const struct amp_object_rules *o, uint32_t key,
                      const struct amp_node **only)
{
    const struct amp_property *p = amp_run_property(r, o, key);
    uint32_t found = p && p->node;
    *only = found ? p->node : NULL;
    for (uint32_t i = 0; i < o->n_patterns; i++) {
        struct amp_span name = amp_tok_raw(r->t, key);
        if (!amp_run_pattern(r, o->patterns[i].pattern, name))
            continue;
        *only = o->patterns[i].node;
        found++;
    }
    if (!found)
        *only = o->additional;
    return found <= 1;
}

/* Remembers which node checks each member, after the object was found valid. */
static void keep_shape(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok)
{
    const struct amp_object_rules *o = n->object;
    const struct amp_tok *t = r->t->tok, *k = &t[tok];
    struct amp_run_shape *s = shape_slot(r, n, k->shape);
    if (!k->shape || k->count > RUN_SHAPE_KEYS || o->n_dependents)
        return;
    if (s->busy || (s->node && !s[1].node) || (s->turn && !s[1].busy)) {
        s->turn = false;
        s++;
    } else {
        s->turn = true;
    }
    if (s->busy)
        return;
    s->node = NULL;
    uint32_t key = tok + 1;
    for (uint32_t i = 0; i < k->count; i++, key = t[key + 1].next)
        if ((t[key].flags & AMP_TOK_ESCAPED) || !only_node(r, o, key, &s->member[i]))
            return;
    s->node = n;
    s->program = r->schema->program->id;
    s->tape = amp_tape_shapes(r->t);
    s->shape = k->shape;
}

static bool check_members(struct amp_schema_run *r, struct amp_run_shape *s, uint32_t tok)
{
    const struct amp_tok *t = r->t->tok;
    uint32_t count = t[tok].count, key = tok + 1, i = 0;
    bool busy = s->busy;
    s->busy = true;
    for (; i < count; i++, key = t[key + 1].next)
        if (s->member[i] && !amp_run_child(r, s->member[i], key + 1))
            break;
    s->busy = busy;
    return i == count;
}

/* The usual object: named properties, no patterns, and no explanation. */
static bool check_usual(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok)
{
    const struct amp_object_rules *o = n->object;
    const struct amp_tok *t = r->t->tok;
    uint32_t count = t[tok].count, key = tok + 1;
    uint64_t seen = 0;
    bool ok = true;
    for (uint32_t i = 0; i < count; i++, key = t[key + 1].next) {
        const struct amp_property *p = amp_run_property(r, o, key);
        const struct amp_node *child = p ? p->node : NULL;
        if (child ? !amp_run_child(r, child, key + 1) : o->additional != NULL)
            return false;
        if (p && p->required && p->required <= 64)
            seen |= 1ull << (p->required - 1);
    }
    if (((seen & o->required) != o->required || o->n_required > 64) &&
        !note_missing(r, n, tok, seen, &ok))
        return false;
    return !o->n_dependents || check_dependents(r, n, tok, NULL);
}

bool amp_run_object(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                    const struct amp_marks *m)
{
    const struct amp_object_rules *o = n->object;
    const struct amp_tok *t = r->t->tok;
    uint32_t count = t[tok].count, key = tok + 1;
    uint64_t seen = 0;
    bool ok = true;
    if (!m && !r->explain && t[tok].shape) {
        struct amp_run_shape *s = shape_slot(r, n, t[tok].shape);
        if (!shape_is(r, s, n, t[tok].shape))
            s++;
        if (shape_is(r, s, n, t[tok].shape))
            return check_members(r, s, tok);
    }
    if (count > PAID && !amp_run_spend(r, count))
        return false;
    if (count < o->min && amp_run_stop(r, &ok, n, "minProperties", tok, NULL))
        return false;
    if (count > o->max && amp_run_stop(r, &ok, n, "maxProperties", tok, NULL))
        return false;
    if (!m && !r->explain && o->slots && !o->n_patterns && !o->names &&
        (!o->additional || amp_node_is_false(o->additional))) {
        if (!check_usual(r, n, tok))
            return false;
        keep_shape(r, n, tok);
        return true;
    }
    for (uint32_t i = 0; i < count; i++, key = t[key + 1].next) {
        const struct amp_property *p = amp_run_property(r, o, key);
        bool known = false;
        if (p && p->required && p->required <= 64)
            seen |= 1ull << (p->required - 1);
        if (amp_run_stop_unless(r, &ok, check_member(r, n, key, p, &known)))
            return false;
        if (known && m)
            amp_mark(r, m, i);
    }
    if (((seen & o->required) != o->required || o->n_required > 64) &&
        !note_missing(r, n, tok, seen, &ok) && !r->explain)
        return false;
    ok &= !o->n_dependents || check_dependents(r, n, tok, m);
    if (ok && !m && !r->explain)
        keep_shape(r, n, tok);
    return ok;
}

/* Two equal elements of a long array are found through a table of hashes. */
static bool are_many_unique(struct amp_schema_run *r, uint32_t tok, uint32_t *second)
{
    const struct amp_tok *t = r->t->tok;
    size_t slots = 64;
    while (slots < (size_t)t[tok].count * 2)
        slots *= 2;
    if (slots > r->cap_slots) {
        uint32_t *p = realloc(r->slots, slots * 2 * sizeof *p);
        if (!p)
            return amp_run_fail_memory(r);
        r->slots = p;
        r->cap_slots = slots;
    }
    uint32_t *element = r->slots, *hashes = r->slots + slots;
    memset(element, 0, slots * sizeof *element); /* 0: free; no element is token 0 */
    for (uint32_t k = tok + 1; k < t[tok].next; k = t[k].next) {
        uint64_t h = amp_tape_hash(r->t, k);
        uint32_t high = (uint32_t)(h >> 32);
        size_t at = (size_t)h & (slots - 1);
        for (; element[at]; at = (at + 1) & (slots - 1)) {
            if (hashes[at] == high && amp_tape_equal(r->t, element[at], r->t, k)) {
                *second = k;
                return false;
            }
        }
        element[at] = k;
        hashes[at] = high;
    }
    return true;
}

static bool are_unique(struct amp_schema_run *r, uint32_t tok, uint32_t *second)
{
    const struct amp_tok *t = r->t->tok;
    if (t[tok].count > 16)
        return are_many_unique(r, tok, second);
    for (uint32_t k = tok + 1; k < t[tok].next; k = t[k].next)
        for (uint32_t j = tok + 1; j < k; j = t[j].next)
            if (amp_tape_equal(r->t, j, r->t, k)) {
                *second = k;
                return false;
            }
    return true;
}

static bool check_contains(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                           const struct amp_marks *m)
{
    const struct amp_array_rules *a = n->array;
    const struct amp_tok *t = r->t->tok;
    uint32_t found = 0, k = tok + 1;
    bool explain = r->explain, ok = true;
    if (!amp_run_spend(r, t[tok].count))
        return false;
    r->explain = false;
    for (uint32_t i = 0; i < t[tok].count; i++, k = t[k].next) {
        if (!amp_run_node(r, a->contains, k, NULL)) {
            if (r->failed)
                break;
            continue;
        }
        found++;
        if (m)
            amp_mark(r, m, i);
        else if (found >= a->min_contains && a->max_contains == NODE_NO_SIZE)
            break;
    }
    r->explain = explain;
    if (r->failed)
        return false;
    const char *few = a->min_contains == 1 ? "contains" : "minContains";
    if (found < a->min_contains && amp_run_stop(r, &ok, n, few, tok, NULL))
        return false;
    if (found > a->max_contains && amp_run_stop(r, &ok, n, "maxContains", tok, NULL))
        return false;
    return ok;
}

bool amp_run_array(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                   const struct amp_marks *m)
{
    const struct amp_array_rules *a = n->array;
    const struct amp_tok *t = r->t->tok;
    uint32_t count = t[tok].count, k = tok + 1, second = tok;
    bool ok = true;
    if (count > PAID && !amp_run_spend(r, count))
        return false;
    if (count < a->min && amp_run_stop(r, &ok, n, "minItems", tok, NULL))
        return false;
    if (count > a->max && amp_run_stop(r, &ok, n, "maxItems", tok, NULL))
        return false;
    if (a->prefix.n || a->items) {
        for (uint32_t i = 0; i < count; i++, k = t[k].next) {
            const struct amp_node *child = i < a->prefix.n ? a->prefix.at[i] : a->items;
            if (!child)
                break;
            if (m)
                amp_mark(r, m, i);
            if (i >= a->prefix.n && amp_node_is_false(child)) {
                if (amp_run_stop(r, &ok, n, a->items_keyword, k, NULL))
                    return false;
            } else if (amp_run_stop_unless(r, &ok, amp_run_child(r, child, k))) {
                return false;
            }
        }
    }
    if (a->unique && count > 1 && !amp_run_spend(r, (t[tok].next - tok) / 8))
        return false;
    if (a->unique && count > 1 && !are_unique(r, tok, &second) &&
        (r->failed || amp_run_stop(r, &ok, n, "uniqueItems", second, NULL)))
        return false;
    return (!a->contains || check_contains(r, n, tok, m)) && ok;
}
