/* The front matter of task files: scalars are found, changed and removed, and nothing else is. */
#include "work/aof/front.h"

#include "../tap.h"

static struct amp_buf mem;

static struct amp_span get(const char *text, const char *path)
{
    static char copy[8192];
    struct amp_span v = {"", 0};
    snprintf(copy, sizeof copy, "%s", text);
    amp_buf_reset(&mem);
    amp_buf_reserve(&mem, 8192, NULL);
    if (amp_front_get(amp_span_str(copy), path, &mem, &v, NULL) <= 0)
        v = AMP_SPAN("-");
    return v;
}

static void set(const char *text, const char *path, const char *value, const char *want)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_span v = value ? amp_span_str(value) : (struct amp_span){0};
    amp_buf_init(&b, 8192);
    amp_buf_str(&b, text, NULL);
    bool ok = amp_front_set(&b, path, v, NULL) == 0 && amp_span_is(amp_buf_span(&b), want);
    TAP_OK(ok, "%s is %s", path, value ? "set" : "removed");
    if (!ok)
        printf("# got: %.*s\n", (int)b.len, b.data);
    /* What was written is read again, and a second time changes nothing. */
    if (value) {
        amp_buf_str(&b, "", NULL);
        AMP_BUF struct amp_buf copy = {0};
        amp_buf_init(&copy, 8192);
        amp_buf_add(&copy, b.data, b.len, NULL);
        amp_buf_add(&copy, "", 1, NULL);
        TAP_SPAN(get(copy.data, path), value, "read back");
        amp_front_set(&b, path, v, NULL);
        TAP_SPAN(amp_buf_span(&b), want, "again");
    }
}

static void reads(void)
{
    static const char text[] = "---\n"
                               "id: TASK-1 # a comment\n"
                               "title: \"a \\\"b\\\" \\u00e9\"\n"
                               "single: 'it''s'\n"
                               "empty:\n"
                               "none: null\n"
                               "lease:\n"
                               "    agent: ann\n"
                               "\n"
                               "    # between\n"
                               "    expiresAt: \"2026-01-01T00:00:00.000Z\"\n"
                               "routing: {agent: bob, \"team\": 'x, y', deep: \"a\"}\n"
                               "list:\n"
                               "  - agent: no\n"
                               "agentless: yes\n"
                               "---\n"
                               "id: not this\n";
    TAP_SPAN(get(text, "id"), "TASK-1", "plain, without its comment");
    TAP_SPAN(get(text, "title"), "a \"b\" \xc3\xa9", "double quotes");
    TAP_SPAN(get(text, "single"), "it's", "single quotes");
    TAP_SPAN(get(text, "empty"), "-", "no value");
    TAP_SPAN(get(text, "none"), "-", "null");
    TAP_SPAN(get(text, "lease.agent"), "ann", "a mapping, however deep it is indented");
    TAP_SPAN(get(text, "lease.expiresAt"), "2026-01-01T00:00:00.000Z", "behind a blank line");
    TAP_SPAN(get(text, "routing.agent"), "bob", "a mapping on one line");
    TAP_SPAN(get(text, "routing.team"), "x, y", "with quotes");
    TAP_SPAN(get(text, "list.agent"), "-", "not in a list");
    TAP_SPAN(get(text, "agent"), "-", "not a deeper key");
    TAP_SPAN(get(text, "lease"), "-", "a mapping is no scalar");
    TAP_SPAN(get("# no front matter\nid: x\n", "id"), "-", "no front matter");
    TAP_SPAN(get("---\r\nid: x\r\n---\r\n", "id"), "x", "line ends of other systems");
    TAP_SPAN(get("\xef\xbb\xbf--- \nid: x\n---\t\n", "id"), "x", "a byte order mark, and blanks");
    TAP_SPAN(get("---\nlease:\n\tagent: ann\n---\n", "lease.agent"), "ann", "a tab");
    TAP_SPAN(get("---\n\"lease\":\n  'agent' : ann\t# by hand\n---\n", "lease.agent"), "ann",
             "quotes around keys");
    TAP_SPAN(get("---\nlease: {agent: ann} # by hand\n---\n", "lease.agent"), "ann",
             "a comment behind braces");
    TAP_SPAN(
        get("---\nlease:\n  {\n    note: it's, agent: ann,\n    \"x\":\"}\",\n  }\ny: 1\n---\n",
            "lease.agent"),
        "ann", "braces over lines");
    static const char nested[] =
        "---\nm: {t: [a, depth: 3], x: {depth: 2, y: '}'}, depth: 1}\n---\n";
    TAP_SPAN(get(nested, "m.depth"), "1", "not a key of nested braces");
    TAP_SPAN(get("---\nm: {a: 1\nb: 2\n---\n", "m.a"), "-", "braces that do not end");
    struct amp_span v;
    struct amp_error err;
    TAP_INT(amp_front_get(AMP_SPAN("---\nid: x\n"), "id", &mem, &v, &err), -1, "without its end");
    TAP_STR(err.code, "bad_front_matter", "the code");
    static const char *const twice[] = {"---\nlease: {a: x}\ny: 1\nlease: {a: z}\n---\n",
                                        "---\nlease:\n  a: x\n  \"a\": z\n---\n",
                                        "---\nlease: {a: x, 'a': z}\n---\n"};
    for (unsigned i = 0; i < 3; i++) {
        TAP_INT(amp_front_get(amp_span_str(twice[i]), "lease.a", &mem, &v, &err), -1,
                "a key twice");
        TAP_STR(err.code, "bad_front_matter", "the code");
    }
}

