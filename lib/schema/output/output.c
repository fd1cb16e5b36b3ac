/*
 * The walk for the standard output: every keyword of every schema that applies, in the order of the
 * schema's text, so that each unit has the path that led to it. The rules of a single value are
 * checked by the check itself, with a node without children.
 */
#include <amp/schema/output.h>

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "schema/compile/keywords.h"
#include "schema/output/walk.h"

enum { WALK_DEPTH = 1000, NOTES_MOST = 16 };

/* Adds the unit of a violation of this node. */
static int add_note(struct amp_output_walk *w, const struct amp_note *note)
{
    struct amp_schema_run *r = w->r;
    AMP_BUF struct amp_buf says = {0};
    amp_buf_init(&says, 16 << 10);
    amp_run_expected(r, note);
    struct amp_span found = amp_tok_source(r->t, note->tok);
    bool cut = found.n > 60;
    for (found.n = cut ? 60 : found.n; cut && ((unsigned char)found.p[found.n] & 0xc0) == 0x80;)
        found.n--;
    bool missing = !strcmp(note->keyword, "required") || !strncmp(note->keyword, "depend", 6);
    int bad = amp_buf_fmt(&says, w->err, "%s%.*s", missing ? "missing: " : "expected ",
                          (int)r->expected.len, r->expected.len ? r->expected.data : "");
    if (!bad && !missing)
        bad = amp_buf_fmt(&says, w->err, "; found %.*s%s", (int)found.n, found.p, cut ? "…" : "");
    if (!bad && r->nearest.word[0])
        bad = amp_buf_fmt(&says, w->err, "; did you mean `%s`?", r->nearest.word);
    const char *keyword = strcmp(note->keyword, "false") ? note->keyword : NULL;
    return bad ? -1
               : amp_units_add(&w->units, UNIT_ERROR, w->s, note->node, keyword,
                               amp_buf_span(&says), w->err);
}

bool amp_walk_wrong(struct amp_output_walk *w, const struct amp_node *n, const char *keyword,
                    uint32_t tok, const void *detail, struct amp_span name)
{
    struct amp_note note = {n, keyword, tok, name, detail};
    if (!w->r->failed && add_note(w, &note) < 0)
        w->r->failed = true;
    return false;
}

void amp_walk_annotate(struct amp_output_walk *w, const struct amp_node *n, const char *keyword,
                       struct amp_span json)
{
    if (!w->r->failed &&
        amp_units_add(&w->units, UNIT_ANNOTATION, w->s, n, keyword, json, w->err) < 0)
        w->r->failed = true;
}

/* Appends a value of the schema's text without white space. */
static int add_compact(const struct amp_tape *t, uint32_t tok, struct amp_buf *out,
                       struct amp_error *err)
{
    const struct amp_tok *k = &t->tok[tok];
    struct amp_span source = amp_tok_source(t, tok);
    if (k->type != AMP_JSON_ARRAY && k->type != AMP_JSON_OBJECT)
        return amp_buf_add(out, source.p, source.n, err);
    bool object = k->type == AMP_JSON_OBJECT;
    int bad = amp_buf_str(out, object ? "{" : "[", err);
    for (uint32_t c = tok + 1; c < k->next && !bad; c = t->tok[c + object].next) {
        if (c > tok + 1)
            bad = amp_buf_str(out, ",", err);
        if (object && !bad)
            bad = add_compact(t, c, out, err) || amp_buf_str(out, ":", err);
        if (!bad)
            bad = add_compact(t, c + object, out, err);
    }
    return bad || amp_buf_str(out, object ? "}" : "]", err) ? -1 : 0;
}

/* Adds the value of a keyword as an annotation. */
static void walk_remark(struct amp_output_walk *w, const struct amp_node *n, uint32_t key)
{
    const struct amp_tape *t = &n->doc->tape;
    AMP_BUF struct amp_buf json = {0}, name = {0};
    struct amp_span plain;
    amp_buf_init(&json, 16 << 20);
    amp_buf_init(&name, 64 << 10);
    if (amp_tok_text(t, key, &name, &plain, w->err) < 0 || amp_buf_add(&name, "", 0, w->err) < 0 ||
        add_compact(t, key + 1, &json, w->err)) {
        w->r->failed = true;
        return;
    }
    AMP_FREE char *keyword = amp_span_dup(plain);
    if (keyword)
        amp_walk_annotate(w, n, keyword, amp_buf_span(&json));
}

/* Checks the rules of the value itself: the node without children. */
static bool walk_assertions(struct amp_output_walk *w, const struct amp_node *n, uint32_t tok)
{
    struct amp_schema_run *r = w->r;
    struct amp_node alone = *n;
    struct amp_object_rules object;
    struct amp_array_rules array;
    alone.place = NULL;
    if (n->object) {
        object = (struct amp_object_rules){.min = n->object->min, .max = n->object->max};
        alone.object = &object;
    }
    if (n->array) {
        array = (struct amp_array_rules){
            .min = n->array->min, .max = n->array->max, .unique = n->array->unique};
        alone.array = &array;
    }
    r->n_notes = 0;
    r->explain = true;
    bool ok = amp_run_node(r, &alone, tok, NULL);
    r->explain = false;
    if (r->failed)
        return false;
    for (uint32_t i = 0; i < r->n_notes && i < NOTES_MOST; i++) {
        const struct amp_note *note = &r->notes[i];
        amp_walk_wrong(w, n, note->keyword, note->tok, note->detail, note->name);
    }
    return ok;
}

