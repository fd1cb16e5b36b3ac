/*
 * The check: a walk over program and tape together. It stops at the first rule that does not hold;
 * with r->explain it continues and notes every such rule.
 *
 * Marks exist only below an unevaluatedProperties or unevaluatedItems. A branch that may fail gets
 * marks of its own, which are merged if the branch holds.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "schema/check/run.h"
#include "schema/compile/compiler.h"
#include "json/bytes.h"
#include "json/equal.h"
#include "json/text.h"

enum { STEPS = 4000000, STEPS_A_TOKEN = 64 };

void amp_run_start(struct amp_schema_run *r, const struct amp_schema *s, const struct amp_tape *t,
                   struct amp_error *err)
{
    r->schema = s;
    r->t = t;
    r->err = err;
    r->failed = r->explain = false;
    r->depth = r->n_scope = r->n_bits = r->n_notes = r->branches = r->patterns = 0;
    r->budget = STEPS + STEPS_A_TOKEN * (int64_t)t->n;
}

bool amp_run_fail(struct amp_schema_run *r, const char *code, const char *what)
{
    if (!r->failed)
        amp_fail_text(r->err, AMP_DATAERR, code, "%s", what);
    r->failed = true;
    return false;
}

bool amp_run_fail_memory(struct amp_schema_run *r)
{
    if (!r->failed)
        amp_fail_memory(r->err);
    r->failed = true;
    return false;
}

bool amp_run_text(struct amp_schema_run *r, uint32_t tok, struct amp_span *out)
{
    amp_buf_reset(&r->text);
    if (amp_tok_text(r->t, tok, &r->text, out, r->err) < 0) {
        r->failed = true;
        return false;
    }
    return true;
}

bool amp_run_pattern(struct amp_schema_run *r, const struct amp_pattern *p, struct amp_span text)
{
    int m = amp_pattern_match(p, r->matcher, text, &r->patterns, r->failed ? NULL : r->err);
    if (m < 0)
        r->failed = true;
    return m > 0;
}

bool amp_marks_push(struct amp_schema_run *r, uint32_t count, struct amp_marks *out)
{
    uint32_t words = count / 64 + 1;
    if (r->cap_bits - r->n_bits < words) {
        uint32_t cap = (r->n_bits + words) * 2;
        uint64_t *bits = cap < (64u << 20) ? realloc(r->bits, cap * sizeof *bits) : NULL;
        if (!bits)
            return amp_run_fail_memory(r);
        r->bits = bits;
        r->cap_bits = cap;
    }
    *out = (struct amp_marks){r->n_bits, count};
    memset(r->bits + r->n_bits, 0, words * sizeof *r->bits);
    r->n_bits += words;
    return true;
}

void amp_marks_pop(struct amp_schema_run *r, const struct amp_marks *m)
{
    r->n_bits = m->at;
}

void amp_marks_merge(struct amp_schema_run *r, const struct amp_marks *to,
                     const struct amp_marks *from)
{
    for (uint32_t i = 0; i <= from->count / 64; i++)
        r->bits[to->at + i] |= r->bits[from->at + i];
}

static bool is_one_of_many(struct amp_schema_run *r, const struct amp_node *n,
                           const struct amp_value_rules *v, uint32_t tok)
{
    const struct amp_tok *k = &r->t->tok[tok];
    if (k->type == AMP_JSON_STRING) {
        struct amp_span text = {r->t->text + k->off, k->len};
        if ((k->flags & AMP_TOK_ESCAPED) && !amp_run_text(r, tok, &text))
            return false;
        uint32_t hash = amp_index_hash(text);
        for (uint32_t at = hash, i; amp_index_next(v->index, hash, &at, &i);)
            if (i < v->n_texts && amp_span_eq(v->texts[i], text))
                return true;
        return false;
    }
    uint32_t hash = (uint32_t)amp_tape_hash(r->t, tok);
    for (uint32_t at = hash, i; amp_index_next(v->index, hash, &at, &i);)
        if (i >= v->n_texts && amp_tape_equal(r->t, tok, &n->doc->tape, v->others[i - v->n_texts]))
            return true;
    return false;
}

static bool value_is_one_of(struct amp_schema_run *r, const struct amp_node *n,
                            const struct amp_value_rules *v, uint32_t tok)
{
    const struct amp_tok *k = &r->t->tok[tok];
    if (v->index)
        return is_one_of_many(r, n, v, tok);
    if (k->type == AMP_JSON_STRING) {
        const char *p = r->t->text + k->off;
        if (k->flags & AMP_TOK_ESCAPED) {
            for (uint32_t i = 0; i < v->n_texts; i++)
                if (amp_tok_is(r->t, tok, v->texts[i]))
                    return true;
            return false;
        }
        for (uint32_t i = 0; i < v->n_texts; i++)
            if (v->texts[i].n == k->len && amp_same_bytes(v->texts[i].p, p, k->len))
                return true;
        return false;
    }
    for (uint32_t i = 0; i < v->n_others; i++)
        if (amp_tape_equal(r->t, tok, &n->doc->tape, v->others[i]))
            return true;
    return false;
}

static bool check_string(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok)
{
    const struct amp_string_rules *s = n->string;
    const struct amp_tok *k = &r->t->tok[tok];
    bool ok = true;
    /* A character takes 1 to 12 bytes here (two escapes make one), so mostly no count is needed. */
    if (k->len < (uint64_t)s->min * 12 || k->len > s->max) {
        bool plain = !(k->flags & (AMP_TOK_ESCAPED | AMP_TOK_NONASCII));
        uint32_t length = plain || k->len < s->min ? k->len : amp_json_length(r->t, tok);
        if (length < s->min && amp_run_stop(r, &ok, n, "minLength", tok, NULL))
            return false;
        if (length > s->max && amp_run_stop(r, &ok, n, "maxLength", tok, NULL))
            return false;
    }
    if (s->pattern || s->format) {
        struct amp_span text = {r->t->text + k->off, k->len};
        if ((k->flags & AMP_TOK_ESCAPED) && !amp_run_text(r, tok, &text))
            return false;
        if (s->pattern && !amp_run_pattern(r, s->pattern, text) &&
            amp_run_stop(r, &ok, n, "pattern", tok, NULL))
            return false;
        if (s->format && !s->format(text.p, text.n) && amp_run_stop(r, &ok, n, "format", tok, NULL))
            return false;
    }
    return ok;
}

