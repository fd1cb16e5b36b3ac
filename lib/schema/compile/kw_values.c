/* Keywords about single values: types, const and enum, strings, numbers. */
#include <string.h>

#include "schema/compile/keywords.h"
#include "schema/format/format.h"
#include "json/equal.h"

enum { FEW_VALUES = 16 };

static int wrong(struct amp_compiler *c, const struct amp_node *n, uint32_t tok, const char *what)
{
    return amp_schema_wrong_value(c, n->doc, tok, what, NULL);
}

static const char not_a_type[] =
    "not one of the seven types null, boolean, object, array, number, integer, string";

static int wrong_type(struct amp_compiler *c, const struct amp_node *n, uint32_t tok)
{
    static const char *const words[] = {"null",   "boolean", "object", "array",
                                        "number", "integer", "string", NULL};
    return amp_schema_wrong_value(c, n->doc, tok, not_a_type, words);
}

static bool add_type(const struct amp_tape *t, uint32_t tok, unsigned *types, bool *integer)
{
    static const struct {
        const char *name;
        unsigned bits;
    } names[] = {
        {"object", 1 << AMP_JSON_OBJECT}, {"array", 1 << AMP_JSON_ARRAY},
        {"string", 1 << AMP_JSON_STRING}, {"number", 1 << AMP_JSON_NUMBER},
        {"null", 1 << AMP_JSON_NULL},     {"boolean", 1 << AMP_JSON_TRUE | 1 << AMP_JSON_FALSE},
    };
    if (amp_tok_is(t, tok, AMP_SPAN("integer"))) {
        *integer = true;
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (amp_tok_is(t, tok, amp_span_str(names[i].name))) {
            *types |= names[i].bits;
            return true;
        }
    return false;
}

AMP_KEYWORD_FN(amp_kw_type)
{
    const struct amp_tape *t = &n->doc->tape;
    unsigned types = 0;
    bool integer = false;
    if (t->tok[value].type == AMP_JSON_ARRAY) {
        for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k].next) {
            unsigned before = types;
            bool had = integer;
            if (!add_type(t, k, &types, &integer))
                return wrong_type(c, n, k);
            if (types == before && integer == had)
                return wrong(c, n, k, "duplicate type");
        }
    } else if (!add_type(t, value, &types, &integer)) {
        return wrong_type(c, n, value);
    }
    if (integer && !(types & 1 << AMP_JSON_NUMBER)) {
        n->integer = true;
        types |= 1 << AMP_JSON_NUMBER;
    }
    if (!types)
        return wrong(c, n, value, "no type is named");
    n->types = (uint8_t)types;
    return 0;
}

static int index_values(struct amp_compiler *c, const struct amp_node *n, struct amp_value_rules *v)
{
    struct amp_index *x = amp_compile_get(c, sizeof *x);
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
        else if (amp_compile_text(c, n, k, &text[v->n_texts++]))
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
    if (n->doc->tape.tok[value].type != AMP_JSON_ARRAY)
        return wrong(c, n, value, "enum is an array");
    return add_values(c, n, value, value + 1, n->doc->tape.tok[value].next, false);
}

AMP_KEYWORD_FN(amp_kw_min_length)
{
    struct amp_string_rules *s = amp_string_rules(c, n);
    return s ? amp_compile_count(c, n, value, &s->min) : -1;
}

AMP_KEYWORD_FN(amp_kw_max_length)
{
    struct amp_string_rules *s = amp_string_rules(c, n);
    return s ? amp_compile_count(c, n, value, &s->max) : -1;
}

AMP_KEYWORD_FN(amp_kw_pattern)
{
    struct amp_string_rules *s = amp_string_rules(c, n);
    if (!s)
        return -1;
    if (n->doc->tape.tok[value].type != AMP_JSON_STRING)
        return wrong(c, n, value, "pattern is a string");
    if (amp_compile_text(c, n, value, &s->pattern_text))
        return -1;
    s->pattern = amp_compile_pattern(c, n, value, s->pattern_text);
    return s->pattern ? 0 : -1;
}

