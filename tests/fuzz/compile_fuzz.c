/* Any bytes as a schema: it compiles or is refused with a code, and leaves nothing behind. */
#include <stdlib.h>
#include <string.h>

#include <amp/schema/schema.h>

#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct amp_error err = {0};
    struct amp_schema_options opt = {.formats = true, .draft7 = size & 1, .base_uri = "http://x/y"};
    struct amp_schema *s =
        amp_schema_compile((struct amp_span){(const char *)data, size}, &opt, &err);
    MUST(s || (err.code[0] && err.what[0]));
    amp_schema_free(s);
    return 0;
}