struct number {
    bool small, read;
    int64_t i;
    struct amp_decimal exact;
};

static int compare_bound(struct number *v, const struct amp_bound *b, struct amp_span text)
{
    if (v->small && b->small)
        return (v->i > b->i) - (v->i < b->i);
    if (!v->read) {
        v->exact = amp_decimal_read(text);
        v->read = true;
    }
    return amp_decimal_compare(&v->exact, &b->exact);
}

static __attribute__((noinline)) bool check_number(struct amp_schema_run *r,
                                                   const struct amp_node *n, uint32_t tok)
{
    const struct amp_number_rules *b = n->number;
    const struct amp_tok *k = &r->t->tok[tok];
    struct amp_span text = amp_tok_raw(r->t, tok);
    struct number v = {0};
    bool ok = true;
    if (!(k->flags & AMP_TOK_FRACTION) && k->len <= 18) {
        v.i = amp_small_int(text.p, k->len);
        v.small = true;
    }
    if (b->minimum && compare_bound(&v, b->minimum, text) < 0 &&
        amp_run_stop(r, &ok, n, "minimum", tok, b->minimum))
        return false;
    if (b->maximum && compare_bound(&v, b->maximum, text) > 0 &&
        amp_run_stop(r, &ok, n, "maximum", tok, b->maximum))
        return false;
    if (b->above && compare_bound(&v, b->above, text) <= 0 &&
        amp_run_stop(r, &ok, n, "exclusiveMinimum", tok, b->above))
        return false;
    if (b->below && compare_bound(&v, b->below, text) >= 0 &&
        amp_run_stop(r, &ok, n, "exclusiveMaximum", tok, b->below))
        return false;
    if (b->multiple) {
        bool fits;
        if (v.small && b->multiple->small) {
            fits = v.i % b->multiple->i == 0;
        } else {
            struct amp_decimal d = amp_decimal_read(text);
            fits = amp_decimal_multiple(&d, &b->multiple->exact);
        }
        if (!fits && amp_run_stop(r, &ok, n, "multipleOf", tok, b->multiple))
            return false;
    }
    return ok;
}

const struct amp_node *amp_run_dynamic(struct amp_schema_run *r, const struct amp_dynamic_ref *d)
{
    const struct amp_schema *s = r->schema;
    if (!d->name.n || !amp_run_spend(r, r->n_scope * s->n_anchors / 32))
        return d->fallback;
    for (uint32_t i = 0; i < r->n_scope; i++)
        for (uint32_t a = 0; a < s->n_anchors; a++)
            if (s->anchors[a].resource == r->scope[i] && amp_span_eq(s->anchors[a].name, d->name))
                return s->anchors[a].node;
    return d->fallback;
}

/* Checks a branch that may fail: without notes, and with marks of its own. */
static bool try_branch(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                       const struct amp_marks *m)
{
    struct amp_marks own;
    bool explain = r->explain;
    if (m && !amp_marks_push(r, m->count, &own))
        return false;
    r->explain = false;
    bool ok = amp_run_node(r, n, tok, m ? &own : NULL);
    r->explain = explain;
    if (m) {
        if (ok)
            amp_marks_merge(r, m, &own);
        amp_marks_pop(r, &own);
    }
    return ok;
}

