/* The scanner: RFC 8259 case by case, limits, fault places, hostile keys. The scanner itself is
 * compiled into this program; scan_portable_test.c is the same with the portable inner loops. */
#include <stdlib.h>

#include "../../../lib/json/scan.c"
#include "../../../lib/json/scan_strings.c"

#include "../rfc8259_cases.h"
#include "../tap.h"

static struct amp_tape tape;
static struct amp_json_fault fault;

/* The text at the end of its own heap block, so that the sanitizer sees a read past it. */
static int scan_bytes(const char *text, size_t n)
{
    char *exact = malloc(n + 1);
    memcpy(exact + 1, text, n);
    fault = (struct amp_json_fault){0};
    int r = amp_tape_scan(&tape, exact + 1, n, &fault);
    free(exact);
    return r;
}

static int scan_str(const char *text)
{
    return scan_bytes(text, strlen(text));
}

static void expect_fault(const char *text, const char *code, uint32_t offset, const char *what)
{
    int r = scan_str(text);
    TAP_OK(r && fault.code && !strcmp(fault.code, code) && fault.offset == offset &&
               strstr(fault.what, what),
           "%.40s: %s at %u", text, code, offset);
    if (r)
        printf("# %s at %u: %s\n", fault.code, fault.offset, fault.what);
}

static void test_rfc(void)
{
    for (size_t i = 0; i < sizeof rfc_cases / sizeof *rfc_cases; i++) {
        const struct rfc_case *c = &rfc_cases[i];
        bool good = scan_bytes(c->text, c->n) == 0;
        char shown[60];
        size_t n = 0;
        for (size_t k = 0; k < c->n && n < 48; k++) {
            unsigned char b = (unsigned char)c->text[k];
            shown[n++] = b >= 0x20 && b < 0x7f && b != '#' ? (char)b : '?';
        }
        shown[n] = '\0';
        TAP_OK(good == c->good && (good || (tape.n == 0 && fault.what[0])), "section %s %s %s",
               c->section, c->good ? "accepts" : "refuses", shown);
    }
}

/* Every place of a special byte relative to the 16- and 8-byte steps. */
static void test_alignment(void)
{
    bool good = true;
    for (size_t n = 0; n < 70; n++) {
        for (size_t at = 0; at < n; at++) {
            static const char bad[] = {'\n', 0x1f, '\0', (char)0x80, (char)0xff};
            char text[80];
            memset(text, 'a', sizeof text);
            text[0] = text[n + 1] = '"';
            good = good && !scan_bytes(text, n + 2) && tape.tok[0].len == n;
            for (size_t b = 0; b < sizeof bad; b++) {
                text[at + 1] = bad[b];
                good = good && scan_bytes(text, n + 2) && fault.offset == at + 1;
            }
            text[at + 1] = '"';
            good = good && scan_bytes(text, n + 2);
            text[at + 1] = '\\';
            bool closed = at + 1 < n; /* "\a" is unknown, a last backslash eats the quote */
            good = good && scan_bytes(text, n + 2) && fault.offset == (closed ? at + 1 : 0);
        }
    }
    TAP_OK(good, "a special byte is seen at every place of a string");
}

static void test_tokens(void)
{
    const char *text = " {\"a\": [1, 2.5, {}], \"\\u0062\": \"x\\n\", \"c\": null} ";
    TAP_INT(scan_str(text), 0, "a small text scans");
    /* {, a, [, 1, 2.5, {}, b, "x\n", c, null */
    TAP_INT(tape.n, 10, "ten tokens");
    TAP_OK(tape.tok[0].type == AMP_JSON_OBJECT && tape.tok[0].count == 3 &&
               tape.tok[0].next == 10 && tape.tok[0].off == 1 &&
               tape.tok[0].len == strlen(text) - 2,
           "the object spans its text");
    TAP_OK(tape.tok[1].flags == AMP_TOK_KEY && tape.tok[1].next == 2, "a key");
    TAP_OK(tape.tok[2].type == AMP_JSON_ARRAY && tape.tok[2].count == 3 && tape.tok[2].next == 6,
           "the array counts its elements");
    TAP_OK(tape.tok[4].flags == AMP_TOK_FRACTION && tape.tok[4].len == 3, "a fraction");
    TAP_OK(tape.tok[5].count == 0 && tape.tok[5].next == 6, "an empty object");
    TAP_OK(tape.tok[6].flags == (AMP_TOK_KEY | AMP_TOK_ESCAPED), "an escaped key");
    TAP_INT(scan_str("{\"b\":1}"), 0, "the key again, plain");
    uint32_t plain = tape.tok[1].count;
    TAP_INT(scan_str("{\"\\u0062\":1}"), 0, "and escaped");
    TAP_INT(tape.tok[1].count, plain, "have one hash");
    TAP_INT(scan_str("\"\\u0000\""), 0, "an escaped NUL");
    TAP_OK(tape.tok[0].flags == (AMP_TOK_ESCAPED | AMP_TOK_NUL), "is marked");
    TAP_INT(scan_str("\"\xc3\xa9\""), 0, "not ASCII");
    TAP_OK(tape.tok[0].flags == AMP_TOK_NONASCII, "is marked");
}

