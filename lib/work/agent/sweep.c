/* The sweep: a row for each kind of deadline, with its time and its action. */
#include "work/agent/sweep.h"

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "work/agent/work.h"

struct sweep {
    struct amp_store *store;
    const struct amp_agent_sweep *of;
    int64_t now_ms;
    uint32_t done;
};

static int64_t miss_at(const struct amp_agent_sweep *of, const struct amp_agent_rec *rec)
{
    return of->directory ? rec->reach.due_ms : 0;
}

static int64_t limit_at(const struct amp_agent_sweep *of, const struct amp_agent_rec *rec)
{
    return of->limits ? rec->work.limit_ms : 0;
}

static int64_t silence_at(const struct amp_agent_sweep *of, const struct amp_agent_rec *rec)
{
    int64_t heard = amp_agent_heard_ms(rec);
    return of->silence_ms > 0 && heard > rec->work.silent_since_ms ? heard + of->silence_ms : 0;
}

static int miss_run(struct sweep *sw, struct amp_span agent, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    (void)rec;
    sw->done++;
    return amp_directory_miss(sw->of->directory, agent, sw->now_ms, err);
}

/* Composes the notice and commits it with the change. */
static int notice_commit(struct sweep *sw, const struct amp_agent_overdue *o, struct amp_error *err)
{
    struct amp_store_emit emit;
    bool changed;
    const struct amp_agent_lapse l = {.agent = o->agent,
                                      .silence = o->silent,
                                      .at_ms = o->at_ms,
                                      .now_ms = sw->now_ms,
                                      .emit = &emit,
                                      .actor = sw->of->actor};
    if (sw->of->notice(sw->of->ctx, o, &emit, err) < 0 ||
        amp_agent_time_out(sw->store, &l, &changed, err) < 0)
        return -1;
    sw->done += changed;
    return 0;
}

static int limit_run(struct sweep *sw, struct amp_span agent, const struct amp_agent_rec *rec,
                     struct amp_error *err)
{
    struct amp_fsm_result r;
    struct amp_agent_overdue o = {.agent = agent,
                                  .state = amp_agent_fsm.states[rec->work.state].name,
                                  .task = rec->work.task,
                                  .at_ms = rec->work.limit_ms};
    if (amp_fsm_step(&amp_agent_fsm, rec->work.state, AMP_AGENT_EV_TIMEOUT, 0, &r, NULL) < 0)
        return 0; /* the state has no limit */
    o.code = r.code;
    return notice_commit(sw, &o, err);
}

static int silence_run(struct sweep *sw, struct amp_span agent, const struct amp_agent_rec *rec,
                       struct amp_error *err)
{
    const struct amp_agent_overdue o = {.agent = agent,
                                        .state = amp_agent_fsm.states[rec->work.state].name,
                                        .task = rec->work.task,
                                        .code = AMP_CODE(heartbeat_timeout),
                                        .silent = true,
                                        .at_ms = amp_agent_heard_ms(rec)};
    return notice_commit(sw, &o, err);
}

static const struct {
    int64_t (*at)(const struct amp_agent_sweep *of, const struct amp_agent_rec *rec);
    int (*run)(struct sweep *sw, struct amp_span agent, const struct amp_agent_rec *rec,
               struct amp_error *err);
} deadlines[] = {{miss_at, miss_run}, {limit_at, limit_run}, {silence_at, silence_run}};
enum { DEADLINES = sizeof deadlines / sizeof deadlines[0] };

static int on_due(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                  struct amp_error *err)
{
    struct sweep *sw = ctx;
    for (size_t i = 0; i < DEADLINES; i++) {
        int64_t at = deadlines[i].at(sw->of, rec);
        if (at > 0 && at <= sw->now_ms && deadlines[i].run(sw, agent, rec, err) < 0)
            return -1;
    }
    return 0;
}

/* Returns how much earlier than the records' due times this sweep must look: they assume the
 * default limit of a silence. */
static int64_t ahead_ms(const struct amp_agent_sweep *sw)
{
    return sw->silence_ms > 0 && sw->silence_ms < AMP_SILENCE_MS ? AMP_SILENCE_MS - sw->silence_ms
                                                                 : 0;
}

int amp_agent_sweep(struct amp_store *s, const struct amp_agent_sweep *of, int64_t now_ms,
                    uint32_t *done, struct amp_error *err)
{
    struct sweep sw = {.store = s, .of = of, .now_ms = now_ms};
    if (amp_agent_records_due(s, now_ms + ahead_ms(of), on_due, &sw, err) < 0)
        return -1;
    *done = sw.done;
    return 0;
}

struct next {
    const struct amp_agent_sweep *of;
    int64_t due_ms;
};

static int on_next(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                   struct amp_error *err)
{
    struct next *n = ctx;
    (void)agent, (void)err;
    if (n->due_ms > 0 && amp_agent_due_ms(rec) - ahead_ms(n->of) >= n->due_ms)
        return 1; /* all other records are due later */
    for (size_t i = 0; i < DEADLINES; i++) {
        int64_t at = deadlines[i].at(n->of, rec);
        if (at > 0 && (n->due_ms == 0 || at < n->due_ms))
            n->due_ms = at;
    }
    return 0;
}

int amp_agent_next_due(struct amp_store *s, const struct amp_agent_sweep *of, int64_t *due_ms,
                       struct amp_error *err)
{
    struct next n = {.of = of};
    if (amp_agent_records_due(s, INT64_MAX, on_next, &n, err) < 0)
        return -1;
    *due_ms = n.due_ms;
    return 0;
}