static bool check_choices(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                          const struct amp_marks *m)
{
    const struct amp_place_rules *p = n->place;
    bool ok = true;
    if (p->any.n) {
        bool any = false;
        for (uint32_t i = 0; i < p->any.n && (m || !any); i++)
            any |= try_branch(r, p->any.at[i], tok, m);
        if (!any) {
            if (!r->explain)
                return false;
            amp_explain_branches(r, n, tok, &p->any, "anyOf");
            ok = false;
        }
    }
    if (p->one.n) {
        uint32_t held = 0;
        for (uint32_t i = 0; i < p->one.n && held < 2; i++)
            held += try_branch(r, p->one.at[i], tok, m);
        if (held != 1) {
            if (!r->explain)
                return false;
            if (held)
                amp_run_note(r, n, "oneOf", tok, NULL, (struct amp_span){"", 0});
            else
                amp_explain_branches(r, n, tok, &p->one, "oneOf");
            ok = false;
        }
    }
    return ok;
}

static bool check_place(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                        const struct amp_marks *m)
{
    const struct amp_place_rules *p = n->place;
    bool ok = true;
    if (p->ref && amp_run_stop_unless(r, &ok, amp_run_node(r, p->ref, tok, m)))
        return false;
    if (p->dynamic &&
        amp_run_stop_unless(r, &ok, amp_run_node(r, amp_run_dynamic(r, p->dynamic), tok, m)))
        return false;
    for (uint32_t i = 0; i < p->all.n; i++)
        if (amp_run_stop_unless(r, &ok, amp_run_node(r, p->all.at[i], tok, m)))
            return false;
    if ((p->any.n || p->one.n) && amp_run_stop_unless(r, &ok, check_choices(r, n, tok, m)))
        return false;
    if (p->not_ && try_branch(r, p->not_, tok, NULL) && !r->failed &&
        amp_run_stop(r, &ok, n, "not", tok, NULL))
        return false;
    if (p->if_ && (p->then_ || p->else_ || m)) {
        const struct amp_node *next = try_branch(r, p->if_, tok, m) ? p->then_ : p->else_;
        if (next && !amp_run_node(r, next, tok, m))
            ok = false;
    }
    return ok && !r->failed;
}

/* Checks the children that no other rule concerned. */
static bool check_unevaluated(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                              const struct amp_node *child, const struct amp_marks *m)
{
    const struct amp_tok *t = r->t->tok;
    bool object = t[tok].type == AMP_JSON_OBJECT, ok = true;
    const char *keyword = object ? "unevaluatedProperties" : "unevaluatedItems";
    uint32_t k = tok + 1;
    if (!amp_run_spend(r, t[tok].count))
        return false;
    for (uint32_t i = 0; i < t[tok].count; i++, k = t[k + object].next) {
        uint32_t value = k + object;
        if (amp_marked(r, m, i))
            continue;
        if (amp_node_is_false(child)) {
            struct amp_span name = object ? amp_tok_raw(r->t, k) : (struct amp_span){"", 0};
            if (amp_run_stop_at(r, &ok, n, keyword, value, NULL, name))
                return false;
        } else if (amp_run_stop_unless(r, &ok, amp_run_node(r, child, value, NULL))) {
            return false;
        }
        amp_mark(r, m, i);
    }
    return ok;
}

static bool check_rules(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                        const struct amp_marks *m)
{
    const struct amp_tok *k = &r->t->tok[tok];
    bool ok = true;
    if (!(n->types >> k->type & 1)) {
        amp_run_stop(r, &ok, n, n->types ? "type" : "false", tok, NULL);
        return false; /* other violations of a value of another type are not reported */
    }
    for (const struct amp_value_rules *v = n->values; v; v = v->also)
        if (!value_is_one_of(r, n, v, tok) &&
            amp_run_stop(r, &ok, n, v->is_const ? "const" : "enum", tok, v))
            return false;
    switch (k->type) {
    case AMP_JSON_STRING:
        if (n->string && !check_string(r, n, tok))
            ok = false;
        break;
    case AMP_JSON_NUMBER:
        if (n->integer && (k->flags & AMP_TOK_FRACTION)) {
            struct amp_decimal d = amp_decimal_read(amp_tok_raw(r->t, tok));
            if (!amp_decimal_is_integer(&d) && amp_run_stop(r, &ok, n, "type", tok, NULL))
                return false;
        }
        if (n->number && !check_number(r, n, tok))
            ok = false;
        break;
    case AMP_JSON_OBJECT:
        if (n->object && !amp_run_object(r, n, tok, m))
            ok = false;
        break;
    case AMP_JSON_ARRAY:
        if (n->array && !amp_run_array(r, n, tok, m))
            ok = false;
        break;
    default:
        break;
    }
    if (!ok && !r->explain)
        return false;
    return (!n->place || check_place(r, n, tok, m)) && ok;
}

