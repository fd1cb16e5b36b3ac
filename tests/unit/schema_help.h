/* What the schema tests share: a resolver with a few texts, compiling and loading, violations as
 * text. */
#ifndef TESTS_SCHEMA_HELP_H
#define TESTS_SCHEMA_HELP_H

#include <stdlib.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "tap.h"

static struct amp_tape tape;
static struct amp_schema_run *run;

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    static const struct {
        const char *uri, *text;
    } others[] = {
        {"http://x/common.json",
         "{\"$defs\":{\"id\":{\"type\":\"string\"},\"n\":{\"$ref\":\"#/$defs/m\"},"
         "\"m\":{\"$anchor\":\"em\",\"minimum\":3}}}"},
        {"common.json", "{\"$defs\":{\"id\":{\"type\":\"integer\"}}}"},
        {"dir/near.json", "{\"type\":\"null\"}"},
        {"http://x/broken.json", "{\"type\":"},
        {"http://x/broken2.json", "{\n\"$defs\": {\n\"a\":{\"type\":\"x\"}\n}}"},
        {"http://x/meta", "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                          "\"$vocabulary\":{"
                          "\"https://json-schema.org/draft/2020-12/vocab/core\":true,"
                          "\"https://json-schema.org/draft/2020-12/vocab/applicator\":true}}"},
        {"http://x/strange", "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
                             "\"$vocabulary\":{\"http://x/vocabulary\":true}}"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (amp_span_is(uri, others[i].uri)) {
            *text = amp_span_str(others[i].text);
            return 0;
        }
    return -1;
}

static const struct amp_schema_options options = {.resolve = resolve, .formats = true};

struct told {
    int n;
    char text[2000];
    uint32_t last;
    bool ordered;
};

__attribute__((unused)) static void tell(void *ctx, const struct amp_violation *v)
{
    struct told *t = ctx;
    size_t n = strlen(t->text);
    if (t->n++ && v->tok < t->last)
        t->ordered = false;
    t->last = v->tok;
    struct amp_buf where;
    amp_buf_init(&where, 1000);
    amp_tape_path(&tape, v->tok, NULL, &where, NULL);
    snprintf(t->text + n, sizeof t->text - n, "%s%.*s|%s|%.*s|%.*s|%s", n ? "; " : "",
             (int)where.len, where.len ? where.data : "", v->keyword, (int)v->name.n,
             v->name.n ? v->name.p : "", (int)v->schema_at.n, v->schema_at.p, v->expected);
    n = strlen(t->text);
    if (v->nearest[0]) /* what was probably meant */
        snprintf(t->text + n, sizeof t->text - n, "~%s", v->nearest);
    amp_buf_release(&where);
}

static struct amp_schema *compile(const char *schema)
{
    struct amp_error err;
    struct amp_schema *s = amp_schema_compile(amp_span_str(schema), &options, &err);
    if (!s)
        printf("# %s: %s\n", err.code, err.what);
    return s;
}

static bool load(const char *value)
{
    struct amp_json_fault f;
    return amp_tape_scan(&tape, value, strlen(value), &f) == 0;
}

#endif
