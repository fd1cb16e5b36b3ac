/*
 * The Runtime Protocol's rules that need other events: ids and outbox numbers (§1), attempts (§1),
 * the order in which a task is created, accepted, worked on and ended (§4), and what an ack may
 * refer to (§5). The same event again, byte for byte, is a redelivery and passes.
 */
#include <stdio.h>

#include "message/ledger/holder.h"
#include "message/ledger/ledger.h"
#include "protocol/terms.h"
#include "rtp.h"

/* The greatest age of what was read of the ledger, so that reading takes at most a twentieth of the
 * time. */
enum { OLD_MS = 1000, SHARE = 20 };

static int history_refresh(struct checks *c, struct amp_error *err)
{
    if (!c->rtp && rtp_history_new(&c->rtp, err) < 0)
        return -1;
    struct rtp_history *h = c->rtp;
    int64_t age = h->took_ms * SHARE;
    if (h->loaded && amp_mono_ms() - h->read_ms < (age > OLD_MS ? age : OLD_MS))
        return 0;
    return rtp_history_load(h, c, err);
}

/* Returns 1 if the same event came before, 0 if it is new or its id is another event's (a finding).
 */
static int is_redelivery(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec rec;
    enum seen_result seen = seen_find(&c->seen, v->id, v->message);
    if (seen == SEEN_NEW) {
        if (amp_message_find(c->store, v->id, &c->mem, &rec, err) < 0)
            return -1;
        int same = rec.found ? amp_line_has_message(rec.line, v, err) : 0;
        if (same < 0)
            return -1;
        if (rec.found)
            seen = same ? SEEN_SAME : SEEN_OTHER;
    }
    if (seen == SEEN_OTHER)
        checks_finding(c, "duplicate_event", "/eventId", v->id, "an unused id",
                       "is the id of another event");
    return seen == SEEN_SAME;
}

static void number_text(int64_t n, char *out, size_t size, const char *before)
{
    snprintf(out, size, "%s%lld", before, (long long)n);
}

static void check_outbox(struct checks *c, const struct rtp_fact *f)
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

static void check_attempt(struct checks *c, const struct rtp_fact *f)
{
    const int64_t *last = f->operation ? table_find(&c->rtp->operations, f->operation) : NULL;
    char found[32], expected[48];
    if (!last || f->attempt > *last)
        return;
    number_text(f->attempt, found, sizeof found, "");
    number_text(*last + 1, expected, sizeof expected, "at least ");
    checks_finding(c, "attempt_not_incremented", "/trace/attempt", amp_span_str(found), expected,
                   "did not increase although the operation was sent before");
}

static bool is_assignee(const struct rtp_task *task, uint64_t agent, uint64_t everyone)
{
    for (uint32_t i = 0; i < task->n_assignees; i++)
        if (task->assignees[i] == agent || task->assignees[i] == everyone)
            return true;
    return task->n_assignees == 0;
}

/* A finding that quotes the event's value at the pointer. */
static void add_finding(struct checks *c, const struct amp_view *v, const char *code,
                        const char *pointer, const char *expected, const char *says)
{
    uint32_t tok = amp_tape_pointer(v->tape, 0, amp_span_str(pointer));
    struct amp_span found = {"", 0};
    if (tok != AMP_TOK_NONE)
        found = amp_tok_raw(v->tape, tok);
    checks_finding(c, code, pointer, found, expected, "%s", says);
}

/* The task's facts for an agent, by its name or by its role. */
static int claim_read(struct checks *c, struct amp_span agent, const struct rtp_fact *f,
                      const struct rtp_task *task, struct amp_work_claim *out,
                      struct amp_error *err)
{
    char name[256], role[128] = "";
    uint64_t called[2] = {f->agent, 0};
    if (amp_span_copy(agent, name, sizeof name) && amp_holder_role(c->store, name, role, err) < 0)
        return -1;
    if (*role)
        called[1] = keyed_hash(c->rtp->key, amp_span_str(role));
    *out = (struct amp_work_claim){.begins = f->begins,
                                   .must_accept = f->kind != AMP_RTP_ACK,
                                   .is_claimed = task->claimant != 0};
    for (int i = 0; i < (called[1] ? 2 : 1); i++) {
        out->is_claimant |= out->is_claimed && task->claimant == called[i];
        out->is_addressee |= is_assignee(task, called[i], c->rtp->everyone);
    }
    return 0;
}

