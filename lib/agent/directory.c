/* The reach part of agents' records. Each change is one compare-and-set of a record, and commits
 * the notifications of the participants about it. */
#include "agent/directory.h"

#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/inbox/inbox.h"
#include "protocol/sw4rm/sw4rm.h"
#include "json/record.h"

#define LINE_MAX ((size_t)64 << 20)

/* One update: what is asked for, and the memory of what it leaves. */
struct update {
    struct amp_directory *d;
    uint8_t event;
    const struct amp_registration *reg;
    const struct amp_beat *beat;
    const char *reason;
    bool wants; /* it notifies participants, whose names are missing yet */
    int64_t now_ms, answer_ms;
    struct amp_span agent;
    json_t *others; /* the participants' names */

    struct amp_buf texts, lines; /* texts: what the record refers to */
    struct amp_store_emit *emits;
    char (*ids)[AMP_UUID_MAX], correlation[AMP_UUID_MAX];
    uint32_t n_emits;
};

static void put_text(json_t *j, const char *key, const char *s)
{
    if (*s)
        json_object_set_new(j, key, json_string(s));
}

/* ---- notifications ---- */

static json_t *event_payload(const struct update *u, const struct amp_agent_reach *r,
                             const char *event, struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    amp_time_format(u->now_ms, at);
    json_t *p =
        json_pack("{s:s, s:s%, s:s, s:s}", "event", event, "agent_id", u->agent.p, u->agent.n,
                  "reachability", amp_reach_fsm.states[r->state].name, "at", at);
    if (!p) {
        amp_fail_memory(err);
        return NULL;
    }
    put_text(p, "role", r->role);
    put_text(p, "reason", r->reason);
    if (r->missed > 0)
        json_object_set_new(p, "missed_heartbeats", json_integer(r->missed));
    if (strcmp(event, "agent_joined") == 0) {
        json_t *descriptor = amp_json_load(r->descriptor, err);
        if (!descriptor) {
            json_decref(p);
            return NULL;
        }
        json_object_set_new(p, "descriptor", descriptor);
    }
    return p;
}

/* Adds one line for one recipient to what the update commits. */
static int say(struct update *u, const char *type, struct amp_span to, json_t *payload,
               const char *correlation, struct amp_error *err)
{
    struct amp_sw4rm_say s = {
        .type = type, .to = to, .correlation = correlation, .now_ms = u->now_ms};
    size_t at = u->lines.len;
    if (amp_voice_sw4rm(&u->d->voice, &s, payload, &u->lines, u->ids[u->n_emits], err) < 0)
        return -1;
    /* The buffer may still move: the spans are set when all is written. */
    u->emits[u->n_emits++].line.n = u->lines.len - at;
    return 0;
}

/* The effects that notify, and the event that is in the notification. */
static const struct {
    uint32_t effect;
    const char *event;
} notices[] = {
    {AMP_REACH_DO_JOIN, "agent_joined"},
    {AMP_REACH_DO_LEAVE, "agent_left"},
    {AMP_REACH_DO_LOST, "agent_unreachable"},
    {AMP_REACH_DO_BACK, "agent_reachable"},
};

/* To every participant, and to the agent itself. */
static int notify(struct update *u, const struct amp_agent_reach *r, const char *event,
                  struct amp_error *err)
{
    char flow[AMP_UUID_MAX];
    size_t i;
    json_t *name, *payload = event_payload(u, r, event, err);
    if (!payload)
        return -1;
    amp_uuid4(flow);
    int rc = say(u, "NOTIFICATION", u->agent, json_incref(payload), flow, err);
    json_array_foreach (u->others, i, name) {
        struct amp_span to = amp_span_str(json_string_value(name));
        if (rc == 0 && !amp_span_eq(to, u->agent))
            rc = say(u, "NOTIFICATION", to, json_incref(payload), flow, err);
    }
    json_decref(payload);
    return rc;
}

/* ---- the changes ---- */

/* Keys of signatures (SW4RM §6.2): Ed25519, and ECDSA on the curves of NIST. Bare keys by their
 * length and their first six bits, as the digit of base64 has them. */
