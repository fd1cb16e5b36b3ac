/* The standard output of keywords that apply subschemas: to the same value, to the members of
 * objects or to the elements of arrays. */
#include <stdio.h>
#include <string.h>

#include "schema/output/walk.h"

enum { LIST_MOST = 16 << 20 }; /* bytes of an annotation */

static const struct amp_span no_name = {"", 0};

/* One keyword at one value. */
struct step {
    struct amp_output_walk *w;
    const struct amp_node *n;
    const struct amp_keyword *key;
    uint32_t value, tok; /* the keyword's value in the schema; the instance */
    const struct amp_marks *m;
};

/* The node of a subschema in n's document. Its references are not shortened. */
static const struct amp_node *step_node(const struct step *s, uint32_t tok)
{
    return s->n->doc->node[tok];
}

static bool is_type(const struct step *s, enum amp_json_type type)
{
    return s->w->r->t->tok[s->tok].type == type;
}

/* Walks a schema below the keyword, or below a name there, which may be NULL. */
static bool step_down(const struct step *s, const struct amp_span *name,
                      const struct amp_node *child, uint32_t tok, const struct amp_marks *m)
{
    struct amp_buf *at = &s->w->units.keyword;
    size_t before = amp_pointer_push(at, amp_span_str(s->key->name));
    if (name)
        amp_pointer_push(at, *name);
    bool ok = amp_walk_node(s->w, child, tok, m);
    amp_pointer_pop(at, before);
    return ok;
}

static bool step_down_index(const struct step *s, uint32_t i, const struct amp_node *child,
                            uint32_t tok, const struct amp_marks *m)
{
    char text[16];
    snprintf(text, sizeof text, "%u", i);
    struct amp_span index = amp_span_str(text);
    return step_down(s, &index, child, tok, m);
}

/* Annotates which children the keyword applied to; draft-07 has no such annotations. */
static void annotate_children(const struct step *s, struct amp_span json)
{
    if (s->w->s->program->resources[s->n->resource].draft != AMP_DRAFT_7)
        amp_walk_annotate(s->w, s->n, s->key->name, json);
}

/* ---- the same value ---- */

static bool walk_ref(const struct step *s)
{
    return step_down(s, NULL, s->n->ref, s->tok, s->m);
}

static bool walk_dynamic_ref(const struct step *s)
{
    return step_down(s, NULL, amp_run_dynamic(s->w->r, s->n->place->dynamic), s->tok, s->m);
}

/* Walks each schema of an array; returns how many hold. */
static uint32_t walk_list(const struct step *s)
{
    const struct amp_tape *t = &s->n->doc->tape;
    uint32_t i = 0, held = 0;
    for (uint32_t k = s->value + 1; k < t->tok[s->value].next; k = t->tok[k].next, i++)
        held += step_down_index(s, i, step_node(s, k), s->tok, s->m);
    return held;
}

static bool walk_all_of(const struct step *s)
{
    return walk_list(s) == s->n->place->all.n;
}

/* anyOf and oneOf: the keyword's own unit is before those of its branches. */
static bool walk_choice(const struct step *s)
{
    struct amp_output_units *u = &s->w->units;
    uint32_t first = u->n;
    bool one = strcmp(s->key->name, "oneOf") == 0;
    const struct amp_node_list *l = one ? &s->n->place->one : &s->n->place->any;
    amp_walk_wrong(s->w, s->n, s->key->name, s->tok, l, no_name);
    uint32_t held = walk_list(s);
    if (s->w->r->failed || !held)
        return false;
    amp_units_drop(u, first, UNIT_ERROR);
    if (held == 1 || !one)
        return true;
    /* No branch is at fault. */
    amp_units_drop(u, first, UNIT_ANNOTATION);
    return amp_walk_wrong(s->w, s->n, s->key->name, s->tok, NULL, no_name);
}

static bool walk_not(const struct step *s)
{
    uint32_t first = s->w->units.n;
    bool held = step_down(s, NULL, step_node(s, s->value), s->tok, NULL);
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    amp_units_drop(&s->w->units, first, UNIT_ANNOTATION);
    return !held || amp_walk_wrong(s->w, s->n, "not", s->tok, NULL, no_name);
}

