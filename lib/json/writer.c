/* The JSON writer. It writes commas and escapes; the caller opens and closes objects and arrays. */
#include <amp/json/writer.h>

#include <string.h>

#include "json/bytes.h"
#include "json/text.h"

void amp_jw_init(struct amp_jw *w, struct amp_buf *out)
{
    *w = (struct amp_jw){.out = out, .start = out->len};
}

static inline void bytes_put(struct amp_jw *w, const char *p, size_t n)
{
    struct amp_buf *b = w->out;
    if (b->cap - b->len > n && n <= b->max - b->len && !w->failed) {
        if (n)
            memcpy(b->data + b->len, p, n);
        b->len += n;
        b->data[b->len] = '\0';
    } else if (!w->failed && amp_buf_add(b, p, n, &w->err) < 0) {
        w->failed = true;
    }
}

static void before_value(struct amp_jw *w)
{
    if (w->comma)
        bytes_put(w, ",", 1);
    w->comma = true;
}

static void put_string(struct amp_jw *w, struct amp_span text)
{
    /* An empty span may be NULL, on which pointer arithmetic is undefined. */
    const unsigned char *p = (const unsigned char *)(text.n ? text.p : "");
    const unsigned char *end = p + text.n, *from = p;
    bytes_put(w, "\"", 1);
    while (p < end) {
        p = amp_skip_shown(p, end);
        if (p == end)
            break;
        if (*p == '"' || *p == '\\') {
            bytes_put(w, (const char *)from, (size_t)(p - from));
            bytes_put(w, "\\", 1);
            from = p++;
            continue;
        }
        char esc[8] = "\\u00";
        size_t n = *p < 0x80 ? 1 : amp_utf8_length(p, (size_t)(end - p)), len = 0;
        if (n == 0) {
            memcpy(esc, "\xef\xbf\xbd", 3);
            len = 3;
        } else if (*p < 0x20 || *p == 0x7f) {
            const char *known = *p ? strchr("\bb\ff\nn\rr\tt", *p) : NULL;
            if (known) {
                esc[1] = known[1];
                len = 2;
            } else {
                esc[4] = "0123456789abcdef"[*p >> 4];
                esc[5] = "0123456789abcdef"[*p & 15];
                len = 6;
            }
        }
        if (len) {
            bytes_put(w, (const char *)from, (size_t)(p - from));
            bytes_put(w, esc, len);
            p += n ? n : 1;
            from = p;
        } else {
            p += n;
        }
    }
    bytes_put(w, (const char *)from, (size_t)(end - from));
    bytes_put(w, "\"", 1);
}

void amp_jw_open(struct amp_jw *w, char bracket)
{
    before_value(w);
    bytes_put(w, &bracket, 1);
    w->comma = false;
}

void amp_jw_close(struct amp_jw *w, char bracket)
{
    bytes_put(w, &bracket, 1);
    w->comma = true;
}

void amp_jw_key(struct amp_jw *w, const char *key)
{
    size_t n = strlen(key);
    if (n < 40 && amp_skip_plain((const unsigned char *)key, (const unsigned char *)key + n) ==
                      (const unsigned char *)key + n) {
        char text[48];
        size_t at = 0;
        if (w->comma)
            text[at++] = ',';
        text[at++] = '"';
        memcpy(text + at, key, n);
        at += n;
        text[at++] = '"';
        text[at++] = ':';
        bytes_put(w, text, at);
    } else {
        before_value(w);
        put_string(w, (struct amp_span){key, n});
        bytes_put(w, ":", 1);
    }
    w->comma = false;
}

void amp_jw_str(struct amp_jw *w, struct amp_span text)
{
    before_value(w);
    put_string(w, text);
}

static void put_uint(struct amp_jw *w, uint64_t n, bool minus)
{
    char digits[24];
    size_t i = sizeof digits;
    do
        digits[--i] = (char)('0' + n % 10);
    while (n /= 10);
    if (minus)
        digits[--i] = '-';
    before_value(w);
    bytes_put(w, digits + i, sizeof digits - i);
}

void amp_jw_int(struct amp_jw *w, int64_t n)
{
    put_uint(w, n < 0 ? 0 - (uint64_t)n : (uint64_t)n, n < 0);
}

void amp_jw_uint(struct amp_jw *w, uint64_t n)
{
    put_uint(w, n, false);
}

void amp_jw_bool(struct amp_jw *w, bool b)
{
    amp_jw_raw(w, b ? AMP_SPAN("true") : AMP_SPAN("false"));
}

void amp_jw_null(struct amp_jw *w)
{
    amp_jw_raw(w, AMP_SPAN("null"));
}

void amp_jw_raw(struct amp_jw *w, struct amp_span json)
{
    before_value(w);
    bytes_put(w, json.p, json.n);
}

void amp_jw_member_str(struct amp_jw *w, const char *key, struct amp_span text)
{
    amp_jw_key(w, key);
    amp_jw_str(w, text);
}

void amp_jw_member_text(struct amp_jw *w, const char *key, const char *text)
{
    amp_jw_member_str(w, key, amp_span_str(text));
}

void amp_jw_member_int(struct amp_jw *w, const char *key, int64_t n)
{
    amp_jw_key(w, key);
    amp_jw_int(w, n);
}

void amp_jw_member_uint(struct amp_jw *w, const char *key, uint64_t n)
{
    amp_jw_key(w, key);
    amp_jw_uint(w, n);
}

void amp_jw_member_bool(struct amp_jw *w, const char *key, bool b)
{
    amp_jw_key(w, key);
    amp_jw_bool(w, b);
}

void amp_jw_member_raw(struct amp_jw *w, const char *key, struct amp_span json)
{
    amp_jw_key(w, key);
    amp_jw_raw(w, json);
}

void amp_jw_member_open(struct amp_jw *w, const char *key, char bracket)
{
    amp_jw_key(w, key);
    amp_jw_open(w, bracket);
}

void amp_jw_some_str(struct amp_jw *w, const char *key, struct amp_span text)
{
    if (text.n > 0)
        amp_jw_member_str(w, key, text);
}

void amp_jw_some_int(struct amp_jw *w, const char *key, int64_t n)
{
    if (n != 0)
        amp_jw_member_int(w, key, n);
}

int amp_jw_end(struct amp_jw *w, struct amp_error *err)
{
    if (!w->failed)
        return 0;
    return amp_fail_text(err, w->err.status, w->err.code, "%s", w->err.what);
}

int amp_jw_end_line(struct amp_jw *w, struct amp_error *err)
{
    if (amp_jw_end(w, err) == 0 && amp_buf_add(w->out, "\n", 1, err) == 0)
        return 0;
    w->out->len = w->start;
    return -1;
}
