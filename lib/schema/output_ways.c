/* The keywords that lead on to other schemas or other values, one function each. */
#include <stdio.h>
#include <string.h>

#include "schema/output_walk.h"

static const struct amp_span no_name = {"", 0};

/* What one keyword does at one value. */
struct step {
    struct amp_output_walk *w;
    const struct amp_node *n;
    const struct amp_keyword *key;
    uint32_t value, tok; /* the keyword's value in the schema; the instance */
    const struct amp_marks *m;
};

/* The node of a schema in n's text, with its references as they stand. */
static const struct amp_node *node_at(const struct step *s, uint32_t tok)
{
    return s->n->doc->node[tok];
}

static bool down(const struct step *s, const struct amp_node *child, uint32_t tok,
                 const struct amp_marks *m)
{
    size_t before = amp_pointer_push(&s->w->units.keyword, amp_span_str(s->key->name), NULL);
    bool ok = amp_walk_node(s->w, child, tok, m);
    amp_pointer_pop(&s->w->units.keyword, before);
    return ok;
}

static bool down_name(const struct step *s, struct amp_span name, const struct amp_node *child,
                      uint32_t tok, const struct amp_marks *m)
{
    size_t before = amp_pointer_push(&s->w->units.keyword, amp_span_str(s->key->name), NULL);
    amp_pointer_push(&s->w->units.keyword, name, NULL);
    bool ok = amp_walk_node(s->w, child, tok, m);
    amp_pointer_pop(&s->w->units.keyword, before);
    return ok;
}

static bool down_index(const struct step *s, uint32_t i, const struct amp_node *child, uint32_t tok,
                       const struct amp_marks *m)
{
    char index[16];
    snprintf(index, sizeof index, "%u", i);
    return down_name(s, amp_span_str(index), child, tok, m);
}

/* The decoded name of a key of the instance, kept until the buffer goes. */
static struct amp_span key_name(const struct step *s, uint32_t key, struct amp_buf *room)
{
    struct amp_span name = no_name;
    amp_buf_init(room, UINT32_MAX);
    if (amp_tok_text(s->w->r->t, key, room, &name, s->w->err))
        s->w->r->failed = true;
    return name;
}

/* The names of an object that a keyword applied to, as an annotation. */
struct names {
    struct amp_buf json;
    bool any;
};

static void add_name(const struct step *s, struct names *l, uint32_t key)
{
    struct amp_span source = amp_tok_source(s->w->r->t, key);
    if (amp_buf_str(&l->json, l->any ? "," : "[", s->w->err) ||
        amp_buf_add(&l->json, source.p, source.n, s->w->err))
        s->w->r->failed = true;
    l->any = true;
}

static void tell_names(const struct step *s, struct names *l)
{
    bool annotates = s->w->s->resources[s->n->resource].draft != AMP_DRAFT_7;
    if (l->any && annotates && !s->w->r->failed && !amp_buf_str(&l->json, "]", s->w->err))
        amp_walk_annotate(s->w, s->n, s->key->name, amp_buf_span(&l->json));
    amp_buf_release(&l->json);
}

static void tell(const struct step *s, const char *json)
{
    if (s->w->s->resources[s->n->resource].draft != AMP_DRAFT_7)
        amp_walk_annotate(s->w, s->n, s->key->name, amp_span_str(json));
}

static enum amp_json_type type_of(const struct step *s)
{
    return (enum amp_json_type)s->w->r->t->tok[s->tok].type;
}

static bool ref(const struct step *s)
{
    return down(s, s->n->place->first_ref, s->tok, s->m);
}

static bool dynamic_ref(const struct step *s)
{
    return down(s, amp_run_dynamic(s->w->r, s->n->place->dynamic), s->tok, s->m);
}

