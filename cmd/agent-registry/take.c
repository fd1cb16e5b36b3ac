/*
 * What one message means to the registry. Registrations, deregistrations, heartbeats and published
 * capabilities are its own; everything else is passed on.
 */
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "protocol/rtp/rtp.h"
#include "protocol/sw4rm/sw4rm.h"
#include "registry.h"

static struct amp_span member(const json_t *j, const char *key)
{
    const json_t *s = json_object_get(j, key);
    return (struct amp_span){json_string_value(s), json_string_length(s)};
}

/* ---- answers ---- */

static int answer(struct registry *r, const struct amp_view *v, const char *stage, const char *code,
                  const char *note, struct amp_error *err)
{
    if (!r->answer || v->id.n == 0 || v->id.n > 512)
        return 0;
    AMP_FREE char *flow = v->correlation.n <= 512 ? amp_span_dup(v->correlation) : NULL;
    json_t *p = json_pack("{s:s%, s:s, s:s*, s:s*}", "ack_for_message_id", v->id.p, v->id.n,
                          "ack_stage", stage, "error_code", code, "note", note);
    struct amp_sw4rm_say s = {.type = "ACKNOWLEDGEMENT",
                              .to = v->from,
                              .correlation = flow && *flow ? flow : NULL,
                              .now_ms = amp_now_ms()};
    /* What was said before has lower numbers, so it goes first. */
    if ((r->out.fd >= 0 && reg_emit(r, err) < 0) ||
        amp_voice_numbers(&r->dir.voice, r->dir.store, 1, s.now_ms, err) < 0) {
        json_decref(p);
        return -1;
    }
    if (amp_voice_sw4rm(&r->dir.voice, &s, p, &r->turn, NULL, err) < 0)
        return -1;
    return amp_buf_str(&r->turn, "\n", err);
}

int reg_answer_bad(struct registry *r, const struct amp_view *v, const char *code,
                   const char *field, struct amp_error *err)
{
    const char *word = strcmp(code, "oversize_payload") == 0           ? "OVERSIZE_PAYLOAD"
                       : strcmp(code, "unsupported_message_type") == 0 ? "UNSUPPORTED_MESSAGE_TYPE"
                                                                       : "VALIDATION_ERROR";
    if (v->protocol != AMP_PROTO_SW4RM || amp_span_is(v->type, "ACKNOWLEDGEMENT"))
        return 0;
    return answer(r, v, "REJECTED", word, *field ? field : code, err);
}

/* ---- the four concerns ---- */

static int do_register(struct registry *r, const struct amp_view *v, json_t *agent,
                       struct amp_error *err)
{
    struct amp_registration reg = {
        .agent = agent, .id = v->id, .bytes = v->line, .signing = reg_signing};
    return amp_directory_register(&r->dir, &reg, amp_now_ms(), err);
}

/* Whose sign of life it is; empty where it is none: a request names its agent and tells nothing. */
static struct amp_span whose(const struct amp_view *v, const json_t *p)
{
    struct amp_span agent = member(p, "agent_id");
    if (agent.n == 0)
        return v->from;
    bool tells = json_object_get(p, "state") || json_object_get(p, "health") ||
                 json_object_get(p, "ok") || amp_span_eq(agent, v->from);
    return tells ? agent : (struct amp_span){"", 0};
}

static int do_beat(struct registry *r, const struct amp_view *v, const json_t *p,
                   struct amp_error *err)
{
    struct amp_beat b = {.agent = whose(v, p),
                         .correlation = v->correlation,
                         .said = json_string_value(json_object_get(p, "state")),
                         .health = json_object_get(p, "health")};
    if (b.agent.n == 0)
        return 1;
    return amp_directory_beat(&r->dir, &b, amp_now_ms(), NULL, err);
}

/* An acknowledgement of a heartbeat that we sent is a sign of life too. 1: it is none. */
static int do_ack(struct registry *r, const struct amp_view *v, struct amp_error *err)
{
    uint8_t state;
    json_t *rec = NULL;
    if (v->from.n == 0 || v->body.ack.ref.n == 0)
        return 1;
    if (amp_directory_find(r->dir.store, v->from, &state, &rec, err) < 0)
        return -1;
    bool ours = amp_span_eq(member(json_object_get(rec, "asked"), "id"), v->body.ack.ref);
    json_decref(rec);
    if (!ours)
        return 1;
    struct amp_beat b = {.agent = v->from, .ref = v->body.ack.ref};
    return amp_directory_beat(&r->dir, &b, amp_now_ms(), NULL, err);
}

