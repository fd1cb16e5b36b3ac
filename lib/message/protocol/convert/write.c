/* The shape for a kind of message, and writing neutral fields by the rows of the shape. */
#include <stdio.h>
#include <string.h>

#include <amp/base/num.h>
#include <amp/json/writer.h>

#include "message/protocol/convert/convert.h"
#include "json/text.h"

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

/* The value that a row is written from: its field, or the first of its alternatives that is not
 * empty. */
static const struct cv_value *value_of(const struct cv_row *row, const struct cv_neutral *n)
{
    static const struct cv_value none;
    const struct cv_value *v = &n->v[row->field];
    bool empty = v->is == CV_IS_LIST && v->n == 0;
    for (unsigned i = 0; (v->is == CV_ABSENT || empty) && i < CV_COUNT(row->alt) && row->alt[i];
         i++) {
        const struct cv_value *other = &n->v[row->alt[i]];
        if (other->is == CV_IS_TEXT || (other->is == CV_IS_LIST && other->n > 0))
            return other;
    }
    return v->is ? v : &none;
}

/* The first `most` characters; 0: all of them. */
static struct amp_span text_cut(struct amp_span s, unsigned most)
{
    size_t i = 0;
    if (most == 0)
        return s;
    for (unsigned k = 0; i < s.n && k < most; k++) {
        size_t len = amp_utf8_length((const unsigned char *)s.p + i, s.n - i);
        i += len ? len : 1;
    }
    s.n = i;
    return s;
}

/* Sets *out to a value as one text, one line for each item of a list. False: it has no text, or out
 * of memory. */
static bool text_joined(const struct cv_value *v, struct amp_arena *arena, struct amp_span *out)
{
    if (v->is == CV_IS_TEXT) {
        *out = v->text;
        return true;
    }
    if (v->is != CV_IS_LIST || v->n == 0)
        return false;
    if (v->n == 1) {
        *out = v->list[0];
        return true;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        n += v->list[i].n + 1;
    char *p = amp_arena_get(arena, n);
    if (!p)
        return false;
    *out = (struct amp_span){p, n - 1};
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->list[i].n > 0)
            memcpy(p, v->list[i].p, v->list[i].n);
        p += v->list[i].n;
        *p++ = '\n';
    }
    return true;
}

static const char *word_find(const struct cv_row *row, struct amp_span neutral)
{
    for (const struct cv_word *w = row->words; w->own; w++)
        if (amp_span_is(neutral, w->neutral))
            return w->own;
    return NULL;
}

/* The row's own word; NULL: none. */
static const char *word_own(const struct cv_row *row, struct amp_span neutral,
                            const struct cv_neutral *n)
{
    const char *own = word_find(row, neutral);
    const char *inferred = own || !row->infer ? NULL : row->infer(neutral, n->v[CV_SUMMARY].text);
    return inferred ? word_find(row, amp_span_str(inferred)) : own;
}

/* The task of a message; if it names none, its conversation or its id. */
static struct amp_span task_of(const struct cv_neutral *n)
{
    static const enum cv_field from[] = {CV_TASK, CV_CORR, CV_ID};
    for (unsigned i = 0; i < CV_COUNT(from); i++)
        if (n->v[from[i]].is == CV_IS_TEXT)
            return n->v[from[i]].text;
    return (struct amp_span){NULL, 0};
}

static int64_t time_ms(const struct cv_neutral *n)
{
    int64_t ms;
    return n->v[CV_TIME].is == CV_IS_TEXT && amp_time_parse(n->v[CV_TIME].text, &ms) ? ms : 0;
}

/* Writes a template, in which % is the text and @ the time. */
static void template_write(struct amp_jw *w, const char *form, struct amp_span text,
                           const struct cv_neutral *n, unsigned most)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_jw in;
    amp_buf_init(&b, text.n * 6 + 4096);
    for (const char *p = form; *p; p++) {
        amp_jw_init(&in, &b);
        if (*p == '%')
            amp_jw_str(&in, text_cut(text, most));
        else if (*p == '@')
            amp_jw_str(&in, n->v[CV_TIME].text);
        else
            amp_buf_add(&b, p, 1, NULL);
    }
    amp_jw_raw(w, amp_buf_span(&b));
}

