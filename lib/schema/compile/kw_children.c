/* Keywords about the elements of arrays and the members of objects. */
#include <stdlib.h>
#include <string.h>

#include "schema/compile/keywords.h"
#include "json/hash.h"

enum {
    COMPARED = 256, /* names that are compared each with each */
    COUNTED = 128,  /* names that are counted before there is a table of them */
};

static int wrong(struct amp_compiler *c, const struct amp_node *n, uint32_t tok, const char *what)
{
    return amp_schema_wrong_value(c, n->doc, tok, what, NULL);
}

static enum amp_json_type type_of(const struct amp_node *n, uint32_t tok)
{
    return (enum amp_json_type)n->doc->tape.tok[tok].type;
}

static int set_child(struct amp_compiler *c, const struct amp_node *n, uint32_t value,
                     struct amp_node **out)
{
    *out = amp_node_child(c, n, value);
    return *out ? 0 : -1;
}

static int set_prefix(struct amp_compiler *c, struct amp_node *n, uint32_t value)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_array_rules *a = amp_array_rules(c, n);
    if (!a)
        return -1;
    if (type_of(n, value) != AMP_JSON_ARRAY)
        return wrong(c, n, value, "an array of schemas is expected");
    a->prefix = amp_compile_get(c, (t->tok[value].count + 1) * sizeof *a->prefix);
    if (!a->prefix)
        return -1;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k].next)
        if (set_child(c, n, k, &a->prefix[a->n_prefix++]))
            return -1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_prefix_items)
{
    if (type_of(n, value) == AMP_JSON_ARRAY && n->doc->tape.tok[value].count == 0)
        return wrong(c, n, value, "prefixItems is not empty");
    return set_prefix(c, n, value);
}

AMP_KEYWORD_FN(amp_kw_items)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    if (!a)
        return -1;
    a->items_keyword = "items";
    if (type_of(n, value) == AMP_JSON_ARRAY)
        return wrong(c, n, value,
                     "one schema for all items is expected; since draft 2020-12 an "
                     "array of schemas is prefixItems");
    return set_child(c, n, value, &a->items);
}

AMP_KEYWORD_FN(amp_kw_items_7)
{
    return type_of(n, value) == AMP_JSON_ARRAY ? set_prefix(c, n, value)
                                               : amp_kw_items(c, n, value);
}

AMP_KEYWORD_FN(amp_kw_additional_items)
{
    uint32_t items = amp_tape_get(&n->doc->tape, n->tok, AMP_SPAN("items"));
    struct amp_node *child = amp_node_child(c, n, value);
    if (!child)
        return -1;
    if (items == AMP_TOK_NONE || type_of(n, items) != AMP_JSON_ARRAY)
        return 0; /* it only goes on after an array of items */
    struct amp_array_rules *a = amp_array_rules(c, n);
    if (!a)
        return -1;
    a->items_keyword = "additionalItems";
    a->items = child;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_contains)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    return a ? set_child(c, n, value, &a->contains) : -1;
}

AMP_KEYWORD_FN(amp_kw_min_contains)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    return a ? amp_compile_count(c, n, value, &a->min_contains) : -1;
}

AMP_KEYWORD_FN(amp_kw_max_contains)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    return a ? amp_compile_count(c, n, value, &a->max_contains) : -1;
}

AMP_KEYWORD_FN(amp_kw_min_items)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    return a ? amp_compile_count(c, n, value, &a->min) : -1;
}

AMP_KEYWORD_FN(amp_kw_max_items)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    return a ? amp_compile_count(c, n, value, &a->max) : -1;
}

AMP_KEYWORD_FN(amp_kw_unique_items)
{
    struct amp_array_rules *a = amp_array_rules(c, n);
    if (!a)
        return -1;
    if (type_of(n, value) != AMP_JSON_TRUE && type_of(n, value) != AMP_JSON_FALSE)
        return wrong(c, n, value, "uniqueItems is true or false");
    a->unique = type_of(n, value) == AMP_JSON_TRUE;
    return 0;
}

