/*
 * What a conversion cannot say in the target is kept as the origin's fields: {"/pointer": {"is":
 * what stood there, "as": what the way back would make of it}}. Without "is" nothing stood there.
 * "is" holds as long as the way back still makes "as": what somebody changed meanwhile stays
 * changed. There is no "as" where the way back only derives, or has nothing; then "is" always
 * holds.
 */
#include <string.h>

#include "protocol/convert/convert.h"

enum { FIELDS_MOST = 1000, DEEP = 5, PATH_MOST = 4096 };

/* A key's text with the escapes that JSON demands and no others, however it was written: one name
 * is one pointer. */
static int plain_key(const struct amp_tape *t, uint32_t key, struct amp_buf *out,
                     struct amp_error *err)
{
    struct amp_span s = amp_tok_raw(t, key);
    if (!(t->tok[key].flags & AMP_TOK_ESCAPED))
        return amp_buf_add(out, s.p, s.n, err);
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, s.n + 1);
    if (amp_tok_text(t, key, &text, &s, err) < 0)
        return -1;
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

/* A member's name as a part of a pointer. */
static int push(struct amp_buf *path, const struct amp_tape *t, uint32_t key, struct amp_error *err)
{
    AMP_BUF struct amp_buf name = {0};
    struct amp_span raw = amp_tok_raw(t, key);
    amp_buf_init(&name, 6 * raw.n + 1);
    if (t->tok[key].flags & AMP_TOK_ESCAPED) {
        if (plain_key(t, key, &name, err) < 0)
            return -1;
        raw = amp_buf_span(&name);
    }
    if (amp_buf_add(path, "/", 1, err) < 0)
        return -1;
    for (size_t i = 0; i < raw.n; i++) {
        const char *esc = raw.p[i] == '~' ? "~0" : raw.p[i] == '/' ? "~1" : NULL;
        if (amp_buf_add(path, esc ? esc : raw.p + i, esc ? 2 : 1, err) < 0)
            return -1;
    }
    return 0;
}

struct keeping {
    const struct amp_tape *from, *to;
    struct amp_buf path;
    struct amp_buf *out;
    unsigned n;
    const struct cv_keeping *how;
};

/* Pointers are made of keys with their escapes, and written the same. */
static int entry(struct keeping *k, const struct amp_span *is, const struct amp_span *as,
                 struct amp_error *err)
{
    if (++k->n > FIELDS_MOST)
        return 0;
    if (amp_buf_fmt(k->out, err, "%s\"%.*s\":{", k->n > 1 ? "," : "", (int)k->path.len,
                    k->path.data) < 0)
        return -1;
    bool said = as && k->how->said(k->how->ctx, amp_buf_span(&k->path));
    if (is && amp_buf_fmt(k->out, err, "\"is\":%.*s", (int)is->n, is->p) < 0)
        return -1;
    if (said && amp_buf_fmt(k->out, err, "%s\"as\":%.*s", is ? "," : "", (int)as->n, as->p) < 0)
        return -1;
    if (k->how->tell && is)
        k->how->tell(k->how->ctx, amp_buf_span(&k->path), as != NULL);
    return amp_buf_str(k->out, "}", err);
}

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
    size_t at = k->path.len;
    for (uint32_t i = a + 1; i < from->tok[a].next; i = from->tok[i + 1].next) {
        uint32_t v = i + 1, w = same_key(from, i, to, b);
        struct amp_span is = amp_tok_source(from, v), as;
        k->path.len = at;
        if (w != AMP_TOK_NONE && amp_tape_equal(from, v, to, w))
            continue;
        if (push(&k->path, from, i, err) < 0)
            return -1;
        int rc;
        if (w == AMP_TOK_NONE) {
            rc = entry(k, &is, NULL, err);
        } else if (deep > 0 && from->tok[v].type == AMP_JSON_OBJECT &&
                   to->tok[w].type == AMP_JSON_OBJECT) {
            rc = keep_object(k, v, w, deep - 1, err);
        } else {
            as = amp_tok_source(to, w);
            rc = entry(k, &is, &as, err);
        }
        if (rc < 0)
            return -1;
    }
    for (uint32_t i = b + 1; i < to->tok[b].next; i = to->tok[i + 1].next) {
        struct amp_span as = amp_tok_source(to, i + 1);
        k->path.len = at;
        if (same_key(to, i, from, a) != AMP_TOK_NONE)
            continue;
        if (push(&k->path, to, i, err) < 0 || entry(k, NULL, &as, err) < 0)
            return -1;
    }
    k->path.len = at;
    return 0;
}

int amp_cv_keep(const struct amp_tape *from, const struct amp_tape *to, struct amp_buf *fields,
                const struct cv_keeping *how, struct amp_error *err)
{
    struct keeping k = {.from = from, .to = to, .out = fields, .how = how};
    AMP_BUF struct amp_buf path = {0};
    amp_buf_init(&path, from->len + PATH_MOST);
    k.path = path;
    int rc = keep_object(&k, 0, 0, DEEP, err);
    path = k.path;
    return rc;
}

struct restoring {
    const struct amp_tape *t, *origin;
    uint32_t fields;
    struct amp_buf path, name;
    struct amp_buf *out;
};

