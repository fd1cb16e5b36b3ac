/* Reads and writes records by their tables. */
#include "json/record.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/words.h"
#include "json/bytes.h"

enum { RAW_DEPTH = 100, ALIGN = 16 };

static const struct amp_json_limits limits = {
    .max_bytes = AMP_REC_MAX, .max_depth = 160, .max_tokens = 1000000 + 4096};

static int bad_record(const struct amp_rec *r, const char *key, struct amp_error *err)
{
    return amp_fail(err, AMP_DATAERR, bad_record, "%s has no usable %s", r->what, key);
}

static int text_copy(const char **out, struct amp_span text, struct amp_error *err)
{
    char *copy = amp_span_dup(text);
    if (!copy)
        return amp_fail_memory(err);
    *out = copy;
    return 0;
}

int amp_rec_init(const struct amp_rec *r, void *s, struct amp_error *err)
{
    memset(s, 0, r->size);
    int rc = 0;
    for (uint32_t i = 0; i < r->n && rc == 0; i++) {
        const struct amp_rec_field *f = &r->field[i];
        void *p = (char *)s + f->at;
        if (f->type == AMP_REC_TEXT || f->type == AMP_REC_RAW || f->type == AMP_REC_LINE)
            *(struct amp_span *)p = (struct amp_span){"", 0};
        else if (f->type == AMP_REC_CSTR)
            *(const char **)p = "";
        else if (f->type == AMP_REC_STRING)
            rc = text_copy(p, AMP_SPAN(""), err);
        else if (f->type == AMP_REC_SUB)
            rc = amp_rec_init(f->rec, p, err);
        else if (f->type == AMP_REC_OTHER && f->ops->init)
            rc = f->ops->init(p, err);
    }
    if (rc < 0)
        amp_rec_free(r, s);
    return rc;
}

void amp_rec_free(const struct amp_rec *r, void *s)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct amp_rec_field *f = &r->field[i];
        void *p = (char *)s + f->at;
        if (f->type == AMP_REC_STRING)
            free(*(char **)p);
        else if (f->type == AMP_REC_SUB)
            amp_rec_free(f->rec, p);
        else if (f->type == AMP_REC_OTHER && f->ops->free)
            f->ops->free(p);
    }
    memset(s, 0, r->size);
}

/* ---- reading ---- */

struct reader {
    const struct amp_tape *t;
    struct amp_buf *mem; /* with room for all texts and lists */
    struct amp_error *err;
};

static size_t element_size(const struct amp_rec_field *f)
{
    return f->type == AMP_REC_TEXTS ? sizeof(struct amp_span) : f->rec->size;
}

static uint32_t member_find(const struct amp_tape *t, uint32_t object, const char *key)
{
    uint32_t tok = amp_tape_get(t, object, amp_span_str(key));
    return tok == AMP_TOK_NONE || t->tok[tok].type == AMP_JSON_NULL ? AMP_TOK_NONE : tok;
}

static bool is_list(const struct amp_rec_field *f)
{
    return f->type == AMP_REC_LIST || f->type == AMP_REC_TEXTS;
}

/* The bytes of the lists of an object; its texts need at most the size of their JSON. */
static size_t lists_need(const struct amp_rec *r, const struct amp_tape *t, uint32_t object)
{
    size_t need = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct amp_rec_field *f = &r->field[i];
        if (!is_list(f) && f->type != AMP_REC_SUB)
            continue;
        uint32_t tok = member_find(t, object, f->key);
        if (tok == AMP_TOK_NONE) {
            need += is_list(f) ? element_size(f) + ALIGN : 0;
        } else if (f->type == AMP_REC_SUB) {
            need += t->tok[tok].type == AMP_JSON_OBJECT ? lists_need(f->rec, t, tok) : 0;
        } else if (t->tok[tok].type == AMP_JSON_ARRAY) {
            need += ((size_t)t->tok[tok].count + 1) * element_size(f) + ALIGN;
            for (uint32_t e = tok + 1; f->type == AMP_REC_LIST && e < t->tok[tok].next;
                 e = t->tok[e].next)
                need += t->tok[e].type == AMP_JSON_OBJECT ? lists_need(f->rec, t, e) : 0;
        }
    }
    return need;
}

