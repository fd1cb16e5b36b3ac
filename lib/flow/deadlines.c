/* The kinds of deadlines, in the order in which they are looked at. */
#include "flow/deadlines.h"

#include "flow/agent_notices.h"
#include "flow/bindings.h"
#include "message/cursor/cursors.h"
#include "message/inbox/inbox.h"
#include "message/ledger/awaited.h"
#include "message/ledger/refused.h"
#include "message/operation/idempotency.h"
#include "message/settle/outcome.h"
#include "message/settle/sweep.h"

#define ROUNDS_MAX 8 /* what a row's doing makes due at once: a retry of a timeout */

static int message_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                       struct amp_error *err)
{
    return amp_message_next_due(s, c->silence_ms, ms, err);
}

static int message_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    struct amp_sweep_options o = {.actor = c->actor,
                                  .from = c->from,
                                  .severity = c->severity,
                                  .silence_ms = c->silence_ms,
                                  .metrics = c->metrics,
                                  .retry = c->retry,
                                  .window_ms = c->window_ms};
    return amp_message_sweep(s, now_ms, &o, done, err);
}

static int window_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                      struct amp_error *err)
{
    return amp_idem_next_due(s, ms, err);
}

static int window_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err)
{
    struct amp_idem_options o = {.now_ms = now_ms, .window_ms = c->window_ms, .actor = c->actor};
    return amp_idem_forget(s, &o, done, err);
}

static int awaited_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                       struct amp_error *err)
{
    (void)c;
    return amp_awaited_next_due(s, ms, err);
}

static int awaited_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    return amp_awaited_forget(s, now_ms, c->actor, done, err);
}

static int refused_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                       struct amp_error *err)
{
    (void)c;
    return amp_store_next_due(s, AMP_REFUSED, ms, err);
}

static int refused_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    return amp_refused_forget(s, now_ms, c->actor, done, err);
}

static int cursor_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                      struct amp_error *err)
{
    (void)c;
    return amp_cursors_next_due(s, ms, err);
}

static int cursor_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err)
{
    return amp_cursors_sweep(s, now_ms, c->actor, c->metrics, done, err);
}

static int dead_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                    struct amp_error *err)
{
    return amp_dead_next_due(s, &c->dead, ms, err);
}

static int dead_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                    uint32_t *done, struct amp_error *err)
{
    return amp_dead_retain(s, &c->dead, now_ms, c->actor, false, NULL, NULL, done, err);
}

static int inbox_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                     struct amp_error *err)
{
    (void)c;
    return amp_inbox_next_due(s, ms, err);
}

static int inbox_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                     uint32_t *done, struct amp_error *err)
{
    return amp_inbox_sweep(s, now_ms, c->actor, done, err);
}

static int binding_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                       struct amp_error *err)
{
    (void)c;
    return amp_store_next_due(s, AMP_BINDING_KIND, ms, err);
}

static int binding_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    return amp_binding_expire(s, now_ms, c->actor, done, err);
}

static struct amp_agent_notices silence_of(const struct amp_deadline_ctx *c)
{
    return (struct amp_agent_notices){
        .silence_ms = c->silence_ms, .actor = c->actor, .from = c->from, .severity = c->severity};
}

static int silence_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                       struct amp_error *err)
{
    const struct amp_agent_notices l = silence_of(c);
    return amp_agent_notices_next_due(s, &l, ms, err);
}

static int silence_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    const struct amp_agent_notices l = silence_of(c);
    struct amp_metric_labels label = {.code = AMP_SPAN("heartbeat_timeout")};
    int rc = amp_agent_notices_run(s, &l, now_ms, done, err);
    amp_metrics_add(c->metrics, AMP_METRIC_ESCALATIONS, &label, *done);
    return rc;
}

static int agent_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                     struct amp_error *err)
{
    const struct amp_agent_notices l = {.states = true, .actor = c->actor};
    return amp_agent_notices_next_due(s, &l, ms, err);
}

static int agent_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                     uint32_t *done, struct amp_error *err)
{
    const struct amp_agent_notices l = {.states = true, .actor = c->actor};
    return amp_agent_notices_run(s, &l, now_ms, done, err);
}

const struct amp_deadline amp_deadlines[] = {
    {"acknowledgement", "messages: acknowledgement, time to live, retries, silent holders",
     message_due, message_run, false},
    {"silence", "silent working agents", silence_due, silence_run, false},
    {"window", "outcomes of operations are removed", window_due, window_run, true},
    {"outcome", "records of awaited outcomes are removed", awaited_due, awaited_run, true},
    {"refused", "records of refused messages are removed after a day", refused_due, refused_run,
     true},
    {"cursor", "gaps without a waiting router, and expired leases", cursor_due, cursor_run, false},
    {"retention", "old dead letters are removed, if configured", dead_due, dead_run, true},
    {"inbox", "messages in inboxes expire", inbox_due, inbox_run, false},
    {"binding", "worktrees: a switch ends, a failed bind is reported", binding_due, binding_run,
     false},
    {"agent", "agents that exceed the time limit of their state fail", agent_due, agent_run, true},
    {0},
};

unsigned amp_deadlines_count(void)
{
    return sizeof(amp_deadlines) / sizeof(amp_deadlines[0]) - 1;
}

int amp_deadlines_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err)
{
    bool any = true;
    for (int round = 0; any && round < ROUNDS_MAX; round++) {
        any = false;
        for (unsigned i = 0; amp_deadlines[i].name; i++) {
            int64_t due = 0;
            uint32_t n = 0;
            if (amp_deadlines[i].next_due(s, c, &due, err) < 0)
                return -1;
            if (due == 0 || due > now_ms)
                continue;
            if (amp_deadlines[i].run(s, now_ms, c, &n, err) < 0)
                return -1;
            any |= n > 0;
            if (done)
                done[i] += n;
            struct amp_metric_labels l = {.code = amp_span_str(amp_deadlines[i].name)};
            if (n > 0)
                amp_metrics_add(c->metrics, AMP_METRIC_DEADLINES, &l, n);
        }
    }
    return 0;
}
