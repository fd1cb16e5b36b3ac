/* The explaining pass: the check again with notes, put in the document's order and in words. */
#include <stdlib.h>
#include <string.h>

#include "schema/compiler.h"
#include "schema/format.h"
#include "schema/run.h"

enum { LISTED = 12 };

void amp_run_note(struct amp_schema_run *r, const struct amp_node *n, const char *keyword,
                  uint32_t tok, const void *detail, struct amp_span name)
{
    if (r->n_notes < RUN_NOTES)
        r->notes[r->n_notes++] = (struct amp_note){n, keyword, tok, name, detail};
}

/* In the document's order; notes of one place stay as they were found. */
static void sort(struct amp_note *notes, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct amp_note v = notes[i];
        uint32_t k = i;
        for (; k > 0 && notes[k - 1].tok > v.tok; k--)
            notes[k] = notes[k - 1];
        notes[k] = v;
    }
}

static void say(struct amp_schema_run *r, const char *text)
{
    amp_buf_str(&r->expected, text, NULL); /* what does not fit is left out */
}

static void say_item(struct amp_schema_run *r, struct amp_span text, uint32_t i)
{
    if (i == LISTED)
        say(r, ", …");
    if (i >= LISTED)
        return;
    if (i)
        say(r, ", ");
    if (!text.n)
        say(r, "\"\"");
    amp_buf_add(&r->expected, text.p, text.n < 80 ? text.n : 80, NULL);
}

static void say_count(struct amp_schema_run *r, const char *how, uint32_t n, const char *one,
                      const char *many)
{
    amp_buf_fmt(&r->expected, NULL, "%s %u %s", how, n, n == 1 ? one : many);
}

static void say_types(struct amp_schema_run *r, const struct amp_node *n)
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
            say(r, " or ");
        say(r, n->integer && names[i].bits == 1 << AMP_JSON_NUMBER ? "integer" : names[i].name);
        any = true;
    }
}

static void say_values(struct amp_schema_run *r, const struct amp_node *n,
                       const struct amp_value_rules *v)
{
    const struct amp_tape *t = &n->doc->tape;
    if (v->is_const) {
        if (v->n_texts)
            say_item(r, v->texts[0], 0);
        else
            say_item(r, amp_tok_source(t, v->others[0]), 0);
        return;
    }
    say(r, t->tok[v->at].count ? "one of " : "no value at all");
    uint32_t i = 0;
    for (uint32_t k = v->at + 1, text = 0; k < t->tok[v->at].next; k = t->tok[k].next, i++)
        say_item(r, t->tok[k].type == AMP_JSON_STRING ? v->texts[text++] : amp_tok_source(t, k), i);
}

static void say_known(struct amp_schema_run *r, const struct amp_object_rules *o)
{
    uint32_t shown = 0;
    if (!o)
        return;
    for (uint32_t i = 0; i < o->n_properties; i++) {
        if (!o->properties[i].node)
            continue;
        if (!shown)
            say(r, "one of ");
        say_item(r, o->properties[i].name, shown++);
    }
    if (!shown)
        say(r, "no such field");
}

static void say_bound(struct amp_schema_run *r, const char *how, const struct amp_bound *b)
{
    amp_buf_fmt(&r->expected, NULL, "%s %.*s", how, (int)(b->text.n < 60 ? b->text.n : 60),
                b->text.p);
}