/* Copies a decoded string, or the bytes of another value, to mem, which does not move. */
static int text_read(struct reader *rd, uint32_t tok, struct amp_span *out)
{
    struct amp_span text;
    size_t at = rd->mem->len;
    if (amp_tok_text(rd->t, tok, rd->mem, &text, rd->err) < 0)
        return -1;
    rd->mem->len = at;
    if (text.p != rd->mem->data + at && text.n > 0)
        memcpy(rd->mem->data + at, text.p, text.n);
    rd->mem->len = at + text.n;
    *out = (struct amp_span){rd->mem->data + at, text.n};
    return amp_buf_add(rd->mem, "", 1, rd->err);
}

static int source_read(struct reader *rd, uint32_t tok, struct amp_span *out)
{
    struct amp_span src = amp_tok_source(rd->t, tok);
    *out = (struct amp_span){rd->mem->data + rd->mem->len, src.n};
    return amp_buf_add(rd->mem, src.p, src.n, rd->err);
}

static int members_read(struct reader *rd, const struct amp_rec *r, uint32_t object, void *s);

static int list_read(struct reader *rd, const struct amp_rec *r, const struct amp_rec_field *f,
                     uint32_t tok, void *s)
{
    size_t size = element_size(f), at = (rd->mem->len + ALIGN - 1) / ALIGN * ALIGN;
    char *v = rd->mem->data + at;
    uint32_t n = 0;
    if (tok != AMP_TOK_NONE && rd->t->tok[tok].type != AMP_JSON_ARRAY)
        return bad_record(r, f->key, rd->err);
    rd->mem->len = at + ((tok == AMP_TOK_NONE ? 0 : rd->t->tok[tok].count) + 1) * size;
    memset(v, 0, rd->mem->len - at);
    memcpy((char *)s + f->at, &v, sizeof v);
    if (tok == AMP_TOK_NONE)
        return 0;
    for (uint32_t e = tok + 1; e < rd->t->tok[tok].next; e = rd->t->tok[e].next, n++) {
        void *p = v + n * size;
        if (rd->t->tok[e].type != (f->type == AMP_REC_TEXTS ? AMP_JSON_STRING : AMP_JSON_OBJECT))
            return bad_record(r, f->key, rd->err);
        if (f->type == AMP_REC_TEXTS
                ? text_read(rd, e, p) < 0
                : amp_rec_init(f->rec, p, rd->err) < 0 || members_read(rd, f->rec, e, p) < 0)
            return -1;
    }
    memcpy((char *)s + f->n_at, &n, sizeof n);
    return 0;
}

static const char *word_name(const struct amp_rec_words *words, int value)
{
    return words->machine ? words->machine->states[value].name : words->list[value];
}

static int word_read(const struct amp_rec_field *f, struct amp_span text, void *p)
{
    int value = f->words->machine ? amp_fsm_state(f->words->machine, text)
                                  : amp_word_find(f->words->list, text);
    if (value < 0)
        return -1;
    if (f->size == 1)
        *(uint8_t *)p = (uint8_t)value;
    else
        memcpy(p, &value, sizeof value);
    return 0;
}

