/* Reads the cases of cases.js and compares each verdict with ours, and the verdict with its own
 * explanation. Prints the differences, a line a group and, last, "N passed, N failed". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/schema/schema.h>

enum { SHOWN = 20, GROUPS = 16 };

static struct group {
    char name[40];
    long values, valid, failed;
} groups[GROUPS];
static struct amp_schema_run *run;

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    const struct amp_schema_file *f = amp_schema_file_find(uri);
    if (!f)
        return -1;
    *text = f->text;
    return 0;
}

/* An explanation has to name what it is about. */
static void told(void *ctx, const struct amp_violation *v)
{
    if (v->keyword[0] && v->expected[0])
        ++*(int *)ctx;
}

static struct amp_schema *compile(const struct amp_tape *t, uint32_t tok, struct amp_error *err)
{
    struct amp_schema_options opt = {.resolve = resolve};
    opt.draft7 = amp_tape_get(t, 0, AMP_SPAN("draft")) != AMP_TOK_NONE;
    if (t->tok[tok].type != AMP_JSON_STRING)
        return amp_schema_compile(amp_tok_source(t, tok), &opt, err);
    char path[100];
    amp_span_copy(amp_tok_raw(t, tok), path, sizeof path);
    const struct amp_schema_file *f = amp_schema_file_find(amp_span_str(path));
    opt.base_uri = path;
    opt.formats = true;
    return f ? amp_schema_compile(f->text, &opt, err) : NULL;
}

static struct group *group_of(struct amp_span name)
{
    unsigned i = 0;
    while (i < GROUPS - 1 && groups[i].name[0] && !amp_span_is(name, groups[i].name))
        i++;
    amp_span_copy(name, groups[i].name, sizeof groups[i].name);
    return &groups[i];
}

/* One schema with its values. */
static void compare(const struct amp_tape *t, struct group *g)
{
    struct amp_error err = {0};
    uint32_t schema = amp_tape_get(t, 0, AMP_SPAN("s"));
    uint32_t list = amp_tape_get(t, 0, AMP_SPAN("v"));
    struct amp_span text = amp_tok_source(t, schema);
    struct amp_schema *s = compile(t, schema, &err);
    if (!s) {
        printf("%s: %.*s\n", err.what, (int)text.n, text.p);
        g->failed++;
        return;
    }
    for (uint32_t k = list + 1; k < t->tok[list].next; k = t->tok[k].next) {
        uint32_t value = amp_tape_at(t, k, 0);
        int want = t->tok[amp_tape_at(t, k, 1)].type == AMP_JSON_TRUE, named = 0;
        int got = amp_schema_check(s, run, t, value, &err);
        int why = amp_schema_explain(s, run, t, value, 0, told, &named, &err);
        g->values++;
        g->valid += want;
        if (got == want && (got == 1) == (why == 0) && named == why)
            continue;
        struct amp_span v = amp_tok_source(t, value);
        if (++g->failed <= SHOWN)
            printf("we say %d (%d violations, %d named), ajv says %d: %.*s for %.*s\n", got, why,
                   named, want, (int)v.n, v.p, (int)text.n, text.p);
    }
    amp_schema_free(s);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    long passed = 0, failed = 0;
    struct amp_tape t;
    struct amp_json_fault fault;
    run = amp_schema_run_new(NULL);
    amp_tape_init(&t, NULL);
    while ((n = getline(&line, &cap, stdin)) > 0) {
        if (amp_tape_scan(&t, line, (size_t)n, &fault)) {
            printf("not JSON: %s\n", fault.what);
            failed++;
            continue;
        }
        compare(&t, group_of(amp_tok_raw(&t, amp_tape_get(&t, 0, AMP_SPAN("group")))));
    }
    for (unsigned i = 0; i < GROUPS && groups[i].name[0]; i++) {
        struct group *g = &groups[i];
        printf("%s: %ld values, %ld of them valid, %ld differ\n", g->name, g->values, g->valid,
               g->failed);
        /* Values that are all wrong, or all right, show nothing. */
        if (g->valid * 20 < g->values || g->valid * 20 > g->values * 19) {
            printf("%s: too few valid or too few invalid values\n", g->name);
            failed++;
        }
        failed += g->failed;
        passed += g->values - g->failed;
    }
    amp_schema_run_free(run);
    amp_tape_release(&t);
    free(line);
    printf("%ld passed, %ld failed\n", passed, failed);
    return failed || !passed;
}