static const struct {
    uint64_t bytes;
    char first; /* 0: any */
} bare[] = {
    {32, 0},                          /* Ed25519 */
    {33, 'A'}, {49, 'A'}, {67, 'A'},  /* a compressed point: 02 or 03 goes before it */
    {65, 'B'}, {97, 'B'}, {133, 'B'}, /* both coordinates, 04 before them */
};

bool amp_public_key_is_sound(struct amp_span base64)
{
    uint64_t bytes;
    if (base64.n == 0 || !amp_sw4rm_base64(base64, &bytes))
        return false;
    for (size_t i = 0; i < sizeof bare / sizeof *bare; i++)
        if (bytes == bare[i].bytes && (!bare[i].first || base64.p[0] == bare[i].first))
            return true;
    /* A SubjectPublicKeyInfo: a DER sequence, of 44 bytes for Ed25519, up to 158 for P-521. */
    return bytes >= 44 && bytes <= 160 && base64.p[0] == 'M';
}

static int do_register(struct update *u, struct amp_agent_reach *r, struct amp_error *err)
{
    const struct amp_registration *reg = u->reg;
    const char *role = amp_json_str(reg->agent, "role"),
               *node = amp_json_str(reg->agent, "node_id"),
               *key = amp_json_str(reg->agent, "public_key");
    if (amp_span_is(u->agent, "all"))
        return amp_fail(err, AMP_NO, "validation_error", "an agent cannot be named 'all'");
    if (u->agent.n > 512)
        return amp_fail(err, AMP_NO, "validation_error", "the agent's id is too long");
    if (reg->signing && !*key)
        return amp_fail(err, AMP_NO, "validation_error", "public_key is missing (--signing)");
    if (reg->signing && !amp_public_key_is_sound(amp_span_str(key)))
        return amp_fail(err, AMP_NO, "validation_error",
                        "public_key is not an Ed25519 or ECDSA key in base64");
    if (amp_json_dump(reg->agent, &u->texts, err) < 0)
        return -1;
    r->descriptor = amp_buf_span(&u->texts);
    if (reg->role || *role)
        r->role = reg->role ? reg->role : role;
    if (reg->node || *node)
        r->node = reg->node ? reg->node : node;
    r->joined_ms = r->seen_ms = u->now_ms;
    r->missed = 0;
    r->reason = "";
    return 0;
}

static int do_beat(struct update *u, struct amp_agent_reach *r, struct amp_error *err)
{
    const struct amp_beat *b = u->beat;
    r->seen_ms = u->now_ms;
    r->missed = 0;
    if (b->said)
        r->said = b->said;
    if (b->health) {
        if (amp_json_dump(b->health, &u->texts, err) < 0)
            return -1;
        r->health = amp_buf_span(&u->texts);
    }
    if (r->asked.at_ms == 0 ||
        !((b->correlation.n > 0 && amp_span_is(b->correlation, r->asked.correlation)) ||
          (b->ref.n > 0 && amp_span_is(b->ref, r->asked.id))))
        return 0;
    int64_t took = u->now_ms - r->asked.at_ms;
    u->answer_ms = r->answer_ms = took < 0 ? 0 : took;
    r->answers++;
    if (r->answer_ms > r->answer_most_ms)
        r->answer_most_ms = r->answer_ms;
    r->asked = (struct amp_agent_asked){.id = "", .correlation = ""};
    return 0;
}

/* A heartbeat for it. One that was not answered yet is forgotten: the next counts. */
static int do_ask(struct update *u, struct amp_agent_reach *r, struct amp_error *err)
{
    amp_uuid4(u->correlation);
    json_t *p = json_pack("{s:s%}", "agent_id", u->agent.p, u->agent.n);
    if (!p)
        return amp_fail_memory(err);
    if (say(u, "HEARTBEAT", u->agent, p, u->correlation, err) < 0)
        return -1;
    r->asked = (struct amp_agent_asked){u->ids[u->n_emits - 1], u->correlation, u->now_ms};
    return 0;
}

