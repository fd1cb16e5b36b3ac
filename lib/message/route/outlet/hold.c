/* Looks up whether a message is suspended. A state that cannot be read changes nothing: the router
 * reports it at its next access. */
#include "message/route/outlet/hold.h"

#include <amp/protocol/protocol.h>

#include "message/protocol/question.h"

void amp_route_hold_init(struct amp_route_hold *h, const struct amp_route_run *run)
{
    *h = (struct amp_route_hold){.run = run};
}

void amp_route_hold_release(struct amp_route_hold *h)
{
    amp_pause_watch_close(&h->pauses);
    amp_reader_free(h->reader);
    h->reader = NULL;
}

bool amp_route_hold_look(struct amp_route_hold *h)
{
    const struct amp_pause *any;
    if (!h->run->store || h->run->dry)
        return false;
    if (!h->pauses.store)
        amp_pause_watch_open(&h->pauses, h->run->store);
    if (!amp_pause_watch_due(&h->pauses) ||
        amp_pause_look(&h->pauses, AMP_SPAN(""), AMP_SPAN(""), &any, NULL) < 0 ||
        h->pauses.now.rev == h->rev)
        return false;
    h->rev = h->pauses.now.rev;
    return true;
}

/* Whether the message asks a person. */
static bool is_for_people(const struct amp_view *v)
{
    const struct amp_question_terms *q = amp_questions_of(v->protocol);
    return q && q->asks(v);
}

static const struct amp_pause *agent_find(const struct amp_pauses *p, const struct parcel *j,
                                          const struct amp_view *v, const char *agent)
{
    const struct amp_pause *found = NULL;
    if (j->address.name)
        return amp_pauses_find(p, AMP_SPAN(""), amp_span_str(j->address.name));
    if (agent)
        found = amp_pauses_find(p, AMP_SPAN(""), amp_span_str(agent));
    for (uint32_t i = 0; i < v->n_to && !found; i++)
        found = amp_pauses_find(p, AMP_SPAN(""), v->to[i]);
    return found;
}

const struct amp_pause *amp_route_hold_find(struct amp_route_hold *h, const struct parcel *j,
                                            const char *agent, bool runs)
{
    static const struct amp_check_options any = {0};
    const struct amp_pauses *p = &h->pauses.now;
    struct amp_view v;
    if (p->n_v == 0 || j->answer || j->copy || j->carried)
        return NULL;
    const struct amp_pause *all = amp_pauses_find(p, AMP_SPAN(""), AMP_SPAN(""));
    if (!h->reader && !(h->reader = amp_reader_new(NULL, NULL)))
        return &p->v[0];
    if (amp_reader_line(h->reader, amp_parcel_whole(j), &any, &v, NULL, NULL, NULL) <= 0)
        return all;
    if (all)
        return is_for_people(&v) ? NULL : all;
    const struct amp_pause *found = agent_find(p, j, &v, agent);
    if (!found && (runs || amp_parcel_is_work(&v)))
        found = amp_pauses_find(p, v.task, AMP_SPAN(""));
    return found;
}
