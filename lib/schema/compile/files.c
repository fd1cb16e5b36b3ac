/* The built-in schemas, among them the drafts' metaschemas. */
#include <string.h>

#include "schema/compile/compiler.h"

const struct amp_schema_file *amp_schema_file_find(struct amp_span path)
{
    for (size_t i = 0; i < amp_schema_files_count; i++)
        if (amp_span_is(path, amp_schema_files[i].path))
            return &amp_schema_files[i];
    return NULL;
}

const struct amp_schema_file *amp_schema_file_by_uri(struct amp_span uri)
{
    size_t n = strlen(AMP_SCHEMA_URI);
    if (uri.n <= n || memcmp(uri.p, AMP_SCHEMA_URI, n) != 0)
        return amp_metaschema_find(uri);
    return amp_schema_file_find((struct amp_span){uri.p + n, uri.n - n});
}

const struct amp_schema_file *amp_metaschema_find(struct amp_span uri)
{
    static const char draft7[] = "http://json-schema.org/draft-07/schema";
    static const char draft2020[] = "https://json-schema.org/draft/2020-12/";
    char path[80] = "json-schema/draft2020-12-";
    size_t n = sizeof draft2020 - 1, at = strlen(path);
    if (amp_span_is(uri, draft7))
        return amp_schema_file_find(AMP_SPAN("json-schema/draft7.json"));
    if (uri.n <= n || uri.n - n > 40 || memcmp(uri.p, draft2020, n) != 0)
        return NULL;
    for (size_t i = n; i < uri.n; i++)
        path[at++] = uri.p[i] == '/' ? '-' : uri.p[i];
    memcpy(path + at, ".json", 6);
    return amp_schema_file_find(amp_span_str(path));
}
