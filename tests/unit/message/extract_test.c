/* Messages in text: what is found, where, and that it does not matter how the text is cut. */
#include <stdlib.h>

#include <amp/protocol/extract.h>

#include "../tap.h"

#define ACK   "{\"protocol_version\":\"AMP/1.0\",\"type\":\"ack\"}"
#define EVENT "{\"eventId\":\"e\",\"kind\":\"message\"}"
#define AOF   "{\"protocol\":\"aof\",\"n\":1}"

static struct amp_buf found;

static struct amp_span whole_text;

/* in:line and the text; the place must be where the text has it. */
static int note(void *ctx, struct amp_span text, const struct amp_found *at, struct amp_error *err)
{
    uint64_t line = 1, start = 0;
    for (uint64_t i = 0; i < at->offset && i < whole_text.n; i++)
        if (whole_text.p[i] == '\n') {
            line++;
            start = i + 1;
        }
    bool there = at->offset < whole_text.n && line == at->line &&
                 at->column == at->offset - start + 1 &&
                 (at->in == AMP_FOUND_STRING && whole_text.p[at->offset] != '{'
                      ? whole_text.p[at->offset - 1] == '"'
                      : whole_text.p[at->offset] == '{');
    return amp_buf_fmt(&found, err, "%s%s%s:%d %.*s\n", there ? "" : "MISPLACED ",
                       at->too_long ? "LONG " : "", amp_found_name(at->in), (int)at->line,
                       (int)text.n, text.p);
}

static const struct amp_json_limits small = {.max_bytes = 600, .max_depth = 20, .max_tokens = 1000};

/* Feeds the text in pieces of the given size; 0: whole. */
static struct amp_span search(struct amp_span text, size_t piece, enum amp_protocol only)
{
    struct amp_error err;
    struct amp_extract *x = amp_extract_new(&small, only, note, NULL, &err);
    int rc = 0;
    amp_buf_reset(&found);
    whole_text = text;
    while (text.n > 0 && rc == 0) {
        size_t n = piece && piece < text.n ? piece : text.n;
        char *copy = malloc(n); /* of its own, so that reading past it shows */
        memcpy(copy, text.p, n);
        rc = amp_extract_feed(x, (struct amp_span){copy, n}, &err);
        free(copy);
        text.p += n;
        text.n -= n;
    }
    if (rc == 0)
        rc = amp_extract_end(x, &err);
    if (rc != 0)
        amp_buf_str(&found, "FAILED", NULL);
    amp_extract_free(x);
    return amp_buf_span(&found);
}