static bool walk_if(const struct step *s)
{
    const struct amp_tape *t = &s->n->doc->tape;
    uint32_t first = s->w->units.n;
    bool held = step_down(s, NULL, step_node(s, s->value), s->tok, s->m);
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    struct step next = *s;
    next.value = amp_tape_get(t, s->n->tok, held ? AMP_SPAN("then") : AMP_SPAN("else"));
    if (next.value == AMP_TOK_NONE || s->w->r->failed)
        return true;
    next.key = amp_keyword_find(t, next.value - 1, AMP_DRAFT_2020);
    return step_down(&next, NULL, step_node(s, next.value), s->tok, s->m);
}

static bool walk_dependents(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    const struct amp_object_rules *o = s->n->object;
    bool ok = true;
    if (!is_type(s, AMP_JSON_OBJECT))
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
            ok &= step_down(s, &d->name, step_node(s, child), s->tok, s->m);
    }
    return ok;
}

/* ---- the members of objects ---- */

/* The decoded name of a key of the instance, which lives as long as the buffer. */
static struct amp_span key_name(const struct step *s, uint32_t key, struct amp_buf *room)
{
    struct amp_span name = no_name;
    amp_buf_init(room, UINT32_MAX);
    if (amp_tok_text(s->w->r->t, key, room, &name, s->w->err) < 0)
        s->w->r->failed = true;
    return name;
}

/* One member against one schema; `way` is the schema's name below the keyword, or NULL. */
static bool walk_member(const struct step *s, uint32_t i, uint32_t key,
                        const struct amp_node *child, const struct amp_span *way)
{
    struct amp_buf *at = &s->w->units.instance;
    AMP_BUF struct amp_buf room = {0};
    size_t before = amp_pointer_push(at, key_name(s, key, &room));
    bool ok = step_down(s, way, child, key + 1, NULL);
    amp_pointer_pop(at, before);
    amp_mark(s->w->r, s->m, i);
    return ok;
}

/* Walks one member for a keyword; returns whether the keyword applied to it. *ok becomes false if
 * the member is invalid. */
typedef bool (*member_fn)(const struct step *s, uint32_t i, uint32_t key, bool *ok);

/* Walks all members of an object. The annotation lists the names that the keyword applied to,
 * unless it would be too long. */
static bool walk_members(const struct step *s, member_fn fn)
{
    const struct amp_tape *t = s->w->r->t;
    AMP_BUF struct amp_buf names = {0};
    uint32_t key = s->tok + 1;
    bool ok = true, too_long = false;
    if (!is_type(s, AMP_JSON_OBJECT))
        return true;
    amp_buf_init(&names, LIST_MOST);
    for (uint32_t i = 0; i < t->tok[s->tok].count; i++, key = t->tok[key + 1].next) {
        if (!fn(s, i, key, &ok))
            continue;
        struct amp_span source = amp_tok_source(t, key);
        too_long |= names.len + source.n > LIST_MOST - 2;
        if (!too_long && (amp_buf_str(&names, names.len ? "," : "[", s->w->err) < 0 ||
                          amp_buf_add(&names, source.p, source.n, s->w->err) < 0))
            s->w->r->failed = true;
    }
    s->w->units.truncated |= too_long;
    if (names.len > 0 && !too_long && amp_buf_str(&names, "]", s->w->err) == 0)
        annotate_children(s, amp_buf_span(&names));
    return ok;
}

static bool walk_property(const struct step *s, uint32_t i, uint32_t key, bool *ok)
{
    const struct amp_object_rules *o = s->n->object;
    const struct amp_property *p = amp_run_property(s->w->r, o, key);
    if (!p || !p->node)
        return false;
    *ok &= walk_member(s, i, key, step_node(s, o->places[p - o->properties]), &p->name);
    return true;
}

static bool pattern_fits(const struct step *s, uint32_t pattern, uint32_t key)
{
    AMP_BUF struct amp_buf room = {0};
    struct amp_span name = key_name(s, key, &room);
    return !s->w->r->failed &&
           amp_run_pattern(s->w->r, s->n->object->patterns[pattern].pattern, name);
}

