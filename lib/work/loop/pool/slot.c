/* An agent of a pool in its fiber: it waits for a job, works on it, and says how it left it. */
#include "work/loop/pool/slot.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "message/delivery/sender/identity.h"
#include "message/protocol/work.h"
#include "work/agent/work.h"
#include "work/attempt/io.h"
#include "work/item/queue.h"
#include "work/loop/pool/private.h"
#include "work/rtp/run/runtime.h"

/* ---- the wait ---- */

/* The loop of the pool waits for all agents at once; not within a turn of the store, in which the
 * others must not write. */
int amp_slot_wait(void *ctx, struct amp_loop *turn, struct amp_error *err)
{
    struct amp_slot *slot = ctx;

    if (amp_store_in_batch(slot->w.store))
        return amp_loop_wait(turn, err);
    slot->turn = turn;
    slot->due_ms = turn->wait_ms < 0 ? -1 : amp_mono_ms() + turn->wait_ms;
    slot->woken = false;
    for (unsigned i = 0; i < turn->n; i++)
        turn->fds[i].revents = 0;
    amp_fiber_yield(slot->fiber);
    slot->turn = NULL;
    return AMP_LOOP_READY;
}

static struct amp_slot *slot_named(const struct amp_slot *slot, const char *agent)
{
    struct amp_pool *p = slot->pool;

    for (uint32_t i = p->first; i < p->n_slots; i++)
        if (strcmp(p->slot[i]->agent, agent) == 0)
            return p->slot[i];
    return NULL;
}

static bool slot_borrow(void *ctx, const char *agent)
{
    struct amp_slot *other = slot_named(ctx, agent);
    struct amp_error e;

    if (!other || !other->ready || other->has_job || other->borrowed || other->keeps ||
        amp_pool_keeps(other, &e) != 0)
        return false;
    other->borrowed = true;
    return true;
}

static void slot_give_back(void *ctx, const char *agent)
{
    slot_named(ctx, agent)->borrowed = false;
    ((struct amp_slot *)ctx)->pool->look = true;
}

static int slot_claimed(void *ctx, struct amp_error *err)
{
    return amp_pool_claimed(ctx, err);
}

/* ---- a job of AMP: the executor's and the reviewer's work ---- */

static bool slot_is_stopping(const struct amp_slot *slot)
{
    return slot->w.ask.what || slot->stop;
}

static void outcome_set(struct amp_pool_outcome *out, enum amp_pool_end end, const char *code,
                        const char *why)
{
    out->end = end;
    snprintf(out->code, sizeof out->code, "%s", code);
    snprintf(out->why, sizeof out->why, "%.255s", why);
}

void amp_slot_leave(struct amp_slot *slot)
{
    /* A confined agent's processes end with it. Another agent's processes that left its session are
     * found by their environment. */
    if (!amp_pool_is_walled(slot->pool))
        amp_agent_end_leftovers(slot->w.state_dir, slot->agent, true);
    if (*slot->w.left.worktree)
        amp_worker_vacate(&slot->w);
}

static void slot_leaves(void *ctx)
{
    amp_slot_leave(ctx);
}

static int slot_step(void *ctx, struct amp_queue_step *step, struct amp_buf *mem,
                     struct amp_queue_job *out, struct amp_error *err)
{
    return amp_pool_step(ctx, step, mem, out, err);
}

/* An attempt that was stopped goes on later. 1: it goes on now. */
static int attempt_judge(const struct amp_slot *slot, struct amp_pool_outcome *out)
{
    const struct amp_worker_left *left = &slot->w.left;

    /* It has failed also if other subtasks are left. */
    if (amp_worker_is_forced(&slot->w)) {
        outcome_set(out, AMP_POOL_FAILED, left->code, "ended for more urgent work");
        return 0;
    }
    if (!slot_is_stopping(slot))
        return 1;
    outcome_set(out, AMP_POOL_AGAIN, left->code, left->yielded ? "stopped at a safe point" : "");
    out->keeps = slot->item.keeps;
    return 0;
}

static int dispatch_work(struct amp_slot *slot, const struct amp_view *v,
                         const struct amp_worker_role *role, void *ctx,
                         struct amp_pool_outcome *out, struct amp_error *err)
{
    struct amp_worker *w = &slot->w;

    w->role = role;
    w->ctx = ctx;
    /* The messages of an input are acknowledged by the agents that get them. */
    if (slot->pool->opt->input && amp_worker_read(w, &slot->item, v, err) < 0)
        return -1;
    while (!slot->ended) {
        int rc = role->work(w, &slot->item, v, err);
        w->task = NULL;
        w->halted = w->paused = false;
        if (rc < 0)
            return -1;
        if (slot->ended || attempt_judge(slot, out) == 0)
            return 0;
        if (rc == 0)
            continue;
        w->waits = true; /* for the end of a suspension */
        rc = amp_worker_turn(w, NULL, 0, -1, err);
        w->waits = false;
        if (rc < 0)
            return -1;
    }
    return 0;
}

/* ---- any job ---- */

static bool is_lost(const struct amp_slot *slot)
{
    return slot->job.losses >= slot->pool->opt->queue.losses_most;
}