static const struct {
    const char *what, *text, *want;
} cases[] = {
    {"a line", ACK "\n", "line:1 " ACK "\n"},
    {"no line end", ACK, "line:1 " ACK "\n"},
    {"two on a line", "  " ACK " " EVENT "\r\n", "line:1 " ACK "\nline:1 " EVENT "\n"},
    {"prose", "He said {not} so: " ACK ". Then {", "prose:1 " ACK "\n"},
    {"nothing", "if (a) { b[\"c\"] = {}; } else { f(\"}\"); }", ""},
    {"other JSON", "{\"a\":[1,2,{\"b\":true}],\"c\":\"d\"}\n[1,2]\n", ""},
    {"an id alone claims nothing", "{\"message_id\":\"1\",\"channel\":\"c\"}", ""},
    {"a fence", "text\n```json\n" ACK "\n```\n" EVENT "\n", "fence:3 " ACK "\nline:5 " EVENT "\n"},
    {"an indented fence of tildes",
     "- a\n  ~~~~ js title=x\n  " AOF "\n  ~~~\n  " AOF "\n  ~~~~\n" AOF,
     "fence:3 " AOF "\nfence:5 " AOF "\nline:7 " AOF "\n"},
    {"spread over lines", "x\n{\r\n  \"protocol\" : \"aof\",\r\n  \"n\" :\t1\r\n}\r\n" AOF,
     "line:2 " AOF "\nline:6 " AOF "\n"},
    {"quoted", "> {\n>   \"protocol\": \"aof\",\n>   \"n\": 1\n> }\n", "prose:1 " AOF "\n"},
    {"a collector's prefix",
     "web_1 | 10:00:01 {\nweb_1 | 10:00:02   \"protocol\": \"aof\",\nweb_1 | 10:00:02  \"n\": 1\n"
     "web_1 | 10:00:02 }\n",
     "prose:1 " AOF "\n"},
    {"numbered lines",
     "     9\t{\n    10\t  \"protocol\": \"aof\",\n   101\t  \"n\":\n\t1}\n9: {\n10: "
     "\"protocol\":\n11: \"aof\"}",
     "prose:1 " AOF "\nprose:5 {\"protocol\":\"aof\"}\n"},
    {"behind AOF/1", "AOF/1 " AOF "\nsee AOF/1 " AOF "\n", "line:1 " AOF "\nprose:2 " AOF "\n"},
    {"broken behind AOF/1", "AOF/1 {\"x\":oops}\n", "line:1 {\"x\":o\n"},
    {"a log", "2026-01-01T10:00:00Z INFO sent \033[32m" AOF "\033[0m ok\n", "prose:1 " AOF "\n"},
    {"colours within",
     "{\033[0m\033[34;1m\"protocol\"\033[0m:\033[32m \"aof\"\033[0m,"
     "\"n\":\033]8;;u\0071\033[0m}",
     "line:1 " AOF "\n"},
    {"colours that were cut off at a line's end",
     "\033[31\n" AOF "\n\033\n" AOF "\n\033]0;title\n" AOF "\n\033]0;\033\n" AOF "\n",
     "line:2 " AOF "\nline:4 " AOF "\nline:6 " AOF "\nline:8 " AOF "\n"},
    {"a colour cut off within, and a prefix",
     "> {\n>   \"protocol\":\033[\n>  \"aof\",\n>  \"n\":1\n> }\n" AOF,
     "prose:1 " AOF "\nline:6 " AOF "\n"},
    {"a transcript",
     "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"So:\\n```"
     "json\\n"
     "{\\\"protocol\\\":\\\"aof\\\",\\n\\\"n\\\":1}\\n```\\nDone {\\u007b\"}]}}\n",
     "string:1 " AOF "\n"},
    {"a string in a string",
     "{\"a\":\"{\\\"b\\\":\\\"{\\\\\\\"protocol\\\\\\\":\\\\\\\"aof\\\\\\\",\\\\\\\"n\\\\\\\":1}"
     "\\\"}\"}",
     "string:1 " AOF "\n"},
    {"escaped in a log",
     "t=1 msg=\"sent {\\\"protocol\\\":\\\"aof\\\",\\n \\\"n\\\":1} {\\\"x\\\"\" ok " EVENT "\n",
     "string:1 " AOF "\nprose:1 " EVENT "\n"},
    {"escaped to the end", "x {\\\"protocol\\\":\\\"aof\\\",\\\"n\\\":1}", "string:1 " AOF "\n"},
    {"inside another object", "{\"input\":{\"to\":[1," AOF "]},\"more\":" EVENT "}",
     "object:1 " AOF "\nobject:1 " EVENT "\n"},
    {"in an object that breaks", "{\"input\":" AOF ",\"more\": oops " EVENT "}",
     "prose:1 " AOF "\nprose:1 " EVENT "\n"},
    {"behind an open quote", "{\"and so on " AOF "\n", "prose:1 " AOF "\n"},
    {"a message that was cut", "{\"msg_id\":\"a\",\"type\":\"ack\",\"x\":\n" AOF "\n{",
     "line:1 {\"msg_id\":\"a\",\"type\":\"ack\",\"x\":\n" AOF "\n{\nline:2 " AOF "\n"},
    {"a comma too many", "{\"protocol\":\"aof\",}", "line:1 {\"protocol\":\"aof\",}\n"},
    {"half a character", "{\"protocol\":\"aof\",\"x\":\"\xc3\"}",
     "line:1 {\"protocol\":\"aof\",\"x\":\"\xc3\"}\n"},
    {"a message is not looked into",
     "{\"protocol\":\"aof\",\"payload\":{\"text\":\"{\\\"protocol\\\":\\\"aof\\\"}\","
     "\"o\":" AOF "}}",
     "line:1 {\"protocol\":\"aof\",\"payload\":{\"text\":\"{\\\"protocol\\\":\\\"aof\\\"}\","
     "\"o\":" AOF "}}\n"},
    {"addressed", "{\"to\":\"b\",\"msg\":{\"message_id\":\"m\",\"message_type\":\"DATA\"}}",
     "line:1 {\"to\":\"b\",\"msg\":{\"message_id\":\"m\",\"message_type\":\"DATA\"}}\n"},
};

static void check_cases(void)
{
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct amp_span text = amp_span_str(cases[i].text);
        TAP_SPAN(search(text, 0, AMP_PROTO_NONE), cases[i].want, cases[i].what);
        for (size_t piece = 1; piece < text.n; piece++)
            if (!amp_span_is(search(text, piece, AMP_PROTO_NONE), cases[i].want)) {
                tap_ok(false, __FILE__, __LINE__, "%s in pieces of %d: %.*s", cases[i].what,
                       (int)piece, (int)found.len, found.data);
                break;
            }
    }
}

