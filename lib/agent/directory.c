/* Records of the directory. Each change is one compare-and-set of one key, and commits the events
 * that tell the participants about it. */
#include "agent/directory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "message/inbox/inbox.h"

#define KIND     "directory"
#define LINE_MAX ((size_t)64 << 20)

/* One update: what is asked for, and the memory of what it leaves. */
struct update {
    struct amp_directory *d;
    uint8_t event;
    const struct amp_registration *reg;
    const struct amp_beat *beat;
    const char *reason;
    bool wants; /* it has to tell, and knows not whom */
    int64_t now_ms, answer_ms;
    struct amp_span agent;
    json_t *others; /* the participants' names */

    char state[32];
    struct amp_buf json, lines;
    struct amp_store_emit *emits;
    char (*ids)[AMP_UUID_MAX];
    uint32_t n_emits;
};

static int64_t num(const json_t *j, const char *key)
{
    return json_integer_value(json_object_get(j, key));
}

static void put_num(json_t *j, const char *key, int64_t n)
{
    json_object_set_new(j, key, json_integer(n));
}

static void put_text(json_t *j, const char *key, const char *s)
{
    json_object_set_new(j, key, json_string(s));
}

/* ---- what participants are told ---- */

static json_t *event_payload(const struct update *u, const json_t *rec, const char *event,
                             uint8_t state)
{
    char at[AMP_TIME_MAX];
    amp_time_format(u->now_ms, at);
    json_t *p = json_pack("{s:s, s:s%, s:s, s:s}", "event", event, "agent_id", u->agent.p,
                          u->agent.n, "reachability", amp_reach_fsm.states[state].name, "at", at);
    if (!p)
        return NULL;
    if (*amp_json_str(rec, "role"))
        put_text(p, "role", amp_json_str(rec, "role"));
    if (*amp_json_str(rec, "reason"))
        put_text(p, "reason", amp_json_str(rec, "reason"));
    if (num(rec, "missed") > 0)
        put_num(p, "missed_heartbeats", num(rec, "missed"));
    if (strcmp(event, "agent_joined") == 0)
        json_object_set(p, "descriptor", json_object_get(rec, "agent"));
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

/* The effects that tell of something, and the event that they tell. */
static const struct {
    uint32_t effect;
    const char *event;
} notices[] = {
    {AMP_REACH_DO_JOIN, "agent_joined"},
    {AMP_REACH_DO_LEAVE, "agent_left"},
    {AMP_REACH_DO_LOST, "agent_unreachable"},
    {AMP_REACH_DO_BACK, "agent_reachable"},
};

static int tell(struct update *u, const json_t *rec, uint8_t state, const char *event,
                struct amp_error *err)
{
    char flow[AMP_UUID_MAX];
    size_t i;
    json_t *name;
    amp_uuid4(flow);
    /* Every participant, and the agent itself: it learns what the others think of it. */
    if (say(u, "NOTIFICATION", u->agent, event_payload(u, rec, event, state), flow, err) < 0)
        return -1;
    json_array_foreach(u->others, i, name)
    {
        struct amp_span to = amp_span_str(json_string_value(name));
        if (!amp_span_eq(to, u->agent) &&
            say(u, "NOTIFICATION", to, event_payload(u, rec, event, state), flow, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the changes ---- */

static int do_register(struct update *u, json_t *j, struct amp_error *err)
{
    const struct amp_registration *r = u->reg;
    const char *role = amp_json_str(r->agent, "role"), *node = amp_json_str(r->agent, "node_id");
    if (amp_span_is(u->agent, "all"))
        return amp_fail(err, AMP_NO, "validation_error", "no agent is called 'all'");
    if (u->agent.n > 512)
        return amp_fail(err, AMP_NO, "validation_error", "the agent's id is too long");
    if (r->signing && !*amp_json_str(r->agent, "public_key"))
        return amp_fail(err, AMP_NO, "validation_error",
                        "public_key is missing, and messages are signed here");
    if (r->signing && !amp_public_key_is_sound(amp_span_str(amp_json_str(r->agent, "public_key"))))
        return amp_fail(err, AMP_NO, "validation_error",
                        "public_key is no key of Ed25519 or ECDSA in base64");
    json_object_set(j, "agent", r->agent);
    if (r->role || *role)
        put_text(j, "role", r->role ? r->role : role);
    if (r->node || *node)
        put_text(j, "node", r->node ? r->node : node);
    put_num(j, "joined", u->now_ms);
    put_num(j, "seen", u->now_ms);
    put_num(j, "missed", 0);
    json_object_del(j, "reason");
    return 0;
}

static void do_beat(struct update *u, json_t *j)
{
    const struct amp_beat *b = u->beat;
    json_t *asked = json_object_get(j, "asked");
    put_num(j, "seen", u->now_ms);
    put_num(j, "missed", 0);
    if (b->said)
        put_text(j, "said", b->said);
    if (b->health)
        json_object_set(j, "health", b->health);
    if (!json_is_object(asked))
        return;
    if ((b->correlation.n > 0 && amp_span_is(b->correlation, amp_json_str(asked, "correlation"))) ||
        (b->ref.n > 0 && amp_span_is(b->ref, amp_json_str(asked, "id")))) {
        int64_t took = u->now_ms - num(asked, "at");
        u->answer_ms = took < 0 ? 0 : took;
        put_num(j, "answer", u->answer_ms);
        put_num(j, "answers", num(j, "answers") + 1);
        if (u->answer_ms > num(j, "answer_most"))
            put_num(j, "answer_most", u->answer_ms);
        json_object_del(j, "asked");
    }
}

/* A heartbeat for it. One that nobody answered yet is forgotten: the next counts. */
static int do_ask(struct update *u, json_t *j, struct amp_error *err)
{
    char flow[AMP_UUID_MAX];
    amp_uuid4(flow);
    json_t *p = json_pack("{s:s%}", "agent_id", u->agent.p, u->agent.n);
    if (say(u, "HEARTBEAT", u->agent, p, flow, err) < 0)
        return -1;
    json_object_set_new(j, "asked",
                        json_pack("{s:s, s:s, s:I}", "id", u->ids[u->n_emits - 1], "correlation",
                                  flow, "at", (json_int_t)u->now_ms));
    return 0;
}

/* Carries out the effects of a step. 1: the participants have to be known first. */
static int reach_carry(struct update *u, json_t *j, uint8_t state, uint32_t effects,
                       struct amp_error *err)
{
    if (effects & AMP_REACH_DO_ASK)
        return do_ask(u, j, err);
    for (size_t i = 0; i < sizeof notices / sizeof notices[0]; i++) {
        if (!(effects & notices[i].effect))
            continue;
        u->wants = !u->others;
        return u->wants ? 1 : tell(u, j, state, notices[i].event, err);
    }
    return 0;
}

static int step(struct update *u, json_t *j, uint8_t *state, uint32_t *effects,
                struct amp_error *err)
{
    struct amp_fsm_result r;
    uint32_t facts = 0;
    if (u->event == AMP_REACH_EV_MISS && num(j, "missed") + 1 >= u->d->misses)
        facts = AMP_REACH_IF_SPENT;
    if (amp_fsm_step(&amp_reach_fsm, *state, u->event, facts, &r, NULL) < 0)
        return amp_fail(err, AMP_NO, "not_registered", "%.*s is not registered",
                        (int)(u->agent.n < 200 ? u->agent.n : 200), u->agent.p);
    switch (u->event) {
    case AMP_REACH_EV_REGISTER:
        if (do_register(u, j, err) < 0)
            return -1;
        break;
    case AMP_REACH_EV_BEAT:
        do_beat(u, j);
        break;
    case AMP_REACH_EV_MISS:
        put_num(j, "missed", num(j, "missed") + 1);
        break;
    case AMP_REACH_EV_ASK:
        break;
    default:
        put_num(j, "left", u->now_ms);
        put_text(j, "reason", u->reason ? u->reason : "");
        break;
    }
    *state = r.to;
    *effects = r.effects;
    return 0;
}

/* When the next sign of life has to be there at the latest; 0 where none is awaited. */
static int64_t due(const struct update *u, const struct amp_store_rec *now, uint8_t state)
{
    if (!amp_reach_active(state))
        return 0;
    int64_t answer = u->now_ms + u->d->timeout_ms;
    if (u->event == AMP_REACH_EV_ASK)
        return now->due_ms > 0 && now->due_ms < answer ? now->due_ms : answer;
    return u->now_ms + u->d->interval_ms + (u->event == AMP_REACH_EV_MISS ? 0 : u->d->timeout_ms);
}

static int finish(struct update *u, const json_t *j, struct amp_store_change *c,
                  struct amp_error *err)
{
    if (amp_json_dump(j, &u->json, err) < 0)
        return -1;
    size_t at = 0;
    for (uint32_t i = 0; i < u->n_emits; i++) {
        u->emits[i].line.p = u->lines.data + at;
        u->emits[i].id = amp_span_str(u->ids[i]);
        at += u->emits[i].line.n;
    }
    c->actor = u->d->voice.name;
    c->to = u->state;
    c->json = amp_buf_span(&u->json);
    c->emits = u->emits;
    c->n_emits = u->n_emits;
    return 0;
}

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct update *u = ctx;
    int at = now->found ? amp_fsm_state(&amp_reach_fsm, now->state) : AMP_REACH_ABSENT;
    uint8_t state = at < 0 ? AMP_REACH_ABSENT : (uint8_t)at;
    uint32_t effects = 0;
    json_t *j = now->found ? amp_json_record(now->json, "an agent's record", err) : json_object();
    if (!j)
        return -1;
    u->n_emits = 0;
    amp_buf_reset(&u->json);
    amp_buf_reset(&u->lines);
    int rc = 0;
    if (u->event == AMP_REACH_EV_ASK && (state == AMP_REACH_ABSENT || state == AMP_REACH_LEFT))
        rc = 1; /* it left meanwhile */
    else if (u->event == AMP_REACH_EV_MISS && (now->due_ms == 0 || now->due_ms > u->now_ms))
        rc = 1; /* another sweep was first, or it came after all */
    else
        rc = step(u, j, &state, &effects, err);
    if (rc == 0)
        rc = reach_carry(u, j, state, effects, err);
    if (rc == 0) {
        snprintf(u->state, sizeof u->state, "%s", amp_reach_fsm.states[state].name);
        c->event = amp_reach_fsm.events[u->event].name;
        c->due_ms = due(u, now, state);
        rc = finish(u, j, c, err);
    }
    json_decref(j);
    return rc;
}

static int participant(void *ctx, struct amp_span agent, uint8_t state, uint64_t rev,
                       const json_t *rec)
{
    (void)rev;
    (void)rec;
    if (state != AMP_REACH_LEFT)
        json_array_append_new(ctx, json_stringn(agent.p, agent.n));
    return 0;
}

static int run(struct update *u, const struct amp_store_input *in, struct amp_error *err)
{
    enum amp_store_outcome how;
    size_t n = json_array_size(u->others) + 1;
    int rc = -1;
    u->answer_ms = -1;
    u->emits = calloc(n, sizeof *u->emits);
    u->ids = calloc(n, sizeof *u->ids);
    amp_buf_init(&u->json, LINE_MAX);
    amp_buf_init(&u->lines, LINE_MAX);
    if (!u->emits || !u->ids)
        amp_fail_memory(err);
    else
        rc = amp_store_update(u->d->store, KIND, u->agent, in, change, u, &how, err);
    amp_buf_release(&u->json);
    amp_buf_release(&u->lines);
    free(u->emits);
    free(u->ids);
    return rc;
}

/* With the participants where they have to be told, which is seldom. */
static int run_told(struct update *u, const struct amp_store_input *in, struct amp_error *err)
{
    int rc = run(u, in, err);
    if (rc < 0 || !u->wants)
        return rc;
    u->others = json_array();
    rc = amp_directory_each(u->d->store, participant, u->others, err);
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
    return run_told(&u, r->id.n > 0 ? &in : NULL, err);
}

int amp_directory_deregister(struct amp_directory *d, struct amp_span agent, const char *reason,
                             int64_t now_ms, struct amp_error *err)
{
    struct update u = {.d = d,
                       .event = AMP_REACH_EV_DEREGISTER,
                       .reason = reason,
                       .agent = agent,
                       .now_ms = now_ms};
    return run_told(&u, NULL, err);
}

int amp_directory_beat(struct amp_directory *d, const struct amp_beat *b, int64_t now_ms,
                       int64_t *answer_ms, struct amp_error *err)
{
    struct update u = {
        .d = d, .event = AMP_REACH_EV_BEAT, .beat = b, .agent = b->agent, .now_ms = now_ms};
    int rc = run_told(&u, NULL, err);
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
    int rc = amp_directory_each(d->store, participant, all, err);
    if (rc == 0)
        rc = amp_voice_numbers(&d->voice, d->store, (uint32_t)json_array_size(all), now_ms, err);
    json_array_foreach(all, i, name)
    {
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

struct overdue {
    json_t *names;
};

static int overdue_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    (void)rec;
    json_array_append_new(((struct overdue *)ctx)->names, json_stringn(id.p, id.n));
    return 0;
}

int amp_directory_sweep(struct amp_directory *d, int64_t now_ms, int64_t *next_ms,
                        struct amp_error *err)
{
    struct overdue o = {json_array()};
    json_t *name;
    size_t i;
    int rc = amp_store_due(d->store, KIND, now_ms, overdue_fn, &o, err);
    json_array_foreach(o.names, i, name)
    {
        struct update u = {.d = d, .event = AMP_REACH_EV_MISS, .now_ms = now_ms};
        u.agent = (struct amp_span){json_string_value(name), json_string_length(name)};
        if (rc == 0)
            rc = run_told(&u, NULL, err);
    }
    json_decref(o.names);
    return rc < 0 ? -1 : amp_store_next_due(d->store, KIND, next_ms, err);
}

struct each {
    amp_directory_fn fn;
    void *ctx;
    struct amp_error *err;
    int rc;
};

static uint8_t state_of(struct amp_span name)
{
    int at = amp_fsm_state(&amp_reach_fsm, name);
    return at < 0 ? AMP_REACH_ABSENT : (uint8_t)at;
}

static int each_one(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct each *e = ctx;
    json_t *j = amp_json_record(rec->json, "an agent's record", e->err);
    e->rc = j ? 0 : -1;
    int rc = j ? e->fn(e->ctx, id, state_of(rec->state), rec->rev, j) : 1;
    json_decref(j);
    return rc;
}

int amp_directory_each(struct amp_store *s, amp_directory_fn fn, void *ctx, struct amp_error *err)
{
    struct each e = {fn, ctx, err, 0};
    return amp_store_each(s, KIND, NULL, each_one, &e, err) < 0 ? -1 : e.rc;
}

int amp_directory_find(struct amp_store *s, struct amp_span agent, uint8_t *state, json_t **rec,
                       struct amp_error *err)
{
    struct amp_store_rec r;
    if (amp_store_get(s, KIND, agent, &r, err) < 0)
        return -1;
    json_t *j = r.found ? amp_json_record(r.json, "an agent's record", err) : NULL;
    if (r.found && !j)
        return -1;
    *state = r.found ? state_of(r.state) : AMP_REACH_ABSENT;
    if (rec)
        *rec = j;
    else
        json_decref(j);
    return 0;
}