static bool all_of(const struct step *s)
{
    const struct amp_tape *t = &s->n->doc->tape;
    uint32_t i = 0;
    bool ok = true;
    for (uint32_t k = s->value + 1; k < t->tok[s->value].next; k = t->tok[k].next, i++)
        ok &= down_index(s, i, node_at(s, k), s->tok, s->m);
    return ok;
}

/* anyOf and oneOf: the keyword's own unit stands above those of its branches. */
static bool choice(const struct step *s, bool one)
{
    const struct amp_tape *t = &s->n->doc->tape;
    struct amp_units *u = &s->w->units;
    uint32_t first = u->n, held = 0, i = 0;
    const struct amp_node_list *l = one ? &s->n->place->one : &s->n->place->any;
    amp_walk_wrong(s->w, s->n, s->key->name, s->tok, l, no_name);
    u->depth++;
    for (uint32_t k = s->value + 1; k < t->tok[s->value].next; k = t->tok[k].next, i++)
        held += down_index(s, i, node_at(s, k), s->tok, s->m);
    u->depth--;
    if (s->w->r->failed)
        return false;
    if (held == 1 || (held && !one)) {
        amp_units_drop(u, first, UNIT_ERROR);
        return true;
    }
    if (held) { /* nothing below is at fault */
        amp_units_drop(u, first, UNIT_ERROR);
        amp_units_drop(u, first, UNIT_ANNOTATION);
        amp_walk_wrong(s->w, s->n, s->key->name, s->tok, NULL, no_name);
    }
    return false;
}

static bool any_of(const struct step *s)
{
    return choice(s, false);
}

static bool one_of(const struct step *s)
{
    return choice(s, true);
}

static bool not(const struct step *s)
{
    uint32_t first = s->w->units.n;
    bool held = down(s, node_at(s, s->value), s->tok, NULL);
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    amp_units_drop(&s->w->units, first, UNIT_ANNOTATION);
    return !held || amp_walk_wrong(s->w, s->n, "not", s->tok, NULL, no_name);
}

static bool if_then_else(const struct step *s)
{
    const struct amp_tape *t = &s->n->doc->tape;
    uint32_t first = s->w->units.n;
    bool held = down(s, node_at(s, s->value), s->tok, s->m);
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    struct step next = *s;
    next.value = amp_tape_get(t, s->n->tok, held ? AMP_SPAN("then") : AMP_SPAN("else"));
    if (next.value == AMP_TOK_NONE || s->w->r->failed)
        return true;
    next.key = amp_keyword_find(t, next.value - 1, AMP_DRAFT_2020);
    return down(&next, node_at(s, next.value), s->tok, s->m);
}

/* One member of an object against one schema; `way` is how the schema is called. */
static bool member(const struct step *s, uint32_t i, uint32_t key, const struct amp_node *child,
                   const struct amp_span *way)
{
    struct amp_buf *at = &s->w->units.instance;
    AMP_BUF struct amp_buf room;
    struct amp_span name = key_name(s, key, &room);
    size_t before = amp_pointer_push(at, name, NULL);
    bool ok = way ? down_name(s, *way, child, key + 1, NULL) : down(s, child, key + 1, NULL);
    amp_pointer_pop(at, before);
    amp_mark(s->w->r, s->m, i);
    return ok;
}

static bool properties(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t;
    const struct amp_object_rules *o = s->n->object;
    struct names names = {.any = false};
    uint32_t key = s->tok + 1;
    bool ok = true;
    if (type_of(s) != AMP_JSON_OBJECT)
        return true;
    amp_buf_init(&names.json, 16 << 20);
    for (uint32_t i = 0; i < t->tok[s->tok].count; i++, key = t->tok[key + 1].next) {
        const struct amp_property *p = amp_run_property(s->w->r, o, key);
        if (!p || !p->node)
            continue;
        ok &= member(s, i, key, node_at(s, o->places[p - o->properties]), &p->name);
        add_name(s, &names, key);
    }
    tell_names(s, &names);
    return ok;
}

