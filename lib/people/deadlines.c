/* The kinds of deadlines, in the order of their checks. */
#include "people/deadlines.h"

#include "message/delivery/admit/tokens.h"
#include "message/delivery/cursor/cursors.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/ledger/awaited.h"
#include "message/delivery/ledger/refused.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/record/forget.h"
#include "message/delivery/record/operation_key.h"
#include "message/delivery/settle/outcome.h"
#include "message/delivery/settle/sweep.h"
#include "message/delivery/transfer/units.h"
#include "message/pause/pause.h"
#include "people/answer/due.h"
#include "people/question/hook/grant.h"
#include "people/question/operators/token.h"
#include "work/agent/agent_notices.h"
#include "work/aop/run/review.h"
#include "work/aop/session.h"
#include "work/attempt/reply/reply.h"
#include "work/git/bindings.h"
#include "work/handoff/offer/handoff.h"
#include "work/item/claim/queue.h"
#include "work/item/judge/conflict.h"
#include "work/item/permit/permit.h"
#include "work/loop/pool/lost.h"
#include "work/loop/tidy.h"
#include "work/task/activity/notice/activity.h"

#define ROUNDS_MAX 8 /* running a row may make others due at once, such as a retry */

static int message_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                       struct amp_error *err)
{
    return amp_message_next_due(s, c->silence_ms, ms, err);
}

static bool message_suspended(void *ctx, struct amp_span task, struct amp_span agent)
{
    return amp_pauses_find(ctx, task, agent) != NULL;
}

static int message_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    struct amp_pauses pauses;
    amp_pauses_init(&pauses);
    int rc = amp_pauses_read(s, &pauses, err);
    const struct amp_sweep_options o = {.actor = c->actor,
                                        .from = c->from,
                                        .severity = c->severity,
                                        .silence_ms = c->silence_ms,
                                        .metrics = c->metrics,
                                        .most = c->most,
                                        .retry = c->retry,
                                        .window_ms = c->window_ms,
                                        .suspended = pauses.n_v ? message_suspended : NULL,
                                        .ctx = &pauses};
    if (rc >= 0)
        rc = amp_message_sweep(s, now_ms, &o, done, err);
    amp_pauses_release(&pauses);
    return rc < 0 ? -1 : 0;
}

static int window_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err)
{
    const struct amp_idem_options o = {
        .now_ms = now_ms, .window_ms = c->window_ms, .actor = c->actor};
    return amp_idem_forget(s, &o, done, err);
}

static int cursor_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err)
{
    return amp_cursors_sweep(s, now_ms, c->actor, c->metrics, done, err);
}

static int binding_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                       uint32_t *done, struct amp_error *err)
{
    return amp_binding_expire(s, now_ms, c->actor, c->from, c->prepare, done, err);
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

static int queue_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                     struct amp_error *err)
{
    (void)c;
    return amp_queue_due(s, ms, err);
}

