/* A built-in schema and the schemas that it refers to, as one document. Each of them is embedded
 * under $defs with an absolute $id, so that references still find it. */
#include <string.h>

#include "base/codes.h"
#include "schema/compile/compiler.h"
#include "schema/format/uri.h"

enum { PARTS_MOST = 256, URI_MOST = 4096 };

struct bundle {
    const struct amp_schema_file *part[PARTS_MOST]; /* the first is the schema itself */
    unsigned n;
    bool by_uri; /* the schema refers to itself, or to another, by a URI */
    struct amp_error *err;
};

/* Appends the schema's $id, if it has one. */
static int own_id(const struct amp_tape *t, struct amp_buf *out, struct amp_error *err)
{
    struct amp_span id;
    uint32_t tok = amp_tape_get(t, 0, AMP_SPAN("$id"));
    if (tok == AMP_TOK_NONE)
        return 0;
    AMP_BUF struct amp_buf arena = {0};
    amp_buf_init(&arena, URI_MOST);
    if (amp_tok_text(t, tok, &arena, &id, err) < 0)
        return -1;
    return amp_buf_add(out, id.p, id.n, err);
}

static int base_of(const struct amp_schema_file *f, const struct amp_tape *t, struct amp_buf *out,
                   struct amp_error *err)
{
    if (own_id(t, out, err) < 0)
        return -1;
    return out->len > 0 ? 0 : amp_buf_fmt(out, err, "%s%s", AMP_SCHEMA_URI, f->path);
}

static int scan_file(const struct amp_schema_file *f, struct amp_tape *t, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (amp_tape_scan(t, f->text.p, f->text.n, &fault) == 0)
        return 0;
    return amp_json_fail(err, AMP_INTERNAL, AMP_CODE(bad_schema), f->path, &fault);
}

/* Adds the schema of a reference. */
static int add_part(struct bundle *b, struct amp_span base, struct amp_span ref)
{
    AMP_BUF struct amp_buf uri = {0};
    amp_buf_init(&uri, 2 * URI_MOST);
    if (amp_uri_resolve(base, ref, &uri, b->err) < 0)
        return -1;
    const struct amp_schema_file *f = amp_schema_file_by_uri(amp_buf_span(&uri));
    b->by_uri = true;
    if (!f || b->n == PARTS_MOST)
        return amp_fail(b->err, AMP_INTERNAL, no_schema, "schema %.*s is not compiled in",
                        (int)uri.len, uri.data);
    for (unsigned i = 0; i < b->n; i++)
        if (b->part[i] == f)
            return 0;
    b->part[b->n++] = f;
    return 0;
}

/* Adds the schemas of all references out of the document. */
static int add_references(struct bundle *b, const struct amp_schema_file *f,
                          const struct amp_tape *t)
{
    AMP_BUF struct amp_buf base = {0}, arena = {0};
    struct amp_span ref;
    amp_buf_init(&base, URI_MOST);
    amp_buf_init(&arena, URI_MOST);
    if (base_of(f, t, &base, b->err) < 0)
        return -1;
    for (uint32_t o = 0; o < t->n; o++) {
        uint32_t tok =
            t->tok[o].type == AMP_JSON_OBJECT ? amp_tape_get(t, o, AMP_SPAN("$ref")) : AMP_TOK_NONE;
        amp_buf_reset(&arena);
        if (tok == AMP_TOK_NONE || t->tok[tok].type != AMP_JSON_STRING)
            continue;
        if (amp_tok_text(t, tok, &arena, &ref, b->err) < 0)
            return -1;
        if (ref.n > 0 && ref.p[0] != '#' && add_part(b, amp_buf_span(&base), ref) < 0)
            return -1;
    }
    return 0;
}

static int add_indented(struct amp_span text, const char *with, struct amp_buf *out,
                        struct amp_error *err)
{
    while (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    while (text.n > 0) {
        const char *lf = memchr(text.p, '\n', text.n);
        size_t n = lf ? (size_t)(lf - text.p) + 1 : text.n;
        if (amp_buf_add(out, text.p, n, err) < 0 || (lf && amp_buf_str(out, with, err) < 0))
            return -1;
        text.p += n;
        text.n -= n;
    }
    return 0;
}

/* Appends the schema from its opening brace to `end`, with an $id if it has none. */
static int put_head(const struct amp_schema_file *f, const struct amp_tape *t, size_t end,
                    struct amp_buf *out, struct amp_error *err)
{
    size_t open = t->tok[0].off + 1;
    if (amp_buf_str(out, "{", err) < 0)
        return -1;
    if (amp_tape_get(t, 0, AMP_SPAN("$id")) == AMP_TOK_NONE &&
        amp_buf_fmt(out, err, "\n  \"$id\": \"%s%s\",", AMP_SCHEMA_URI, f->path) < 0)
        return -1;
    return amp_buf_add(out, f->text.p + open, end - open, err);
}

static int put_part(const struct amp_schema_file *f, bool last, struct amp_buf *out,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_TAPE struct amp_tape t = {0};
    amp_buf_init(&text, 1 << 20);
    amp_tape_init(&t, NULL);
    if (scan_file(f, &t, err) < 0 || put_head(f, &t, t.tok[0].off + t.tok[0].len, &text, err) < 0 ||
        amp_buf_fmt(out, err, "\n    \"%.*s\": ", (int)(strlen(f->path) - strlen(".json")),
                    f->path) < 0 ||
        add_indented(amp_buf_span(&text), "    ", out, err) < 0)
        return -1;
    return last ? 0 : amp_buf_str(out, ",", err);
}

static int compose_document(const struct bundle *b, const struct amp_tape *t, struct amp_buf *out)
{
    const struct amp_schema_file *f = b->part[0];
    uint32_t defs = amp_tape_get(t, 0, AMP_SPAN("$defs"));
    bool own = defs != AMP_TOK_NONE;
    size_t close = t->tok[0].off + t->tok[0].len - 1; /* the schema's closing brace */
    if (b->n == 1)                                    /* only an $id is missing */
        return put_head(f, t, f->text.n, out, b->err);
    size_t at = own ? t->tok[defs].off + 1 : close;
    while (!own && strchr(" \n", f->text.p[at - 1]))
        at--;
    if (put_head(f, t, at, out, b->err) < 0 ||
        (!own && amp_buf_str(out, ",\n  \"$defs\": {", b->err) < 0))
        return -1;
    for (unsigned i = 1; i < b->n; i++) {
        bool last = i + 1 == b->n && (!own || t->tok[defs].count == 0);
        if (put_part(b->part[i], last, out, b->err) < 0)
            return -1;
    }
    if (!own && amp_buf_str(out, "\n  }", b->err) < 0)
        return -1;
    return amp_buf_add(out, f->text.p + at, f->text.n - at, b->err);
}

int amp_schema_bundle(const struct amp_schema_file *f, struct amp_buf *out, struct amp_error *err)
{
    struct bundle b = {.part = {f}, .n = 1, .err = err};
    AMP_TAPE struct amp_tape t = {0};
    amp_tape_init(&t, NULL);
    for (unsigned i = 0; i < b.n; i++)
        if (scan_file(b.part[i], &t, err) < 0 || add_references(&b, b.part[i], &t) < 0)
            return -1;
    if (!b.by_uri)
        return amp_buf_add(out, f->text.p, f->text.n, err);
    return scan_file(f, &t, err) < 0 ? -1 : compose_document(&b, &t, out);
}