static void say_expected(struct amp_schema_run *r, const struct amp_note *note)
{
    const struct amp_node *n = note->node;
    const char *k = note->keyword;
    if (!strcmp(k, "type"))
        say_types(r, n);
    else if (!strcmp(k, "enum") || !strcmp(k, "const"))
        say_values(r, n, note->detail);
    else if (!strcmp(k, "minLength"))
        say_count(r, "at least", n->string->min, "character", "characters");
    else if (!strcmp(k, "maxLength"))
        say_count(r, "at most", n->string->max, "character", "characters");
    else if (!strcmp(k, "pattern"))
        amp_buf_fmt(&r->expected, NULL, "text that matches %.*s", (int)n->string->pattern_text.n,
                    n->string->pattern_text.p);
    else if (!strcmp(k, "format"))
        say(r, amp_format_find(amp_span_str(n->string->format_name))->wanted);
    else if (!strcmp(k, "minimum"))
        say_bound(r, "at least", note->detail);
    else if (!strcmp(k, "maximum"))
        say_bound(r, "at most", note->detail);
    else if (!strcmp(k, "exclusiveMinimum"))
        say_bound(r, "more than", note->detail);
    else if (!strcmp(k, "exclusiveMaximum"))
        say_bound(r, "less than", note->detail);
    else if (!strcmp(k, "multipleOf"))
        say_bound(r, "a multiple of", note->detail);
    else if (!strcmp(k, "minItems"))
        say_count(r, "at least", n->array->min, "element", "elements");
    else if (!strcmp(k, "maxItems"))
        say_count(r, "at most", n->array->max, "element", "elements");
    else if (!strcmp(k, "items") || !strcmp(k, "additionalItems") || !strcmp(k, "unevaluatedItems"))
        say(r, "no further element");
    else if (!strcmp(k, "uniqueItems"))
        say(r, "no element twice");
    else if (!strcmp(k, "contains"))
        say(r, "an element of the kind that is asked for");
    else if (!strcmp(k, "minContains"))
        say_count(r, "at least", n->array->min_contains, "such element", "such elements");
    else if (!strcmp(k, "maxContains"))
        say_count(r, "at most", n->array->max_contains, "such element", "such elements");
    else if (!strcmp(k, "minProperties"))
        say_count(r, "at least", n->object->min, "field", "fields");
    else if (!strcmp(k, "maxProperties"))
        say_count(r, "at most", n->object->max, "field", "fields");
    else if (!strcmp(k, "additionalProperties"))
        say_known(r, n->object);
    else if (!strcmp(k, "unevaluatedProperties"))
        say(r, "no such field");
    else if (!strcmp(k, "required"))
        amp_buf_fmt(&r->expected, NULL, "the field %.*s", (int)note->name.n, note->name.p);
    else if (!strncmp(k, "depend", 6)) {
        const struct amp_dependent *d = note->detail;
        amp_buf_fmt(&r->expected, NULL, "the field %.*s beside %.*s", (int)note->name.n,
                    note->name.p, (int)d->name.n, d->name.p);
    } else if (!strcmp(k, "anyOf") || (!strcmp(k, "oneOf") && note->detail)) {
        const struct amp_node_list *l = note->detail;
        say_count(r, "what one of", l->n, "alternative describes", "alternatives describes");
    } else if (!strcmp(k, "oneOf"))
        say(r, "what exactly one alternative describes, not several");
    else if (!strcmp(k, "not"))
        say(r, "anything but what is excluded");
    else
        say(r, "nothing at this place");
}

static int tell(struct amp_schema_run *r, const struct amp_note *note, amp_violation_fn fn,
                void *ctx)
{
    struct amp_violation v = {.keyword = note->keyword, .tok = note->tok, .name = note->name};
    bool of_key = !strcmp(note->keyword, "additionalProperties") ||
                  !strcmp(note->keyword, "unevaluatedProperties");
    amp_buf_reset(&r->pointer);
    amp_buf_reset(&r->expected);
    amp_buf_reset(&r->name);
    if (of_key && amp_tok_text(r->t, note->tok - 1, &r->name, &v.name, r->err))
        return -1;
    if (amp_tape_path(&note->node->doc->tape, note->node->tok, &r->pointer, NULL, r->err))
        return -1;
    if (strcmp(note->keyword, "false") != 0 &&
        (amp_buf_str(&r->pointer, "/", r->err) || amp_buf_str(&r->pointer, note->keyword, r->err)))
        return -1;
    say_expected(r, note);
    v.schema_at = amp_buf_span(&r->pointer);
    v.expected = r->expected.data ? r->expected.data : "";
    fn(ctx, &v);
    return 0;
}

int amp_schema_explain(const struct amp_schema *s, struct amp_schema_run *r,
                       const struct amp_tape *t, uint32_t tok, int most, amp_violation_fn fn,
                       void *ctx, struct amp_error *err)
{
    struct amp_error unread;
    if (!r->notes && !(r->notes = calloc(RUN_NOTES, sizeof *r->notes)))
        return amp_fail(err, AMP_INTERNAL, "no_memory", "no memory to explain");
    r->schema = s;
    r->t = t;
    r->err = err ? err : &unread;
    r->failed = false;
    r->explain = true;
    r->depth = r->n_scope = r->n_bits = r->n_notes = r->branches = 0;
    amp_run_node(r, s->root, tok, NULL);
    r->explain = false;
    if (r->failed)
        return -1;
    sort(r->notes, r->n_notes);
    uint32_t n = most > 0 && (uint32_t)most < r->n_notes ? (uint32_t)most : r->n_notes;
    for (uint32_t i = 0; i < n; i++)
        if (tell(r, &r->notes[i], fn, ctx))
            return -1;
    return (int)n;
}
