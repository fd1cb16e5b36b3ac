/* The reach part of agents' records. Each change is one compare-and-set of a record, with the
 * notifications of the participants. */
#include "work/agent/directory.h"

#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/inbox/inbox.h"
#include "message/protocol/sw4rm/sw4rm.h"

/* One update of a record. */
struct update {
    struct amp_directory *d;
    uint8_t event;
    const struct amp_registration *reg;
    const struct amp_beat *beat;
    const char *reason;
    bool wants; /* participants must be notified, whose names are not in `others` yet */
    int64_t now_ms, answer_ms;
    struct amp_span agent;
    json_t *others; /* the participants' names */

    struct amp_buf texts; /* texts of the record */
    struct amp_voice_lines lines;
    char correlation[AMP_UUID_MAX];
};

/* ---- notifications */

static json_t *event_payload(const struct update *u, const struct amp_agent_reach *r,
                             const char *event, struct amp_error *err)
{
    char at[AMP_TIME_MAX];
    amp_time_format(u->now_ms, at);
    json_auto_t *p =
        json_pack("{s:s, s:s%, s:s, s:s}", "event", event, "agent_id", u->agent.p, u->agent.n,
                  "reachability", amp_reach_fsm.states[r->state].name, "at", at);
    if (!p) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_json_put(p, "role", r->role);
    amp_json_put(p, "reason", r->reason);
    if (r->missed > 0)
        json_object_set_new(p, "missed_heartbeats", json_integer(r->missed));
    if (strcmp(event, "agent_joined") == 0) {
        json_t *descriptor = amp_json_load(r->descriptor, err);
        if (!descriptor)
            return NULL;
        json_object_set_new(p, "descriptor", descriptor);
    }
    return json_incref(p);
}

/* Adds one line for one recipient to the commit, and returns its id; NULL on failure. Takes the
 * payload's reference. */
static const char *line_add(struct update *u, const char *type, struct amp_span to, json_t *payload,
                            const char *correlation, struct amp_error *err)
{
    struct amp_sw4rm_say s = {
        .type = type, .to = to, .correlation = correlation, .now_ms = u->now_ms};
    size_t from = u->lines.text.len;
    char id[AMP_UUID_MAX];
    if (amp_voice_sw4rm(&u->d->voice, &s, payload, &u->lines.text, id, err) < 0)
        return NULL;
    return amp_voice_lines_add(&u->lines, from, id);
}

/* The effects that notify, and the event in the notification. */
static const struct {
    uint32_t effect;
    const char *event;
} notices[] = {
    {AMP_REACH_DO_JOIN, "agent_joined"},
    {AMP_REACH_DO_LEAVE, "agent_left"},
    {AMP_REACH_DO_LOST, "agent_unreachable"},
    {AMP_REACH_DO_BACK, "agent_reachable"},
};

/* Notifies every participant, and the agent itself. */
static int participants_notify(struct update *u, const struct amp_agent_reach *r, const char *event,
                               struct amp_error *err)
{
    char flow[AMP_UUID_MAX];
    size_t i;
    json_t *name;
    json_auto_t *payload = event_payload(u, r, event, err);
    amp_uuid4(flow);
    if (!payload || !line_add(u, "NOTIFICATION", u->agent, json_incref(payload), flow, err))
        return -1;
    json_array_foreach (u->others, i, name) {
        struct amp_span to = amp_span_str(json_string_value(name));
        if (!amp_span_eq(to, u->agent) &&
            !line_add(u, "NOTIFICATION", to, json_incref(payload), flow, err))
            return -1;
    }
    return 0;
}

/* ---- the changes */

/* Public keys (SW4RM §6.2): Ed25519, and ECDSA on the curves of NIST. Bare keys have these lengths
 * and first base64 digits. */
static const struct {
    uint64_t bytes;
    char first; /* 0: any */
} bare[] = {
    {32, 0},                          /* Ed25519 */
    {33, 'A'}, {49, 'A'}, {67, 'A'},  /* a compressed point after 02 or 03 */
    {65, 'B'}, {97, 'B'}, {133, 'B'}, /* both coordinates after 04 */
};

