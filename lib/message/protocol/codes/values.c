/* The codes of all protocols as values for completion. */
#include "message/protocol/codes/values.h"

#include <string.h>

#include <amp/protocol/meaning.h>

/* Whether a protocol before p has the code, too. */
static bool is_listed(const char *code, enum amp_protocol p)
{
    for (enum amp_protocol q = AMP_PROTO_NONE; q < p; q++)
        for (const struct amp_meaning *m = amp_meanings(q); m->code; m++)
            if (strcmp(m->code, code) == 0)
                return true;
    return false;
}

int amp_code_values(const struct amp_values_ask *ask, struct amp_error *err)
{
    int rc = 0;

    for (enum amp_protocol p = AMP_PROTO_NONE; p < AMP_PROTO_COUNT; p++)
        for (const struct amp_meaning *m = amp_meanings(p); m->code; m++)
            if (!is_listed(m->code, p) &&
                (rc = ask->fn(ask->ctx, amp_span_str(m->code), amp_span_str(m->means), err)) != 0)
                return rc;
    return rc;
}
