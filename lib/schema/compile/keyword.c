/* The keywords: their drafts, their vocabulary, where their subschemas are, and the function that
 * compiles them with the field that it fills. One table serves the search for identifiers and the
 * compiler. */
#include "schema/compile/keywords.h"

#include <stddef.h>
#include <string.h>

#include "base/nearest.h"

enum { D7 = AMP_DRAFT_7, D20 = AMP_DRAFT_2020, BOTH = D7 | D20 };
enum { CORE = VOCAB_CORE, APP = VOCAB_APPLICATOR, VAL = VOCAB_VALIDATION, UNE = VOCAB_UNEVALUATED };

enum { SHORT = 4, LONG = 7 };

/* A row, and a row with the field of a group of rules that the function fills. */
#define K(name, drafts, vocabulary, walk, compile)                                                 \
    {                                                                                              \
        name, sizeof(name) - 1, drafts, vocabulary, WALK_##walk, amp_kw_##compile, NULL, 0         \
    }
#define F(name, drafts, vocabulary, walk, compile, group, field)                                   \
    {                                                                                              \
        name, sizeof(name) - 1, drafts, vocabulary, WALK_##walk, amp_kw_##compile,                 \
            amp_##group##_rules, offsetof(struct amp_##group##_rules, field)                       \
    }

static const struct amp_keyword keywords[] = {
    K("type", BOTH, VAL, NONE, type),
    K("$ref", BOTH, CORE, NONE, ref),
    K("properties", BOTH, APP, MAP, properties),
    K("required", BOTH, VAL, NONE, required),
    F("additionalProperties", BOTH, APP, SCHEMA, schema, object, additional),
    K("enum", BOTH, VAL, NONE, enum),
    K("const", BOTH, VAL, NONE, const),
    F("minLength", BOTH, VAL, NONE, count, string, min),
    F("maxLength", BOTH, VAL, NONE, count, string, max),
    K("pattern", BOTH, VAL, NONE, pattern),
    K("format", BOTH, CORE, NONE, format),
    F("minimum", BOTH, VAL, NONE, bound, number, minimum),
    F("maximum", BOTH, VAL, NONE, bound, number, maximum),
    F("exclusiveMinimum", BOTH, VAL, NONE, bound, number, above),
    F("exclusiveMaximum", BOTH, VAL, NONE, bound, number, below),
    F("multipleOf", BOTH, VAL, NONE, multiple_of, number, multiple),
    K("items", D20, APP, SCHEMA, items),
    K("items", D7, APP, EITHER, items_7),
    K("additionalItems", D7, APP, SCHEMA, additional_items),
    F("prefixItems", D20, APP, LIST, prefix_items, array, prefix),
    F("contains", BOTH, APP, SCHEMA, schema, array, contains),
    F("minContains", D20, VAL, NONE, count, array, min_contains),
    F("maxContains", D20, VAL, NONE, count, array, max_contains),
    F("minItems", BOTH, VAL, NONE, count, array, min),
    F("maxItems", BOTH, VAL, NONE, count, array, max),
    F("uniqueItems", BOTH, VAL, NONE, unique_items, array, unique),
    K("patternProperties", BOTH, APP, MAP, pattern_properties),
    F("propertyNames", BOTH, APP, SCHEMA, schema, object, names),
    F("minProperties", BOTH, VAL, NONE, count, object, min),
    F("maxProperties", BOTH, VAL, NONE, count, object, max),
    K("dependentRequired", D20, VAL, NONE, dependents),
    K("dependentSchemas", D20, APP, MAP, dependents),
    K("dependencies", BOTH, APP, DEPENDENCIES, dependents),
    F("allOf", BOTH, APP, LIST, schemas, place, all),
    F("anyOf", BOTH, APP, LIST, schemas, place, any),
    F("oneOf", BOTH, APP, LIST, schemas, place, one),
    F("not", BOTH, APP, SCHEMA, schema, place, not_),
    F("if", BOTH, APP, SCHEMA, schema, place, if_),
    F("then", BOTH, APP, SCHEMA, branch, place, then_),
    F("else", BOTH, APP, SCHEMA, branch, place, else_),
    F("unevaluatedProperties", D20, UNE, SCHEMA, schema, place, unevaluated_properties),
    F("unevaluatedItems", D20, UNE, SCHEMA, schema, place, unevaluated_items),
    K("$dynamicRef", D20, CORE, NONE, dynamic_ref),
    K("$defs", D20, CORE, MAP, definitions),
    K("definitions", BOTH, CORE, MAP, definitions),
    K("contentSchema", D20, CORE, SCHEMA, content_schema),
    K("contentEncoding", BOTH, CORE, NONE, text),
    K("contentMediaType", BOTH, CORE, NONE, text),
    K("title", BOTH, CORE, NONE, text),
    K("description", BOTH, CORE, NONE, text),
    K("$comment", BOTH, CORE, NONE, text),
    K("readOnly", BOTH, CORE, NONE, flag),
    K("writeOnly", BOTH, CORE, NONE, flag),
    K("deprecated", D20, CORE, NONE, flag),
    K("examples", BOTH, CORE, NONE, list),
    K("$vocabulary", D20, CORE, NONE, vocabulary),
};

void *amp_keyword_field(struct amp_compiler *c, struct amp_node *n, const struct amp_keyword *k)
{
    char *rules = k->rules(c, n);
    return rules ? rules + k->field : NULL;
}

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
        if (amp_tok_text(t, key, &small, &s, NULL) < 0)
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
        if (keywords[i].length >= SHORT) /* "if" and "not" are near to too many words */
            amp_nearest_try(near, amp_span_str(keywords[i].name));
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        if (amp_span_is(name, more[i]))
            return "";
        amp_nearest_try(near, amp_span_str(more[i]));
    }
    return near->distance > 1 && name.n < LONG ? "" : near->word;
}
