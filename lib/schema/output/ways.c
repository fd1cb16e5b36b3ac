/* The standard output of keywords that apply further schemas to the same value, and the table of
 * all keywords that lead somewhere. */
#include <stdio.h>
#include <string.h>

#include "schema/output/step.h"

static const struct amp_span no_name = {"", 0};

bool amp_step_down(const struct amp_output_step *s, const struct amp_node *child, uint32_t tok,
                   const struct amp_marks *m)
{
    size_t before = amp_pointer_push(&s->w->units.keyword, amp_span_str(s->key->name), NULL);
    bool ok = amp_walk_node(s->w, child, tok, m);
    amp_pointer_pop(&s->w->units.keyword, before);
    return ok;
}

bool amp_step_down_name(const struct amp_output_step *s, struct amp_span name,
                        const struct amp_node *child, uint32_t tok, const struct amp_marks *m)
{
    size_t before = amp_pointer_push(&s->w->units.keyword, amp_span_str(s->key->name), NULL);
    amp_pointer_push(&s->w->units.keyword, name, NULL);
    bool ok = amp_walk_node(s->w, child, tok, m);
    amp_pointer_pop(&s->w->units.keyword, before);
    return ok;
}

bool amp_step_down_index(const struct amp_output_step *s, uint32_t i, const struct amp_node *child,
                         uint32_t tok, const struct amp_marks *m)
{
    char index[16];
    snprintf(index, sizeof index, "%u", i);
    return amp_step_down_name(s, amp_span_str(index), child, tok, m);
}

static bool ref(const struct amp_output_step *s)
{
    return amp_step_down(s, s->n->ref, s->tok, s->m);
}

static bool dynamic_ref(const struct amp_output_step *s)
{
    return amp_step_down(s, amp_run_dynamic(s->w->r, s->n->place->dynamic), s->tok, s->m);
}

static bool all_of(const struct amp_output_step *s)
{
    const struct amp_tape *t = &s->n->doc->tape;
    uint32_t i = 0;
    bool ok = true;
    for (uint32_t k = s->value + 1; k < t->tok[s->value].next; k = t->tok[k].next, i++)
        ok &= amp_step_down_index(s, i, amp_step_node(s, k), s->tok, s->m);
    return ok;
}

/* anyOf and oneOf: the keyword's own unit stands above those of its branches. */
static bool choice(const struct amp_output_step *s, bool one)
{
    const struct amp_tape *t = &s->n->doc->tape;
    struct amp_units *u = &s->w->units;
    uint32_t first = u->n, held = 0, i = 0;
    const struct amp_node_list *l = one ? &s->n->place->one : &s->n->place->any;
    amp_walk_wrong(s->w, s->n, s->key->name, s->tok, l, no_name);
    u->depth++;
    for (uint32_t k = s->value + 1; k < t->tok[s->value].next; k = t->tok[k].next, i++)
        held += amp_step_down_index(s, i, amp_step_node(s, k), s->tok, s->m);
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

static bool any_of(const struct amp_output_step *s)
{
    return choice(s, false);
}

static bool one_of(const struct amp_output_step *s)
{
    return choice(s, true);
}

static bool not(const struct amp_output_step *s)
{
    uint32_t first = s->w->units.n;
    bool held = amp_step_down(s, amp_step_node(s, s->value), s->tok, NULL);
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    amp_units_drop(&s->w->units, first, UNIT_ANNOTATION);
    return !held || amp_walk_wrong(s->w, s->n, "not", s->tok, NULL, no_name);
}

static bool if_then_else(const struct amp_output_step *s)
{
    const struct amp_tape *t = &s->n->doc->tape;
    uint32_t first = s->w->units.n;
    bool held = amp_step_down(s, amp_step_node(s, s->value), s->tok, s->m);
    amp_units_drop(&s->w->units, first, UNIT_ERROR);
    struct amp_output_step next = *s;
    next.value = amp_tape_get(t, s->n->tok, held ? AMP_SPAN("then") : AMP_SPAN("else"));
    if (next.value == AMP_TOK_NONE || s->w->r->failed)
        return true;
    next.key = amp_keyword_find(t, next.value - 1, AMP_DRAFT_2020);
    return amp_step_down(&next, amp_step_node(s, next.value), s->tok, s->m);
}

static bool dependents(const struct amp_output_step *s)
{
    const struct amp_tape *t = s->w->r->t, *schema = &s->n->doc->tape;
    const struct amp_object_rules *o = s->n->object;
    bool ok = true;
    if (amp_step_type(s) != AMP_JSON_OBJECT)
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
            ok &= amp_step_down_name(s, d->name, amp_step_node(s, child), s->tok, s->m);
    }
    return ok;
}

static const struct {
    amp_keyword_fn compile;
    bool (*run)(const struct amp_output_step *s);
    int turn;
} ways[] = {
    {amp_kw_ref, ref, 0},
    {amp_kw_dynamic_ref, dynamic_ref, 0},
    {amp_kw_required, amp_step_required, 0},
    {amp_kw_properties, amp_step_properties, 0},
    {amp_kw_pattern_properties, amp_step_pattern_properties, 0},
    {amp_kw_property_names, amp_step_property_names, 0},
    {amp_kw_dependent_required, dependents, 0},
    {amp_kw_dependent_schemas, dependents, 0},
    {amp_kw_dependencies, dependents, 0},
    {amp_kw_prefix_items, amp_step_prefix_items, 0},
    {amp_kw_items, amp_step_items, 0},
    {amp_kw_items_7, amp_step_items, 0},
    {amp_kw_additional_items, amp_step_additional_items, 0},
    {amp_kw_contains, amp_step_contains, 0},
    {amp_kw_all_of, all_of, 0},
    {amp_kw_any_of, any_of, 0},
    {amp_kw_one_of, one_of, 0},
    {amp_kw_not, not, 0},
    {amp_kw_if, if_then_else, 0},
    {amp_kw_additional_properties, amp_step_additional_properties, 1},
    {amp_kw_unevaluated_properties, amp_step_unevaluated_properties, 2},
    {amp_kw_unevaluated_items, amp_step_unevaluated_items, 2},
};

bool amp_walk_keyword(struct amp_output_walk *w, const struct amp_node *n,
                      const struct amp_keyword *key, int turn, uint32_t value, uint32_t tok,
                      const struct amp_marks *m)
{
    struct amp_output_step s = {w, n, key, value, tok, m};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].compile == key->compile)
            return ways[i].turn != turn || ways[i].run(&s);
    return true;
}