/* A message comes out as soon as its last byte is there. */
static void check_streaming(void)
{
    struct amp_error err;
    struct amp_extract *x = amp_extract_new(NULL, AMP_PROTO_NONE, note, NULL, &err);
    amp_buf_reset(&found);
    whole_text = AMP_SPAN("one: " ACK);
    amp_extract_feed(x, AMP_SPAN("one: " ACK), &err);
    TAP_SPAN(amp_buf_span(&found), "prose:1 " ACK "\n", "no line end is waited for");
    amp_extract_free(x);
}

static void check_too_long(void)
{
    static char text[4000];
    memcpy(text, ACK "\n{\"a\":\"", sizeof ACK + 7);
    memset(text + strlen(text), 'x', 3000);
    strcat(text, "{}\"} " EVENT);
    for (size_t piece = 0; piece < 900; piece += 97) {
        search(amp_span_str(text), piece, AMP_PROTO_NONE);
        TAP_OK(strstr(found.data, "LONG line:2 ") && strstr(found.data, "\nline:2 {\"event") &&
                   strstr(found.data, EVENT),
               "an object past the limit is named, what follows is found");
    }
    TAP_SPAN(search(amp_span_str(AOF EVENT), 0, AMP_PROTO_RTP), "line:1 " EVENT "\n",
             "one protocol only");
}

/* Garbage: no crash, the same however it is cut, in time that grows with its length only. */
static void check_garbage(void)
{
    static const char *const bits[] = {
        "{",       "}",    "\"",    "\\", ":",      ",",       "[",   "]",
        "\n",      " ",    "```\n", "1",  "true",   "{\"a\":", ACK,   EVENT,
        "\033[1m", "\xff", "x",     "> ", "AOF/1 ", "\\\"",    "{\"", "\"msg_id\":\"",
        "~~~",     "\r",   "\033"};
    unsigned seed = 7;
    bool same = true;
    for (int round = 0; round < 1500; round++) {
        char text[1200];
        size_t n = 0;
        for (int k = 0; k < 40; k++) {
            seed = seed * 1103515245u + 12345u;
            const char *bit = bits[(seed >> 16) % (sizeof bits / sizeof *bits)];
            size_t len = strlen(bit);
            if (n + len < sizeof text) {
                memcpy(text + n, bit, len);
                n += len;
            }
        }
        AMP_BUF struct amp_buf whole = {0};
        amp_buf_init(&whole, 1 << 20);
        struct amp_span got = search((struct amp_span){text, n}, 0, AMP_PROTO_NONE);
        amp_buf_add(&whole, got.p, got.n, NULL);
        got = search((struct amp_span){text, n}, 1 + (seed >> 20) % 50, AMP_PROTO_NONE);
        if (!amp_span_eq(got, amp_buf_span(&whole))) {
            printf("# whole: %.*s# cut: %.*s# text: %.*s\n", (int)whole.len, whole.data, (int)got.n,
                   got.p, (int)n, text);
            same = false;
            break;
        }
    }
    TAP_OK(same, "garbage gives the same, however it is cut");
}

int main(void)
{
    amp_buf_init(&found, 1 << 20);
    check_cases();
    check_streaming();
    check_too_long();
    check_garbage();
    amp_buf_release(&found);
    return tap_done();
}
