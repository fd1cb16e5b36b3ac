/* Spans and bounded buffers. */
#include <stdlib.h>

#include <amp/base/buf.h>

#include "../tap.h"

static bool glob(const char *text, const char *pattern)
{
    return amp_span_glob(amp_span_str(text), amp_span_str(pattern));
}

static void spans(void)
{
    char s[4];
    TAP_OK(amp_span_is((struct amp_span){NULL, 0}, ""), "NULL and 0 is the empty span");
    TAP_OK(amp_span_str(NULL).n == 0, "no string is the empty span");
    TAP_OK(!amp_span_eq(AMP_SPAN("ab"), AMP_SPAN("abc")), "a prefix is not the same");
    TAP_OK(amp_span_eq((struct amp_span){"a\0b", 3}, (struct amp_span){"a\0b", 3}), "NUL inside");
    TAP_OK(amp_span_copy(AMP_SPAN("abc"), s, sizeof s) && strcmp(s, "abc") == 0, "what fits");
    TAP_OK(!amp_span_copy(AMP_SPAN("abcd"), s, sizeof s) && strcmp(s, "abc") == 0, "what does not");
    char *d = amp_span_dup(AMP_SPAN("xyz"));
    TAP_STR(d, "xyz", "dup");
    free(d);
}

static void globs(void)
{
    TAP_OK(glob("main", "main") && !glob("main", "mai") && !glob("mai", "main"), "no wildcard");
    TAP_OK(glob("release/1.2", "release/*") && glob("release/", "release/*"), "a star at the end");
    TAP_OK(glob("T-2026-001", "T-?\?\?\?-*1"), "question marks and a star");
    TAP_OK(glob("", "") && glob("", "***") && !glob("", "?"), "the empty text");
    TAP_OK(glob("abcabd", "*abd") && glob("aaab", "*a*b") && !glob("aaac", "*a*b"), "backtracking");
    TAP_OK(!glob("x", "[x]") && glob("[x]", "[x]"), "brackets mean themselves");
    char text[5000], pattern[400];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i + 2 < sizeof pattern; i += 2)
        memcpy(pattern + i, "*a", 2);
    memcpy(pattern + sizeof pattern - 2, "b", 2);
    TAP_OK(!glob(text, pattern), "many stars do not take for ever");
}

static void buffers(void)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_error err;
    amp_buf_init(&b, 10);
    TAP_SPAN(amp_buf_span(&b), "", "new ones are empty");
    TAP_OK(!amp_buf_str(&b, "hello", &err) && !amp_buf_fmt(&b, &err, "%d", 12345), "to the bound");
    TAP_SPAN(amp_buf_span(&b), "hello12345", "all of it");
    TAP_OK(b.data[b.len] == '\0', "and a NUL beyond");
    TAP_OK(amp_buf_add(&b, "x", 1, &err) == -1, "one more does not go");
    TAP_STR(err.code, "buffer_full", "its code");
    TAP_SPAN(amp_buf_span(&b), "hello12345", "and nothing changed");
    TAP_OK(amp_buf_fmt(&b, &err, "%s", "y") == -1 && b.len == 10, "neither by fmt");
    TAP_OK(amp_buf_reserve(&b, SIZE_MAX, &err) == -1, "a huge size does not wrap");
    amp_buf_drop(&b, 5);
    TAP_SPAN(amp_buf_span(&b), "12345", "dropped from the front");
    amp_buf_drop(&b, 50);
    TAP_SPAN(amp_buf_span(&b), "", "dropping more than there is");
    amp_buf_reset(&b);
    TAP_OK(!amp_buf_add(&b, NULL, 0, &err), "adding nothing");

    struct amp_buf z;
    amp_buf_init(&z, 0);
    TAP_OK(amp_buf_add(&z, "", 0, &err) == 0 && amp_buf_add(&z, "a", 1, &err) == -1, "bound 0");
    amp_buf_release(&z);
    amp_buf_release(&z);
    AMP_BUF struct amp_buf big = {0};
    amp_buf_init(&big, SIZE_MAX / 4);
    bool ok = true;
    for (int i = 0; i < 100000; i++)
        ok = ok && !amp_buf_add(&big, "0123456789", 10, &err);
    TAP_OK(ok && big.len == 1000000 && big.cap < 4000000, "growing");
}

int main(void)
{
    spans();
    globs();
    buffers();
    return tap_done();
}
