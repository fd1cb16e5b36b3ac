/* The first failure that was noticed at a close, per process. */
#include "base/late.h"

static struct amp_error first;

void amp_late_note(const struct amp_error *err)
{
    if (!first.status)
        first = *err;
}

bool amp_late_failure(struct amp_error *out)
{
    *out = first;
    return first.status != AMP_OK;
}
