/* Agents' records in the state. Each change is one compare-and-set of one key. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/registry.h"
#include "protocol/amp/compose.h"

#define KIND "agent"

/* One update: what is asked for, and the memory of the record that it leaves. */
struct update {
    enum { REGISTER, STEP, SEEN, SUSPEND, LIFT } what;
    const char *role, *task;
    uint8_t event;
    struct amp_span ref, ref_task;
    int64_t now_ms;
    char state[32];
    struct amp_buf json;
    bool changed;
};

static const char *text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "";
}

static void set_time(json_t *j, const char *key, int64_t ms)
{
    json_object_set_new(j, key, json_integer(ms));
}

static bool works(uint8_t state)
{
    return state == AMP_AGENT_SCHEDULED || state == AMP_AGENT_RUNNING ||
           state == AMP_AGENT_WAITING || state == AMP_AGENT_COMPLETED;
}

static int do_step(struct update *u, json_t *j, uint8_t *state, struct amp_error *err)
{
    struct amp_fsm_result r;

    if ((u->event == AMP_AGENT_EV_ASSIGN || u->event == AMP_AGENT_EV_RESUME) &&
        json_is_object(json_object_get(j, "suspended")))
        return amp_fail(err, AMP_NO, "suspended", "the agent is suspended by %s",
                        text(json_object_get(j, "suspended"), "ref"));
    if (amp_fsm_step(&amp_agent_fsm, *state, u->event, 0, &r, err))
        return -1;
    *state = r.to;
    if (u->task) {
        json_object_set_new(j, "task", json_string(u->task));
        json_object_set_new(j, "last_task", json_string(u->task));
    } else if (!works(*state)) {
        json_object_set_new(j, "task", json_string(""));
    }
    return 0;
}

/* 0 changed, 1 as it was. */
static int do_suspension(struct update *u, json_t *j)
{
    json_t *now = json_object_get(j, "suspended");
    const char *ref = text(now, "ref");

    if (u->what == LIFT) {
        if (!json_is_object(now) || (u->ref.n && !amp_span_is(u->ref, ref)))
            return 1;
        json_object_set_new(j, "suspended", json_null());
        return 0;
    }
    if (json_is_object(now)) /* the first reason stays until it is decided */
        return 1;
    json_t *s = json_object();
    json_object_set_new(s, "ref", json_stringn(u->ref.p ? u->ref.p : "", u->ref.n));
    json_object_set_new(s, "task", json_stringn(u->ref_task.p ? u->ref_task.p : "", u->ref_task.n));
    set_time(s, "since", u->now_ms);
    json_object_set_new(j, "suspended", s);
    return 0;
}

static int apply(struct update *u, json_t *j, uint8_t *state, struct amp_error *err)
{
    switch (u->what) {
    case REGISTER:
        *state = AMP_AGENT_RUNNABLE;
        json_object_set_new(j, "role", json_string(u->role));
        json_object_set_new(j, "task", json_string(""));
        json_object_set_new(j, "pid", json_integer(getpid()));
        set_time(j, "last_seen", u->now_ms);
        return 0;
    case STEP:
        if (do_step(u, j, state, err))
            return -1;
        set_time(j, "last_seen", u->now_ms);
        return 0;
    case SEEN:
        set_time(j, "last_seen", u->now_ms);
        return 0;
    default:
        return do_suspension(u, j);
    }
}

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    static const char *const names[] = {"register", NULL, "seen", "suspend", "lift"};
    struct update *u = ctx;
    int at = now->found ? amp_fsm_state(&amp_agent_fsm, now->state) : AMP_AGENT_INITIALIZING;
    uint8_t state = at < 0 ? AMP_AGENT_INITIALIZING : (uint8_t)at;
    json_t *j = now->found ? amp_json_load(now->json, err)
                           : json_pack("{s:s, s:s, s:s, s:n}", "role", "", "task", "", "last_task",
                                       "", "suspended");
    int64_t seen;

    if (!j)
        return -1;
    if (!now->found && u->what == LIFT) {
        json_decref(j);
        return 1;
    }
    int rc = apply(u, j, &state, err);
    if (!rc) {
        snprintf(u->state, sizeof u->state, "%s", amp_agent_fsm.states[state].name);
        json_object_set_new(j, "state", json_string(u->state));
        seen = json_integer_value(json_object_get(j, "last_seen"));
        amp_buf_reset(&u->json);
        rc = amp_json_dump(j, &u->json, err);
        c->event = u->what == STEP ? amp_agent_fsm.events[u->event].name : names[u->what];
        c->to = u->state;
        c->json = amp_buf_span(&u->json);
        c->due_ms = works(state) && seen ? seen + AMP_AGENT_SILENCE_MS : 0;
        u->changed = true;
    }
    json_decref(j);
    return rc;
}

