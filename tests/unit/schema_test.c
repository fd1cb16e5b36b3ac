/* The schema checker: what holds and what does not, what is refused at compile time and where, what
 * the explaining pass says, and that hostile input ends in bounded time. The suite of the JSON
 * Schema project is run by tests/conformance; this stands alone. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <amp/schema/schema.h>

#include "schema/plain_pattern.h"
#include "schema/uri.h"
#include "tap.h"

static struct amp_tape tape;
static struct amp_schema_run *run;

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    static const struct {
        const char *uri, *text;
    } others[] = {
        {"http://x/common.json",
         "{\"$defs\":{\"id\":{\"type\":\"string\"},\"n\":{\"$ref\":\"#/$defs/m\"},"
         "\"m\":{\"$anchor\":\"em\",\"minimum\":3}}}"},
        {"common.json", "{\"$defs\":{\"id\":{\"type\":\"integer\"}}}"},
        {"dir/near.json", "{\"type\":\"null\"}"},
        {"http://x/broken.json", "{\"type\":"},
        {"http://x/meta", "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                          "\"$vocabulary\":{"
                          "\"https://json-schema.org/draft/2020-12/vocab/core\":true,"
                          "\"https://json-schema.org/draft/2020-12/vocab/applicator\":true}}"},
        {"http://x/strange", "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                             "\"$vocabulary\":{\"http://x/vocabulary\":true}}"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (amp_span_is(uri, others[i].uri)) {
            *text = amp_span_str(others[i].text);
            return 0;
        }
    return -1;
}

static const struct amp_schema_options options = {.resolve = resolve, .formats = true};

struct told {
    int n;
    char text[2000];
    uint32_t last;
    bool ordered;
};

static void tell(void *ctx, const struct amp_violation *v)
{
    struct told *t = ctx;
    size_t n = strlen(t->text);
    if (t->n++ && v->tok < t->last)
        t->ordered = false;
    t->last = v->tok;
    struct amp_buf where;
    amp_buf_init(&where, 1000);
    amp_tape_path(&tape, v->tok, NULL, &where, NULL);
    snprintf(t->text + n, sizeof t->text - n, "%s%.*s|%s|%.*s|%.*s|%s", n ? "; " : "",
             (int)where.len, where.len ? where.data : "", v->keyword, (int)v->name.n,
             v->name.n ? v->name.p : "", (int)v->schema_at.n, v->schema_at.p, v->expected);
    amp_buf_release(&where);
}

static struct amp_schema *compile(const char *schema)
{
    struct amp_error err;
    struct amp_schema *s = amp_schema_compile(amp_span_str(schema), &options, &err);
    if (!s)
        printf("# %s: %s\n", err.code, err.what);
    return s;
}

static bool load(const char *value)
{
    struct amp_json_fault f;
    return amp_tape_scan(&tape, value, strlen(value), &f) == 0;
}

/* Cases: a schema, then values that are valid, NULL, values that are not, NULL. */
static const char *const cases[] = {
    "true",
    "1",
    "null",
    NULL,
    NULL,
    "false",
    NULL,
    "1",
    "{}",
    NULL,
    "{}",
    "1",
    "[]",
    NULL,
    NULL,
    "{\"type\":\"integer\"}",
    "1",
    "3.0",
    "6E0",
    "-0",
    "1e400",
    "10000000000000000000000",
    NULL,
    "1.5",
    "1e-1",
    "\"1\"",
    "true",
    NULL,
    "{\"type\":[\"string\",\"null\"]}",
    "\"\"",
    "null",
    NULL,
    "0",
    "false",
    "[]",
    "{}",
    NULL,
    "{\"type\":\"boolean\"}",
    "true",
    "false",
    NULL,
    "null",
    "0",
    NULL,
    "{\"type\":[\"integer\",\"number\"]}",
    "1.5",
    NULL,
    "null",
    NULL,
    "{\"const\":{\"a\":[1,2.0]}}",
    "{\"a\":[1e0,2]}",
    "{\"\\u0061\":[1,2]}",
    NULL,
    "{\"a\":[2,1]}",
    "{}",
    NULL,
    "{\"enum\":[\"a\",\"\\u00e9\",1,null]}",
    "\"a\"",
    "\"\\u0061\"",
    "\"\xc3\xa9\"",
    "1.0",
    "null",
    NULL,
    "\"b\"",
    "\"A\"",
    "2",
    "false",
    NULL,
    "{\"enum\":[\"a\",\"b\"],\"const\":\"a\"}",
    "\"a\"",
    NULL,
    "\"b\"",
    NULL,
    "{\"enum\":[]}",
    NULL,
    "1",
    NULL,
    "{\"const\":9007199254740993}",
    "9007199254740993",
    NULL,
    "9007199254740992",
    NULL,
    "{\"const\":\"a\\u0000b\"}",
    "\"a\\u0000b\"",
    NULL,
    "\"a\"",
    NULL,
    "{\"minLength\":2,\"maxLength\":3}",
    "\"ab\"",
    "\"\xf0\x9f\x98\x80x\"",
    "\"\\ud83d\\ude00x\"",
    "\"abc\"",
    "7",
    NULL,
    "\"a\"",
    "\"\xf0\x9f\x98\x80\"",
    "\"abcd\"",
    "\"\\u00e9\"",
    NULL,
    "{\"minLength\":2.0}",
    "\"ab\"",
    NULL,
    "\"a\"",
    NULL,
    "{\"pattern\":\"^a+$\"}",
    "\"aa\"",
    "\"\\u0061\"",
    "1",
    NULL,
    "\"ab\"",
    "\"a\\n\"",
    "\"\"",
    NULL,
    "{\"pattern\":\"b\"}",
    "\"abc\"",
    NULL,
    "\"ac\"",
    NULL,
    "{\"pattern\":\"^\\\\p{Letter}+$\"}",
    "\"\xc3\xa9t\"",
    NULL,
    "\"1\"",
    NULL,
    "{\"pattern\":\"^.$\"}",
    "\"\xf0\x9f\x98\x80\"",
    NULL,
    "\"ab\"",
    NULL,
    "{\"pattern\":\"^\\\\s$\"}",
    "\"\\ufeff\"",
    "\"\\u00a0\"",
    NULL,
    "\"x\"",
    NULL,
    "{\"pattern\":\"^\\\\d$\"}",
    "\"7\"",
    NULL,
    "\"\\u09ea\"",
    NULL,
    "{\"pattern\":\"^\\\\v$\"}",
    "\"\\u000b\"",
    NULL,
    "\"\\n\"",
    "\"v\"",
    NULL,
    "{\"format\":\"date-time\"}",
    "\"2026-02-26T14:32:07+00:00\"",
    "\"2026-02-26t14:32:07.5z\"",
    "\"1998-12-31T23:59:60Z\"",
    "\"1998-12-31T15:59:60.123-08:00\"",
    "12",
    NULL,
    "\"2026-02-26T14:32:07\"",
    "\"2026-02-30T14:32:07Z\"",
    "\"2026-02-26 14:32:07Z\"",
    "\"2026-02-26T24:00:00Z\"",
    "\"2026-02-26T14:32:60Z\"",
    "\"\"",
    "\"2026-02-26T14:32:07+24:00\"",
    NULL,
    "{\"format\":\"uuid\"}",
    "\"2eb8aa08-aa98-11ea-b4aa-73b441d16380\"",
    NULL,
    "\"2eb8aa08\"",
    NULL,
    "{\"format\":\"uri\"}",
    "\"http://a/b?c#d\"",
    NULL,
    "\"//a/b\"",
    "\"a b\"",
    NULL,
    "{\"format\":\"nothing known\"}",
    "\"x\"",
    NULL,
    NULL,
    "{\"minimum\":1,\"maximum\":9007199254740993}",
    "1",
    "1.0",
    "9007199254740993",
    "\"x\"",
    NULL,
    "0",
    "0.9999999999999999999999",
    "9007199254740994",
    "9007199254740993.1",
    "1e100",
    NULL,
    "{\"exclusiveMinimum\":0,\"exclusiveMaximum\":1}",
    "0.5",
    "1e-999999999",
    NULL,
    "0",
    "1",
    "-0.0",
    "1e0",
    NULL,
    "{\"multipleOf\":0.01}",
    "4.02",
    "0",
    "-1",
    "1e50",
    NULL,
    "4.021",
    "1e-3",
    NULL,
    "{\"multipleOf\":3}",
    "9",
    "-9",
    "9.0",
    NULL,
    "10",
    "9.5",
    NULL,
    "{\"items\":{\"type\":\"integer\"},\"minItems\":1,\"maxItems\":2}",
    "[1]",
    "[1,2]",
    "{}",
    NULL,
    "[]",
    "[1,2,3]",
    "[1,\"a\"]",
    NULL,
    "{\"prefixItems\":[{\"type\":\"integer\"}],\"items\":false}",
    "[]",
    "[1]",
    NULL,
    "[1,2]",
    "[\"a\"]",
    NULL,
    "{\"contains\":{\"const\":1},\"minContains\":2,\"maxContains\":3}",
    "[1,1]",
    "[1,0,1,1]",
    NULL,
    "[1]",
    "[1,1,1,1]",
    "[]",
    NULL,
    "{\"contains\":{\"const\":1},\"minContains\":0}",
    "[]",
    "[2]",
    NULL,
    NULL,
    "{\"uniqueItems\":true}",
    "[1,2,\"1\",true,[1]]",
    "[]",
    "[{\"a\":1},{\"a\":2}]",
    NULL,
    "[1,1.0]",
    "[{\"a\":1,\"b\":2},{\"b\":2,\"\\u0061\":1}]",
    "[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,0.1e1]",
    NULL,
    "{\"properties\":{\"a\":{\"type\":\"integer\"}},\"required\":[\"a\"],"
    "\"additionalProperties\":false}",
    "{\"a\":1}",
    "{\"\\u0061\":1}",
    "[]",
    NULL,
    "{}",
    "{\"a\":\"x\"}",
    "{\"a\":1,\"b\":2}",
    "{\"b\":1}",
    NULL,
    "{\"required\":[\"a\",\"b\",\"a\"]}",
    "{\"b\":1,\"a\":1,\"c\":1}",
    NULL,
    "{\"a\":1}",
    NULL,
    "{\"required\":[\"a\"],\"additionalProperties\":false}",
    NULL,
    "{\"a\":1}",
    "{}",
    NULL,
    "{\"patternProperties\":{\"^x_\":{\"type\":\"integer\"}},\"additionalProperties\":false}",
    "{\"x_a\":1}",
    NULL,
    "{\"x_a\":\"\"}",
    "{\"y\":1}",
    NULL,
    "{\"additionalProperties\":{\"type\":\"integer\"},\"properties\":{\"a\":true}}",
    "{\"a\":\"\",\"b\":1}",
    NULL,
    "{\"b\":\"\"}",
    NULL,
    "{\"propertyNames\":{\"maxLength\":2}}",
    "{\"ab\":1}",
    NULL,
    "{\"abc\":1}",
    NULL,
    "{\"minProperties\":1,\"maxProperties\":1}",
    "{\"a\":1}",
    NULL,
    "{}",
    "{\"a\":1,\"b\":1}",
    NULL,
    "{\"dependentRequired\":{\"a\":[\"b\"]}}",
    "{}",
    "{\"b\":1}",
    "{\"a\":1,\"b\":1}",
    NULL,
    "{\"a\":1}",
    NULL,
    "{\"dependentSchemas\":{\"a\":{\"required\":[\"b\"]}}}",
    "{\"a\":1,\"b\":1}",
    NULL,
    "{\"a\":1}",
    NULL,
    "{\"allOf\":[{\"minimum\":1},{\"maximum\":2}]}",
    "1",
    "2",
    NULL,
    "0",
    "3",
    NULL,
    "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":2}]}",
    "\"\"",
    "2",
    NULL,
    "1",
    NULL,
    "{\"oneOf\":[{\"minimum\":1},{\"maximum\":2}]}",
    "0",
    "3",
    NULL,
    "1",
    "2",
    "\"x\"",
    NULL,
    "{\"not\":{\"type\":\"string\"}}",
    "1",
    NULL,
    "\"\"",
    NULL,
    "{\"if\":{\"properties\":{\"s\":{\"const\":1}},\"required\":[\"s\"]},\"then\":{\"required\":"
    "[\"a\"]},\"else\":{\"required\":[\"b\"]}}",
    "{\"s\":1,\"a\":0}",
    "{\"s\":2,\"b\":0}",
    "{\"b\":0}",
    NULL,
    "{\"s\":1,\"b\":0}",
    "{\"a\":0}",
    NULL,
    "{\"then\":false,\"else\":false}",
    "1",
    NULL,
    NULL,
    "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b~1%25\"},\"b/%\":{\"type\":"
    "\"null\"}},\"minimum\":1}",
    "null",
    NULL,
    "1",
    NULL,
    "{\"properties\":{\"next\":{\"$ref\":\"#\"}},\"additionalProperties\":false}",
    "{\"next\":{\"next\":{}}}",
    NULL,
    "{\"next\":{\"x\":1}}",
    NULL,
    "{\"$ref\":\"http://x/common.json#/$defs/n\"}",
    "3",
    NULL,
    "2",
    NULL,
    "{\"$id\":\"http://x/a.json\",\"$ref\":\"common.json#em\"}",
    "3",
    NULL,
    "2",
    NULL,
    "{\"$ref\":\"common.json#/$defs/id\"}",
    "3",
    NULL,
    "\"\"",
    NULL,
    "{\"$id\":\"http://x/root.json\",\"$defs\":{\"in\":{\"$id\":\"sub/in.json\",\"$anchor\":\"a\","
    "\"type\":\"null\"}},\"anyOf\":[{\"$ref\":\"sub/in.json#a\"},{\"$ref\":\"sub/in.json\"}]}",
    "null",
    NULL,
    "1",
    NULL,
    "{\"properties\":{\"a\":true},\"anyOf\":[{\"properties\":{\"b\":{\"const\":1}},\"required\":"
    "[\"b\"]},true],\"unevaluatedProperties\":false}",
    "{\"a\":1,\"b\":1}",
    "{\"a\":1}",
    NULL,
    "{\"b\":2}",
    "{\"c\":1}",
    NULL,
    "{\"allOf\":[{\"prefixItems\":[true]}],\"contains\":{\"const\":7},\"minContains\":0,"
    "\"unevaluatedItems\":{\"type\":\"string\"}}",
    "[1,\"a\",7]",
    "[]",
    NULL,
    "[1,2]",
    NULL,
    "{\"$id\":\"http://x/tree\",\"$dynamicAnchor\":\"node\",\"properties\":{\"kids\":{\"items\":"
    "{\"$dynamicRef\":\"#node\"}}}}",
    "{\"kids\":[{\"kids\":[]}]}",
    NULL,
    NULL,
    "{\"$id\":\"http://x/strict\",\"$dynamicAnchor\":\"node\",\"$ref\":\"tree2\","
    "\"unevaluatedProperties\":false,\"$defs\":{\"t\":{\"$id\":\"tree2\",\"$dynamicAnchor\":"
    "\"node\","
    "\"properties\":{\"kids\":{\"items\":{\"$dynamicRef\":\"#node\"}}}}}}",
    "{\"kids\":[{\"kids\":[]}]}",
    NULL,
    "{\"kids\":[{\"kidz\":[]}]}",
    NULL,
    "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"items\":[{\"type\":\"null\"}],"
    "\"additionalItems\":{\"type\":\"string\"},\"dependencies\":{\"a\":[\"b\"],\"c\":{\"required\":"
    "[\"d\"]}}}",
    "[null,\"\"]",
    "{\"a\":1,\"b\":1}",
    "{\"c\":1,\"d\":1}",
    NULL,
    "[1]",
    "[null,1]",
    "{\"a\":1}",
    "{\"c\":1}",
    NULL,
    "{\"$schema\":\"http://json-schema.org/draft-07/schema\",\"$ref\":\"#/definitions/a\","
    "\"maximum\":1,\"definitions\":{\"a\":{\"$id\":\"#x\",\"type\":\"integer\"}}}",
    "5",
    NULL,
    "\"\"",
    NULL,
    "{\"$schema\":\"http://x/meta\",\"type\":\"string\",\"properties\":{\"a\":false}}",
    "1",
    "{}",
    NULL,
    "{\"a\":1}",
    NULL,
    "{\"$ref\":\"https://json-schema.org/draft/2020-12/schema\"}",
    "{\"type\":\"string\"}",
    "true",
    NULL,
    "{\"type\":\"strung\"}",
    "{\"minLength\":-1}",
    "{\"properties\":{\"a\":{\"type\":1}}}",
    NULL,
    "{\"$ref\":\"http://json-schema.org/draft-07/schema#\"}",
    "{\"items\":[{}]}",
    NULL,
    "{\"type\":1}",
    NULL,
};