static bool pattern_fits(const struct step *s, uint32_t pattern, uint32_t key)
{
    AMP_BUF struct amp_buf room;
    struct amp_span name = key_name(s, key, &room);
    return !s->w->r->failed &&
           amp_run_pattern(s->w->r, s->n->object->patterns[pattern].pattern, name);
}

static bool pattern_properties(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    struct names names = {.any = false};
    uint32_t key = s->tok + 1;
    bool ok = true;
    if (type_of(s) != AMP_JSON_OBJECT)
        return true;
    amp_buf_init(&names.json, 16 << 20);
    for (uint32_t i = 0; i < t->tok[s->tok].count; i++, key = t->tok[key + 1].next) {
        bool any = false;
        uint32_t k = s->value + 1;
        if (!amp_run_spend(s->w->r, s->n->object->n_patterns / 16))
            break;
        for (uint32_t p = 0; p < s->n->object->n_patterns; p++, k = schema->tok[k + 1].next) {
            if (!pattern_fits(s, p, key))
                continue;
            AMP_BUF struct amp_buf room;
            struct amp_span way;
            amp_buf_init(&room, UINT32_MAX);
            if (amp_tok_text(schema, k, &room, &way, s->w->err))
                way = no_name;
            ok &= member(s, i, key, node_at(s, k + 1), &way);
            any = true;
        }
        if (any)
            add_name(s, &names, key);
    }
    tell_names(s, &names);
    return ok;
}

/* What a pattern or `properties` names. */
static bool is_named(const struct step *s, uint32_t key)
{
    const struct amp_object_rules *o = s->n->object;
    const struct amp_property *p = amp_run_property(s->w->r, o, key);
    bool named = p && p->node;
    if (!amp_run_spend(s->w->r, o->n_patterns / 16))
        return true;
    for (uint32_t k = 0; k < o->n_patterns && !named; k++)
        named = pattern_fits(s, k, key);
    return named;
}

/* additionalProperties and unevaluatedProperties: one schema for what others left. */
static bool other_properties(const struct step *s, bool unevaluated)
{
    const struct amp_tape *t = s->w->r->t;
    const struct amp_node *child = node_at(s, s->value);
    struct names names = {.any = false};
    uint32_t key = s->tok + 1;
    bool ok = true;
    if (type_of(s) != AMP_JSON_OBJECT)
        return true;
    amp_buf_init(&names.json, 16 << 20);
    for (uint32_t i = 0; i < t->tok[s->tok].count; i++, key = t->tok[key + 1].next) {
        if (unevaluated ? amp_marked(s->w->r, s->m, i) : is_named(s, key))
            continue;
        if (amp_node_is_false(child)) { /* said at the name, with the names that are allowed */
            AMP_BUF struct amp_buf room;
            struct amp_span name = key_name(s, key, &room);
            size_t before = amp_pointer_push(&s->w->units.instance, name, NULL);
            ok = amp_walk_wrong(s->w, s->n, s->key->name, key + 1, NULL, name);
            amp_pointer_pop(&s->w->units.instance, before);
        } else {
            ok &= member(s, i, key, child, NULL);
        }
        add_name(s, &names, key);
    }
    tell_names(s, &names);
    return ok;
}

static bool additional_properties(const struct step *s)
{
    return other_properties(s, false);
}

static bool unevaluated_properties(const struct step *s)
{
    return other_properties(s, true);
}

static bool property_names(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t;
    bool ok = true;
    if (type_of(s) != AMP_JSON_OBJECT)
        return true;
    for (uint32_t key = s->tok + 1; key < t->tok[s->tok].next; key = t->tok[key + 1].next) {
        AMP_BUF struct amp_buf room;
        struct amp_span name = key_name(s, key, &room);
        size_t before = amp_pointer_push(&s->w->units.instance, name, NULL);
        ok &= down(s, node_at(s, s->value), key, NULL);
        amp_pointer_pop(&s->w->units.instance, before);
    }
    return ok;
}

