/*
 * Values that the target cannot express are kept as the origin's fields: {"/pointer": {"is": the
 * original value, "as": what the way back would make of it}}. Without "is" the original has no such
 * member. "is" holds as long as the way back still makes "as": a member that was changed in the
 * meantime stays changed. Without "as" (the way back only derives the value, or has none) "is"
 * always holds.
 */
#include <string.h>

#include "message/protocol/convert/convert.h"

enum { FIELDS_MOST = 1000, DEEP = 5, PATH_MOST = 4096 };

/* A decoded text with the escapes that JSON requires and no others. */
static int text_escape(struct amp_span s, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        int rc = c < 0x20                ? amp_buf_fmt(out, err, "\\u%04x", c)
                 : c == '"' || c == '\\' ? amp_buf_fmt(out, err, "\\%c", c)
                                         : amp_buf_add(out, s.p + i, 1, err);
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* Sets *out to a key in one spelling, whichever escapes it was written with, so that a name has one
 * pointer. `mem` has no memory yet and must live as long as *out. */
static int key_spelling(const struct amp_tape *t, uint32_t key, struct amp_buf *mem,
                        struct amp_span *out, struct amp_error *err)
{
    struct amp_span s = *out = amp_tok_raw(t, key);
    if (!(t->tok[key].flags & AMP_TOK_ESCAPED))
        return 0;
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, s.n + 1);
    amp_buf_init(mem, 6 * s.n + 1);
    if (amp_tok_text(t, key, &text, &s, err) < 0 || text_escape(s, mem, err) < 0)
        return -1;
    *out = amp_buf_span(mem);
    return 0;
}

/* Appends a key to a pointer. */
static int path_push(struct amp_buf *path, const struct amp_tape *t, uint32_t key,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span name;
    if (key_spelling(t, key, &mem, &name, err) < 0 || amp_buf_add(path, "/", 1, err) < 0)
        return -1;
    for (size_t i = 0; i < name.n; i++) {
        const char *esc = name.p[i] == '~' ? "~0" : name.p[i] == '/' ? "~1" : NULL;
        if (amp_buf_add(path, esc ? esc : name.p + i, esc ? 2 : 1, err) < 0)
            return -1;
    }
    return 0;
}

struct keeping {
    const struct amp_tape *from, *to;
    struct amp_buf *path, *out;
    unsigned n;
    const struct cv_keeping *how;
};

/* Pointers consist of keys with their escapes, and are written as they are. */
static int entry_write(struct keeping *k, const struct amp_span *is, const struct amp_span *as,
                       struct amp_error *err)
{
    struct amp_span path = amp_buf_span(k->path);
    if (++k->n > FIELDS_MOST)
        return 0;
    if (amp_buf_fmt(k->out, err, "%s\"%.*s\":{", k->n > 1 ? "," : "", (int)path.n, path.p) < 0)
        return -1;
    if (is && amp_buf_fmt(k->out, err, "\"is\":%.*s", (int)is->n, is->p) < 0)
        return -1;
    if (as && k->how->is_carried(k->how->ctx, path) &&
        amp_buf_fmt(k->out, err, "%s\"as\":%.*s", is ? "," : "", (int)as->n, as->p) < 0)
        return -1;
    if (k->how->report && is)
        k->how->report(k->how->ctx, path, as != NULL);
    return amp_buf_str(k->out, "}", err);
}

/* The value of the same key in an object of another tape, or AMP_TOK_NONE. */
static uint32_t same_key(const struct amp_tape *from, uint32_t key, const struct amp_tape *to,
                         uint32_t object)
{
    for (uint32_t i = object + 1; i < to->tok[object].next; i = to->tok[i + 1].next)
        if (amp_tape_equal(from, key, to, i))
            return i + 1;
    return AMP_TOK_NONE;
}

