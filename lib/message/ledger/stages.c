/* The table of acknowledgements. */
#include "message/ledger/stages.h"

#include <string.h>

#include <amp/base/num.h>
#include <amp/protocol/aop_policy.h>

#define YEAR_MS INT64_C(31536000000)

/* 0: as the protocol says. */
static struct {
    int64_t ack_timeout_ms[AMP_PROTO_COUNT], sla_ms;
} set;

static const char *const sw4rm_silent[] = {"ACKNOWLEDGEMENT", "HEARTBEAT", NULL};
static const char *const rtp_silent[] = {"ack", "signal", "dead_letter", NULL};
static const char *const none[] = {NULL};

/* An AMP message says whether it wants one; its type has the time (300 s). */
static const struct amp_stages table[] = {
    {AMP_PROTO_AMP, AMP_STAGE_READ, 0, 0, none, "AMP/1.0 envelope, requires_ack"},
    {AMP_PROTO_SW4RM, AMP_STAGE_RECEIVED, 10000, 0, sw4rm_silent, "SW4RM §11, §20"},
    {AMP_PROTO_RTP, AMP_STAGE_RECEIVED, 20000, 120000, rtp_silent, "Runtime Protocol §6"},
};

const struct amp_stages *amp_stages_of(enum amp_protocol p)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (table[i].protocol == p)
            return &table[i];
    return NULL;
}

static bool is_silent(const struct amp_stages *s, const struct amp_view *v)
{
    for (const char *const *t = s->silent; *t; t++)
        if (amp_span_is(v->type, *t))
            return true;
    return v->type.n == 0;
}

/* A TASK says how long it may take, until its RESPONSE (AOP §11). */
static int64_t task_timeout(const struct amp_view *v)
{
    struct amp_aop_policy policy;
    amp_aop_policy(v, &policy);
    int64_t s = policy.timeout_seconds.value;
    return s > 0 && s <= INT64_C(31536000) ? s * 1000 : 0;
}

int amp_stages_set_timeout(void *arg, const char *text, struct amp_error *err)
{
    const char *eq = strchr(text, '=');
    struct amp_span name = {text, eq ? (size_t)(eq - text) : strlen(text)};
    enum amp_protocol p = amp_protocol_find(name);
    (void)arg;
    if (!eq || !amp_stages_of(p))
        return amp_fail(err, AMP_USAGE, "bad_protocol",
                        "how long is waited is amp=TIME, sw4rm=TIME or rtp=TIME, not '%.100s'",
                        text);
    return amp_num_duration(amp_span_str(eq + 1), 1, YEAR_MS, &set.ack_timeout_ms[p], err);
}

void amp_stages_reset_timeouts(void)
{
    memset(set.ack_timeout_ms, 0, sizeof set.ack_timeout_ms);
}

int amp_stages_set_sla(void *arg, const char *text, struct amp_error *err)
{
    int64_t ms;
    (void)arg;
    if (amp_num_duration(amp_span_str(text), 0, YEAR_MS, &ms, err) < 0)
        return -1;
    set.sla_ms = ms > 0 ? ms : -1;
    return 0;
}

bool amp_stages_beat(const struct amp_view *v, int64_t *beat_ms, bool *warns)
{
    struct amp_aop_policy p;
    if (v->protocol != AMP_PROTO_AOP || v->kind != AMP_KIND_DISPATCH || !v->tape || v->tape->n == 0)
        return false;
    amp_aop_policy(v, &p);
    double ms = p.heartbeat_seconds * 1000 * (double)p.heartbeat_missed_most.value;
    if (!p.heartbeat.value || !(ms >= 1) || ms > 31536000000.0 ||
        p.on_heartbeat_failure.value == AMP_AOP_SILENCE_CONTINUE)
        return false;
    *beat_ms = (int64_t)ms;
    *warns = p.on_heartbeat_failure.value == AMP_AOP_SILENCE_WARN;
    return true;
}

int64_t amp_stages_timeout(const struct amp_view *v)
{
    const struct amp_stages *s = amp_stages_of(v->protocol);
    int64_t ours = set.ack_timeout_ms[v->protocol];
    if (v->needs_ack)
        return ours > 0 && !v->has_ack_timeout ? ours : v->ack_timeout_ms;
    if (v->protocol == AMP_PROTO_AOP && v->kind == AMP_KIND_DISPATCH && v->id.n > 0)
        return task_timeout(v);
    if (!s || s->ack_timeout_ms == 0 || is_silent(s, v))
        return 0;
    return ours > 0 ? ours : s->ack_timeout_ms;
}

/* A TOOL_CALL says how long it may be at work (SW4RM §18.2, §18.5.1). */
static int64_t call_timeout(const struct amp_view *v)
{
    int64_t most = v->body.tool_call.timeout_ms, wall = v->body.tool_call.wall_ms;
    if (most <= 0 || (wall > 0 && wall < most))
        most = wall;
    return most > 0 && most <= YEAR_MS ? most : 0;
}

int64_t amp_stages_sla(const struct amp_view *v)
{
    const struct amp_stages *s = amp_stages_of(v->protocol);
    if (v->protocol == AMP_PROTO_SW4RM && v->kind == AMP_KIND_TOOL_CALL)
        return call_timeout(v);
    if (!s || s->sla_ms == 0 || !v->wants_outcome || is_silent(s, v))
        return 0;
    if (set.sla_ms != 0)
        return set.sla_ms > 0 ? set.sla_ms : 0;
    return s->sla_ms;
}
