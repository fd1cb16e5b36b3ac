/*
 * From a line to a view: scan, detect, unwrap, fill, check. One reader serves line after line with
 * the same memory; schemas are compiled when the first message of their type comes.
 */
#include <stdlib.h>
#include <string.h>

#include "protocol/check/check.h"
#include "protocol/check/schemas.h"
#include "protocol/spec.h"
#include "json/shapes.h"

enum { CERTAIN = 128 }; /* in amp_reader.ruled_out: it is this one of the order */
enum { TYPE_SLOTS = 64, ARENA_MOST = 512 * 1024 * 1024, FAULT_SHOWN = 40 };

/* The kind row of a type word as it was found before. */
struct known_type {
    const struct amp_spec *spec;
    const struct amp_kind_row *row;
};

struct amp_reader {
    struct amp_tape outer, inner;
    struct amp_pool arena;
    struct amp_check check;
    struct amp_schema_run *run;
    struct amp_schemas schemas;
    struct amp_schema *asked; /* the schema of the last line, and its document */
    const struct amp_tape *asked_of;
    uint64_t shapes;                     /* the table that ruled_out is about */
    uint8_t ruled_out[AMP_SHAPE_SLOTS];  /* by shape: how many protocols its keys rule out */
    struct known_type types[TYPE_SLOTS]; /* a message costs no comparison of all type words */
    const struct amp_spec *order[AMP_PROTO_COUNT - 1]; /* in which protocols are detected */
};

/* What detection found out about a line. */
struct document {
    const struct amp_tape *tape;
    struct amp_span text;
    const struct amp_spec *spec;
    uint32_t outer_to; /* token of an outer recipient, on the outer tape */
    const char *word;  /* the type of a text that is no JSON, else NULL */
    bool silent;       /* not this protocol's, and none of its business: it passes */
};

static void order_init(struct amp_reader *r)
{
    unsigned n = 0;
    for (int last = 0; last < 2; last++)
        for (enum amp_protocol p = AMP_PROTO_NONE + 1; p < AMP_PROTO_COUNT; p++)
            if (amp_spec_of(p)->detect_last == last)
                r->order[n++] = amp_spec_of(p);
}

struct amp_reader *amp_reader_new(const struct amp_json_limits *limits, struct amp_error *err)
{
    struct amp_reader *r = calloc(1, sizeof *r);
    if (!r) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_tape_init(&r->outer, limits);
    amp_tape_init(&r->inner, limits);
    amp_pool_init(&r->arena, ARENA_MOST);
    order_init(r);
    return r;
}

void amp_reader_free(struct amp_reader *r)
{
    if (!r)
        return;
    amp_schemas_release(&r->schemas);
    amp_schema_run_free(r->run);
    amp_tape_release(&r->outer);
    amp_tape_release(&r->inner);
    amp_pool_release(&r->arena);
    free(r);
}

/* A fault of the text that was scanned, with what stands there, unless it is that it is too large.
 */
static void scan_finding(struct amp_reader *r, struct amp_span text,
                         const struct amp_json_fault *fault)
{
    struct amp_fault f = {
        .severity = AMP_SEV_ERROR, .code = fault->code, .rule = "json", .tok = AMP_TOK_NONE};
    r->check.failed = r->check.failed || amp_json_fault_is_memory(fault);
    amp_check_add(&r->check, &f, "%s", fault->what);
    if (r->check.n == 0)
        return;
    struct amp_finding *found = &r->check.found[r->check.n - 1];
    struct amp_span line = r->check.v->line;
    found->offset = fault->offset;
    bool limit = strncmp(fault->code, "too_", 4) == 0 || strcmp(fault->code, "line_too_long") == 0;
    if (!limit && fault->offset < text.n)
        found->found = amp_check_excerpt(&r->check, text, fault->offset, FAULT_SHOWN);
    if (text.p >= line.p && text.p <= line.p + line.n)
        found->offset += (uint64_t)(text.p - line.p);
}

