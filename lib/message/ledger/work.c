/* Who is at work on a message of AMP. */
#include "message/ledger/work.h"

#include "protocol/terms.h"

bool amp_work_is(const struct amp_message_rec *r)
{
    const struct amp_watched *work = amp_terms_of(amp_protocol_find(r->protocol))->watched;
    while (work && work->type && !amp_span_is(r->type, work->type))
        work++;
    return work && work->type && !amp_span_is(r->to, "coordinator");
}

/* AMP's messages name the role of their sender; who read the message is known by its own name. */
bool amp_work_holds(const struct amp_message_rec *r, const char *by)
{
    return amp_span_is(r->holder, by) || amp_span_is(r->to, by) ||
           (r->for_many && !amp_span_is(r->from, by));
}
