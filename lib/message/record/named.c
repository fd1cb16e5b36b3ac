/* Names for messages that bear none. */
#include "message/record/named.h"

#include "protocol/terms.h"

static bool is_plain(struct amp_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < ' ')
            return false;
    return s.n < AMP_MSG_ID_MAX;
}

bool amp_message_name(struct amp_view *v, char mem[AMP_MSG_ID_MAX])
{
    const struct amp_terms *t = amp_terms_of(v->protocol);
    if (v->id.n > 0)
        return true;
    bool may = t->name && v->task.n > 0 && is_plain(v->task) && is_plain(v->correlation);
    int n = may ? t->name(v, mem) : 0;
    if (n <= 0 || n >= AMP_MSG_ID_MAX)
        return false;
    v->id = amp_span_str(mem);
    return true;
}
