/* What is remembered of one object's keys must not change the verdict about the next object. */
#include <stdio.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "../tap.h"
#include "json/shapes.h"

static struct amp_tape tape;
static struct amp_schema_run *run;

static bool scans(const char *text)
{
    struct amp_json_fault fault;
    return amp_tape_scan(&tape, text, strlen(text), &fault) == 0;
}

static int checks(const struct amp_schema *s, const char *text)
{
    struct amp_error err;
    return scans(text) ? amp_schema_check(s, run, &tape, 0, &err) : -2;
}

static void duplicates(void)
{
    TAP_OK(scans("{\"a\":1,\"b\":2}") && tape.tok[0].shape == 0, "the first text has no shapes");
    TAP_OK(scans("{\"a\":1,\"b\":2}") && tape.tok[0].shape != 0, "an object has a shape");
    uint16_t first = tape.tok[0].shape;
    TAP_OK(scans("{\"a\":[],\"b\":{\"a\":1,\"b\":2}}") && tape.tok[0].shape == first,
           "other values, the same shape");
    TAP_OK(scans("{\"\\u0061\":1,\"b\":2}") && tape.tok[0].shape == first,
           "a key spelled with escapes is the same key");
    TAP_OK(scans("{\"b\":2,\"a\":1}") && tape.tok[0].shape != first, "the order counts");
    TAP_OK(!scans("{\"a\":1,\"a\":2}"), "a key that stands twice");
    TAP_OK(!scans("{\"a\":1,\"b\":2,\"\\u0061\":3}"), "a key that stands twice, once escaped");
    TAP_OK(!scans("{\"b\":{\"a\":1,\"b\":2,\"b\":3}}"), "a key that stands twice, inside");
    bool good = true;
    for (int i = 0; i < 20000; i++) { /* the table is full and emptied on the way */
        char text[80];
        snprintf(text, sizeof text, "{\"k%d\":1,\"a\":{\"b\":2},\"l%d\":3}", i, i);
        good = good && scans(text);
        snprintf(text, sizeof text, "{\"k%d\":1,\"a\":2,\"k%d\":3}", i, i);
        good = good && !scans(text);
    }
    TAP_OK(good, "20000 shapes, with and without a key that stands twice");
}

static void tell(void *ctx, const struct amp_violation *v)
{
}

static void verdicts(void)
{
    static const char text[] =
        "{\"type\":\"object\",\"required\":[\"a\"],\"additionalProperties\":false,"
        "\"patternProperties\":{\"^x_\":{\"type\":\"integer\"}},"
        "\"properties\":{\"a\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":9},"
        "\"b\":{\"$ref\":\"#\"},\"c\":{\"enum\":[\"u\",\"v\",1]}}}";
    static const struct {
        const char *line;
        int want;
    } rows[] = {
        {"{\"a\":1}", 1},
        {"{\"a\":10}", 0},
        {"{\"a\":-1}", 0},
        {"{\"a\":1.0}", 1},
        {"{\"a\":1.5}", 0},
        {"{\"a\":99999999999999999999}", 0},
        {"{\"a\":\"1\"}", 0},
        {"{\"\\u0061\":1}", 1},
        {"{\"b\":{\"a\":1}}", 0},
        {"{\"a\":1,\"b\":{\"a\":2}}", 1},
        {"{\"a\":1,\"b\":{\"a\":10}}", 0},
        {"{\"a\":1,\"b\":{\"a\":1,\"b\":{\"a\":1,\"b\":{\"c\":\"u\"}}}}", 0},
        {"{\"a\":1,\"c\":\"v\"}", 1},
        {"{\"a\":1,\"c\":\"\\u0076\"}", 1},
        {"{\"a\":1,\"c\":1}", 1},
        {"{\"a\":1,\"c\":2}", 0},
        {"{\"a\":1,\"c\":\"w\"}", 0},
        {"{\"a\":1,\"x_1\":1}", 1},
        {"{\"a\":1,\"x_1\":\"1\"}", 0},
        {"{\"a\":1,\"y_1\":1}", 0},
        {"{\"c\":\"u\"}", 0},
        {"{}", 0},
    };
    struct amp_error err;
    for (int folded = 0; folded < 2; folded++) {
        struct amp_schema_options opt = {.lasting = true};
        struct amp_schema *s = amp_schema_compile(AMP_SPAN(text), &opt, &err);
        if (folded)
            amp_schema_fold(s);
        /* Forward and backward, so that each row follows others; twice, so that it is known. */
        for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++) {
            size_t n = sizeof rows / sizeof *rows, k = i / n % 2 ? n - 1 - i % n : i % n;
            int got = checks(s, rows[k].line);
            if (got != rows[k].want || i < n)
                TAP_INT(got, rows[k].want, rows[k].line);
        }
        scans("{\"c\":\"w\"}");
        TAP_INT(amp_schema_unfold(s, &err), 0, "ready to explain");
        TAP_INT(amp_schema_explain(s, run, &tape, 0, 0, tell, NULL, &err), 2, "two violations");
        amp_schema_free(s);
    }
}

int main(void)
{
    struct amp_error err;
    amp_tape_init(&tape, NULL);
    run = amp_schema_run_new(&err);
    duplicates();
    verdicts();
    amp_schema_run_free(run);
    amp_tape_release(&tape);
    return tap_done();
}