static void test_faults(void)
{
    expect_fault("", "invalid_json", 0, "no JSON value");
    expect_fault("{\"a\": \"b", "invalid_json", 6, "string not closed");
    expect_fault("{\"a\": \"b\\", "invalid_json", 6, "string not closed");
    expect_fault("{\"a\": \"b\\u00", "invalid_json", 6, "string not closed");
    expect_fault("{\"a\": \"b, \"c\": 1}", "invalid_json", 11, "'c'");
    expect_fault("{\"a\": \"b, \"c\": 1}", "invalid_json", 11, "a quote is missing");
    expect_fault("[1, 2", "invalid_json", 5, "the text ends where a comma or ]");
    expect_fault("[1, 2}", "invalid_json", 5, "'}' where a comma or ]");
    expect_fault("{\"a\": 01}", "invalid_json", 6, "begin with 0");
    expect_fault("[\"\xff\"]", "invalid_utf8", 2, "0xFF");
    expect_fault("{\"a\":1,\"a\":2}", "duplicate_key", 7, "duplicate key \"a\"");
    expect_fault("[{\"a\":1,\"\\u0061\":2}]", "duplicate_key", 8, "duplicate");
    expect_fault("1 2", "invalid_json", 2, "the end of the text");
    expect_fault("\xef\xbb\xbf"
                 "1",
                 "invalid_json", 0, "byte order mark");
}

static void test_limits(void)
{
    struct amp_json_limits few = {.max_bytes = 40, .max_depth = 3, .max_tokens = 8};
    struct amp_tape old = tape;
    amp_tape_init(&tape, &few);
    TAP_INT(scan_str("[[[1]]]"), 0, "at the depth limit");
    expect_fault("[[[[1]]]]", "too_deep", 3, "deeper");
    TAP_INT(scan_str("[1,2,3,4,5,6,7]"), 0, "at the token limit");
    expect_fault("[1,2,3,4,5,6,7,8]", "too_many_tokens", 15, "limit");
    expect_fault("{\"a\":1,\"b\":1,\"c\":1,\"d\":1}", "too_many_tokens", 23, "limit");
    TAP_INT(scan_bytes("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", 40), 0, "at the length limit");
    TAP_OK(scan_bytes("\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"", 41) &&
               !strcmp(fault.code, "line_too_long"),
           "past the length limit");
    amp_tape_release(&tape);
    tape = old;
    char *deep = malloc(200001);
    memset(deep, '[', 200000);
    TAP_OK(scan_bytes(deep, 200000) && !strcmp(fault.code, "too_deep"), "200,000 brackets");
    free(deep);
}

static void test_many_keys(void)
{
    enum { KEYS = 100000 };
    char *text = malloc((size_t)KEYS * 16 + 64);
    size_t n = 0;
    text[n++] = '{';
    for (int i = 0; i < KEYS; i++)
        n += (size_t)sprintf(text + n, "%s\"k%d\":%d", i ? "," : "", i, i & 7);
    size_t open = n;
    text[n++] = '}';
    TAP_INT(scan_bytes(text, n), 0, "100,000 keys in one object");
    TAP_INT(tape.tok[0].count, KEYS, "all counted");
    n = open;
    n += (size_t)sprintf(text + n, ",\"k4711\":1}");
    TAP_OK(scan_bytes(text, n) && !strcmp(fault.code, "duplicate_key") && fault.offset == open + 1,
           "a repeated one among them is found");
    n = open;
    n += (size_t)sprintf(text + n, ",\"\\u006b99999\":1}");
    TAP_OK(scan_bytes(text, n) && !strcmp(fault.code, "duplicate_key"), "also when escaped");
    free(text);
}

int main(void)
{
    amp_tape_init(&tape, NULL);
    printf("# inner loops: %s\n", AMP_JSON_SSE2 ? "SSE2" : "portable");
    test_rfc();
    test_alignment();
    test_tokens();
    test_faults();
    test_limits();
    test_many_keys();
    amp_tape_release(&tape);
    return tap_done();
}
