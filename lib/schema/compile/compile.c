/*
 * Compiles a schema's text to a program. Every subschema that can be reached becomes one node;
 * references share nodes, so recursive schemas are graphs. All faults of a schema are found here
 * and reported with their place; a check finds none.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "schema/compile/compiler.h"
#include "schema/format/pattern.h"

enum { ARENA_MOST = 256 << 20 };

void *amp_compile_get(struct amp_compiler *c, size_t size)
{
    void *p = amp_arena_get(&c->program->arena, size);
    if (!p)
        amp_fail_memory(c->err);
    return p;
}

struct amp_pattern *amp_compile_pattern(struct amp_compiler *c, const struct amp_node *n,
                                        uint32_t tok, struct amp_span text)
{
    char why[AMP_PATTERN_WHY];
    struct amp_program *to = c->program;
    struct amp_pattern *p = amp_pattern_compile(&to->arena, &to->patterns, text, why);
    if (!p && !why[0])
        amp_fail_memory(c->err);
    else if (!p)
        amp_schema_wrong(c, n->doc, tok, AMP_CODE(bad_pattern), why);
    return p;
}

int amp_compile_text(struct amp_compiler *c, const struct amp_node *n, uint32_t tok,
                     struct amp_span *out)
{
    const struct amp_tape *t = &n->doc->tape;
    if (!(t->tok[tok].flags & AMP_TOK_ESCAPED)) {
        *out = amp_tok_raw(t, tok); /* the document's text lives as long as the schema */
        return 0;
    }
    struct amp_span s;
    size_t most = t->tok[tok].len;
    char *p = amp_compile_get(c, most + 1);
    struct amp_buf buf = {p, 0, most + 1, most};
    if (!p || amp_tok_text(t, tok, &buf, &s, c->err) < 0)
        return -1;
    *out = s;
    return 0;
}

void *amp_string_rules(struct amp_compiler *c, struct amp_node *n)
{
    if (!n->string && (n->string = amp_compile_get(c, sizeof *n->string)))
        n->string->max = NODE_NO_SIZE;
    return n->string;
}

void *amp_number_rules(struct amp_compiler *c, struct amp_node *n)
{
    if (!n->number)
        n->number = amp_compile_get(c, sizeof *n->number);
    return n->number;
}

void *amp_object_rules(struct amp_compiler *c, struct amp_node *n)
{
    if (!n->object && (n->object = amp_compile_get(c, sizeof *n->object)))
        n->object->max = NODE_NO_SIZE;
    return n->object;
}

void *amp_array_rules(struct amp_compiler *c, struct amp_node *n)
{
    if (!n->array && (n->array = amp_compile_get(c, sizeof *n->array))) {
        n->array->max = n->array->max_contains = NODE_NO_SIZE;
        n->array->min_contains = 1;
    }
    return n->array;
}

void *amp_place_rules(struct amp_compiler *c, struct amp_node *n)
{
    if (!n->place)
        n->place = amp_compile_get(c, sizeof *n->place);
    return n->place;
}

struct amp_node *amp_node_at(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                             uint32_t resource)
{
    if (d->node[tok])
        return d->node[tok];
    enum amp_json_type type = d->tape.tok[tok].type;
    if (type != AMP_JSON_OBJECT && type != AMP_JSON_TRUE && type != AMP_JSON_FALSE) {
        amp_schema_wrong_value(c, d, tok, "a schema is an object, true or false", NULL);
        return NULL;
    }
    struct amp_node *n = amp_compile_get(c, sizeof *n);
    if (!n || amp_grow(&c->nodes, &c->cap_nodes, c->n_nodes, sizeof *c->nodes, c->err) < 0)
        return NULL;
    n->types = type == AMP_JSON_FALSE ? 0 : NODE_TYPE_ANY;
    n->doc = d;
    n->tok = tok;
    n->resource = d->resource[tok] ? d->resource[tok] - 1 : resource;
    d->node[tok] = n;
    n->next = d->nodes;
    d->nodes = n;
    c->nodes[c->n_nodes++] = n;
    return n;
}

struct amp_node *amp_node_child(struct amp_compiler *c, const struct amp_node *n, uint32_t tok)
{
    return amp_node_at(c, n->doc, tok, n->resource);
}