static void put_list(struct amp_jw *w, const struct cv_row *row, const struct cv_value *v,
                     const struct cv_neutral *n)
{
    const struct amp_span *list = v->is == CV_IS_LIST ? v->list : &v->text;
    uint32_t count = v->is == CV_IS_LIST ? v->n : 1;
    if (row->items && count > row->items)
        count = row->items;
    amp_jw_open(w, '[');
    for (uint32_t i = 0; i < count; i++)
        if (row->as == AS_OBJECTS || row->as == AS_LOG)
            template_write(w, row->words[0].neutral, list[i], n, row->most);
        else
            amp_jw_str(w, text_cut(list[i], row->most));
    if (row->as == AS_LOG && n->v[CV_ORIGIN].is == CV_IS_RAW)
        template_write(w, row->words[1].neutral, n->v[CV_ORIGIN].text, n, 0);
    amp_jw_close(w, ']');
}

/* The value's lines, and the origin behind its mark as the last line. */
static bool put_note(struct amp_jw *w, const struct cv_value *v, const struct cv_neutral *n,
                     struct amp_arena *arena)
{
    struct amp_span text = {"", 0}, origin = n->v[CV_ORIGIN].text;
    if (n->v[CV_ORIGIN].is != CV_IS_RAW) {
        bool have = text_joined(v, arena, &text);
        if (have)
            amp_jw_str(w, text);
        return have;
    }
    AMP_BUF struct amp_buf note = {0};
    text_joined(v, arena, &text);
    amp_buf_init(&note, w->out->max);
    if (amp_buf_add(&note, text.p, text.n, &w->err) < 0 ||
        amp_buf_fmt(&note, &w->err, "%s" CV_ORIGIN_MARK "%.*s", text.n > 0 ? "\n" : "",
                    (int)origin.n, origin.p) < 0)
        w->failed = true;
    amp_jw_str(w, amp_buf_span(&note));
    return true;
}

static bool is_role(struct amp_span s)
{
    return amp_span_is(s, "admin") || amp_span_is(s, "coordinator") || amp_span_is(s, "executor") ||
           amp_span_is(s, "reviewer");
}

/* A text in the row's form; without an address if it has none. */
static struct amp_span text_form(const struct cv_shape *s, const struct cv_row *row,
                                 struct amp_span text, const struct cv_neutral *n,
                                 struct amp_arena *arena)
{
    static const struct amp_span none;
    switch (row->as) {
    case AS_TEXT:
    case AS_JOINED:
        return text_cut(text, row->most);
    case AS_TIME:
        return text;
    case AS_TIME_Z:
        return amp_cv_time_z(text, arena);
    case AS_WORD:
    case AS_NUMBERED: {
        const char *own = word_own(row, text, n);
        return own ? amp_span_str(own) : none;
    }
    case AS_UUID:
        return amp_cv_uuid(text, arena);
    case AS_TASK_AMP:
        return amp_cv_task_amp(text, arena);
    case AS_TASK_AOF:
        return amp_cv_task_aof(text, arena);
    case AS_MSG_ID:
        return amp_cv_msg_id((struct amp_span){s->type, strcspn(s->type, "/")},
                             amp_cv_task_amp(task_of(n), arena), text, time_ms(n), arena);
    case AS_ROLE:
        return is_role(text) || (row->field == CV_FROM && amp_span_is(text, "system")) ? text
                                                                                       : none;
    default:
        return none;
    }
}

static bool put_text(struct amp_jw *w, const struct cv_shape *s, const struct cv_row *row,
                     struct amp_span text, const struct cv_neutral *n, struct amp_arena *arena)
{
    struct amp_span form = text_form(s, row, text, n, arena);
    if (!form.p)
        return false;
    if (row->as == AS_NUMBERED)
        amp_jw_raw(w, form);
    else
        amp_jw_str(w, form);
    return true;
}

