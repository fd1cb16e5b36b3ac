/* What a compiled schema needs for explanations only, given back and made again: the tapes of its
 * documents and the way from a token to its node. The texts are there whatever happens, so the
 * tapes come out the same. */
#include <stdlib.h>

#include "schema/compile/compiler.h"

/* Checks compare with what is no text on the tape. */
static bool compares(const struct amp_schema *s, const struct amp_document *d)
{
    for (const struct amp_node *n = s->nodes; n; n = n->next)
        for (const struct amp_value_rules *v = n->doc == d ? n->values : NULL; v; v = v->also)
            if (v->n_others)
                return true;
    return false;
}

void amp_schema_fold(struct amp_schema *s)
{
    for (struct amp_document *d = s->documents; d; d = d->next) {
        free(d->resource);
        free(d->node);
        d->resource = NULL;
        d->node = NULL;
        if (!compares(s, d))
            amp_tape_release(&d->tape);
    }
    s->folded = true;
}

static int fail(struct amp_error *err)
{
    return amp_fail(err, AMP_INTERNAL, "no_memory", "no memory to explain");
}

int amp_schema_unfold(struct amp_schema *s, struct amp_error *err)
{
    struct amp_json_fault fault;
    if (!s->folded)
        return 0;
    for (struct amp_document *d = s->documents; d; d = d->next) {
        if (!d->tape.n) {
            if (amp_tape_scan(&d->tape, d->text.p, d->text.n, &fault))
                return fail(err);
            amp_tape_settle(&d->tape);
        }
        if (!d->node && !(d->node = calloc(d->tape.n, sizeof *d->node)))
            return fail(err);
    }
    for (struct amp_node *n = s->nodes; n; n = n->next)
        n->doc->node[n->tok] = n;
    s->folded = false;
    return 0;
}
