/* Every message of the fixture in every other protocol, and back. */
#include <stdlib.h>

#include <amp/protocol/convert.h>

#include "../tap.h"

#define FIXTURE "tests/fixture/protocols/convert.jsonl"

static struct amp_reader *reader;
static struct amp_convert *convert;
static char codes[4000];

static void note(void *ctx, const struct amp_finding *f)
{
    size_t n = strlen(codes);
    if (f->severity == AMP_SEV_ERROR || getenv("CONVERT_VERBOSE"))
        snprintf(codes + n, sizeof codes - n, " [%s %s: %s]", f->code, f->field, f->message);
}

/* 1 valid, 0 not; the view is the reader's. */
static int check(struct amp_span line, struct amp_view *v)
{
    struct amp_error err;
    return amp_reader_line(reader, line, NULL, v, note, NULL, &err);
}

static struct amp_span bare(const struct amp_buf *b)
{
    return (struct amp_span){b->data, b->len - 1};
}

static bool same(struct amp_span a, struct amp_span b)
{
    struct amp_json_fault fault;
    struct amp_tape x, y;
    amp_tape_init(&x, NULL);
    amp_tape_init(&y, NULL);
    bool eq = amp_tape_scan(&x, a.p, a.n, &fault) == 0 &&
              amp_tape_scan(&y, b.p, b.n, &fault) == 0 && amp_tape_equal(&x, 0, &y, 0);
    amp_tape_release(&x);
    amp_tape_release(&y);
    return eq;
}

/* Kinds that a protocol cannot keep whole: its closed shapes have no room for the rest. */
static bool lossy(const char *codes_)
{
    return strstr(codes_, "not_carried") != NULL;
}

static unsigned converted, refused, lost;
static bool mutated; /* the message need not be valid; refusals are not told of */

static void pair(struct amp_span line, enum amp_protocol to)
{
    struct amp_error err;
    struct amp_view v;
    AMP_BUF struct amp_buf there = {0}, back = {0}, again = {0};
    amp_buf_init(&there, 1 << 24);
    amp_buf_init(&back, 1 << 24);
    amp_buf_init(&again, 1 << 24);
    codes[0] = '\0';
    if (check(line, &v) != 1) {
        if (mutated)
            return;
        tap_ok(false, __FILE__, __LINE__, "a message of the fixture is valid:%s %.*s", codes,
               (int)line.n, line.p);
        return;
    }
    enum amp_protocol from = v.protocol;
    if (from == to)
        return;
    char type[80];
    amp_span_copy(v.type, type, sizeof type);
    setenv("CONVERT_VERBOSE", "1", 1);
    enum amp_convert_result got =
        amp_convert_message(convert, &v, to, NULL, &there, note, NULL, &err);
    unsetenv("CONVERT_VERBOSE");
    if (got == AMP_CONVERT_REFUSED && strstr(codes, "cannot_convert")) {
        if (!mutated)
            printf("# %s %s -> %s:%s\n", amp_protocol_name(from), type, amp_protocol_name(to),
                   codes);
        refused++;
        return;
    }
    if (got != AMP_CONVERT_DONE) {
        tap_ok(false, __FILE__, __LINE__, "%s %s to %s: %d %s", amp_protocol_name(from), type,
               amp_protocol_name(to), got, got < 0 ? err.what : codes);
        return;
    }
    converted++;
    bool loses = lossy(codes);
    lost += loses;
    codes[0] = '\0';
    if (check(bare(&there), &v) != 1 || v.protocol != to) {
        tap_ok(false, __FILE__, __LINE__, "%s %s to %s is valid:%s %.*s", amp_protocol_name(from),
               type, amp_protocol_name(to), codes, (int)there.len, there.data);
        return;
    }
    got = amp_convert_message(convert, &v, from, NULL, &back, note, NULL, &err);
    if (loses)
        return;
    if (got == AMP_CONVERT_DONE && same(bare(&back), line))
        return;
    tap_ok(false, __FILE__, __LINE__, "%s %s to %s and back:%s", amp_protocol_name(from), type,
           amp_protocol_name(to), codes);
    printf("# was   %.*s\n# there %.*s# back  %.*s\n", (int)line.n, line.p, (int)there.len,
           there.data, (int)back.len, back.data ? back.data : "");
}

static unsigned seed = 231;

static unsigned pick(unsigned n)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % n;
}

