/* Reading a tape: text, numbers, members, pointers, paths, equality; lines; the writer. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/json/lines.h>
#include <amp/json/tape.h>
#include <amp/json/writer.h>

#include "../tap.h"
#include "json/decimal.h"
#include "json/equal.h"
#include "json/text.h"

static struct amp_tape a, b;

static bool load(struct amp_tape *t, const char *text)
{
    struct amp_json_fault f;
    return amp_tape_scan(t, text, strlen(text), &f) == 0;
}

static void test_text(void)
{
    AMP_BUF struct amp_buf arena = {0};
    amp_buf_init(&arena, 1000);
    struct amp_span s;
    load(&a, "[\"plain\",\"a\\\"\\\\\\/"
             "\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00z\",\"\",{\"k\\u0065y\":1}]");
    TAP_OK(!amp_tok_text(&a, 1, &arena, &s, NULL) && s.p == a.text + 2, "plain text is a span");
    TAP_SPAN(s, "plain", "of the text");
    TAP_INT(arena.len, 0, "and costs nothing");
    TAP_INT(amp_tok_text(&a, 2, &arena, &s, NULL), 0, "escapes decode");
    TAP_SPAN(s, "a\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z", "to what they mean");
    TAP_OK(amp_tok_is(&a, 2, s) && !amp_tok_is(&a, 2, AMP_SPAN("a")), "compared decoded");
    TAP_INT(amp_json_length(&a, 2), 13, "code points of escapes");
    TAP_INT(amp_json_length(&a, 1), 5, "and of plain text");
    TAP_OK(amp_tok_is(&a, 3, (struct amp_span){NULL, 0}), "the empty string");
    TAP_OK(!amp_tok_is(&a, 0, AMP_SPAN("x")), "an array is no text");
    TAP_INT(amp_tape_get(&a, 4, AMP_SPAN("key")), 6, "an escaped key is found");
    TAP_SPAN(amp_tok_source(&a, 1), "\"plain\"", "the source has its quotes");
    load(&a, "\"\xc3\xa9\xe4\xb8\xad\xf0\x9f\x98\x80\"");
    TAP_INT(amp_json_length(&a, 0), 3, "code points of UTF-8");
}

static void expect_int(const char *text, bool fits, int64_t want)
{
    int64_t v = 77;
    bool ok = load(&a, text) && amp_tok_int(&a, 0, &v) == fits;
    TAP_OK(ok && v == (fits ? want : 77), "%s as an integer", text);
}

static void expect_order(const char *x, const char *y, int want)
{
    struct amp_decimal d = amp_decimal_read(amp_span_str(x)), e = amp_decimal_read(amp_span_str(y));
    int got = amp_decimal_compare(&d, &e), back = amp_decimal_compare(&e, &d);
    TAP_OK(got == want && back == -want, "%s %s %s", x, want < 0 ? "<" : want ? ">" : "==", y);
    load(&a, x);
    load(&b, y);
    TAP_OK(amp_tape_equal(&a, 0, &b, 0) == !want &&
               (want || amp_tape_hash(&a, 0) == amp_tape_hash(&b, 0)),
           "as values");
}

static void expect_multiple(const char *x, const char *y, bool want)
{
    struct amp_decimal d = amp_decimal_read(amp_span_str(x)), e = amp_decimal_read(amp_span_str(y));
    TAP_OK(amp_decimal_multiple(&d, &e) == want, "%s is %sa multiple of %s", x, want ? "" : "not ",
           y);
}

static void expect_real(const char *text, double want)
{
    double v = 0;
    TAP_OK(load(&a, text) && amp_tok_real(&a, 0, &v) && v == want, "%s as a double", text);
}

static void test_numbers(void)
{
    expect_int("0", true, 0);
    expect_int("-0", true, 0);
    expect_int("-0.0e9", true, 0);
    expect_int("3.0", true, 3);
    expect_int("6E0", true, 6);
    expect_int("1.5e1", true, 15);
    expect_int("1500e-2", true, 15);
    expect_int("0.001e3", true, 1);
    expect_int("1e18", true, 1000000000000000000);
    expect_int("9223372036854775807", true, INT64_MAX);
    expect_int("-9223372036854775808", true, INT64_MIN);
    expect_int("9223372036854775808", false, 0);
    expect_int("-9223372036854775809", false, 0);
    expect_int("1e19", false, 0);
    expect_int("1e99999999999999999999", false, 0);
    expect_int("1.5", false, 0);
    expect_int("1e-1", false, 0);
    expect_int("true", false, 0);
    expect_order("1", "1.0", 0);
    expect_order("1e0", "1", 0);
    expect_order("10e-1", "1", 0);
    expect_order("0", "-0.0e5", 0);
    expect_order("100", "1e2", 0);
    expect_order("0.00001", "1e-5", 0);
    expect_order("12345678901234567890.5", "1234567890123456789.05e1", 0);
    expect_order("9007199254740993", "9007199254740992", 1);
    expect_order("0.1", "0.10000000000000000000000000001", -1);
    expect_order("-2", "-1", -1);
    expect_order("-1", "0", -1);
    expect_order("0", "1e-999999999", -1);
    expect_order("1e400", "1e401", -1);
    expect_order("99", "100", -1);
    expect_order("1.05", "1.5", -1);
    expect_multiple("10", "2", true);
    expect_multiple("7", "2", false);
    expect_multiple("4.5", "1.5", true);
    expect_multiple("0.0075", "0.0001", true);
    expect_multiple("0.00751", "0.0001", false);
    expect_multiple("35", "1.5", false);
    expect_multiple("0", "7", true);
    expect_multiple("-9", "3", true);
    expect_multiple("1e308", "0.123456789", false);
    expect_multiple("1e308", "0.5", true);
    expect_multiple("12391239123", "1e-8", true);
    expect_multiple("1e1000000000", "1024", true);
    expect_multiple("1e9", "1024", false);
    expect_multiple("1e10", "1024", true);
    expect_multiple("123456789012345678901234567890", "1234567890123456789", false);
    expect_multiple("246913578024691357802469135780", "123456789012345678901234567890", true);
    expect_multiple("246913578024691357802469135781", "123456789012345678901234567890", false);
    expect_multiple("1e30", "1000000000000000000000000000001", false);
    expect_real("1.5", 1.5);
    expect_real("-0.1", -0.1);
    expect_real("1e-400", 0);
    expect_real("9007199254740993", 9007199254740992.0);
    expect_real("1.7976931348623157e308", 1.7976931348623157e308);
    double v;
    TAP_OK(load(&a, "1e999") && !amp_tok_real(&a, 0, &v), "1e999 is no double");
}

static void expect_at(const char *pointer, const char *source)
{
    uint32_t k = amp_tape_pointer(&a, 0, amp_span_str(pointer));
    if (!source) {
        TAP_OK(k == AMP_TOK_NONE, "%s is nowhere", pointer);
        return;
    }
    TAP_SPAN(k == AMP_TOK_NONE ? AMP_SPAN("(none)") : amp_tok_source(&a, k), source, pointer);
    AMP_BUF struct amp_buf back = {0};
    amp_buf_init(&back, 1000);
    TAP_OK(k != AMP_TOK_NONE && !amp_tape_path(&a, k, &back, NULL, NULL) &&
               amp_span_is(amp_buf_span(&back), pointer),
           "and %s is its path", pointer);
}

static void test_pointers(void)
{
    load(&a,
         "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,\"g|h\":4,\"i\\\\j\":5,"
         "\"k\\\"l\":6,\" \":7,\"m~n\":8,\"p\":{\"subtasks\":[{},{},{\"id\":9}]}}");
    expect_at("", a.text);
    expect_at("/foo", "[\"bar\",\"baz\"]");
    expect_at("/foo/0", "\"bar\"");
    expect_at("/", "0");
    expect_at("/a~1b", "1");
    expect_at("/i\\j", "5");
    expect_at("/k\"l", "6");
    expect_at("/ ", "7");
    expect_at("/m~0n", "8");
    expect_at("/p/subtasks/2/id", "9");
    expect_at("/foo/2", NULL);
    expect_at("/foo/-", NULL);
    expect_at("/foo/00", NULL);
    expect_at("/foo/0/x", NULL);
    expect_at("/m~2n", NULL);
    expect_at("foo", NULL);
    AMP_BUF struct amp_buf dotted = {0};
    amp_buf_init(&dotted, 1000);
    amp_tape_path(&a, amp_tape_pointer(&a, 0, AMP_SPAN("/p/subtasks/2/id")), NULL, &dotted, NULL);
    TAP_SPAN(amp_buf_span(&dotted), "p.subtasks[2].id", "the dotted form");
    amp_buf_reset(&dotted);
    amp_tape_path(&a, amp_tape_pointer(&a, 0, AMP_SPAN("/a~1b")), NULL, &dotted, NULL);
    TAP_SPAN(amp_buf_span(&dotted), "[\"a/b\"]", "an odd key in the dotted form");
}

static void expect_equal(const char *x, const char *y, bool want)
{
    TAP_OK(load(&a, x) && load(&b, y) && amp_tape_equal(&a, 0, &b, 0) == want &&
               amp_tape_equal(&b, 0, &a, 0) == want &&
               (!want || amp_tape_hash(&a, 0) == amp_tape_hash(&b, 0)),
           "%.50s %s %.50s", x, want ? "==" : "!=", y);
}

static void test_equal(void)
{
    expect_equal("{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"\\u0061\":1e0}", true);
    expect_equal("[1,2]", "[2,1]", false);
    expect_equal("[1]", "[true]", false);
    expect_equal("0", "false", false);
    expect_equal("{}", "[]", false);
    expect_equal("{\"a\":1}", "{\"a\":1,\"b\":2}", false);
    expect_equal("{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false);
    expect_equal("\"\\u00e9\"", "\"\xc3\xa9\"", true);
    expect_equal("\"a\"", "\"ab\"", false);
    expect_equal("null", "null", true);
    enum { KEYS = 20000 };
    char *x = malloc(KEYS * 14 + 2), *y = malloc(KEYS * 14 + 2);
    size_t n = 0, m = 0;
    for (int i = 0; i < KEYS; i++) {
        n += (size_t)sprintf(x + n, "%c\"k%d\":%d", i ? ',' : '{', i, i & 1);
        m +=
            (size_t)sprintf(y + m, "%c\"k%d\":%d", i ? ',' : '{', KEYS - 1 - i, (KEYS - 1 - i) & 1);
    }
    strcpy(x + n, "}");
    strcpy(y + m, "}");
    expect_equal(x, y, true);
    y[m - 1] ^= 1;
    expect_equal(x, y, false);
    free(x);
    free(y);
}

/* Feeds text in pieces through a pipe; lists what comes as "number@offset:bytes|". */
static void read_lines(const char *text, size_t piece, size_t max, struct amp_buf *seen)
{
    struct amp_lines l;
    struct amp_line line;
    size_t at = 0, n = strlen(text);
    int fd[2];
    amp_buf_reset(seen);
    amp_lines_init(&l, max);
    if (pipe2(fd, O_NONBLOCK | O_CLOEXEC) != 0)
        return;
    for (;;) {
        enum amp_line_result r = amp_lines_next(&l, &line);
        if (r == AMP_LINE || r == AMP_LINE_TOO_LONG) {
            amp_buf_fmt(seen, NULL, "%s%d@%d:%.*s/%d|", r == AMP_LINE ? "" : "long ",
                        (int)line.number, (int)line.offset, (int)line.bytes.n, line.bytes.p,
                        (int)line.whole.n);
            continue;
        }
        if (r == AMP_LINE_END)
            break;
        if (at < n) {
            size_t k = n - at < piece ? n - at : piece;
            if (write(fd[1], text + at, k) != (ssize_t)k)
                break;
            at += k;
        } else if (fd[1] >= 0) {
            if (amp_lines_fill(&l, fd[0], NULL) != AMP_READ_WOULD_BLOCK)
                break;
            close(fd[1]);
            fd[1] = -1;
        }
        if (amp_lines_fill(&l, fd[0], NULL) < 0)
            break;
    }
    close(fd[0]);
    amp_lines_release(&l);
}

