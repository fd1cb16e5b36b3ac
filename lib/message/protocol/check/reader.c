/*
 * From a line to a view: find the document, fill the view, check it. A reader uses the same memory
 * for each line; a schema is compiled for the first message of its type.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "base/codes.h"
#include "message/protocol/check/document.h"

enum { TYPE_SLOTS = 64, ARENA_MOST = 512 * 1024 * 1024, SCHEMA_SLOTS = 512, UNFOLDED_MOST = 24 };

/* References are relative to schema:///<protocol>/<name>.json. */
#define SCHEMA_BASE "schema:///"

/* The built-in schemas, compiled when they are first needed. */
struct schemas {
    struct amp_schema_set *set; /* NULL until the first one is needed */
    struct schema_row {
        const char *path;
        struct amp_schema *schema;
    } by_address[SCHEMA_SLOTS];                 /* by the address of the path, not its text */
    struct amp_schema *unfolded[UNFOLDED_MOST]; /* ready for amp_schema_explain */
    unsigned n_unfolded;
};

/* The row of a type word, from an earlier line. */
struct known_type {
    const struct amp_spec *spec;
    const struct amp_kind_row *row;
};

struct amp_reader {
    struct amp_finder finder;
    struct amp_arena arena;
    struct amp_check check;
    struct amp_schema_run *run;
    struct schemas schemas;
    struct amp_schema *asked; /* the schema of the last line, and its document */
    const struct amp_tape *asked_of;
    struct known_type types[TYPE_SLOTS]; /* saves comparing all type words of a protocol */
};

struct amp_reader *amp_reader_new(const struct amp_json_limits *limits, struct amp_error *err)
{
    struct amp_reader *r = calloc(1, sizeof *r);
    if (!r) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_finder_init(&r->finder, limits, &r->check);
    amp_arena_init(&r->arena, ARENA_MOST);
    return r;
}

void amp_reader_free(struct amp_reader *r)
{
    if (!r)
        return;
    amp_schema_set_free(r->schemas.set);
    amp_schema_run_free(r->run);
    amp_finder_release(&r->finder);
    amp_arena_release(&r->arena);
    free(r);
}

static int schema_resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    size_t n = sizeof SCHEMA_BASE - 1;
    if (uri.n > n && memcmp(uri.p, SCHEMA_BASE, n) == 0) {
        uri.p += n;
        uri.n -= n;
    }
    const struct amp_schema_file *file = amp_schema_file_find(uri);
    if (!file)
        return -1;
    *text = file->text;
    return 0;
}

static struct amp_schema *schema_compile(struct schemas *s, const char *path, struct amp_error *err)
{
    static const struct amp_schema_options opt = {
        .resolve = schema_resolve, .formats = true, .lasting = true};
    AMP_BUF struct amp_buf uri = {0};
    amp_buf_init(&uri, 4096);
    if ((!s->set && !(s->set = amp_schema_set_new(&opt, err))) ||
        amp_buf_fmt(&uri, err, "%s%s", SCHEMA_BASE, path) < 0)
        return NULL;
    struct amp_schema *schema = amp_schema_set_get(s->set, amp_buf_span(&uri), err);
    bool ready = false;
    for (unsigned i = 0; i < UNFOLDED_MOST; i++)
        ready |= s->unfolded[i] == schema;
    if (schema && !ready)
        amp_schema_fold(schema);
    return schema;
}

/* path: a static text. NULL on failure. */
static struct amp_schema *schema_get(struct schemas *s, const char *path, struct amp_error *err)
{
    uint64_t mixed = (uintptr_t)path * UINT64_C(0x9e3779b97f4a7c15);
    struct schema_row *row = &s->by_address[mixed >> 32 & (SCHEMA_SLOTS - 1)];
    if (row->path != path) {
        struct amp_schema *schema = schema_compile(s, path, err);
        if (!schema)
            return NULL;
        *row = (struct schema_row){path, schema};
    }
    return row->schema;
}

/* Makes a schema ready for amp_schema_explain. */
static int schema_unfold(struct schemas *s, struct amp_schema *schema, struct amp_error *err)
{
    for (unsigned i = 0; i < UNFOLDED_MOST; i++)
        if (s->unfolded[i] == schema)
            return 0;
    struct amp_schema **slot = &s->unfolded[s->n_unfolded++ % UNFOLDED_MOST];
    if (*slot)
        amp_schema_fold(*slot);
    *slot = NULL;
    if (amp_schema_unfold(schema, err) < 0)
        return -1;
    *slot = schema;
    return 0;
}

