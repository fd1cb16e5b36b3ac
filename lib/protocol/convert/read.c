/* From a message to neutral fields, by the rows of its shape. What has another JSON type than its
 * row says is left to the extension. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/num.h>

#include "protocol/convert/convert.h"

#define ORIGIN_MARK "x_amp_origin "

static int text_of(const struct amp_tape *t, uint32_t tok, struct amp_pool *pool,
                   struct amp_span *out, struct amp_error *err)
{
    if (!(t->tok[tok].flags & AMP_TOK_ESCAPED)) {
        *out = amp_tok_raw(t, tok);
        return 0;
    }
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, (size_t)t->tok[tok].len + 1);
    if (amp_tok_text(t, tok, &b, out, err) < 0)
        return -1;
    char *p = amp_pool_get(pool, out->n ? out->n : 1);
    if (!p)
        return amp_fail_memory(err);
    if (out->n > 0)
        memcpy(p, out->p, out->n);
    out->p = p;
    return 0;
}

/* The elements' texts, or those under a key of theirs; an element without is passed over. */
static int texts_of(const struct amp_tape *t, uint32_t tok, const char *key, struct amp_pool *pool,
                    struct cv_value *v, struct amp_error *err)
{
    uint32_t count = t->tok[tok].count, n = 0;
    struct amp_span *list = amp_pool_get(pool, (count ? count : 1) * sizeof *list);
    if (!list)
        return amp_fail_memory(err);
    for (uint32_t i = tok + 1; i < t->tok[tok].next; i = t->tok[i].next) {
        uint32_t at = i;
        if (key)
            at = t->tok[i].type == AMP_JSON_OBJECT ? amp_tape_get(t, i, amp_span_str(key))
                                                   : AMP_TOK_NONE;
        if (at == AMP_TOK_NONE || t->tok[at].type != AMP_JSON_STRING)
            continue;
        if (text_of(t, at, pool, &list[n++], err) < 0)
            return -1;
    }
    *v = (struct cv_value){.is = CV_IS_LIST, .list = list, .n = n};
    return 0;
}

static int lines_of(struct amp_span text, struct amp_pool *pool, struct cv_value *v,
                    struct amp_error *err)
{
    uint32_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    struct amp_span *list = amp_pool_get(pool, n * sizeof *list);
    if (!list)
        return amp_fail_memory(err);
    n = 0;
    for (size_t from = 0, i = 0; i <= text.n; i++)
        if (i == text.n || text.p[i] == '\n') {
            list[n++] = (struct amp_span){text.p + from, i - from};
            from = i + 1;
        }
    *v = (struct cv_value){.is = CV_IS_LIST, .list = list, .n = text.n ? n : 0};
    return 0;
}

static void word_of(const struct cv_row *row, struct amp_span own, const struct cv_neutral *n,
                    struct cv_value *v)
{
    for (const struct cv_word *w = row->words; w->own; w++)
        if (amp_span_is(own, w->own)) {
            *v = (struct cv_value){.is = CV_IS_TEXT, .text = amp_span_str(w->neutral)};
            return;
        }
    if (row->infer)
        *v = (struct cv_value){.is = CV_IS_TEXT,
                               .text = amp_span_str(row->infer(own, n->v[CV_SUMMARY].text))};
}

/* Numbers that stand for words: the first row whose number is not below. */
static void numbered(const struct amp_tape *t, uint32_t tok, const struct cv_row *row,
                     struct cv_value *v)
{
    int64_t k;
    if (!amp_tok_int(t, tok, &k))
        return;
    const struct cv_word *w = row->words;
    while (w[1].own) {
        int64_t bound;
        if (amp_num_parse(amp_span_str(w->own), -1000, 1000, &bound, NULL) == 0 && k <= bound)
            break;
        w++;
    }
    *v = (struct cv_value){.is = CV_IS_TEXT, .text = amp_span_str(w->neutral)};
}

static void origin_of(struct amp_span json, struct cv_neutral *n)
{
    n->v[CV_ORIGIN] = (struct cv_value){.is = CV_IS_RAW, .text = json};
}

/* A text, and behind its last line perhaps the origin. */
static int note_of(struct amp_span text, struct amp_pool *pool, struct cv_value *v,
                   struct cv_neutral *n, struct amp_error *err)
{
    size_t mark = sizeof ORIGIN_MARK - 1, from = text.n;
    while (from > 0 && text.p[from - 1] != '\n')
        from--;
    if (text.n - from > mark && memcmp(text.p + from, ORIGIN_MARK, mark) == 0) {
        origin_of((struct amp_span){text.p + from + mark, text.n - from - mark}, n);
        text.n = from ? from - 1 : 0;
        if (text.n == 0)
            return 0;
    }
    return lines_of(text, pool, v, err);
}

static int log_of(const struct amp_tape *t, uint32_t tok, struct amp_pool *pool, struct cv_value *v,
                  struct cv_neutral *n, struct amp_error *err)
{
    if (texts_of(t, tok, "detail", pool, v, err) < 0)
        return -1;
    if (v->n == 0)
        return 0;
    uint32_t last = tok + 1;
    while (t->tok[last].next < t->tok[tok].next)
        last = t->tok[last].next;
    uint32_t action = t->tok[last].type == AMP_JSON_OBJECT
                          ? amp_tape_get(t, last, AMP_SPAN("action"))
                          : AMP_TOK_NONE;
    if (action != AMP_TOK_NONE && t->tok[action].type == AMP_JSON_STRING &&
        amp_tok_is(t, action, AMP_SPAN("x_amp_origin")))
        origin_of(v->list[--v->n], n);
    return 0;
}

