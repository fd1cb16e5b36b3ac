/* The messages about expired time limits and silent agents. */
#include "work/agent/agent_notices.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "message/protocol/amp/amp.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/sw4rm/answer.h"
#include "work/agent/sweep.h"
#include "work/agent/work.h"
#include "work/git/bindings.h"
#include "work/task/machines.h"
#include "work/task/task.h"
#include "json/record.h"

struct notice {
    struct amp_store *store;
    const struct amp_deadline_ctx *of;
    int64_t now_ms;
    struct amp_buf payload, line;
    char id[AMP_MSG_ID_MAX];
};

/* The NOTIFICATION about an agent that exceeded a time limit. */
static int limit_compose(struct notice *n, const struct amp_agent_overdue *o, struct amp_error *err)
{
    struct amp_jw w;

    amp_jw_init(&w, &n->payload);
    amp_jw_open(&w, '{');
    amp_jw_member_text(&w, "event", "agent_failed");
    amp_jw_member_text(&w, "severity", "warning");
    amp_jw_member_str(&w, "agent_id", o->agent);
    amp_jw_member_text(&w, "state", o->state);
    amp_jw_member_text(&w, "error_code", o->code);
    amp_rec_time(&w, o->lost_pid ? "last_seen" : "limit_passed", o->at_ms);
    amp_jw_member_text(&w, "suggested_action",
                       o->lost_pid ? "start the agent again"
                                   : "check whether the agent's process is alive");
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    snprintf(n->id, sizeof n->id, "%.40s:%s:%.*s:%lld", n->of->from, o->code,
             (int)(o->agent.n < 64 ? o->agent.n : 64), o->agent.p, (long long)o->at_ms);
    const struct amp_sw4rm_said message = {
        .from = n->of->from, .type = "NOTIFICATION", .token = n->id, .now_ms = n->now_ms};
    return amp_sw4rm_line(AMP_SPAN("admin"), &message, amp_buf_span(&n->payload), &n->line, err);
}

/* The escalation about a silent agent. Its record does not name the protocol of its task; the ids
 * of AMP's tasks have a form of their own. */
static int silence_compose(struct notice *n, const struct amp_agent_overdue *o,
                           struct amp_error *err)
{
    static const char *const affected[] = {NULL}, *const suggested[] = {
                                                      "Check whether the agent's process is alive",
                                                      "Dispatch the task again",
                                                      "Terminate the task", NULL};
    struct amp_span task = amp_span_str(o->task);
    char what[512], seen[AMP_TIME_MAX];
    struct amp_task_status st = {0};
    bool amp = amp_is_task_id(task);

    if (amp && amp_task_status(n->store, task, &st, err) < 0)
        return -1;
    amp_time_format(o->at_ms, seen);
    snprintf(what, sizeof what,
             "Agent %.*s, at work on %.127s, gave no sign of life for %lld min: last seen at %s",
             (int)(o->agent.n < 160 ? o->agent.n : 160), o->agent.p, o->task,
             (long long)(n->of->silence_ms / 60000), seen);
    const struct amp_escalation_args a = {
        .type = o->code,
        .from = n->of->from,
        .severity = n->of->severity,
        .triggered_by = "system",
        .task_id = amp ? o->task : AMP_TASK_NONE,
        .description = what,
        .affected = affected,
        .suggested = suggested,
        .task_status = st.found ? amp_task_fsm.states[st.state].name : "unknown",
        .last_successful = "",
        .reject_count = st.reject_count,
        .now_ms = n->now_ms,
    };
    return amp_compose_escalation(&a, &n->line, n->id, err);
}

static int on_overdue(void *ctx, const struct amp_agent_overdue *o, struct amp_store_emit *emit,
                      struct amp_error *err)
{
    struct notice *n = ctx;

    amp_buf_reset(&n->payload);
    amp_buf_reset(&n->line);
    if (o->silent ? silence_compose(n, o, err) < 0 : limit_compose(n, o, err) < 0)
        return -1;
    struct amp_span line = amp_buf_span(&n->line);
    line.n -= line.n > 0 && line.p[line.n - 1] == '\n';
    *emit = (struct amp_store_emit){amp_span_str(n->id), line, false};
    return 0;
}

