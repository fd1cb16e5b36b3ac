/* Explains violations: checks again with notes, sorts these and describes them. */
#include <stdlib.h>
#include <string.h>

#include "schema/check/run.h"
#include "schema/compile/compiler.h"

void amp_run_note(struct amp_schema_run *r, const struct amp_node *n, const char *keyword,
                  uint32_t tok, const void *detail, struct amp_span name)
{
    if (r->n_notes < RUN_NOTES)
        r->notes[r->n_notes++] = (struct amp_note){n, keyword, tok, name, detail};
}

/* Into the document's order; notes of one place keep theirs. */
static void sort_notes(struct amp_note *notes, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct amp_note v = notes[i];
        uint32_t k = i;
        for (; k > 0 && notes[k - 1].tok > v.tok; k--)
            notes[k] = notes[k - 1];
        notes[k] = v;
    }
}

/* The description of a property of a schema object, or of a schema that it refers to; raw text. */
static struct amp_span property_description(const struct amp_schema_document *doc, uint32_t object,
                                            struct amp_span name)
{
    const struct amp_tape *t = &doc->tape;
    uint32_t tok = t->tok[object].type == AMP_JSON_OBJECT
                       ? amp_tape_get(t, object, AMP_SPAN("properties"))
                       : AMP_TOK_NONE;
    if (tok != AMP_TOK_NONE && t->tok[tok].type == AMP_JSON_OBJECT)
        tok = amp_tape_get(t, tok, name);
    for (int hops = 0; hops < 8 && tok != AMP_TOK_NONE; hops++) {
        if (t->tok[tok].type != AMP_JSON_OBJECT)
            break;
        uint32_t says = amp_tape_get(t, tok, AMP_SPAN("description"));
        if (says != AMP_TOK_NONE && t->tok[says].type == AMP_JSON_STRING)
            return amp_tok_raw(t, says);
        const struct amp_node *n = doc->node[tok];
        if (!n || !n->ref)
            break;
        doc = n->ref->doc;
        t = &doc->tape;
        tok = n->ref->tok;
    }
    return (struct amp_span){"", 0};
}

/* Whether the value of this key is a schema, or a list of schemas, for the same value as the schema
 * around it. */