static bool is_small(const struct amp_bound *b)
{
    return !b || (b->small && b->i < INT64_MAX && b->i > INT64_MIN);
}

/* Bounds that are small integers, as one range. */
static void join_bounds(struct amp_number_rules *b)
{
    b->small = !b->multiple && is_small(b->minimum) && is_small(b->maximum) && is_small(b->above) &&
               is_small(b->below);
    b->least = b->minimum ? b->minimum->i : INT64_MIN;
    b->most = b->maximum ? b->maximum->i : INT64_MAX;
    if (b->small && b->above && b->above->i >= b->least)
        b->least = b->above->i + 1;
    if (b->small && b->below && b->below->i <= b->most)
        b->most = b->below->i - 1;
}

static int apply_reference(struct amp_compiler *c, struct amp_node *n)
{
    struct amp_place_rules *p = amp_place_rules(c, n);
    if (!p)
        return -1;
    p->ref = n->ref;
    return 0;
}

static int compile_node(struct amp_compiler *c, struct amp_node *n)
{
    const struct amp_tape *t = &n->doc->tape;
    if (t->tok[n->tok].type != AMP_JSON_OBJECT) {
        n->only_type = true;
        return 0;
    }
    struct amp_resource r = *amp_node_resource(c, n);
    uint32_t ref = AMP_TOK_NONE;
    if (r.draft == AMP_DRAFT_7) /* draft-07 ignores keywords beside a reference */
        ref = amp_tape_get(t, n->tok, AMP_SPAN("$ref"));
    for (uint32_t k = n->tok + 1; k < t->tok[n->tok].next; k = t->tok[k + 1].next) {
        const struct amp_keyword *w = amp_keyword_find(t, k, r.draft);
        if (!w && c->opt->remark)
            amp_schema_remark(c, n->doc, k, r.draft);
        if (!w || !(w->vocabulary & r.vocabulary) || (ref != AMP_TOK_NONE && k + 1 != ref))
            continue;
        if (w->compile(c, n, w, k + 1) < 0)
            return -1;
    }
    if (n->number)
        join_bounds(n->number);
    const struct amp_place_rules *p = n->place;
    bool nothing = !n->values && !n->string && !n->number && !n->object && !n->array && !n->integer;
    n->only_type = nothing && !p && !n->ref;
    n->leaf = !p && !n->ref && !n->object && !n->array;
    n->bare_ref = nothing && n->types == NODE_TYPE_ANY && n->ref && !p;
    return n->ref && !n->bare_ref ? apply_reference(c, n) : 0;
}

/* The i-th node that n applies to the same value, or NULL. */
static struct amp_node *applied_node(const struct amp_node *n, uint32_t i)
{
    const struct amp_place_rules *p = n->place;
    if (n->ref && i-- == 0)
        return n->ref;
    if (p) {
        struct amp_node *const single[] = {p->not_, p->if_, p->then_, p->else_,
                                           p->dynamic ? p->dynamic->fallback : NULL};
        const struct amp_node_list *const lists[] = {&p->all, &p->any, &p->one};
        for (size_t k = 0; k < sizeof single / sizeof *single; k++)
            if (single[k] && i-- == 0)
                return single[k];
        for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
            if (i < lists[k]->n)
                return lists[k]->at[i];
            i -= lists[k]->n;
        }
    }
    for (uint32_t k = 0; n->object && k < n->object->n_dependents; k++)
        if (n->object->dependents[k].node && i-- == 0)
            return n->object->dependents[k].node;
    return NULL;
}

enum { WHITE, GREY, BLACK };

struct step {
    struct amp_node *node;
    uint32_t next;
};

/* A schema that applies itself to the same value again never ends. Searches depth first, with a
 * list instead of the stack, because the path may be long. */