static void test_lines(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", ""},
        {"\n\n", ""},
        {"a\nb\n", "1@0:a/2|2@2:b/2|"},
        {"a\r\n\r\nbc\r\n", "1@0:a/3|3@5:bc/4|"},
        {"a\n\nb", "1@0:a/2|3@3:b/1|"},
        {"a\r", "1@0:a/2|"},
        {"12345678\n", "1@0:12345678/9|"},
        {"12345678\r\nx\n", "1@0:12345678/10|2@10:x/2|"},
        {"123456789\nx\n", "long 1@0:12345678/8|2@10:x/2|"},
        {"1234567890123456789012345\nx\n", "long 1@0:12345678/8|2@26:x/2|"},
        {"x\n1234567890123456789", "1@0:x/2|long 2@2:12345678/8|"},
        {"a\rb\n", "1@0:a\rb/4|"},
    };
    AMP_BUF struct amp_buf seen = {0};
    amp_buf_init(&seen, 10000);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool same = true;
        for (size_t piece = 1; piece < 30; piece++) {
            read_lines(cases[i].text, piece, 8, &seen);
            bool ok = amp_span_is(amp_buf_span(&seen), cases[i].want);
            if (!ok && same)
                printf("# pieces of %zu: got %.*s want %s\n", piece, (int)seen.len, seen.data,
                       cases[i].want);
            same = same && ok;
        }
        TAP_OK(same, "lines of case %zu in pieces of any size", i);
    }
    struct amp_lines l;
    amp_lines_init(&l, 1000);
    TAP_INT(amp_lines_fill(&l, -1, NULL), AMP_READ_FAILED, "a read error is an error");
    amp_lines_release(&l);
}

