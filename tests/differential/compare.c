/* Reads the cases of cases.js and compares each verdict with ours. Prints the differences and,
 * last, "N passed, N failed". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/schema/schema.h>

enum { SHOWN = 20 };

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    const struct amp_schema_file *f = amp_schema_file_find(uri);
    if (!f)
        return -1;
    *text = f->text;
    return 0;
}

static void ignore(void *ctx, const struct amp_violation *v)
{
}

static struct amp_schema *compile(const struct amp_tape *t, uint32_t tok, struct amp_error *err)
{
    struct amp_schema_options opt = {.resolve = resolve};
    if (t->tok[tok].type != AMP_JSON_STRING)
        return amp_schema_compile(amp_tok_source(t, tok), &opt, err);
    char path[100];
    amp_span_copy(amp_tok_raw(t, tok), path, sizeof path);
    const struct amp_schema_file *f = amp_schema_file_find(amp_span_str(path));
    opt.base_uri = path;
    opt.formats = true;
    return f ? amp_schema_compile(f->text, &opt, err) : NULL;
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    long passed = 0, failed = 0;
    struct amp_tape t;
    struct amp_json_fault fault;
    struct amp_error err = {0};
    struct amp_schema_run *run = amp_schema_run_new(NULL);
    amp_tape_init(&t, NULL);
    while ((n = getline(&line, &cap, stdin)) > 0) {
        if (amp_tape_scan(&t, line, (size_t)n, &fault)) {
            printf("not JSON: %s\n", fault.what);
            failed++;
            continue;
        }
        uint32_t schema = amp_tape_get(&t, 0, AMP_SPAN("s"));
        uint32_t list = amp_tape_get(&t, 0, AMP_SPAN("v"));
        struct amp_schema *s = compile(&t, schema, &err);
        if (!s) {
            printf("%s: %.*s\n", err.what, (int)t.tok[schema].len, amp_tok_source(&t, schema).p);
            failed++;
            continue;
        }
        for (uint32_t k = list + 1; k < t.tok[list].next; k = t.tok[k].next) {
            uint32_t value = amp_tape_at(&t, k, 0);
            int want = t.tok[amp_tape_at(&t, k, 1)].type == AMP_JSON_TRUE;
            int got = amp_schema_check(s, run, &t, value, &err);
            int why = amp_schema_explain(s, run, &t, value, 0, ignore, NULL, &err);
            if (got == want && (got == 1) == (why == 0)) {
                passed++;
                continue;
            }
            struct amp_span v = amp_tok_source(&t, value), text = amp_tok_source(&t, schema);
            if (++failed <= SHOWN)
                printf("we say %d (%d violations), ajv says %d: %.*s for %.*s\n", got, why, want,
                       (int)v.n, v.p, (int)text.n, text.p);
        }
        amp_schema_free(s);
    }
    amp_schema_run_free(run);
    amp_tape_release(&t);
    free(line);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed || !passed;
}
