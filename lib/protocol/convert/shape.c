/* The shape of a message, and the shape in which a protocol writes a kind. */
#include <string.h>

#include "protocol/convert/shape.h"

const struct cv_shapes *amp_cv_shapes_of(enum amp_protocol p)
{
    static const struct cv_shapes *const shapes[AMP_PROTO_COUNT] = {
#define X(id, name, title) [AMP_PROTO_##id] = &amp_cv_shapes_##name,
        AMP_PROTOCOL_LIST(X)
#undef X
    };
    return shapes[p];
}

static bool cond_holds(const struct cv_cond *c, const struct amp_tape *t)
{
    uint32_t tok = amp_tape_pointer(t, 0, amp_span_str(c->at));
    if (tok == AMP_TOK_NONE)
        return false;
    if (!c->is)
        return true;
    if (t->tok[tok].type == AMP_JSON_STRING)
        return amp_tok_is(t, tok, amp_span_str(c->is));
    return amp_span_is(amp_tok_source(t, tok), c->is);
}

/* Whether all conditions hold; `never`: CV_NEVER counts as a condition that does not hold. */
static bool shape_fits(const struct cv_shape *s, const struct amp_tape *t, bool never)
{
    for (unsigned k = 0; k < CV_COUNT(s->when) && s->when[k].at; k++) {
        bool is_never = s->when[k].is && strcmp(s->when[k].is, CV_NEVER) == 0;
        if (is_never ? never : !cond_holds(&s->when[k], t))
            return false;
    }
    return true;
}

const struct cv_shape *amp_cv_shape_of(enum amp_protocol p, const struct amp_tape *t)
{
    const struct cv_shapes *all = amp_cv_shapes_of(p);
    for (unsigned i = 0; i < all->n; i++)
        if (shape_fits(&all->v[i], t, true))
            return &all->v[i];
    return NULL;
}

const struct cv_shape *amp_cv_shape_back(enum amp_protocol p, unsigned kind,
                                         const struct amp_tape *t)
{
    const struct cv_shapes *all = amp_cv_shapes_of(p);
    for (unsigned i = 0; i < all->n; i++)
        if ((all->v[i].kinds & kind) && shape_fits(&all->v[i], t, false))
            return &all->v[i];
    return NULL;
}

static bool has_word(const char *words, struct amp_span w)
{
    for (const char *p = words; *p;) {
        size_t n = strcspn(p, " ");
        if (n == w.n && memcmp(p, w.p, n) == 0)
            return true;
        p += n + strspn(p + n, " ");
    }
    return false;
}

const struct cv_shape *amp_cv_shape_for(enum amp_protocol p, unsigned kind,
                                        const struct cv_neutral *n)
{
    const struct cv_shapes *all = amp_cv_shapes_of(p);
    for (unsigned i = 0; i < all->n; i++) {
        const struct cv_shape *s = &all->v[i];
        const struct cv_value *v = &n->v[s->if_field];
        if (!(s->kinds & kind))
            continue;
        if (!s->if_field || (v->is == CV_IS_TEXT && has_word(s->if_words, v->text)))
            return s;
    }
    return NULL;
}
