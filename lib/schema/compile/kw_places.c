/* Keywords that apply further schemas to the same value: references and combinations. */
#include "schema/compile/keywords.h"

static int wrong(struct amp_compiler *c, const struct amp_node *n, uint32_t tok, const char *what)
{
    return amp_schema_wrong_value(c, n->doc, tok, what, NULL);
}

static int find(struct amp_compiler *c, struct amp_node *n, uint32_t value, struct amp_target *to,
                struct amp_node **out)
{
    struct amp_span ref;
    if (n->doc->tape.tok[value].type != AMP_JSON_STRING)
        return wrong(c, n, value, "a reference is a string");
    if (amp_compile_text(c, n, value, &ref))
        return -1;
    enum amp_resolved r = amp_document_resolve(c, n->resource, ref, to);
    if (r == AMP_RESOLVE_FAILED)
        return -1;
    if (r != AMP_RESOLVED)
        return amp_schema_wrong(c, n->doc, value, "unresolved_ref",
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
    return find(c, n, value, &to, &n->ref);
}

AMP_KEYWORD_FN(amp_kw_dynamic_ref)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    struct amp_target to;
    struct amp_node *first;
    if (!p || find(c, n, value, &to, &first))
        return -1;
    p->dynamic = amp_compile_get(c, sizeof *p->dynamic);
    if (!p->dynamic)
        return -1;
    if (c->in_set)
        return amp_schema_wrong(c, n->doc, value, "invalid_schema",
                                "a schema of a set cannot have $dynamicRef");
    /* Without a $dynamicAnchor at its first target it is an ordinary reference: an empty name. */
    p->dynamic->fallback = first;
    if (to.anchor && to.anchor->dynamic) {
        p->dynamic->name = to.anchor->name;
        c->dynamic_refs = true;
    }
    return 0;
}

static int set_list(struct amp_compiler *c, struct amp_node *n, uint32_t value,
                    struct amp_node_list *l)
{
    const struct amp_tape *t = &n->doc->tape;
    if (t->tok[value].type != AMP_JSON_ARRAY || t->tok[value].count == 0)
        return wrong(c, n, value, "an array of at least one schema is expected");
    l->at = amp_compile_get(c, t->tok[value].count * sizeof(struct amp_node *));
    if (!l->at)
        return -1;
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k].next) {
        struct amp_node *child = amp_node_child(c, n, k);
        if (!child)
            return -1;
        l->at[l->n++] = child;
    }
    return 0;
}

AMP_KEYWORD_FN(amp_kw_all_of)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_list(c, n, value, &p->all) : -1;
}

AMP_KEYWORD_FN(amp_kw_any_of)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_list(c, n, value, &p->any) : -1;
}

AMP_KEYWORD_FN(amp_kw_one_of)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_list(c, n, value, &p->one) : -1;
}

static int set_child(struct amp_compiler *c, struct amp_node *n, uint32_t value,
                     struct amp_node **out)
{
    *out = amp_node_child(c, n, value);
    return *out ? 0 : -1;
}

AMP_KEYWORD_FN(amp_kw_not)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_child(c, n, value, &p->not_) : -1;
}

AMP_KEYWORD_FN(amp_kw_if)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_child(c, n, value, &p->if_) : -1;
}

/* Without `if` beside them, `then` and `else` say nothing; they are compiled all the same, so that
 * a fault in them is found. */
static int set_branch(struct amp_compiler *c, struct amp_node *n, uint32_t value, bool then)
{
    struct amp_node *child = amp_node_child(c, n, value);
    if (!child)
        return -1;
    if (amp_tape_get(&n->doc->tape, n->tok, AMP_SPAN("if")) == AMP_TOK_NONE)
        return 0;
    struct amp_place_rules *p = amp_place_rules(c, n);
    if (!p)
        return -1;
    *(then ? &p->then_ : &p->else_) = child;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_then)
{
    return set_branch(c, n, value, true);
}

AMP_KEYWORD_FN(amp_kw_else)
{
    return set_branch(c, n, value, false);
}

AMP_KEYWORD_FN(amp_kw_unevaluated_properties)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_child(c, n, value, &p->unevaluated_properties) : -1;
}

AMP_KEYWORD_FN(amp_kw_unevaluated_items)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    return p ? set_child(c, n, value, &p->unevaluated_items) : -1;
}

/* Definitions check nothing, but a wrong one is a wrong schema. */
AMP_KEYWORD_FN(amp_kw_definitions)
{
    const struct amp_tape *t = &n->doc->tape;
    if (t->tok[value].type != AMP_JSON_OBJECT)
        return wrong(c, n, value, "definitions are an object");
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next)
        if (!amp_node_child(c, n, k + 1))
            return -1;
    return 0;
}
