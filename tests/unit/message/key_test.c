/* Keys of stored records: one reading for each, whatever the parts are. */
#include "message/store/key.h"

#include <string.h>

#include "../tap.h"

static struct amp_error err;

static const char *text_of(struct amp_key k)
{
    static char mem[4][AMP_KEY_MAX];
    static int at;
    struct amp_span text;
    char *out = mem[at++ % 4];
    return amp_key_text(&k, out, &text, &err) < 0 ? err.code : out;
}

static void parts_are_encoded(void)
{
    TAP_STR(text_of(AMP_KEY("task", AMP_SPAN("T-2026_001"))), "task.T-2026_001",
            "letters, digits, - and _");
    TAP_STR(text_of(AMP_KEY("task", AMP_SPAN("a.b/c%d:e~f"))), "task.a%2Eb%2Fc%25d%3Ae%7Ef",
            "and nothing else");
    TAP_STR(text_of(AMP_KEY("k", AMP_SPAN("\xc3\xa9"))), "k.%C3%A9", "UTF-8");
    TAP_STR(text_of(AMP_KEY("k", AMP_SPAN(""), AMP_SPAN("x"), AMP_SPAN(""))), "k..x.",
            "empty parts");
    TAP_STR(text_of(AMP_KEY("k", AMP_SPAN(""))), "bad_id", "an empty id is refused");
    TAP_STR(text_of(AMP_KEY("a-kind-whose-name-is-much-too-long", AMP_SPAN("x"))), "bad_kind",
            "a long kind, too");
}

