/* Which messages keep their order among each other. */
#include "message/order.h"

struct amp_span amp_order_key(const struct amp_view *v)
{
    static const struct amp_span none = {"", 0};
    if (v->protocol == AMP_PROTO_RTP)
        return v->correlation;
    if (v->kind != AMP_KIND_NEGOTIATION && v->kind != AMP_KIND_VOTE)
        return none;
    /* Its correlation is its id (§17); few of its events name it in their payload too. */
    if (v->correlation.n > 0)
        return v->correlation;
    return v->kind == AMP_KIND_NEGOTIATION ? v->body.negotiation.negotiation : none;
}

struct amp_span amp_order_source(const struct amp_view *v)
{
    if (!v->has_sequence)
        return (struct amp_span){"", 0};
    return v->protocol == AMP_PROTO_SW4RM ? v->from : v->node;
}
