/*
 * Loads schema texts and finds their resources ($id) and anchors.
 *
 * Identifiers are searched only where a keyword has a subschema, so an "$id" inside an enum or
 * below an unknown keyword has no effect. A reference by pointer may still lead there; then that
 * place is searched when the reference is resolved.
 */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "schema/compile/compiler.h"
#include "schema/format/uri.h"

enum {
    URI_MAX = 64 << 10,
    RESOURCES_MOST = 65536,
    ANCHORS_MOST = 65536,
    METAS_MOST = 8,
    TEXT_MAX = 32 << 20
};

static uint32_t member(const struct amp_schema_document *d, uint32_t tok, const char *key)
{
    return amp_tape_get(&d->tape, tok, amp_span_str(key));
}

/* Copies a string; another value is refused with `wrong`. */
static int text_of(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t tok,
                   const char *wrong, struct amp_span *out)
{
    AMP_BUF struct amp_buf plain = {0};
    struct amp_span s;
    if (d->tape.tok[tok].type != AMP_JSON_STRING)
        return amp_schema_wrong(c, d, tok, AMP_CODE(invalid_schema), wrong);
    amp_buf_init(&plain, URI_MAX);
    if (amp_tok_text(&d->tape, tok, &plain, &s, c->err) < 0)
        return -1;
    return amp_arena_text(&c->program->arena, s, out) ? 0 : amp_fail_memory(c->err);
}

static int add_anchor(struct amp_compiler *c, struct amp_schema_document *d, uint32_t resource,
                      uint32_t tok, uint32_t value, size_t skip, bool dynamic)
{
    struct amp_program *p = c->program;
    struct amp_span name;
    if (text_of(c, d, value, "an anchor is a string", &name) < 0)
        return -1;
    name.p += skip;
    name.n -= skip;
    for (size_t i = 0; i < name.n && !skip; i++) {
        char b = name.p[i];
        bool first = amp_is_alpha(b) || b == '_';
        if (!first && (i == 0 || !(amp_is_digit(b) || b == '-' || b == '.')))
            return amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema),
                                    "not a plain anchor name");
    }
    if (!name.n)
        return amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema), "an anchor has a name");
    uint32_t found = amp_anchor_find(c, resource, name);
    if (found != AMP_TOK_NONE) {
        if (p->anchors[found].tok != tok)
            return amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema), "duplicate anchor");
        p->anchors[found].dynamic |= dynamic;
        return 0;
    }
    if (p->n_anchors == ANCHORS_MOST ||
        !amp_index_add(&p->anchor_index, amp_anchor_hash(resource, name), p->n_anchors))
        return amp_fail_memory(c->err);
    if (amp_grow(&p->anchors, &p->cap_anchors, p->n_anchors, sizeof *p->anchors, c->err) < 0)
        return -1;
    p->anchors[p->n_anchors++] = (struct amp_anchor){resource, tok, name, dynamic, d};
    return 0;
}

static const struct {
    const char *uri;
    unsigned bit;
} vocabularies[] = {
    {"https://json-schema.org/draft/2020-12/vocab/core", VOCAB_CORE},
    {"https://json-schema.org/draft/2020-12/vocab/applicator", VOCAB_APPLICATOR},
    {"https://json-schema.org/draft/2020-12/vocab/unevaluated", VOCAB_UNEVALUATED},
    {"https://json-schema.org/draft/2020-12/vocab/validation", VOCAB_VALIDATION},
    {"https://json-schema.org/draft/2020-12/vocab/format-assertion", VOCAB_FORMAT_ASSERTION},
    {"https://json-schema.org/draft/2020-12/vocab/format-annotation", VOCAB_OTHER},
    {"https://json-schema.org/draft/2020-12/vocab/content", VOCAB_OTHER},
    {"https://json-schema.org/draft/2020-12/vocab/meta-data", VOCAB_OTHER},
};

/* Reads $vocabulary of a user's metaschema. */
static int read_vocabulary(struct amp_compiler *c, const struct amp_schema_document *meta,
                           uint32_t map, unsigned *out)
{
    const struct amp_tape *t = &meta->tape;
    unsigned bits = VOCAB_CORE;
    if (t->tok[map].type != AMP_JSON_OBJECT)
        return amp_schema_wrong(c, meta, map, AMP_CODE(invalid_schema), "$vocabulary is an object");
    for (uint32_t k = map + 1; k < t->tok[map].next; k = t->tok[k + 1].next) {
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++)
            if (amp_tok_is(t, k, amp_span_str(vocabularies[i].uri)))
                bit = vocabularies[i].bit;
        if (!bit && t->tok[k + 1].type == AMP_JSON_TRUE)
            return amp_schema_wrong(c, meta, k, AMP_CODE(unknown_vocabulary),
                                    "a vocabulary that it requires is not known");
        bits |= bit;
    }
    *out = bits;
    return 0;
}