static uint32_t member(const struct restoring *r, uint32_t entry, const char *name)
{
    if (r->origin->tok[entry].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    return amp_tape_get(r->origin, entry, amp_span_str(name));
}

/* The entry about the member at the path. */
static uint32_t find(const struct restoring *r)
{
    const struct amp_tape *o = r->origin;
    for (uint32_t i = r->fields + 1; i < o->tok[r->fields].next; i = o->tok[i + 1].next)
        if (amp_span_eq(amp_tok_raw(o, i), amp_buf_span(&r->path)))
            return i + 1;
    return AMP_TOK_NONE;
}

static int put(struct restoring *r, bool *first, struct amp_span name, struct amp_span value,
               struct amp_error *err)
{
    int rc = amp_buf_fmt(r->out, err, "%s\"%.*s\":", *first ? "" : ",", (int)name.n, name.p);
    *first = false;
    return rc < 0 ? -1 : amp_buf_add(r->out, value.p, value.n, err);
}

/* Whether a pointer names a member of the object at the path; its name then, which may be empty. */
static bool names_member(struct amp_span pointer, struct amp_span path, struct amp_span *name)
{
    if (pointer.n <= path.n || memcmp(pointer.p, path.p ? path.p : "", path.n) != 0 ||
        pointer.p[path.n] != '/')
        return false;
    *name = (struct amp_span){pointer.p + path.n + 1, pointer.n - path.n - 1};
    return !memchr(name->p, '/', name->n);
}

static int unescape(struct amp_span s, struct amp_buf *out, struct amp_error *err)
{
    for (size_t i = 0; i < s.n; i++) {
        bool esc = s.p[i] == '~' && i + 1 < s.n;
        i += esc;
        if (amp_buf_add(out, !esc ? s.p + i : s.p[i] == '1' ? "/" : "~", 1, err) < 0)
            return -1;
    }
    return 0;
}

/* 1 or 0; -1 on failure. */
static int has_key(const struct amp_tape *t, uint32_t object, struct amp_span plain,
                   struct amp_error *err)
{
    for (uint32_t i = object + 1; i < t->tok[object].next; i = t->tok[i + 1].next) {
        AMP_BUF struct amp_buf name = {0};
        struct amp_span raw = amp_tok_raw(t, i);
        amp_buf_init(&name, 6 * raw.n + 1);
        if (t->tok[i].flags & AMP_TOK_ESCAPED) {
            if (plain_key(t, i, &name, err) < 0)
                return -1;
            raw = amp_buf_span(&name);
        }
        if (amp_span_eq(plain, raw))
            return 1;
    }
    return 0;
}

static int restore_object(struct restoring *r, uint32_t object, unsigned deep,
                          struct amp_error *err);

/* A member of the message: what the origin says about it, or itself. */
static int restore_member(struct restoring *r, uint32_t k, bool *first, unsigned deep,
                          struct amp_error *err)
{
    const struct amp_tape *t = r->t, *o = r->origin;
    uint32_t said = find(r);
    uint32_t is = AMP_TOK_NONE;
    if (said != AMP_TOK_NONE) {
        uint32_t as = member(r, said, "as");
        is = member(r, said, "is");
        bool holds = as == AMP_TOK_NONE || amp_tape_equal(o, as, t, k + 1);
        if (holds && is == AMP_TOK_NONE)
            return 0;
        if (!holds)
            is = AMP_TOK_NONE;
    }
    if (is != AMP_TOK_NONE)
        return put(r, first, amp_tok_raw(t, k), amp_tok_source(o, is), err);
    if (deep == 0 || t->tok[k + 1].type != AMP_JSON_OBJECT)
        return put(r, first, amp_tok_raw(t, k), amp_tok_source(t, k + 1), err);
    return put(r, first, amp_tok_raw(t, k), AMP_SPAN(""), err) < 0
               ? -1
               : restore_object(r, k + 1, deep - 1, err);
}

static int restore_object(struct restoring *r, uint32_t object, unsigned deep,
                          struct amp_error *err)
{
    const struct amp_tape *t = r->t, *o = r->origin;
    size_t at = r->path.len;
    bool first = true;
    if (amp_buf_str(r->out, "{", err) < 0)
        return -1;
    for (uint32_t i = object + 1; i < t->tok[object].next; i = t->tok[i + 1].next) {
        r->path.len = at;
        if (push(&r->path, t, i, err) < 0 || restore_member(r, i, &first, deep, err) < 0)
            return -1;
    }
    r->path.len = at;
    for (uint32_t i = r->fields + 1; i < o->tok[r->fields].next; i = o->tok[i + 1].next) {
        struct amp_span name;
        uint32_t is = member(r, i + 1, "is");
        if (is == AMP_TOK_NONE || !names_member(amp_tok_raw(o, i), amp_buf_span(&r->path), &name))
            continue;
        amp_buf_reset(&r->name);
        if (unescape(name, &r->name, err) < 0)
            return -1;
        name = amp_buf_span(&r->name);
        int has = has_key(t, object, name, err);
        if (has < 0 || (!has && put(r, &first, name, amp_tok_source(o, is), err) < 0))
            return -1;
    }
    return amp_buf_str(r->out, "}", err);
}

int amp_cv_restore(const struct amp_tape *t, const struct amp_tape *origin, struct amp_buf *out,
                   struct amp_error *err)
{
    struct restoring r = {.t = t, .origin = origin, .out = out};
    AMP_BUF struct amp_buf path = {0}, name = {0};
    amp_buf_init(&path, t->len + origin->len + PATH_MOST);
    amp_buf_init(&name, origin->len + PATH_MOST);
    r.fields = amp_tape_get(origin, 0, AMP_SPAN("fields"));
    if (r.fields == AMP_TOK_NONE || origin->tok[r.fields].type != AMP_JSON_OBJECT ||
        origin->tok[r.fields].count > FIELDS_MOST)
        return amp_buf_add(out, t->text, t->len, err);
    r.path = path;
    r.name = name;
    int rc = restore_object(&r, 0, DEEP, err);
    path = r.path;
    name = r.name;
    return rc;
}