/* Reads a string into a field; 1: the text is not usable. */
static int string_read(struct reader *rd, const struct amp_rec_field *f, uint32_t tok, void *p)
{
    struct amp_span text;
    size_t at = rd->mem->len;
    if (rd->t->tok[tok].type != AMP_JSON_STRING)
        return 1;
    if (text_read(rd, tok, &text) < 0)
        return -1;
    if (f->type == AMP_REC_TEXT || f->type == AMP_REC_LINE) {
        *(struct amp_span *)p = text;
        return 0;
    }
    if (memchr(text.p, '\0', text.n))
        return 1;
    if (f->type == AMP_REC_CSTR) {
        *(const char **)p = text.p;
        return 0;
    }
    rd->mem->len = at; /* the other types do not keep the text in mem */
    if (f->type == AMP_REC_STRING) {
        char *old = *(char **)p;
        if (text_copy(p, text, rd->err) < 0)
            return -1;
        free(old);
        return 0;
    }
    if (f->type == AMP_REC_CHARS)
        return !amp_span_copy(text, p, f->size);
    return f->type == AMP_REC_TIME ? !amp_time_parse(text, p) : word_read(f, text, p) < 0;
}

static int field_read(struct reader *rd, const struct amp_rec *r, const struct amp_rec_field *f,
                      uint32_t tok, void *s)
{
    void *p = (char *)s + f->at;
    int rc = 0;
    switch ((enum amp_rec_type)f->type) {
    case AMP_REC_INT:
        rc = !amp_tok_int(rd->t, tok, p);
        break;
    case AMP_REC_BOOL:
        *(bool *)p = rd->t->tok[tok].type == AMP_JSON_TRUE;
        rc = !*(bool *)p && rd->t->tok[tok].type != AMP_JSON_FALSE;
        break;
    case AMP_REC_RAW:
        return source_read(rd, tok, p);
    case AMP_REC_LINE:
        if (rd->t->tok[tok].type == AMP_JSON_OBJECT)
            return source_read(rd, tok, p);
        rc = string_read(rd, f, tok, p);
        break;
    case AMP_REC_TEXTS:
    case AMP_REC_LIST:
        return list_read(rd, r, f, tok, s);
    case AMP_REC_SUB:
        if (rd->t->tok[tok].type == AMP_JSON_OBJECT)
            return members_read(rd, f->rec, tok, p);
        rc = 1;
        break;
    case AMP_REC_OTHER:
        rc = f->ops->read(p, rd->t, tok, rd->err);
        break;
    default:
        rc = string_read(rd, f, tok, p);
    }
    return rc > 0 ? bad_record(r, f->key, rd->err) : rc;
}

/* The values of an object by their fields: values[i] is that of r->field[i]. A record is written in
 * the order of its table, so the next member is mostly that of one of the next fields. */
static void members_match(const struct amp_rec *r, const struct amp_tape *t, uint32_t object,
                          uint32_t values[AMP_REC_FIELDS])
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < r->n; i++)
        values[i] = AMP_TOK_NONE;
    for (uint32_t key = object + 1; key < t->tok[object].next; key = t->tok[key + 1].next)
        for (uint32_t tried = 0; tried < r->n; tried++) {
            uint32_t i = next + tried < r->n ? next + tried : next + tried - r->n;
            const char *name = r->field[i].key;
            if (t->text[t->tok[key].off] != *name && !(t->tok[key].flags & AMP_TOK_ESCAPED))
                continue;
            if (!amp_tok_is(t, key, amp_span_str(name)))
                continue;
            values[i] = t->tok[key + 1].type == AMP_JSON_NULL ? AMP_TOK_NONE : key + 1;
            next = i + 1 < r->n ? i + 1 : 0;
            break;
        }
}

static int members_read(struct reader *rd, const struct amp_rec *r, uint32_t object, void *s)
{
    uint32_t values[AMP_REC_FIELDS];
    members_match(r, rd->t, object, values);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct amp_rec_field *f = &r->field[i];
        uint32_t tok = values[i];
        if (tok == AMP_TOK_NONE && f->type == AMP_REC_LINE)
            tok = member_find(rd->t, object, "text");
        if (tok == AMP_TOK_NONE ? is_list(f) && list_read(rd, r, f, tok, s) < 0
                                : field_read(rd, r, f, tok, s) < 0)
            return -1;
    }
    return 0;
}