enum amp_draft amp_draft_find(struct amp_span uri)
{
    if (amp_span_is(uri, "https://json-schema.org/draft/2020-12/schema") ||
        amp_span_is(uri, "http://json-schema.org/draft/2020-12/schema"))
        return AMP_DRAFT_2020;
    if (amp_span_is(uri, "http://json-schema.org/draft-07/schema") ||
        amp_span_is(uri, "https://json-schema.org/draft-07/schema"))
        return AMP_DRAFT_7;
    return AMP_DRAFT_NONE;
}

static struct amp_span without_hash(struct amp_span uri)
{
    uri.n -= amp_span_ends(uri, "#");
    return uri;
}

static int read_dialect(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                        struct amp_resource *r)
{
    uint32_t value = member(d, tok, "$schema");
    struct amp_span uri;
    if (value == AMP_TOK_NONE)
        return 0;
    if (text_of(c, d, value, "$schema is a string", &uri) < 0)
        return -1;
    uri = without_hash(uri);
    enum amp_draft draft = amp_draft_find(uri);
    if (draft != AMP_DRAFT_NONE) {
        r->draft = draft;
        r->vocabulary = VOCAB_USUAL;
        return 0;
    }
    /* A user's metaschema: its $schema and $vocabulary apply. */
    struct amp_span text;
    if (!c->opt->resolve || c->opt->resolve(c->opt->resolve_ctx, uri, &text) != 0)
        return amp_schema_wrong(c, d, value, AMP_CODE(unresolved_ref),
                                "this $schema is neither draft 2020-12 nor draft-07, and no "
                                "metaschema is known by it");
    if (++c->metas > METAS_MOST)
        return amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema),
                                "metaschemas without an end");
    struct amp_schema_document meta = {.next = d, .asked = uri, .text = text};
    struct amp_json_fault fault;
    struct amp_resource above = {.draft = r->draft, .vocabulary = r->vocabulary};
    int result = 0;
    amp_tape_init(&meta.tape, NULL);
    if (amp_tape_scan(&meta.tape, text.p, text.n, &fault) < 0)
        result =
            amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema), "its metaschema is not JSON");
    if (!result && member(&meta, 0, "$schema") != AMP_TOK_NONE)
        result = read_dialect(c, &meta, 0, &above);
    uint32_t map = result ? AMP_TOK_NONE : member(&meta, 0, "$vocabulary");
    if (map != AMP_TOK_NONE && above.draft == AMP_DRAFT_2020)
        result = read_vocabulary(c, &meta, map, &above.vocabulary);
    if (!result) {
        r->draft = above.draft;
        r->vocabulary = above.vocabulary;
    }
    amp_tape_release(&meta.tape);
    c->metas--;
    return result;
}

static int add_resource(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                        struct amp_span uri, const struct amp_resource *around, uint32_t *out)
{
    struct amp_program *p = c->program;
    struct amp_resource r = *around;
    r.doc = d;
    r.tok = tok;
    r.uri = uri;
    if (d->tape.tok[tok].type == AMP_JSON_OBJECT && read_dialect(c, d, tok, &r) < 0)
        return -1;
    if (p->n_resources == RESOURCES_MOST ||
        !amp_index_add(&p->uri_index, amp_index_hash(uri), p->n_resources))
        return amp_fail_memory(c->err);
    if (amp_grow(&p->resources, &p->cap_resources, p->n_resources, sizeof *p->resources, c->err) <
        0)
        return -1;
    p->resources[p->n_resources] = r;
    *out = p->n_resources++;
    d->has_parts |= tok != 0;
    return 0;
}