static void test_writer(void)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    amp_buf_init(&out, 1000);
    amp_jw_init(&w, &out);
    amp_jw_open(&w, '{');
    amp_jw_key(&w, "a\"b");
    amp_jw_int(&w, INT64_MIN);
    amp_jw_key(&w, "list");
    amp_jw_open(&w, '[');
    amp_jw_uint(&w, UINT64_MAX);
    amp_jw_bool(&w, true);
    amp_jw_null(&w);
    amp_jw_open(&w, '[');
    amp_jw_close(&w, ']');
    amp_jw_str(&w, (struct amp_span){"\0\b\t\n\x1f\x7f\\/\xc3\xa9\xff\xe2\x82", 13});
    amp_jw_close(&w, ']');
    amp_jw_key(&w, "raw");
    amp_jw_raw(&w, AMP_SPAN("{\"x\":1.50}"));
    amp_jw_close(&w, '}');
    TAP_INT(amp_jw_end(&w, NULL), 0, "written");
    TAP_SPAN(amp_buf_span(&out),
             "{\"a\\\"b\":-9223372036854775808,\"list\":[18446744073709551615,true,null,[],"
             "\"\\u0000\\b\\t\\n\\u001f\\u007f\\\\/\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"],"
             "\"raw\":{\"x\":1.50}}",
             "as wanted");
    AMP_BUF struct amp_buf small = {0};
    struct amp_error err;
    amp_buf_init(&small, 4);
    amp_jw_init(&w, &small);
    amp_jw_str(&w, AMP_SPAN("much too long"));
    TAP_OK(amp_jw_end(&w, &err) == -1 && !strcmp(err.code, "buffer_full"),
           "the first failure sticks");
}

int main(void)
{
    amp_tape_init(&a, NULL);
    amp_tape_init(&b, NULL);
    test_text();
    test_numbers();
    test_pointers();
    test_equal();
    test_lines();
    test_writer();
    amp_tape_release(&a);
    amp_tape_release(&b);
    return tap_done();
}
