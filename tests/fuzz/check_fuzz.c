/* A schema, a line feed, a value: the check and its explanation agree. */
#include <stdlib.h>
#include <string.h>

#include <amp/schema/output.h>

#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void told(void *ctx, const struct amp_violation *v)
{
    MUST(v->keyword[0] && v->expected[0] && v->tok < ((const struct amp_tape *)ctx)->n);
}

/* The standard output is JSON with the same verdict, and has errors where there is one. */
static void output(const struct amp_schema *s, struct amp_schema_run *r, const struct amp_tape *t,
                   int verdict, enum amp_output form)
{
    struct amp_json_limits deep = {
        .max_bytes = 1u << 30, .max_depth = 1000, .max_tokens = 1u << 30};
    struct amp_json_fault f;
    struct amp_buf out;
    struct amp_tape read;
    amp_buf_init(&out, 1u << 30);
    amp_tape_init(&read, &deep);
    int got = amp_schema_output(s, r, t, 0, form, &out, NULL);
    MUST(got < 0 || verdict < 0 || got == verdict);
    if (got >= 0) {
        bool truncated =
            out.len > 18 && !memcmp(out.data + out.len - 17, "\"truncated\":true}", 17);
        MUST(amp_tape_scan(&read, out.data, out.len, &f) == 0 || !strcmp(f.code, "too_deep"));
        MUST(got || truncated || memmem(out.data, out.len, "\"error\":", 8));
    }
    amp_tape_release(&read);
    amp_buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *lf = memchr(data, '\n', size);
    if (!lf)
        return 0;
    struct amp_schema_options opt = {.formats = true};
    struct amp_span text = {(const char *)data, (size_t)(lf - data)};
    struct amp_schema *s = amp_schema_compile(text, &opt, NULL);
    if (!s)
        return 0;
    struct amp_schema_run *r = amp_schema_run_new(NULL);
    struct amp_tape t;
    struct amp_json_fault f;
    amp_tape_init(&t, NULL);
    if (!amp_tape_scan(&t, (const char *)lf + 1, size - text.n - 1, &f)) {
        int got = amp_schema_check(s, r, &t, 0, NULL);
        int why = amp_schema_explain(s, r, &t, 0, 0, told, &t, NULL);
        /* Explaining does more work, so it alone may meet a limit. */
        MUST(why < 0 || got < 0 || (got == 1) == (why == 0));
        output(s, r, &t, got, AMP_OUTPUT_BASIC);
    }
    amp_tape_release(&t);
    amp_schema_run_free(r);
    amp_schema_free(s);
    return 0;
}