/* Reads $id, which names a new resource, or in draft-07 perhaps only an anchor. */
static int read_id(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                   uint32_t *resource)
{
    struct amp_program *p = c->program;
    struct amp_resource around = p->resources[*resource];
    uint32_t value = member(d, tok, "$id");
    struct amp_span id;
    if (value == AMP_TOK_NONE)
        return 0;
    if (text_of(c, d, value, "$id is a string", &id) < 0)
        return -1;
    if (around.draft == AMP_DRAFT_7 && member(d, tok, "$ref") != AMP_TOK_NONE)
        return 0;
    const char *hash = id.n ? memchr(id.p, '#', id.n) : NULL;
    size_t before = hash ? (size_t)(hash - id.p) : id.n;
    if (hash && before + 1 < id.n) {
        if (around.draft != AMP_DRAFT_7)
            return amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema),
                                    "$id cannot have a fragment");
        if (before == 0)
            return add_anchor(c, d, *resource, tok, value, 1, false);
    }
    if (before == 0)
        return 0;
    AMP_BUF struct amp_buf uri = {0};
    struct amp_span kept;
    amp_buf_init(&uri, URI_MAX);
    if (amp_uri_resolve(around.uri, (struct amp_span){id.p, before}, &uri, c->err) < 0)
        return -1;
    if (!amp_arena_text(&c->program->arena, amp_buf_span(&uri), &kept))
        return amp_fail_memory(c->err);
    if (tok == around.tok && d == around.doc) { /* the document's root */
        p->resources[*resource].uri = kept;
        return amp_index_add(&p->uri_index, amp_index_hash(kept), *resource)
                   ? 0
                   : amp_fail_memory(c->err);
    }
    uint32_t key = amp_index_hash(kept);
    for (uint32_t at = key, i; amp_index_next(&p->uri_index, key, &at, &i);)
        if (amp_span_eq(p->resources[i].uri, kept) && p->resources[i].doc == d &&
            p->resources[i].tok != tok)
            return amp_schema_wrong(c, d, value, AMP_CODE(invalid_schema), "duplicate $id");
    return add_resource(c, d, tok, kept, &around, resource);
}

static int walk_all(struct amp_compiler *c, struct amp_schema_document *d, uint32_t list,
                    uint32_t resource, uint32_t step)
{
    const struct amp_tape *t = &d->tape;
    for (uint32_t k = list + 1; k < t->tok[list].next; k = t->tok[k + step].next)
        if (amp_document_walk(c, d, k + step, resource) < 0)
            return -1;
    return 0;
}

/* The subschemas in the value of a keyword. */
static int walk_keyword(struct amp_compiler *c, struct amp_schema_document *d,
                        const struct amp_keyword *w, uint32_t value, uint32_t resource)
{
    enum amp_json_type type = d->tape.tok[value].type;
    bool array = type == AMP_JSON_ARRAY;
    if (w->walk == WALK_SCHEMA || (w->walk == WALK_EITHER && !array))
        return amp_document_walk(c, d, value, resource);
    if (array && (w->walk == WALK_LIST || w->walk == WALK_EITHER))
        return walk_all(c, d, value, resource, 0);
    if (type == AMP_JSON_OBJECT && (w->walk == WALK_MAP || w->walk == WALK_DEPENDENCIES))
        return walk_all(c, d, value, resource, 1);
    return 0;
}

int amp_document_walk(struct amp_compiler *c, struct amp_schema_document *d, uint32_t tok,
                      uint32_t resource)
{
    const struct amp_tape *t = &d->tape;
    if (d->resource[tok])
        return 0;
    if (t->tok[tok].type != AMP_JSON_OBJECT) {
        d->resource[tok] = resource + 1;
        return 0;
    }
    if (read_id(c, d, tok, &resource) < 0)
        return -1;
    d->resource[tok] = resource + 1;
    enum amp_draft draft = c->program->resources[resource].draft;
    for (uint32_t k = tok + 1; k < t->tok[tok].next; k = t->tok[k + 1].next) {
        uint32_t value = k + 1;
        bool dynamic = amp_tok_is(t, k, AMP_SPAN("$dynamicAnchor"));
        if (draft == AMP_DRAFT_2020 && (dynamic || amp_tok_is(t, k, AMP_SPAN("$anchor"))) &&
            add_anchor(c, d, resource, tok, value, 0, dynamic) < 0)
            return -1;
        const struct amp_keyword *w = amp_keyword_find(t, k, draft);
        if (w && walk_keyword(c, d, w, value, resource) < 0)
            return -1;
    }
    return 0;
}

