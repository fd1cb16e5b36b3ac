/* Describes what each keyword expects, and finds the word that was probably meant. */
#include <string.h>

#include "schema/check/run.h"
#include "schema/compile/compiler.h"
#include "schema/format/format.h"

enum { LISTED = 12, SHOWN = 80, MOST_NAMES = 4096, MOST_SCHEMAS = 256 };

static void add_text(struct amp_schema_run *r, const char *text)
{
    amp_buf_str(&r->expected, text, NULL); /* text that does not fit is left out */
}

static void add_item(struct amp_schema_run *r, struct amp_span text, uint32_t i)
{
    if (i == LISTED)
        add_text(r, ", …");
    if (i >= LISTED)
        return;
    if (i)
        add_text(r, ", ");
    if (!text.n)
        add_text(r, "\"\"");
    size_t n = text.n < SHOWN ? text.n : SHOWN;
    while (n < text.n && n > 0 && ((unsigned char)text.p[n] & 0xc0) == 0x80)
        n--;                       /* not inside a character */
    for (size_t at = 0; at < n;) { /* the description ends at a NUL, so it must not contain one */
        size_t plain = strnlen(text.p + at, n - at);
        amp_buf_add(&r->expected, text.p + at, plain, NULL);
        at += plain;
        if (at < n) {
            add_text(r, "\\u0000");
            at++;
        }
    }
}

static void add_count(struct amp_schema_run *r, const char *how, uint32_t n, const char *one,
                      const char *many)
{
    amp_buf_fmt(&r->expected, NULL, "%s %u %s", how, n, n == 1 ? one : many);
}

static void add_types(struct amp_schema_run *r, const struct amp_node *n)
{
    static const struct {
        unsigned bits;
        const char *name;
    } names[] = {
        {1 << AMP_JSON_OBJECT, "object"}, {1 << AMP_JSON_ARRAY, "array"},
        {1 << AMP_JSON_STRING, "string"}, {1 << AMP_JSON_NUMBER, "number"},
        {1 << AMP_JSON_TRUE, "boolean"},  {1 << AMP_JSON_NULL, "null"},
    };
    bool any = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!(n->types & names[i].bits))
            continue;
        if (any)
            add_text(r, " or ");
        add_text(r,
                 n->integer && names[i].bits == 1 << AMP_JSON_NUMBER ? "integer" : names[i].name);
        any = true;
    }
}

/* Lists the values; `shown` is the number already listed. Returns the new number. */
static uint32_t add_list(struct amp_schema_run *r, const struct amp_node *n,
                         const struct amp_value_rules *v, uint32_t shown)
{
    const struct amp_tape *t = &n->doc->tape;
    uint32_t k = v->is_const ? v->at : v->at + 1, text = 0;
    for (; k < t->tok[v->at].next; k = t->tok[k].next) {
        bool word = t->tok[k].type == AMP_JSON_STRING;
        if (word)
            amp_nearest_try(&r->nearest, v->texts[text]);
        if (!shown)
            add_text(r, "one of ");
        add_item(r, word ? v->texts[text++] : amp_tok_source(t, k), shown++);
    }
    return shown;
}

static void add_values(struct amp_schema_run *r, const struct amp_node *n,
                       const struct amp_value_rules *v)
{
    const struct amp_tape *t = &n->doc->tape;
    if (v->is_const) {
        if (v->n_texts) {
            amp_nearest_try(&r->nearest, v->texts[0]);
            add_item(r, v->texts[0], 0);
        } else
            add_item(r, amp_tok_source(t, v->others[0]), 0);
        return;
    }
    if (!t->tok[v->at].count)
        add_text(r, "no value at all");
    add_list(r, n, v, 0);
}

/* Lists the names that a schema allows, with `deep` also those of the schemas that it applies to
 * the same value. Returns their number. */
static uint32_t add_names(struct amp_schema_run *r, const struct amp_node *n, bool deep,
                          uint32_t shown, uint32_t *left)
{
    const struct amp_object_rules *o = n->object;
    for (uint32_t i = 0; o && i < o->n_properties && shown < MOST_NAMES; i++) {
        if (!o->properties[i].node)
            continue;
        if (!shown)
            add_text(r, "one of ");
        amp_nearest_try(&r->nearest, o->properties[i].name);
        add_item(r, o->properties[i].name, shown++);
    }
    const struct amp_place_rules *p = n->place;
    if (!deep || !p || !*left)
        return shown;
    --*left;
    const struct amp_node *const single[] = {p->ref, p->if_, p->then_, p->else_};
    const struct amp_node_list *const lists[] = {&p->all, &p->any, &p->one};
    for (size_t i = 0; i < sizeof single / sizeof *single && shown < MOST_NAMES; i++)
        if (single[i])
            shown = add_names(r, single[i], true, shown, left);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (uint32_t k = 0; k < lists[i]->n && shown < MOST_NAMES; k++)
            shown = add_names(r, lists[i]->at[k], true, shown, left);
    return shown;
}

static void add_known(struct amp_schema_run *r, const struct amp_note *note, bool deep)
{
    amp_nearest_init(&r->nearest, note->name);
    uint32_t left = MOST_SCHEMAS;
    if (!add_names(r, note->node, deep, 0, &left))
        add_text(r, "no such field");
}