static bool required(const struct step *s)
{
    struct amp_schema_run *r = s->w->r;
    const struct amp_object_rules *o = s->n->object;
    uint32_t count = r->t->tok[s->tok].count, key = s->tok + 1;
    struct amp_marks seen;
    bool ok = true;
    if (type_of(s) != AMP_JSON_OBJECT || !amp_marks_push(r, o->n_properties, &seen))
        return !r->failed;
    for (uint32_t i = 0; i < count; i++, key = r->t->tok[key + 1].next) {
        const struct amp_property *p = amp_run_property(r, o, key);
        if (p)
            amp_mark(r, &seen, (uint32_t)(p - o->properties));
    }
    for (uint32_t i = 0; i < o->n_properties; i++)
        if (o->properties[i].required && !amp_marked(r, &seen, i))
            ok = amp_walk_wrong(s->w, s->n, "required", s->tok, NULL, o->properties[i].name);
    amp_marks_pop(r, &seen);
    return ok;
}

static bool dependents(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    const struct amp_object_rules *o = s->n->object;
    bool ok = true;
    if (type_of(s) != AMP_JSON_OBJECT)
        return true;
    uint32_t place = s->value + 1, count = t->tok[s->tok].count;
    if (!amp_run_spend(s->w->r, o->n_dependents / 8 * (count / 8 + 1)))
        return false;
    for (uint32_t i = 0; i < o->n_dependents; i++) {
        const struct amp_dependent *d = &o->dependents[i];
        if (strcmp(d->keyword, s->key->name) != 0)
            continue;
        uint32_t child = place + 1;
        place = schema->tok[child].next;
        if (amp_tape_get(t, s->tok, d->name) == AMP_TOK_NONE)
            continue;
        if (!amp_run_spend(s->w->r, d->n_required / 16 * (count / 4 + 1)))
            return false;
        for (uint32_t k = 0; k < d->n_required; k++)
            if (amp_tape_get(t, s->tok, d->required[k]) == AMP_TOK_NONE)
                ok = amp_walk_wrong(s->w, s->n, d->keyword, s->tok, d, d->required[k]);
        if (d->node)
            ok &= down_name(s, d->name, node_at(s, child), s->tok, s->m);
    }
    return ok;
}

/* One element against one schema. */
static bool element(const struct step *s, uint32_t i, uint32_t tok, const struct amp_node *child,
                    bool by_index)
{
    struct amp_buf *at = &s->w->units.instance;
    size_t before = amp_pointer_push_index(at, i, NULL);
    bool ok = by_index ? down_index(s, i, child, tok, NULL) : down(s, child, tok, NULL);
    amp_pointer_pop(at, before);
    return ok;
}

static bool prefix_items(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    uint32_t k = s->tok + 1, i = 0, end = t->tok[s->tok].next;
    bool ok = true;
    if (type_of(s) != AMP_JSON_ARRAY)
        return true;
    for (uint32_t p = s->value + 1; p < schema->tok[s->value].next && k < end;
         p = schema->tok[p].next, k = t->tok[k].next, i++) {
        ok &= element(s, i, k, node_at(s, p), true);
        amp_mark(s->w->r, s->m, i);
    }
    char last[16];
    snprintf(last, sizeof last, "%u", i - 1);
    if (i)
        tell(s, k == end ? "true" : last);
    return ok;
}

/* items, additionalItems, unevaluatedItems: from an index on, one schema for all. */
static bool rest(const struct step *s, uint32_t from, bool unmarked_only)
{
    const struct amp_tape *t = s->w->r->t;
    uint32_t k = s->tok + 1, i = 0, end = t->tok[s->tok].next;
    bool ok = true, any = false;
    for (; k < end; k = t->tok[k].next, i++) {
        if (i < from || (unmarked_only && amp_marked(s->w->r, s->m, i)))
            continue;
        ok &= element(s, i, k, node_at(s, s->value), false);
        amp_mark(s->w->r, s->m, i);
        any = true;
    }
    if (any)
        tell(s, "true");
    return ok;
}