static bool put_number(struct amp_jw *w, const struct cv_row *row, const struct cv_value *v,
                       const struct cv_neutral *n)
{
    int64_t k, ms = time_ms(n);
    struct amp_error err;
    switch (row->as) {
    case AS_SEQUENCE:
        if (v->is == CV_IS_RAW)
            amp_jw_raw(w, v->text);
        else
            amp_jw_int(w, ms > 0 ? ms : 0);
        return true;
    case AS_RETRIES:
        if (v->is != CV_IS_RAW || amp_num_parse(v->text, 1, UINT32_MAX, &k, &err) < 0)
            return false;
        amp_jw_int(w, k - 1);
        return true;
    case AS_TTL:
        if (v->is != CV_IS_TEXT || !amp_time_parse(v->text, &k) || ms == 0 || k < ms)
            return false;
        amp_jw_int(w, k - ms);
        return true;
    default:
        return false;
    }
}

/* AMP's work consists of subtasks; work of another protocol is one subtask. */
static void put_subtask(struct amp_jw *w, const struct cv_row *row, const struct cv_neutral *n,
                        struct amp_arena *arena)
{
    char id[80];
    struct amp_span task = amp_cv_task_amp(task_of(n), arena), text = {"", 0};
    snprintf(id, sizeof id, "%.*s-S1", (int)task.n, task.p);
    if (row->as == AS_SUBTASK) {
        amp_jw_str(w, amp_span_str(id));
        return;
    }
    text_joined(value_of(row, n), arena, &text);
    amp_jw_open(w, '[');
    amp_jw_open(w, '{');
    amp_jw_member_str(w, "subtask_id", amp_span_str(id));
    amp_jw_member_str(w, "description", text);
    amp_jw_member_int(w, "estimated_lines", 0);
    amp_jw_close(w, '}');
    amp_jw_close(w, ']');
}

/* A deadline; if absent, a day after the time. */
static bool put_due(struct amp_jw *w, const struct cv_value *v, const struct cv_neutral *n,
                    struct amp_arena *arena)
{
    char due[AMP_TIME_MAX];
    if (v->is == CV_IS_TEXT) {
        amp_jw_str(w, amp_cv_time_z(v->text, arena));
        return true;
    }
    if (time_ms(n) == 0)
        return false;
    amp_time_format(time_ms(n) + INT64_C(86400000), due);
    amp_jw_str(w, amp_span_str(due));
    return true;
}

/* JSON unchanged; of a text (from the command line) only a number. */
static bool put_raw(struct amp_jw *w, const struct cv_value *v)
{
    bool number = v->is == CV_IS_TEXT && v->text.n > 0 && v->text.n < 16;
    for (size_t i = 0; number && i < v->text.n; i++)
        number = v->text.p[i] >= '0' && v->text.p[i] <= '9' && (i > 0 || v->text.p[0] != '0');
    if (v->is == CV_IS_RAW || number)
        amp_jw_raw(w, v->text);
    return v->is == CV_IS_RAW || number;
}

static bool put_value(struct amp_jw *w, const struct cv_shape *s, const struct cv_row *row,
                      const struct cv_neutral *n, struct amp_arena *arena)
{
    static const struct cv_value none = {.is = CV_IS_LIST};
    const struct cv_value *v = value_of(row, n);
    struct amp_span text;
    switch (row->as) {
    case AS_CONST:
        return false;
    case AS_SEQUENCE:
    case AS_RETRIES:
    case AS_TTL:
        return put_number(w, row, v, n);
    case AS_NOTE:
        return put_note(w, v, n, arena);
    case AS_DUE_Z:
        return put_due(w, v, n, arena);
    case AS_SUBTASKS:
    case AS_SUBTASK:
        put_subtask(w, row, n, arena);
        return true;
    case AS_RAW:
        return put_raw(w, v);
    case AS_TEXTS:
    case AS_OBJECTS:
    case AS_LOG:
    case AS_LONE:
        if (v->is != CV_IS_LIST && v->is != CV_IS_TEXT &&
            !(row->as == AS_LOG && n->v[CV_ORIGIN].is))
            return false;
        if (v->is == CV_ABSENT)
            v = &none;
        if (v->is == CV_IS_LIST && v->n == 0 && row->literal && row->as != AS_LOG)
            return false;
        put_list(w, row, v, n);
        return true;
    default:
        return text_joined(v, arena, &text) && put_text(w, s, row, text, n, arena);
    }
}