/* Most values are short texts and small numbers. They are checked here, without preparations for
 * rules that they do not have. */
bool amp_run_leaf(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok)
{
    const struct amp_tok *k = &r->t->tok[tok];
    const struct amp_value_rules *v = n->values;
    if (!r->explain && (n->types >> k->type & 1) &&
        (!v || (k->type == AMP_JSON_STRING && !v->also))) {
        if (v && !value_is_one_of(r, n, v, tok))
            return false;
        const struct amp_string_rules *s = n->string;
        const struct amp_number_rules *b = n->number;
        if (k->type == AMP_JSON_STRING && !(k->flags & (AMP_TOK_ESCAPED | AMP_TOK_NONASCII))) {
            const char *text = r->t->text + k->off;
            return !s || (k->len >= s->min && k->len <= s->max &&
                          (!s->pattern || amp_run_pattern(r, s->pattern, amp_tok_raw(r->t, tok))) &&
                          (!s->format || s->format(text, k->len)));
        }
        if (k->type == AMP_JSON_NUMBER && !(k->flags & AMP_TOK_FRACTION)) {
            if (!b)
                return true;
            if (k->len <= 18 && b->small) {
                int64_t i = amp_small_int(r->t->text + k->off, k->len);
                return i >= b->least && i <= b->most;
            }
        }
    }
    return check_rules(r, n, tok, NULL) && !r->failed;
}

static bool check_marked(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                         const struct amp_marks *m)
{
    const struct amp_tok *k = &r->t->tok[tok];
    const struct amp_node *child = k->type == AMP_JSON_OBJECT  ? n->place->unevaluated_properties
                                   : k->type == AMP_JSON_ARRAY ? n->place->unevaluated_items
                                                               : NULL;
    if (!amp_run_spend(r, 1 + n->place->all.n + n->place->any.n + n->place->one.n))
        return false;
    if (!child)
        return check_rules(r, n, tok, m);
    struct amp_marks own;
    if (!amp_marks_push(r, k->count, &own))
        return false;
    bool ok = check_rules(r, n, tok, &own);
    if (ok && !check_unevaluated(r, n, tok, child, &own))
        ok = false;
    if (ok && m)
        amp_marks_merge(r, m, &own);
    amp_marks_pop(r, &own);
    return ok;
}

bool amp_run_node(struct amp_schema_run *r, const struct amp_node *n, uint32_t tok,
                  const struct amp_marks *m)
{
    if (++r->depth > RUN_DEPTH) {
        r->depth--;
        return amp_run_fail(r, AMP_CODE(schema_too_deep),
                            "the schema applies itself too often in a row");
    }
    bool enter = r->schema->dynamic && (!r->n_scope || r->scope[r->n_scope - 1] != n->resource);
    if (enter) {
        if (r->n_scope == RUN_SCOPE)
            return amp_run_fail(r, AMP_CODE(schema_too_deep), "too many schemas inside each other");
        r->scope[r->n_scope++] = n->resource;
    }
    bool ok = n->place ? check_marked(r, n, tok, m) : check_rules(r, n, tok, m);
    if (enter)
        r->n_scope--;
    r->depth--;
    return ok && !r->failed;
}

struct amp_schema_run *amp_schema_run_new(struct amp_error *err)
{
    struct amp_schema_run *r = malloc(sizeof *r);
    struct amp_matcher *matcher = r ? amp_matcher_new(err) : NULL;
    if (!matcher) {
        free(r);
        amp_fail_memory(err);
        return NULL;
    }
    memset(r, 0, offsetof(struct amp_schema_run, scope));
    for (unsigned i = 0; i < RUN_SHAPES; i++) {
        r->shapes[i].node = NULL;
        r->shapes[i].busy = r->shapes[i].turn = false;
    }
    r->matcher = matcher;
    amp_buf_init(&r->text, UINT32_MAX);
    amp_buf_init(&r->pointer, UINT32_MAX);
    amp_buf_init(&r->expected, 4096);
    amp_buf_init(&r->name, UINT32_MAX);
    return r;
}

void amp_schema_run_free(struct amp_schema_run *r)
{
    if (!r)
        return;
    amp_matcher_free(r->matcher);
    amp_buf_release(&r->text);
    amp_buf_release(&r->pointer);
    amp_buf_release(&r->expected);
    amp_buf_release(&r->name);
    free(r->bits);
    free(r->slots);
    free(r->notes);
    free(r);
}

int amp_schema_check(const struct amp_schema *s, struct amp_schema_run *r, const struct amp_tape *t,
                     uint32_t tok, struct amp_error *err)
{
    amp_run_start(r, s, t, err);
    bool ok = amp_run_node(r, s->root, tok, NULL);
    return r->failed ? -1 : ok;
}