/* One value of the message becomes another, goes, or gains a neighbour. */
static void mutate(struct amp_span line, struct amp_buf *out)
{
    static const char *const values[] = {"\"\"",
                                         "\"x\"",
                                         "\"\\u0041\\n\\\"b\\u2028\"",
                                         "\"\xc3\xa9 \xf0\x9f\x98\x80\"",
                                         "0",
                                         "3",
                                         "-5",
                                         "true",
                                         "null",
                                         "[]",
                                         "[\"a\",\"\"]",
                                         "{}",
                                         "{\"a\":{\"b\":[1]}}",
                                         "\"high\"",
                                         "1E2",
                                         "\"2026-02-26T14:32:07.25+02:00\""};
    static const char *const members[] = {
        "\"note\":\"n\"", "\"x~y/z\":{\"q\":1}",  "\"\":{\"\":1}",
        "\"e\\u0065\":2", "\"priority\":\"low\"", "\"parentTaskId\":\"TASK-2026-01-01-001\""};
    struct amp_json_fault fault;
    struct amp_tape t;
    amp_tape_init(&t, NULL);
    amp_buf_reset(out);
    if (amp_tape_scan(&t, line.p, line.n, &fault) == 0 && t.n > 1) {
        uint32_t i = 1 + pick(t.n - 1);
        while (t.tok[i].flags & AMP_TOK_KEY)
            i++;
        struct amp_span old = amp_tok_source(&t, i);
        size_t at = (size_t)(old.p - line.p);
        bool grow = t.tok[i].type == AMP_JSON_OBJECT;
        amp_buf_add(out, line.p, at, NULL);
        if (grow && t.tok[i].count > 0) {
            amp_buf_fmt(out, NULL, "{%s,", members[pick(sizeof members / sizeof *members)]);
            amp_buf_add(out, old.p + 1, line.n - at - 1, NULL);
        } else {
            amp_buf_str(out, values[pick(sizeof values / sizeof *values)], NULL);
            amp_buf_add(out, old.p + old.n, line.n - at - old.n, NULL);
        }
    }
    amp_tape_release(&t);
}

static void check_mutated(struct amp_span line)
{
    AMP_BUF struct amp_buf a = {0}, b = {0};
    amp_buf_init(&a, 1 << 24);
    amp_buf_init(&b, 1 << 24);
    mutated = true;
    for (int i = 0; i < 300; i++) {
        mutate(line, &a);
        if (pick(2)) {
            mutate(amp_buf_span(&a), &b);
            pair(amp_buf_span(&b), 1 + pick(AMP_PROTO_COUNT - 1));
        }
        if (a.len > 0)
            pair(amp_buf_span(&a), 1 + pick(AMP_PROTO_COUNT - 1));
    }
    mutated = false;
}

/* A valid message of no protocol, as a caller may pass it. */
static void without_protocol(struct amp_span line)
{
    struct amp_error err;
    struct amp_view v;
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 1 << 20);
    TAP_OK(check(line, &v) == 1, "a valid message");
    v.protocol = AMP_PROTO_NONE;
    codes[0] = '\0';
    TAP_OK(amp_convert_message(convert, &v, AMP_PROTO_AMP, NULL, &out, note, NULL, &err) ==
                   AMP_CONVERT_REFUSED &&
               strstr(codes, "cannot_convert") && out.len == 0,
           "without a protocol it is not converted");
}

int main(void)
{
    struct amp_error err;
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    FILE *f = fopen(FIXTURE, "r");
    reader = amp_reader_new(NULL, &err);
    convert = amp_convert_new(NULL, NULL, &err);
    TAP_OK(f && reader && convert, "the fixture is there");
    while (f && (n = getline(&line, &cap, f)) > 1) {
        if (converted + refused == 0)
            without_protocol((struct amp_span){line, (size_t)n - 1});
        for (enum amp_protocol to = AMP_PROTO_NONE + 1; to < AMP_PROTO_COUNT; to++)
            pair((struct amp_span){line, (size_t)n - 1}, to);
        check_mutated((struct amp_span){line, (size_t)n - 1});
    }
    TAP_OK(converted > 100, "%u pairs were converted, %u of them with a named loss, %u refused",
           converted, lost, refused);
    free(line);
    if (f)
        fclose(f);
    amp_convert_free(convert);
    amp_reader_free(reader);
    return tap_done();
}
