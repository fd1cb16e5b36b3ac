/* Frames: what is written is read back, and whatever is not whole is told. */
#include <stdlib.h>

#include "../tap.h"
#include "message/store/log/frame.h"

static struct amp_error err;

static void test_round_trip(struct amp_buf *b)
{
    static const struct amp_frame_out out[] = {
        {.id = {"o\"1", 3}, .line = {"{\"a\":\"\\n\xc3\xa9\"}", 12}, .ack = true},
        {.id = {"o2", 2},
         .blob = {"0123456789012345678901234567890123456789012345678901234567890123", 64}},
    };
    static const struct amp_frame_ref close[] = {{7, 0}, {UINT32_MAX, 3}};
    struct amp_frame f = {
        .head = {.n = 9, .prev = 0x0123456789abcdefu, .s = 8, .gen = 2},
        .key = AMP_SPAN("task.T-1%2F2"),
        .was = 3,
        .rev = 4,
        .from = AMP_SPAN("A"),
        .event = AMP_SPAN("go"),
        .to = AMP_SPAN("B"),
        .actor = AMP_SPAN("me\x01"),
        .at = 1772116327123,
        .due = 1772116328000,
        .in_consumer = AMP_SPAN("c"),
        .in_id = AMP_SPAN("in\\"),
        .in_sum = AMP_SPAN("5"),
        .state = AMP_SPAN("{\"x\":[1,{}]}"),
        .out = out,
        .n_out = 2,
        .close = close,
        .n_close = 2,
    };
    struct amp_frame_arena arena;
    struct amp_frame g;
    struct amp_frame_head h;
    amp_frame_arena_init(&arena);
    TAP_INT(amp_frame_encode(&f, NULL, b, &err), 0, "a frame is encoded");
    TAP_OK(b->data[b->len - 1] == '\n' && !memchr(b->data, '\n', b->len - 1), "on one line");
    TAP_OK(amp_frame_check(b->data, b->len, &h), "it is whole");
    TAP_OK(h.size == b->len && h.n == 9 && h.prev == f.head.prev && h.s == 8 && h.gen == 2 &&
               h.log == AMP_FRAME_none,
           "its head is what was given");
    TAP_INT(amp_frame_decode(amp_buf_span(b), &h, &arena, &g, &err), 0, "it is decoded");
    TAP_SPAN(g.key, "task.T-1%2F2", "key");
    TAP_OK(g.was == 3 && g.rev == 4 && g.at == f.at && g.due == f.due, "numbers");
    TAP_SPAN(g.actor, "me\x01", "a control character");
    TAP_SPAN(g.in_id, "in\\", "a backslash");
    TAP_SPAN(g.state, "{\"x\":[1,{}]}", "the record, byte for byte");
    TAP_OK(memcmp(b->data + f.state_off, f.state.p, f.state.n) == 0 && f.state_off == g.state_off,
           "where it was said to stand");
    TAP_INT(g.n_out, 2, "two lines");
    TAP_OK(amp_span_eq(g.out[0].line, out[0].line) && amp_span_eq(g.out[0].id, out[0].id) &&
               g.out[0].ack && g.out[0].n == 9 && g.out[0].i == 0,
           "the first");
    TAP_OK(amp_span_eq(g.out[1].blob, out[1].blob) && !g.out[1].ack && g.out[1].i == 1,
           "the second, in a blob");
    TAP_OK(g.n_close == 2 && g.close[1].n == UINT32_MAX && g.close[1].i == 3, "what it closes");
    amp_frame_arena_release(&arena);
}

static void test_not_whole(const struct amp_buf *b)
{
    struct amp_frame_head h;
    char *copy = malloc(b->len);
    int wrong = 0;
    for (size_t n = 0; n < b->len; n++) {
        memcpy(copy, b->data, n); /* a buffer of its own, so that a sanitizer sees the end */
        char *exact = malloc(n ? n : 1);
        memcpy(exact, copy, n);
        wrong += amp_frame_check(exact, n, &h);
        free(exact);
    }
    TAP_INT(wrong, 0, "cut at any byte, it is not whole");
    for (size_t i = 0; i < b->len; i++)
        for (int bit = 0; bit < 8; bit++) {
            memcpy(copy, b->data, b->len);
            copy[i] ^= (char)(1 << bit);
            wrong += amp_frame_check(copy, b->len, &h);
        }
    TAP_INT(wrong, 0, "with any bit flipped, it is not whole");
    memset(copy, 0, b->len);
    TAP_OK(!amp_frame_check(copy, b->len, &h), "zeros are no frame");
    free(copy);
}

