/* Idempotency tokens: known answers, and what has none. */
#include "../tap.h"
#include "message/delivery/operation/token.h"

static struct amp_error err;
static struct amp_buf out;

static int token(struct amp_span producer, struct amp_span operation, struct amp_span canonical)
{
    amp_buf_reset(&out);
    return amp_token_make(producer, operation, canonical, &out, &err);
}

int main(void)
{
    static const struct {
        const char *producer, *operation, *canonical, *want;
    } known[] = {
        {"agent", "work", "{\"a\":1,\"b\":2}", "agent:work:f65efee16e55e693"},
        {"other", "work", "{\"a\":1,\"b\":2}", "other:work:b8dbde8912a6b867"},
        {"agent", "other", "{\"a\":1,\"b\":2}", "agent:other:f52acb7079319be0"},
        {"λ-agent", "操作", "✓", "λ-agent:操作:1237c18398ffb569"},
    };
    amp_buf_init(&out, 4096);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        TAP_INT(token(amp_span_str(known[i].producer), amp_span_str(known[i].operation),
                      amp_span_str(known[i].canonical)),
                0, "a token");
        TAP_SPAN(amp_buf_span(&out), known[i].want, "the known one");
    }
    TAP_INT(token(AMP_SPAN("a"), AMP_SPAN("b"), AMP_SPAN("")), 0, "no parameters");
    TAP_SPAN(amp_buf_span(&out), "a:b:911169ddaaf146af", "have a token");
    TAP_INT(token(AMP_SPAN("a"), AMP_SPAN("b"), AMP_SPAN("x\0y")), 0, "a NUL among the bytes");
    TAP_OK(!amp_span_is(amp_buf_span(&out), "a:b:911169ddaaf146af"), "counts");

    static const struct amp_span bad[][2] = {
        {{"a\nb", 3}, {"c", 1}}, {{"a", 1}, {"b\n", 2}}, {{"", 0}, {"c", 1}}, {{"a", 1}, {"", 0}}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        TAP_INT(token(bad[i][0], bad[i][1], AMP_SPAN("x")), -1, "a bad part");
        TAP_STR(err.code, "bad_token_part", "its code");
        TAP_INT((int64_t)out.len, 0, "nothing is written");
    }
    amp_buf_release(&out);
    return tap_done();
}
