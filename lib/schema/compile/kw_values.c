/* Keywords about single values: types, const and enum, strings, numbers. */
#include <string.h>

#include "schema/compile/keywords.h"
#include "schema/format/format.h"
#include "json/equal.h"

enum { FEW_VALUES = 16 };

static int wrong_type(struct amp_compiler *c, const struct amp_node *n, uint32_t tok)
{
    static const char *const words[] = {"null",   "boolean", "object", "array",
                                        "number", "integer", "string", NULL};
    return amp_schema_wrong_value(
        c, n->doc, tok,
        "not one of the seven types null, boolean, object, array, number, integer, string", words);
}

enum { INTEGER = NODE_TYPE_ANY + 1 }; /* beside the bits of amp_node.types */

/* The bits of a type's name, 0 for any other text. */
static unsigned type_bits(const struct amp_tape *t, uint32_t tok)
{
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {
        {"object", 1 << AMP_JSON_OBJECT},
        {"array", 1 << AMP_JSON_ARRAY},
        {"string", 1 << AMP_JSON_STRING},
        {"number", 1 << AMP_JSON_NUMBER},
        {"null", 1 << AMP_JSON_NULL},
        {"boolean", 1 << AMP_JSON_TRUE | 1 << AMP_JSON_FALSE},
        {"integer", INTEGER},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (amp_tok_is(t, tok, amp_span_str(names[i].name)))
            return names[i].bits;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_type)
{
    const struct amp_tape *t = &n->doc->tape;
    unsigned types = 0;
    uint32_t tok = amp_kw_type_of(n, value) == AMP_JSON_ARRAY ? value + 1 : value;
    for (; tok < t->tok[value].next; tok = t->tok[tok].next) {
        unsigned bits = type_bits(t, tok);
        if (!bits)
            return wrong_type(c, n, tok);
        if (types & bits)
            return amp_kw_wrong(c, n, tok, "duplicate type");
        types |= bits;
    }
    if (!types)
        return amp_kw_wrong(c, n, value, "no type is named");
    if (types & INTEGER) {
        n->integer = !(types & 1 << AMP_JSON_NUMBER);
        types |= 1 << AMP_JSON_NUMBER;
    }
    n->types = types & NODE_TYPE_ANY;
    return 0;
}

static int index_values(struct amp_compiler *c, const struct amp_node *n, struct amp_value_rules *v)
{
    struct amp_hash_index *x = amp_compile_get(c, sizeof *x);
    if (!x)
        return -1;
    x->arena = &c->program->arena;
    bool good = true;
    for (uint32_t i = 0; i < v->n_texts && good; i++)
        good = amp_index_add(x, amp_index_hash(v->texts[i]), i);
    for (uint32_t i = 0; i < v->n_others && good; i++)
        good =
            amp_index_add(x, (uint32_t)amp_tape_hash(&n->doc->tape, v->others[i]), v->n_texts + i);
    v->index = x;
    return good ? 0 : amp_fail_memory(c->err);
}

/* Values of const (one token) or enum (the children of an array). */
static int add_values(struct amp_compiler *c, struct amp_node *n, uint32_t at, uint32_t first,
                      uint32_t end, bool is_const)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_value_rules *v = amp_compile_get(c, sizeof *v);
    uint32_t texts = 0, others = 0;
    if (!v)
        return -1;
    for (uint32_t k = first; k < end; k = t->tok[k].next)
        t->tok[k].type == AMP_JSON_STRING ? texts++ : others++;
    struct amp_span *text = amp_compile_get(c, (texts + 1) * sizeof *text);
    uint32_t *other = amp_compile_get(c, (others + 1) * sizeof *other);
    if (!text || !other)
        return -1;
    *v = (struct amp_value_rules){
        .texts = text, .others = other, .at = at, .is_const = is_const, .also = n->values};
    for (uint32_t k = first; k < end; k = t->tok[k].next) {
        if (t->tok[k].type != AMP_JSON_STRING)
            other[v->n_others++] = k;
        else if (amp_compile_text(c, n, k, &text[v->n_texts++]) < 0)
            return -1;
    }
    n->values = v;
    n->doc->compared |= others > 0;
    return v->n_texts + v->n_others > FEW_VALUES ? index_values(c, n, v) : 0;
}

AMP_KEYWORD_FN(amp_kw_const)
{
    return add_values(c, n, value, value, n->doc->tape.tok[value].next, true);
}

AMP_KEYWORD_FN(amp_kw_enum)
{
    if (amp_kw_type_of(n, value) != AMP_JSON_ARRAY)
        return amp_kw_wrong(c, n, value, "enum is an array");
    return add_values(c, n, value, value + 1, n->doc->tape.tok[value].next, false);
}

