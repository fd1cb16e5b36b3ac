/* Keywords that hold subschemas or refer to them. */
#include <string.h>

#include "base/codes.h"
#include "schema/compile/keywords.h"

/* The node that a reference leads to. */
static int find_target(struct amp_compiler *c, struct amp_node *n, uint32_t value,
                       struct amp_target *to, struct amp_node **out)
{
    struct amp_span ref;
    if (amp_kw_type_of(n, value) != AMP_JSON_STRING)
        return amp_kw_wrong(c, n, value, "a reference is a string");
    if (amp_compile_text(c, n, value, &ref) < 0)
        return -1;
    enum amp_resolved r = amp_document_resolve(c, n->resource, ref, to);
    if (r == AMP_RESOLVE_FAILED)
        return -1;
    if (r != AMP_RESOLVED)
        return amp_schema_wrong(c, n->doc, value, AMP_CODE(unresolved_ref),
                                r == AMP_RESOLVE_UNKNOWN
                                    ? "no schema is known by this reference"
                                    : "this reference leads nowhere: there is no such place or "
                                      "anchor");
    *out = amp_node_at(c, to->doc, to->tok, to->resource);
    return *out ? amp_document_refer(c, n->doc, to->doc) : -1;
}

AMP_KEYWORD_FN(amp_kw_ref)
{
    struct amp_target to;
    return find_target(c, n, value, &to, &n->ref);
}

AMP_KEYWORD_FN(amp_kw_dynamic_ref)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    struct amp_target to;
    struct amp_node *first;
    if (!p || find_target(c, n, value, &to, &first) < 0)
        return -1;
    p->dynamic = amp_compile_get(c, sizeof *p->dynamic);
    if (!p->dynamic)
        return -1;
    if (c->in_set)
        return amp_schema_wrong(c, n->doc, value, AMP_CODE(invalid_schema),
                                "a schema of a set cannot have $dynamicRef");
    /* Without a $dynamicAnchor at its first target it is an ordinary reference: an empty name. */
    p->dynamic->fallback = first;
    if (to.anchor && to.anchor->dynamic) {
        p->dynamic->name = to.anchor->name;
        c->dynamic_refs = true;
    }
    return 0;
}

static int set_child(struct amp_compiler *c, const struct amp_node *n, uint32_t tok,
                     struct amp_node **out)
{
    *out = amp_node_child(c, n, tok);
    return *out ? 0 : -1;
}

static int set_list(struct amp_compiler *c, const struct amp_node *n, uint32_t value,
                    struct amp_node_list *l)
{
    const struct amp_tape *t = &n->doc->tape;
    l->at = amp_compile_get(c, (t->tok[value].count + 1) * sizeof(struct amp_node *));
    if (!l->at)
        return -1;
    for (uint32_t tok = value + 1; tok < t->tok[value].next; tok = t->tok[tok].next)
        if (set_child(c, n, tok, &l->at[l->n++]) < 0)
            return -1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_schema)
{
    struct amp_node **child = amp_keyword_field(c, n, k);
    return child ? set_child(c, n, value, child) : -1;
}

AMP_KEYWORD_FN(amp_kw_schemas)
{
    struct amp_node_list *l = amp_keyword_field(c, n, k);
    if (!l)
        return -1;
    if (amp_kw_type_of(n, value) != AMP_JSON_ARRAY || n->doc->tape.tok[value].count == 0)
        return amp_kw_wrong(c, n, value, "an array of at least one schema is expected");
    return set_list(c, n, value, l);
}

/* Without `if` beside them, `then` and `else` have no effect, but a fault in them is reported. */
AMP_KEYWORD_FN(amp_kw_branch)
{
    if (amp_tape_get(&n->doc->tape, n->tok, AMP_SPAN("if")) == AMP_TOK_NONE)
        return amp_node_child(c, n, value) ? 0 : -1;
    return amp_kw_schema(c, n, k, value);
}

AMP_KEYWORD_FN(amp_kw_content_schema)
{
    return amp_node_child(c, n, value) ? 0 : -1;
}