static int print_int(int64_t k, struct amp_pool *pool, struct cv_value *v, struct amp_error *err)
{
    char *p = amp_pool_get(pool, 24);
    if (!p)
        return amp_fail_memory(err);
    int n = snprintf(p, 24, "%" PRId64, k);
    *v = (struct cv_value){.is = CV_IS_RAW, .text = {p, (size_t)n}};
    return 0;
}

static int time_of(int64_t ms, struct amp_pool *pool, struct cv_value *v, struct amp_error *err)
{
    char *p = amp_pool_get(pool, AMP_TIME_MAX);
    if (!p)
        return amp_fail_memory(err);
    amp_time_format(ms, p);
    *v = (struct cv_value){.is = CV_IS_TEXT, .text = amp_span_str(p)};
    return 0;
}

static int read_array(const struct cv_row *row, const struct amp_tape *t, uint32_t tok,
                      struct amp_pool *pool, struct cv_value *v, struct cv_neutral *n,
                      struct amp_error *err)
{
    switch (row->as) {
    case AS_TEXTS:
        return texts_of(t, tok, NULL, pool, v, err);
    case AS_OBJECTS:
        return texts_of(t, tok, row->words[0].own, pool, v, err);
    case AS_LOG:
        return log_of(t, tok, pool, v, n, err);
    case AS_LONE: {
        struct cv_value all;
        if (texts_of(t, tok, NULL, pool, &all, err) < 0)
            return -1;
        if (all.n == 1)
            *v = (struct cv_value){.is = CV_IS_TEXT, .text = all.list[0]};
        return 0;
    }
    default:
        return 0;
    }
}

static int read_string(const struct cv_row *row, const struct amp_tape *t, uint32_t tok,
                       struct amp_pool *pool, struct cv_value *v, struct cv_neutral *n,
                       struct amp_error *err)
{
    struct amp_span text;
    if (text_of(t, tok, pool, &text, err) < 0)
        return -1;
    switch (row->as) {
    case AS_WORD:
        word_of(row, text, n, v);
        return 0;
    case AS_JOINED:
        return lines_of(text, pool, v, err);
    case AS_NOTE:
        return note_of(text, pool, v, n, err);
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
            *v = (struct cv_value){.is = CV_IS_TEXT, .text = text};
        return 0;
    default:
        return 0;
    }
}

static int read_number(const struct cv_row *row, const struct amp_tape *t, uint32_t tok,
                       struct amp_pool *pool, struct cv_value *v, struct cv_neutral *n,
                       struct amp_error *err)
{
    int64_t k, ms;
    switch (row->as) {
    case AS_NUMBERED:
        numbered(t, tok, row, v);
        return 0;
    case AS_SEQUENCE:
        *v = (struct cv_value){.is = CV_IS_RAW, .text = amp_tok_source(t, tok)};
        return 0;
    case AS_RETRIES:
        return amp_tok_int(t, tok, &k) && k < INT64_MAX ? print_int(k + 1, pool, v, err) : 0;
    case AS_TTL:
        if (!amp_tok_int(t, tok, &k) || n->v[CV_TIME].is != CV_IS_TEXT ||
            !amp_time_parse(n->v[CV_TIME].text, &ms) || k < 0 || k > INT64_C(1000000000000000) ||
            ms > INT64_C(200000000000000) - k)
            return 0;
        return time_of(ms + k, pool, v, err);
    default:
        return 0;
    }
}

int amp_cv_read(const struct cv_shape *s, const struct amp_tape *t, struct amp_pool *pool,
                struct cv_neutral *n, struct amp_error *err)
{
    *n = (struct cv_neutral){0};
    for (unsigned i = 0; i < s->n_rows; i++) {
        const struct cv_row *row = &s->rows[i];
        struct cv_value v = {0};
        if (!row->at[0]) {
            v = (struct cv_value){.is = CV_IS_TEXT, .text = amp_span_str(row->literal)};
            n->v[row->field] = v;
            continue;
        }
        uint32_t tok = row->field ? amp_tape_pointer(t, 0, amp_span_str(row->at)) : AMP_TOK_NONE;
        if (tok == AMP_TOK_NONE || n->v[row->field].is || row->as == AS_CONST)
            continue;
        int rc = 0;
        if (row->as == AS_RAW)
            v = (struct cv_value){.is = CV_IS_RAW, .text = amp_tok_source(t, tok)};
        else if (t->tok[tok].type == AMP_JSON_ARRAY)
            rc = read_array(row, t, tok, pool, &v, n, err);
        else if (t->tok[tok].type == AMP_JSON_STRING)
            rc = read_string(row, t, tok, pool, &v, n, err);
        else if (t->tok[tok].type == AMP_JSON_NUMBER)
            rc = read_number(row, t, tok, pool, &v, n, err);
        if (rc < 0)
            return -1;
        n->v[row->field] = v;
    }
    return 0;
}
