/* Agents' records in the state. Each change is one compare-and-set of one key. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/registry.h"
#include "json/record.h"

#define KIND "agent"

struct suspension {
    struct amp_span ref, task;
    int64_t since_ms;
};
static const struct amp_rec_field suspension_fields[] = {
    AMP_REC_EVER(TEXT, struct suspension, "ref", ref),
    AMP_REC_EVER(TEXT, struct suspension, "task", task),
    AMP_REC_EVER(INT, struct suspension, "since", since_ms),
};
AMP_REC_TABLE(suspension_rec, "an agent's suspension", struct suspension, suspension_fields);

struct stored {
    const char *role, *task, *last_task;
    struct suspension suspended;
    int64_t pid, last_seen_ms, limit_ms;
    const char *code, *state;
};
#define MEMBER(as, key, member) AMP_REC_EVER(as, struct stored, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CSTR, "role", role),
    MEMBER(CSTR, "task", task),
    MEMBER(CSTR, "last_task", last_task),
    AMP_REC_IN(struct stored, "suspended", suspended, &suspension_rec, true),
    AMP_REC(INT, struct stored, "pid", pid),
    AMP_REC(INT, struct stored, "last_seen", last_seen_ms),
    AMP_REC(INT, struct stored, "limit_ms", limit_ms),
    AMP_REC(CSTR, struct stored, "code", code),
    MEMBER(CSTR, "state", state),
};
AMP_REC_TABLE(stored_rec, "an agent's record", struct stored, fields);

/* One update: what is asked for, and the memory of the record that it leaves. */
struct update {
    enum { STEP, SEEN, SUSPEND, LIFT } what;
    const char *role, *task;
    uint8_t event;
    struct amp_span ref, ref_task;
    int64_t now_ms, until_ms;
    const struct amp_store_emit *emit;
    const char *actor;
    struct amp_buf mem, json;
    bool changed;
};

static bool is_suspended(const struct stored *r)
{
    return r->suspended.since_ms != 0 || r->suspended.ref.n > 0;
}

static bool works(uint8_t state)
{
    return state == AMP_AGENT_SCHEDULED || state == AMP_AGENT_RUNNING ||
           state == AMP_AGENT_WAITING || state == AMP_AGENT_COMPLETED;
}

/* Carries out the effects of a step. */
static void agent_carry(const struct update *u, const struct amp_fsm_result *r, struct stored *rec)
{
    int64_t from = u->until_ms > u->now_ms ? u->until_ms : u->now_ms;

    rec->limit_ms = r->effects & AMP_AGENT_DO_ARM ? from + amp_agent_limit_ms(r->to) : 0;
    rec->code = r->code ? r->code : "";
    if (r->effects & AMP_AGENT_DO_BEGIN) {
        rec->role = u->role;
        rec->pid = getpid();
    }
    if (r->effects & AMP_AGENT_DO_CLEAN)
        rec->task = "";
    if (r->effects & AMP_AGENT_DO_TAKE)
        rec->task = rec->last_task = u->task;
}

static int do_step(struct update *u, struct stored *rec, uint8_t *state, struct amp_error *err)
{
    uint32_t facts = is_suspended(rec) ? AMP_AGENT_IF_SUSPENDED : 0;
    bool timeout = u->event == AMP_AGENT_EV_TIMEOUT;
    struct amp_fsm_result r;

    if (timeout && (rec->limit_ms == 0 || rec->limit_ms > u->now_ms))
        return 1; /* it moved on meanwhile */
    if (amp_fsm_step(&amp_agent_fsm, *state, u->event, facts, &r, err))
        return -1;
    if (r.row->if_all & AMP_AGENT_IF_SUSPENDED)
        return amp_fail(err, AMP_NO, r.code, "the agent is suspended by %s", rec->suspended.ref.p);
    *state = r.to;
    agent_carry(u, &r, rec);
    if (!timeout)
        rec->last_seen_ms = u->now_ms;
    return 0;
}

/* 0 changed, 1 as it was. The first reason stays until it is decided. */
static int do_suspension(struct update *u, struct stored *rec)
{
    bool lift = u->what == LIFT;
    if (lift != is_suspended(rec) || (lift && u->ref.n && !amp_span_eq(u->ref, rec->suspended.ref)))
        return 1;
    rec->suspended = lift ? (struct suspension){.ref = {"", 0}, .task = {"", 0}}
                          : (struct suspension){u->ref, u->ref_task, u->now_ms};
    return 0;
}

