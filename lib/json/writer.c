/* The JSON writer. It puts commas where they belong and escapes; the caller opens and closes. */
#include <amp/json/writer.h>

#include <string.h>

#include "json/text.h"

void amp_jw_init(struct amp_jw *w, struct amp_buf *out)
{
    *w = (struct amp_jw){.out = out};
}

static void put(struct amp_jw *w, const char *p, size_t n)
{
    if (!w->failed && amp_buf_add(w->out, p, n, &w->err))
        w->failed = true;
}

static void before_value(struct amp_jw *w)
{
    if (w->comma)
        put(w, ",", 1);
    w->comma = true;
}

static void put_string(struct amp_jw *w, struct amp_span text)
{
    /* A span of nothing may have no address, and then none may be counted from. */
    const unsigned char *p = (const unsigned char *)(text.n ? text.p : "");
    const unsigned char *end = p + text.n, *from = p;
    put(w, "\"", 1);
    while (p < end) {
        char esc[8] = "\\u00";
        size_t n = *p < 0x80 ? 1 : amp_utf8_length(p, (size_t)(end - p)), len = 0;
        if (n == 0) {
            memcpy(esc, "\xef\xbf\xbd", 3);
            len = 3;
        } else if (*p == '"' || *p == '\\') {
            esc[1] = (char)*p;
            len = 2;
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
            put(w, (const char *)from, (size_t)(p - from));
            put(w, esc, len);
            p += n ? n : 1;
            from = p;
        } else {
            p += n;
        }
    }
    put(w, (const char *)from, (size_t)(end - from));
    put(w, "\"", 1);
}

void amp_jw_open(struct amp_jw *w, char bracket)
{
    before_value(w);
    put(w, &bracket, 1);
    w->comma = false;
}

void amp_jw_close(struct amp_jw *w, char bracket)
{
    put(w, &bracket, 1);
    w->comma = true;
}

void amp_jw_key(struct amp_jw *w, const char *key)
{
    before_value(w);
    put_string(w, amp_span_str(key));
    put(w, ":", 1);
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
    put(w, digits + i, sizeof digits - i);
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
    put(w, json.p, json.n);
}

int amp_jw_end(struct amp_jw *w, struct amp_error *err)
{
    if (!w->failed)
        return 0;
    return amp_fail(err, w->err.status, w->err.code, "%s", w->err.what);
}
