/* The work part of agents' records: lifecycle and suspension. */
#include "work/agent/work.h"

#include <unistd.h>

#include "base/codes.h"
#include "json/record.h"

const char *amp_agent_word(const struct amp_agent_work *w)
{
    static const char *const words[AMP_AGENT_STATE_COUNT] = {
        [AMP_AGENT_INITIALIZING] = "starting", [AMP_AGENT_RUNNABLE] = "idle",
        [AMP_AGENT_SCHEDULED] = "begins work", [AMP_AGENT_RUNNING] = "working",
        [AMP_AGENT_WAITING] = "waits",         [AMP_AGENT_WAITING_RESOURCES] = "waits for a limit",
        [AMP_AGENT_SUSPENDED] = "suspended",   [AMP_AGENT_RESUMED] = "continues",
        [AMP_AGENT_COMPLETED] = "finishes",    [AMP_AGENT_FAILED] = "failed",
        [AMP_AGENT_SHUTTING_DOWN] = "ending",  [AMP_AGENT_RECOVERING] = "recovers",
    };
    /* The end of the process removes the time limit of the shutdown. */
    return w->state == AMP_AGENT_SHUTTING_DOWN && !w->limit_ms ? "ended" : words[w->state];
}

/* One update of a record. */
struct update {
    enum { STEP, SEEN, SUSPEND, LIFT, SILENCE } what;
    const char *role, *task;
    uint8_t event;
    struct amp_span ref, ref_task;
    int64_t now_ms, until_ms, limit_ms, lost_pid;
    const struct amp_store_emit *emit;
    const char *actor;
    bool measured; /* the caller says that the time limit has passed */
    bool changed;
};

/* Carries out the effects of a step. */
static void agent_carry(const struct update *u, const struct amp_fsm_result *r,
                        struct amp_agent_work *w)
{
    int64_t from = u->until_ms > u->now_ms ? u->until_ms : u->now_ms;

    int64_t limit = u->limit_ms > 0 ? u->limit_ms : amp_agent_limit_ms(r->to);
    w->limit_ms = r->effects & AMP_AGENT_DO_ARM ? from + limit : 0;
    w->code = r->code ? r->code : "";
    if (r->effects & AMP_AGENT_DO_BEGIN) {
        w->role = u->role;
        w->pid = getpid();
    }
    if (r->effects & AMP_AGENT_DO_CLEAN)
        w->task = "";
    if (r->effects & AMP_AGENT_DO_TAKE)
        w->task = w->last_task = u->task;
}

static int do_step(struct update *u, struct amp_agent_rec *rec, struct amp_error *err)
{
    struct amp_agent_work *w = &rec->work;
    uint32_t facts = amp_agent_is_suspended(rec) ? AMP_AGENT_IF_SUSPENDED : 0;
    bool timeout = u->event == AMP_AGENT_EV_TIMEOUT, lose = u->event == AMP_AGENT_EV_LOSE;
    struct amp_fsm_result r;

    if (timeout && !u->measured && (w->limit_ms == 0 || w->limit_ms > u->now_ms))
        return 1; /* the agent has left the state */
    if (lose && w->pid != u->lost_pid)
        return 1; /* another process has begun */
    if (amp_fsm_step(&amp_agent_fsm, w->state, u->event, facts, &r, err) < 0)
        return -1;
    if (r.row->if_all & AMP_AGENT_IF_SUSPENDED)
        return amp_fail_text(err, AMP_NO, r.code, "the agent is suspended by %s",
                             w->suspended.ref.p);
    w->state = r.to;
    agent_carry(u, &r, w);
    if (!timeout && !lose)
        w->last_seen_ms = u->now_ms;
    return 0;
}

/* 0: changed; 1: unchanged. The first suspension stays until it is lifted. */
static int do_suspension(const struct update *u, struct amp_agent_rec *rec)
{
    struct amp_agent_suspended *now = &rec->work.suspended;
    bool lift = u->what == LIFT;
    if (lift != amp_agent_is_suspended(rec) ||
        (lift && u->ref.n > 0 && !amp_span_eq(u->ref, now->ref)))
        return 1;
    *now = lift ? (struct amp_agent_suspended){.ref = {"", 0}, .task = {"", 0}}
                : (struct amp_agent_suspended){u->ref, u->ref_task, u->now_ms};
    return 0;
}

/* A silence is reported once for each last sign of life. */
static int do_silence(const struct update *u, struct amp_agent_rec *rec)
{
    if (amp_agent_heard_ms(rec) != u->until_ms || rec->work.silent_since_ms >= u->until_ms)
        return 1;
    rec->work.silent_since_ms = u->until_ms;
    return 0;
}

static int work_change(struct update *u, struct amp_agent_rec *rec, struct amp_error *err)
{
    switch (u->what) {
    case STEP:
        return do_step(u, rec, err);
    case SEEN:
        rec->work.last_seen_ms = u->now_ms;
        return 0;
    case SILENCE:
        return do_silence(u, rec);
    default:
        return do_suspension(u, rec);
    }
}

static int record_change(void *ctx, struct amp_agent_rec *rec, struct amp_store_change *c,
                         struct amp_error *err)
{
    static const char *const names[] = {NULL, "seen", "suspend", "lift", "heartbeat_timeout"};
    struct update *u = ctx;
    int rc = work_change(u, rec, err);

