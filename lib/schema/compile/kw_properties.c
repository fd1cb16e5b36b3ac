/* The table of an object's properties: those that `properties` describes or `required` names. */
#include <stdlib.h>

#include "schema/compile/keywords.h"
#include "json/hash.h"

enum {
    COMPARED = 256, /* names that are compared in pairs */
    COUNTED = 128,  /* names that are counted to make the table smaller */
    PROPERTIES_MOST = 65000,
};

/* The property of a name, made when it is new: make_table made room for all. */
static struct amp_property *find_property(struct amp_object_rules *o, struct amp_span name)
{
    uint32_t hash = amp_json_hash32(amp_json_hash_key(), name.p, name.n);
    uint32_t at = hash & o->mask;
    for (; o->slots[at]; at = (at + 1) & o->mask) {
        struct amp_property *p = &o->properties[o->slots[at] - 1];
        if (p->hash == hash && amp_span_eq(p->name, name))
            return p;
    }
    struct amp_property *p = &o->properties[o->n_properties++];
    *p = (struct amp_property){.name = name, .hash = hash};
    o->slots[at] = (uint16_t)o->n_properties;
    return p;
}

/* The number of required properties that `properties` describes too, so that each gets one place.
 */
static uint32_t count_described(const struct amp_node *n, uint32_t described, uint32_t required)
{
    const struct amp_tape *t = &n->doc->tape;
    uint32_t count = 0;
    if (amp_kw_type_of(n, described) != AMP_JSON_OBJECT ||
        amp_kw_type_of(n, required) != AMP_JSON_ARRAY)
        return 0;
    for (uint32_t k = required + 1; k < t->tok[required].next; k = t->tok[k].next)
        count += amp_kw_type_of(n, k) == AMP_JSON_STRING && !(t->tok[k].flags & AMP_TOK_ESCAPED) &&
                 amp_tape_get(t, described, amp_tok_raw(t, k)) != AMP_TOK_NONE;
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
    uint32_t described = amp_tape_get(t, n->tok, AMP_SPAN("properties"));
    uint32_t required = amp_tape_get(t, n->tok, AMP_SPAN("required"));
    uint32_t names = described == AMP_TOK_NONE ? 0 : t->tok[described].count;
    uint32_t count = names + (required == AMP_TOK_NONE ? 0 : t->tok[required].count);
    if (required != AMP_TOK_NONE && count <= COUNTED && names)
        count -= count_described(n, described, required);
    uint32_t slots = 4;
    if (count > PROPERTIES_MOST)
        return amp_kw_wrong(c, n, n->tok, "more than 65,000 properties in one schema");
    while (slots < count * 3)
        slots *= 2;
    o->properties = amp_compile_get(c, (count + 1) * sizeof *o->properties);
    o->slots = amp_compile_get(c, slots * sizeof *o->slots);
    o->places = amp_compile_get(c, (count + 1) * sizeof *o->places);
    if (!o->properties || !o->slots || !o->places)
        return -1;
    o->mask = slots - 1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_properties)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_span name;
    if (amp_kw_type_of(n, value) != AMP_JSON_OBJECT)
        return amp_kw_wrong(c, n, value, "properties is an object");
    if (make_table(c, n) < 0)
        return -1;
    for (uint32_t key = value + 1; key < t->tok[value].next; key = t->tok[key + 1].next) {
        if (amp_compile_text(c, n, key, &name) < 0)
            return -1;
        struct amp_property *p = find_property(n->object, name);
        p->node = amp_node_child(c, n, key + 1);
        if (!p->node)
            return -1;
        n->object->places[p - n->object->properties] = key + 1;
    }
    return 0;
}

int amp_kw_names(struct amp_compiler *c, const struct amp_node *n, uint32_t value,
                 struct amp_span *list, uint32_t *count)
{
    const struct amp_tape *t = &n->doc->tape;
    *count = 0;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k].next) {
        if (amp_kw_type_of(n, k) != AMP_JSON_STRING)
            return amp_kw_wrong(c, n, k, "a name is a string");
        for (uint32_t j = value + 1; j < k && *count < COMPARED; j = t->tok[j].next)
            if (amp_tape_equal(t, j, t, k))
                return amp_kw_wrong(c, n, k, "duplicate name");
        if (amp_compile_text(c, n, k, &list[(*count)++]) < 0)
            return -1;
    }
    return 0;
}

AMP_KEYWORD_FN(amp_kw_required)
{
    uint32_t count;
    if (amp_kw_type_of(n, value) != AMP_JSON_ARRAY)
        return amp_kw_wrong(c, n, value, "an array of names is expected");
    AMP_FREE struct amp_span *names = malloc((n->doc->tape.tok[value].count + 1) * sizeof *names);
    if (!names)
        return amp_fail_memory(c->err);
    if (amp_kw_names(c, n, value, names, &count) < 0 || make_table(c, n) < 0)
        return -1;
    for (uint32_t i = 0; i < count; i++) {
        struct amp_property *p = find_property(n->object, names[i]);
        if (p->required)
            continue;
        p->required = ++n->object->n_required;
        if (p->required <= 64)
            n->object->required |= 1ull << (p->required - 1);
    }
    return 0;
}
