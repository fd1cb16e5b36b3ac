/* The shape of a message, and reading it into neutral fields by the rows of the shape. A value of
 * another JSON type than the row's is not read; the origin keeps it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/num.h>

#include "message/protocol/convert/convert.h"
#include "message/protocol/view/fill.h"
#include "message/protocol/view/object.h"

const struct cv_shapes *amp_cv_shapes_of(enum amp_protocol p)
{
    static const struct cv_shapes *const shapes[AMP_PROTO_COUNT] = {
#define X(id, name, title) [AMP_PROTO_##id] = &amp_cv_shapes_##name,
        AMP_PROTOCOL_LIST(X)
#undef X
    };
    static const struct cv_shapes none = {0};
    return shapes[p] ? shapes[p] : &none;
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

struct reading {
    const struct amp_tape *t;
    struct amp_arena *arena;
    struct cv_neutral *n;
    struct amp_error *err;
};

static struct cv_value text_value(struct amp_span text)
{
    return (struct cv_value){.is = CV_IS_TEXT, .text = text};
}

static struct cv_value raw_value(struct amp_span json)
{
    return (struct cv_value){.is = CV_IS_RAW, .text = json};
}

/* The texts of an array's elements, or of the members under a key of the elements; an element
 * without such a text is skipped. */
static int read_texts(struct reading *r, uint32_t tok, const char *key, struct cv_value *v)
{
    const struct amp_tape *t = r->t;
    uint32_t count = t->tok[tok].count, n = 0;
    struct amp_span *list = amp_arena_get(r->arena, (count ? count : 1) * sizeof *list);
    if (!list)
        return amp_fail_memory(r->err);
    for (uint32_t i = tok + 1; i < t->tok[tok].next; i = t->tok[i].next) {
        uint32_t at = i;
        if (key)
            at = t->tok[i].type == AMP_JSON_OBJECT ? amp_tape_get(t, i, amp_span_str(key))
                                                   : AMP_TOK_NONE;
        if (at == AMP_TOK_NONE || t->tok[at].type != AMP_JSON_STRING)
            continue;
        if (amp_fill_text(t, at, r->arena, &list[n++], r->err) < 0)
            return -1;
    }
    *v = (struct cv_value){.is = CV_IS_LIST, .list = list, .n = n};
    return 0;
}

static int read_lines(struct reading *r, struct amp_span text, struct cv_value *v)
{
    uint32_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    struct amp_span *list = amp_arena_get(r->arena, n * sizeof *list);
    if (!list)
        return amp_fail_memory(r->err);
    n = 0;
    for (size_t from = 0, i = 0; i <= text.n; i++)
        if (i == text.n || text.p[i] == '\n') {
            list[n++] = (struct amp_span){text.p + from, i - from};
            from = i + 1;
        }
    *v = (struct cv_value){.is = CV_IS_LIST, .list = list, .n = text.n ? n : 0};
    return 0;
}

static void read_word(const struct reading *r, const struct cv_row *row, struct amp_span own,
                      struct cv_value *v)
{
    const char *neutral = NULL;
    for (const struct cv_word *w = row->words; w->own && !neutral; w++)
        if (amp_span_is(own, w->own))
            neutral = w->neutral;
    if (!neutral && row->infer)
        neutral = row->infer(own, r->n->v[CV_SUMMARY].text);
    if (neutral)
        *v = text_value(amp_span_str(neutral));
}

/* Numbers for words: the first word whose number is not below the value, or the last word. */
static void read_numbered(const struct reading *r, uint32_t tok, const struct cv_row *row,
                          struct cv_value *v)
{
    int64_t k;
    if (!amp_tok_int(r->t, tok, &k))
        return;
    const struct cv_word *w = row->words;
    while (w[1].own) {
        int64_t bound;
        if (amp_num_parse(amp_span_str(w->own), -1000, 1000, &bound, NULL) == 0 && k <= bound)
            break;
        w++;
    }
    *v = text_value(amp_span_str(w->neutral));
}

/* A text whose last line may be the origin. */
static int read_note(struct reading *r, struct amp_span text, struct cv_value *v)
{
    size_t mark = sizeof CV_ORIGIN_MARK - 1, from = text.n;
    while (from > 0 && text.p[from - 1] != '\n')
        from--;
    struct amp_span last = {text.p + from, text.n - from};
    if (last.n > mark && memcmp(last.p, CV_ORIGIN_MARK, mark) == 0) {
        r->n->v[CV_ORIGIN] = raw_value((struct amp_span){last.p + mark, last.n - mark});
        text.n = from ? from - 1 : 0;
        if (text.n == 0)
            return 0;
    }
    return read_lines(r, text, v);
}

/* AMP's work log, whose last entry may be the origin. */
static int read_log(struct reading *r, uint32_t tok, struct cv_value *v)
{
    const struct amp_tape *t = r->t;
    if (read_texts(r, tok, "detail", v) < 0)
        return -1;
    if (v->n == 0)
        return 0;
    uint32_t last = tok + 1;
    while (t->tok[last].next < t->tok[tok].next)
        last = t->tok[last].next;
    if (t->tok[last].type == AMP_JSON_OBJECT && amp_object_is(t, last, "action", "x_amp_origin"))
        r->n->v[CV_ORIGIN] = raw_value(v->list[--v->n]);
    return 0;
}