static bool is_in_place(const struct amp_tape *t, uint32_t key)
{
    static const char *const words[] = {"allOf", "anyOf", "oneOf", "if", "then", "else"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (amp_tok_is(t, key, amp_span_str(words[i])))
            return true;
    return false;
}

/* The description of a required property: from the schema that requires it, or, if that is a
 * condition, from the nearest outer schema for the same object with a description. */
static struct amp_span find_description(const struct amp_node *n, struct amp_span name)
{
    const struct amp_tape *t = &n->doc->tape;
    struct amp_span found = {"", 0};
    for (uint32_t at = 0; at <= n->tok; at++) {
        if (t->tok[at].next <= n->tok) {
            at = t->tok[at].next - 1; /* not an outer value */
            continue;
        }
        if (at > 0 && (t->tok[at - 1].flags & AMP_TOK_KEY) && !is_in_place(t, at - 1))
            found = (struct amp_span){"", 0};
        struct amp_span about = property_description(n->doc, at, name);
        if (about.n > 0)
            found = about;
    }
    return found;
}

static int report_note(struct amp_schema_run *r, const struct amp_note *note, amp_violation_fn fn,
                       void *ctx)
{
    struct amp_violation v = {.keyword = note->keyword, .tok = note->tok, .name = note->name};
    bool of_key = !strcmp(note->keyword, "additionalProperties") ||
                  !strcmp(note->keyword, "unevaluatedProperties");
    amp_buf_reset(&r->pointer);
    amp_buf_reset(&r->name);
    if (of_key && amp_tok_text(r->t, note->tok - 1, &r->name, &v.name, r->err) < 0)
        return -1;
    if (amp_tape_path(&note->node->doc->tape, note->node->tok, &r->pointer, NULL, r->err) < 0)
        return -1;
    if (strcmp(note->keyword, "false") != 0 &&
        (amp_buf_str(&r->pointer, "/", r->err) < 0 ||
         amp_buf_str(&r->pointer, note->keyword, r->err) < 0))
        return -1;
    struct amp_note named = *note;
    named.name = v.name;
    amp_run_expected(r, &named);
    v.schema_at = amp_buf_span(&r->pointer);
    v.expected = r->expected.data ? r->expected.data : "";
    v.nearest = r->nearest.word;
    if (!strcmp(note->keyword, "required"))
        v.about = find_description(note->node, note->name);
    fn(ctx, &v);
    return 0;
}

int amp_schema_explain(const struct amp_schema *s, struct amp_schema_run *r,
                       const struct amp_tape *t, uint32_t tok, int most, amp_violation_fn fn,
                       void *ctx, struct amp_error *err)
{
    if (!r->notes && !(r->notes = calloc(RUN_NOTES, sizeof *r->notes)))
        return amp_fail_memory(err);
    amp_run_start(r, s, t, err);
    r->explain = true;
    amp_run_node(r, s->root, tok, NULL);
    r->explain = false;
    if (r->failed)
        return -1;
    sort_notes(r->notes, r->n_notes);
    uint32_t n = most > 0 && (uint32_t)most < r->n_notes ? (uint32_t)most : r->n_notes;
    for (uint32_t i = 0; i < n; i++)
        if (report_note(r, &r->notes[i], fn, ctx) < 0)
            return -1;
    return (int)n;
}

/* ---- choices ---- */

struct score {
    bool fits;      /* no note concerns the value itself */
    uint32_t words; /* const and enum of its members that do not hold */
    uint32_t first; /* token of the first fault */
    uint32_t notes;
};

static struct score score_of(const struct amp_schema_run *r, uint32_t from, uint32_t tok)
{
    struct score s = {.fits = true, .first = AMP_TOK_NONE, .notes = r->n_notes - from};
    for (uint32_t i = from; i < r->n_notes; i++) {
        const struct amp_note *note = &r->notes[i];
        bool word = !strcmp(note->keyword, "const") || !strcmp(note->keyword, "enum");
        if (note->tok < s.first)
            s.first = note->tok;
        if (note->tok == tok &&
            (word || !strcmp(note->keyword, "type") || !strcmp(note->keyword, "false")))
            s.fits = false;
        s.words += word && note->tok != tok;
    }
    return s;
}

/* Positive if a is nearer to the value than b. */
static int compare_scores(const struct score *a, const struct score *b)
{
    if (a->fits != b->fits)
        return a->fits - b->fits;
    if (!a->fits)
        return 0;
    if (a->words != b->words)
        return a->words < b->words ? 1 : -1;
    if (a->first != b->first)
        return a->first > b->first ? 1 : -1;
    return (a->notes < b->notes) - (a->notes > b->notes);
}

/* Selects the branch of an anyOf or oneOf that was meant, if none holds: the one whose type fits,
 * whose fixed words (a "kind", a "type") are right, whose first fault comes last, that has the
 * fewest notes, in that order. On a tie, takes one note for the keyword. */
void amp_explain_branches(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                          const struct amp_node_list *l, const char *keyword)
{
    uint32_t before = r->n_notes, best = 0;
    struct score most = {0};
    bool tie = true;
    /* Each level runs its branches twice, so the number of levels is limited. */
    for (uint32_t i = 0; i < l->n && !r->failed && r->branches < RUN_BRANCHES; i++) {
        r->branches++;
        amp_run_node(r, l->at[i], tok, NULL);
        r->branches--;
        struct score s = score_of(r, before, tok);
        r->n_notes = before;
        if (s.first == AMP_TOK_NONE)
            continue;
        int than = i ? compare_scores(&s, &most) : 1;
        if (than > 0) {
            most = s;
            best = i;
        }
        tie = than > 0 ? !s.fits : tie || than == 0;
    }
    if (tie || r->failed) {
        amp_run_note(r, n, keyword, tok, l, (struct amp_span){"", 0});
    } else {
        r->branches++;
        amp_run_node(r, l->at[best], tok, NULL);
        r->branches--;
    }
}