bool amp_public_key_is_valid(struct amp_span base64)
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
        return amp_fail(err, AMP_NO, validation_error, "an agent cannot be named 'all'");
    if (u->agent.n > 512)
        return amp_fail(err, AMP_NO, validation_error, "the agent's id is too long");
    if (reg->signing && !*key)
        return amp_fail(err, AMP_NO, validation_error, "public_key is missing (--signing)");
    if (reg->signing && !amp_public_key_is_valid(amp_span_str(key)))
        return amp_fail(err, AMP_NO, validation_error,
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
    if (b->reported)
        r->reported = b->reported;
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

/* Sends the agent a heartbeat. It replaces a heartbeat that was not answered. */
static int do_ask(struct update *u, struct amp_agent_reach *r, struct amp_error *err)
{
    amp_uuid4(u->correlation);
    json_t *p = json_pack("{s:s%}", "agent_id", u->agent.p, u->agent.n);
    if (!p)
        return amp_fail_memory(err);
    const char *id = line_add(u, "HEARTBEAT", u->agent, p, u->correlation, err);
    if (!id)
        return -1;
    r->asked = (struct amp_agent_asked){id, u->correlation, u->now_ms};
    return 0;
}

/* Carries out the effects of a step. 1: the participants must be collected first. */
static int reach_carry(struct update *u, struct amp_agent_reach *r, uint32_t effects,
                       struct amp_error *err)
{
    if (effects & AMP_REACH_DO_ASK)
        return do_ask(u, r, err);
    for (size_t i = 0; i < sizeof notices / sizeof notices[0]; i++) {
        if (!(effects & notices[i].effect))
            continue;
        u->wants = !u->others;
        return u->wants ? 1 : participants_notify(u, r, notices[i].event, err);
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
        return amp_fail(err, AMP_NO, not_registered, "%.*s is not registered",
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

/* The deadline of the next sign of life; 0: none is expected. */
static int64_t due_of(const struct update *u, const struct amp_agent_reach *r)
{
    if (!amp_reach_active(r->state))
        return 0;
    int64_t answer = u->now_ms + u->d->timeout_ms;
    if (u->event == AMP_REACH_EV_ASK)
        return r->due_ms > 0 && r->due_ms < answer ? r->due_ms : answer;
    return u->now_ms + u->d->interval_ms + (u->event == AMP_REACH_EV_MISS ? 0 : u->d->timeout_ms);
}

static int reach_change(void *ctx, struct amp_agent_rec *rec, struct amp_store_change *c,
                        struct amp_error *err)
{
    struct update *u = ctx;
    struct amp_agent_reach *r = &rec->reach;
    uint32_t effects = 0;
    amp_buf_reset(&u->texts);
    amp_voice_lines_reset(&u->lines);
    if (u->event == AMP_REACH_EV_ASK &&
        (r->state == AMP_REACH_ABSENT || r->state == AMP_REACH_LEFT))
        return 1; /* it left in the meantime */
    if (u->event == AMP_REACH_EV_MISS && (r->due_ms == 0 || r->due_ms > u->now_ms))
        return 1; /* another sweep did this, or a sign of life has arrived */
    int rc = reach_step(u, r, &effects, err);
    if (rc == 0)
        rc = reach_carry(u, r, effects, err);
    if (rc != 0)
        return rc;
    r->rev++;
    r->due_ms = due_of(u, r);
    c->event = amp_reach_fsm.events[u->event].name;
    c->actor = u->d->voice.name;
    amp_voice_lines_commit(&u->lines, c);
    return 0;
}

static int participant_add(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                           struct amp_error *err)
{
    if (rec->reach.state == AMP_REACH_ABSENT || rec->reach.state == AMP_REACH_LEFT)
        return 0;
    return json_array_append_new(ctx, json_stringn(agent.p, agent.n)) < 0 ? amp_fail_memory(err)
                                                                          : 0;
}

static int update_run(struct update *u, const struct amp_store_input *in, struct amp_error *err)
{
    u->answer_ms = -1;
    amp_buf_init(&u->texts, (size_t)64 << 20);
    int rc = amp_voice_lines_init(&u->lines, json_array_size(u->others) + 1, err);
    if (rc == 0)
        rc = amp_agent_update(u->d->store, u->agent, in, reach_change, u, NULL, err);
    amp_buf_release(&u->texts);
    amp_voice_lines_release(&u->lines);
    return rc;
}

/* Collects the participants and repeats the update if they must be notified, which is rare. */
static int update_notify(struct update *u, const struct amp_store_input *in, struct amp_error *err)
{
    int rc = update_run(u, in, err);
    if (rc < 0 || !u->wants)
        return rc;
    json_auto_t *others = json_array();
    u->others = others;
    if (amp_agent_records(u->d->store, participant_add, others, err) < 0 ||
        amp_voice_numbers(&u->d->voice, u->d->store, (uint32_t)json_array_size(others) + 1,
                          u->now_ms, err) < 0)
        return -1;
    return update_run(u, in, err);
}

int amp_directory_register(struct amp_directory *d, const struct amp_registration *r,
                           int64_t now_ms, struct amp_error *err)
{
    struct update u = {.d = d, .event = AMP_REACH_EV_REGISTER, .reg = r, .now_ms = now_ms};
    struct amp_store_input in = {.consumer = d->voice.name, .id = r->id, .bytes = r->bytes};
    u.agent = amp_span_str(amp_json_str(r->agent, "agent_id"));
    struct amp_error why;
    if (amp_inbox_agent_check(u.agent, &why) < 0)
        return amp_fail(err, AMP_NO, validation_error, "agent_id: %s", why.what);
    return update_notify(&u, r->id.n > 0 ? &in : NULL, err);
}

int amp_directory_deregister(struct amp_directory *d, struct amp_span agent, const char *reason,
                             int64_t now_ms, struct amp_error *err)
{
    struct update u = {.d = d,
                       .event = AMP_REACH_EV_DEREGISTER,
                       .reason = reason,
                       .agent = agent,
                       .now_ms = now_ms};
    return update_notify(&u, NULL, err);
}

int amp_directory_beat(struct amp_directory *d, const struct amp_beat *b, int64_t now_ms,
                       int64_t *answer_ms, struct amp_error *err)
{
    struct update u = {
        .d = d, .event = AMP_REACH_EV_BEAT, .beat = b, .agent = b->agent, .now_ms = now_ms};
    int rc = update_notify(&u, NULL, err);
    if (rc == 0 && answer_ms)
        *answer_ms = u.answer_ms;
    return rc;
}

int amp_directory_ask(struct amp_directory *d, int64_t now_ms, uint32_t *asked,
                      struct amp_error *err)
{
    json_auto_t *all = json_array();
    json_t *name;
    size_t i;
    uint32_t n = 0;
    if (amp_agent_records(d->store, participant_add, all, err) < 0 ||
        amp_voice_numbers(&d->voice, d->store, (uint32_t)json_array_size(all), now_ms, err) < 0)
        return -1;
    json_array_foreach (all, i, name) {
        struct update u = {.d = d, .event = AMP_REACH_EV_ASK, .now_ms = now_ms};
        u.agent = (struct amp_span){json_string_value(name), json_string_length(name)};
        if (update_run(&u, NULL, err) < 0)
            return -1;
        n++;
    }
    *asked = n;
    return 0;
}

int amp_directory_miss(struct amp_directory *d, struct amp_span agent, int64_t now_ms,
                       struct amp_error *err)
{
    struct update u = {.d = d, .event = AMP_REACH_EV_MISS, .agent = agent, .now_ms = now_ms};
    return update_notify(&u, NULL, err);
}
