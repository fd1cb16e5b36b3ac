/* What a compiled schema needs for explanations only, given back and made again: the tapes of its
 * documents and the way from a token to its node. The texts are there whatever happens, so the
 * tapes come out the same. */
#include "schema/compile/compiler.h"

void amp_schema_fold(struct amp_schema *s)
{
    if (!s->folded)
        amp_document_use(s->program, s->first->doc, -1, NULL);
    s->folded = true;
}

int amp_schema_unfold(struct amp_schema *s, struct amp_error *err)
{
    if (s->folded && amp_document_use(s->program, s->first->doc, 1, err) < 0)
        return -1;
    s->folded = false;
    return 0;
}