static int apply(struct update *u, struct stored *rec, uint8_t *state, struct amp_error *err)
{
    switch (u->what) {
    case STEP:
        return do_step(u, rec, state, err);
    case SEEN:
        rec->last_seen_ms = u->now_ms;
        return 0;
    default:
        return do_suspension(u, rec);
    }
}

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    static const char *const names[] = {NULL, "seen", "suspend", "lift"};
    struct update *u = ctx;
    int at = now->found ? amp_fsm_state(&amp_agent_fsm, now->state) : AMP_AGENT_INITIALIZING;
    uint8_t state = at < 0 ? AMP_AGENT_INITIALIZING : (uint8_t)at;
    struct stored rec;

    if (amp_rec_parse(&stored_rec, now->found ? now->json : AMP_SPAN("{}"), &u->mem, &rec, err))
        return -1;
    int rc = apply(u, &rec, &state, err);
    if (rc)
        return rc;
    rec.state = amp_agent_fsm.states[state].name;
    amp_buf_reset(&u->json);
    c->event = u->what == STEP ? amp_agent_fsm.events[u->event].name : names[u->what];
    c->to = rec.state;
    /* A limit, or the moment when who works was silent for too long: no state has both. */
    c->due_ms = rec.limit_ms                       ? rec.limit_ms
                : works(state) && rec.last_seen_ms ? rec.last_seen_ms + AMP_AGENT_SILENCE_MS
                                                   : 0;
    c->emits = u->emit;
    c->n_emits = u->emit != NULL;
    c->actor = u->actor;
    u->changed = true;
    rc = amp_rec_write(&stored_rec, &rec, &u->json, err);
    c->json = amp_buf_span(&u->json);
    return rc;
}

static int run(struct amp_store *s, const char *name, struct update *u, struct amp_error *err)
{
    enum amp_store_outcome outcome;

    amp_buf_init(&u->mem, AMP_REC_MAX);
    amp_buf_init(&u->json, AMP_REC_MAX);
    int rc = amp_store_update(s, KIND, amp_span_str(name), NULL, change, u, &outcome, err);
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
    return rc;
}

int amp_agent_register(struct amp_store *s, const char *name, const char *role, int64_t now_ms,
                       struct amp_error *err)
{
    struct update u = {.what = STEP, .event = AMP_AGENT_EV_BEGIN, .role = role, .now_ms = now_ms};
    return run(s, name, &u, err);
}

int amp_agent_step(struct amp_store *s, const char *name, uint8_t event, const char *task,
                   int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = STEP, .event = event, .task = task, .now_ms = now_ms};
    return run(s, name, &u, err);
}

int amp_agent_wait(struct amp_store *s, const char *name, uint8_t event, int64_t until_ms,
                   int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = STEP, .event = event, .until_ms = until_ms, .now_ms = now_ms};
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

static int status_read(const struct amp_store_rec *rec, struct amp_buf *mem,
                       struct amp_agent_status *out, struct amp_error *err)
{
    struct stored r;
    int state = amp_fsm_state(&amp_agent_fsm, rec->state);
    if (amp_rec_parse(&stored_rec, rec->json, mem, &r, err))
        return -1;
    *out = (struct amp_agent_status){
        .found = true, .suspended = is_suspended(&r), .last_seen_ms = r.last_seen_ms};
    out->state = state < 0 ? 0 : (uint8_t)state;
    if (amp_span_copy(amp_span_str(r.role), out->role, sizeof out->role) &&
        amp_span_copy(amp_span_str(r.task), out->task, sizeof out->task) &&
        amp_span_copy(r.suspended.ref, out->ref, sizeof out->ref) &&
        amp_span_copy(r.suspended.task, out->cause, sizeof out->cause) &&
        amp_span_copy(amp_span_str(r.last_task), out->last_task, sizeof out->last_task))
        return 0;
    return amp_fail(err, AMP_DATAERR, "bad_record",
                    "an agent's record has a text that is too long");
}

