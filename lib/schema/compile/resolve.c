/* Resolves references: to a resource by its URI, within it by an anchor or a pointer. */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "schema/compile/compiler.h"
#include "schema/format/uri.h"

enum {
    URI_MAX = 64 << 10,
    INDEXED = 32, /* an object with so many members gets an index */
    PLACE_STEPS = 1000,
    WORK_MOST = 1 << 30,
};

/* The resource of a place that no keyword leads to. */
static uint32_t resource_around(const struct amp_schema_document *d, uint32_t root, uint32_t tok)
{
    const struct amp_tape *t = &d->tape;
    uint32_t at = root, found = d->resource[root] ? d->resource[root] - 1 : d->root;
    while (at != tok) {
        uint32_t k = at + 1;
        if (t->tok[at].type == AMP_JSON_OBJECT) {
            while (t->tok[k + 1].next <= tok)
                k = t->tok[k + 1].next;
            at = k + 1;
        } else {
            while (t->tok[k].next <= tok)
                k = t->tok[k].next;
            at = k;
        }
        if (d->resource[at])
            found = d->resource[at] - 1;
    }
    return found;
}

uint32_t amp_anchor_hash(uint32_t resource, struct amp_span name)
{
    return amp_index_hash(name) ^ resource * 0x9e3779b1u;
}

uint32_t amp_anchor_find(const struct amp_compiler *c, uint32_t resource, struct amp_span name)
{
    uint32_t hash = amp_anchor_hash(resource, name);
    for (uint32_t at = hash, i; amp_index_next(&c->program->anchor_index, hash, &at, &i);)
        if (c->program->anchors[i].resource == resource &&
            amp_span_eq(c->program->anchors[i].name, name))
            return i;
    return AMP_TOK_NONE;
}

/* Counts the steps of searches without an index; fails past the limit. */
static int count_steps(struct amp_compiler *c, const struct amp_schema_document *d, uint32_t at,
                       uint32_t steps)
{
    c->work += steps;
    if (c->work <= WORK_MOST)
        return 0;
    return amp_schema_wrong(c, d, at, AMP_CODE(schema_limit),
                            "resolving references needs more steps than the limit allows");
}

/* The index of a large object, made when the first pointer leads through it. Its numbers are keys.
 */
static struct amp_members *find_members(struct amp_compiler *c, struct amp_schema_document *d,
                                        uint32_t object)
{
    for (struct amp_members *m = d->members; m; m = m->next, c->work++)
        if (m->object == object)
            return m;
    struct amp_members *m = amp_compile_get(c, sizeof *m);
    if (!m)
        return NULL;
    *m = (struct amp_members){d->members, object, {.arena = &c->program->arena}};
    const struct amp_tok *t = d->tape.tok;
    for (uint32_t k = object + 1; k < t[object].next; k = t[k + 1].next)
        if (!amp_index_add(&m->keys, t[k].count, k)) {
            amp_fail_memory(c->err);
            return NULL;
        }
    d->members = m;
    return m;
}

/* Follows one step of a pointer, with its escapes decoded. */
static int follow_step(struct amp_compiler *c, struct amp_schema_document *d, uint32_t at,
                       struct amp_span name, uint32_t *out)
{
    const struct amp_tok *t = &d->tape.tok[at];
    *out = AMP_TOK_NONE;
    if (t->type != AMP_JSON_OBJECT || t->count < INDEXED) {
        AMP_BUF struct amp_buf pointer = {0};
        amp_buf_init(&pointer, URI_MAX);
        if (amp_buf_str(&pointer, "/", c->err) < 0 ||
            amp_buf_add(&pointer, name.p, name.n, c->err) < 0 ||
            count_steps(c, d, at, t->count) < 0)
            return -1;
        *out = amp_tape_pointer(&d->tape, at, amp_buf_span(&pointer));
        return 0;
    }
    if (count_steps(c, d, at, 1) < 0)
        return -1;
    struct amp_members *m = find_members(c, d, at);
    AMP_FREE char *plain = malloc(name.n + 1);
    if (!m || !plain)
        return amp_fail_memory(c->err);
    struct amp_span key = {plain, 0};
    for (size_t i = 0; i < name.n; i++) {
        bool tilde = name.p[i] == '~';
        if (tilde && (++i == name.n || (name.p[i] != '0' && name.p[i] != '1')))
            return 0;
        plain[key.n++] = !tilde ? name.p[i] : name.p[i] == '0' ? '~' : '/';
    }
    uint32_t hash = amp_index_hash(key);
    for (uint32_t k = hash, i; amp_index_next(&m->keys, hash, &k, &i);)
        if (amp_tok_is(&d->tape, i, key))
            *out = i + 1;
    return 0;
}

