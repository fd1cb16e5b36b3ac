/* The standard output of keywords that lead to the members of objects and the elements of arrays.
 */
#include <stdio.h>
#include <string.h>

#include "schema/output/step.h"

static const struct amp_span no_name = {"", 0};

/* The decoded name of a key of the instance, kept until the buffer goes. */
static struct amp_span key_name(const struct amp_output_step *s, uint32_t key, struct amp_buf *room)
{
    struct amp_span name = no_name;
    amp_buf_init(room, UINT32_MAX);
    if (amp_tok_text(s->w->r->t, key, room, &name, s->w->err))
        s->w->r->failed = true;
    return name;
}

/* The names of an object that a keyword applied to, as an annotation; none where they are too long
 * for one. */
enum { NAMES_MOST = 16 << 20 };
struct names {
    struct amp_buf json;
    bool any, too_long;
};

static void add_name(const struct amp_output_step *s, struct names *l, uint32_t key)
{
    struct amp_span source = amp_tok_source(s->w->r->t, key);
    if (l->too_long || l->json.len + source.n > NAMES_MOST - 2) {
        l->too_long = s->w->units.truncated = true;
        return;
    }
    if (amp_buf_str(&l->json, l->any ? "," : "[", s->w->err) ||
        amp_buf_add(&l->json, source.p, source.n, s->w->err))
        s->w->r->failed = true;
    l->any = true;
}

static void tell_names(const struct amp_output_step *s, struct names *l)
{
    bool annotates = s->w->s->program->resources[s->n->resource].draft != AMP_DRAFT_7;
    if (l->any && !l->too_long && annotates && !s->w->r->failed &&
        !amp_buf_str(&l->json, "]", s->w->err))
        amp_walk_annotate(s->w, s->n, s->key->name, amp_buf_span(&l->json));
    amp_buf_release(&l->json);
}

static void tell(const struct amp_output_step *s, const char *json)
{
    if (s->w->s->program->resources[s->n->resource].draft != AMP_DRAFT_7)
        amp_walk_annotate(s->w, s->n, s->key->name, amp_span_str(json));
}

/* One member of an object against one schema; `way` is how the schema is called. */
static bool member(const struct amp_output_step *s, uint32_t i, uint32_t key,
                   const struct amp_node *child, const struct amp_span *way)
{
    struct amp_buf *at = &s->w->units.instance;
    AMP_BUF struct amp_buf room = {0};
    struct amp_span name = key_name(s, key, &room);
    size_t before = amp_pointer_push(at, name, NULL);
    bool ok = way ? amp_step_down_name(s, *way, child, key + 1, NULL)
                  : amp_step_down(s, child, key + 1, NULL);
    amp_pointer_pop(at, before);
    amp_mark(s->w->r, s->m, i);
    return ok;
}

/* One member for a keyword: 1 it applied, 0 it did not, -1 no more are to be asked. *ok becomes
 * false where the member is wrong. */
typedef int (*member_fn)(const struct amp_output_step *s, uint32_t i, uint32_t key, bool *ok);

/* Every member of an object; what the keyword applied to is told by name. */
static bool each_member(const struct amp_output_step *s, member_fn fn)
{
    const struct amp_tape *t = s->w->r->t;
    struct names names = {.any = false};
    uint32_t key = s->tok + 1;
    bool ok = true;
    if (amp_step_type(s) != AMP_JSON_OBJECT)
        return true;
    amp_buf_init(&names.json, NAMES_MOST);
    for (uint32_t i = 0; i < t->tok[s->tok].count; i++, key = t->tok[key + 1].next) {
        int rc = fn(s, i, key, &ok);
        if (rc < 0)
            break;
        if (rc > 0)
            add_name(s, &names, key);
    }
    tell_names(s, &names);
    return ok;
}

static int property(const struct amp_output_step *s, uint32_t i, uint32_t key, bool *ok)
{
    const struct amp_object_rules *o = s->n->object;
    const struct amp_property *p = amp_run_property(s->w->r, o, key);
    if (!p || !p->node)
        return 0;
    *ok &= member(s, i, key, amp_step_node(s, o->places[p - o->properties]), &p->name);
    return 1;
}

bool amp_step_properties(const struct amp_output_step *s)
{
    return each_member(s, property);
}

static bool pattern_fits(const struct amp_output_step *s, uint32_t pattern, uint32_t key)
{
    AMP_BUF struct amp_buf room = {0};
    struct amp_span name = key_name(s, key, &room);
    return !s->w->r->failed &&
           amp_run_pattern(s->w->r, s->n->object->patterns[pattern].pattern, name);
}

static int patterns(const struct amp_output_step *s, uint32_t i, uint32_t key, bool *ok)
{
    const struct amp_tape *schema = &s->n->doc->tape;
    uint32_t k = s->value + 1;
    int any = 0;
    if (!amp_run_spend(s->w->r, s->n->object->n_patterns / 16))
        return -1;
    for (uint32_t p = 0; p < s->n->object->n_patterns; p++, k = schema->tok[k + 1].next) {
        if (!pattern_fits(s, p, key))
            continue;
        AMP_BUF struct amp_buf room = {0};
        struct amp_span way;
        amp_buf_init(&room, UINT32_MAX);
        if (amp_tok_text(schema, k, &room, &way, s->w->err))
            way = no_name;
        *ok &= member(s, i, key, amp_step_node(s, k + 1), &way);
        any = 1;
    }
    return any;
}

bool amp_step_pattern_properties(const struct amp_output_step *s)
{
    return each_member(s, patterns);
}

