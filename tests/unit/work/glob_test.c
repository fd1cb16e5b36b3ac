/* Patterns of paths: what they match, and whether two of them can match the same path. */
#include <stdio.h>

#include "../tap.h"
#include "work/git/paths/glob.h"
#include "work/git/paths/reserved.h"

static const struct {
    const char *pattern, *path;
    bool yes;
} matches[] = {
    {"*.lock", "yarn.lock", true},
    {"*.lock", "a/b/yarn.lock", true},
    {"/*.lock", "a/yarn.lock", false},
    {"/*.lock", "yarn.lock", true},
    {"src", "src/a/b.c", true},
    {"src", "lib/src/b.c", true},
    {"src/", "src/b.c", true},
    {"src/", "src", false},
    {"/src", "lib/src/b.c", false},
    {"src/net", "src/net/a.c", true},
    {"src/net", "lib/src/net/a.c", false},
    {"src/*.c", "src/a.c", true},
    {"src/*.c", "src/x/a.c", false},
    {"src/**/a.c", "src/a.c", true},
    {"src/**/a.c", "src/x/y/a.c", true},
    {"src/**", "src/x", true},
    {"src/**", "source/x", false},
    {"src/*", "src/x", true},
    {"src/*", "src/x/y", false},
    {"src/*/", "src/x/y", true},
    {"a?c", "abc", true},
    {"a?c", "a/c", false},
    {"**", "any/thing", true},
    {"", "a", false},
    {"..", "a", false},
    {"a/../b", "b", false},
    {"**/a/**/a/**/a/**/a/**/a/**/b", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/c", false},
};

static const struct {
    const char *a, *b;
    bool yes;
} overlaps[] = {
    {"src/", "src/net/a.c", true},
    {"src/net", "src/gui", false},
    {"src/*.c", "src/*.h", false},
    {"src/*.c", "src/a*", true},
    {"src/a*", "src/b*", false},
    {"src/*a", "src/b*", true},
    {"src/a?c", "src/abc", true},
    {"src/a?c", "src/abd", false},
    {"*.c", "src/gui/", true},
    {"*.c", "*.h", false},
    {"src/*", "src/a/b", false},
    {"src/*/", "src/a/b", true},
    {"/*.c", "/*.h", false},
    {"/docs/**/a.md", "/docs/x/*", true},
    {"/docs/**/a.md", "/man/**", false},
    {"**", "/x", true},
    {"a/*/c", "a/b/*", true},
    {"x/**", "x/y/*.c", true},
    {"a/*/c", "a/b", true},
    {"a/b/c/d", "a/x/c/d", false},
    {"src/*x*y*", "src/*y*x*", true},
};

int main(void)
{
    struct amp_error err;
    for (size_t i = 0; i < sizeof matches / sizeof *matches; i++)
        TAP_OK(amp_glob_match(amp_span_str(matches[i].pattern), amp_span_str(matches[i].path)) ==
                   matches[i].yes,
               "%s %s %s", matches[i].pattern, matches[i].yes ? "matches" : "does not match",
               matches[i].path);
    for (size_t i = 0; i < sizeof overlaps / sizeof *overlaps; i++) {
        struct amp_span a = amp_span_str(overlaps[i].a), b = amp_span_str(overlaps[i].b);
        TAP_OK(amp_glob_overlap(a, b) == overlaps[i].yes &&
                   amp_glob_overlap(b, a) == overlaps[i].yes,
               "%s and %s %s", overlaps[i].a, overlaps[i].b,
               overlaps[i].yes ? "overlap" : "do not overlap");
    }
    TAP_INT(amp_glob_check(AMP_SPAN("src/**"), &err), 0, "a pattern");
    TAP_INT(amp_glob_check(AMP_SPAN("a\nb"), &err), -1, "a line feed");
    TAP_STR(err.code, "bad_pattern", "its code");

    struct amp_buf text = {0};
    struct amp_reservation r;
    amp_buf_init(&text, 1000);
    amp_buf_str(&text, "amp-reservations 1\nbob T-1 src/net/\neve - my docs/*\n", &err);
    TAP_OK(!amp_reserved_by(&text, AMP_SPAN("bob"), AMP_SPAN("src/net/a.c"), &r), "one's own");
    TAP_OK(amp_reserved_by(&text, AMP_SPAN("eve"), AMP_SPAN("src/net/a.c"), &r), "another's");
    TAP_OK(amp_span_is(r.holder, "bob") && amp_span_is(r.task, "T-1"), "whose and what for");
    TAP_OK(amp_reserved_by(&text, AMP_SPAN("bob"), AMP_SPAN("my docs/a b"), &r), "with a space");
    TAP_OK(r.task.n == 0, "without a task");
    TAP_OK(!amp_reserved_by(&text, AMP_SPAN("bob"), AMP_SPAN("README"), &r), "nobody's");
    amp_buf_release(&text);
    return tap_done();
}
