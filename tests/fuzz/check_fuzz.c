/* A schema, a line feed, a value: the check and its explanation agree. */
#include <stdlib.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void told(void *ctx, const struct amp_violation *v)
{
    MUST(v->keyword[0] && v->expected[0] && v->tok < ((const struct amp_tape *)ctx)->n);
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
    }
    amp_tape_release(&t);
    amp_schema_run_free(r);
    amp_schema_free(s);
    return 0;
}
