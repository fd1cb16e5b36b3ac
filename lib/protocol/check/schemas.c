/* Built-in schemas by path: see schemas.h. */
#include "protocol/check/schemas.h"

#include <string.h>

/* References are relative to schema:///<protocol>/<name>.json. */
#define SCHEMA_BASE "schema:///"

void amp_schemas_release(struct amp_schemas *s)
{
    amp_schema_set_free(s->set);
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
    static const struct amp_schema_options opt = {
        .resolve = resolve, .formats = true, .lasting = true};
    AMP_BUF struct amp_buf uri = {0};
    amp_buf_init(&uri, 4096);
    if ((!s->set && !(s->set = amp_schema_set_new(&opt, err))) ||
        amp_buf_fmt(&uri, err, "%s%s", SCHEMA_BASE, path) < 0)
        return NULL;
    struct amp_schema *schema = amp_schema_set_get(s->set, amp_buf_span(&uri), err);
    bool ready = false;
    for (unsigned i = 0; i < AMP_SCHEMAS_UNFOLDED; i++)
        ready |= s->unfolded[i] == schema;
    if (schema && !ready)
        amp_schema_fold(schema);
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
