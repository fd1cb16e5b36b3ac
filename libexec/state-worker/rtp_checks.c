/*
 * The Runtime Protocol's rules that need other events: ids and outbox numbers (§1), attempts (§1),
 * the order in which a task is created, accepted, worked on and ended (§4), and what an ack may
 * refer to (§5). The same event again, byte for byte, is a redelivery and passes.
 */
#include <stdio.h>

#include "message/ledger/ledger.h"
#include "rtp.h"

/* How old the picture of the ledger may be: what reading it costs is at most a twentieth. */
enum { OLD_MS = 1000, SHARE = 20 };

static int fresh(struct checks *c, struct amp_error *err)
{
    if (!c->rtp && rtp_history_new(&c->rtp, err) < 0)
        return -1;
    struct rtp_history *h = c->rtp;
    int64_t old = h->took_ms * SHARE;
    if (h->loaded && amp_mono_ms() - h->read_ms < (old > OLD_MS ? old : OLD_MS))
        return 0;
    return rtp_history_load(h, c, err);
}

/* 1: the same event came before; 0: it is new, or its id is another event's (a finding). */
static int redelivered(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec rec;
    int seen = seen_find(c->seen, v->id, v->line);
    if (seen == 0) {
        if (amp_message_find(c->store, v->id, &c->mem, &rec, err) < 0)
            return -1;
        if (rec.found)
            seen = amp_span_eq(rec.line, v->line) ? 1 : 2;
    }
    if (seen == 2)
        checks_finding(c, "duplicate_event", "/eventId", v->id, "an id that no other event has",
                       "is the id of another event; the same bytes again would be a redelivery");
    return seen == 1;
}

static void number_text(int64_t n, char *out, size_t size, const char *before)
{
    snprintf(out, size, "%s%lld", before, (long long)n);
}

static void outbox(struct checks *c, const struct rtp_fact *f)
{
    const int64_t *next = table_find(&c->rtp->outboxes, f->outbox);
    char found[32], expected[48];
    if (!next || f->seq >= *next)
        return;
    number_text(f->seq, found, sizeof found, "");
    number_text(*next, expected, sizeof expected, "at least ");
    checks_finding(c, "seq_not_monotonic", "/seq", amp_span_str(found), expected,
                   "is not above the last number of this outbox");
}

static void attempt(struct checks *c, const struct rtp_fact *f)
{
    const int64_t *last = f->operation ? table_find(&c->rtp->operations, f->operation) : NULL;
    char found[32], expected[48];
    if (!last || f->attempt > *last)
        return;
    number_text(f->attempt, found, sizeof found, "");
    number_text(*last + 1, expected, sizeof expected, "at least ");
    checks_finding(c, "attempt_not_incremented", "/trace/attempt", amp_span_str(found), expected,
                   "has not grown although the same operation was sent before");
}

static bool among(const struct rtp_task *task, uint64_t agent, uint64_t everyone)
{
    for (uint32_t i = 0; i < task->n_assignees; i++)
        if (task->assignees[i] == agent || task->assignees[i] == everyone)
            return true;
    return task->n_assignees == 0;
}

/* Findings about tasks quote what the payload says. */
static void about_task(struct checks *c, const struct amp_view *v, const char *code,
                       const char *key, const char *expected, const char *says)
{
    char pointer[64];
    snprintf(pointer, sizeof pointer, "/payload/%s", key);
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    struct amp_span found = {"", 0};
    if (tok != AMP_TOK_NONE)
        found = amp_tok_raw(v->tape, tok);
    checks_finding(c, code, pointer, found, expected, "%s", says);
}

static void accept_check(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                         const struct rtp_task *task)
{
    static const char by[] = "acceptedByAgentId";
    if (task->claimant && task->claimant != f->agent)
        about_task(c, v, "already_claimed", by, "the agent that has the task",
                   "cannot take what another agent has taken");
    else if (!among(task, f->agent, c->rtp->everyone))
        about_task(c, v, "not_assignee", by, "one of the task's toAgents",
                   "is none of the agents that the task is for");
}

