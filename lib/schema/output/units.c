/* The list of output units, and the form of the standard in which it is written. */
#include "schema/output/units.h"

#include <stdlib.h>
#include <string.h>

#include <amp/json/writer.h>

#include "base/grow.h"
#include "schema/compile/compiler.h"
#include "schema/format/uri.h"

enum { UNITS_MOST = 10000, TEXTS_MOST = 64 << 20, FULL_AT = 16 << 20, POINTER_MOST = 1 << 20 };

void amp_units_init(struct amp_output_units *u)
{
    *u = (struct amp_output_units){.n = 0};
    amp_buf_init(&u->texts, TEXTS_MOST);
    amp_buf_init(&u->keyword, POINTER_MOST);
    amp_buf_init(&u->instance, POINTER_MOST);
}

void amp_units_release(struct amp_output_units *u)
{
    free(u->v);
    amp_buf_release(&u->texts);
    amp_buf_release(&u->keyword);
    amp_buf_release(&u->instance);
}

size_t amp_pointer_push(struct amp_buf *pointer, struct amp_span name)
{
    size_t before = pointer->len;
    int bad = amp_buf_str(pointer, "/", NULL);
    for (size_t i = 0; i < name.n && !bad; i++)
        bad = name.p[i] == '~'   ? amp_buf_str(pointer, "~0", NULL)
              : name.p[i] == '/' ? amp_buf_str(pointer, "~1", NULL)
                                 : amp_buf_add(pointer, name.p + i, 1, NULL);
    return before; /* a pointer that is too long is cut; the units are bounded anyway */
}

size_t amp_pointer_push_index(struct amp_buf *pointer, uint32_t index)
{
    size_t before = pointer->len;
    amp_buf_fmt(pointer, NULL, "/%u", index);
    return before;
}

/* Appends a pointer for a URI's fragment. */
static int add_fragment(struct amp_buf *out, struct amp_span pointer, struct amp_error *err)
{
    return amp_uri_encode(pointer, "-._~!$&'()*+,;=:@/?", out, err);
}

/* Appends the URI of n's resource and the pointer from there; nothing if the URI is not absolute.
 */
static int add_absolute(struct amp_buf *out, const struct amp_schema *s, const struct amp_node *n,
                        const char *keyword, struct amp_error *err)
{
    const struct amp_resource *res = &s->program->resources[n->resource];
    const struct amp_tape *t = &n->doc->tape;
    const char *colon = res->uri.n ? memchr(res->uri.p, ':', res->uri.n) : NULL;
    const char *slash = res->uri.n ? memchr(res->uri.p, '/', res->uri.n) : NULL;
    if (!colon || (slash && slash < colon))
        return 0;
    AMP_BUF struct amp_buf root = {0}, at = {0};
    amp_buf_init(&root, POINTER_MOST);
    amp_buf_init(&at, POINTER_MOST);
    if (amp_tape_path(t, res->tok, &root, NULL, err) < 0 ||
        amp_tape_path(t, n->tok, &at, NULL, err) < 0)
        return -1;
    struct amp_span below = amp_buf_span(&at);
    if (n->doc == res->doc && below.n >= root.len) {
        below.p += root.len;
        below.n -= root.len;
    }
    if (amp_buf_add(out, res->uri.p, res->uri.n, err) < 0 || amp_buf_str(out, "#", err) < 0 ||
        add_fragment(out, below, err) < 0)
        return -1;
    if (!keyword)
        return 0;
    return amp_buf_str(out, "/", err) || add_fragment(out, amp_span_str(keyword), err) ? -1 : 0;
}

/* The texts from `at` to their end. */
static struct amp_unit_text text_since(const struct amp_output_units *u, size_t at)
{
    return (struct amp_unit_text){(uint32_t)at, (uint32_t)(u->texts.len - at)};
}

int amp_units_add(struct amp_output_units *u, enum amp_unit_kind kind, const struct amp_schema *s,
                  const struct amp_node *n, const char *keyword, struct amp_span content,
                  struct amp_error *err)
{
    if (u->n >= UNITS_MOST || u->texts.len >= FULL_AT) {
        u->truncated = true;
        return 0;
    }
    if (amp_grow(&u->v, &u->cap, u->n, sizeof *u->v, err) < 0)
        return -1;
    struct amp_buf *t = &u->texts;
    struct amp_unit *v = &u->v[u->n++];
    size_t at = t->len;
    struct amp_unit_text empty = text_since(u, at);
    *v = (struct amp_unit){kind, empty, empty, empty, empty};
    if (amp_buf_add(t, u->keyword.data, u->keyword.len, err) < 0 ||
        (keyword && (amp_buf_str(t, "/", err) < 0 || amp_buf_str(t, keyword, err) < 0)))
        return -1;
    v->keyword = text_since(u, at);
    at = t->len;
    if (amp_buf_add(t, u->instance.data, u->instance.len, err) < 0)
        return -1;
    v->instance = text_since(u, at);
    at = t->len;
    if (add_absolute(t, s, n, keyword, err) < 0)
        return -1;
    v->absolute = text_since(u, at);
    at = t->len;
    if (amp_buf_add(t, content.p, content.n, err) < 0)
        return -1;
    v->content = text_since(u, at);
    return 0;
}

void amp_units_drop(struct amp_output_units *u, uint32_t from, enum amp_unit_kind kind)
{
    uint32_t to = from;
    for (uint32_t i = from; i < u->n; i++)
        if (u->v[i].kind != (uint32_t)kind)
            u->v[to++] = u->v[i];
    u->n = to;
    const struct amp_unit *last = u->n ? &u->v[u->n - 1] : NULL;
    u->texts.len = last ? last->content.at + last->content.n : 0;
}

static struct amp_span text_span(const struct amp_output_units *u, struct amp_unit_text text)
{
    return (struct amp_span){text.n ? u->texts.data + text.at : "", text.n};
}

static void unit_open(const struct amp_output_units *u, const struct amp_unit *v, bool valid,
                      struct amp_jw *w)
{
    amp_jw_open(w, '{');
    amp_jw_member_bool(w, "valid", valid);
    amp_jw_member_str(w, "keywordLocation", text_span(u, v->keyword));
    amp_jw_some_str(w, "absoluteKeywordLocation", text_span(u, v->absolute));
    amp_jw_member_str(w, "instanceLocation", text_span(u, v->instance));
    if (v->kind == UNIT_ERROR) {
        amp_jw_member_str(w, "error", text_span(u, v->content));
    } else if (v->kind == UNIT_ANNOTATION) {
        amp_jw_member_raw(w, "annotation", text_span(u, v->content));
    }
}

int amp_units_write(const struct amp_output_units *u, bool valid, enum amp_output form,
                    struct amp_buf *out, struct amp_error *err)
{
    size_t before = out->len;
    struct amp_jw w;
    amp_jw_init(&w, out);
    if (form == AMP_OUTPUT_FLAG) {
        amp_jw_open(&w, '{');
        amp_jw_member_bool(&w, "valid", valid);
    } else {
        unit_open(u, &u->v[0], valid, &w);
        if (u->n > 1)
            amp_jw_member_open(&w, valid ? "annotations" : "errors", '[');
        for (uint32_t i = 1; i < u->n; i++) {
            unit_open(u, &u->v[i], valid, &w);
            amp_jw_close(&w, '}');
        }
        if (u->n > 1)
            amp_jw_close(&w, ']');
        if (u->truncated)
            amp_jw_member_bool(&w, "truncated", true);
    }
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) == 0)
        return 0;
    out->len = before;
    return -1;
}