static int keep_object(struct keeping *k, uint32_t a, uint32_t b, unsigned deep,
                       struct amp_error *err)
{
    const struct amp_tape *from = k->from, *to = k->to;
    size_t at = k->path->len;
    for (uint32_t i = a + 1; i < from->tok[a].next; i = from->tok[i + 1].next) {
        uint32_t v = i + 1, w = same_key(from, i, to, b);
        struct amp_span is = amp_tok_source(from, v), as;
        k->path->len = at;
        if (w != AMP_TOK_NONE && amp_tape_equal(from, v, to, w))
            continue;
        if (path_push(k->path, from, i, err) < 0)
            return -1;
        int rc;
        if (w == AMP_TOK_NONE) {
            rc = entry_write(k, &is, NULL, err);
        } else if (deep > 0 && from->tok[v].type == AMP_JSON_OBJECT &&
                   to->tok[w].type == AMP_JSON_OBJECT) {
            rc = keep_object(k, v, w, deep - 1, err);
        } else {
            as = amp_tok_source(to, w);
            rc = entry_write(k, &is, &as, err);
        }
        if (rc < 0)
            return -1;
    }
    for (uint32_t i = b + 1; i < to->tok[b].next; i = to->tok[i + 1].next) {
        struct amp_span as = amp_tok_source(to, i + 1);
        k->path->len = at;
        if (same_key(to, i, from, a) != AMP_TOK_NONE)
            continue;
        if (path_push(k->path, to, i, err) < 0 || entry_write(k, NULL, &as, err) < 0)
            return -1;
    }
    k->path->len = at;
    return 0;
}

int amp_cv_keep(const struct amp_tape *from, const struct amp_tape *to, struct amp_buf *fields,
                const struct cv_keeping *how, struct amp_error *err)
{
    AMP_BUF struct amp_buf path = {0};
    struct keeping k = {.from = from, .to = to, .path = &path, .out = fields, .how = how};
    amp_buf_init(&path, from->len + PATH_MOST);
    return keep_object(&k, 0, 0, DEEP, err);
}

struct restoring {
    const struct amp_tape *t, *origin;
    uint32_t fields;
    struct amp_buf *path, *name, *out;
};

static uint32_t entry_member(const struct restoring *r, uint32_t entry, const char *name)
{
    if (r->origin->tok[entry].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    return amp_tape_get(r->origin, entry, amp_span_str(name));
}

/* The origin's entry about the member at the path, or AMP_TOK_NONE. */
static uint32_t entry_find(const struct restoring *r)
{
    const struct amp_tape *o = r->origin;
    for (uint32_t i = r->fields + 1; i < o->tok[r->fields].next; i = o->tok[i + 1].next)
        if (amp_span_eq(amp_tok_raw(o, i), amp_buf_span(r->path)))
            return i + 1;
    return AMP_TOK_NONE;
}

static int member_write(struct restoring *r, bool *first, struct amp_span name,
                        struct amp_span value, struct amp_error *err)
{
    int rc = amp_buf_fmt(r->out, err, "%s\"%.*s\":", *first ? "" : ",", (int)name.n, name.p);
    *first = false;
    return rc < 0 ? -1 : amp_buf_add(r->out, value.p, value.n, err);
}

/* Whether a pointer is to a member of the object at the path; sets *name to the member's name,
 * which may be empty. */
static bool names_member(struct amp_span pointer, struct amp_span path, struct amp_span *name)
{
    if (pointer.n <= path.n || memcmp(pointer.p, path.p ? path.p : "", path.n) != 0 ||
        pointer.p[path.n] != '/')
        return false;
    *name = (struct amp_span){pointer.p + path.n + 1, pointer.n - path.n - 1};
    return !memchr(name->p, '/', name->n);
}

static int pointer_unescape(struct amp_span s, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < s.n; i++) {
        bool esc = s.p[i] == '~' && i + 1 < s.n;
        i += esc;
        if (amp_buf_add(out, !esc ? s.p + i : s.p[i] == '1' ? "/" : "~", 1, err) < 0)
            return -1;
    }
    return 0;
}