static int refuse_endless(struct amp_compiler *c)
{
    AMP_FREE struct step *way = malloc((c->n_nodes + 1) * sizeof *way);
    if (!way)
        return amp_fail_memory(c->err);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        struct amp_node *n = c->nodes[i];
        uint32_t depth = 0;
        if (n->colour != WHITE)
            continue;
        n->colour = GREY;
        way[depth++] = (struct step){n, 0};
        while (depth > 0) {
            struct step *s = &way[depth - 1];
            struct amp_node *to = applied_node(s->node, s->next++);
            if (!to) {
                s->node->colour = BLACK;
                depth--;
            } else if (to->colour == GREY) {
                return amp_schema_wrong(c, s->node->doc, s->node->tok, AMP_CODE(invalid_schema),
                                        "this schema applies itself to the same value again");
            } else if (to->colour == WHITE) {
                to->colour = GREY;
                way[depth++] = (struct step){to, 0};
            }
        }
    }
    return 0;
}

/* Skips nodes that are only references. */
static void skip_references(struct amp_node **p)
{
    while (*p && (*p)->bare_ref)
        *p = (*p)->ref;
}

static void skip_in_list(struct amp_node_list *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        skip_references(&l->at[i]);
}

static void skip_in_object(struct amp_object_rules *o)
{
    for (uint32_t i = 0; i < o->n_properties; i++)
        skip_references(&o->properties[i].node);
    for (uint32_t i = 0; i < o->n_patterns; i++)
        skip_references(&o->patterns[i].node);
    for (uint32_t i = 0; i < o->n_dependents; i++)
        skip_references(&o->dependents[i].node);
    skip_references(&o->additional);
    skip_references(&o->names);
}

static void skip_in_place(struct amp_place_rules *p)
{
    struct amp_node **const nodes[] = {&p->ref,
                                       &p->not_,
                                       &p->if_,
                                       &p->then_,
                                       &p->else_,
                                       &p->unevaluated_properties,
                                       &p->unevaluated_items};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        skip_references(nodes[i]);
    skip_in_list(&p->all);
    skip_in_list(&p->any);
    skip_in_list(&p->one);
}

static void skip_all_references(struct amp_compiler *c)
{
    skip_references(&c->schema->root);
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        struct amp_node *n = c->nodes[i];
        if (n->object)
            skip_in_object(n->object);
        if (n->array) {
            skip_in_list(&n->array->prefix);
            skip_references(&n->array->items);
            skip_references(&n->array->contains);
        }
        if (n->place)
            skip_in_place(n->place);
    }
}

/* Every $dynamicAnchor may become the target of a $dynamicRef. */
static int add_dynamic_anchors(struct amp_compiler *c, uint32_t *done)
{
    for (; *done < c->program->n_anchors; ++*done) {
        const struct amp_anchor a = c->program->anchors[*done];
        if (a.dynamic && !amp_node_at(c, a.doc, a.tok, a.resource))
            return -1;
    }
    return 0;
}

static int keep_dynamic_anchors(struct amp_compiler *c)
{
    struct amp_schema *s = c->schema;
    s->dynamic = true;
    s->anchors = amp_compile_get(c, (c->program->n_anchors + 1) * sizeof *s->anchors);
    if (!s->anchors)
        return -1;
    for (uint32_t i = 0; i < c->program->n_anchors; i++) {
        const struct amp_anchor *a = &c->program->anchors[i];
        if (a->dynamic)
            s->anchors[s->n_anchors++] =
                (struct amp_dynamic_anchor){a->resource, a->name, a->doc->node[a->tok]};
    }
    return 0;
}

/* Adds the nodes of the schema that begins at a token to the program. */
static int compile_schema(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                          uint32_t resource)
{
    struct amp_schema *s = c->schema;
    uint32_t anchors = 0;
    s->root = s->first = amp_node_at(c, d, tok, resource);
    if (!s->root)
        return -1;
    for (uint32_t i = 0; i < c->n_nodes; i++) {
        if (compile_node(c, c->nodes[i]) < 0)
            return -1;
        if (i + 1 == c->n_nodes && c->dynamic_refs && add_dynamic_anchors(c, &anchors) < 0)
            return -1;
    }
    if (refuse_endless(c) < 0 || (c->dynamic_refs && keep_dynamic_anchors(c) < 0))
        return -1;
    /* The dynamic scope includes nodes that are only references. */
    for (uint32_t i = 0; i < c->n_nodes && s->dynamic; i++)
        if (c->nodes[i]->bare_ref && apply_reference(c, c->nodes[i]) < 0)
            return -1;
    if (!s->dynamic)
        skip_all_references(c);
    return amp_document_use(c->program, d, 1, c->err);
}

