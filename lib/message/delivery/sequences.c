/* Messages that keep their order. */
#include "message/delivery/sequences.h"

#include <string.h>

#include "message/protocol/answers.h"
#include "message/protocol/work.h"

static bool is_numbered_by_producer(const struct amp_view *v)
{
    return amp_answers_of(v->protocol)->numbering == AMP_NUMBERED_BY_PRODUCER;
}

struct amp_span amp_sequence_key(const struct amp_view *v)
{
    static const struct amp_span none = {"", 0};
    if (amp_work_of(v->protocol)->orders_conversations)
        return v->correlation;
    if (v->kind != AMP_KIND_NEGOTIATION && v->kind != AMP_KIND_VOTE)
        return none;
    /* The correlation is the negotiation's id (§17); few events have it in their payload, too. */
    if (v->correlation.n > 0)
        return v->correlation;
    return v->kind == AMP_KIND_NEGOTIATION ? v->body.negotiation.negotiation : none;
}

struct amp_span amp_sequence_source(const struct amp_view *v)
{
    if (!v->has_sequence)
        return (struct amp_span){"", 0};
    return is_numbered_by_producer(v) ? v->from : v->node;
}

int amp_sequence_stream(const struct amp_view *v, struct amp_buf *mem, struct amp_span *out,
                        struct amp_error *err)
{
    static const struct amp_span producer = AMP_SPAN("sw4rm:"), node = AMP_SPAN("rtp:");
    struct amp_span name = amp_sequence_source(v), before = {"", 0};
    if (is_numbered_by_producer(v))
        before = producer;
    else if (amp_span_starts(name, "sw4rm:") || amp_span_starts(name, "rtp:"))
        before = node;
    *out = name;
    if (name.n == 0 || before.n == 0)
        return 0;
    amp_buf_reset(mem);
    if (amp_buf_add(mem, before.p, before.n, err) < 0 || amp_buf_add(mem, name.p, name.n, err) < 0)
        return -1;
    *out = amp_buf_span(mem);
    return 0;
}