int amp_rec_read(const struct amp_rec *r, const struct amp_tape *t, uint32_t object,
                 struct amp_buf *mem, void *s, struct amp_error *err)
{
    struct reader rd = {t, mem, err};
    if (t->tok[object].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_DATAERR, bad_record, "%s is not an object", r->what);
    amp_buf_reset(mem);
    if (amp_buf_reserve(mem, amp_tok_source(t, object).n + ALIGN + lists_need(r, t, object), err) <
        0)
        return -1;
    return members_read(&rd, r, object, s);
}

void amp_rec_tape(struct amp_tape *t)
{
    amp_tape_init(t, &limits);
}

int amp_rec_scan(struct amp_tape *t, struct amp_span json, const char *what, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (amp_tape_scan(t, json.p, json.n, &fault) < 0)
        return amp_json_fail(err, AMP_DATAERR, AMP_CODE(bad_record), what, &fault);
    if (t->tok[0].type != AMP_JSON_OBJECT)
        return amp_fail(err, AMP_DATAERR, bad_record, "%s is not an object", what);
    return 0;
}

int amp_rec_parse(const struct amp_rec *r, struct amp_span json, struct amp_buf *mem, void *s,
                  struct amp_error *err)
{
    AMP_TAPE struct amp_tape t = {0};
    if (amp_rec_init(r, s, err) < 0)
        return -1;
    amp_rec_tape(&t);
    if (amp_rec_scan(&t, json, r->what, err) == 0 && amp_rec_read(r, &t, 0, mem, s, err) == 0)
        return 0;
    amp_rec_free(r, s);
    return -1;
}

/* ---- writing ---- */

/* Whether a checked line is exactly one object, not too deep for the record that contains it. */
static bool line_is_raw(struct amp_span line)
{
    if (line.n < 2 || line.p[0] != '{' || line.p[line.n - 1] != '}')
        return false;
    const unsigned char *p = (const unsigned char *)line.p, *end = p + line.n;
    int depth = 0;
    for (; p < end; p++) {
        switch (*p) {
        case '"':
            while ((p = amp_skip_plain(p + 1, end)) < end && *p != '"')
                p += *p == '\\';
            if (p >= end)
                return false;
            break;
        case '{':
        case '[':
            if (++depth > RAW_DEPTH)
                return false;
            break;
        case '}':
        case ']':
            depth--;
            break;
        case '\n':
        case '\r':
            return false;
        default:
            break;
        }
    }
    return depth == 0;
}

void amp_rec_time(struct amp_jw *w, const char *key, int64_t ms)
{
    char text[AMP_TIME_MAX];

    if (ms <= 0)
        return;
    amp_time_format(ms, text);
    amp_jw_member_text(w, key, text);
}

void amp_rec_line(struct amp_jw *w, struct amp_span line)
{
    if (line_is_raw(line))
        amp_jw_member_raw(w, "msg", line);
    else
        amp_jw_member_str(w, "text", line);
}

static int word_value(const struct amp_rec_field *f, const void *p)
{
    int value = *(const uint8_t *)p;
    if (f->size > 1)
        memcpy(&value, p, sizeof value);
    return value;
}

static bool is_empty(const struct amp_rec_field *f, const void *s)
{
    const void *p = (const char *)s + f->at;
    switch ((enum amp_rec_type)f->type) {
    case AMP_REC_TEXT:
    case AMP_REC_RAW:
    case AMP_REC_LINE:
        return ((const struct amp_span *)p)->n == 0;
    case AMP_REC_CSTR:
    case AMP_REC_STRING:
        return !*(const char *const *)p || !**(const char *const *)p;
    case AMP_REC_CHARS:
        return !*(const char *)p;
    case AMP_REC_INT:
    case AMP_REC_TIME:
        return *(const int64_t *)p == 0;
    case AMP_REC_BOOL:
        return !*(const bool *)p;
    case AMP_REC_TEXTS:
    case AMP_REC_LIST:
        return *(const uint32_t *)(const void *)((const char *)s + f->n_at) == 0;
    case AMP_REC_SUB:
        for (uint32_t i = 0; i < f->rec->n; i++)
            if (!is_empty(&f->rec->field[i], p))
                return false;
        return true;
    case AMP_REC_WORD:
        return word_value(f, p) == 0;
    case AMP_REC_OTHER:
        break;
    }
    return false;
}

