/* The standard output: errors and annotations with their three locations. */
#include <amp/schema/output.h>

#include "../schema_help.h"

/* Writes the units as lines: locations apart by blanks, then what is said. */
static void flatten(const struct amp_tape *t, uint32_t unit, int depth, struct amp_buf *out)
{
    static const char *const places[] = {"keywordLocation", "absoluteKeywordLocation",
                                         "instanceLocation"};
    amp_buf_fmt(out, NULL, "%*s", depth, "");
    for (size_t i = 0; i < 3; i++) {
        uint32_t k = amp_tape_get(t, unit, amp_span_str(places[i]));
        struct amp_span s = k == AMP_TOK_NONE ? AMP_SPAN("-") : amp_tok_raw(t, k);
        amp_buf_fmt(out, NULL, "%s%.*s", i ? " " : "", (int)s.n, s.p);
    }
    uint32_t says = amp_tape_get(t, unit, AMP_SPAN("error"));
    if (says == AMP_TOK_NONE)
        says = amp_tape_get(t, unit, AMP_SPAN("annotation"));
    if (says != AMP_TOK_NONE)
        amp_buf_fmt(out, NULL, ": %.*s", (int)amp_tok_source(t, says).n, amp_tok_source(t, says).p);
    amp_buf_str(out, "\n", NULL);
    uint32_t list = amp_tape_get(t, unit, AMP_SPAN("errors"));
    if (list == AMP_TOK_NONE)
        list = amp_tape_get(t, unit, AMP_SPAN("annotations"));
    for (uint32_t k = list + 1; list != AMP_TOK_NONE && k < t->tok[list].next; k = t->tok[k].next)
        flatten(t, k, depth + 1, out);
}

static void expect(const char *what, const char *schema, const char *value, enum amp_output form,
                   int valid, const char *want)
{
    struct amp_schema_options opt = {.base_uri = "http://x/s"};
    struct amp_error err = {0};
    struct amp_schema *s = amp_schema_compile(amp_span_str(schema), &opt, &err);
    struct amp_json_fault fault;
    struct amp_tape read;
    AMP_BUF struct amp_buf out = {0}, lines = {0};
    amp_buf_init(&out, 1 << 20);
    amp_buf_init(&lines, 1 << 20);
    amp_tape_init(&read, NULL);
    int got = s && load(value) ? amp_schema_output(s, run, &tape, 0, form, &out, &err) : -2;
    TAP_OK(got == valid, "%s: the verdict", what);
    if (s && out.len && amp_tape_scan(&read, out.data, out.len, &fault) == 0)
        flatten(&read, 0, 0, &lines);
    else
        printf("# %s %s\n", err.what, out.len ? out.data : "");
    TAP_SPAN(amp_buf_span(&lines), want, what);
    amp_tape_release(&read);
    amp_schema_free(s);
}

/* The example of the specification, 2020-12 section 12.4. */
static const char polygon[] =
    "{\"$id\":\"https://example.com/polygon\","
    "\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$defs\":{\"point\":{"
    "\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"number\"},\"y\":{\"type\":\"number\"}},"
    "\"additionalProperties\":false,\"required\":[\"x\",\"y\"]}},"
    "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/point\"},\"minItems\":3}";
static const char points[] = "[{\"x\":2.5,\"y\":1.3},{\"x\":1,\"z\":6.7}]";