AMP_KEYWORD_FN(amp_kw_format)
{
    struct amp_span name;
    if (n->doc->tape.tok[value].type != AMP_JSON_STRING)
        return wrong(c, n, value, "format is a string");
    bool assert_it =
        c->opt->formats || (amp_node_resource(c, n)->vocabulary & VOCAB_FORMAT_ASSERTION);
    if (!assert_it)
        return 0;
    if (amp_compile_text(c, n, value, &name))
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

static int read_bound(struct amp_compiler *c, struct amp_node *n, uint32_t value,
                      struct amp_bound **out)
{
    const struct amp_tape *t = &n->doc->tape;
    if (t->tok[value].type != AMP_JSON_NUMBER)
        return wrong(c, n, value, "a number is expected");
    struct amp_bound *b = amp_compile_get(c, sizeof *b);
    if (!b)
        return -1;
    b->text = amp_tok_raw(t, value);
    b->exact = amp_decimal_read(b->text);
    b->small = amp_decimal_int64(&b->exact, &b->i);
    *out = b;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_minimum)
{
    struct amp_number_rules *r = amp_number_rules(c, n);
    return r ? read_bound(c, n, value, &r->minimum) : -1;
}

AMP_KEYWORD_FN(amp_kw_maximum)
{
    struct amp_number_rules *r = amp_number_rules(c, n);
    return r ? read_bound(c, n, value, &r->maximum) : -1;
}

AMP_KEYWORD_FN(amp_kw_exclusive_minimum)
{
    struct amp_number_rules *r = amp_number_rules(c, n);
    return r ? read_bound(c, n, value, &r->above) : -1;
}

AMP_KEYWORD_FN(amp_kw_exclusive_maximum)
{
    struct amp_number_rules *r = amp_number_rules(c, n);
    return r ? read_bound(c, n, value, &r->below) : -1;
}

AMP_KEYWORD_FN(amp_kw_multiple_of)
{
    struct amp_number_rules *r = amp_number_rules(c, n);
    if (!r || read_bound(c, n, value, &r->multiple))
        return -1;
    if (r->multiple->exact.neg || !r->multiple->exact.n)
        return wrong(c, n, value, "multipleOf is greater than 0");
    if (r->multiple->exact.n > AMP_DECIMAL_DIVISOR)
        return wrong(c, n, value, "multipleOf has too many digits");
    return 0;
}

/* ---- keywords that check nothing; a schema that says "readOnly": "yes" is wrong all the same ----
 */

static enum amp_json_type type_of(const struct amp_node *n, uint32_t tok)
{
    return (enum amp_json_type)n->doc->tape.tok[tok].type;
}

AMP_KEYWORD_FN(amp_kw_text)
{
    if (type_of(n, value) == AMP_JSON_STRING)
        return 0;
    return amp_schema_wrong_value(c, n->doc, value, "a string is expected", NULL);
}

AMP_KEYWORD_FN(amp_kw_flag)
{
    if (type_of(n, value) == AMP_JSON_TRUE || type_of(n, value) == AMP_JSON_FALSE)
        return 0;
    return amp_schema_wrong_value(c, n->doc, value, "true or false is expected", NULL);
}

AMP_KEYWORD_FN(amp_kw_list)
{
    if (type_of(n, value) == AMP_JSON_ARRAY)
        return 0;
    return amp_schema_wrong_value(c, n->doc, value, "an array is expected", NULL);
}

AMP_KEYWORD_FN(amp_kw_vocabulary)
{
    const struct amp_tape *t = &n->doc->tape;
    if (type_of(n, value) != AMP_JSON_OBJECT)
        return amp_schema_wrong_value(c, n->doc, value, "an object of vocabularies is expected",
                                      NULL);
    for (uint32_t k = value + 1; k < t->tok[value].next; k = t->tok[k + 1].next)
        if (amp_kw_flag(c, n, k + 1))
            return -1;
    return 0;
}

AMP_KEYWORD_FN(amp_kw_content_schema)
{
    return amp_node_child(c, n, value) ? 0 : -1;
}