void amp_rec_overlay(const struct amp_rec *r, const void *over, void *s)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct amp_rec_field *f = &r->field[i];
        if (!is_list(f) && !is_empty(f, over))
            memcpy((char *)s + f->at, (const char *)over + f->at,
                   f->type == AMP_REC_SUB ? f->rec->size : f->size);
    }
}

static void texts_write(const struct amp_span *v, uint32_t n, struct amp_jw *w)
{
    amp_jw_open(w, '[');
    for (uint32_t i = 0; i < n; i++)
        amp_jw_str(w, v[i]);
    amp_jw_close(w, ']');
}

static void members_write(const struct amp_rec *r, const void *s, struct amp_jw *w);

static void value_write(const struct amp_rec_field *f, const void *s, struct amp_jw *w)
{
    const void *p = (const char *)s + f->at;
    const void *list = is_list(f) ? *(const void *const *)p : NULL;
    uint32_t n = is_list(f) ? *(const uint32_t *)(const void *)((const char *)s + f->n_at) : 0;
    char time[AMP_TIME_MAX];
    switch ((enum amp_rec_type)f->type) {
    case AMP_REC_TEXT:
        amp_jw_str(w, *(const struct amp_span *)p);
        break;
    case AMP_REC_CSTR:
    case AMP_REC_STRING:
        amp_jw_str(w, amp_span_str(*(const char *const *)p));
        break;
    case AMP_REC_CHARS:
        amp_jw_str(w, amp_span_str(p));
        break;
    case AMP_REC_INT:
        amp_jw_int(w, *(const int64_t *)p);
        break;
    case AMP_REC_BOOL:
        amp_jw_bool(w, *(const bool *)p);
        break;
    case AMP_REC_TIME:
        amp_time_format(*(const int64_t *)p, time);
        amp_jw_str(w, amp_span_str(time));
        break;
    case AMP_REC_WORD:
        amp_jw_str(w, amp_span_str(word_name(f->words, word_value(f, p))));
        break;
    case AMP_REC_RAW:
        amp_jw_raw(w, *(const struct amp_span *)p);
        break;
    case AMP_REC_LINE:
        break; /* members_write writes it */
    case AMP_REC_TEXTS:
        texts_write(list, n, w);
        break;
    case AMP_REC_LIST:
        amp_rec_list(f->rec, list, n, w);
        break;
    case AMP_REC_SUB:
        if (is_empty(f, s)) {
            amp_jw_null(w);
            break;
        }
        amp_jw_open(w, '{');
        members_write(f->rec, p, w);
        amp_jw_close(w, '}');
        break;
    case AMP_REC_OTHER:
        if (!w->failed && f->ops->write(p, w, &w->err) < 0)
            w->failed = true;
        break;
    }
}

static void members_write(const struct amp_rec *r, const void *s, struct amp_jw *w)
{
    for (uint32_t i = 0; i < r->n; i++) {
        const struct amp_rec_field *f = &r->field[i];
        if (!f->ever && is_empty(f, s))
            continue;
        if (f->type == AMP_REC_LINE) {
            amp_rec_line(w, *(const struct amp_span *)(const void *)((const char *)s + f->at));
            continue;
        }
        amp_jw_key(w, f->key);
        value_write(f, s, w);
    }
}

void amp_rec_list(const struct amp_rec *of, const void *v, uint32_t n, struct amp_jw *w)
{
    amp_jw_open(w, '[');
    for (uint32_t i = 0; i < n; i++) {
        amp_jw_open(w, '{');
        members_write(of, (const char *)v + (size_t)i * of->size, w);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

int amp_rec_write(const struct amp_rec *r, const void *s, struct amp_buf *out,
                  struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    members_write(r, s, &w);
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}
