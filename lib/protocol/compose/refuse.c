/* The refusal of a line as a message in its sender's protocol. */
#include "protocol/amp/amp.h"
#include "protocol/spec.h"

int amp_refuse(const struct amp_view *v, const struct amp_finding *first, int64_t now_ms,
               struct amp_buf *out, struct amp_error *err)
{
    const struct amp_spec *s = amp_spec_of(v->protocol);
    if (!s)
        return amp_amp_refuse(v, first, now_ms, out, err);
    return s->refuse ? s->refuse(v, first, now_ms, out, err) : 1;
}