int amp_agent_status(struct amp_store *s, const char *name, struct amp_agent_status *out,
                     struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, KIND, amp_span_str(name), &rec, err) < 0)
        return -1;
    if (!rec.found) {
        *out = (struct amp_agent_status){0};
        return 0;
    }
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    return status_read(&rec, &mem, out, err);
}

struct each {
    struct amp_span task;
    amp_agent_fn fn;
    void *ctx;
    struct amp_error *err;
    struct amp_buf mem;
    int rc;
};

static int each_one(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct each *e = ctx;
    char name[160];
    struct amp_agent_status st;

    if (!amp_span_copy(id, name, sizeof name))
        return 0;
    e->rc = status_read(rec, &e->mem, &st, e->err);
    if (e->rc == 0 && (amp_span_is(e->task, st.last_task) || amp_span_is(e->task, st.cause)))
        e->rc = e->fn(e->ctx, name, &st);
    return e->rc != 0;
}

int amp_agent_each(struct amp_store *s, struct amp_span task, amp_agent_fn fn, void *ctx,
                   struct amp_error *err)
{
    struct each e = {.task = task, .fn = fn, .ctx = ctx, .err = err};
    amp_buf_init(&e.mem, AMP_REC_MAX);
    if (amp_store_each(s, KIND, NULL, each_one, &e, err) < 0)
        e.rc = -1;
    amp_buf_release(&e.mem);
    return e.rc < 0 ? -1 : 0;
}

/* ---- time limits ---- */

struct limits {
    struct amp_store *s;
    int64_t now_ms, next_ms;
    const char *actor;
    amp_agent_tell_fn tell;
    void *ctx;
    uint32_t done;
    struct amp_error *err;
    int rc;
};

static int limit_read(struct limits *l, const struct amp_store_rec *rec, int64_t *ms)
{
    struct stored r;
    AMP_BUF struct amp_buf mem = {0};

    amp_buf_init(&mem, AMP_REC_MAX);
    l->rc = amp_rec_parse(&stored_rec, rec->json, &mem, &r, l->err);
    *ms = l->rc ? 0 : r.limit_ms;
    return l->rc;
}

static int on_next(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct limits *l = ctx;
    return limit_read(l, rec, &l->next_ms) || l->next_ms > 0; /* in the order of the moments */
}

int amp_agent_next_limit(struct amp_store *s, int64_t *ms, struct amp_error *err)
{
    struct limits l = {.err = err};
    if (amp_store_due(s, KIND, INT64_MAX, on_next, &l, err) < 0 || l.rc)
        return -1;
    *ms = l.next_ms;
    return 0;
}

static int on_limit(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct limits *l = ctx;
    struct amp_store_emit emit;
    struct amp_fsm_result r;
    char name[160];
    int state = amp_fsm_state(&amp_agent_fsm, rec->state);
    struct amp_agent_overdue o = {.name = name};
    struct update u = {.what = STEP,
                       .event = AMP_AGENT_EV_TIMEOUT,
                       .now_ms = l->now_ms,
                       .emit = &emit,
                       .actor = l->actor};

    if (limit_read(l, rec, &o.limit_ms))
        return 1;
    if (o.limit_ms == 0 || o.limit_ms > l->now_ms || !amp_span_copy(id, name, sizeof name) ||
        state < 0 ||
        amp_fsm_step(&amp_agent_fsm, (uint8_t)state, AMP_AGENT_EV_TIMEOUT, 0, &r, NULL) < 0)
        return 0;
    o.state = amp_agent_fsm.states[state].name;
    o.code = r.code;
    l->rc = l->tell(l->ctx, &o, &emit, l->err);
    if (!l->rc)
        l->rc = run(l->s, name, &u, l->err);
    l->done += u.changed;
    return l->rc != 0;
}

int amp_agent_expire(struct amp_store *s, int64_t now_ms, const char *actor, amp_agent_tell_fn tell,
                     void *ctx, uint32_t *done, struct amp_error *err)
{
    struct limits l = {
        .s = s, .now_ms = now_ms, .actor = actor, .tell = tell, .ctx = ctx, .err = err};

    if (amp_store_due(s, KIND, now_ms, on_limit, &l, err) < 0 || l.rc)
        return -1;
    *done = l.done;
    return 0;
}