static bool walk_patterns(const struct step *s, uint32_t i, uint32_t key, bool *ok)
{
    const struct amp_tape *schema = &s->n->doc->tape;
    uint32_t k = s->value + 1;
    bool any = false;
    if (!amp_run_spend(s->w->r, s->n->object->n_patterns / 16))
        return false;
    for (uint32_t p = 0; p < s->n->object->n_patterns; p++, k = schema->tok[k + 1].next) {
        if (!pattern_fits(s, p, key))
            continue;
        AMP_BUF struct amp_buf room = {0};
        struct amp_span way;
        amp_buf_init(&room, UINT32_MAX);
        if (amp_tok_text(schema, k, &room, &way, s->w->err) < 0)
            way = no_name;
        *ok &= walk_member(s, i, key, step_node(s, k + 1), &way);
        any = true;
    }
    return any;
}

/* Walks a member that no other keyword concerns; always true. */
static bool walk_other(const struct step *s, uint32_t i, uint32_t key, bool *ok)
{
    const struct amp_node *child = step_node(s, s->value);
    if (!amp_node_is_false(child)) {
        *ok &= walk_member(s, i, key, child, NULL);
        return true;
    }
    /* Reported at the name, with the names that are allowed. */
    AMP_BUF struct amp_buf room = {0};
    struct amp_span name = key_name(s, key, &room);
    size_t before = amp_pointer_push(&s->w->units.instance, name);
    *ok = amp_walk_wrong(s->w, s->n, s->key->name, key + 1, NULL, name);
    amp_pointer_pop(&s->w->units.instance, before);
    return true;
}

/* Whether `properties` or a pattern concerns a member. */
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

static bool walk_additional(const struct step *s, uint32_t i, uint32_t key, bool *ok)
{
    return !is_named(s, key) && walk_other(s, i, key, ok);
}

static bool walk_unevaluated(const struct step *s, uint32_t i, uint32_t key, bool *ok)
{
    return !amp_marked(s->w->r, s->m, i) && walk_other(s, i, key, ok);
}

static bool walk_property_names(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t;
    bool ok = true;
    if (!is_type(s, AMP_JSON_OBJECT))
        return true;
    for (uint32_t key = s->tok + 1; key < t->tok[s->tok].next; key = t->tok[key + 1].next) {
        AMP_BUF struct amp_buf room = {0};
        size_t before = amp_pointer_push(&s->w->units.instance, key_name(s, key, &room));
        ok &= step_down(s, NULL, step_node(s, s->value), key, NULL);
        amp_pointer_pop(&s->w->units.instance, before);
    }
    return ok;
}

