/* Built-in schemas by path: see schemas.h. */
#include "protocol/schemas.h"

#include <string.h>

/* References are relative to schema:///<protocol>/<name>.json. */
#define SCHEMA_BASE "schema:///"

void amp_schemas_release(struct amp_schemas *s)
{
    for (unsigned i = 0; i < s->n; i++)
        amp_schema_free(s->row[i].schema);
    memset(s, 0, sizeof *s);
}

static int resolve(void *ctx, struct amp_span uri, struct amp_span *text)
{
    size_t n = sizeof SCHEMA_BASE - 1;
    if (uri.n > n && memcmp(uri.p, SCHEMA_BASE, n) == 0) {
        uri.p += n;
        uri.n -= n;
    }
    const struct amp_schema_file *file = amp_schema_file_find(uri);
    if (!file)
        return -1;
    *text = file->text;
    return 0;
}

static struct amp_schema *compile(struct amp_schemas *s, const char *path, struct amp_error *err)
{
    for (unsigned i = 0; i < s->n; i++)
        if (strcmp(s->row[i].path, path) == 0)
            return s->row[i].schema;
    const struct amp_schema_file *file = amp_schema_file_find(amp_span_str(path));
    if (!file || s->n == AMP_SCHEMAS_MOST) {
        amp_fail(err, AMP_INTERNAL, "no_schema", "schema %s is not compiled in", path);
        return NULL;
    }
    AMP_BUF struct amp_buf base = {0};
    amp_buf_init(&base, 4096);
    if (amp_buf_fmt(&base, err, "%s%s", SCHEMA_BASE, path) < 0)
        return NULL;
    struct amp_schema_options opt = {
        .resolve = resolve, .base_uri = base.data, .formats = true, .lasting = true};
    struct amp_schema *schema = amp_schema_compile(file->text, &opt, err);
    if (!schema)
        return NULL;
    amp_schema_fold(schema);
    s->row[s->n++] = (struct amp_schemas_row){path, schema};
    return schema;
}

struct amp_schema *amp_schemas_get(struct amp_schemas *s, const char *path, struct amp_error *err)
{
    uint64_t mixed = (uintptr_t)path * UINT64_C(0x9e3779b97f4a7c15);
    struct amp_schemas_row *row = &s->by_address[mixed >> 32 & (AMP_SCHEMAS_SLOTS - 1)];
    if (row->path != path) {
        struct amp_schema *schema = compile(s, path, err);
        if (!schema)
            return NULL;
        *row = (struct amp_schemas_row){path, schema};
    }
    return row->schema;
}

int amp_schemas_unfold(struct amp_schemas *s, struct amp_schema *schema, struct amp_error *err)
{
    for (unsigned i = 0; i < AMP_SCHEMAS_UNFOLDED; i++)
        if (s->unfolded[i] == schema)
            return 0;
    struct amp_schema **slot = &s->unfolded[s->n_unfolded++ % AMP_SCHEMAS_UNFOLDED];
    if (*slot)
        amp_schema_fold(*slot);
    *slot = NULL;
    if (amp_schema_unfold(schema, err) < 0)
        return -1;
    *slot = schema;
    return 0;
}