/* The protocol of the outermost object. What its keys alone say is remembered by its shape. */
static const struct amp_spec *detect_object(struct amp_reader *r)
{
    const struct amp_spec *const *order = r->order;
    const struct amp_tape *t = &r->outer;
    unsigned shape = t->tok[0].shape, i = 0;
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return NULL;
    if (shape) {
        if (r->shapes != amp_tape_shapes(t)) {
            memset(r->ruled_out, 0, sizeof r->ruled_out);
            r->shapes = amp_tape_shapes(t);
        }
        i = r->ruled_out[shape - 1];
        if (i >= CERTAIN)
            return order[i - CERTAIN];
    }
    bool keys_only = true;
    for (; i < AMP_SPEC_COUNT(r->order); i++) {
        enum amp_detected d = order[i]->detect(t, 0);
        if (shape && keys_only)
            r->ruled_out[shape - 1] = (uint8_t)(d == AMP_DETECT_ALWAYS ? CERTAIN + i : i);
        if (d >= AMP_DETECT_YES)
            return order[i];
        keys_only = keys_only && d == AMP_DETECT_NEVER;
    }
    return NULL;
}

/* Whether a text holds, or claims to hold, an envelope of a protocol whose envelopes stand in
 * texts. */
static bool unwrap_text(struct amp_reader *r, struct amp_span text, enum amp_protocol only,
                        struct document *d)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(r->order); i++) {
        const struct amp_spec *s = r->order[i];
        struct amp_json_fault fault;
        struct amp_span json;
        if (!s->unwrap)
            continue;
        enum amp_text_is what = s->unwrap(&r->inner, text, s->protocol == only, &json, &fault);
        if (what == AMP_TEXT_OTHER)
            continue;
        d->spec = s;
        d->text = json;
        d->tape = &r->inner;
        if (what == AMP_TEXT_BAD)
            scan_finding(r, json, &fault);
        return true;
    }
    return false;
}

/* An object inside the outer one that becomes the document. */
static int unwrap_object(struct amp_reader *r, uint32_t tok, const struct amp_spec *spec,
                         struct document *d)
{
    struct amp_json_fault fault;
    struct amp_span text = amp_tok_source(&r->outer, tok);
    if (amp_tape_scan(&r->inner, text.p, text.n, &fault) < 0) {
        scan_finding(r, text, &fault);
        return 1;
    }
    d->spec = spec;
    d->text = text;
    d->tape = &r->inner;
    return 1;
}

/* An object under msg, beside an outer recipient, of a protocol without one of its own. */
static const struct amp_spec *addressed(struct amp_reader *r, uint32_t msg)
{
    if (msg == AMP_TOK_NONE || r->outer.tok[msg].type != AMP_JSON_OBJECT)
        return NULL;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(r->order); i++)
        if (r->order[i]->outer_to && amp_spec_detects(r->order[i], &r->outer, msg))
            return r->order[i];
    return NULL;
}

/* An object of a protocol whose messages other objects carry. */
static const struct amp_spec *carried(struct amp_reader *r, uint32_t tok)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(r->order); i++)
        if (r->order[i]->unwrap && amp_spec_detects(r->order[i], &r->outer, tok))
            return r->order[i];
    return NULL;
}

/* A message under payload, message or content of an event, or under msg beside an outer to. */
static int unwrap(struct amp_reader *r, enum amp_protocol only, struct document *d,
                  struct amp_error *err)
{
    static const char *const carriers[] = {"payload", "message", "content"};
    const struct amp_tape *t = &r->outer;
    const struct amp_spec *s;
    struct amp_span text;
    if (t->tok[0].type == AMP_JSON_STRING) {
        if (amp_fill_text(t, 0, &r->arena, &text, err) < 0)
            return -1;
        return unwrap_text(r, text, only, d);
    }
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return 0;
    uint32_t msg = amp_tape_get(t, 0, AMP_SPAN("msg"));
    uint32_t to = amp_tape_get(t, 0, AMP_SPAN("to"));
    if (to != AMP_TOK_NONE && (s = addressed(r, msg))) {
        d->outer_to = to;
        return unwrap_object(r, msg, s, d);
    }
    for (unsigned i = 0; i < AMP_SPEC_COUNT(carriers); i++) {
        uint32_t tok = amp_tape_get(t, 0, amp_span_str(carriers[i]));
        if (tok == AMP_TOK_NONE)
            continue;
        if (t->tok[tok].type == AMP_JSON_OBJECT && (s = carried(r, tok)))
            return unwrap_object(r, tok, s, d);
        if (t->tok[tok].type != AMP_JSON_STRING)
            continue;
        if (amp_fill_text(t, tok, &r->arena, &text, err) < 0)
            return -1;
        if (unwrap_text(r, text, only, d))
            return 1;
    }
    return 0;
}