static const struct amp_kind_row *kind_find(const struct amp_spec *s, struct amp_span type)
{
    for (unsigned i = 0; i < s->n_kinds; i++)
        if (amp_span_is(type, s->kinds[i].type))
            return &s->kinds[i];
    return NULL;
}

static const struct amp_kind_row *row_of(struct amp_reader *r, const struct amp_spec *s,
                                         const struct amp_view *v)
{
    if (s->kind_of)
        return s->kind_of(v);
    struct amp_span type = v->type;
    if (type.n == 0)
        return kind_find(s, type);
    unsigned slot = ((unsigned)type.n * 7 + (unsigned char)type.p[0] * 3 +
                     (unsigned char)type.p[type.n / 2] * 5 + (unsigned char)type.p[type.n - 1]) %
                    TYPE_SLOTS;
    struct known_type *k = &r->types[slot];
    if (k->spec != s || strncmp(k->row->type, type.p, type.n) != 0 || k->row->type[type.n]) {
        const struct amp_kind_row *row = kind_find(s, type);
        if (!row)
            return NULL;
        *k = (struct known_type){s, row};
    }
    return k->row;
}

static int fill_view(struct amp_reader *r, const struct amp_document *d, const struct amp_spec *s,
                     struct amp_view *v, struct amp_error *err)
{
    const struct amp_check_options *opt = r->check.opt;
    bool bare = opt->bare && opt->now_ms == 0;
    if (amp_fill(d->tape, 0, bare && s->bare.n > 0 ? &s->bare : &s->envelope, v, &r->arena, err) <
        0)
        return -1;
    if (d->outer_to != AMP_TOK_NONE) {
        static const struct amp_fill_row to[] = {{AMP_AT("/to"), AMP_AS_NAMES,
                                                  offsetof(struct amp_view, to),
                                                  offsetof(struct amp_view, n_to), NULL}};
        static const struct amp_fill_table outer = AMP_FILL_TABLE(struct amp_view, to);
        if (amp_fill(d->to_tape, 0, &outer, v, &r->arena, err) < 0)
            return -1;
    }
    const struct amp_kind_row *kind = r->check.row = row_of(r, s, v);
    if (!kind)
        return 0;
    v->kind = kind->kind;
    if (v->needs_ack && !v->has_ack_timeout)
        v->ack_timeout_ms = kind->ack_timeout_sec * INT64_C(1000);
    if (!v->needs_ack)
        v->ack_timeout_ms = 0;
    uint32_t from = kind->body_in_payload ? v->payload : 0;
    /* The rest of the view does not depend on the body of these kinds. */
    bool work = v->kind == AMP_KIND_DISPATCH || v->kind == AMP_KIND_RESULT ||
                v->kind == AMP_KIND_REVIEW || v->kind == AMP_KIND_VERDICT || s->heads;
    bool spare = (opt->bare || (opt->heads && work)) && kind->bare;
    const struct amp_fill_table *body = spare ? kind->bare : kind->body;
    if (body && amp_fill(d->tape, from, body, &v->body, &r->arena, err) < 0)
        return -1;
    if (opt->bare && s->finish_is_optional) {
        if (v->type.n == 0)
            v->type = amp_span_str(kind->type);
    } else if (s->finish && s->finish(v, &r->arena, err) < 0) {
        return -1;
    }
    if (bare && opt->brief && s->bare_finish)
        s->bare_finish(v);
    return 0;
}

struct explaining {
    struct amp_check *check;
    const struct amp_spec *spec;
    const struct amp_code_row *codes;
};

static void violation_add(void *ctx, const struct amp_violation *v)
{
    const struct explaining *e = ctx;
    struct amp_check *c = e->check;
    unsigned before = c->n;
    amp_check_violation(c, v, e->codes);
    if (c->n == before || !e->spec->waives || !e->spec->waives(c, &c->found[before]))
        return;
    c->n = before;
    c->waived = true;
}

