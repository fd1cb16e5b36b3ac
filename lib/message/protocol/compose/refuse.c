/* The refusal of a line as a message in its sender's protocol, and the numbers of refusals. */
#include "message/protocol/compose/refuse.h"

#include <stdatomic.h>
#include <stdio.h>

#include <amp/base/id.h>

#include "message/protocol/amp/amp.h"
#include "message/protocol/spec.h"

int64_t amp_refuse_number(int64_t now_ms, char sender[AMP_REFUSER_MAX])
{
    static atomic_uint threads;
    static _Thread_local unsigned thread;
    if (thread == 0)
        thread = atomic_fetch_add(&threads, 1) + 1;
    if (thread == 1)
        snprintf(sender, AMP_REFUSER_MAX, AMP_REFUSER);
    else
        snprintf(sender, AMP_REFUSER_MAX, AMP_REFUSER "-%u", thread);
    return amp_id_number(now_ms);
}

struct amp_span amp_refuse_sentence(const struct amp_finding *f, const char *after,
                                    struct amp_buf *out)
{
    bool fits = amp_buf_fmt(out, NULL, "%s%s", f->field, f->field[0] ? after : "") == 0 &&
                amp_finding_sentence(f, true, out, NULL) == 0;
    return fits ? amp_buf_span(out) : amp_span_str(f->code);
}

enum amp_refuse_result amp_refuse(const struct amp_view *v, const struct amp_finding *first,
                                  int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    const struct amp_spec *s = amp_spec_of(v->protocol);
    if (!s)
        return amp_amp_refuse(v, first, now_ms, out, err);
    return s->refuse ? s->refuse(v, first, now_ms, out, err) : AMP_REFUSE_NONE;
}
