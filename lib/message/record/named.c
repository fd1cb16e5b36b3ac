/* Names for messages that bear none. */
#include "message/record/named.h"

#include <stdio.h>
#include <string.h>

bool amp_message_is_named(const struct amp_view *v)
{
    return (v->protocol == AMP_PROTO_AOP && v->kind == AMP_KIND_DISPATCH) ||
           (v->protocol == AMP_PROTO_AOF && amp_span_is(v->type, "handoff.request"));
}

static bool is_plain(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ')
            return false;
    return s.n > 0;
}

bool amp_message_name(struct amp_view *v, char mem[AMP_MSG_ID_MAX])
{
    int n = 0;
    if (v->id.n > 0)
        return true;
    if (!amp_message_is_named(v) || !is_plain(v->task) || v->task.n >= AMP_MSG_ID_MAX)
        return false;
    if (v->protocol == AMP_PROTO_AOF)
        n = snprintf(mem, AMP_MSG_ID_MAX, "handoff.request/%.*s/%lld", (int)v->task.n, v->task.p,
                     (long long)v->created_ms);
    else if (is_plain(v->correlation) && v->correlation.n < AMP_MSG_ID_MAX)
        n = snprintf(mem, AMP_MSG_ID_MAX, "%.*s/%.*s/%lld", (int)v->correlation.n, v->correlation.p,
                     (int)v->task.n, v->task.p, (long long)(v->has_attempt ? v->attempt : 1));
    if (n <= 0 || n >= AMP_MSG_ID_MAX)
        return false;
    v->id = amp_span_str(mem);
    return true;
}