static int job_work(struct amp_slot *slot, struct amp_pool_outcome *out, struct amp_error *err)
{
    struct amp_worker *w = &slot->w;
    struct amp_view v;

    w->refusal = (struct amp_error){0};
    if (is_lost(slot))
        amp_fail(&w->refusal, AMP_NO, worker_lost, "%lld pools that worked on it were lost",
                 (long long)slot->job.losses);
    else if (*slot->job.failed)
        amp_fail(&w->refusal, AMP_NO, predecessor_failed,
                 "job %s, which it follows, did not do its work", slot->job.failed);
    else if (slot->over_budget)
        amp_fail(&w->refusal, AMP_NO, budget_exceeded, "the budget of the task is spent");
    if (amp_worker_find(w, w->job_reader, amp_span_str(slot->job.msg_id), &w->message, &v, err) < 0)
        return -1;
    bool in_session = amp_session_is_task(&v) && v.id.n > 0;
    int ours = in_session ? 1
               : v.kind == AMP_KIND_DISPATCH && !amp_work_of(v.protocol)->keeps_tasks
                   ? amp_runtime_is_ours(w, &v, err)
                   : v.kind == AMP_KIND_DISPATCH;
    if (ours < 0)
        return -1;
    if (w->refusal.status && !is_lost(slot) && !in_session)
        return amp_pool_refuse(slot, &v, w->refusal.code, w->refusal.what, out, err);
    if (!in_session && !slot->opt.argv)
        return amp_pool_refuse(slot, &v, AMP_CODE(no_command),
                               "the pool has commands for TASKs of sessions only", out, err);
    if (in_session)
        return dispatch_work(slot, &v, &amp_session_role, &slot->session, out, err);
    if (!ours && v.n_to > 0 && amp_runtime_is_task(&v))
        return amp_pool_misdirected(slot, &v, out, err);
    if (ours || amp_runtime_is_task(&v)) /* an agent without its capabilities refuses it */
        return dispatch_work(slot, &v, &amp_run_role, &slot->run, out, err);
    if (v.kind == AMP_KIND_REVIEW)
        return dispatch_work(slot, &v, &amp_review_role, &slot->review, out, err);
    return amp_pool_task(slot, &v, out, err);
}

/* A failure that is of the job, of its repository or of a stop is its end. -1: of the pool. */
static int job_broken(struct amp_slot *slot, struct amp_pool_outcome *out, struct amp_error *err)
{
    bool stopped = err->status == AMP_INTERRUPTED && slot->stop;
    bool crashed = amp_code_is(err->code, git_crashed);

    if (!stopped && !crashed && !amp_worker_is_cause(err))
        return -1;
    bool again = stopped || (crashed && slot->job.attempts <= slot->opt.retries);
    outcome_set(out, again ? AMP_POOL_AGAIN : AMP_POOL_FAILED, err->code, err->what);
    return amp_worker_finish(&slot->w, stopped ? AMP_AGENT_EV_SHUTDOWN : AMP_AGENT_EV_FAIL, err);
}

/* A lost worker that was only stopped may have started an attempt since its loss. */
static void rivals_end(const struct amp_slot *slot)
{
    bool named = amp_id_is_safe(amp_span_str(slot->job.task));
    const struct amp_attempt_processes of = {.state_dir = slot->w.state_dir,
                                             .task = named ? slot->job.task : slot->job.id};

    amp_attempt_end_processes(&of);
}

static int slot_job(struct amp_slot *slot, struct amp_error *err)
{
    struct amp_worker *w = &slot->w;
    struct amp_pool_outcome out = {.end = AMP_POOL_FAILED};

    w->left = (struct amp_worker_left){0};
    slot->ended = false;
    slot->opt.session = *slot->job.session ? slot->job.session : NULL;
    slot->began_ms = amp_mono_ms();
    if (slot->job.losses > 0)
        rivals_end(slot);
    int rc = job_work(slot, &out, err);
    if (rc < 0)
        rc = job_broken(slot, &out, err);
    if (rc >= 0 && !slot->ended && !amp_pool_is_walled(slot->pool))
        amp_agent_end_leftovers(w->state_dir, slot->agent, true);
    if (rc >= 0)
        rc = amp_pool_limit(slot, err);
    slot->keeps = out.keeps && (out.end == AMP_POOL_AGAIN || out.end == AMP_POOL_PARKED);
    /* While it has the claim, so that the next job on the branch finds it free. */
    if (!slot->keeps && *w->left.worktree)
        amp_worker_vacate(w);
    if (rc < 0) {
        struct amp_error e;
        outcome_set(&out, AMP_POOL_AGAIN, AMP_CODE(pool_failed), err->what);
        amp_pool_settle(slot, &out, &e);
    } else {
        rc = amp_pool_settle(slot, &out, err);
    }
    if (*slot->box && rc >= 0)
        rc = amp_outbox_settle(&slot->answers, err);
    w->ask = (struct amp_worker_ask){0};
    w->task = NULL;
    w->halted = w->paused = false;
    slot->has_job = false;
    slot->jobs++;
    return rc < 0 ? -1 : 0;
}

