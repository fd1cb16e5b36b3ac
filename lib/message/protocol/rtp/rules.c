/*
 * Runtime Protocol v1: the rules about one message that a schema cannot express. They read only the
 * view and the tape, and also run on lines that violate their schema, so any field may be missing.
 * Rules about several messages (numbers, attempts, claims) need the state.
 */
#include <string.h>

#include "base/codes.h"
#include "message/protocol/rtp/rtp.h"
#include "message/protocol/spec.h"

/* Whether the payload has a text or a list that is not empty. */
static bool has_value(const struct amp_check *c, const char *key, enum amp_json_type type)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t tok = amp_object_get(t, c->v->payload, key, type);
    return tok != AMP_TOK_NONE &&
           (type == AMP_JSON_ARRAY ? t->tok[tok].count > 0 : t->tok[tok].len > 0);
}

static void payload_check(struct amp_check *c)
{
    if (c->v->payload == AMP_TOK_NONE && !amp_object_has(c->v->tape, 0, "payloadRef"))
        amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(bad_value), "required", "/payload",
                       "a payload, or a payloadRef", "is missing");
}

/* Reports a time that is too early for the event, or that has passed at the time of the check. */
static void time_check(struct amp_check *c, const char *code, const char *rule, const char *pointer,
                       const char *expected, bool is_early, bool has_passed)
{
    if (c->v->created_ms > 0 && is_early)
        amp_check_rule(c, AMP_SEV_ERROR, code, rule, pointer, expected,
                       "is before the event's createdAt");
    else if (c->opt->now_ms > 0 && has_passed)
        amp_check_rule(c, AMP_SEV_ERROR, code, rule, pointer, "a time in the future", "has passed");
}

static void expiry_check(struct amp_check *c)
{
    int64_t ms = c->v->expires_ms;
    if (ms != 0)
        time_check(c, AMP_CODE(expired), "expiry", "/expiresAt", "later than createdAt",
                   ms <= c->v->created_ms, ms <= c->opt->now_ms);
}

static void eta_time_check(struct amp_check *c, const char *key, const char *pointer)
{
    int64_t ms;
    uint32_t tok = amp_object_get(c->v->tape, c->v->payload, key, AMP_JSON_STRING);
    if (tok != AMP_TOK_NONE && amp_time_parse(amp_tok_raw(c->v->tape, tok), &ms))
        time_check(c, AMP_CODE(eta_in_past), "eta", pointer, "not before createdAt",
                   ms < c->v->created_ms, ms < c->opt->now_ms);
}

static void eta_check(struct amp_check *c)
{
    eta_time_check(c, "etaAt", "/payload/etaAt");
}

static void revised_eta_check(struct amp_check *c)
{
    eta_time_check(c, "revisedEtaAt", "/payload/revisedEtaAt");
}

static void eta_given_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    if (c->v->payload == AMP_TOK_NONE || amp_object_has(t, c->v->payload, "etaAt") ||
        amp_object_has(t, c->v->payload, "etaSeconds"))
        return;
    amp_check_rule(c, AMP_SEV_ERROR, AMP_CODE(eta_required), "required", "/payload/etaAt",
                   "etaAt or etaSeconds", "is missing");
}

/* Reports a member of the payload that is missing or empty. */
static void lack_report(struct amp_check *c, const char *code, const char *rule,
                        const char *pointer, const char *expected, const char *why)
{
    bool absent = amp_tape_pointer(c->v->tape, 0, amp_span_str(pointer)) == AMP_TOK_NONE;
    amp_check_rule(c, AMP_SEV_ERROR, code, absent ? "required" : rule, pointer, expected, "%s: %s",
                   absent ? "is missing" : "says nothing", why);
}

/* The protocol has one code; the codes here also name the part of the route at fault. */
static void route_check(struct amp_check *c)
{
    static const char seed[] = "no_route";
    if (c->v->payload == AMP_TOK_NONE)
        return;
    for (unsigned i = 0; i < c->n; i++)
        if (amp_code_is(c->found[i].code, invalid_targets))
            c->found[i].seed_code = seed;
    if (has_value(c, "toAgents", AMP_JSON_ARRAY) ||
        has_value(c, "requiredCapabilities", AMP_JSON_ARRAY))
        return;
    unsigned before = c->n;
    lack_report(c, AMP_CODE(missing_route_fields), "route", "/payload/requiredCapabilities",
                "at least one capability, or toAgents", "no agent is named either");
    if (c->n > before)
        c->found[before].seed_code = seed;
}

static void result_check(struct amp_check *c)
{
    if (c->v->payload != AMP_TOK_NONE && !has_value(c, "resultSummary", AMP_JSON_STRING) &&
        !has_value(c, "resultRef", AMP_JSON_STRING))
        lack_report(c, AMP_CODE(result_required), "result", "/payload/resultSummary",
                    "a resultSummary or a resultRef", "the task has no result");
}

/* An update about a failed task describes the failure. */
static void update_check(struct amp_check *c)
{
    if (c->v->payload != AMP_TOK_NONE &&
        amp_object_is(c->v->tape, c->v->payload, "status", "failed") &&
        !has_value(c, "note", AMP_JSON_STRING) && !has_value(c, "result", AMP_JSON_STRING))
        lack_report(c, AMP_CODE(diagnostics_required), "diagnostics", "/payload/note",
                    "a note or a result", "does not describe the failure");
}

static void failure_check(struct amp_check *c)
{
    amp_rtp_failure_class(c, c->v->payload, "/payload/failureClass", NULL);
}

static void review_check(struct amp_check *c)
{
    amp_rtp_failure_class(c, 0, "/failureClass", "sla_breach");
}

/* An ack is in the outbox of the gateway that sends it. */
static void outbox_check(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t by = amp_object_get(t, c->v->payload, "ackedByNodeId", AMP_JSON_STRING);
    uint32_t at = amp_object_get(t, 0, "sourceNodeId", AMP_JSON_STRING);
    if (by == AMP_TOK_NONE || at == AMP_TOK_NONE || amp_tape_equal(t, by, t, at))
        return;
    amp_check_rule(c, AMP_SEV_WARNING, AMP_CODE(foreign_outbox), "outbox", "/payload/ackedByNodeId",
                   "the same as sourceNodeId", "does not own the outbox of the ack");
}

#define K(kind) (1u << AMP_RTP_##kind)
#define EVENTS  (K(CATALOG) - 1)
#define ACCEPTS (K(ACCEPT) | K(ACK_ACCEPT))

static const struct {
    void (*run)(struct amp_check *c);
    unsigned kinds;
} rules[] = {
    {payload_check, EVENTS},     {expiry_check, EVENTS},        {route_check, K(CREATE)},
    {eta_given_check, ACCEPTS},  {eta_check, ACCEPTS | K(ACK)}, {revised_eta_check, K(UPDATE)},
    {result_check, K(COMPLETE)}, {outbox_check, K(ACK)},        {update_check, K(UPDATE)},
    {failure_check, K(FAILED)},  {review_check, K(REVIEW)},
};

void amp_rtp_rules(struct amp_check *c)
{
    enum amp_rtp_kind kind = amp_rtp_row_kind(c->row);
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rules); i++)
        if (rules[i].kinds & (1u << kind))
            rules[i].run(c);
}
