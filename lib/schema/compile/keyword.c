/* The keywords: which draft has them, which vocabulary they belong to, where their subschemas are
 * and what compiles them. One table for the search of identifiers and for the compiler. */
#include "schema/compile/keywords.h"

#include <string.h>

#include "base/nearest.h"

enum { D7 = AMP_DRAFT_7, D20 = AMP_DRAFT_2020, BOTH = D7 | D20 };
enum { CORE = VOCAB_CORE, APP = VOCAB_APPLICATOR, VAL = VOCAB_VALIDATION, UNE = VOCAB_UNEVALUATED };

enum { SHORT = 4, LONG = 7 };

#define K(name, drafts, vocabulary, walk, compile)                                                 \
    {                                                                                              \
        name, sizeof(name) - 1, drafts, vocabulary, WALK_##walk, compile                           \
    }

static const struct amp_keyword keywords[] = {
    K("type", BOTH, VAL, NONE, amp_kw_type),
    K("$ref", BOTH, CORE, NONE, amp_kw_ref),
    K("properties", BOTH, APP, MAP, amp_kw_properties),
    K("required", BOTH, VAL, NONE, amp_kw_required),
    K("additionalProperties", BOTH, APP, SCHEMA, amp_kw_additional_properties),
    K("enum", BOTH, VAL, NONE, amp_kw_enum),
    K("const", BOTH, VAL, NONE, amp_kw_const),
    K("minLength", BOTH, VAL, NONE, amp_kw_min_length),
    K("maxLength", BOTH, VAL, NONE, amp_kw_max_length),
    K("pattern", BOTH, VAL, NONE, amp_kw_pattern),
    K("format", BOTH, CORE, NONE, amp_kw_format),
    K("minimum", BOTH, VAL, NONE, amp_kw_minimum),
    K("maximum", BOTH, VAL, NONE, amp_kw_maximum),
    K("exclusiveMinimum", BOTH, VAL, NONE, amp_kw_exclusive_minimum),
    K("exclusiveMaximum", BOTH, VAL, NONE, amp_kw_exclusive_maximum),
    K("multipleOf", BOTH, VAL, NONE, amp_kw_multiple_of),
    K("items", D20, APP, SCHEMA, amp_kw_items),
    K("items", D7, APP, EITHER, amp_kw_items_7),
    K("additionalItems", D7, APP, SCHEMA, amp_kw_additional_items),
    K("prefixItems", D20, APP, LIST, amp_kw_prefix_items),
    K("contains", BOTH, APP, SCHEMA, amp_kw_contains),
    K("minContains", D20, VAL, NONE, amp_kw_min_contains),
    K("maxContains", D20, VAL, NONE, amp_kw_max_contains),
    K("minItems", BOTH, VAL, NONE, amp_kw_min_items),
    K("maxItems", BOTH, VAL, NONE, amp_kw_max_items),
    K("uniqueItems", BOTH, VAL, NONE, amp_kw_unique_items),
    K("patternProperties", BOTH, APP, MAP, amp_kw_pattern_properties),
    K("propertyNames", BOTH, APP, SCHEMA, amp_kw_property_names),
    K("minProperties", BOTH, VAL, NONE, amp_kw_min_properties),
    K("maxProperties", BOTH, VAL, NONE, amp_kw_max_properties),
    K("dependentRequired", D20, VAL, NONE, amp_kw_dependent_required),
    K("dependentSchemas", D20, APP, MAP, amp_kw_dependent_schemas),
    K("dependencies", BOTH, APP, DEPENDENCIES, amp_kw_dependencies),
    K("allOf", BOTH, APP, LIST, amp_kw_all_of),
    K("anyOf", BOTH, APP, LIST, amp_kw_any_of),
    K("oneOf", BOTH, APP, LIST, amp_kw_one_of),
    K("not", BOTH, APP, SCHEMA, amp_kw_not),
    K("if", BOTH, APP, SCHEMA, amp_kw_if),
    K("then", BOTH, APP, SCHEMA, amp_kw_then),
    K("else", BOTH, APP, SCHEMA, amp_kw_else),
    K("unevaluatedProperties", D20, UNE, SCHEMA, amp_kw_unevaluated_properties),
    K("unevaluatedItems", D20, UNE, SCHEMA, amp_kw_unevaluated_items),
    K("$dynamicRef", D20, CORE, NONE, amp_kw_dynamic_ref),
    K("$defs", D20, CORE, MAP, amp_kw_definitions),
    K("definitions", BOTH, CORE, MAP, amp_kw_definitions),
    K("contentSchema", D20, CORE, SCHEMA, amp_kw_content_schema),
    K("contentEncoding", BOTH, CORE, NONE, amp_kw_text),
    K("contentMediaType", BOTH, CORE, NONE, amp_kw_text),
    K("title", BOTH, CORE, NONE, amp_kw_text),
    K("description", BOTH, CORE, NONE, amp_kw_text),
    K("$comment", BOTH, CORE, NONE, amp_kw_text),
    K("readOnly", BOTH, CORE, NONE, amp_kw_flag),
    K("writeOnly", BOTH, CORE, NONE, amp_kw_flag),
    K("deprecated", D20, CORE, NONE, amp_kw_flag),
    K("examples", BOTH, CORE, NONE, amp_kw_list),
    K("$vocabulary", D20, CORE, NONE, amp_kw_vocabulary),
};

const struct amp_keyword *amp_keyword_find(const struct amp_tape *t, uint32_t key,
                                           enum amp_draft draft)
{
    char plain[32];
    const struct amp_tok *k = &t->tok[key];
    const char *name = t->text + k->off;
    size_t n = k->len;
    if (k->flags & AMP_TOK_ESCAPED) {
        struct amp_buf small = {plain, 0, sizeof plain, sizeof plain - 1};
        struct amp_span s;
        if (amp_tok_text(t, key, &small, &s, NULL))
            return NULL;
        name = s.p;
        n = s.n;
    }
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const struct amp_keyword *w = &keywords[i];
        if (w->length == n && (w->drafts & draft) && memcmp(w->name, name, n) == 0)
            return w;
    }
    return NULL;
}

const char *amp_keyword_nearest(struct amp_span name, struct amp_nearest *near)
{
    static const char *const more[] = {"$id", "$schema", "$anchor", "$dynamicAnchor", "default"};
    bool own = name.n > 1 && (name.p[0] == 'x' || name.p[0] == 'X') && name.p[1] == '-';
    amp_nearest_init(near, name);
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords && !own; i++)
        if (keywords[i].length >= SHORT) /* "if" and "not" are near too much */
            amp_nearest_try(near, amp_span_str(keywords[i].name));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (amp_span_is(name, more[i]))
            return "";
        amp_nearest_try(near, amp_span_str(more[i]));
    }
    return near->distance > 1 && name.n < LONG ? "" : near->word;
}