const struct amp_deadline amp_deadlines[] = {
    {"acknowledgement", "messages: acknowledgement, time to live, retries, silent holders",
     .next_due = message_due, .run = message_run},
    {"silence", "silent working agents", .next_due = amp_agent_silence_due,
     .run = amp_agent_silence_run},
    {"window", "outcomes of operations are removed", AMP_IDEM_KIND, .run = window_run,
     .upkeep = true},
    {"outcome", "records of awaited outcomes are removed", AMP_AWAITED_KIND,
     .sweep = amp_awaited_forget, .upkeep = true},
    {"refused", "records of refused messages are removed after a day", AMP_REFUSED, .upkeep = true},
    {"cursor", "gaps without a waiting router, and expired leases", AMP_CURSOR_KIND,
     .run = cursor_run},
    {"retention", "old dead letters are removed, if configured", .next_due = dead_due,
     .run = dead_run, .upkeep = true},
    {"inbox", "messages in inboxes expire", AMP_INBOX_BUFFERS, .sweep = amp_inbox_sweep},
    {"binding", "worktrees: a switch ends, a failed bind is repeated and reported",
     AMP_BINDING_KIND, .run = binding_run},
    {"agent", "agents that exceed the time limit of their state fail",
     .next_due = amp_agent_limit_due, .run = amp_agent_limit_run, .upkeep = true},
    {"lost", "pools and agents whose process was killed: jobs are queued again, agents fail",
     .next_due = amp_lost_due, .run = amp_lost_run, .upkeep = true},
    {"question", "questions: deferrals end, and fallbacks apply after the deadline",
     AMP_ESCALATION_KIND, .run = amp_decision_due_run, .upkeep = true},
    {"token", "records of expired tokens are removed", AMP_NONCE_KIND, .upkeep = true},
    {"answer_token", "records of expired answer tokens are removed", AMP_ANSWER_TOKEN_KIND,
     .upkeep = true},
    {"hook_grant", "permissions of hooks for a session end", AMP_HOOK_GRANT_KIND, .upkeep = true},
    {"handoff", "handoffs whose candidate did not answer go to the next one, or expire",
     AMP_HANDOFF_KIND, .run = amp_handoffs_due_run},
    {"activity", "the activity buffer: entries without a process, and the history",
     AMP_ACTIVITY_KIND, .sweep = amp_notice_sweep, .upkeep = true},
    {"reply", "records of answers are removed after a week", AMP_REPLY_KIND, .upkeep = true},
    {"session_review", "records of reviews of RESPONSEs are removed", AMP_SESSION_REVIEW_KIND,
     .upkeep = true},
    {"queue", "the queue: lost workers, parked jobs, deadlines, records of ended jobs",
     .next_due = queue_due, .sweep = amp_queue_sweep, .upkeep = true},
    {"conflict", "conflicts between jobs: permissions end, and checks of lost pools",
     AMP_CONFLICT_KIND, .sweep = amp_conflicts_tend, .upkeep = true},
    {"permit", "records of overrides are removed a week after their end", AMP_PERMIT_KIND,
     .upkeep = true},
    {"session", "records of sessions are removed a month after their report", AMP_SESSION_KIND,
     .sweep = amp_session_sweep, .upkeep = true},
    {"transfer", "messages in chunks that are unfinished are dropped, and their senders hear of it",
     AMP_TRANSFER_KIND, .sweep = amp_transfers_sweep},
    {"files", "the directories of tasks that ended long ago are removed", .next_due = amp_tidy_due,
     .sweep = amp_tidy_run, .upkeep = true},
    {0},
};

int amp_deadline_next(const struct amp_deadline *d, struct amp_store *s,
                      const struct amp_deadline_ctx *c, int64_t *ms, struct amp_error *err)
{
    return d->next_due ? d->next_due(s, c, ms, err) : amp_store_next_due(s, d->kind, ms, err);
}

unsigned amp_deadlines_count(void)
{
    return sizeof(amp_deadlines) / sizeof(amp_deadlines[0]) - 1;
}

static int row_run(const struct amp_deadline *d, struct amp_store *s, int64_t now_ms,
                   const struct amp_deadline_ctx *c, uint32_t *n, struct amp_error *err)
{
    const struct amp_forgetting old = {.kind = d->kind, .actor = c->actor, .now_ms = now_ms};

    return d->run     ? d->run(s, now_ms, c, n, err)
           : d->sweep ? d->sweep(s, now_ms, c->actor, n, err)
                      : amp_forget(s, &old, n, err);
}

int amp_deadlines_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                      uint32_t *done, struct amp_error *err)
{
    struct amp_deadline_ctx left = *c; /* of the limit, over all rounds */
    bool any = true;
    for (int round = 0; any && round < ROUNDS_MAX; round++) {
        any = false;
        for (unsigned i = 0; amp_deadlines[i].name; i++) {
            const struct amp_deadline *d = &amp_deadlines[i];
            int64_t due = 0;
            uint32_t n = 0;
            if (amp_deadline_next(d, s, c, &due, err) < 0)
                return -1;
            if (due == 0 || due > now_ms)
                continue;
            if (d->run == message_run && c->most > 0 && left.most == 0)
                continue;
            if (row_run(d, s, now_ms, &left, &n, err) < 0)
                return -1;
            if (d->run == message_run && c->most > 0)
                left.most -= n < left.most ? n : left.most;
            any |= n > 0;
            if (done)
                done[i] += n;
            struct amp_metric_labels l = {.code = amp_span_str(d->name)};
            if (n > 0)
                amp_metrics_add(c->metrics, AMP_METRIC_DEADLINES, &l, n);
        }
    }
    return 0;
}
