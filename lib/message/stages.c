/* The table of acknowledgements. */
#include "message/stages.h"

static const char *const sw4rm_silent[] = {"ACKNOWLEDGEMENT", "HEARTBEAT", NULL};
static const char *const rtp_silent[] = {"ack", "signal", "dead_letter", NULL};
static const char *const none[] = {NULL};

/* An AMP message says whether it wants one; its type has the time (300 s). */
static const struct amp_stages table[] = {
    {AMP_PROTO_AMP, AMP_STAGE_READ, 0, none, "AMP/1.0 envelope, requires_ack"},
    {AMP_PROTO_SW4RM, AMP_STAGE_RECEIVED, 10000, sw4rm_silent, "SW4RM §11, §20"},
    {AMP_PROTO_RTP, AMP_STAGE_RECEIVED, 20000, rtp_silent, "Runtime Protocol §6"},
};

const struct amp_stages *amp_stages_of(enum amp_protocol p)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].protocol == p)
            return &table[i];
    return NULL;
}

int64_t amp_stages_timeout(const struct amp_view *v)
{
    const struct amp_stages *s = amp_stages_of(v->protocol);
    if (v->needs_ack)
        return v->ack_timeout_ms;
    if (!s || v->type.n == 0)
        return 0;
    for (const char *const *t = s->silent; *t; t++)
        if (amp_span_is(v->type, *t))
            return 0;
    return s->ack_timeout_ms;
}