/* A limit that a check exceeds is a finding about the line; any other failure ends the run. */
static int at_limit(struct amp_reader *r, const struct amp_error *why)
{
    struct amp_fault f = {.severity = AMP_SEV_ERROR, .rule = "limit", .tok = AMP_TOK_NONE};
    if (why->status != AMP_DATAERR)
        return -1;
    f.code = amp_check_text(&r->check, amp_span_str(why->code), sizeof why->code);
    amp_check_add(&r->check, &f, "%s", why->what);
    return 0;
}

static int check_schema(struct amp_reader *r, const struct amp_spec *s, const struct amp_view *v,
                        struct amp_error *err)
{
    const struct amp_kind_row *kind = r->check.row;
    const char *path = kind && kind->schema ? kind->schema : s->schema;
    struct amp_schema *schema = schema_get(&r->schemas, path, err);
    if (!schema || (!r->run && !(r->run = amp_schema_run_new(err))))
        return -1;
    r->asked = schema;
    r->asked_of = v->tape;
    int valid = amp_schema_check(schema, r->run, v->tape, 0, err);
    if (valid != 0)
        return valid < 0 ? at_limit(r, err) : 0;
    if (r->check.opt->brief && !(s->waives && r->check.opt->waives)) {
        r->check.untold++;
        r->check.refuses = true;
        return 0;
    }
    struct explaining e = {&r->check, s, kind && kind->codes ? kind->codes : s->codes};
    r->check.schema = path;
    if (schema_unfold(&r->schemas, schema, err) < 0)
        return -1;
    if (amp_schema_explain(schema, r->run, v->tape, 0, 0, violation_add, &e, err) < 0)
        return at_limit(r, err);
    if (r->check.n == 0 && !r->check.waived) { /* a refused line has at least one finding */
        struct amp_fault f = {
            .severity = AMP_SEV_ERROR, .code = AMP_CODE(bad_value), .rule = "schema"};
        amp_check_add(&r->check, &f, "does not match the schema %s", path);
    }
    return 0;
}

static void unknown_protocol(struct amp_reader *r)
{
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = AMP_CODE(unknown_protocol),
                          .rule = "detect",
                          .tok = 0,
                          .expected = "a message of amp, sw4rm, aop, aof or rtp",
                          .show_found = true};
    amp_check_add(&r->check, &f, "belongs to no known protocol");
}

int amp_reader_line(struct amp_reader *r, struct amp_span line, const struct amp_check_options *opt,
                    struct amp_view *view, amp_finding_fn fn, void *ctx, struct amp_error *err)
{
    struct amp_view v = {.line = line,
                         .message = line,
                         .text = line,
                         .tape = &r->finder.outer,
                         .size = line.n,
                         .payload = AMP_TOK_NONE};
    struct amp_document d;
    amp_arena_reset(&r->arena);
    amp_check_start(&r->check, &v, opt);
    r->check.arena = &r->arena;
    r->asked = NULL;
    if (amp_finder_line(&r->finder, line, &d, err) < 0)
        return -1;
    v.text = d.text;
    v.tape = d.tape;
    if (d.sig.key.n > 0) {
        v.message = d.message;
        v.sig = d.sig;
        v.size = d.message.n;
    }
    v.json = r->finder.outer.n > 0;
    v.protocol = d.spec ? d.spec->protocol : AMP_PROTO_NONE;
    r->check.spec = d.spec;
    if (r->check.n > 0) {
        r->check.found[0].protocol = v.protocol;
    } else if (!d.spec && !d.silent) {
        unknown_protocol(r);
    } else if (d.spec) {
        v.type = amp_span_str(d.word);
        if (fill_view(r, &d, d.spec, &v, err) < 0 ||
            (!d.word && check_schema(r, d.spec, &v, err) < 0))
            return -1;
        if (d.spec->rules)
            d.spec->rules(&r->check);
    }
    if (r->check.failed)
        return amp_fail_memory(err);
    *view = v;
    if (r->check.n == 0 && r->check.untold == 0)
        return 1;
    r->check.v = view;
    return amp_check_report(&r->check, fn, ctx) == 0;
}

int amp_reader_output(struct amp_reader *r, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_error why;
    if (!r->asked)
        return 0;
    if (schema_unfold(&r->schemas, r->asked, err) < 0)
        return -1;
    int got = amp_schema_output(r->asked, r->run, r->asked_of, 0, form, out, &why);
    if (got < 0 && why.status != AMP_DATAERR)
        return amp_fail_text(err, why.status, why.code, "%s", why.what);
    return got >= 0;
}