static void test_cases(void)
{
    size_t i = 0;
    while (i < sizeof cases / sizeof *cases) {
        const char *text = cases[i++];
        struct amp_schema *s = compile(text);
        TAP_OK(s != NULL, "compiles: %.80s", text);
        for (int want = 1; want >= 0; want--, i++) {
            for (; cases[i]; i++) {
                struct told t = {.ordered = true};
                int got = s && load(cases[i]) ? amp_schema_check(s, run, &tape, 0, NULL) : -2;
                int n = s ? amp_schema_explain(s, run, &tape, 0, 0, tell, &t, NULL) : -2;
                TAP_OK(got == want && (want ? n == 0 : n > 0 && t.ordered), "%s %.40s for %.60s",
                       want ? "valid" : "invalid", cases[i], text);
            }
        }
        amp_schema_free(s);
    }
}

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
         "http://x/broken.json is not JSON"},
        {"{\"$ref\":\"#\"}", "invalid_schema", "#: this schema applies itself"},
        {"{\"$defs\":{\"a\":{\"allOf\":[{\"$ref\":\"#/$defs/b\"}]},\"b\":{\"not\":{\"$ref\":"
         "\"#/$defs/a\"}}}}",
         "invalid_schema", "applies itself"},
        {"{\"$id\":\"http://x/a#frag\"}", "invalid_schema", "#/$id"},
        {"{\"$anchor\":\"1x\"}", "invalid_schema", "#/$anchor"},
        {"{\"$defs\":{\"a\":{\"$anchor\":\"x\"},\"b\":{\"$anchor\":\"x\"}}}", "invalid_schema",
         "twice"},
        {"{\"$schema\":\"http://x/unknown\"}", "unresolved_ref", "#/$schema"},
        {"{\"$schema\":\"http://x/strange\"}", "unknown_vocabulary", "vocabulary"},
        {"{\"a\":1,\"a\":2}", "invalid_schema", "twice"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct amp_error err = {0};
        struct amp_schema *s = amp_schema_compile(amp_span_str(refused[i].schema), &options, &err);
        bool ok = !s && !strcmp(err.code, refused[i].code) && strstr(err.what, refused[i].what);
        TAP_OK(ok, "refused: %.80s", refused[i].schema);
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
        "too|additionalProperties|too|/additionalProperties|one of to, n");
    expect_told("{\"type\":[\"integer\",\"null\"]}", "\"x\"", "|type||/type|integer or null");
    expect_told("{\"items\":{\"$ref\":\"#/$defs/t\"},\"$defs\":{\"t\":{\"minLength\":1}}}",
                "[\"a\",\"\"]", "[1]|minLength||/$defs/t/minLength|at least 1 character");
    expect_told(
        "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"},\"v\":{\"type\":\"integer\"}}},"
        "{\"properties\":{\"k\":{\"const\":\"b\"},\"v\":{\"type\":\"string\"}}}]}",
        "{\"k\":\"b\",\"v\":1}", "v|type||/oneOf/1/properties/v/type|string");
    expect_told("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "1",
                "|anyOf||/anyOf|what one of 2 alternatives describes");
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
    TAP_OK(seconds() - start < 20, "in bounded time");
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
        AMP_BUF struct amp_buf out;
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
    test_cases();
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