static bool items(const struct step *s)
{
    const struct amp_array_rules *a = s->n->array;
    if (type_of(s) != AMP_JSON_ARRAY)
        return true;
    if (s->n->doc->tape.tok[s->value].type == AMP_JSON_ARRAY)
        return prefix_items(s);
    return rest(s, a ? a->n_prefix : 0, false);
}

static bool additional_items(const struct step *s)
{
    const struct amp_array_rules *a = s->n->array;
    /* Without an array of items before it, it says nothing. */
    if (type_of(s) != AMP_JSON_ARRAY || !a || !a->items_keyword ||
        strcmp(a->items_keyword, "additionalItems") != 0)
        return true;
    return rest(s, a->n_prefix, false);
}

static bool unevaluated_items(const struct step *s)
{
    return type_of(s) != AMP_JSON_ARRAY || rest(s, 0, true);
}

static bool contains(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t;
    const struct amp_array_rules *a = s->n->array;
    struct amp_units *u = &s->w->units;
    uint32_t k = s->tok + 1, found = 0, first = u->n, count = t->tok[s->tok].count;
    AMP_BUF struct amp_buf list;
    amp_buf_init(&list, 16 << 20);
    if (type_of(s) != AMP_JSON_ARRAY)
        return true;
    for (uint32_t i = 0; i < count && !s->w->r->failed; i++, k = t->tok[k].next) {
        if (!element(s, i, k, node_at(s, s->value), false))
            continue;
        amp_mark(s->w->r, s->m, i);
        amp_buf_fmt(&list, NULL, "%s%u", found++ ? "," : "[", i);
    }
    amp_units_drop(u, first, UNIT_ERROR);
    if (s->w->r->failed)
        return false;
    if (found < a->min_contains)
        return amp_walk_wrong(s->w, s->n, a->min_contains == 1 ? "contains" : "minContains", s->tok,
                              NULL, no_name);
    if (found > a->max_contains)
        return amp_walk_wrong(s->w, s->n, "maxContains", s->tok, NULL, no_name);
    if (found && !amp_buf_str(&list, "]", NULL))
        tell(s, found == count ? "true" : list.data);
    return true;
}

static const struct {
    amp_keyword_fn compile;
    bool (*run)(const struct step *s);
    int turn;
} ways[] = {
    {amp_kw_ref, ref, 0},
    {amp_kw_dynamic_ref, dynamic_ref, 0},
    {amp_kw_required, required, 0},
    {amp_kw_properties, properties, 0},
    {amp_kw_pattern_properties, pattern_properties, 0},
    {amp_kw_property_names, property_names, 0},
    {amp_kw_dependent_required, dependents, 0},
    {amp_kw_dependent_schemas, dependents, 0},
    {amp_kw_dependencies, dependents, 0},
    {amp_kw_prefix_items, prefix_items, 0},
    {amp_kw_items, items, 0},
    {amp_kw_items_7, items, 0},
    {amp_kw_additional_items, additional_items, 0},
    {amp_kw_contains, contains, 0},
    {amp_kw_all_of, all_of, 0},
    {amp_kw_any_of, any_of, 0},
    {amp_kw_one_of, one_of, 0},
    {amp_kw_not, not, 0},
    {amp_kw_if, if_then_else, 0},
    {amp_kw_additional_properties, additional_properties, 1},
    {amp_kw_unevaluated_properties, unevaluated_properties, 2},
    {amp_kw_unevaluated_items, unevaluated_items, 2},
};

bool amp_walk_keyword(struct amp_output_walk *w, const struct amp_node *n,
                      const struct amp_keyword *key, int turn, uint32_t value, uint32_t tok,
                      const struct amp_marks *m)
{
    struct step s = {w, n, key, value, tok, m};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].compile == key->compile)
            return ways[i].turn != turn || ways[i].run(&s);
    return true;
}