static int follow_pointer(struct amp_compiler *c, struct amp_schema_document *d, uint32_t at,
                          struct amp_span pointer, uint32_t *out)
{
    while (pointer.n && at != AMP_TOK_NONE) {
        pointer.p++;
        pointer.n--;
        const char *slash = pointer.n ? memchr(pointer.p, '/', pointer.n) : NULL;
        struct amp_span name = {pointer.p, slash ? (size_t)(slash - pointer.p) : pointer.n};
        if (follow_step(c, d, at, name, &at) < 0)
            return -1;
        pointer.p += name.n;
        pointer.n -= name.n;
    }
    *out = at;
    return 0;
}

int amp_resource_find(struct amp_compiler *c, struct amp_span uri, enum amp_draft draft,
                      uint32_t *out)
{
    struct amp_span text;
    uint32_t hash = amp_index_hash(uri);
    for (uint32_t at = hash, i; amp_index_next(&c->program->uri_index, hash, &at, &i);) {
        const struct amp_resource *r = &c->program->resources[i];
        if (amp_span_eq(r->uri, uri) || (r->tok == 0 && amp_span_eq(r->doc->asked, uri))) {
            *out = i;
            return 1;
        }
    }
    const struct amp_schema_file *meta = amp_metaschema_find(uri);
    if (meta)
        text = meta->text;
    else if (!c->opt->resolve || c->opt->resolve(c->opt->resolve_ctx, uri, &text) != 0)
        return 0;
    struct amp_schema_document *d = amp_document_load(c, text, uri, draft);
    if (!d)
        return -1;
    *out = d->root;
    return 1;
}

enum amp_resolved amp_document_resolve(struct amp_compiler *c, uint32_t resource,
                                       struct amp_span ref, struct amp_target *out)
{
    AMP_BUF struct amp_buf uri = {0}, fragment = {0};
    struct amp_uri parts = amp_uri_split(ref);
    size_t before = parts.has_fragment ? (size_t)(parts.fragment.p - 1 - ref.p) : ref.n;
    uint32_t to = resource;
    *out = (struct amp_target){0};
    amp_buf_init(&uri, URI_MAX);
    amp_buf_init(&fragment, URI_MAX);
    if (before > 0) {
        struct amp_resource from = c->program->resources[resource];
        if (amp_uri_resolve(from.uri, (struct amp_span){ref.p, before}, &uri, c->err) < 0)
            return AMP_RESOLVE_FAILED;
        int found = amp_resource_find(c, amp_buf_span(&uri), from.draft, &to);
        if (found <= 0)
            return found < 0 ? AMP_RESOLVE_FAILED : AMP_RESOLVE_UNKNOWN;
    }
    if (amp_uri_decode(parts.fragment, &fragment, c->err) < 0)
        return AMP_RESOLVE_FAILED;
    struct amp_schema_document *d = c->program->resources[to].doc;
    struct amp_span name = amp_buf_span(&fragment);
    if (amp_document_open(d, c->err) < 0)
        return AMP_RESOLVE_FAILED;
    *out = (struct amp_target){d, c->program->resources[to].tok, to, NULL};
    if (name.n && name.p[0] != '/') {
        uint32_t found = amp_anchor_find(c, to, name);
        if (found == AMP_TOK_NONE)
            return AMP_RESOLVE_NO_PLACE;
        out->anchor = &c->program->anchors[found];
        out->tok = out->anchor->tok;
        return AMP_RESOLVED;
    }
    if (name.n) {
        if (follow_pointer(c, d, c->program->resources[to].tok, name, &out->tok) < 0)
            return AMP_RESOLVE_FAILED;
        if (out->tok == AMP_TOK_NONE)
            return AMP_RESOLVE_NO_PLACE;
        if (!d->resource[out->tok] && count_steps(c, d, out->tok, PLACE_STEPS) < 0)
            return AMP_RESOLVE_FAILED;
        if (!d->resource[out->tok] &&
            amp_document_walk(c, d, out->tok,
                              resource_around(d, c->program->resources[to].tok, out->tok)) < 0)
            return AMP_RESOLVE_FAILED;
        out->resource = d->resource[out->tok] - 1;
    }
    return AMP_RESOLVED;
}