static void no_two_are_the_same(void)
{
    static char most[AMP_KEY_PART_MAX + 2], more[AMP_KEY_PART_MAX + 3];
    memset(most, 'x', AMP_KEY_PART_MAX);
    memset(more, 'x', AMP_KEY_PART_MAX + 1);
    struct amp_span fits = {most, AMP_KEY_PART_MAX}, long1 = {more, AMP_KEY_PART_MAX + 1},
                    long2 = long1;
    static char other[AMP_KEY_PART_MAX + 2];
    memcpy(other, more, AMP_KEY_PART_MAX + 1);
    other[AMP_KEY_PART_MAX] = 'y';
    long2.p = other;
    char hex[AMP_KEY_NAME_MAX + AMP_KEY_PART_MAX];
    TAP_INT((int64_t)strlen(text_of(AMP_KEY("k", fits))), AMP_KEY_PART_MAX + 2,
            "the longest part stands for itself");
    const char *digest = text_of(AMP_KEY("k", long1));
    TAP_INT((int64_t)strlen(digest), 2 + 7 + 64, "one byte more: its digest");
    TAP_OK(strncmp(digest, "k.sha256:", 9) == 0, "which is marked");
    TAP_OK(strcmp(digest, text_of(AMP_KEY("k", long2))) != 0, "and differs in the last byte");
    amp_key_part_name(long1, hex);
    TAP_OK(strcmp(digest, text_of(AMP_KEY("k", amp_span_str(hex)))) != 0,
           "a part that reads like a digest is another one");
    struct amp_key line = AMP_KEY_NAMED("k", amp_span_str(hex));
    TAP_OK(strcmp(digest, text_of(line)) != 0, "and so is the digest of a line");
    TAP_OK(strncmp(text_of(line), "k.line:", 7) == 0, "which has a mark of its own");
    static const struct {
        struct amp_key a, b;
    } pairs[] = {
        {{"k", {{"a", 1}, {"b", 1}}, .n = 2}, {"k", {{"a.b", 3}}, .n = 1}},
        {{"k", {{"a\nb", 3}}, .n = 1}, {"k", {{"a", 1}, {"b", 1}}, .n = 2}},
        {{"k", {{"a\nb", 3}, {"c", 1}}, .n = 2}, {"k", {{"a", 1}, {"b\nc", 3}}, .n = 2}},
        {{"k", {{"a", 1}, {"", 0}}, .n = 2}, {"k", {{"a", 1}}, .n = 1}},
        {{"k", {{"%2E", 3}}, .n = 1}, {"k", {{".", 1}}, .n = 1}},
        {{"k", {{"A", 1}}, .n = 1}, {"k", {{"a", 1}}, .n = 1}},
        {{"k", {{"a b", 3}}, .n = 1}, {"k", {{"a%20b", 5}}, .n = 1}},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        TAP_OK(strcmp(text_of(pairs[i].a), text_of(pairs[i].b)) != 0,
               "different parts: different keys");
    const struct amp_span one[] = {AMP_SPAN("ab"), AMP_SPAN("c")},
                          two[] = {AMP_SPAN("a"), AMP_SPAN("bc")};
    char d[2][AMP_KEY_NAME_MAX];
    amp_key_digest(one, 2, d[0], &err);
    amp_key_digest(two, 2, d[1], &err);
    TAP_OK(strcmp(d[0], d[1]) != 0, "digests of several parts know where one ends");
}

static void splits(void)
{
    static const struct amp_key keys[] = {
        {"inbox", {{"mbp", 3}, {"evt_1", 5}}, .n = 2},
        {"k", {{"", 0}, {".%:/~", 5}, {"\xf0\x9f\x98\x80", 4}, {"", 0}}, .n = 4},
        {"k", {{" ", 1}}, .n = 1},
    };
    AMP_BUF struct amp_buf mem = {0}, full = {0};
    struct amp_key got;
    amp_buf_init(&mem, 1 << 20);
    amp_buf_init(&full, 1 << 20);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        bool same = amp_key_split(amp_span_str(text_of(keys[i])), &mem, &got, &err) == 0 &&
                    got.n == keys[i].n && strcmp(got.kind, keys[i].kind) == 0;
        for (uint32_t k = 0; same && k < got.n; k++)
            same = amp_span_eq(got.part[k], keys[i].part[k]);
        TAP_OK(same, "a key is split into its parts");
    }
    char hex[AMP_KEY_NAME_MAX];
    struct amp_span name = amp_key_message_name(AMP_SPAN(""), AMP_SPAN("{}"), hex);
    TAP_INT(amp_key_split(amp_span_str(text_of(AMP_KEY_NAMED("dead", name))), &mem, &got, &err), 0,
            "a line's digest");
    TAP_OK(amp_span_eq(got.part[0], name), "is the name again");
    struct amp_span id =
        amp_key_message_name(name, AMP_SPAN("{\"a\":1}"), (char[AMP_KEY_NAME_MAX]){0});
    TAP_OK(!amp_span_eq(id, name), "an id that could be one is not taken for one");
    static char longer[2000];
    memset(longer, 'z', sizeof longer - 1);
    struct amp_key k = AMP_KEY("dead", amp_span_str(longer));
    TAP_OK(amp_key_is_digested(amp_span_str(text_of(k))), "a long part has a digest in its place");
    TAP_INT(amp_key_full(&k, &full, &err), 0, "and can be written as it is");
    TAP_INT(amp_key_split(amp_buf_span(&full), &mem, &got, &err), 0, "to be read back");
    TAP_INT((int64_t)got.part[0].n, 1999, "completely");
    static const char *const bad[] = {"task", "task.%2", "task.%zz", "k.1.2.3.4.5", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        err = (struct amp_error){0};
        TAP_INT(amp_key_split(amp_span_str(bad[i]), &mem, &got, &err), -1, "not a key");
        TAP_STR(err.code, "log_damaged", "which is damage");
    }
    struct amp_key again = AMP_KEY_TEXT(AMP_SPAN("token.cli.t"));
    TAP_STR(text_of(again), "token.cli.t", "a key that a record mentions");
}

int main(void)
{
    parts_are_encoded();
    no_two_are_the_same();
    splits();
    return tap_done();
}
