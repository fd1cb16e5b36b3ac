/*
 * Runtime Protocol v1: what the schemas cannot say of one message. Rules look at the view and the
 * tape alone; they also run on lines that their schema refused, so none may rely on a field being
 * there. What needs other messages (numbers, attempts, claims) is asked of the state.
 */
#include <string.h>

#include "protocol/rtp/rtp.h"
#include "protocol/spec.h"

static uint32_t member(const struct amp_check *c, struct amp_span key, enum amp_json_type type)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t payload = c->v->payload;
    if (payload == AMP_TOK_NONE || t->tok[payload].type != AMP_JSON_OBJECT)
        return AMP_TOK_NONE;
    uint32_t tok = amp_tape_get(t, payload, key);
    return tok != AMP_TOK_NONE && t->tok[tok].type == type ? tok : AMP_TOK_NONE;
}

/* A text or a list that says something. */
static bool says(const struct amp_check *c, struct amp_span key, enum amp_json_type type)
{
    uint32_t tok = member(c, key, type);
    if (tok == AMP_TOK_NONE)
        return false;
    const struct amp_tok *k = &c->v->tape->tok[tok];
    return type == AMP_JSON_ARRAY ? k->count > 0 : k->len > 0;
}

static void has_payload(struct amp_check *c)
{
    if (c->v->payload == AMP_TOK_NONE && !amp_object_has(c->v->tape, 0, "payloadRef"))
        amp_check_rule(c, AMP_SEV_ERROR, "bad_value", "required", "/payload",
                       "a payload, or a payloadRef", "is missing");
}

static void expiry(struct amp_check *c)
{
    const struct amp_view *v = c->v;
    if (v->expires_ms == 0)
        return;
    if (v->created_ms > 0 && v->expires_ms <= v->created_ms)
        amp_check_rule(c, AMP_SEV_ERROR, "expired", "expiry", "/expiresAt", "later than createdAt",
                       "is before the event's createdAt");
    else if (c->opt->now_ms > 0 && v->expires_ms <= c->opt->now_ms)
        amp_check_rule(c, AMP_SEV_ERROR, "expired", "expiry", "/expiresAt", "a time in the future",
                       "has passed");
}

static void eta_time(struct amp_check *c, struct amp_span key, const char *pointer)
{
    int64_t eta;
    uint32_t tok = member(c, key, AMP_JSON_STRING);
    if (tok == AMP_TOK_NONE || !amp_time_parse(amp_tok_raw(c->v->tape, tok), &eta))
        return;
    if (c->v->created_ms > 0 && eta < c->v->created_ms)
        amp_check_rule(c, AMP_SEV_ERROR, "eta_in_past", "eta", pointer, "not before createdAt",
                       "is before the event's createdAt");
    else if (c->opt->now_ms > 0 && eta < c->opt->now_ms)
        amp_check_rule(c, AMP_SEV_ERROR, "eta_in_past", "eta", pointer, "a time in the future",
                       "has passed");
}

static void eta(struct amp_check *c)
{
    eta_time(c, AMP_SPAN("etaAt"), "/payload/etaAt");
}

static void revised_eta(struct amp_check *c)
{
    eta_time(c, AMP_SPAN("revisedEtaAt"), "/payload/revisedEtaAt");
}

static void eta_given(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    if (c->v->payload == AMP_TOK_NONE || amp_object_has(t, c->v->payload, "etaAt") ||
        amp_object_has(t, c->v->payload, "etaSeconds"))
        return;
    amp_check_rule(c, AMP_SEV_ERROR, "eta_required", "required", "/payload/etaAt",
                   "etaAt or etaSeconds", "is missing");
}

/* A member of the payload that is absent, or there and empty. */
static void lacks(struct amp_check *c, const char *code, const char *rule, const char *pointer,
                  const char *expected, const char *why)
{
    bool absent = amp_tape_pointer(c->v->tape, 0, amp_span_str(pointer)) == AMP_TOK_NONE;
    amp_check_rule(c, AMP_SEV_ERROR, code, absent ? "required" : rule, pointer, expected, "%s: %s",
                   absent ? "is missing" : "says nothing", why);
}