static int slot_loop(struct amp_slot *slot, struct amp_error *err)
{
    char box[200];

    /* Write the lines that an earlier process of the name left. */
    snprintf(box, sizeof box, "%s.own", slot->consumer);
    if (amp_slot_answers(slot, box, err) < 0)
        return -1;
    slot->ready = true;
    while (slot->has_job || !slot->quit)
        if ((slot->has_job ? slot_job(slot, err) : amp_worker_turn(&slot->w, NULL, 0, -1, err)) < 0)
            return -1;
    return 0;
}

static void slot_main(void *ctx)
{
    struct amp_slot *slot = ctx;
    struct amp_worker *w = &slot->w;
    bool begun = amp_worker_join(w, &slot->error) == 0;

    slot->failed = !begun || slot_loop(slot, &slot->error) < 0;
    slot->ready = false;
    struct amp_error e;
    if (slot->overran)
        amp_agent_expire(w->store, slot->agent, amp_now_ms(), &e);
    if (begun)
        amp_worker_leave(w, !slot->keeps && !slot->failed);
    if (*slot->box && begun) {
        amp_outbox_finish(&slot->answers, NULL, &e);
        amp_outbox_release(&slot->answers);
    }
    amp_worker_close(w);
    amp_auto_close(&w->tree);
    amp_auto_close(&w->lock);
}

int amp_slot_answers(struct amp_slot *slot, const char *box, struct amp_error *err)
{
    if (!*slot->box) {
        snprintf(slot->box, sizeof slot->box, "%s", box);
        slot->answers = (struct amp_outbox){
            .store = slot->w.store, .name = slot->box, .ids = slot->own, .out = &slot->w.io->out};
    }
    /* Its lines share the queue of the worker's own, which the worker writes. */
    return amp_identities_refresh(slot->own, err) < 0 || amp_outbox_emit(&slot->answers, err) < 0
               ? -1
               : 0;
}

/* ---- for the pool ---- */

int amp_slot_open(struct amp_slot *slot, struct amp_pool *pool, const struct amp_pool_type *type,
                  const char *agent, struct amp_error *err)
{
    const struct amp_pool_options *o = amp_pool_options(pool);
    const char *role = o->input                              ? o->input->name
                       : strcmp(type->name, "reviewer") == 0 ? "reviewer"
                                                             : "executor";
    char principal[300], first[AMP_QUEUE_AGENT_MAX];

    *slot = (struct amp_slot){.pool = pool, .type = type, .due_ms = -1};
    snprintf(slot->agent, sizeof slot->agent, "%s", agent);
    amp_queue_consumer(agent, slot->consumer);
    amp_queue_agent(amp_span_str(type->name), 1, first);
    slot->is_first = strcmp(agent, first) == 0;
    slot->opt = o->worker;
    slot->opt.role = role;
    slot->opt.type = type->name;
    slot->opt.agent = slot->agent;
    if (type->argv)
        slot->opt.argv = type->argv;
    slot->opt.consumer = slot->consumer;
    slot->opt.stop = &slot->stop;
    slot->opt.wait = amp_slot_wait;
    slot->opt.wait_ctx = slot;
    slot->opt.claimed = slot_claimed;
    slot->opt.borrow = slot_borrow;
    slot->opt.give_back = slot_give_back;
    slot->opt.leaves = slot_leaves;
    slot->opt.step = slot_step;
    slot->run = *o->run;
    slot->run.worker = slot->opt;
    slot->review = *o->review;
    slot->review.worker = slot->opt;
    slot->session = *o->session;
    slot->session.worker = slot->opt;
    /* Another agent may go on with a message of the input, so all speak as one executor. */
    snprintf(principal, sizeof principal, "%s/%s", role, o->input ? o->worker.agent : agent);
    if (o->identify && (o->identify(o->identify_ctx, principal, &slot->ids, err) < 0 ||
                        o->identify(o->identify_ctx, agent, &slot->own, err) < 0))
        return -1;
    amp_identities_type(slot->ids, type->name);
    slot->opt.ids = slot->ids;
    slot->w = (struct amp_worker){.opt = &slot->opt,
                                  .role = &amp_run_role,
                                  .ctx = &slot->run,
                                  .store = amp_pool_store(pool),
                                  .lock = -1,
                                  .tree = -1};
    return amp_fiber_new(slot_main, slot, AMP_SLOT_STACK, &slot->fiber, err);
}

void amp_slot_close(struct amp_slot *slot)
{
    amp_fiber_free(slot->fiber);
    slot->fiber = NULL;
    amp_identities_close(slot->ids);
    amp_identities_close(slot->own);
    slot->ids = slot->own = NULL;
}

bool amp_slot_resume(struct amp_slot *slot)
{
    return amp_fiber_resume(slot->fiber);
}

void amp_slot_ask(struct amp_slot *slot, int what, int64_t until_ms)
{
    if (slot->w.ask.what == AMP_ASK_SHUTDOWN)
        return;
    slot->w.ask.what = what;
    slot->w.ask.until_ms = until_ms;
    slot->w.ask.act_ms = slot->pool->opt->safe_ms;
    slot->woken = true;
}