/* The property of a name, made when it is new. */
static struct amp_property *property(struct amp_compiler *c, struct amp_object_rules *o,
                                     struct amp_span name)
{
    uint32_t hash = amp_json_hash32(amp_json_hash_key(), name.p, name.n);
    uint32_t at = hash & o->mask;
    for (; o->slots && o->slots[at]; at = (at + 1) & o->mask) {
        struct amp_property *p = &o->properties[o->slots[at] - 1];
        if (p->hash == hash && amp_span_eq(p->name, name))
            return p;
    }
    if (o->n_properties >= o->cap_properties) {
        amp_fail(c->err, AMP_CONFIG, "invalid_schema", "more than 65,000 properties in one schema");
        return NULL;
    }
    struct amp_property *p = &o->properties[o->n_properties++];
    *p = (struct amp_property){.name = name, .hash = hash};
    o->slots[at] = (uint16_t)o->n_properties;
    return p;
}

/* Most of the required properties are named: how many, so that there is room for each once. */
static uint32_t count_named(const struct amp_node *n, uint32_t named, uint32_t required)
{
    const struct amp_tape *t = &n->doc->tape;
    uint32_t count = 0;
    if (type_of(n, named) != AMP_JSON_OBJECT)
        return 0;
    for (uint32_t k = required + 1; k < t->tok[required].next; k = t->tok[k].next)
        count += type_of(n, k) == AMP_JSON_STRING && !(t->tok[k].flags & AMP_TOK_ESCAPED) &&
                 amp_tape_get(t, named, amp_tok_raw(t, k)) != AMP_TOK_NONE;
    return count;
}

/* Room for all that `properties` and `required` of this schema can name. */
static int make_table(struct amp_compiler *c, struct amp_node *n)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_object_rules *o = amp_object_rules(c, n);
    if (!o)
        return -1;
    if (o->slots)
        return 0;
    uint32_t named = amp_tape_get(t, n->tok, AMP_SPAN("properties"));
    uint32_t required = amp_tape_get(t, n->tok, AMP_SPAN("required"));
    uint32_t names = named == AMP_TOK_NONE ? 0 : t->tok[named].count;
    uint32_t count = names + (required == AMP_TOK_NONE ? 0 : t->tok[required].count);
    if (required != AMP_TOK_NONE && count <= COUNTED && names)
        count -= count_named(n, named, required);
    uint32_t slots = 4;
    if (count > 65000)
        return wrong(c, n, n->tok, "more than 65,000 properties in one schema");
    while (slots < count * 3)
        slots *= 2;
    o->properties = amp_compile_get(c, (count + 1) * sizeof *o->properties);
    o->slots = amp_compile_get(c, slots * sizeof *o->slots);
    o->places = amp_compile_get(c, (count + 1) * sizeof *o->places);
    if (!o->properties || !o->slots || !o->places)
        return -1;
    o->cap_properties = count;
    o->mask = slots - 1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_properties)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_span name;
    if (type_of(n, value) != AMP_JSON_OBJECT)
        return wrong(c, n, value, "properties is an object");
    if (make_table(c, n))
        return -1;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next) {
        if (amp_compile_text(c, n, k, &name))
            return -1;
        struct amp_property *p = property(c, n->object, name);
        if (!p || set_child(c, n, k + 1, &p->node))
            return -1;
        n->object->places[p - n->object->properties] = k + 1;
    }
    return 0;
}

/* The names in an array, into a list with room for as many as it has elements. */
static int read_names(struct amp_compiler *c, struct amp_node *n, uint32_t value,
                      struct amp_span *list, uint32_t *count)
{
    const struct amp_tape *t = &n->doc->tape;
    *count = 0;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k].next) {
        if (type_of(n, k) != AMP_JSON_STRING)
            return wrong(c, n, k, "a name is a string");
        for (uint32_t j = value + 1; j < k && *count < COMPARED; j = t->tok[j].next)
            if (amp_tape_equal(t, j, t, k))
                return wrong(c, n, k, "duplicate name");
        if (amp_compile_text(c, n, k, &list[(*count)++]))
            return -1;
    }
    return 0;
}