static int run(struct amp_store *s, const char *name, struct update *u, struct amp_error *err)
{
    enum amp_store_outcome outcome;

    amp_buf_init(&u->json, 1 << 16);
    int rc = amp_store_update(s, KIND, amp_span_str(name), NULL, change, u, &outcome, err);
    amp_buf_release(&u->json);
    return rc;
}

int amp_agent_register(struct amp_store *s, const char *name, const char *role, int64_t now_ms,
                       struct amp_error *err)
{
    struct update u = {.what = REGISTER, .role = role, .now_ms = now_ms};
    return run(s, name, &u, err);
}

int amp_agent_step(struct amp_store *s, const char *name, uint8_t event, const char *task,
                   int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = STEP, .event = event, .task = task, .now_ms = now_ms};
    return run(s, name, &u, err);
}

int amp_agent_seen(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = SEEN, .now_ms = now_ms};
    return run(s, name, &u, err);
}

int amp_agent_suspend(struct amp_store *s, const struct amp_agent_suspension *a, bool *changed,
                      struct amp_error *err)
{
    struct update u = {.what = SUSPEND, .ref = a->ref, .ref_task = a->task, .now_ms = a->now_ms};
    int rc = run(s, a->name, &u, err);
    if (changed)
        *changed = u.changed;
    return rc;
}

int amp_agent_lift(struct amp_store *s, const struct amp_agent_suspension *a, bool *changed,
                   struct amp_error *err)
{
    struct update u = {.what = LIFT, .ref = a->ref, .ref_task = a->task, .now_ms = a->now_ms};
    int rc = run(s, a->name, &u, err);
    if (changed)
        *changed = u.changed;
    return rc;
}

static void read_status(const struct amp_store_rec *rec, const json_t *j,
                        struct amp_agent_status *out)
{
    const json_t *sus = json_object_get(j, "suspended");
    int state = amp_fsm_state(&amp_agent_fsm, rec->state);

    *out = (struct amp_agent_status){.found = true, .suspended = json_is_object(sus)};
    out->state = state < 0 ? 0 : (uint8_t)state;
    snprintf(out->role, sizeof out->role, "%s", text(j, "role"));
    snprintf(out->task, sizeof out->task, "%s", text(j, "task"));
    snprintf(out->ref, sizeof out->ref, "%s", text(sus, "ref"));
    snprintf(out->cause, sizeof out->cause, "%s", text(sus, "task"));
    snprintf(out->last_task, sizeof out->last_task, "%s", text(j, "last_task"));
    out->last_seen_ms = json_integer_value(json_object_get(j, "last_seen"));
}

int amp_agent_status(struct amp_store *s, const char *name, struct amp_agent_status *out,
                     struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, KIND, amp_span_str(name), &rec, err))
        return -1;
    if (!rec.found) {
        *out = (struct amp_agent_status){0};
        return 0;
    }
    json_t *j = amp_json_load(rec.json, err);
    if (!j)
        return -1;
    read_status(&rec, j, out);
    json_decref(j);
    return 0;
}

struct each {
    struct amp_span task;
    amp_agent_fn fn;
    void *ctx;
    int rc;
};

static int each_one(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct each *e = ctx;
    char name[160];
    json_t *j = amp_json_load(rec->json, NULL);
    const json_t *sus = json_object_get(j, "suspended");
    struct amp_agent_status st;

    if (j && amp_span_copy(id, name, sizeof name) &&
        (amp_span_is(e->task, text(j, "last_task")) || amp_span_is(e->task, text(sus, "task")))) {
        read_status(rec, j, &st);
        e->rc = e->fn(e->ctx, name, &st);
    }
    json_decref(j);
    return e->rc != 0;
}

int amp_agent_each(struct amp_store *s, struct amp_span task, amp_agent_fn fn, void *ctx,
                   struct amp_error *err)
{
    struct each e = {task, fn, ctx, 0};
    if (amp_store_each(s, KIND, NULL, each_one, &e, err))
        return -1;
    return e.rc < 0 ? -1 : 0;
}