static bool is_remark(const struct amp_keyword *k, const struct amp_tape *t, uint32_t key)
{
    struct amp_span name = amp_tok_raw(t, key);
    if (!k) /* unknown keywords are annotations too, except those of the core */
        return !(name.n && name.p[0] == '$') && !amp_span_is(name, "id");
    return (k->compile == amp_kw_text && !amp_span_is(name, "$comment")) ||
           k->compile == amp_kw_flag || k->compile == amp_kw_list || k->compile == amp_kw_format ||
           k->compile == amp_kw_content_schema;
}

/* The keywords of contents concern strings only. */
static bool is_for_type(const struct amp_tape *t, uint32_t key, enum amp_json_type type)
{
    struct amp_span name = amp_tok_raw(t, key);
    return type == AMP_JSON_STRING || name.n < 7 || memcmp(name.p, "content", 7) != 0;
}

static bool walk_keywords(struct amp_output_walk *w, const struct amp_node *n, uint32_t tok,
                          const struct amp_marks *m)
{
    const struct amp_tape *t = &n->doc->tape;
    const struct amp_resource *res = &w->s->program->resources[n->resource];
    enum amp_json_type type = (enum amp_json_type)w->r->t->tok[tok].type;
    uint32_t ref = AMP_TOK_NONE;
    bool ok = walk_assertions(w, n, tok);
    if (res->draft == AMP_DRAFT_7)
        ref = amp_tape_get(t, n->tok, AMP_SPAN("$ref"));
    for (int turn = 0; turn < AMP_WALK_TURNS; turn++) {
        for (uint32_t k = n->tok + 1; k < t->tok[n->tok].next && !w->r->failed;
             k = t->tok[k + 1].next) {
            if (ref != AMP_TOK_NONE && k + 1 != ref)
                continue;
            const struct amp_keyword *key = amp_keyword_find(t, k, res->draft);
            if (turn == 0 && is_remark(key, t, k) && is_for_type(t, k, type))
                walk_remark(w, n, k);
            if (key && (key->vocabulary & res->vocabulary) &&
                !amp_walk_keyword(w, n, key, turn, k + 1, tok, m))
                ok = false;
        }
    }
    return ok && !w->r->failed;
}

static bool walk_place(struct amp_output_walk *w, const struct amp_node *n, uint32_t tok,
                       const struct amp_marks *m)
{
    struct amp_schema_run *r = w->r;
    uint32_t first = w->units.n;
    struct amp_marks own = {0};
    const struct amp_tok *k = &r->t->tok[tok];
    bool holds = k->type == AMP_JSON_OBJECT || k->type == AMP_JSON_ARRAY;
    if (!amp_run_spend(r, holds ? k->count / 4 : 0) ||
        !amp_marks_push(r, holds ? k->count : 0, &own))
        return false;
    bool ok = n->doc->tape.tok[n->tok].type == AMP_JSON_OBJECT
                  ? walk_keywords(w, n, tok, &own)
                  : n->types || amp_walk_wrong(w, n, "false", tok, NULL, (struct amp_span){"", 0});
    if (ok && m)
        amp_marks_merge(r, m, &own);
    amp_marks_pop(r, &own);
    amp_units_drop(&w->units, first, ok ? UNIT_ERROR : UNIT_ANNOTATION);
    return ok;
}

bool amp_walk_node(struct amp_output_walk *w, const struct amp_node *n, uint32_t tok,
                   const struct amp_marks *m)
{
    struct amp_schema_run *r = w->r;
    if (r->failed || !amp_run_spend(r, 1))
        return false;
    if (w->depth == WALK_DEPTH || (r->schema->dynamic && r->n_scope == RUN_SCOPE))
        return amp_run_fail(r, AMP_CODE(schema_too_deep),
                            "the schema applies itself too often in a row");
    bool enter = r->schema->dynamic && (!r->n_scope || r->scope[r->n_scope - 1] != n->resource);
    if (enter)
        r->scope[r->n_scope++] = n->resource;
    w->depth++;
    bool ok = walk_place(w, n, tok, m);
    w->depth--;
    r->n_scope -= enter;
    return ok && !r->failed;
}

int amp_schema_output(const struct amp_schema *s, struct amp_schema_run *r,
                      const struct amp_tape *t, uint32_t tok, enum amp_output form,
                      struct amp_buf *out, struct amp_error *err)
{
    struct amp_output_walk w = {.s = s, .r = r, .err = err};
    if (!r->notes && !(r->notes = calloc(RUN_NOTES, sizeof *r->notes)))
        return amp_fail_memory(err);
    amp_run_start(r, s, t, err);
    amp_units_init(&w.units);
    if (amp_units_add(&w.units, UNIT_ROOT, s, s->first, NULL, (struct amp_span){"", 0}, err) < 0)
        r->failed = true;
    bool ok = amp_walk_node(&w, s->first, tok, NULL);
    int result = r->failed ? -1 : ok;
    if (result >= 0 && amp_units_write(&w.units, ok, form, out, err) < 0)
        result = -1;
    amp_units_release(&w.units);
    return result;
}