/* Appends the JSON of one row's value. 1: written; 0: there is nothing to write; -1: failure. */
static int put_row(const struct cv_shape *s, const struct cv_row *row, const struct cv_neutral *n,
                   struct amp_arena *arena, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    bool put = put_value(&w, s, row, n, arena);
    if (!put && row->literal) {
        amp_jw_raw(&w, amp_span_str(row->literal));
        put = true;
    }
    return amp_jw_end(&w, err) < 0 ? -1 : put;
}

enum { DEEP = 6 };

struct path {
    struct amp_span part[DEEP];
    unsigned n;
};

/* The parts of a pointer; the last is the row's own member. */
static struct path path_of(const char *at)
{
    struct path p = {.n = 0};
    while (*at == '/' && p.n < DEEP) {
        const char *end = strchr(++at, '/');
        size_t n = end ? (size_t)(end - at) : strlen(at);
        p.part[p.n++] = (struct amp_span){at, n};
        at += n;
    }
    return p;
}

static int member_open(struct amp_buf *out, struct amp_span name, struct amp_error *err)
{
    bool first = out->len > 0 && out->data[out->len - 1] == '{';
    return amp_buf_fmt(out, err, "%s\"%.*s\":", first ? "" : ",", (int)name.n, name.p);
}

/* Closes objects until n are open. */
static int path_close(struct path *open, unsigned n, struct amp_buf *out, struct amp_error *err)
{
    for (; open->n > n; open->n--)
        if (amp_buf_str(out, "}", err) < 0)
            return -1;
    return 0;
}

/* Closes and opens objects so that the row's member comes next. */
static int path_enter(struct path *open, const struct path *to, struct amp_buf *out,
                      struct amp_error *err)
{
    unsigned same = 0;
    while (same < open->n && same + 1 < to->n && amp_span_eq(open->part[same], to->part[same]))
        same++;
    if (path_close(open, same, out, err) < 0)
        return -1;
    for (; open->n + 1 < to->n; open->n++) {
        open->part[open->n] = to->part[open->n];
        if (member_open(out, to->part[open->n], err) < 0 || amp_buf_str(out, "{", err) < 0)
            return -1;
    }
    return member_open(out, to->part[to->n - 1], err);
}

int amp_cv_write(const struct cv_shape *s, const struct cv_neutral *n, struct amp_arena *arena,
                 struct amp_buf *out, struct amp_error *err)
{
    struct path open = {.n = 0};
    size_t payload = 0;
    AMP_BUF struct amp_buf value = {0};
    amp_buf_init(&value, out->max);
    if (amp_buf_str(out, "{", err) < 0)
        return -1;
    for (unsigned i = 0; i < s->n_rows; i++) {
        const struct cv_row *row = &s->rows[i];
        struct path to = path_of(row->at);
        if (to.n == 0)
            continue;
        amp_buf_reset(&value);
        if (row->as == AS_LENGTH) {
            if (path_close(&open, 0, out, err) < 0 ||
                amp_buf_fmt(&value, err, "%zu", payload ? out->len - payload : 0) < 0)
                return -1;
        } else {
            int put = put_row(s, row, n, arena, &value, err);
            if (put < 0)
                return -1;
            if (put == 0)
                continue;
        }
        bool enters = open.n == 0 && to.n > 1 && amp_span_is(to.part[0], "payload");
        size_t before = out->len;
        if (path_enter(&open, &to, out, err) < 0)
            return -1;
        if (enters)
            payload = before + sizeof ",\"payload\":" - 1;
        if (amp_buf_add(out, value.data, value.len, err) < 0)
            return -1;
    }
    return path_close(&open, 0, out, err) < 0 ? -1 : amp_buf_str(out, "}", err);
}