static void writes(void)
{
    set("---\nstatus: a\nx: 1\n---\nbody\n", "status", "in-progress",
        "---\nstatus: in-progress\nx: 1\n---\nbody\n");
    set("---\nx: 1\n---\n", "status", "done", "---\nx: 1\nstatus: done\n---\n");
    set("body", "status", "done", "---\nstatus: done\n---\nbody");
    set("---\nx: 1\n---\n", "lease.agent", "ann", "---\nx: 1\nlease:\n  agent: ann\n---\n");
    set("---\nlease:\n    a: 1\ny: 2\n---\n", "lease.a", "b", "---\nlease:\n    a: b\ny: 2\n---\n");
    set("---\nlease:\n  a: 1\ny: 2\n---\n", "lease.b", "c",
        "---\nlease:\n  a: 1\n  b: c\ny: 2\n---\n");
    set("---\nr: {a: 1, \"b\": \"x, y\"} # hand\n---\n", "r.c", "d",
        "---\nr: {a: 1, \"b\": \"x, y\", c: d} # hand\n---\n");
    set("---\nr: {t: [a, b], x: {y: 1}, c: e}\n---\n", "r.c", "d, f",
        "---\nr: {t: [a, b], x: {y: 1}, c: \"d, f\"}\n---\n");
    set("---\nr: {}\n---\n", "r.c", "d", "---\nr: {c: d}\n---\n");
    set("---\nr: {a: 1, c: , }\n---\n", "r.c", "d", "---\nr: {a: 1, c: d , }\n---\n");
    set("---\nr: {a: 1, c: d}\n---\n", "r.c", NULL, "---\nr: {a: 1}\n---\n");
    set("---\nr: {c: d, a: 1}\n---\n", "r.c", NULL, "---\nr: { a: 1}\n---\n");
    set("---\nr: null\ny: 1\n---\n", "r.c", "d", "---\nr:\n  c: d\ny: 1\n---\n");
    set("---\n x: 1\n---\n", "x", "v", "---\n x: v\n---\n");
    set("---\n r:\n x: 1\n---\n", "r.c", "d", "---\n r:\n   c: d\n x: 1\n---\n");
    set("---\n x: 1\n---\n", "r.c", "d", "---\n x: 1\n r:\n   c: d\n---\n");
    set("---\nr:\n\ta: 1\ny: 1\n---\n", "r.c", "d", "---\nr:\n\ta: 1\n\tc: d\ny: 1\n---\n");
    set("---\r\nr:\r\n    a: 1\r\n---\r\nx", "r.c", "d",
        "---\r\nr:\r\n    a: 1\r\n    c: d\r\n---\r\nx");
    set("\xef\xbb\xbf---\nx: 1\n---\n", "x", "v", "\xef\xbb\xbf---\nx: v\n---\n");
    set("\xef\xbb\xbf"
        "body",
        "x", "v", "\xef\xbb\xbf---\nx: v\n---\nbody");
    set("---\nx: 1\ny: 2\n\"x\": 3\nx:\n  - 4\n---\n", "x", "z", "---\nx: z\ny: 2\n---\n");
    set("---\nx: {a: 1}\ny: 2\nx: 3\n---\n", "x", NULL, "---\ny: 2\n---\n");
    set("---\nlease:\n  a: 1\n  b:\n    - c\ny: 2\n---\n", "lease", NULL, "---\ny: 2\n---\n");
    set("---\nx: 1\n---\n", "lease", NULL, "---\nx: 1\n---\n");
    /* Values that YAML would read as something else, or that end the front matter, are quoted. */
    set("---\nx: 1\n---\n", "x", "yes", "---\nx: \"yes\"\n---\n");
    set("---\nx: 1\n---\n", "x", "a: b # c", "---\nx: \"a: b # c\"\n---\n");
    set("---\nx: 1\n---\n", "x", "---\nid: y", "---\nx: \"---\\nid: y\"\n---\n");
    set("---\nx: 1\n---\n", "x", "17", "---\nx: 17\n---\n");
}

static void logs(void)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 8192);
    amp_buf_str(&b, "---\r\n## Work Log\r\nx: 1\r\n---", NULL);
    amp_front_log(&b, AMP_SPAN("- one"), NULL);
    TAP_SPAN(amp_buf_span(&b),
             "---\r\n## Work Log\r\nx: 1\r\n---\r\n\r\n## Work Log\r\n\r\n- one\r\n",
             "not a comment of the front matter");
    amp_buf_reset(&b);
    amp_buf_str(&b, "---\nx: 1\n---\n\n# T", NULL);
    TAP_INT(amp_front_log(&b, AMP_SPAN("- one"), NULL), 1, "the first line");
    TAP_INT(amp_front_log(&b, AMP_SPAN("- two"), NULL), 1, "the second");
    TAP_INT(amp_front_log(&b, AMP_SPAN("- one"), NULL), 0, "again: it is there");
    TAP_SPAN(amp_buf_span(&b), "---\nx: 1\n---\n\n# T\n\n## Work Log\n\n- one\n- two\n",
             "the text");
    amp_buf_str(&b, "\n## Later\n\ntext\n", NULL);
    TAP_INT(amp_front_log(&b, AMP_SPAN("- three"), NULL), 1, "before the next heading");
    TAP_SPAN(amp_buf_span(&b),
             "---\nx: 1\n---\n\n# T\n\n## Work Log\n\n- one\n- two\n- three\n\n## Later\n\ntext\n",
             "the text");
}

int main(void)
{
    amp_buf_init(&mem, 16384);
    reads();
    writes();
    logs();
    amp_buf_release(&mem);
    return tap_done();
}