static bool walk_required(const struct step *s)
{
    struct amp_schema_run *r = s->w->r;
    const struct amp_object_rules *o = s->n->object;
    uint32_t count = r->t->tok[s->tok].count, key = s->tok + 1;
    struct amp_marks seen;
    bool ok = true;
    if (!is_type(s, AMP_JSON_OBJECT) || !amp_marks_push(r, o->n_properties, &seen))
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

/* ---- the elements of arrays ---- */

/* One element against one schema, which has its index below the keyword or is the only one. */
static bool walk_element(const struct step *s, uint32_t i, uint32_t tok,
                         const struct amp_node *child, bool by_index)
{
    size_t before = amp_pointer_push_index(&s->w->units.instance, i);
    bool ok =
        by_index ? step_down_index(s, i, child, tok, NULL) : step_down(s, NULL, child, tok, NULL);
    amp_pointer_pop(&s->w->units.instance, before);
    return ok;
}

static bool walk_prefix_items(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    uint32_t k = s->tok + 1, i = 0, end = t->tok[s->tok].next;
    bool ok = true;
    if (!is_type(s, AMP_JSON_ARRAY))
        return true;
    for (uint32_t p = s->value + 1; p < schema->tok[s->value].next && k < end;
         p = schema->tok[p].next, k = t->tok[k].next, i++) {
        ok &= walk_element(s, i, k, step_node(s, p), true);
        amp_mark(s->w->r, s->m, i);
    }
    char last[16];
    snprintf(last, sizeof last, "%u", i - 1);
    if (i)
        annotate_children(s, amp_span_str(k == end ? "true" : last));
    return ok;
}

/* items, additionalItems, unevaluatedItems: one schema for all elements from an index on. */
static bool walk_rest(const struct step *s, uint32_t from, bool unmarked_only)
{
    const struct amp_tape *t = s->w->r->t;
    uint32_t k = s->tok + 1, i = 0, end = t->tok[s->tok].next;
    bool ok = true, any = false;
    for (; k < end; k = t->tok[k].next, i++) {
        if (i < from || (unmarked_only && amp_marked(s->w->r, s->m, i)))
            continue;
        ok &= walk_element(s, i, k, step_node(s, s->value), false);
        amp_mark(s->w->r, s->m, i);
        any = true;
    }
    if (any)
        annotate_children(s, AMP_SPAN("true"));
    return ok;
}

static bool walk_items(const struct step *s)
{
    const struct amp_array_rules *a = s->n->array;
    if (!is_type(s, AMP_JSON_ARRAY))
        return true;
    if (s->n->doc->tape.tok[s->value].type == AMP_JSON_ARRAY)
        return walk_prefix_items(s);
    return walk_rest(s, a ? a->prefix.n : 0, false);
}

static bool walk_additional_items(const struct step *s)
{
    const struct amp_array_rules *a = s->n->array;
    /* It applies only after an array of items. */
    if (!is_type(s, AMP_JSON_ARRAY) || !a || !a->items_keyword ||
        strcmp(a->items_keyword, "additionalItems") != 0)
        return true;
    return walk_rest(s, a->prefix.n, false);
}

static bool walk_unevaluated_items(const struct step *s)
{
    return !is_type(s, AMP_JSON_ARRAY) || walk_rest(s, 0, true);
}

static bool walk_contains(const struct step *s)
{
    const struct amp_tape *t = s->w->r->t;
    const struct amp_array_rules *a = s->n->array;
    uint32_t k = s->tok + 1, found = 0, first = s->w->units.n, count = t->tok[s->tok].count;
    AMP_BUF struct amp_buf list = {0};
    amp_buf_init(&list, LIST_MOST);
    if (!is_type(s, AMP_JSON_ARRAY))
        return true;
    for (uint32_t i = 0; i < count && !s->w->r->failed; i++, k = t->tok[k].next) {
        if (!walk_element(s, i, k, step_node(s, s->value), false))
            continue;
        amp_mark(s->w->r, s->m, i);
        amp_buf_fmt(&list, NULL, "%s%u", found++ ? "," : "[", i);
    }
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    if (s->w->r->failed)
        return false;
    if (found < a->min_contains)
        return amp_walk_wrong(s->w, s->n, a->min_contains == 1 ? "contains" : "minContains", s->tok,
                              NULL, no_name);
    if (found > a->max_contains)
        return amp_walk_wrong(s->w, s->n, "maxContains", s->tok, NULL, no_name);
    if (found && amp_buf_str(&list, "]", NULL) == 0)
        annotate_children(s, found == count ? AMP_SPAN("true") : amp_buf_span(&list));
    return true;
}

bool amp_walk_keyword(struct amp_output_walk *w, const struct amp_node *n,
                      const struct amp_keyword *key, int turn, uint32_t value, uint32_t tok,
                      const struct amp_marks *m)
{
    static const struct {
        const char *keyword;
        int turn;
        bool (*walk)(const struct step *s); /* or */
        member_fn member;                   /* for each member of an object */
    } rows[] = {
        {"$ref", 0, walk_ref, NULL},
        {"$dynamicRef", 0, walk_dynamic_ref, NULL},
        {"required", 0, walk_required, NULL},
        {"properties", 0, NULL, walk_property},
        {"patternProperties", 0, NULL, walk_patterns},
        {"propertyNames", 0, walk_property_names, NULL},
        {"dependentRequired", 0, walk_dependents, NULL},
        {"dependentSchemas", 0, walk_dependents, NULL},
        {"dependencies", 0, walk_dependents, NULL},
        {"prefixItems", 0, walk_prefix_items, NULL},
        {"items", 0, walk_items, NULL},
        {"additionalItems", 0, walk_additional_items, NULL},
        {"contains", 0, walk_contains, NULL},
        {"allOf", 0, walk_all_of, NULL},
        {"anyOf", 0, walk_choice, NULL},
        {"oneOf", 0, walk_choice, NULL},
        {"not", 0, walk_not, NULL},
        {"if", 0, walk_if, NULL},
        {"additionalProperties", 1, NULL, walk_additional},
        {"unevaluatedProperties", 2, NULL, walk_unevaluated},
        {"unevaluatedItems", 2, walk_unevaluated_items, NULL},
    };
    struct step s = {w, n, key, value, tok, m};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (strcmp(rows[i].keyword, key->name) != 0)
            continue;
        if (rows[i].turn != turn)
            return true;
        return rows[i].walk ? rows[i].walk(&s) : walk_members(&s, rows[i].member);
    }
    return true;
}