static void test_errors(void)
{
    expect("the specification's example as a list", polygon, points, AMP_OUTPUT_BASIC, 0,
           " https://example.com/polygon# \n"
           " /minItems https://example.com/polygon#/minItems : \"expected at least 3 elements; "
           "found [{\\\"x\\\":2.5,\\\"y\\\":1.3},{\\\"x\\\":1,\\\"z\\\":6.7}]\"\n"
           " /items/$ref/required https://example.com/polygon#/$defs/point/required /1: "
           "\"missing: the field y\"\n"
           " /items/$ref/additionalProperties "
           "https://example.com/polygon#/$defs/point/additionalProperties /1/z: "
           "\"expected one of x, y; found 6.7\"\n");
    expect(
        "a reference to a reference",
        "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":"
        "\"#/$defs/b\"},\"b\":{\"type\":\"null\"}}}",
        "1", AMP_OUTPUT_BASIC, 0,
        " http://x/s# \n /$ref/$ref/type http://x/s#/$defs/b/type : \"expected null; found 1\"\n");
    expect("names with signs of their own",
           "{\"properties\":{\"a/b~c d\":{\"properties\":{"
           "\"%\\u00e9\":false}}}}",
           "{\"a/b~c d\":{\"%\\u00e9\":1}}", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n /properties/a~1b~0c d/properties/%\xc3\xa9 "
           "http://x/s#/properties/a~1b~0c%20d/properties/%25%C3%A9 /a~1b~0c d/%\xc3\xa9: "
           "\"expected nothing at this place; found 1\"\n");
    expect(
        "no alternative", "{\"anyOf\":[{\"type\":\"string\"},{\"minimum\":3,\"multipleOf\":2}]}",
        "1", AMP_OUTPUT_BASIC, 0,
        " http://x/s# \n"
        " /anyOf http://x/s#/anyOf : \"expected what one of 2 alternatives describes; found 1\"\n"
        " /anyOf/0/type http://x/s#/anyOf/0/type : \"expected string; found 1\"\n"
        " /anyOf/1/minimum http://x/s#/anyOf/1/minimum : \"expected at least 3; found 1\"\n"
        " /anyOf/1/multipleOf http://x/s#/anyOf/1/multipleOf : \"expected a multiple of 2; "
        "found 1\"\n");
    expect("too many alternatives", "{\"oneOf\":[{\"title\":\"a\"},{\"title\":\"b\"}]}", "1",
           AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n /oneOf http://x/s#/oneOf : \"expected what exactly one alternative "
           "describes, not several; found 1\"\n");
    expect("what failed on the way is no error",
           "{\"anyOf\":[{\"type\":\"string\"},true],\"not\":{"
           "\"const\":2},\"if\":{\"const\":1},\"else\":{\"minimum\":9},\"maximum\":0}",
           "1", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n /maximum http://x/s#/maximum : \"expected at most 0; found 1\"\n");
    expect("not and else", "{\"not\":{\"title\":\"t\"},\"if\":false,\"else\":{\"minimum\":9}}", "1",
           AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n /not http://x/s#/not : \"expected anything but what is excluded; found "
           "1\"\n /else/minimum http://x/s#/else/minimum : \"expected at least 9; found 1\"\n");
    expect("what nobody looked at",
           "{\"allOf\":[{\"properties\":{\"id\":true}}],"
           "\"unevaluatedProperties\":false}",
           "{\"id\":1,\"Id\":2}", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n /unevaluatedProperties http://x/s#/unevaluatedProperties /Id: "
           "\"expected one of id; found 2; did you mean `id`?\"\n");
    expect("arrays",
           "{\"prefixItems\":[{\"const\":1}],\"items\":{\"const\":2},\"contains\":{\"const\":"
           "3},\"uniqueItems\":true}",
           "[0,1,1]", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n"
           " /uniqueItems http://x/s#/uniqueItems : \"expected no element twice; found 1\"\n"
           " /prefixItems/0/const http://x/s#/prefixItems/0/const /0: \"expected 1; found 0\"\n"
           " /items/const http://x/s#/items/const /1: \"expected 2; found 1\"\n"
           " /items/const http://x/s#/items/const /2: \"expected 2; found 1\"\n"
           " /contains http://x/s#/contains : \"expected an element of the required kind; "
           "found [0,1,1]\"\n");
    expect("a dynamic reference",
           "{\"$id\":\"http://x/t\",\"$ref\":\"list\",\"$defs\":{\"s\":{"
           "\"$dynamicAnchor\":\"item\",\"type\":\"string\"},\"l\":{\"$id\":\"list\",\"items\":{"
           "\"$dynamicRef\":\"#item\"},\"$defs\":{\"d\":{\"$dynamicAnchor\":\"item\"}}}}}",
           "[1]", AMP_OUTPUT_BASIC, 0,
           " http://x/t# \n /$ref/items/$dynamicRef/type http://x/t#/$defs/s/type /0: \"expected "
           "string; found 1\"\n");
    expect("dependents",
           "{\"dependentRequired\":{\"a\":[\"b\"]},\"dependentSchemas\":{\"x\":{},"
           "\"a\":{\"maxProperties\":0}}}",
           "{\"a\":1}", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n"
           " /dependentRequired http://x/s#/dependentRequired : \"missing: the field b beside a\"\n"
           " /dependentSchemas/a/maxProperties http://x/s#/dependentSchemas/a/maxProperties : "
           "\"expected at most 0 fields; found {\\\"a\\\":1}\"\n");
    expect("names", "{\"propertyNames\":{\"maxLength\":1}}", "{\"ab\":1}", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n /propertyNames/maxLength http://x/s#/propertyNames/maxLength /ab: "
           "\"expected at most 1 character; found \\\"ab\\\"\"\n");
    expect("nothing fits", "false", "1", AMP_OUTPUT_BASIC, 0,
           " http://x/s# \n  http://x/s# : \"expected nothing at this place; found 1\"\n");
    expect("a word alone", "false", "1", AMP_OUTPUT_FLAG, 0, "- - -\n");
}

static void test_annotations(void)
{
    expect("remarks",
           "{\"title\":\"T\",\"default\":{\"a\" : [1, \"x y\"]},\"$comment\":\"no\","
           "\"readOnly\":true,\"format\":\"email\",\"contentMediaType\":\"a/b\",\"x-own\":null,"
           "\"examples\":[ 1 ]}",
           "1", AMP_OUTPUT_BASIC, 1,
           " http://x/s# \n"
           " /title http://x/s#/title : \"T\"\n"
           " /default http://x/s#/default : {\"a\":[1,\"x y\"]}\n"
           " /readOnly http://x/s#/readOnly : true\n"
           " /format http://x/s#/format : \"email\"\n"
           " /x-own http://x/s#/x-own : null\n"
           " /examples http://x/s#/examples : [1]\n");
    expect("which members a keyword looked at",
           "{\"properties\":{\"a\":{\"title\":\"A\"},\"z\":true},"
           "\"patternProperties\":{\"^b\":true},\"additionalProperties\":{\"minimum\":0}}",
           "{\"a\":1,\"b1\":2,\"c\":3}", AMP_OUTPUT_BASIC, 1,
           " http://x/s# \n"
           " /properties/a/title http://x/s#/properties/a/title /a: \"A\"\n"
           " /properties http://x/s#/properties : [\"a\"]\n"
           " /patternProperties http://x/s#/patternProperties : [\"b1\"]\n"
           " /additionalProperties http://x/s#/additionalProperties : [\"c\"]\n");
    expect("which elements",
           "{\"prefixItems\":[true,true],\"contains\":{\"const\":2},"
           "\"unevaluatedItems\":{\"type\":\"integer\"}}",
           "[1,2,3]", AMP_OUTPUT_BASIC, 1,
           " http://x/s# \n"
           " /prefixItems http://x/s#/prefixItems : 1\n"
           " /contains http://x/s#/contains : [1]\n"
           " /unevaluatedItems http://x/s#/unevaluatedItems : true\n");
    expect("only of what is valid",
           "{\"anyOf\":[{\"title\":\"no\",\"minimum\":9},{\"title\":\"yes\"}],"
           "\"not\":{\"title\":\"never\",\"minimum\":9},\"if\":{\"title\":\"if\"},"
           "\"then\":{\"title\":\"then\"}}",
           "1", AMP_OUTPUT_BASIC, 1,
           " http://x/s# \n"
           " /anyOf/1/title http://x/s#/anyOf/1/title : \"yes\"\n"
           " /if/title http://x/s#/if/title : \"if\"\n"
           " /then/title http://x/s#/then/title : \"then\"\n");
    expect("draft-07 knows remarks only",
           "{\"$schema\":\"http://json-schema.org/draft-07/schema#\","
           "\"properties\":{\"a\":{\"title\":\"A\"}},\"items\":[{}],\"$ref_\":1}",
           "{\"a\":1}", AMP_OUTPUT_BASIC, 1,
           " http://x/s# \n /properties/a/title http://x/s#/properties/a/title /a: \"A\"\n");
    expect("beside a reference draft-07 has nothing",
           "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"definitions\":{\"a\":{}},"
           "\"properties\":{\"b\":{\"title\":\"B\",\"$ref\":\"#/definitions/a\"}}}",
           "{\"b\":1}", AMP_OUTPUT_BASIC, 1, " http://x/s# \n");
    expect("contents are said of strings",
           "{\"contentEncoding\":\"base64\",\"contentSchema\":{\"a\":1}}", "\"x\"",
           AMP_OUTPUT_BASIC, 1,
           " http://x/s# \n /contentEncoding http://x/s#/contentEncoding : \"base64\"\n"
           " /contentSchema http://x/s#/contentSchema : {\"a\":1}\n");
}

static void test_limits(void)
{
    enum { MANY = 30000 };
    struct amp_error err = {0};
    AMP_BUF struct amp_buf out = {0};
    AMP_FREE char *text = malloc(MANY * 4 + 300);
    amp_buf_init(&out, 64 << 20);
    size_t n = 0;
    for (int i = 0; i < MANY; i++)
        n += (size_t)sprintf(text + n, "%c%d", i ? ',' : '[', i % 10);
    sprintf(text + n, "]");
    struct amp_schema *s = compile("{\"items\":{\"type\":\"string\"}}");
    TAP_OK(s && load(text) &&
               amp_schema_output(s, run, &tape, 0, AMP_OUTPUT_BASIC, &out, &err) == 0 &&
               strstr(out.data, "\"truncated\":true}"),
           "of 30,000 errors some are told");
    amp_schema_free(s);
    s = compile(
        "{\"anyOf\":[{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"b\"]},"
        "{\"properties\":{\"a\":{\"$ref\":\"#\"}}},{\"properties\":{\"a\":{\"$ref\":\"#\"}}}]}");
    n = 0;
    for (int i = 0; i < 50; i++)
        n += (size_t)sprintf(text + n, "{\"a\":");
    n += (size_t)sprintf(text + n, "1");
    for (int i = 0; i < 50; i++)
        n += (size_t)sprintf(text + n, "}");
    size_t before = out.len;
    TAP_OK(s && load(text) &&
               amp_schema_output(s, run, &tape, 0, AMP_OUTPUT_BASIC, &out, &err) == -1 &&
               !strcmp(err.code, "schema_limit") && out.len == before,
           "branches that double at each level meet a limit: %s", err.what);
    amp_schema_free(s);
}

int main(void)
{
    amp_tape_init(&tape, NULL);
    run = amp_schema_run_new(NULL);
    test_errors();
    test_annotations();
    test_limits();
    amp_schema_run_free(run);
    amp_tape_release(&tape);
    return tap_done();
}