AMP_KEYWORD_FN(amp_kw_count)
{
    const struct amp_tape *t = &n->doc->tape;
    uint32_t *count = amp_keyword_field(c, n, k);
    struct amp_decimal d = {0};
    int64_t v;
    bool number = t->tok[value].type == AMP_JSON_NUMBER;
    if (!count)
        return -1;
    if (number)
        d = amp_decimal_read(amp_tok_raw(t, value));
    if (!number || d.neg || !amp_decimal_is_integer(&d))
        return amp_kw_wrong(c, n, value, "an integer of 0 or more is expected");
    *count = amp_decimal_int64(&d, &v) && v < NODE_NO_SIZE ? (uint32_t)v : NODE_NO_SIZE;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_pattern)
{
    struct amp_string_rules *s = amp_string_rules(c, n);
    if (!s)
        return -1;
    if (amp_kw_type_of(n, value) != AMP_JSON_STRING)
        return amp_kw_wrong(c, n, value, "pattern is a string");
    if (amp_compile_text(c, n, value, &s->pattern_text) < 0)
        return -1;
    s->pattern = amp_compile_pattern(c, n, value, s->pattern_text);
    return s->pattern ? 0 : -1;
}

AMP_KEYWORD_FN(amp_kw_format)
{
    struct amp_span name;
    if (amp_kw_type_of(n, value) != AMP_JSON_STRING)
        return amp_kw_wrong(c, n, value, "format is a string");
    if (!c->opt->formats && !(amp_node_resource(c, n)->vocabulary & VOCAB_FORMAT_ASSERTION))
        return 0;
    if (amp_compile_text(c, n, value, &name) < 0)
        return -1;
    const struct amp_format *f = amp_format_find(name);
    if (!f)
        return 0; /* unknown ones assert nothing */
    struct amp_string_rules *s = amp_string_rules(c, n);
    if (!s)
        return -1;
    s->format = f->check;
    s->format_name = f->name;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_bound)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_bound **out = amp_keyword_field(c, n, k), *b;
    if (!out)
        return -1;
    if (t->tok[value].type != AMP_JSON_NUMBER)
        return amp_kw_wrong(c, n, value, "a number is expected");
    *out = b = amp_compile_get(c, sizeof *b);
    if (!b)
        return -1;
    b->text = amp_tok_raw(t, value);
    b->exact = amp_decimal_read(b->text);
    b->small = amp_decimal_int64(&b->exact, &b->i);
    return 0;
}

AMP_KEYWORD_FN(amp_kw_multiple_of)
{
    if (amp_kw_bound(c, n, k, value) < 0)
        return -1;
    const struct amp_decimal *divisor = &n->number->multiple->exact;
    if (divisor->neg || !divisor->n)
        return amp_kw_wrong(c, n, value, "multipleOf is greater than 0");
    if (divisor->n > AMP_DECIMAL_DIVISOR)
        return amp_kw_wrong(c, n, value, "multipleOf has too many digits");
    return 0;
}

AMP_KEYWORD_FN(amp_kw_unique_items)
{
    bool *unique = amp_keyword_field(c, n, k);
    if (!unique)
        return -1;
    *unique = amp_kw_type_of(n, value) == AMP_JSON_TRUE;
    if (!*unique && amp_kw_type_of(n, value) != AMP_JSON_FALSE)
        return amp_kw_wrong(c, n, value, "uniqueItems is true or false");
    return 0;
}

/* Keywords that check nothing. A schema that says "readOnly": "yes" is wrong all the same. */

AMP_KEYWORD_FN(amp_kw_text)
{
    if (amp_kw_type_of(n, value) == AMP_JSON_STRING)
        return 0;
    return amp_kw_wrong(c, n, value, "a string is expected");
}

AMP_KEYWORD_FN(amp_kw_flag)
{
    if (amp_kw_type_of(n, value) == AMP_JSON_TRUE || amp_kw_type_of(n, value) == AMP_JSON_FALSE)
        return 0;
    return amp_kw_wrong(c, n, value, "true or false is expected");
}

AMP_KEYWORD_FN(amp_kw_list)
{
    if (amp_kw_type_of(n, value) == AMP_JSON_ARRAY)
        return 0;
    return amp_kw_wrong(c, n, value, "an array is expected");
}

AMP_KEYWORD_FN(amp_kw_vocabulary)
{
    const struct amp_tape *t = &n->doc->tape;
    if (amp_kw_type_of(n, value) != AMP_JSON_OBJECT)
        return amp_kw_wrong(c, n, value, "an object of vocabularies is expected");
    for (uint32_t key = value + 1; key < t->tok[value].next; key = t->tok[key + 1].next)
        if (amp_kw_flag(c, n, k, key + 1) < 0)
            return -1;
    return 0;
}
