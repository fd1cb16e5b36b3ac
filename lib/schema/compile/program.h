/*
 * A compiled schema: a node for each subschema that can be reached. A node has pointers to its
 * groups of rules, so a check reads only the rules that exist. The schemas of a set share one
 * program: a subschema that several of them reach is one node.
 */
#ifndef AMP_SCHEMA_COMPILE_PROGRAM_H
#define AMP_SCHEMA_COMPILE_PROGRAM_H

#include <amp/schema/schema.h>

#include "base/arena.h"
#include "schema/compile/rules.h"

struct amp_schema_document;
struct amp_resource;

struct amp_node {
    uint8_t types;
    bool integer;           /* numbers must be integers */
    bool only_type;         /* has no rule except the type */
    bool leaf;              /* concerns no other value and applies no other node */
    bool bare_ref;          /* only a reference; has no place rules unless `dynamic` */
    uint8_t colour;         /* of the search for endless references */
    uint32_t resource, tok; /* tok: in its document */
    struct amp_node *ref;   /* target of its reference; place->ref may skip nodes */
    struct amp_value_rules *values;
    struct amp_string_rules *string;
    struct amp_number_rules *number;
    struct amp_object_rules *object;
    struct amp_array_rules *array;
    struct amp_place_rules *place;
    struct amp_schema_document *doc;
    struct amp_node *next; /* the document's next node */
};

/* A $dynamicAnchor. */
struct amp_dynamic_anchor {
    uint32_t resource;
    struct amp_span name;
    struct amp_node *node;
};

/* The memory of one or several schemas. */
struct amp_program {
    uint64_t id; /* unlike the address, never used again */
    struct amp_arena arena;
    struct amp_schema_document *documents;
    struct amp_pattern *patterns;
    struct amp_resource *resources; /* by amp_node.resource */
    uint32_t n_resources, n_anchors;
    size_t cap_resources, cap_anchors;
    struct amp_anchor *anchors;
    struct amp_hash_index uri_index, anchor_index;
    uint32_t search; /* number of the last search over the documents */
};

struct amp_schema {
    struct amp_program *program;
    struct amp_node *root;  /* after nodes that are only references */
    struct amp_node *first; /* the node of the schema itself */
    struct amp_dynamic_anchor *anchors;
    uint32_t n_anchors;
    bool dynamic;            /* the dynamic scope must be kept */
    bool folded;             /* amp_schema_fold */
    struct amp_schema *next; /* of its set */
};

/* Schemas with one program. */
struct amp_schema_set {
    struct amp_schema_options opt;
    struct amp_program program;
    struct amp_schema *schemas;
    struct amp_error broken; /* the first error; after it the program is not used */
};

#endif
