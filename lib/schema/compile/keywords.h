/* The functions that compile keywords: each reads the value at a token and adds rules to the node.
 * Functions that several keywords share write to the field that the keyword's row names. */
#ifndef AMP_SCHEMA_COMPILE_KEYWORDS_H
#define AMP_SCHEMA_COMPILE_KEYWORDS_H

#include "schema/compile/compiler.h"

#define AMP_KEYWORD_FN(name)                                                                       \
    int name(struct amp_compiler *c, struct amp_node *n, const struct amp_keyword *k,              \
             uint32_t value)

/* kw_values.c: keywords about single values. No check looks at the first four. */
AMP_KEYWORD_FN(amp_kw_text);
AMP_KEYWORD_FN(amp_kw_flag);
AMP_KEYWORD_FN(amp_kw_list);
AMP_KEYWORD_FN(amp_kw_vocabulary);
AMP_KEYWORD_FN(amp_kw_type);
AMP_KEYWORD_FN(amp_kw_const);
AMP_KEYWORD_FN(amp_kw_enum);
AMP_KEYWORD_FN(amp_kw_count); /* an integer of 0 or more; larger ones count as the largest */
AMP_KEYWORD_FN(amp_kw_bound); /* a number */
AMP_KEYWORD_FN(amp_kw_multiple_of);
AMP_KEYWORD_FN(amp_kw_pattern);
AMP_KEYWORD_FN(amp_kw_format);
AMP_KEYWORD_FN(amp_kw_unique_items);

/* kw_children.c: keywords that hold subschemas. */
AMP_KEYWORD_FN(amp_kw_ref);
AMP_KEYWORD_FN(amp_kw_dynamic_ref);
AMP_KEYWORD_FN(amp_kw_schema);  /* one subschema */
AMP_KEYWORD_FN(amp_kw_schemas); /* an array of them */
AMP_KEYWORD_FN(amp_kw_branch);  /* then, else */
AMP_KEYWORD_FN(amp_kw_definitions);
AMP_KEYWORD_FN(amp_kw_content_schema);
AMP_KEYWORD_FN(amp_kw_items);
AMP_KEYWORD_FN(amp_kw_items_7);
AMP_KEYWORD_FN(amp_kw_additional_items);
AMP_KEYWORD_FN(amp_kw_prefix_items);
AMP_KEYWORD_FN(amp_kw_pattern_properties);
AMP_KEYWORD_FN(amp_kw_dependents);

/* kw_properties.c: properties and required share one table. */
AMP_KEYWORD_FN(amp_kw_properties);
AMP_KEYWORD_FN(amp_kw_required);

/* The field that the keyword's row names, in rules that are made at first use; NULL with err. */
void *amp_keyword_field(struct amp_compiler *c, struct amp_node *n, const struct amp_keyword *k);

/* Reads an array of distinct names into a list with room for all of them. */
int amp_kw_names(struct amp_compiler *c, const struct amp_node *n, uint32_t value,
                 struct amp_span *list, uint32_t *count);

/* Refuses the schema because of the value at a token. */
static inline int amp_kw_wrong(struct amp_compiler *c, const struct amp_node *n, uint32_t tok,
                               const char *what)
{
    return amp_schema_wrong_value(c, n->doc, tok, what, NULL);
}

static inline enum amp_json_type amp_kw_type_of(const struct amp_node *n, uint32_t tok)
{
    return (enum amp_json_type)n->doc->tape.tok[tok].type;
}

#endif