/* A text that is no JSON object but a message: it gets an empty object for a tape. */
static bool take_text(struct amp_reader *r, struct amp_span text, struct document *d)
{
    enum amp_protocol only = r->check.opt->only;
    struct amp_json_fault fault;
    if (only == AMP_PROTO_NONE && !r->check.opt->texts)
        return false;
    for (unsigned i = 0; i < AMP_SPEC_COUNT(r->order); i++) {
        const struct amp_spec *s = r->order[i];
        if (!s->text || (only != AMP_PROTO_NONE && only != s->protocol))
            continue;
        const char *word = s->text(text, only == s->protocol);
        if (!word || amp_tape_scan(&r->inner, "{}", 2, &fault) < 0)
            continue;
        d->spec = s;
        d->text = text;
        d->tape = &r->inner;
        d->word = word;
        return true;
    }
    return false;
}

static const struct amp_spec *detect_record(const struct amp_reader *r)
{
    for (unsigned i = 0; i < AMP_SPEC_COUNT(r->order); i++)
        if (r->order[i]->detect_record && r->order[i]->detect_record(&r->outer))
            return r->order[i];
    return NULL;
}

/* Whether a protocol was named of which a text that holds none of its messages is no business. */
static bool is_quiet(enum amp_protocol only)
{
    const struct amp_spec *s = amp_spec_of(only);
    return s && s->unwrap;
}

static const struct amp_spec *detect_pinned(const struct amp_tape *t, const struct amp_spec *s)
{
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return NULL;
    return amp_spec_detects(s, t, 0) || (s->detect_record && s->detect_record(t)) ? s : NULL;
}

/* The line as it stands is the document, or holds it. */
static int find_document(struct amp_reader *r, enum amp_protocol only, struct document *d,
                         struct amp_error *err)
{
    d->spec =
        only == AMP_PROTO_NONE ? detect_object(r) : detect_pinned(&r->outer, amp_spec_of(only));
    if (d->spec)
        return 0;
    struct document w = *d;
    int got = unwrap(r, only, &w, err);
    if (got < 0)
        return -1;
    if (got && (only == AMP_PROTO_NONE || (w.spec && w.spec->protocol == only)))
        *d = w;
    else
        r->check.n = 0;
    if (!d->spec && r->outer.tok[0].type == AMP_JSON_STRING) {
        struct amp_span text;
        if (amp_fill_text(&r->outer, 0, &r->arena, &text, err) < 0)
            return -1;
        take_text(r, text, d);
    }
    if (!d->spec && only == AMP_PROTO_NONE && r->outer.tok[0].type == AMP_JSON_OBJECT)
        d->spec = detect_record(r);
    d->silent = !d->spec && is_quiet(only);
    if (!d->spec && only != AMP_PROTO_NONE && !d->silent)
        d->spec = amp_spec_of(only);
    return 0;
}

/* A line that the scanner refused: an envelope in a text, another protocol's text, or plain text
 * that is none of the named protocol's business. */
static void open_text(struct amp_reader *r, struct amp_span line, struct document *d,
                      const struct amp_json_fault *fault)
{
    if (amp_json_fault_is_memory(fault)) {
        scan_finding(r, line, fault);
        return;
    }
    enum amp_protocol only = r->check.opt->only;
    bool other = strcmp(fault->code, "invalid_json") == 0;
    if ((is_quiet(only) || only == AMP_PROTO_NONE) && unwrap_text(r, line, only, d))
        return;
    if (other && take_text(r, line, d))
        return;
    d->silent = is_quiet(only);
    if (d->silent)
        return;
    scan_finding(r, line, fault);
    d->spec = amp_spec_of(only); /* what was named, it is refused as */
    if (d->spec && other && d->spec->no_json && r->check.n > 0)
        r->check.found[0].code = d->spec->no_json;
}