    if (rc != 0)
        return rc;
    c->event = u->what == STEP ? amp_agent_fsm.events[u->event].name : names[u->what];
    c->emits = u->emit;
    c->n_emits = u->emit != NULL;
    c->actor = u->actor;
    u->changed = true;
    return 0;
}

static int update_run(struct amp_store *s, const char *name, struct update *u,
                      struct amp_error *err)
{
    return amp_agent_update(s, amp_span_str(name), NULL, record_change, u, NULL, err);
}

int amp_agent_register(struct amp_store *s, const char *name, const char *role, int64_t now_ms,
                       struct amp_error *err)
{
    struct update u = {.what = STEP, .event = AMP_AGENT_EV_BEGIN, .role = role, .now_ms = now_ms};
    return update_run(s, name, &u, err);
}

int amp_agent_step(struct amp_store *s, const char *name, uint8_t event, const char *task,
                   int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = STEP, .event = event, .task = task, .now_ms = now_ms};
    return update_run(s, name, &u, err);
}

int amp_agent_wait(struct amp_store *s, const char *name, uint8_t event, int64_t until_ms,
                   int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = STEP, .event = event, .until_ms = until_ms, .now_ms = now_ms};
    return update_run(s, name, &u, err);
}

int amp_agent_step_within(struct amp_store *s, const char *name, uint8_t event, int64_t limit_ms,
                          int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = STEP, .event = event, .limit_ms = limit_ms, .now_ms = now_ms};
    return update_run(s, name, &u, err);
}

int amp_agent_expire(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err)
{
    struct update u = {
        .what = STEP, .event = AMP_AGENT_EV_TIMEOUT, .now_ms = now_ms, .measured = true};
    return update_run(s, name, &u, err);
}

int amp_agent_seen(struct amp_store *s, const char *name, int64_t now_ms, struct amp_error *err)
{
    struct update u = {.what = SEEN, .now_ms = now_ms};
    return update_run(s, name, &u, err);
}

int amp_agent_suspend(struct amp_store *s, const struct amp_agent_suspension *a, bool *changed,
                      struct amp_error *err)
{
    struct update u = {.what = SUSPEND, .ref = a->ref, .ref_task = a->task, .now_ms = a->now_ms};
    int rc = update_run(s, a->name, &u, err);
    if (changed)
        *changed = u.changed;
    return rc;
}

int amp_agent_lift(struct amp_store *s, const struct amp_agent_suspension *a, bool *changed,
                   struct amp_error *err)
{
    struct update u = {.what = LIFT, .ref = a->ref, .ref_task = a->task, .now_ms = a->now_ms};
    int rc = update_run(s, a->name, &u, err);
    if (changed)
        *changed = u.changed;
    return rc;
}

int amp_agent_time_out(struct amp_store *s, const struct amp_agent_lapse *l, bool *changed,
                       struct amp_error *err)
{
    struct update u = {.what = l->silence ? SILENCE : STEP,
                       .event = l->lost_pid ? AMP_AGENT_EV_LOSE : AMP_AGENT_EV_TIMEOUT,
                       .until_ms = l->silence ? l->at_ms : 0,
                       .lost_pid = l->lost_pid,
                       .now_ms = l->now_ms,
                       .emit = l->emit,
                       .actor = l->actor};
    int rc = amp_agent_update(s, l->agent, NULL, record_change, &u, NULL, err);
    *changed = u.changed;
    return rc;
}

static int status_of(const struct amp_agent_rec *rec, struct amp_agent_status *out,
                     struct amp_error *err)
{
    const struct amp_agent_work *w = &rec->work;
    *out = (struct amp_agent_status){.found = amp_agent_has_work(rec),
                                     .suspended = amp_agent_is_suspended(rec),
                                     .state = w->state,
                                     .last_seen_ms = w->last_seen_ms};
    if (amp_span_copy(amp_span_str(w->role), out->role, sizeof out->role) &&
        amp_span_copy(amp_span_str(w->task), out->task, sizeof out->task) &&
        amp_span_copy(w->suspended.ref, out->ref, sizeof out->ref) &&
        amp_span_copy(w->suspended.task, out->cause, sizeof out->cause) &&
        amp_span_copy(amp_span_str(w->last_task), out->last_task, sizeof out->last_task))
        return 0;
    return amp_fail(err, AMP_DATAERR, bad_record, "an agent's record has a text that is too long");
}

int amp_agent_status(struct amp_store *s, const char *name, struct amp_agent_status *out,
                     struct amp_error *err)
{
    struct amp_agent_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    return amp_agent_find(s, amp_span_str(name), &mem, &rec, err) < 0 ? -1
                                                                      : status_of(&rec, out, err);
}

struct each {
    struct amp_span task;
    amp_agent_fn fn;
    void *ctx;
};

static int on_agent(void *ctx, struct amp_span id, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    struct each *e = ctx;
    char name[160];
    struct amp_agent_status st;

    if (!amp_agent_has_work(rec) || !amp_span_copy(id, name, sizeof name))
        return 0;
    if (status_of(rec, &st, err) < 0)
        return -1;
    bool concerned = amp_span_is(e->task, st.last_task) || amp_span_is(e->task, st.cause);
    return concerned ? e->fn(e->ctx, name, &st, err) : 0;
}

int amp_agent_each(struct amp_store *s, struct amp_span task, amp_agent_fn fn, void *ctx,
                   struct amp_error *err)
{
    struct each e = {.task = task, .fn = fn, .ctx = ctx};
    return amp_agent_records(s, on_agent, &e, err);
}