static int claim_check(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                       const struct rtp_task *task, struct amp_error *err)
{
    static const struct {
        const char *expected, *says;
    } words[AMP_WORK_VERDICTS] = {
        [AMP_WORK_NOT_HOLDER] = {"the agent that has the task",
                                 "is not the agent that accepted the task"},
        [AMP_WORK_TAKEN] = {"the agent that has the task",
                            "cannot accept a task that another agent has accepted"},
        [AMP_WORK_NOT_ADDRESSEE] = {"one of the task's toAgents",
                                    "is not one of the agents of the task"},
        [AMP_WORK_NOT_ACCEPTED] = {"a task_accept first", "is a task that no agent has accepted"},
    };
    struct amp_work_claim claim;
    struct amp_outcome o;
    amp_outcome_read(v, &o);
    if (claim_read(c, o.by, f, task, &claim, err) < 0)
        return -1;
    enum amp_work_verdict verdict = amp_work_judge(&claim);
    if (verdict != AMP_WORK_ALLOWED)
        add_finding(c, v, amp_terms_denial(amp_terms_of(v->protocol), verdict),
                    verdict == AMP_WORK_NOT_ACCEPTED ? "/payload/taskId" : o.by_at,
                    words[verdict].expected, words[verdict].says);
    return 0;
}

/* Whether the event repeats one from before the end of its task, because its sender has no answer.
 */
static bool is_resend(const struct checks *c, const struct rtp_fact *f)
{
    return f->operation && table_find(&c->rtp->operations, f->operation);
}

static int check_task_step(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                           struct amp_error *err)
{
    const struct rtp_task *task = table_find(&c->rtp->tasks, f->task);
    if (!f->begins && f->kind != AMP_RTP_UPDATE && f->kind != AMP_RTP_COMPLETE &&
        f->kind != AMP_RTP_FAILED)
        return 0;
    if (!task || !task->created)
        add_finding(c, v, "unknown_ref", "/payload/taskId", "a task in the state directory",
                    "is a task without a task_create in the state directory");
    else if (task->done && is_resend(c, f))
        return 0;
    else if (task->done)
        add_finding(c, v, "terminal", "/payload/taskId", "a task that has not ended",
                    "is a task that has ended");
    else
        return claim_check(c, v, f, task, err);
    return 0;
}

/* Whether the event that an ack "processed" refers to has an outcome. */
static bool has_outcome(const struct rtp_history *h, const struct rtp_event *event)
{
    const struct rtp_task *task = event->task ? table_find(&h->tasks, event->task) : NULL;
    if (event->kind == AMP_RTP_CREATE || event->kind == AMP_RTP_SKILL)
        return task && (task->done || task->failed);
    if (event->kind == AMP_RTP_MESSAGE)
        return event->corr && table_find(&h->replies, event->corr);
    return true;
}

static int check_ack(struct checks *c, const struct amp_view *v, const struct rtp_fact *f,
                     struct amp_error *err)
{
    struct amp_span ref = v->body.ack.ref;
    const struct rtp_event *event =
        ref.n ? table_find(&c->rtp->events, keyed_hash(c->rtp->key, ref)) : NULL;
    const struct rtp_task *task =
        event && (event->kind == AMP_RTP_CREATE || event->kind == AMP_RTP_SKILL)
            ? table_find(&c->rtp->tasks, event->task)
            : NULL;
    if (!event)
        add_finding(c, v, "unknown_ref", "/payload/refEventId", "an event in the state directory",
                    "refers to an event that is not in the state directory");
    else if (v->body.ack.stage == AMP_STAGE_FULFILLED && !has_outcome(c->rtp, event))
        add_finding(c, v, "no_terminal_outcome", "/payload/ackType",
                    "accepted until there is a reply, a task_complete or a task_failed",
                    "reports the event as processed, but there is no outcome");
    else if (!task)
        return checks_holder(c, v, err);
    else if (v->body.ack.stage != AMP_STAGE_RECEIVED)
        return claim_check(c, v, f, task, err);
    return 0;
}

int rtp_check(struct checks *c, const struct amp_view *v, struct amp_error *err)
{
    if (v->id.n == 0)
        return 0;
    if (history_refresh(c, err) < 0)
        return -1;
    int again = is_redelivery(c, v, err);
    if (again != 0)
        return again < 0 ? -1 : 0;
    struct rtp_fact f;
    if (rtp_fact_of(c->rtp, v, &f, err) < 0)
        return -1;
    check_outbox(c, &f);
    check_attempt(c, &f);
    int bad = f.kind == AMP_RTP_ACK     ? check_ack(c, v, &f, err)
              : f.kind == AMP_RTP_REPLY ? checks_holder(c, v, err)
                                        : check_task_step(c, v, &f, err);
    if (bad == 0 && c->findings == 0)
        bad = rtp_absorb(c->rtp, &f, err);
    rtp_fact_release(&f);
    if (bad < 0 || c->findings > 0)
        return bad;
    return seen_add(&c->seen, v->id, v->message, err);
}