static void work(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                 const struct rtp_task *task)
{
    if (task->claimant == 0) {
        about_task(c, v, "accept_required", "taskId", "a task_accept first",
                   "is a task that nobody has accepted");
        return;
    }
    if (task->claimant == f->agent)
        return;
    if (f->kind == AMP_RTP_UPDATE)
        checks_finding(c, "not_claimant", "/sourceAgentId", v->from, "the agent that has the task",
                       "is not the agent that accepted the task");
    else
        about_task(c, v, "not_claimant",
                   f->kind == AMP_RTP_COMPLETE ? "completedByAgentId" : "failedByAgentId",
                   "the agent that has the task", "is not the agent that accepted the task");
}

/* What was said before the end may be said again after it: whoever resends has seen no answer. */
static bool is_resend(const struct checks *c, const struct rtp_fact *f)
{
    return f->operation && table_find(&c->rtp->operations, f->operation);
}

static void task_step(struct checks *c, const struct amp_view *v, const struct rtp_fact *f)
{
    const struct rtp_task *task = table_find(&c->rtp->tasks, f->task);
    bool begins = f->kind == AMP_RTP_ACCEPT || f->kind == AMP_RTP_ACK_ACCEPT;
    if (!begins && f->kind != AMP_RTP_UPDATE && f->kind != AMP_RTP_COMPLETE &&
        f->kind != AMP_RTP_FAILED)
        return;
    if (!task || !task->created)
        about_task(c, v, "unknown_ref", "taskId", "a task that the state knows",
                   "is no task of which the state has the task_create");
    else if (task->done && is_resend(c, f))
        return;
    else if (task->done)
        about_task(c, v, "terminal", "taskId", "a task that has not ended",
                   "is a task that has ended");
    else if (begins)
        accept_check(c, v, f, task);
    else
        work(c, v, f, task);
}

/* Whether what an ack "processed" refers to has come to an end. */
static bool has_outcome(const struct rtp_history *h, const struct rtp_event *event)
{
    const struct rtp_task *task = event->task ? table_find(&h->tasks, event->task) : NULL;
    if (event->kind == AMP_RTP_CREATE || event->kind == AMP_RTP_SKILL)
        return task && (task->done || task->failed);
    if (event->kind == AMP_RTP_MESSAGE)
        return event->corr && table_find(&h->replies, event->corr);
    return true;
}

static void ack(struct checks *c, const struct amp_view *v)
{
    struct amp_span ref = v->body.ack.ref;
    const struct rtp_event *event =
        ref.n ? table_find(&c->rtp->events, keyed_hash(c->rtp->key, ref)) : NULL;
    if (!event)
        about_task(c, v, "unknown_ref", "refEventId", "an event that the state knows",
                   "refers to an event that is not in the state");
    else if (v->body.ack.stage == AMP_STAGE_FULFILLED && !has_outcome(c->rtp, event))
        about_task(c, v, "no_terminal_outcome", "ackType",
                   "accepted, until there is a reply, a task_complete or a task_failed",
                   "says that the event was processed, but there is no outcome");
}

int rtp_check(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    if (v->id.n == 0)
        return 0;
    if (fresh(c, err) < 0)
        return -1;
    int again = redelivered(c, v, err);
    if (again != 0)
        return again < 0 ? -1 : 0;
    struct rtp_fact f;
    if (rtp_fact_of(c->rtp, v, &f, err) < 0)
        return -1;
    outbox(c, &f);
    attempt(c, &f);
    task_step(c, v, &f);
    if (f.kind == AMP_RTP_ACK)
        ack(c, v);
    int bad = c->findings == 0 ? rtp_absorb(c->rtp, &f, err) : 0;
    rtp_fact_release(&f);
    if (bad < 0 || c->findings > 0)
        return bad;
    return seen_add(c->seen, v->id, v->line, err);
}