static void program_init(struct amp_program *p)
{
    static atomic_uint_least64_t ids;
    *p = (struct amp_program){.id = atomic_fetch_add(&ids, 1) + 1};
    amp_arena_init(&p->arena, ARENA_MOST);
    p->uri_index.arena = p->anchor_index.arena = &p->arena;
}

static void program_release(struct amp_program *p)
{
    amp_pattern_free_all(p->patterns);
    amp_document_free(p->documents);
    free(p->resources);
    free(p->anchors);
    amp_arena_release(&p->arena);
}

/* A schema and a program of its own. */
struct alone {
    struct amp_schema schema;
    struct amp_program program;
};

struct amp_schema *amp_schema_compile(struct amp_span text, const struct amp_schema_options *opt,
                                      struct amp_error *err)
{
    static const struct amp_schema_options none = {0};
    struct alone *s = calloc(1, sizeof *s);
    if (!s) {
        amp_fail_memory(err);
        return NULL;
    }
    program_init(&s->program);
    s->schema.program = &s->program;
    struct amp_compiler c = {
        .schema = &s->schema, .program = &s->program, .opt = opt ? opt : &none, .err = err};
    enum amp_draft draft = c.opt->draft7 ? AMP_DRAFT_7 : AMP_DRAFT_2020;
    struct amp_schema_document *d =
        amp_document_load(&c, text, amp_span_str(c.opt->base_uri), draft);
    bool failed = !d || compile_schema(&c, d, 0, d->root) < 0;
    free(c.nodes);
    free(s->program.anchors);
    s->program.anchors = NULL;
    if (!failed)
        return &s->schema;
    amp_schema_free(&s->schema);
    return NULL;
}

void amp_schema_free(struct amp_schema *s)
{
    if (!s)
        return;
    program_release(s->program);
    free((struct alone *)s);
}

struct amp_schema_set *amp_schema_set_new(const struct amp_schema_options *opt,
                                          struct amp_error *err)
{
    struct amp_schema_set *set = calloc(1, sizeof *set);
    if (!set) {
        amp_fail_memory(err);
        return NULL;
    }
    program_init(&set->program);
    if (opt)
        set->opt = *opt;
    return set;
}

void amp_schema_set_free(struct amp_schema_set *set)
{
    if (!set)
        return;
    program_release(&set->program);
    free(set);
}

/* Finds the schema at a URI among those of the set, or compiles it. */
static int set_find(struct amp_compiler *c, struct amp_schema_set *set, struct amp_span uri,
                    struct amp_schema **out)
{
    uint32_t resource;
    enum amp_draft draft = set->opt.draft7 ? AMP_DRAFT_7 : AMP_DRAFT_2020;
    int found = amp_resource_find(c, uri, draft, &resource);
    if (found == 0)
        return amp_fail(c->err, AMP_CONFIG, unresolved_ref, "no schema is known by the URI %.*s",
                        (int)uri.n, uri.p);
    if (found < 0)
        return -1;
    struct amp_resource r = set->program.resources[resource];
    for (struct amp_schema *s = set->schemas; s; s = s->next)
        if (s->first->doc == r.doc && s->first->tok == r.tok) {
            *out = s;
            return 0;
        }
    struct amp_schema *s = amp_compile_get(c, sizeof *s);
    if (!s)
        return -1;
    s->program = c->program;
    c->schema = s;
    if (amp_document_open(r.doc, c->err) < 0 || compile_schema(c, r.doc, r.tok, resource) < 0)
        return -1;
    s->next = set->schemas;
    set->schemas = s;
    *out = s;
    return 0;
}

struct amp_schema *amp_schema_set_get(struct amp_schema_set *set, struct amp_span uri,
                                      struct amp_error *err)
{
    struct amp_error why = set->broken;
    struct amp_schema *s = NULL;
    struct amp_compiler c = {
        .program = &set->program, .opt = &set->opt, .err = &why, .in_set = true};
    if (!why.code[0] && set_find(&c, set, uri, &s) < 0)
        set->broken = why;
    free(c.nodes);
    if (!s && err)
        *err = why;
    return s;
}