AMP_KEYWORD_FN(amp_kw_required)
{
    uint32_t count;
    if (type_of(n, value) != AMP_JSON_ARRAY)
        return wrong(c, n, value, "an array of names is expected");
    AMP_FREE struct amp_span *names = malloc((n->doc->tape.tok[value].count + 1) * sizeof *names);
    if (!names)
        return amp_fail_memory(c->err);
    if (read_names(c, n, value, names, &count) || make_table(c, n))
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        struct amp_property *p = property(c, n->object, names[i]);
        if (!p)
            return -1;
        if (p->required)
            continue;
        p->required = ++n->object->n_required;
        if (p->required <= 64)
            n->object->required |= 1ull << (p->required - 1);
    }
    return 0;
}

AMP_KEYWORD_FN(amp_kw_additional_properties)
{
    struct amp_object_rules *o = amp_object_rules(c, n);
    return o ? set_child(c, n, value, &o->additional) : -1;
}

AMP_KEYWORD_FN(amp_kw_pattern_properties)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_object_rules *o = amp_object_rules(c, n);
    struct amp_span name;
    if (!o)
        return -1;
    if (type_of(n, value) != AMP_JSON_OBJECT)
        return wrong(c, n, value, "patternProperties is an object");
    o->patterns = amp_compile_get(c, (t->tok[value].count + 1) * sizeof *o->patterns);
    if (!o->patterns)
        return -1;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next) {
        struct amp_pattern_property *p = &o->patterns[o->n_patterns++];
        if (amp_compile_text(c, n, k, &name))
            return -1;
        p->pattern = amp_compile_pattern(c, n, k, name);
        if (!p->pattern || set_child(c, n, k + 1, &p->node))
            return -1;
    }
    return 0;
}

AMP_KEYWORD_FN(amp_kw_property_names)
{
    struct amp_object_rules *o = amp_object_rules(c, n);
    return o ? set_child(c, n, value, &o->names) : -1;
}

AMP_KEYWORD_FN(amp_kw_min_properties)
{
    struct amp_object_rules *o = amp_object_rules(c, n);
    return o ? amp_compile_count(c, n, value, &o->min) : -1;
}

AMP_KEYWORD_FN(amp_kw_max_properties)
{
    struct amp_object_rules *o = amp_object_rules(c, n);
    return o ? amp_compile_count(c, n, value, &o->max) : -1;
}

/* dependentRequired, dependentSchemas and draft-07's dependencies, which is both. */
static int add_dependents(struct amp_compiler *c, struct amp_node *n, uint32_t value,
                          const char *keyword, bool lists, bool schemas)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_object_rules *o = amp_object_rules(c, n);
    if (!o)
        return -1;
    if (type_of(n, value) != AMP_JSON_OBJECT)
        return wrong(c, n, value, "an object is expected");
    uint32_t need = o->n_dependents + t->tok[value].count;
    struct amp_dependent *all = amp_compile_get(c, (need + 1) * sizeof *all);
    if (!all)
        return -1;
    if (o->n_dependents)
        memcpy(all, o->dependents, o->n_dependents * sizeof *all);
    o->dependents = all;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next) {
        struct amp_dependent *d = &all[o->n_dependents++];
        bool list = type_of(n, k + 1) == AMP_JSON_ARRAY;
        d->keyword = keyword;
        if (amp_compile_text(c, n, k, &d->name))
            return -1;
        if (lists && (list || !schemas)) {
            if (!list)
                return wrong(c, n, k + 1, "an array of names is expected");
            struct amp_span *names = amp_compile_get(c, t->tok[k + 1].count * sizeof *names);
            d->required = names;
            if (!names || read_names(c, n, k + 1, names, &d->n_required))
                return -1;
        } else if (set_child(c, n, k + 1, &d->node)) {
            return -1;
        }
    }
    return 0;
}

AMP_KEYWORD_FN(amp_kw_dependent_required)
{
    return add_dependents(c, n, value, "dependentRequired", true, false);
}

AMP_KEYWORD_FN(amp_kw_dependent_schemas)
{
    return add_dependents(c, n, value, "dependentSchemas", false, true);
}

AMP_KEYWORD_FN(amp_kw_dependencies)
{
    return add_dependents(c, n, value, "dependencies", true, true);
}
