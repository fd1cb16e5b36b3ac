/* Spans and bounded buffers. */
#include <amp/base/buf.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"

struct amp_span amp_span_str(const char *s)
{
    return s ? (struct amp_span){s, strlen(s)} : (struct amp_span){"", 0};
}

bool amp_span_eq(struct amp_span a, struct amp_span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool amp_span_is(struct amp_span a, const char *s)
{
    return amp_span_eq(a, amp_span_str(s));
}

bool amp_span_starts(struct amp_span a, const char *with)
{
    size_t n = strlen(with);
    return a.n >= n && memcmp(a.p, with, n) == 0;
}

bool amp_span_ends(struct amp_span a, const char *with)
{
    size_t n = strlen(with);
    return a.n >= n && memcmp(a.p + a.n - n, with, n) == 0;
}

bool amp_span_copy(struct amp_span a, char *dst, size_t size)
{
    if (size == 0)
        return false;
    size_t n = a.n < size ? a.n : size - 1;
    if (n)
        memcpy(dst, a.p, n);
    dst[n] = '\0';
    return n == a.n;
}

char *amp_span_dup(struct amp_span a)
{
    char *s = malloc(a.n + 1);
    if (!s)
        return NULL;
    if (a.n)
        memcpy(s, a.p, a.n);
    s[a.n] = '\0';
    return s;
}

bool amp_span_glob(struct amp_span text, struct amp_span pattern)
{
    /* Only the last star may have to match more, so one place to return to is enough, and the time
     * is at most text * pattern. */
    size_t t = 0, p = 0, back_t = 0, back_p = 0;
    bool star = false;
    while (t < text.n) {
        if (p < pattern.n && pattern.p[p] == '*') {
            star = true;
            back_p = ++p;
            back_t = t;
        } else if (p < pattern.n && (pattern.p[p] == '?' || pattern.p[p] == text.p[t])) {
            p++;
            t++;
        } else if (star) {
            p = back_p;
            t = ++back_t;
        } else {
            return false;
        }
    }
    while (p < pattern.n && pattern.p[p] == '*')
        p++;
    return p == pattern.n;
}

void amp_buf_init(struct amp_buf *b, size_t max)
{
    *b = (struct amp_buf){.max = max};
}

void amp_buf_release(struct amp_buf *b)
{
    free(b->data);
    *b = (struct amp_buf){.max = b->max};
}

void amp_buf_reset(struct amp_buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

int amp_buf_reserve(struct amp_buf *b, size_t n, struct amp_error *err)
{
    if (n > b->max || b->len > b->max - n)
        return amp_fail(err, AMP_UNAVAILABLE, buffer_full, "a buffer would grow past %zu bytes",
                        b->max);
    size_t need = b->len + n + 1;
    if (need <= b->cap)
        return 0;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap = cap > b->max / 2 ? b->max + 1 : cap * 2;
    char *data = realloc(b->data, cap);
    if (!data)
        return amp_fail_memory(err);
    b->data = data;
    b->cap = cap;
    return 0;
}

int amp_buf_add(struct amp_buf *b, const void *p, size_t n, struct amp_error *err)
{
    if (amp_buf_reserve(b, n, err) < 0)
        return -1;
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
    return 0;
}

int amp_buf_str(struct amp_buf *b, const char *s, struct amp_error *err)
{
    return amp_buf_add(b, s, strlen(s), err);
}

int amp_buf_fmt(struct amp_buf *b, struct amp_error *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        return amp_fail(err, AMP_INTERNAL, bad_format, "cannot format a text");
    if (amp_buf_reserve(b, (size_t)n, err) < 0)
        return -1;
    va_start(ap, fmt);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    b->len += (size_t)n;
    return 0;
}

void amp_buf_drop(struct amp_buf *b, size_t n)
{
    if (n > b->len)
        n = b->len;
    if (n == 0)
        return;
    memmove(b->data, b->data + n, b->len - n);
    b->len -= n;
    b->data[b->len] = '\0';
}

struct amp_span amp_buf_span(const struct amp_buf *b)
{
    return (struct amp_span){b->data ? b->data : "", b->len};
}

void amp_auto_free(void *pp)
{
    void *p;
    memcpy(&p, pp, sizeof p);
    free(p);
}

void amp_auto_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
}
