/* Delegation: the access of a child, and whether an agent may send it. */
#include "work/aop/session/delegate.h"

#include "base/codes.h"
#include "message/protocol/aop/policy/reach.h"
#include "work/aop/session/private.h"
#include "json/record.h"

#define REFUSED(...) amp_fail(err, AMP_NO, __VA_ARGS__)

static bool is_within(struct amp_span dir, const struct amp_span *of, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (amp_aop_is_within(of[i], dir))
            return true;
    return false;
}

/* The first directory of a list that is not within the other list, or NULL. */
static const struct amp_span *outside_find(const struct amp_span *v, uint32_t n,
                                           const struct amp_span *of, uint32_t n_of)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_within(v[i], of, n_of))
            return &v[i];
    return NULL;
}

int amp_session_access_check(const struct amp_session_access *a, const struct amp_session_access *p,
                             struct amp_error *err)
{
    const struct amp_span *out = outside_find(a->read, a->n_read, p->read, p->n_read);
    const char *how = "read";

    if (!out) {
        out = outside_find(a->write, a->n_write, p->write, p->n_write);
        how = "write";
    }
    if (out)
        return REFUSED(E_PERMISSION_DENIED, "%s access to %.*s is not within that of its parent",
                       how, AMP_CLIP(*out, 400));
    if (a->network > p->network)
        return REFUSED(E_PERMISSION_DENIED, "its network access is %s, and its parent's is %s",
                       amp_aop_network_name((enum amp_aop_network)a->network),
                       amp_aop_network_name((enum amp_aop_network)p->network));
    return 0;
}

int amp_session_delegates(struct amp_store *s, const struct amp_view *parent,
                          const struct amp_view *child, struct amp_error *err)
{
    AMP_SESSION_READ mine = {.dirs = NULL};
    AMP_SESSION_READ of = {.dirs = NULL};
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task rec;

    if (amp_session_read_task(parent, &mine, err) < 0 || amp_session_read_task(child, &of, err) < 0)
        return -1;
    if (!mine.t.delegates)
        return REFUSED(E_PERMISSION_DENIED,
                       "constraints.delegation_allowed of the TASK is not true");
    int found = amp_session_task_find(s, mine.t.session, mine.t.id, &mem, &rec, err);
    if (found < 0)
        return -1;
    int64_t depth = (found ? rec.depth : 1) + 1;
    if (depth > AMP_SESSION_DEPTH_MOST)
        return REFUSED(E_MAX_DEPTH_EXCEEDED, "it is on level %lld of the delegation (at most %d)",
                       (long long)depth, AMP_SESSION_DEPTH_MOST);
    return amp_session_access_check(&of.t.access, &mine.t.access, err);
}
