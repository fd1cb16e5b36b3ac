/* The time limits of messages: the protocols' terms and the settings. */
#include "message/delivery/ledger/timeouts.h"

#include <string.h>

#include <amp/base/num.h>

#include "base/codes.h"
#include "message/protocol/delivery.h"

#define YEAR_MS INT64_C(31536000000)

/* The settings; 0: the protocol's. sla_ms -1: no limit. */
static struct {
    int64_t ack_timeout_ms[AMP_PROTO_COUNT], sla_ms;
} set;

static bool is_silent(const struct amp_delivery_terms *t, const struct amp_view *v)
{
    return v->type.n == 0 || amp_terms_has(t->silent, v->type);
}

int amp_timeouts_set_ack(void *arg, const char *text, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    struct amp_span name = {text, eq ? (size_t)(eq - text) : strlen(text)};
    enum amp_protocol p = amp_protocol_find(name);
    (void)arg;
    if (!eq || !amp_delivery_of(p)->acknowledges)
        return amp_fail(err, AMP_USAGE, bad_protocol,
                        "expected amp=TIME, sw4rm=TIME or rtp=TIME, not '%.100s'", text);
    return amp_num_duration(amp_span_str(eq + 1), 1, YEAR_MS, &set.ack_timeout_ms[p], err);
}

void amp_timeouts_reset(void)
{
    memset(set.ack_timeout_ms, 0, sizeof set.ack_timeout_ms);
}

int amp_timeouts_set_sla(void *arg, const char *text, struct amp_error *err)
{
    int64_t ms;
    (void)arg;
    if (amp_num_duration(amp_span_str(text), 0, YEAR_MS, &ms, err) < 0)
        return -1;
    set.sla_ms = ms > 0 ? ms : -1;
    return 0;
}

int64_t amp_timeouts_ack(const struct amp_view *v)
{
    const struct amp_delivery_terms *t = amp_delivery_of(v->protocol);
    int64_t ours = set.ack_timeout_ms[v->protocol];
    if (v->needs_ack)
        return ours > 0 && !v->has_ack_timeout ? ours : v->ack_timeout_ms;
    if (t->work_is_ack)
        return t->work_ms(v);
    if (t->ack_timeout_ms == 0 || is_silent(t, v))
        return 0;
    return ours > 0 ? ours : t->ack_timeout_ms;
}

int64_t amp_timeouts_sla(const struct amp_view *v)
{
    const struct amp_delivery_terms *t = amp_delivery_of(v->protocol);
    if (t->work_ms && !t->work_is_ack)
        return t->work_ms(v);
    if (t->sla_ms == 0 || !v->wants_outcome || is_silent(t, v))
        return 0;
    if (set.sla_ms != 0)
        return set.sla_ms > 0 ? set.sla_ms : 0;
    return t->sla_ms;
}