static bool deregisters(const struct amp_view *v, const json_t *p)
{
    const char *word =
        amp_span_is(v->type, "CONTROL") ? json_string_value(json_object_get(p, "command")) : NULL;
    const char *type = json_string_value(json_object_get(p, "type"));
    const char *tail = type ? strrchr(type, '.') : NULL;
    if (tail)
        type = tail + 1;
    return (word && strcasecmp(word, "deregister") == 0) ||
           (type && strcmp(type, "DeregisterAgentRequest") == 0);
}

static int do_deregister(struct registry *r, const struct amp_view *v, const json_t *p,
                         struct amp_error *err)
{
    struct amp_span agent = member(p, "agent_id");
    return amp_directory_deregister(&r->dir, agent.n > 0 ? agent : v->from,
                                    json_string_value(json_object_get(p, "reason")), amp_now_ms(),
                                    err);
}

static int sw4rm(struct registry *r, const struct amp_view *v, bool *answered,
                 struct amp_error *err)
{
    if (v->kind == AMP_KIND_ACK)
        return do_ack(r, v, err);
    if (v->payload == AMP_TOK_NONE || v->tape->tok[v->payload].type != AMP_JSON_OBJECT) {
        *answered = false;
        return v->kind == AMP_KIND_HEARTBEAT ? do_beat(r, v, NULL, err) : 1;
    }
    enum amp_sw4rm_shape shape = amp_sw4rm_shape(v, amp_sw4rm_type(v->type));
    json_t *p = amp_json_load(amp_tok_source(v->tape, v->payload), err);
    int rc;
    if (!p)
        return -1;
    if (shape == AMP_SHAPE_AGENT_REGISTRATION)
        rc = do_register(r, v, json_object_get(p, "agent"), err);
    else if (shape == AMP_SHAPE_AGENT_DESCRIPTOR)
        rc = do_register(r, v, p, err);
    else if (deregisters(v, p))
        rc = do_deregister(r, v, p, err);
    else if (shape == AMP_SHAPE_HEARTBEAT) {
        *answered = false;
        rc = do_beat(r, v, p, err);
    } else
        rc = 1;
    json_decref(p);
    return rc;
}

static int publish(struct registry *r, const struct amp_view *v, struct amp_error *err)
{
    json_t *c = amp_json_load(v->text, err);
    if (!c)
        return -1;
    struct amp_publication p = {.catalog = c, .skills = reg_skills, .required_ms = reg_required_ms};
    int rc = amp_capability_publish(&r->dir, &p, amp_now_ms(), NULL, err);
    json_decref(c);
    return rc;
}

int reg_take(struct registry *r, const struct amp_view *v, struct amp_error *refused,
             struct amp_error *err)
{
    struct amp_error e = {0};
    bool answered = true;
    int rc = 1;
    if (v->protocol == AMP_PROTO_SW4RM)
        rc = sw4rm(r, v, &answered, &e);
    else if (v->protocol == AMP_PROTO_RTP && amp_span_is(v->type, "capabilities.catalog"))
        rc = publish(r, v, &e);
    if (rc == 1)
        return 0;
    if (rc == 0) {
        /* A sign of life needs no answer; an acknowledgement never gets one. */
        if (v->protocol == AMP_PROTO_SW4RM && v->kind != AMP_KIND_ACK && answered)
            return answer(r, v, "FULFILLED", NULL, NULL, err) < 0 ? -1 : 1;
        return 1;
    }
    if (e.status != AMP_NO) {
        *err = e;
        return -1;
    }
    *refused = e;
    if (v->protocol == AMP_PROTO_SW4RM && v->kind != AMP_KIND_ACK &&
        answer(r, v, "REJECTED",
               strcmp(e.code, "not_registered") == 0 ? "NOT_FOUND" : "VALIDATION_ERROR", e.what,
               err) < 0)
        return -1;
    return 1;
}