/* The seed has one code for it; ours says which part of the route is at fault. */
static void route(struct amp_check *c)
{
    static const char seed[] = "no_route";
    if (c->v->payload == AMP_TOK_NONE)
        return;
    for (unsigned i = 0; i < c->n; i++)
        if (strcmp(c->found[i].code, "invalid_targets") == 0)
            c->found[i].seed_code = seed;
    if (says(c, AMP_SPAN("toAgents"), AMP_JSON_ARRAY) ||
        says(c, AMP_SPAN("requiredCapabilities"), AMP_JSON_ARRAY))
        return;
    unsigned before = c->n;
    lacks(c, "missing_route_fields", "route", "/payload/requiredCapabilities",
          "at least one capability, or toAgents", "no agent is named either");
    if (c->n > before)
        c->found[before].seed_code = seed;
}

static void result(struct amp_check *c)
{
    if (c->v->payload != AMP_TOK_NONE && !says(c, AMP_SPAN("resultSummary"), AMP_JSON_STRING) &&
        !says(c, AMP_SPAN("resultRef"), AMP_JSON_STRING))
        lacks(c, "result_required", "result", "/payload/resultSummary",
              "a resultSummary or a resultRef", "the task has no result");
}

/* A task that failed says why. */
static void update_failed(struct amp_check *c)
{
    if (c->v->payload != AMP_TOK_NONE &&
        amp_object_is(c->v->tape, c->v->payload, "status", "failed") &&
        !says(c, AMP_SPAN("note"), AMP_JSON_STRING) &&
        !says(c, AMP_SPAN("result"), AMP_JSON_STRING))
        lacks(c, "diagnostics_required", "diagnostics", "/payload/note", "a note or a result",
              "does not describe the failure");
}

static void failure(struct amp_check *c)
{
    amp_rtp_failure_class(c, c->v->payload, "/payload/failureClass", NULL);
}

static void review_failure(struct amp_check *c)
{
    amp_rtp_failure_class(c, 0, "/failureClass", "sla_breach");
}

/* An ack stands in the outbox of the gateway that gives it. */
static void outbox(struct amp_check *c)
{
    const struct amp_tape *t = c->v->tape;
    uint32_t by = member(c, AMP_SPAN("ackedByNodeId"), AMP_JSON_STRING);
    uint32_t at = amp_tape_get(t, 0, AMP_SPAN("sourceNodeId"));
    if (by == AMP_TOK_NONE || at == AMP_TOK_NONE || t->tok[at].type != AMP_JSON_STRING ||
        amp_tape_equal(t, by, t, at))
        return;
    amp_check_rule(c, AMP_SEV_WARNING, "foreign_outbox", "outbox", "/payload/ackedByNodeId",
                   "the same as sourceNodeId", "does not own the outbox of the ack");
}

#define K(kind) (1u << AMP_RTP_##kind)
#define EVENTS  (K(CATALOG) - 1)
#define ACCEPTS (K(ACCEPT) | K(ACK_ACCEPT))

static const struct {
    void (*run)(struct amp_check *c);
    unsigned kinds;
} rules[] = {
    {has_payload, EVENTS},       {expiry, EVENTS},
    {route, K(CREATE)},          {eta_given, ACCEPTS},
    {eta, ACCEPTS | K(ACK)},     {revised_eta, K(UPDATE)},
    {result, K(COMPLETE)},       {outbox, K(ACK)},
    {update_failed, K(UPDATE)},  {failure, K(FAILED)},
    {review_failure, K(REVIEW)},
};

void amp_rtp_rules(struct amp_check *c)
{
    enum amp_rtp_kind kind = amp_rtp_row_kind(c->row);
    for (unsigned i = 0; i < AMP_SPEC_COUNT(rules); i++)
        if (rules[i].kinds & (1u << kind))
            rules[i].run(c);
}
