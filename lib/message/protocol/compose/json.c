/* Documents of jansson: see json.h. */
#include "message/protocol/compose/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"

json_t *amp_json_load(struct amp_span text, struct amp_error *err)
{
    json_error_t je;
    if (memchr(text.p ? text.p : "", 0, text.n)) {
        amp_fail(err, AMP_DATAERR, invalid_json, "the text contains a NUL byte");
        return NULL;
    }
    errno = 0;
    json_t *j = json_loadb(text.p ? text.p : "", text.n, JSON_REJECT_DUPLICATES, &je);
    if (!j && errno == ENOMEM) {
        amp_fail_memory(err);
    } else if (!j) {
        enum json_error_code code = json_error_code(&je);
        bool nul = code == json_error_null_character || code == json_error_null_byte_in_key;
        amp_fail(err, AMP_DATAERR, invalid_json, "%s (line %d, column %d)",
                 nul ? "\\u0000 cannot be part of a text here" : je.text, je.line, je.column);
    }
    return j;
}

static json_t *value_of(const struct amp_tape *t, uint32_t tok, struct amp_buf *mem);

static json_t *text_of(const struct amp_tape *t, uint32_t tok, struct amp_buf *mem)
{
    struct amp_span text;
    amp_buf_reset(mem);
    return amp_tok_text(t, tok, mem, &text, NULL) < 0 ? NULL
                                                      : json_stringn(text.p ? text.p : "", text.n);
}

static json_t *container_of(const struct amp_tape *t, uint32_t tok, struct amp_buf *mem)
{
    bool list = t->tok[tok].type == AMP_JSON_ARRAY;
    json_t *j = list ? json_array() : json_object();
    for (uint32_t e = tok + 1; j && e < t->tok[tok].next; e = t->tok[e].next) {
        json_t *key = list ? NULL : text_of(t, e, mem);
        if (!list)
            e++; /* its value */
        json_t *v = list || key ? value_of(t, e, mem) : NULL;
        if (!v || (list ? json_array_append_new(j, v)
                        : json_object_setn_new(j, json_string_value(key), json_string_length(key),
                                               v)) < 0) {
            json_decref(j);
            j = NULL;
        }
        json_decref(key);
    }
    return j;
}

static json_t *value_of(const struct amp_tape *t, uint32_t tok, struct amp_buf *mem)
{
    int64_t n;
    double real;
    switch ((enum amp_json_type)t->tok[tok].type) {
    case AMP_JSON_NULL:
        return json_null();
    case AMP_JSON_FALSE:
    case AMP_JSON_TRUE:
        return json_boolean(t->tok[tok].type == AMP_JSON_TRUE);
    case AMP_JSON_NUMBER:
        if (!(t->tok[tok].flags & AMP_TOK_FRACTION) && amp_tok_int(t, tok, &n))
            return json_integer(n);
        return amp_tok_real(t, tok, &real) ? json_real(real) : NULL;
    case AMP_JSON_STRING:
        return text_of(t, tok, mem);
    case AMP_JSON_ARRAY:
    case AMP_JSON_OBJECT:
        break;
    }
    return container_of(t, tok, mem);
}

json_t *amp_json_of(const struct amp_tape *t, uint32_t tok, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, (size_t)t->len + 1);
    json_t *j = value_of(t, tok, &mem);
    if (!j)
        amp_fail_memory(err);
    return j;
}

json_t *amp_json_text(const char *s)
{
    size_t n = strlen(s);
    json_t *j = json_stringn(s, n);
    for (int i = 0; !j && n > 0 && i < 3; i++)
        j = json_stringn(s, --n);
    return j;
}

/* jansson continues after a key that could not be written. */
struct dump {
    struct amp_buf *out;
    struct amp_error why;
    bool failed;
    bool text; /* in a string */
};

/* The shortest form of a real number that jansson wrote with 17 digits. */
static struct amp_span real_shorten(struct amp_span given, char out[32])
{
    double value = strtod(given.p, NULL);
    for (int digits = 15; digits < 17; digits++) {
        snprintf(out, 32, "%.*g", digits, value);
        if (strtod(out, NULL) == value && strpbrk(out, ".e"))
            return amp_span_str(out);
    }
    return given;
}

/* jansson gives the quotes of a string, and a number, as parts of their own. */
static int dump_part(const char *p, size_t n, void *ctx)
{
    struct dump *d = ctx;
    struct amp_span part = {p, n};
    char number[32], shorter[32];
    if (n == 1 && *p == '"')
        d->text = !d->text;
    else if (!d->text && n > 17 && amp_span_copy(part, number, sizeof number) &&
             number[strspn(number, "0123456789.eE+-")] == '\0')
        part = real_shorten(amp_span_str(number), shorter);
    d->failed = d->failed || amp_buf_add(d->out, part.p, part.n, &d->why) < 0;
    return d->failed ? -1 : 0;
}

const char *amp_json_str(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

void amp_json_put(json_t *object, const char *key, const char *text)
{
    if (*text)
        json_object_set_new(object, key, json_string(text));
}

int amp_json_dump_as(const json_t *j, size_t flags, struct amp_buf *out, struct amp_error *err)
{
    struct dump d = {.out = out};
    size_t before = out->len;
    if (json_dump_callback(j, dump_part, &d, flags) == 0 && !d.failed)
        return 0;
    out->len = before;
    if (!d.failed || d.why.status == AMP_TEMPFAIL)
        return amp_fail_memory(err);
    return amp_fail(err, AMP_DATAERR, buffer_full, "a composed message does not fit its buffer");
}

int amp_json_dump(const json_t *j, struct amp_buf *out, struct amp_error *err)
{
    return amp_json_dump_as(j, JSON_COMPACT | JSON_ENCODE_ANY, out, err);
}

void amp_jw_json(struct amp_jw *w, const json_t *j)
{
    amp_jw_raw(w, AMP_SPAN("")); /* the comma */
    if (!w->failed && (j ? amp_json_dump(j, w->out, &w->err) : amp_fail_memory(&w->err)) < 0)
        w->failed = true;
}

int amp_json_line(const json_t *j, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_json(&w, j);
    return amp_jw_end_line(&w, err);
}
