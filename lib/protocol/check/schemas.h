/* The schemas that are compiled in, as one reader uses them: each is compiled when it is asked for
 * first. */
#ifndef AMP_PROTOCOL_SCHEMAS_H
#define AMP_PROTOCOL_SCHEMAS_H

#include <amp/schema/schema.h>

enum { AMP_SCHEMAS_SLOTS = 512, AMP_SCHEMAS_UNFOLDED = 24 };

struct amp_schemas {
    struct amp_schema_set *set; /* NULL until the first one is asked for */
    struct amp_schemas_row {
        const char *path;
        struct amp_schema *schema;
    } by_address[AMP_SCHEMAS_SLOTS];                   /* of the path: it is not compared */
    struct amp_schema *unfolded[AMP_SCHEMAS_UNFOLDED]; /* those that are ready to explain */
    unsigned n_unfolded;
};

/* All zero is empty. */
void amp_schemas_release(struct amp_schemas *s);
/* "amp/task_dispatch.json", a text that stays; NULL on failure. */
struct amp_schema *amp_schemas_get(struct amp_schemas *s, const char *path, struct amp_error *err);
/* Makes a schema ready for amp_schema_explain. */
int amp_schemas_unfold(struct amp_schemas *s, struct amp_schema *schema, struct amp_error *err);

#endif