/* Carries out the effects of a step. 1: the participants have to be collected first. */
static int reach_carry(struct update *u, struct amp_agent_reach *r, uint32_t effects,
                       struct amp_error *err)
{
    if (effects & AMP_REACH_DO_ASK)
        return do_ask(u, r, err);
    for (size_t i = 0; i < sizeof notices / sizeof notices[0]; i++) {
        if (!(effects & notices[i].effect))
            continue;
        u->wants = !u->others;
        return u->wants ? 1 : notify(u, r, notices[i].event, err);
    }
    return 0;
}

static int reach_step(struct update *u, struct amp_agent_reach *r, uint32_t *effects,
                      struct amp_error *err)
{
    struct amp_fsm_result to;
    uint32_t facts = 0;
    int rc = 0;
    if (u->event == AMP_REACH_EV_MISS && r->missed + 1 >= u->d->misses)
        facts = AMP_REACH_IF_SPENT;
    if (amp_fsm_step(&amp_reach_fsm, r->state, u->event, facts, &to, NULL) < 0)
        return amp_fail(err, AMP_NO, "not_registered", "%.*s is not registered",
                        (int)(u->agent.n < 200 ? u->agent.n : 200), u->agent.p);
    if (u->event == AMP_REACH_EV_REGISTER) {
        rc = do_register(u, r, err);
    } else if (u->event == AMP_REACH_EV_BEAT) {
        rc = do_beat(u, r, err);
    } else if (u->event == AMP_REACH_EV_MISS) {
        r->missed++;
    } else if (u->event == AMP_REACH_EV_DEREGISTER) {
        r->left_ms = u->now_ms;
        r->reason = u->reason ? u->reason : "";
    }
    r->state = to.to;
    *effects = to.effects;
    return rc;
}

/* When the next sign of life has to be there at the latest; 0 where none is awaited. */
static int64_t due_of(const struct update *u, const struct amp_agent_reach *r)
{
    if (!amp_reach_active(r->state))
        return 0;
    int64_t answer = u->now_ms + u->d->timeout_ms;
    if (u->event == AMP_REACH_EV_ASK)
        return r->due_ms > 0 && r->due_ms < answer ? r->due_ms : answer;
    return u->now_ms + u->d->interval_ms + (u->event == AMP_REACH_EV_MISS ? 0 : u->d->timeout_ms);
}

static int change(void *ctx, struct amp_agent_rec *rec, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct update *u = ctx;
    struct amp_agent_reach *r = &rec->reach;
    uint32_t effects = 0;
    u->n_emits = 0;
    amp_buf_reset(&u->texts);
    amp_buf_reset(&u->lines);
    if (u->event == AMP_REACH_EV_ASK &&
        (r->state == AMP_REACH_ABSENT || r->state == AMP_REACH_LEFT))
        return 1; /* it left meanwhile */
    if (u->event == AMP_REACH_EV_MISS && (r->due_ms == 0 || r->due_ms > u->now_ms))
        return 1; /* another sweep was first, or the sign of life came after all */
    int rc = reach_step(u, r, &effects, err);
    if (rc == 0)
        rc = reach_carry(u, r, effects, err);
    if (rc != 0)
        return rc;
    r->rev++;
    r->due_ms = due_of(u, r);
    size_t at = 0;
    for (uint32_t i = 0; i < u->n_emits; i++) {
        u->emits[i].line.p = u->lines.data + at;
        u->emits[i].id = amp_span_str(u->ids[i]);
        at += u->emits[i].line.n;
    }
    c->event = amp_reach_fsm.events[u->event].name;
    c->actor = u->d->voice.name;
    c->emits = u->emits;
    c->n_emits = u->n_emits;
    return 0;
}

static int participant(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                       struct amp_error *err)
{
    if (rec->reach.state == AMP_REACH_ABSENT || rec->reach.state == AMP_REACH_LEFT)
        return 0;
    return json_array_append_new(ctx, json_stringn(agent.p, agent.n)) < 0 ? amp_fail_memory(err)
                                                                          : 0;
}