static int read_lone(struct reading *r, uint32_t tok, struct cv_value *v)
{
    struct cv_value all;
    if (read_texts(r, tok, NULL, &all) < 0)
        return -1;
    if (all.n == 1)
        *v = text_value(all.list[0]);
    return 0;
}

static int read_retries(struct reading *r, uint32_t tok, struct cv_value *v)
{
    enum { DIGITS = 24 };
    int64_t k;
    if (!amp_tok_int(r->t, tok, &k) || k == INT64_MAX)
        return 0;
    char *p = amp_arena_get(r->arena, DIGITS);
    if (!p)
        return amp_fail_memory(r->err);
    snprintf(p, DIGITS, "%" PRId64, k + 1);
    *v = raw_value(amp_span_str(p));
    return 0;
}

static int read_ttl(struct reading *r, uint32_t tok, struct cv_value *v)
{
    const struct cv_value *time = &r->n->v[CV_TIME];
    int64_t k, ms;
    if (!amp_tok_int(r->t, tok, &k) || time->is != CV_IS_TEXT || !amp_time_parse(time->text, &ms) ||
        k < 0 || k > INT64_C(1000000000000000) || ms > INT64_C(200000000000000) - k)
        return 0;
    char *p = amp_arena_get(r->arena, AMP_TIME_MAX);
    if (!p)
        return amp_fail_memory(r->err);
    amp_time_format(ms + k, p);
    *v = text_value(amp_span_str(p));
    return 0;
}

static int read_array(struct reading *r, const struct cv_row *row, uint32_t tok, struct cv_value *v)
{
    switch (row->as) {
    case AS_TEXTS:
        return read_texts(r, tok, NULL, v);
    case AS_OBJECTS:
        return read_texts(r, tok, row->words[0].own, v);
    case AS_LOG:
        return read_log(r, tok, v);
    case AS_LONE:
        return read_lone(r, tok, v);
    default:
        return 0;
    }
}

static int read_string(struct reading *r, const struct cv_row *row, uint32_t tok,
                       struct cv_value *v)
{
    struct amp_span text;
    if (amp_fill_text(r->t, tok, r->arena, &text, r->err) < 0)
        return -1;
    switch (row->as) {
    case AS_WORD:
        read_word(r, row, text, v);
        return 0;
    case AS_JOINED:
        return read_lines(r, text, v);
    case AS_NOTE:
        return read_note(r, text, v);
    case AS_TEXT:
    case AS_TIME:
    case AS_TIME_Z:
    case AS_DUE_Z:
    case AS_UUID:
    case AS_TASK_AMP:
    case AS_TASK_AOF:
    case AS_MSG_ID:
    case AS_ROLE:
        if (text.n > 0)
            *v = text_value(text);
        return 0;
    default:
        return 0;
    }
}

static int read_number(struct reading *r, const struct cv_row *row, uint32_t tok,
                       struct cv_value *v)
{
    switch (row->as) {
    case AS_NUMBERED:
        read_numbered(r, tok, row, v);
        return 0;
    case AS_SEQUENCE:
        *v = raw_value(amp_tok_source(r->t, tok));
        return 0;
    case AS_RETRIES:
        return read_retries(r, tok, v);
    case AS_TTL:
        return read_ttl(r, tok, v);
    default:
        return 0;
    }
}

static int read_value(struct reading *r, const struct cv_row *row, uint32_t tok, struct cv_value *v)
{
    if (row->as == AS_RAW) {
        *v = raw_value(amp_tok_source(r->t, tok));
        return 0;
    }
    switch (r->t->tok[tok].type) {
    case AMP_JSON_ARRAY:
        return read_array(r, row, tok, v);
    case AMP_JSON_STRING:
        return read_string(r, row, tok, v);
    case AMP_JSON_NUMBER:
        return read_number(r, row, tok, v);
    default:
        return 0;
    }
}

int amp_cv_read(const struct cv_shape *s, const struct amp_tape *t, struct amp_arena *arena,
                struct cv_neutral *n, struct amp_error *err)
{
    struct reading r = {t, arena, n, err};
    *n = (struct cv_neutral){0};
    for (unsigned i = 0; i < s->n_rows; i++) {
        const struct cv_row *row = &s->rows[i];
        struct cv_value *field = &n->v[row->field], v = {0};
        if (!row->at[0]) {
            *field = text_value(amp_span_str(row->literal));
            continue;
        }
        uint32_t tok = row->field ? amp_tape_pointer(t, 0, amp_span_str(row->at)) : AMP_TOK_NONE;
        if (tok == AMP_TOK_NONE || field->is || row->as == AS_CONST)
            continue;
        if (read_value(&r, row, tok, &v) < 0)
            return -1;
        *field = v;
    }
    return 0;
}