/* Alternatives that all are only types, or only fixed values, are listed together. */
static void add_alternatives(struct amp_schema_run *r, const struct amp_node_list *l)
{
    struct amp_node all = {.integer = true};
    uint32_t values = 0, shown = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const struct amp_node *n = l->at[i];
        bool only_type = n->only_type || (n->integer && !n->values && !n->string && !n->number &&
                                          !n->object && !n->array && !n->place);
        if (only_type && n->types != NODE_TYPE_ANY) {
            all.types |= n->types;
            if ((n->types & 1 << AMP_JSON_NUMBER) && !n->integer)
                all.integer = false;
        } else if (n->values && !n->values->also && !n->place) {
            values++;
        } else {
            all.types = 0;
            values = 0;
            break;
        }
    }
    if (all.types && !values) {
        add_types(r, &all);
    } else if (values == l->n && values) {
        for (uint32_t i = 0; i < l->n; i++)
            shown = add_list(r, l->at[i], l->at[i]->values, shown);
    } else {
        add_count(r, "what one of", l->n, "alternative describes", "alternatives describes");
    }
}

static void add_bound(struct amp_schema_run *r, const char *how, const struct amp_bound *b)
{
    amp_buf_fmt(&r->expected, NULL, "%s %.*s", how, (int)(b->text.n < 60 ? b->text.n : 60),
                b->text.p);
}

/* The raw text of a string, which may be a misspelled word of the schema; empty for others. */
static struct amp_span text_of(const struct amp_schema_run *r, uint32_t tok)
{
    if (r->t->tok[tok].type == AMP_JSON_STRING)
        return amp_tok_raw(r->t, tok);
    return (struct amp_span){"", 0};
}

void amp_run_expected(struct amp_schema_run *r, const struct amp_note *note)
{
    const struct amp_node *n = note->node;
    const char *k = note->keyword;
    amp_buf_reset(&r->expected);
    amp_nearest_init(&r->nearest, text_of(r, note->tok));
    if (!strcmp(k, "type"))
        add_types(r, n);
    else if (!strcmp(k, "enum") || !strcmp(k, "const"))
        add_values(r, n, note->detail);
    else if (!strcmp(k, "minLength"))
        add_count(r, "at least", n->string->min, "character", "characters");
    else if (!strcmp(k, "maxLength"))
        add_count(r, "at most", n->string->max, "character", "characters");
    else if (!strcmp(k, "pattern"))
        amp_buf_fmt(&r->expected, NULL, "text that matches %.*s", (int)n->string->pattern_text.n,
                    n->string->pattern_text.p);
    else if (!strcmp(k, "format"))
        add_text(r, amp_format_find(amp_span_str(n->string->format_name))->wanted);
    else if (!strcmp(k, "minimum"))
        add_bound(r, "at least", note->detail);
    else if (!strcmp(k, "maximum"))
        add_bound(r, "at most", note->detail);
    else if (!strcmp(k, "exclusiveMinimum"))
        add_bound(r, "more than", note->detail);
    else if (!strcmp(k, "exclusiveMaximum"))
        add_bound(r, "less than", note->detail);
    else if (!strcmp(k, "multipleOf"))
        add_bound(r, "a multiple of", note->detail);
    else if (!strcmp(k, "minItems"))
        add_count(r, "at least", n->array->min, "element", "elements");
    else if (!strcmp(k, "maxItems"))
        add_count(r, "at most", n->array->max, "element", "elements");
    else if (!strcmp(k, "items") || !strcmp(k, "additionalItems") || !strcmp(k, "unevaluatedItems"))
        add_text(r, "no further element");
    else if (!strcmp(k, "uniqueItems"))
        add_text(r, "no element twice");
    else if (!strcmp(k, "contains"))
        add_text(r, "an element of the required kind");
    else if (!strcmp(k, "minContains"))
        add_count(r, "at least", n->array->min_contains, "such element", "such elements");
    else if (!strcmp(k, "maxContains"))
        add_count(r, "at most", n->array->max_contains, "such element", "such elements");
    else if (!strcmp(k, "minProperties"))
        add_count(r, "at least", n->object->min, "field", "fields");
    else if (!strcmp(k, "maxProperties"))
        add_count(r, "at most", n->object->max, "field", "fields");
    else if (!strcmp(k, "additionalProperties"))
        add_known(r, note, false);
    else if (!strcmp(k, "unevaluatedProperties"))
        add_known(r, note, true);
    else if (!strcmp(k, "required"))
        amp_buf_fmt(&r->expected, NULL, "the field %.*s", (int)note->name.n, note->name.p);
    else if (!strncmp(k, "depend", 6)) {
        const struct amp_dependent *d = note->detail;
        amp_buf_fmt(&r->expected, NULL, "the field %.*s beside %.*s", (int)note->name.n,
                    note->name.p, (int)d->name.n, d->name.p);
    } else if (!strcmp(k, "anyOf") || (!strcmp(k, "oneOf") && note->detail)) {
        add_alternatives(r, note->detail);
    } else if (!strcmp(k, "oneOf"))
        add_text(r, "what exactly one alternative describes, not several");
    else if (!strcmp(k, "not"))
        add_text(r, "anything but what is excluded");
    else
        add_text(r, "nothing at this place");
}
