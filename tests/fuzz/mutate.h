/*
 * libFuzzer's custom mutator for lines of JSON: half of the time it changes bytes as always, else
 * it puts one value in the place of another, of the same line or of a word list, or drops or
 * doubles a member. Included by one target's file; a program that has no libFuzzer never calls it.
 */
#ifndef TESTS_FUZZ_MUTATE_H
#define TESTS_FUZZ_MUTATE_H

#include <stdint.h>
#include <string.h>

#include <amp/protocol/protocol.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

static const char *const mutate_values[] = {
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1",
    "1.5",
    "1e400",
    "9007199254740993",
    "\"\"",
    "\" \"",
    "\"x\"",
    "[]",
    "{}",
    "[[]]",
    "\"2026-02-26T14:32:07Z\"",
    "\"\\u0000\"",
    "\"\\u001b[2J\"",
    "\"\\u202e\"",
    "\"main\"",
    "\"AMP/1.0\"",
    "\"aof\"",
    "\"2.0.2-C\"",
    "\"TASK\"",
    "\"RESPONSE\"",
    "\"EVENT\"",
    "\"550e8400-e29b-41d4-a716-446655440000\"",
    "\"HLC:123:4:node\"",
    "\"application/json\"",
    "\"application/protobuf\"",
    "\"AAAA\"",
    "\"../../x\"",
    "\"C:/x\"",
    "\"T-2026-044\"",
};

static unsigned mutate_next(unsigned *seed)
{
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 8;
}

/* The place of a value, its key and a comma included where member is true. */
static struct amp_span mutate_place(const struct amp_tape *t, uint32_t tok, bool member)
{
    struct amp_span s = amp_tok_source(t, tok);
    if (member && tok > 0 && (t->tok[tok - 1].flags & AMP_TOK_KEY)) {
        const char *key = amp_tok_source(t, tok - 1).p;
        s.n += (size_t)(s.p - key);
        s.p = key;
    }
    if (member) {
        const char *end = t->text + t->len;
        if (s.p + s.n < end && s.p[s.n] == ',') {
            s.n++;
        } else if (s.p > t->text && s.p[-1] == ',') {
            s.p--;
            s.n++;
        }
    }
    return s;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
    unsigned choice = mutate_next(&seed) % 8;
    struct amp_tape t;
    struct amp_json_fault fault;
    size_t out = 0;
    amp_tape_init(&t, NULL);
    /* The last line, which starts behind the first byte or behind a line feed. */
    const uint8_t *lf = memrchr(data, '\n', size);
    size_t head = lf ? (size_t)(lf - data) + 1 : size > 0;
    if (choice >= 4 && size > head &&
        !amp_tape_scan(&t, (char *)data + head, size - head, &fault)) {
        uint32_t tok = mutate_next(&seed) % t.n;
        if ((t.tok[tok].flags & AMP_TOK_KEY) && choice != 5)
            tok++;
        struct amp_span old = mutate_place(&t, tok, choice >= 6), with = {"", 0};
        if (choice == 4)
            with = amp_span_str(
                mutate_values[mutate_next(&seed) % (sizeof mutate_values / sizeof *mutate_values)]);
        else if (choice == 5)
            with = amp_tok_source(&t, mutate_next(&seed) % t.n);
        size_t before = (size_t)(old.p - (char *)data), after = before + old.n;
        size_t twice = choice == 7 ? old.n : 0;
        if (size - old.n + with.n + twice <= max) {
            char *copy = malloc(with.n + 1);
            memcpy(copy, with.p, with.n);
            if (choice == 7)
                with.n = 2 * old.n;
            memmove(data + before + with.n, data + after, size - after);
            if (choice == 7)
                memcpy(data + before + old.n, data + before, old.n);
            else
                memcpy(data + before, copy, with.n);
            free(copy);
            out = size - old.n + with.n;
        }
    }
    amp_tape_release(&t);
    if (out == 0)
        out = LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max) : size;
    return out;
}

#endif