/* Names the document and its protocol. 0: go on; 1: a finding says why not; -1: failure. */
static int open_line(struct amp_reader *r, struct amp_span line, enum amp_protocol only,
                     struct document *d, struct amp_error *err)
{
    struct amp_json_fault fault;
    *d = (struct document){.tape = &r->outer, .text = line, .outer_to = AMP_TOK_NONE};
    if (amp_tape_scan(&r->outer, line.p, line.n, &fault) < 0)
        open_text(r, line, d, &fault);
    else if (find_document(r, only, d, err) < 0)
        return -1;
    if (d->spec && d->spec->too_large && r->check.n == 0 && d->spec->too_large(d->text, &fault))
        scan_finding(r, (struct amp_span){"", 0}, &fault);
    return r->check.n > 0;
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

static int fill_view(struct amp_reader *r, const struct document *d, const struct amp_spec *s,
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
        if (amp_fill(&r->outer, 0, &outer, v, &r->arena, err) < 0)
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
    /* The view of these does not depend on the body. */
    bool work = v->kind == AMP_KIND_DISPATCH || v->kind == AMP_KIND_RESULT ||
                v->kind == AMP_KIND_REVIEW || v->kind == AMP_KIND_VERDICT || s->heads;
    bool spare = (opt->bare || (opt->heads && work)) && kind->bare;
    const struct amp_fill_table *body = spare ? kind->bare : kind->body;
    if (body && amp_fill(d->tape, from, body, &v->body, &r->arena, err) < 0)
        return -1;
    if (opt->bare && s->finish_is_view) {
        if (v->type.n == 0)
            v->type = amp_span_str(kind->type);
    } else if (s->finish && s->finish(v, &r->arena, err) < 0) {
        return -1;
    }
    if (bare && opt->brief && s->hurry)
        s->hurry(v);
    return 0;
}

struct explaining {
    struct amp_check *check;
    const struct amp_spec *spec;
    const struct amp_code_row *codes;
};

static void explain(void *ctx, const struct amp_violation *v)
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

/* A limit that a check meets is a fault of the line; anything else ends the run. */
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
    struct amp_schema *schema = amp_schemas_get(&r->schemas, path, err);
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
    if (amp_schemas_unfold(&r->schemas, schema, err) < 0)
        return -1;
    if (amp_schema_explain(schema, r->run, v->tape, 0, 0, explain, &e, err) < 0)
        return at_limit(r, err);
    if (r->check.n == 0 &&
        !r->check.waived) { /* never let a refused line pass for want of an explanation */
        struct amp_fault f = {.severity = AMP_SEV_ERROR, .code = "bad_value", .rule = "schema"};
        amp_check_add(&r->check, &f, "does not fit schema %s", path);
    }
    return 0;
}

static void unknown_protocol(struct amp_reader *r)
{
    struct amp_fault f = {.severity = AMP_SEV_ERROR,
                          .code = "unknown_protocol",
                          .rule = "detect",
                          .tok = 0,
                          .expected = "a message of amp, sw4rm, aop, aof or rtp",
                          .show_found = true};
    amp_check_add(&r->check, &f, "belongs to no protocol that is known");
}

int amp_reader_line(struct amp_reader *r, struct amp_span line, const struct amp_check_options *opt,
                    struct amp_view *view, amp_finding_fn fn, void *ctx, struct amp_error *err)
{
    struct amp_view v = {
        .line = line, .text = line, .tape = &r->outer, .size = line.n, .payload = AMP_TOK_NONE};
    struct document d;
    amp_pool_reset(&r->arena);
    amp_check_start(&r->check, &v, opt);
    r->check.arena = &r->arena;
    r->asked = NULL;
    int stop = open_line(r, line, r->check.opt->only, &d, err);
    if (stop < 0)
        return -1;
    v.text = d.text;
    v.tape = d.tape;
    v.json = r->outer.n > 0;
    v.protocol = d.spec ? d.spec->protocol : AMP_PROTO_NONE;
    r->check.spec = d.spec;
    if (stop) {
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
    return amp_check_tell(&r->check, fn, ctx) == 0;
}

int amp_reader_output(struct amp_reader *r, enum amp_output form, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_error why;
    if (!r->asked)
        return 0;
    if (amp_schemas_unfold(&r->schemas, r->asked, err) < 0)
        return -1;
    int got = amp_schema_output(r->asked, r->run, r->asked_of, 0, form, out, &why);
    if (got < 0 && why.status != AMP_DATAERR)
        return amp_fail(err, why.status, why.code, "%s", why.what);
    return got >= 0;
}