static struct amp_agent_sweep sweep_of(const struct amp_deadline_ctx *c, bool silence,
                                       struct notice *n)
{
    return (struct amp_agent_sweep){.limits = !silence,
                                    .silence_ms = silence ? c->silence_ms : 0,
                                    .actor = c->actor,
                                    .notice = on_overdue,
                                    .ctx = n};
}

static int notices_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       bool silence, uint32_t *done, struct amp_error *err)
{
    struct notice n = {.store = s, .of = c, .now_ms = now_ms};
    const struct amp_agent_sweep sw = sweep_of(c, silence, &n);

    amp_buf_init(&n.payload, 1 << 16);
    amp_buf_init(&n.line, 1 << 17);
    int rc = amp_agent_sweep(s, &sw, now_ms, done, err);
    amp_buf_release(&n.payload);
    amp_buf_release(&n.line);
    return rc;
}

int amp_agent_limit_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                        uint32_t *done, struct amp_error *err)
{
    return notices_run(s, now_ms, c, false, done, err);
}

int amp_agent_limit_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                        struct amp_error *err)
{
    const struct amp_agent_sweep sw = sweep_of(c, false, NULL);
    return amp_agent_next_due(s, &sw, ms, err);
}

int amp_agent_silence_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                          uint32_t *done, struct amp_error *err)
{
    const struct amp_metric_labels label = {.code = AMP_CODE_SPAN(heartbeat_timeout)};
    int rc = notices_run(s, now_ms, c, true, done, err);
    amp_metrics_add(c->metrics, AMP_METRIC_ESCALATIONS, &label, *done);
    return rc;
}

int amp_agent_silence_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                          struct amp_error *err)
{
    const struct amp_agent_sweep sw = sweep_of(c, true, NULL);
    return amp_agent_next_due(s, &sw, ms, err);
}

/* ---- agents whose process was killed ---- */

bool amp_agent_works(const struct amp_agent_rec *rec)
{
    struct amp_fsm_result r;

    return rec->work.pid > 0 &&
           amp_fsm_step(&amp_agent_fsm, rec->work.state, AMP_AGENT_EV_LOSE, 0, &r, NULL) == 0;
}

bool amp_agent_lost(struct amp_store *s, struct amp_span agent, const struct amp_agent_rec *rec)
{
    char name[160];

    return amp_agent_works(rec) && amp_id_is_safe(agent) &&
           amp_span_copy(agent, name, sizeof name) && !amp_outbox_locked(s, name);
}

struct losing {
    struct notice n;
    uint32_t done;
};

static int on_agent(void *ctx, struct amp_span agent, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    struct losing *l = ctx;
    struct amp_store_emit emit;
    bool changed;

    if (!amp_agent_lost(l->n.store, agent, rec))
        return 0;
    const struct amp_agent_overdue o = {.agent = agent,
                                        .state = amp_agent_fsm.states[rec->work.state].name,
                                        .task = rec->work.task,
                                        .code = AMP_CODE(worker_lost),
                                        .lost_pid = rec->work.pid,
                                        .at_ms = rec->work.last_seen_ms};
    const struct amp_agent_lapse lapse = {.agent = agent,
                                          .lost_pid = rec->work.pid,
                                          .now_ms = l->n.now_ms,
                                          .emit = &emit,
                                          .actor = l->n.of->actor};
    if (on_overdue(&l->n, &o, &emit, err) < 0 ||
        amp_agent_time_out(l->n.store, &lapse, &changed, err) < 0)
        return -1;
    l->done += changed;
    return 0;
}

int amp_agent_lost_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    struct losing l = {.n = {.store = s, .of = c, .now_ms = now_ms}};

    amp_buf_init(&l.n.payload, 1 << 16);
    amp_buf_init(&l.n.line, 1 << 17);
    int rc = amp_agent_records(s, on_agent, &l, err);
    amp_buf_release(&l.n.payload);
    amp_buf_release(&l.n.line);
    *done += l.done;
    return rc;
}