/* 1: the object has the key; 0: it does not; -1: failure. */
static int has_key(const struct amp_tape *t, uint32_t object, struct amp_span key,
                   struct amp_error *err)
{
    for (uint32_t i = object + 1; i < t->tok[object].next; i = t->tok[i + 1].next) {
        AMP_BUF struct amp_buf mem = {0};
        struct amp_span name;
        if (key_spelling(t, i, &mem, &name, err) < 0)
            return -1;
        if (amp_span_eq(key, name))
            return 1;
    }
    return 0;
}

static int restore_object(struct restoring *r, uint32_t object, unsigned deep,
                          struct amp_error *err);

/* Writes the member whose key is token k: the origin's value while it holds, else the message's. */
static int restore_member(struct restoring *r, uint32_t k, bool *first, unsigned deep,
                          struct amp_error *err)
{
    const struct amp_tape *t = r->t, *o = r->origin;
    struct amp_span name = amp_tok_raw(t, k);
    uint32_t entry = entry_find(r);
    if (entry != AMP_TOK_NONE) {
        uint32_t as = entry_member(r, entry, "as"), is = entry_member(r, entry, "is");
        bool holds = as == AMP_TOK_NONE || amp_tape_equal(o, as, t, k + 1);
        if (holds && is == AMP_TOK_NONE)
            return 0;
        if (holds)
            return member_write(r, first, name, amp_tok_source(o, is), err);
    }
    if (deep == 0 || t->tok[k + 1].type != AMP_JSON_OBJECT)
        return member_write(r, first, name, amp_tok_source(t, k + 1), err);
    if (member_write(r, first, name, AMP_SPAN(""), err) < 0)
        return -1;
    return restore_object(r, k + 1, deep - 1, err);
}

static int restore_object(struct restoring *r, uint32_t object, unsigned deep,
                          struct amp_error *err)
{
    const struct amp_tape *t = r->t, *o = r->origin;
    size_t at = r->path->len;
    bool first = true;
    if (amp_buf_str(r->out, "{", err) < 0)
        return -1;
    for (uint32_t i = object + 1; i < t->tok[object].next; i = t->tok[i + 1].next) {
        r->path->len = at;
        if (path_push(r->path, t, i, err) < 0 || restore_member(r, i, &first, deep, err) < 0)
            return -1;
    }
    r->path->len = at;
    for (uint32_t i = r->fields + 1; i < o->tok[r->fields].next; i = o->tok[i + 1].next) {
        struct amp_span name;
        uint32_t is = entry_member(r, i + 1, "is");
        if (is == AMP_TOK_NONE || !names_member(amp_tok_raw(o, i), amp_buf_span(r->path), &name))
            continue;
        amp_buf_reset(r->name);
        if (pointer_unescape(name, r->name, err) < 0)
            return -1;
        name = amp_buf_span(r->name);
        int has = has_key(t, object, name, err);
        if (has < 0 || (!has && member_write(r, &first, name, amp_tok_source(o, is), err) < 0))
            return -1;
    }
    return amp_buf_str(r->out, "}", err);
}

int amp_cv_restore(const struct amp_tape *t, const struct amp_tape *origin, struct amp_buf *out,
                   struct amp_error *err)
{
    AMP_BUF struct amp_buf path = {0}, name = {0};
    struct restoring r = {.t = t, .origin = origin, .path = &path, .name = &name, .out = out};
    amp_buf_init(&path, t->len + origin->len + PATH_MOST);
    amp_buf_init(&name, origin->len + PATH_MOST);
    r.fields = amp_tape_get(origin, 0, AMP_SPAN("fields"));
    if (r.fields == AMP_TOK_NONE || origin->tok[r.fields].type != AMP_JSON_OBJECT ||
        origin->tok[r.fields].count > FIELDS_MOST)
        return amp_buf_add(out, t->text, t->len, err);
    return restore_object(&r, 0, DEEP, err);
}
