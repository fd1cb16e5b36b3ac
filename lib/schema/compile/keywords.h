/* What compiles each keyword: reads its value at a token and adds to the node's rules. */
#ifndef SCHEMA_KEYWORDS_H
#define SCHEMA_KEYWORDS_H

#include "schema/compile/compiler.h"

#define AMP_KEYWORD_FN(name) int name(struct amp_compiler *c, struct amp_node *n, uint32_t value)
AMP_KEYWORD_FN(amp_kw_text); /* whose value is a string, a flag, an array */
AMP_KEYWORD_FN(amp_kw_flag);
AMP_KEYWORD_FN(amp_kw_list);
AMP_KEYWORD_FN(amp_kw_vocabulary);
AMP_KEYWORD_FN(amp_kw_content_schema);
AMP_KEYWORD_FN(amp_kw_type);
AMP_KEYWORD_FN(amp_kw_const);
AMP_KEYWORD_FN(amp_kw_enum);
AMP_KEYWORD_FN(amp_kw_min_length);
AMP_KEYWORD_FN(amp_kw_max_length);
AMP_KEYWORD_FN(amp_kw_pattern);
AMP_KEYWORD_FN(amp_kw_format);
AMP_KEYWORD_FN(amp_kw_minimum);
AMP_KEYWORD_FN(amp_kw_maximum);
AMP_KEYWORD_FN(amp_kw_exclusive_minimum);
AMP_KEYWORD_FN(amp_kw_exclusive_maximum);
AMP_KEYWORD_FN(amp_kw_multiple_of);
AMP_KEYWORD_FN(amp_kw_items);
AMP_KEYWORD_FN(amp_kw_items_7);
AMP_KEYWORD_FN(amp_kw_additional_items);
AMP_KEYWORD_FN(amp_kw_prefix_items);
AMP_KEYWORD_FN(amp_kw_contains);
AMP_KEYWORD_FN(amp_kw_min_contains);
AMP_KEYWORD_FN(amp_kw_max_contains);
AMP_KEYWORD_FN(amp_kw_min_items);
AMP_KEYWORD_FN(amp_kw_max_items);
AMP_KEYWORD_FN(amp_kw_unique_items);
AMP_KEYWORD_FN(amp_kw_properties);
AMP_KEYWORD_FN(amp_kw_required);
AMP_KEYWORD_FN(amp_kw_additional_properties);
AMP_KEYWORD_FN(amp_kw_pattern_properties);
AMP_KEYWORD_FN(amp_kw_property_names);
AMP_KEYWORD_FN(amp_kw_min_properties);
AMP_KEYWORD_FN(amp_kw_max_properties);
AMP_KEYWORD_FN(amp_kw_dependent_required);
AMP_KEYWORD_FN(amp_kw_dependent_schemas);
AMP_KEYWORD_FN(amp_kw_dependencies);
AMP_KEYWORD_FN(amp_kw_ref);
AMP_KEYWORD_FN(amp_kw_dynamic_ref);
AMP_KEYWORD_FN(amp_kw_all_of);
AMP_KEYWORD_FN(amp_kw_any_of);
AMP_KEYWORD_FN(amp_kw_one_of);
AMP_KEYWORD_FN(amp_kw_not);
AMP_KEYWORD_FN(amp_kw_if);
AMP_KEYWORD_FN(amp_kw_then);
AMP_KEYWORD_FN(amp_kw_else);
AMP_KEYWORD_FN(amp_kw_unevaluated_properties);
AMP_KEYWORD_FN(amp_kw_unevaluated_items);
AMP_KEYWORD_FN(amp_kw_definitions);

#endif
