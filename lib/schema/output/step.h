/* One keyword at one value, while the standard output is gathered. */
#ifndef SCHEMA_OUTPUT_STEP_H
#define SCHEMA_OUTPUT_STEP_H

#include "schema/output/walk.h"

struct amp_output_step {
    struct amp_output_walk *w;
    const struct amp_node *n;
    const struct amp_keyword *key;
    uint32_t value, tok; /* the keyword's value in the schema; the instance */
    const struct amp_marks *m;
};

/* On to a schema below the keyword, or below a name or index there. */
bool amp_step_down(const struct amp_output_step *s, const struct amp_node *child, uint32_t tok,
                   const struct amp_marks *m);
bool amp_step_down_name(const struct amp_output_step *s, struct amp_span name,
                        const struct amp_node *child, uint32_t tok, const struct amp_marks *m);
bool amp_step_down_index(const struct amp_output_step *s, uint32_t i, const struct amp_node *child,
                         uint32_t tok, const struct amp_marks *m);

/* members.c: keywords about the members of objects and the elements of arrays. */
#define AMP_OUTPUT_MEMBER_LIST(X)                                                                  \
    X(required)                                                                                    \
    X(properties)                                                                                  \
    X(pattern_properties)                                                                          \
    X(property_names)                                                                              \
    X(additional_properties)                                                                       \
    X(unevaluated_properties)                                                                      \
    X(prefix_items)                                                                                \
    X(items)                                                                                       \
    X(additional_items)                                                                            \
    X(unevaluated_items)                                                                           \
    X(contains)
#define X(name) bool amp_step_##name(const struct amp_output_step *s);
AMP_OUTPUT_MEMBER_LIST(X)
#undef X

/* The node of a schema in n's text, with its references as they stand. */
static inline const struct amp_node *amp_step_node(const struct amp_output_step *s, uint32_t tok)
{
    return s->n->doc->node[tok];
}

static inline enum amp_json_type amp_step_type(const struct amp_output_step *s)
{
    return (enum amp_json_type)s->w->r->t->tok[s->tok].type;
}

#endif