/* What a pattern or `properties` names. */
static bool is_named(const struct amp_output_step *s, uint32_t key)
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
static bool other_properties(const struct amp_output_step *s, bool unevaluated)
{
    const struct amp_tape *t = s->w->r->t;
    const struct amp_node *child = amp_step_node(s, s->value);
    struct names names = {.any = false};
    uint32_t key = s->tok + 1;
    bool ok = true;
    if (amp_step_type(s) != AMP_JSON_OBJECT)
        return true;
    amp_buf_init(&names.json, NAMES_MOST);
    for (uint32_t i = 0; i < t->tok[s->tok].count; i++, key = t->tok[key + 1].next) {
        if (unevaluated ? amp_marked(s->w->r, s->m, i) : is_named(s, key))
            continue;
        if (amp_node_is_false(child)) { /* said at the name, with the names that are allowed */
            AMP_BUF struct amp_buf room = {0};
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

bool amp_step_additional_properties(const struct amp_output_step *s)
{
    return other_properties(s, false);
}

bool amp_step_unevaluated_properties(const struct amp_output_step *s)
{
    return other_properties(s, true);
}

bool amp_step_property_names(const struct amp_output_step *s)
{
    const struct amp_tape *t = s->w->r->t;
    bool ok = true;
    if (amp_step_type(s) != AMP_JSON_OBJECT)
        return true;
    for (uint32_t key = s->tok + 1; key < t->tok[s->tok].next; key = t->tok[key + 1].next) {
        AMP_BUF struct amp_buf room = {0};
        struct amp_span name = key_name(s, key, &room);
        size_t before = amp_pointer_push(&s->w->units.instance, name, NULL);
        ok &= amp_step_down(s, amp_step_node(s, s->value), key, NULL);
        amp_pointer_pop(&s->w->units.instance, before);
    }
    return ok;
}

bool amp_step_required(const struct amp_output_step *s)
{
    struct amp_schema_run *r = s->w->r;
    const struct amp_object_rules *o = s->n->object;
    uint32_t count = r->t->tok[s->tok].count, key = s->tok + 1;
    struct amp_marks seen;
    bool ok = true;
    if (amp_step_type(s) != AMP_JSON_OBJECT || !amp_marks_push(r, o->n_properties, &seen))
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

/* One element against one schema. */
static bool element(const struct amp_output_step *s, uint32_t i, uint32_t tok,
                    const struct amp_node *child, bool by_index)
{
    struct amp_buf *at = &s->w->units.instance;
    size_t before = amp_pointer_push_index(at, i, NULL);
    bool ok =
        by_index ? amp_step_down_index(s, i, child, tok, NULL) : amp_step_down(s, child, tok, NULL);
    amp_pointer_pop(at, before);
    return ok;
}

bool amp_step_prefix_items(const struct amp_output_step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    uint32_t k = s->tok + 1, i = 0, end = t->tok[s->tok].next;
    bool ok = true;
    if (amp_step_type(s) != AMP_JSON_ARRAY)
        return true;
    for (uint32_t p = s->value + 1; p < schema->tok[s->value].next && k < end;
         p = schema->tok[p].next, k = t->tok[k].next, i++) {
        ok &= element(s, i, k, amp_step_node(s, p), true);
        amp_mark(s->w->r, s->m, i);
    }
    char last[16];
    snprintf(last, sizeof last, "%u", i - 1);
    if (i)
        tell(s, k == end ? "true" : last);
    return ok;
}

/* items, additionalItems, unevaluatedItems: from an index on, one schema for all. */
static bool rest(const struct amp_output_step *s, uint32_t from, bool unmarked_only)
{
    const struct amp_tape *t = s->w->r->t;
    uint32_t k = s->tok + 1, i = 0, end = t->tok[s->tok].next;
    bool ok = true, any = false;
    for (; k < end; k = t->tok[k].next, i++) {
        if (i < from || (unmarked_only && amp_marked(s->w->r, s->m, i)))
            continue;
        ok &= element(s, i, k, amp_step_node(s, s->value), false);
        amp_mark(s->w->r, s->m, i);
        any = true;
    }
    if (any)
        tell(s, "true");
    return ok;
}

bool amp_step_items(const struct amp_output_step *s)
{
    const struct amp_array_rules *a = s->n->array;
    if (amp_step_type(s) != AMP_JSON_ARRAY)
        return true;
    if (s->n->doc->tape.tok[s->value].type == AMP_JSON_ARRAY)
        return amp_step_prefix_items(s);
    return rest(s, a ? a->n_prefix : 0, false);
}

bool amp_step_additional_items(const struct amp_output_step *s)
{
    const struct amp_array_rules *a = s->n->array;
    /* Without an array of items before it, it says nothing. */
    if (amp_step_type(s) != AMP_JSON_ARRAY || !a || !a->items_keyword ||
        strcmp(a->items_keyword, "additionalItems") != 0)
        return true;
    return rest(s, a->n_prefix, false);
}

bool amp_step_unevaluated_items(const struct amp_output_step *s)
{
    return amp_step_type(s) != AMP_JSON_ARRAY || rest(s, 0, true);
}

bool amp_step_contains(const struct amp_output_step *s)
{
    const struct amp_tape *t = s->w->r->t;
    const struct amp_array_rules *a = s->n->array;
    struct amp_units *u = &s->w->units;
    uint32_t k = s->tok + 1, found = 0, first = u->n, count = t->tok[s->tok].count;
    AMP_BUF struct amp_buf list = {0};
    amp_buf_init(&list, 16 << 20);
    if (amp_step_type(s) != AMP_JSON_ARRAY)
        return true;
    for (uint32_t i = 0; i < count && !s->w->r->failed; i++, k = t->tok[k].next) {
        if (!element(s, i, k, amp_step_node(s, s->value), false))
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