/* Definitions check nothing, but a fault in them is reported. */
AMP_KEYWORD_FN(amp_kw_definitions)
{
    const struct amp_tape *t = &n->doc->tape;
    if (amp_kw_type_of(n, value) != AMP_JSON_OBJECT)
        return amp_kw_wrong(c, n, value, "definitions are an object");
    for (uint32_t key = value + 1; key < t->tok[value].next; key = t->tok[key + 1].next)
        if (!amp_node_child(c, n, key + 1))
            return -1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_prefix_items)
{
    struct amp_node_list *prefix = amp_keyword_field(c, n, k);
    if (!prefix)
        return -1;
    if (amp_kw_type_of(n, value) != AMP_JSON_ARRAY)
        return amp_kw_wrong(c, n, value, "an array of schemas is expected");
    if (n->doc->tape.tok[value].count == 0)
        return amp_kw_wrong(c, n, value, "prefixItems is not empty");
    return set_list(c, n, value, prefix);
}

AMP_KEYWORD_FN(amp_kw_items)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    if (!a)
        return -1;
    a->items_keyword = k->name;
    if (amp_kw_type_of(n, value) == AMP_JSON_ARRAY)
        return amp_kw_wrong(c, n, value,
                            "one schema for all items is expected; since draft 2020-12 an "
                            "array of schemas is prefixItems");
    return set_child(c, n, value, &a->items);
}

AMP_KEYWORD_FN(amp_kw_items_7)
{
    if (amp_kw_type_of(n, value) != AMP_JSON_ARRAY)
        return amp_kw_items(c, n, k, value);
    struct amp_array_rules *a = amp_array_rules(c, n);
    return a ? set_list(c, n, value, &a->prefix) : -1;
}

/* It applies only after an array of items. */
AMP_KEYWORD_FN(amp_kw_additional_items)
{
    uint32_t items = amp_tape_get(&n->doc->tape, n->tok, AMP_SPAN("items"));
    struct amp_node *child = amp_node_child(c, n, value);
    if (!child)
        return -1;
    if (items == AMP_TOK_NONE || amp_kw_type_of(n, items) != AMP_JSON_ARRAY)
        return 0;
    struct amp_array_rules *a = amp_array_rules(c, n);
    if (!a)
        return -1;
    a->items_keyword = k->name;
    a->items = child;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_pattern_properties)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_object_rules *o = amp_object_rules(c, n);
    struct amp_span name;
    if (!o)
        return -1;
    if (amp_kw_type_of(n, value) != AMP_JSON_OBJECT)
        return amp_kw_wrong(c, n, value, "patternProperties is an object");
    o->patterns = amp_compile_get(c, (t->tok[value].count + 1) * sizeof *o->patterns);
    if (!o->patterns)
        return -1;
    for (uint32_t key = value + 1; key < t->tok[value].next; key = t->tok[key + 1].next) {
        struct amp_pattern_property *p = &o->patterns[o->n_patterns++];
        if (amp_compile_text(c, n, key, &name) < 0)
            return -1;
        p->pattern = amp_compile_pattern(c, n, key, name);
        if (!p->pattern || set_child(c, n, key + 1, &p->node) < 0)
            return -1;
    }
    return 0;
}

/* dependentRequired holds arrays of names, dependentSchemas schemas, and draft-07's dependencies
 * both. */
AMP_KEYWORD_FN(amp_kw_dependents)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_object_rules *o = amp_object_rules(c, n);
    bool lists = k->walk != WALK_MAP, schemas = k->walk != WALK_NONE;
    if (!o)
        return -1;
    if (amp_kw_type_of(n, value) != AMP_JSON_OBJECT)
        return amp_kw_wrong(c, n, value, "an object is expected");
    uint32_t need = o->n_dependents + t->tok[value].count;
    struct amp_dependent *all = amp_compile_get(c, (need + 1) * sizeof *all);
    if (!all)
        return -1;
    if (o->n_dependents)
        memcpy(all, o->dependents, o->n_dependents * sizeof *all);
    o->dependents = all;
    for (uint32_t key = value + 1; key < t->tok[value].next; key = t->tok[key + 1].next) {
        struct amp_dependent *d = &all[o->n_dependents++];
        bool list = amp_kw_type_of(n, key + 1) == AMP_JSON_ARRAY;
        d->keyword = k->name;
        if (amp_compile_text(c, n, key, &d->name) < 0)
            return -1;
        if (lists && (list || !schemas)) {
            if (!list)
                return amp_kw_wrong(c, n, key + 1, "an array of names is expected");
            struct amp_span *names = amp_compile_get(c, t->tok[key + 1].count * sizeof *names);
            d->required = names;
            if (!names || amp_kw_names(c, n, key + 1, names, &d->n_required) < 0)
                return -1;
        } else if (set_child(c, n, key + 1, &d->node) < 0) {
            return -1;
        }
    }
    return 0;
}
