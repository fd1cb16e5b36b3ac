/*
 * A compiled schema: nodes, one for each subschema that can be reached. A node holds only pointers
 * to the groups of rules it has, so a check looks at what is there and nothing else.
 */
#ifndef SCHEMA_PROGRAM_H
#define SCHEMA_PROGRAM_H

#include <amp/schema/schema.h>

#include "base/arena.h"
#include "schema/compile/rules.h"

struct amp_document;
struct amp_resource;

struct amp_node {
    uint8_t types;
    bool integer;           /* numbers must be integers */
    bool only_type;         /* no rule but the type */
    bool leaf;              /* looks at no other value and applies no other node */
    bool bare_ref;          /* nothing but a reference */
    uint8_t colour;         /* of the search for endless references */
    uint32_t resource, tok; /* tok: in its document */
    struct amp_value_rules *values;
    struct amp_string_rules *string;
    struct amp_number_rules *number;
    struct amp_object_rules *object;
    struct amp_array_rules *array;
    struct amp_place_rules *place;
    const struct amp_document *doc;
    struct amp_node *next; /* of all, in the order they were found */
};

/* A $dynamicAnchor. */
struct amp_dynamic_anchor {
    uint32_t resource;
    struct amp_span name;
    struct amp_node *node;
};

struct amp_schema {
    uint64_t id; /* unlike its address never used again */
    struct amp_arena arena;
    struct amp_node *root, *nodes; /* root: behind references that say nothing else */
    struct amp_node *first;        /* the schema as it stands */
    struct amp_document *documents;
    struct amp_pattern *patterns;
    struct amp_dynamic_anchor *anchors;
    uint32_t n_anchors;
    struct amp_resource *resources; /* by amp_node.resource */
    uint32_t n_resources;
    bool dynamic; /* the dynamic scope must be kept */
    bool folded;  /* amp_schema_fold */
};

#endif