static void test_log_frames(struct amp_buf *b)
{
    static const enum amp_frame_log logs[] = {AMP_FRAME_close, AMP_FRAME_cut,    AMP_FRAME_seal,
                                              AMP_FRAME_index, AMP_FRAME_repair, AMP_FRAME_stand};
    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct amp_frame_head h;
        struct amp_frame f = {.head = {.n = 1, .log = logs[i]}, .at = 1};
        amp_buf_reset(b);
        TAP_OK(amp_frame_encode(&f, NULL, b, &err) == 0 && amp_frame_check(b->data, b->len, &h) &&
                   h.log == logs[i],
               "a record of the log itself keeps its kind (%d)", (int)logs[i]);
    }
}

static struct amp_span one_of(const char *const *texts, unsigned n, unsigned *dice)
{
    *dice = *dice * 1103515245u + 12345u;
    return amp_span_str(texts[(*dice >> 8) % n]);
}

/* Whatever a frame says can be read again. */
static void test_any(struct amp_buf *b)
{
    static const char *const words[] = {"",
                                        "a",
                                        "SENT",
                                        "message.m-1%2F",
                                        "q\"x",
                                        "b\\",
                                        "\x01",
                                        "\xc3\xa9",
                                        "with words of more than 16 bytes",
                                        "\x7f"};
    static const char *const states[] = {"{}",
                                         "{\"a\":1}",
                                         "{\"a\":{\"b\":{}}}",
                                         "{\"a\":\"}}\\\"{\",\"due\":5}",
                                         "{\"x\":[{\"y\":\"]}\"},2]}",
                                         "{\"e\":\"\xc3\xa9\\\\\"}"};
    struct amp_frame_arena arena;
    unsigned dice = 7, wrong = 0;
    amp_frame_arena_init(&arena);
    for (int round = 0; round < 20000; round++) {
        unsigned all = sizeof words / sizeof *words, plain = 4;
        unsigned n = (dice >> 20) % 3 ? plain : all;
        struct amp_frame_out out[3];
        for (int i = 0; i < 3; i++)
            out[i] = (struct amp_frame_out){.id = one_of(words, n, &dice),
                                            .line = one_of(states, 6, &dice),
                                            .ack = (dice >> 20) % 2};
        struct amp_frame f = {.head = {.n = 3}, .at = 1772116327123, .rev = 1, .out = out};
        f.key = one_of(words + 1, n - 1, &dice);
        f.from = one_of(words, n, &dice);
        f.event = one_of(words, n, &dice);
        f.to = one_of(words, n, &dice);
        f.actor = one_of(words, n, &dice);
        f.in_consumer = one_of(words, n, &dice);
        f.in_id = one_of(words, n, &dice);
        f.in_sum = one_of(words, n, &dice);
        f.gone = (dice >> 20) % 5 == 0;
        f.state = one_of(states, 6, &dice);
        f.due = (dice >> 20) % 3 ? 0 : 1772116328000;
        f.n_out = (dice >> 16) % 5 < 3 ? 0 : (dice >> 18) % 4;
        struct amp_frame_head h;
        struct amp_frame p;
        amp_buf_reset(b);
        if (amp_frame_encode(&f, NULL, b, &err) != 0 || !amp_frame_check(b->data, b->len, &h) ||
            amp_frame_decode(amp_buf_span(b), &h, &arena, &p, &err) != 0) {
            wrong++;
            continue;
        }
        bool same = amp_span_eq(p.key, f.key) && p.was == f.was && p.rev == f.rev &&
                    amp_span_eq(p.to, f.to) && amp_span_eq(p.actor, f.actor) &&
                    amp_span_eq(p.in_id, f.in_id) && p.gone == f.gone && p.due == f.due &&
                    (!f.in_id.n || (amp_span_eq(p.in_consumer, f.in_consumer) &&
                                    amp_span_eq(p.in_sum, f.in_sum))) &&
                    (f.gone || (amp_span_eq(p.state, f.state) && p.state_off == f.state_off)) &&
                    p.n_out == f.n_out;
        for (uint32_t i = 0; same && i < p.n_out; i++)
            same = amp_span_eq(p.out[i].id, out[i].id) && amp_span_eq(p.out[i].line, out[i].line) &&
                   p.out[i].i == i && p.out[i].ack == out[i].ack;
        wrong += !same;
    }
    TAP_INT((int64_t)wrong, 0, "what a frame says is read again as it was");
    amp_frame_arena_release(&arena);
}

static void test_too_large(struct amp_buf *b)
{
    size_t n = AMP_FRAME_MAX;
    char *big = malloc(n);
    memset(big, 'x', n);
    struct amp_frame f = {.head = {.n = 1}, .at = 1, .note = {big, n}};
    amp_buf_reset(b);
    TAP_INT(amp_frame_encode(&f, NULL, b, &err), -1, "a frame past its size is refused");
    TAP_STR(err.code, "frame_too_large", "with its code");
    TAP_INT((int64_t)b->len, 0, "and leaves nothing behind");
    free(big);
}

int main(void)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, 4 * AMP_FRAME_MAX);
    test_round_trip(&b);
    test_not_whole(&b);
    test_log_frames(&b);
    test_any(&b);
    test_too_large(&b);
    return tap_done();
}
