/* The schema compiler's refusals and their places, what the explaining pass says, hostile input in
 * bounded time, plain patterns, references. */
#include <time.h>

#include "../schema_help.h"
#include "schema/format/plain_pattern.h"
#include "schema/format/uri.h"

static void test_refused(void)
{
    static const struct {
        const char *schema, *code, *what;
    } refused[] = {
        {"1", "invalid_schema", "#: a schema is an object"},
        {"{", "invalid_schema", "not JSON"},
        {"{\"type\":\"strin\"}", "invalid_schema", "#/type: not one of the seven types"},
        {"{\"type\":[]}", "invalid_schema", "#/type: no type"},
        {"{\"properties\":{\"a\":1}}", "invalid_schema", "#/properties/a: a schema is"},
        {"{\"properties\":[]}", "invalid_schema", "#/properties"},
        {"{\"$defs\":{\"x\":{\"minLength\":-1}}}", "invalid_schema", "#/$defs/x/minLength"},
        {"{\"minLength\":1.5}", "invalid_schema", "#/minLength"},
        {"{\"required\":\"a\"}", "invalid_schema", "#/required"},
        {"{\"required\":[1]}", "invalid_schema", "#/required/0"},
        {"{\"properties\":{\"a\":{}},\"required\":{\"a\":\"a\"}}", "invalid_schema",
         "#/required: an array of names is expected"},
        {"{\"enum\":1}", "invalid_schema", "#/enum"},
        {"{\"allOf\":[]}", "invalid_schema", "#/allOf"},
        {"{\"anyOf\":{}}", "invalid_schema", "#/anyOf"},
        {"{\"multipleOf\":0}", "invalid_schema", "#/multipleOf"},
        {"{\"minimum\":\"1\"}", "invalid_schema", "#/minimum"},
        {"{\"items\":[]}", "invalid_schema", "#/items"},
        {"{\"uniqueItems\":1}", "invalid_schema", "#/uniqueItems"},
        {"{\"not\":[]}", "invalid_schema", "#/not"},
        {"{\"if\":1}", "invalid_schema", "#/if"},
        {"{\"then\":1}", "invalid_schema", "#/then"},
        {"{\"pattern\":\"(\"}", "bad_pattern", "#/pattern"},
        {"{\"pattern\":\"a++\"}", "bad_pattern", "#/pattern"},
        {"{\"pattern\":\"(?i)a\"}", "bad_pattern", "#/pattern"},
        {"{\"pattern\":\"[b-a]\"}", "bad_pattern", "#/pattern"},
        {"{\"pattern\":1}", "invalid_schema", "#/pattern"},
        {"{\"patternProperties\":{\"[\":true}}", "bad_pattern", "#/patternProperties/["},
        {"{\"$ref\":1}", "invalid_schema", "#/$ref"},
        {"{\"$ref\":\"#/$defs/none\"}", "unresolved_ref", "#/$ref"},
        {"{\"$ref\":\"#none\"}", "unresolved_ref", "#/$ref"},
        {"{\"$ref\":\"http://x/none.json\"}", "unresolved_ref", "#/$ref"},
        {"{\"$ref\":\"http://x/broken.json\"}", "invalid_schema",
         "http://x/broken.json:1:9: not JSON"},
        {"{\"$ref\":\"#\"}", "invalid_schema", "#: this schema applies itself"},
        {"{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"not\":{\"$ref\":"
         "\"#/$defs/a\"}}}}",
         "invalid_schema", "applies itself"},
        {"{\"$id\":\"http://x/a#frag\"}", "invalid_schema", "#/$id"},
        {"{\"$anchor\":\"1x\"}", "invalid_schema", "#/$anchor"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", "invalid_schema",
         "duplicate"},
        {"{\"$schema\":\"http://x/unknown\"}", "unresolved_ref", "#/$schema"},
        {"{\"$schema\":\"http://x/strange\"}", "unknown_vocabulary", "vocabulary"},
        {"{\"a\":1,\"a\":2}", "invalid_schema", "duplicate"},
        {"{\"$ref\":\"http://x/broken2.json\"}", "invalid_schema",
         "http://x/broken2.json:3:13: #/$defs/a/type: not one of the seven types"},
        {"{\n \"type\": \"strnig\"}", "invalid_schema",
         "line 2, column 10: #/type: not one of the seven types null, boolean, object, array, "
         "number, integer, string; found \"strnig\"; did you mean `string`?"},
        {"{\"\xc3\xa9\":0,\"minimum\":[]}", "invalid_schema",
         "column 18: #/minimum: a number is expected; found an array"},
        {"{\"type\":[\"null\",\"null\"]}", "invalid_schema", "#/type/1: duplicate type"},
        {"{\"required\":[\"a\",\"a\"]}", "invalid_schema", "#/required/1: duplicate name"},
        {"{\"dependentRequired\":{\"a\":[\"b\",\"\\u0062\"]}}", "invalid_schema", "duplicate name"},
        {"{\"title\":1}", "invalid_schema", "#/title: a string is expected; found 1"},
        {"{\"description\":[]}", "invalid_schema", "#/description"},
        {"{\"$comment\":null}", "invalid_schema", "#/$comment"},
        {"{\"readOnly\":\"yes\"}", "invalid_schema", "true or false is expected"},
        {"{\"writeOnly\":1}", "invalid_schema", "#/writeOnly"},
        {"{\"deprecated\":1}", "invalid_schema", "#/deprecated"},
        {"{\"examples\":{}}", "invalid_schema", "an array is expected; found an object"},
        {"{\"contentMediaType\":1}", "invalid_schema", "#/contentMediaType"},
        {"{\"contentEncoding\":1}", "invalid_schema", "#/contentEncoding"},
        {"{\"contentSchema\":{\"type\":1}}", "invalid_schema", "#/contentSchema/type"},
        {"{\"$vocabulary\":{\"x:y\":1}}", "invalid_schema", "#/$vocabulary/x:y"},
        {"{\"dependencies\":{\"a\":1}}", "invalid_schema", "#/dependencies/a"},
        {"{\"items\":[true]}", "invalid_schema", "an array of schemas is prefixItems"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct amp_error err = {0};
        struct amp_schema *s = amp_schema_compile(amp_span_str(refused[i].schema), &options, &err);
        bool ok = !s && !strcmp(err.code, refused[i].code) && strstr(err.what, refused[i].what);
        TAP_OK(ok, "refused: %.*s", (int)strcspn(refused[i].schema, "\n"), refused[i].schema);
        if (!ok)
            printf("# %s: %s\n", err.code, err.what);
        amp_schema_free(s);
    }
}

static void expect_told(const char *schema, const char *value, const char *want)
{
    struct amp_schema *s = compile(schema);
    struct told t = {.ordered = true};
    int n = s && load(value) ? amp_schema_explain(s, run, &tape, 0, 0, tell, &t, NULL) : -1;
    TAP_OK(n == t.n && t.ordered, "%.60s is explained in order", value);
    TAP_STR(t.text, want, "as wanted");
    amp_schema_free(s);
}

static void test_explain(void)
{
    expect_told(
        "{\"properties\":{\"to\":{\"enum\":[\"admin\",\"executor\"]},\"n\":{\"minimum\":1}},"
        "\"required\":[\"id\",\"to\"],\"additionalProperties\":false}",
        "{\"to\":\"x\",\"n\":0,\"too\":1}",
        "|required|id|/required|the field id; "
        "to|enum||/properties/to/enum|one of admin, executor; "
        "n|minimum||/properties/n/minimum|at least 1; "
        "too|additionalProperties|too|/additionalProperties|one of to, n~to");
    expect_told("{\"type\":[\"integer\",\"null\"]}", "\"x\"", "|type||/type|integer or null");
    expect_told("{\"items\":{\"$ref\":\"#/$defs/t\"},\"$defs\":{\"t\":{\"minLength\":1}}}",
                "[\"a\",\"\"]", "[1]|minLength||/$defs/t/minLength|at least 1 character");
    expect_told(
        "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"},\"v\":{\"type\":\"integer\"}}},"
        "{\"properties\":{\"k\":{\"const\":\"b\"},\"v\":{\"type\":\"string\"}}}]}",
        "{\"k\":\"b\",\"v\":1}", "v|type||/oneOf/1/properties/v/type|string");
    expect_told("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "1",
                "|anyOf||/anyOf|string or null");
    expect_told("{\"anyOf\":[{\"minimum\":2},{\"multipleOf\":2}]}", "1",
                "|anyOf||/anyOf|what one of 2 alternatives describes");
    expect_told("{\"oneOf\":[{\"const\":\"red\"},{\"enum\":[\"green\",3]}]}", "\"gren\"",
                "|oneOf||/oneOf|one of red, green, 3~green");
    /* The branch that was meant: by the type, by the fixed word, by what there is least against. */
    expect_told("{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"required\":[\"a\"]}]}",
                "{}", "|required|a|/oneOf/1/required|the field a");
    expect_told("{\"anyOf\":[{\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":[\"v\"]},"
                "{\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"w\",\"x\",\"y\"]}]}",
                "{\"k\":\"b\",\"w\":1,\"y\":1}", "|required|x|/anyOf/1/required|the field x");
    expect_told("{\"anyOf\":[{\"required\":[\"a\",\"b\"]},{\"required\":[\"c\"]}]}", "{}",
                "|required|c|/anyOf/1/required|the field c");
    expect_told(
        "{\"properties\":{\"verdict\":{}},\"additionalProperties\":false}", "{\"Verdcit\":1}",
        "Verdcit|additionalProperties|Verdcit|/additionalProperties|one of verdict~verdict");
    expect_told(
        "{\"allOf\":[{\"properties\":{\"id\":{}}}],\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{"
        "\"properties\":{\"user_name\":{}}}},\"unevaluatedProperties\":false}",
        "{\"user-nam\":1}",
        "user-nam|unevaluatedProperties|user-nam|/unevaluatedProperties|one of "
        "user_name, id~user_name");
    expect_told("{\"const\":\"executor\"}", "\"excutor\"", "|const||/const|executor~executor");
    expect_told("{\"oneOf\":[true,true]}", "1",
                "|oneOf||/oneOf|what exactly one alternative describes, not several");
    expect_told("{\"properties\":{\"a\":false}}", "{\"a\":1}",
                "a|false||/properties/a|nothing at this place");
    expect_told("{\"properties\":{\"a\":{\"format\":\"date\"}}}", "{\"a\":\"x\"}",
                "a|format||/properties/a/format|a date (YYYY-MM-DD)");
    expect_told("{\"additionalProperties\":false}", "{\"\\u0061\\n\":1}",
                "[\"\\u0061\\n\"]|additionalProperties|a\n|/additionalProperties|no such field");
    expect_told("{\"if\":{\"required\":[\"a\"]},\"then\":{\"required\":[\"b\"]}}", "{\"a\":1}",
                "|required|b|/then/required|the field b");
    expect_told("{\"uniqueItems\":true}", "[1,2,1]",
                "[2]|uniqueItems||/uniqueItems|no element twice");
    expect_told("{\"dependentRequired\":{\"a\":[\"b\"]}}", "{\"a\":1}",
                "|dependentRequired|b|/dependentRequired|the field b beside a");
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect_limit(const char *schema, const char *value, const char *what)
{
    struct amp_error err = {0};
    struct amp_schema *s = compile(schema);
    struct told t = {.ordered = true};
    TAP_OK(s && load(value) && amp_schema_check(s, run, &tape, 0, &err) == -1 &&
               !strcmp(err.code, "schema_limit"),
           "%s meet a limit", what);
    TAP_OK(s && amp_schema_explain(s, run, &tape, 0, 0, tell, &t, &err) == -1, "explained or not");
    amp_schema_free(s);
}

static void test_hostile(void)
{
    double start = seconds();
    struct amp_error err;
    struct amp_schema *s = compile("{\"pattern\":\"^(a+)+$\"}");
    TAP_OK(load("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"") &&
               amp_schema_check(s, run, &tape, 0, &err) == -1 && !strcmp(err.code, "pattern_limit"),
           "a catastrophic pattern meets its limit");
    amp_schema_free(s);

    /* Often used patterns change to machine code on the way; the answers stay. */
    s = compile("{\"items\":{\"pattern\":\"^(?:ab|a(b|c)+)d?$\"}}");
    int changed = 0;
    for (int i = 0; i < 3000; i++) {
        load(i % 2 ? "[\"abcbd\",\"ab\"]" : "[\"abcbd\",\"abdd\"]");
        changed += amp_schema_check(s, run, &tape, 0, NULL) != i % 2;
    }
    TAP_INT(changed, 0, "a pattern used 6,000 times");
    amp_schema_free(s);
    s = compile("{\"items\":{\"pattern\":\"^(a+)+$\"}}");
    for (int i = 0; i < 1100; i++) {
        load("[\"aaa\"]");
        amp_schema_check(s, run, &tape, 0, NULL);
    }
    TAP_OK(load("[\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"]") &&
               amp_schema_check(s, run, &tape, 0, &err) == -1 && !strcmp(err.code, "pattern_limit"),
           "the limit holds there too");
    amp_schema_free(s);

    enum { MANY = 100000 };
    char *text = malloc(MANY * 20);
    size_t n = 0;
    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(text + n, "%c{\"a\":%d}", i ? ',' : '[', i);
    sprintf(text + n, "]");
    s = compile("{\"uniqueItems\":true,\"unevaluatedItems\":{\"type\":\"object\"}}");
    TAP_OK(load(text) && amp_schema_check(s, run, &tape, 0, NULL) == 1,
           "100,000 different elements");
    amp_schema_free(s);
    n = 0;
    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(text + n, "%c\"k%d\":%d", i ? ',' : '{', i, i);
    sprintf(text + n, "}");
    s = compile("{\"properties\":{\"k5\":{\"type\":\"integer\"}},\"required\":[\"k99999\"],"
                "\"unevaluatedProperties\":{\"minimum\":0}}");
    TAP_OK(load(text) && amp_schema_check(s, run, &tape, 0, NULL) == 1, "100,000 members");
    amp_schema_free(s);
    s = compile("{\"additionalProperties\":false}");
    struct told t = {.ordered = true};
    TAP_INT(amp_schema_explain(s, run, &tape, 0, 0, tell, &t, NULL), 512,
            "violations are told up to a bound");
    TAP_INT(amp_schema_explain(s, run, &tape, 0, 3, tell, &t, NULL), 3, "or up to what is asked");
    amp_schema_free(s);

    /* Every level offers three branches. */
    s = compile("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":{\"a\":{\"$"
                "ref\":\"#\"}},"
                "\"required\":[\"a\"]},{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}}"
                ",\"required\":[\"a\","
                "\"b\"]}]}");
    n = 0;
    for (int i = 0; i < 12; i++)
        n += (size_t)sprintf(text + n, "{\"a\":");
    n += (size_t)sprintf(text + n, "1");
    for (int i = 0; i < 12; i++)
        n += (size_t)sprintf(text + n, "}");
    memset(&t, 0, sizeof t);
    TAP_OK(load(text) && amp_schema_check(s, run, &tape, 0, NULL) == 0 &&
               amp_schema_explain(s, run, &tape, 0, 0, tell, &t, NULL) > 0,
           "choices inside choices");
    amp_schema_free(s);

    /* Work that doubles with each level: at one place, and down the value. */
    size_t at = (size_t)sprintf(text, "{\"$defs\":{\"d0\":{\"minimum\":0}");
    for (int i = 1; i <= 60; i++)
        at += (size_t)sprintf(
            text + at,
            ",\"d%d\":{\"allOf\":[{\"$ref\":\"#/$defs/d%d\"},{\"$ref\":\"#/$defs/d%d\"}]}", i,
            i - 1, i - 1);
    sprintf(text + at, "},\"$ref\":\"#/$defs/d60\"}");
    expect_limit(text, "1", "references that double at each step");
    at = 0;
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(text + at, "{\"a\":");
    at += (size_t)sprintf(text + at, "1");
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(text + at, "}");
    expect_limit("{\"patternProperties\":{\"a\":{\"$ref\":\"#\"},\"[ab]\":{\"$ref\":\"#\"}}}", text,
                 "patterns that double at each level");
    expect_limit(
        "{\"anyOf\":[{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"b\"]},"
        "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"c\"]},{\"type\":\"number\"}]}",
        text, "branches that double at each level");
    at = 0;
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(text + at, "[");
    for (int i = 0; i < 100; i++)
        at += (size_t)sprintf(text + at, "]");
    expect_limit("{\"contains\":{\"$ref\":\"#\"},\"items\":{\"$ref\":\"#\"},\"minContains\":0}",
                 text, "elements looked at twice at each level");

    /* Many schemas at one place, each of which looks at many children. */
    at = (size_t)sprintf(
        text, "{\"$defs\":{\"a\":{\"items\":{\"minimum\":0}}},\"allOf\":[{\"$ref\":\"#/$defs/a\"}");
    for (int i = 1; i < 20000; i++)
        at += (size_t)sprintf(text + at, ",{\"$ref\":\"#/$defs/a\"}");
    sprintf(text + at, "]}");
    char *many = malloc(MANY * 3);
    at = (size_t)sprintf(many, "[0");
    for (int i = 1; i < MANY; i++)
        at += (size_t)sprintf(many + at, ",%d", i % 10);
    sprintf(many + at, "]");
    expect_limit(text, many, "20,000 looks at 100,000 elements");
    free(many);

    /* A chain of 20,000 references must need no stack. */
    char *chain = malloc(20000 * 40);
    n = (size_t)sprintf(chain, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");
    for (int i = 0; i < 20000; i++)
        n += (size_t)sprintf(chain + n, "\"%d\":{\"$ref\":\"#/$defs/%d\"},", i,
                             i < 19999 ? i + 1 : 0);
    sprintf(chain + n, "\"x\":true}}");
    TAP_OK(!amp_schema_compile(amp_span_str(chain), NULL, &err) &&
               strstr(err.what, "applies itself"),
           "a long ring of references is refused");
    free(chain);
    free(text);
    printf("# %.2f s\n", seconds() - start);
}

static void test_plain(void)
{
    static const struct {
        const char *pattern;
        bool plain;
        const char *good, *bad;
    } p[] = {
        {"^[a-z_]+-T-[0-9]{4}-[0-9]{3}-[0-9]+$", true, "ack-T-2026-001-17", "ack-T-2026-01-17"},
        {"^T-[0-9]{4}-[0-9]{3}$", true, "T-2026-001", "T-2026-001x"},
        {"^[0-9a-fA-F]{4,64}$", true, "0aF9", "0aF"},
        {"^a?b*c+", true, "bbcx", "ab"},
        {"^\\d{2,}\\.\\w$", true, "123.x", "1.x"},
        {"^$", true, "", "a"},
        {"^[-a]\\/$", true, "-/", "b/"},
        {"^[a-z]+z$", false, NULL, NULL},
        {"^a|b$", false, NULL, NULL},
        {"a$", false, NULL, NULL},
        {"^[^a]$", false, NULL, NULL},
        {"^a.$", false, NULL, NULL},
        {"^a+?$", false, NULL, NULL},
        {"^(a)$", false, NULL, NULL},
        {"^\xc3\xa9$", false, NULL, NULL},
        {"^a{2,1}$", false, NULL, NULL},
        {"^\\b$", false, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
        struct amp_plain_pattern r;
        bool plain = amp_plain_pattern_read(amp_span_str(p[i].pattern), &r);
        TAP_OK(plain == p[i].plain &&
                   (!plain || (amp_plain_pattern_match(&r, amp_span_str(p[i].good)) &&
                               !amp_plain_pattern_match(&r, amp_span_str(p[i].bad)))),
               "%s", p[i].pattern);
    }
}

/* RFC 3986 section 5.4, and bases without a scheme. */
static void test_uris(void)
{
    static const char *const list[][3] = {
        {"http://a/b/c/d;p?q", "g:h", "g:h"},
        {"http://a/b/c/d;p?q", "g", "http://a/b/c/g"},
        {"http://a/b/c/d;p?q", "./g/", "http://a/b/c/g/"},
        {"http://a/b/c/d;p?q", "/g", "http://a/g"},
        {"http://a/b/c/d;p?q", "//g", "http://g"},
        {"http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y"},
        {"http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"},
        {"http://a/b/c/d;p?q", ".", "http://a/b/c/"},
        {"http://a/b/c/d;p?q", "..", "http://a/b/"},
        {"http://a/b/c/d;p?q", "../../g", "http://a/g"},
        {"http://a/b/c/d;p?q", "../../../../g", "http://a/g"},
        {"http://a/b/c/d;p?q", "./g/../h", "http://a/b/c/h"},
        {"http://a", "b", "http://a/b"},
        {"urn:x:y", "urn:z", "urn:z"},
        {"dir/a.json", "b.json", "dir/b.json"},
        {"dir/a.json", "../other/b.json", "other/b.json"},
        {"", "b.json", "b.json"},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        AMP_BUF struct amp_buf out = {0};
        amp_buf_init(&out, 1000);
        amp_uri_resolve(amp_span_str(list[i][0]), amp_span_str(list[i][1]), &out, NULL);
        TAP_SPAN(amp_buf_span(&out), list[i][2], list[i][1]);
    }
}

static void test_compiled_in(void)
{
    TAP_OK(amp_schema_files_count > 0, "there are schemas compiled in");
    for (size_t i = 0; i < amp_schema_files_count; i++) {
        const struct amp_schema_file *f = &amp_schema_files[i];
        TAP_OK(load(f->text.p) && amp_schema_file_find(amp_span_str(f->path)) == f, "%s", f->path);
    }
    TAP_OK(amp_schema_files[amp_schema_files_count].path == NULL, "the list ends");
    TAP_OK(!amp_schema_file_find(AMP_SPAN("none.json")), "an unknown one is not found");
}

int main(void)
{
    amp_tape_init(&tape, NULL);
    run = amp_schema_run_new(NULL);
    test_refused();
    test_explain();
    test_hostile();
    test_plain();
    test_uris();
    test_compiled_in();
    amp_schema_run_free(run);
    amp_tape_release(&tape);
    return tap_done();
}