struct amp_schema_document *amp_document_load(struct amp_compiler *c, struct amp_span text,
                                              struct amp_span uri, enum amp_draft draft)
{
    struct amp_json_fault fault;
    struct amp_schema_document *d = calloc(1, sizeof *d);
    if (!d) {
        amp_fail_memory(c->err);
        return NULL;
    }
    amp_tape_init(&d->tape, NULL);
    d->next = c->program->documents;
    c->program->documents = d;
    /* The program points into the text and into its tape. */
    d->text = text;
    if ((!c->opt->lasting && !amp_arena_text(&c->program->arena, text, &d->text)) ||
        !amp_arena_text(&c->program->arena, uri, &d->asked)) {
        amp_fail_memory(c->err);
        return NULL;
    }
    d->asked = without_hash(d->asked);
    if (amp_tape_scan(&d->tape, d->text.p, d->text.n, &fault) < 0) {
        amp_schema_not_json(c, d, &fault);
        return NULL;
    }
    amp_tape_settle(&d->tape);
    if (amp_document_open(d, c->err) < 0)
        return NULL;
    struct amp_resource around = {.draft = draft, .vocabulary = VOCAB_USUAL};
    if (add_resource(c, d, 0, d->asked, &around, &d->root) < 0 ||
        amp_document_walk(c, d, 0, d->root) < 0)
        return NULL;
    return d;
}

void amp_document_free(struct amp_schema_document *d)
{
    while (d) {
        struct amp_schema_document *next = d->next;
        amp_tape_release(&d->tape);
        free(d->resource);
        free(d->node);
        free(d);
        d = next;
    }
}

static void document_close(struct amp_schema_document *d)
{
    free(d->node);
    d->node = NULL;
    if (!d->has_parts) {
        free(d->resource);
        d->resource = NULL;
    }
    if (!d->compared)
        amp_tape_release(&d->tape);
}

int amp_document_open(struct amp_schema_document *d, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (!d->tape.n) {
        if (amp_tape_scan(&d->tape, d->text.p, d->text.n, &fault) < 0)
            return amp_fail_memory(err);
        amp_tape_settle(&d->tape);
    }
    if (!d->resource)
        d->resource = calloc(d->tape.n, sizeof *d->resource);
    if (!d->node && (d->node = calloc(d->tape.n, sizeof *d->node)))
        for (struct amp_node *n = d->nodes; n; n = n->next)
            d->node[n->tok] = n;
    if (!d->resource || !d->node)
        return amp_fail_memory(err);
    return 0;
}

int amp_document_refer(struct amp_compiler *c, struct amp_schema_document *from,
                       struct amp_schema_document *to)
{
    for (const struct amp_reference *r = from->references; r; r = r->next)
        if (r->to == to)
            return 0;
    struct amp_reference *r = from == to ? NULL : amp_compile_get(c, sizeof *r);
    if (!r)
        return from == to ? 0 : -1;
    *r = (struct amp_reference){from->references, to};
    from->references = r;
    return 0;
}

/* Lists d and the documents that it leads to, by `reached`. */
static void find_reached(struct amp_program *p, struct amp_schema_document *d)
{
    struct amp_schema_document *last = d;
    d->found_in = ++p->search;
    d->reached = NULL;
    for (const struct amp_schema_document *at = d; at; at = at->reached)
        for (const struct amp_reference *r = at->references; r; r = r->next) {
            if (r->to->found_in == p->search)
                continue;
            r->to->found_in = p->search;
            r->to->reached = NULL;
            last = last->reached = r->to;
        }
}

int amp_document_use(struct amp_program *p, struct amp_schema_document *d, int by,
                     struct amp_error *err)
{
    int rc = 0;
    find_reached(p, d);
    for (struct amp_schema_document *at = d; at && by > 0 && !rc; at = at->reached)
        rc = amp_document_open(at, err);
    for (; d; d = d->reached) {
        d->users += rc ? 0 : (uint32_t)by;
        if (!d->users)
            document_close(d);
    }
    return rc;
}

/* Frees what a compiled schema needs for explanations only: the tapes of its documents and the
 * nodes by token. The texts stay, so a new tape has the same tokens. */
void amp_schema_fold(struct amp_schema *s)
{
    if (!s->folded)
        amp_document_use(s->program, s->first->doc, -1, NULL);
    s->folded = true;
}

int amp_schema_unfold(struct amp_schema *s, struct amp_error *err)
{
    if (s->folded && amp_document_use(s->program, s->first->doc, 1, err) < 0)
        return -1;
    s->folded = false;
    return 0;
}
