/*
 * The effects of one message. The registry takes registrations, deregistrations, heartbeats and
 * published capabilities; it passes on all other messages.
 */
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/routing.h"
#include "registry.h"
#include "json/record.h"

static struct amp_span member_text(const json_t *j, const char *key)
{
    const json_t *s = json_object_get(j, key);
    return (struct amp_span){json_string_value(s), json_string_length(s)};
}

/* ---- answers */

static int answer_add(struct registry *r, const struct amp_view *v, enum amp_ack_stage stage,
                      const char *code, const char *note, struct amp_error *err)
{
    struct amp_answer a = {
        .stage = stage, .by = r->name, .code = code, .note = note, .now_ms = amp_now_ms()};
    if (!r->answer || !amp_routing_of(v->protocol)->registry_answers || v->kind == AMP_KIND_ACK ||
        v->id.n == 0 || v->id.n > 512 || v->from.n == 0)
        return 0;
    /* Earlier lines have lower numbers, so they are written first. */
    if ((r->out.fd >= 0 && reg_emit(r, err) < 0) ||
        amp_sequence_answer(r->dir.store, v, r->name, &a, err) < 0)
        return -1;
    return amp_answer_line(v, &a, &r->turn, err);
}

int reg_answer_bad(struct registry *r, const struct amp_view *v, const char *code,
                   const char *field, struct amp_error *err)
{
    return answer_add(r, v, AMP_STAGE_REJECTED, code, *field ? field : code, err);
}

/* ---- the actions */

static int do_register(struct registry *r, const struct amp_view *v, json_t *agent,
                       struct amp_error *err)
{
    struct amp_registration reg = {
        .agent = agent, .id = v->id, .bytes = v->message, .signing = reg_signing};
    return amp_directory_register(&r->dir, &reg, amp_now_ms(), err);
}

/* The agent of a sign of life; empty: a request for one, which names an agent and reports nothing.
 */
static struct amp_span beat_agent(const struct amp_view *v, const json_t *p)
{
    struct amp_span agent = member_text(p, "agent_id");
    if (agent.n == 0)
        return v->from;
    bool reports = json_object_get(p, "state") || json_object_get(p, "health") ||
                   json_object_get(p, "ok") || amp_span_eq(agent, v->from);
    return reports ? agent : (struct amp_span){"", 0};
}

static int do_beat(struct registry *r, const struct amp_view *v, const json_t *p,
                   struct amp_error *err)
{
    struct amp_beat b = {.agent = beat_agent(v, p),
                         .correlation = v->correlation,
                         .reported = json_string_value(json_object_get(p, "state")),
                         .health = json_object_get(p, "health")};
    if (b.agent.n == 0)
        return 1;
    return amp_directory_beat(&r->dir, &b, amp_now_ms(), NULL, err);
}

/* An acknowledgement of a heartbeat is a sign of life. 1: it is not of a heartbeat. */
static int do_ack(struct registry *r, const struct amp_view *v, struct amp_error *err)
{
    struct amp_agent_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    if (v->from.n == 0 || v->body.ack.ref.n == 0)
        return 1;
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_agent_find(r->dir.store, v->from, &mem, &rec, err) < 0)
        return -1;
    if (!amp_span_is(v->body.ack.ref, rec.reach.asked.id))
        return 1;
    struct amp_beat b = {.agent = v->from, .ref = v->body.ack.ref};
    return amp_directory_beat(&r->dir, &b, amp_now_ms(), NULL, err);
}

static int do_deregister(struct registry *r, const struct amp_view *v, const json_t *p,
                         struct amp_error *err)
{
    struct amp_span agent = member_text(p, "agent_id");
    return amp_directory_deregister(&r->dir, agent.n > 0 ? agent : v->from,
                                    json_string_value(json_object_get(p, "reason")), amp_now_ms(),
                                    err);
}

static int do_publish(struct registry *r, const struct amp_view *v, struct amp_error *err)
{
    json_auto_t *c = amp_json_load(v->text, err);
    if (!c)
        return -1;
    struct amp_publication p = {
        .catalog = c, .skills = reg_skills, .required_ms = reg_required_ms, .routing = reg_routing};
    return amp_capability_publish(&r->dir, &p, amp_now_ms(), NULL, err);
}

static enum amp_registry_act act_of(const struct amp_view *v)
{
    const struct amp_routing_terms *t = amp_routing_of(v->protocol);
    return t->registry ? t->registry(v) : AMP_REGISTRY_NONE;
}

/* 1: the message has no effect on the registry. */
static int act_run(struct registry *r, const struct amp_view *v, enum amp_registry_act act,
                   struct amp_error *err)
{
    if (act == AMP_REGISTRY_NONE)
        return 1;
    if (act == AMP_REGISTRY_ACK)
        return do_ack(r, v, err);
    if (act == AMP_REGISTRY_PUBLISH)
        return do_publish(r, v, err);
    json_auto_t *p = NULL;
    if (v->payload != AMP_TOK_NONE && v->tape->tok[v->payload].type == AMP_JSON_OBJECT &&
        !(p = amp_json_load(amp_tok_source(v->tape, v->payload), err)))
        return -1;
    switch (act) {
    case AMP_REGISTRY_REGISTER:
        return do_register(r, v, json_object_get(p, "agent"), err);
    case AMP_REGISTRY_DESCRIPTOR:
        return do_register(r, v, p, err);
    case AMP_REGISTRY_DEREGISTER:
        return do_deregister(r, v, p, err);
    default:
        return do_beat(r, v, p, err);
    }
}

enum reg_taken reg_take(struct registry *r, const struct amp_view *v, struct amp_error *refused,
                        struct amp_error *err)
{
    struct amp_error e = {0};
    enum amp_registry_act what = act_of(v);
    int rc = act_run(r, v, what, &e);
    if (rc == 1)
        return REG_PASSES;
    if (rc == 0) {
        /* A sign of life needs no answer. */
        if (what != AMP_REGISTRY_BEAT && answer_add(r, v, AMP_STAGE_FULFILLED, NULL, NULL, err) < 0)
            return REG_FAILED;
        return REG_TAKEN;
    }
    if (e.status != AMP_NO) {
        *err = e;
        return REG_FAILED;
    }
    *refused = e;
    const char *code = amp_code_is(e.code, not_registered) ? AMP_CODE(not_found) : e.code;
    return answer_add(r, v, AMP_STAGE_REJECTED, code, e.what, err) < 0 ? REG_FAILED : REG_TAKEN;
}