static int run(struct update *u, const struct amp_store_input *in, struct amp_error *err)
{
    size_t n = json_array_size(u->others) + 1;
    int rc = -1;
    u->answer_ms = -1;
    u->emits = calloc(n, sizeof *u->emits);
    u->ids = calloc(n, sizeof *u->ids);
    amp_buf_init(&u->texts, LINE_MAX);
    amp_buf_init(&u->lines, LINE_MAX);
    if (!u->emits || !u->ids)
        amp_fail_memory(err);
    else
        rc = amp_agent_update(u->d->store, u->agent, in, change, u, NULL, err);
    amp_buf_release(&u->texts);
    amp_buf_release(&u->lines);
    free(u->emits);
    free(u->ids);
    return rc;
}

/* With the participants, where they have to be notified, which is seldom. */
static int run_notified(struct update *u, const struct amp_store_input *in, struct amp_error *err)
{
    int rc = run(u, in, err);
    if (rc < 0 || !u->wants)
        return rc;
    u->others = json_array();
    rc = amp_agent_records(u->d->store, participant, u->others, err);
    if (rc == 0)
        rc = amp_voice_numbers(&u->d->voice, u->d->store, (uint32_t)json_array_size(u->others) + 1,
                               u->now_ms, err);
    if (rc == 0)
        rc = run(u, in, err);
    json_decref(u->others);
    u->others = NULL;
    return rc;
}

int amp_directory_register(struct amp_directory *d, const struct amp_registration *r,
                           int64_t now_ms, struct amp_error *err)
{
    struct update u = {.d = d, .event = AMP_REACH_EV_REGISTER, .reg = r, .now_ms = now_ms};
    struct amp_store_input in = {.consumer = d->voice.name, .id = r->id, .bytes = r->bytes};
    u.agent = amp_span_str(amp_json_str(r->agent, "agent_id"));
    struct amp_error why;
    if (amp_inbox_agent_check(u.agent, &why) < 0)
        return amp_fail(err, AMP_NO, "validation_error", "agent_id: %s", why.what);
    return run_notified(&u, r->id.n > 0 ? &in : NULL, err);
}

int amp_directory_deregister(struct amp_directory *d, struct amp_span agent, const char *reason,
                             int64_t now_ms, struct amp_error *err)
{
    struct update u = {.d = d,
                       .event = AMP_REACH_EV_DEREGISTER,
                       .reason = reason,
                       .agent = agent,
                       .now_ms = now_ms};
    return run_notified(&u, NULL, err);
}

int amp_directory_beat(struct amp_directory *d, const struct amp_beat *b, int64_t now_ms,
                       int64_t *answer_ms, struct amp_error *err)
{
    struct update u = {
        .d = d, .event = AMP_REACH_EV_BEAT, .beat = b, .agent = b->agent, .now_ms = now_ms};
    int rc = run_notified(&u, NULL, err);
    if (rc == 0 && answer_ms)
        *answer_ms = u.answer_ms;
    return rc;
}

int amp_directory_ask(struct amp_directory *d, int64_t now_ms, uint32_t *asked,
                      struct amp_error *err)
{
    json_t *all = json_array(), *name;
    size_t i;
    uint32_t n = 0;
    int rc = amp_agent_records(d->store, participant, all, err);
    if (rc == 0)
        rc = amp_voice_numbers(&d->voice, d->store, (uint32_t)json_array_size(all), now_ms, err);
    json_array_foreach (all, i, name) {
        struct update u = {.d = d, .event = AMP_REACH_EV_ASK, .now_ms = now_ms};
        u.agent = (struct amp_span){json_string_value(name), json_string_length(name)};
        if (rc == 0 && (rc = run(&u, NULL, err)) == 0)
            n++;
    }
    json_decref(all);
    if (rc == 0)
        *asked = n;
    return rc;
}

int amp_directory_miss(struct amp_directory *d, struct amp_span agent, int64_t now_ms,
                       struct amp_error *err)
{
    struct update u = {.d = d, .event = AMP_REACH_EV_MISS, .agent = agent, .now_ms = now_ms};
    return run_notified(&u, NULL, err);
}
