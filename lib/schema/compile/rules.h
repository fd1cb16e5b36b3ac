/* The rules of a compiled subschema, in groups by the values that they concern. */
#ifndef AMP_SCHEMA_COMPILE_RULES_H
#define AMP_SCHEMA_COMPILE_RULES_H

#include <amp/base/buf.h>

#include "schema/compile/index.h"
#include "schema/format/format.h"
#include "json/decimal.h"

enum {
    NODE_TYPE_ANY = 0x7f, /* bits 1 << enum amp_json_type */
    NODE_NO_SIZE = UINT32_MAX,
};

struct amp_pattern;
struct amp_node;

struct amp_node_list {
    struct amp_node **at;
    uint32_t n;
};

/* `const` and `enum`: strings decoded, other values as tokens of the schema's tape. */
struct amp_value_rules {
    const struct amp_span *texts;
    const uint32_t *others;
    uint32_t n_texts, n_others;
    const struct amp_hash_index *index; /* texts by number, then the others; NULL for few values */
    uint32_t at;                        /* token of the keyword's value */
    bool is_const;
    struct amp_value_rules *also; /* if a schema has both */
};

struct amp_string_rules {
    uint32_t min, max; /* code points; max NODE_NO_SIZE for none */
    struct amp_pattern *pattern;
    struct amp_span pattern_text;
    amp_format_fn format;
    const char *format_name;
};

struct amp_bound {
    bool small; /* fits in `i` */
    int64_t i;
    struct amp_decimal exact;
    struct amp_span text;
};

struct amp_number_rules {
    struct amp_bound *minimum, *maximum, *above, *below, *multiple; /* above, below: exclusive */
    bool small; /* an integer is valid if and only if it is in least..most */
    int64_t least, most;
};

struct amp_property {
    struct amp_span name;
    uint32_t hash;
    uint32_t required;     /* its number from 1, or 0; the first 64 have a bit */
    struct amp_node *node; /* NULL if it is only required */
};

struct amp_pattern_property {
    struct amp_pattern *pattern;
    struct amp_node *node;
};

struct amp_dependent {
    struct amp_span name;
    const struct amp_span *required;
    uint32_t n_required;
    struct amp_node *node; /* dependentSchemas */
    const char *keyword;
};

struct amp_object_rules {
    struct amp_property *properties;
    uint32_t n_properties;
    uint32_t *places; /* of the properties: tokens of their schemas, 0 if only required */
    uint16_t *slots;  /* open addressing by hash: 1 + index, 0 free */
    uint32_t mask;
    uint64_t required; /* the bits of the required properties */
    uint32_t n_required;
    struct amp_pattern_property *patterns;
    uint32_t n_patterns;
    struct amp_dependent *dependents;
    uint32_t n_dependents;
    struct amp_node *additional, *names;
    uint32_t min, max;
};

struct amp_array_rules {
    struct amp_node_list prefix;
    struct amp_node *items, *contains;
    uint32_t min, max, min_contains, max_contains;
    bool unique;
    const char *items_keyword; /* items or additionalItems */
};

struct amp_dynamic_ref {
    struct amp_span name;
    struct amp_node *fallback;
};

/* Subschemas for the same value, and for the children that others left. */
struct amp_place_rules {
    struct amp_node *ref, *not_, *if_, *then_, *else_;
    struct amp_dynamic_ref *dynamic;
    struct amp_node_list all, any, one;
    struct amp_node *unevaluated_properties, *unevaluated_items;
};

#endif
