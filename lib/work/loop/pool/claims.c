/* The claims of a pool: jobs for its free agents, the place of less urgent jobs, and the end of a
 * claim. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/protocol/compose/json.h"
#include "work/aop/account/jobs.h"
#include "work/handoff/handoff.h"
#include "work/item/follow.h"
#include "work/item/scope.h"
#include "work/loop/pool/private.h"

/* ---- what a job needs, and how an attempt leaves it ---- */

static bool scope_one(const struct amp_span *v, uint32_t n, char *out, size_t size)
{
    *out = '\0';
    return n == 1 && !memchr(v->p, '*', v->n) && amp_span_copy(*v, out, size);
}

/* Reads what the last attempt left: {"agent":…,"keeps":true}. */
static int data_read(struct amp_pool_job *out, const struct amp_queue_job *job,
                     struct amp_error *err)
{
    if (!job->data.n)
        return 0;
    json_auto_t *data = amp_json_load(job->data, err);
    if (!data)
        return -1;
    snprintf(out->agent, sizeof out->agent, "%s", amp_json_str(data, "agent"));
    out->again = json_is_true(json_object_get(data, "keeps"));
    amp_span_copy(job->session, out->session, sizeof out->session);
    return 0;
}

static int job_read(struct amp_pool_job *out, const struct amp_queue_job *job,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_scope scope = {0};

    amp_buf_init(&mem, 1 << 20);
    *out = (struct amp_pool_job){.priority = job->priority,
                                 .attempts = job->attempts,
                                 .seq = job->seq,
                                 .losses = job->losses,
                                 .submitted_ms = job->submitted_ms};
    amp_span_copy(job->id, out->id, sizeof out->id);
    amp_span_copy(job->message, out->msg_id, sizeof out->msg_id);
    amp_span_copy(job->task, out->task, sizeof out->task);
    amp_span_copy(job->type, out->type, sizeof out->type);
    if (amp_scope_parse(job->scope, &mem, &scope, err) < 0 || data_read(out, job, err) < 0)
        return -1;
    if (!scope_one(scope.repos, scope.n_repos, out->repo, sizeof out->repo) ||
        out->repo[0] != '/' ||
        !scope_one(scope.branches, scope.n_branches, out->branch, sizeof out->branch))
        out->repo[0] = out->branch[0] = '\0';
    return 0;
}

struct keeping {
    const char *agent;
    bool found;
};

static int on_waiting(void *ctx, const void *rec, struct amp_error *err)
{
    struct amp_pool_job job = {0};
    struct keeping *k = ctx;

    if (data_read(&job, rec, err) < 0)
        return -1;
    k->found = job.again && strcmp(job.agent, k->agent) == 0;
    return k->found;
}

int amp_pool_keeps(struct amp_slot *slot, struct amp_error *err)
{
    static const uint8_t states[] = {AMP_QUEUE_QUEUED, AMP_QUEUE_PARKED};
    struct keeping k = {.agent = slot->agent};

    for (size_t i = 0; i < sizeof states && !k.found; i++)
        if (amp_queue_each(slot->pool->store, amp_queue_fsm.states[states[i]].name, on_waiting, &k,
                           err) < 0)
            return -1;
    return k.found;
}

/* What the attempt used, and for a job that goes on later, where. */
static void step_leave(const struct amp_slot *slot, struct amp_queue_step *st, const char *agent,
                       char *data, size_t size)
{
    const struct amp_worker_left *left = &slot->w.left;

    st->tokens_in = left->usage.input_tokens;
    st->tokens_out = left->usage.output_tokens;
    st->micros = left->usage.cost_micros;
    if (st->event == AMP_QUEUE_EV_DONE || st->event == AMP_QUEUE_EV_FAIL ||
        st->event == AMP_QUEUE_EV_FORCE)
        return;
    snprintf(data, size, "{\"agent\":\"%s\",\"keeps\":%s}", *agent ? agent : slot->agent,
             st->keeps ? "true" : "false");
    st->data = amp_span_str(data);
    st->worktree = amp_span_str(*left->worktree ? left->worktree : "-");
    st->session = amp_span_str(*left->session ? left->session : "-");
}

static void step_claim(const struct amp_slot *slot, struct amp_queue_step *st)
{
    st->id = amp_span_str(slot->job.id);
    st->worker = slot->pool->opt->name;
    st->actor = st->n_emits > 0 ? slot->consumer : st->worker; /* whose outbox it is */
    st->seq = slot->job.seq;
    st->attempt = slot->job.attempts;
    st->now_ms = amp_now_ms();
}

/* Gives the job back with what the attempt used. */
static int claim_end(struct amp_slot *slot, struct amp_queue_step *st, const char *agent,
                     struct amp_buf *mem, struct amp_queue_job *out, struct amp_error *err)
{
    char data[256];

    /* Only a job that its pool saw as PREEMPTING is ended by force. */
    if (st->event == AMP_QUEUE_EV_FAIL && slot->w.ask.what == AMP_ASK_PREEMPT &&
        amp_code_is(st->code, forced_preemption))
        st->event = AMP_QUEUE_EV_FORCE;
    if (amp_pool_limit(slot, err) < 0)
        return -1;
    step_claim(slot, st);
    step_leave(slot, st, agent, data, sizeof data);
    if (amp_queue_worker_step(slot->pool->queue, st, mem, out, err) < 0)
        return -1;
    slot->ended = true;
    return amp_pool_spend(slot, err);
}

int amp_pool_step(struct amp_slot *slot, struct amp_queue_step *st, struct amp_buf *mem,
                  struct amp_queue_job *out, struct amp_error *err)
{
    switch (st->event) {
    case AMP_QUEUE_EV_PARK:
        if (!st->code)
            st->code = *slot->w.left.code      ? slot->w.left.code
                       : slot->w.left.limit_ms ? AMP_CODE(usage_limit)
                                               : AMP_CODE(again_later);
        /* fallthrough */
    case AMP_QUEUE_EV_DONE:
    case AMP_QUEUE_EV_FAIL:
        return claim_end(slot, st, "", mem, out, err);
    default:
        step_claim(slot, st);
        return amp_queue_worker_step(slot->pool->queue, st, mem, out, err);
    }
}

static bool slot_is_free(const struct amp_slot *slot, int64_t now_ms)
{
    return slot->fiber && slot->turn && slot->ready && !slot->borrowed && !slot->has_job &&
           !slot->quit && slot->limited_ms <= now_ms;
}

/* ---- claims ---- */

/* Agents for a job of their type. An agent that handed the job's task over does not go on with it
 * (SW4RM §17.6). */
struct choice {
    struct amp_slot *slot; /* a free agent: the task's owner, the one that has the worktree, or the
                              first; NULL: none */
    struct amp_slot *gave; /* a free agent that handed the task over; NULL: none */
    bool later;            /* an agent that may take the job is not free */
};

static int slot_gave(struct amp_pool *p, const struct amp_slot *s, const struct amp_pool_job *job,
                     char owner[256], struct amp_error *err)
{
    return *job->task ? amp_handoff_given(p->store, amp_span_str(s->agent), amp_span_str(job->task),
                                          owner, err)
                      : 0;
}

static int slot_choose(struct amp_pool *p, const struct amp_pool_job *job, struct choice *out,
                       struct amp_error *err)
{
    char owner[256] = "?";
    int64_t now = amp_now_ms();

    *out = (struct choice){0};
    for (uint32_t i = p->first; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        if (strcmp(s->type->name, job->type) != 0)
            continue;
        bool is_free = slot_is_free(s, now);
        /* An empty owner: the task was never handed over. */
        int gave = *owner ? slot_gave(p, s, job, owner, err) : 0;
        if (gave < 0)
            return -1;
        bool owns = !gave && *owner && strcmp(owner, s->agent) == 0;
        bool keeps = *job->agent ? strcmp(s->agent, job->agent) == 0
                                 : amp_id_is_safe(amp_span_str(job->task)) &&
                                       amp_attempt_kept(s->w.state_dir, job->task, s->agent);
        if (gave && is_free && !out->gave)
            out->gave = s;
        else if (!gave && !is_free)
            out->later |= !s->quit;
        else if (!gave && (!out->slot || owns || keeps))
            out->slot = s;
        if (out->slot == s && owns)
            break;
    }
    return 0;
}

static uint32_t types_free(struct amp_pool *p, bool only_free, struct amp_span out[AMP_POOL_TYPES])
{
    uint32_t n = 0;
    int64_t now = amp_now_ms();

    for (uint32_t i = 0; i < p->opt->n_types; i++) {
        const struct amp_pool_type *t = &p->opt->types[i];
        bool any = false;
        for (uint32_t k = p->first; !any && k < p->n_slots; k++)
            any = p->slot[k]->type == t && slot_is_free(p->slot[k], now);
        if (any || !only_free)
            out[n++] = amp_span_str(t->name);
    }
    return n;
}

static int job_step(struct amp_pool *p, const struct amp_pool_job *job, uint8_t event,
                    const char *code, int64_t until_ms, struct amp_error *err)
{
    struct amp_queue_step st = {.id = amp_span_str(job->id),
                                .event = event,
                                .worker = p->opt->name,
                                .seq = job->seq,
                                .attempt = job->attempts,
                                .code = code,
                                .until_ms = until_ms,
                                .actor = p->opt->name,
                                .now_ms = amp_now_ms()};

    if (amp_queue_worker_step(p->queue, &st, &p->mem, NULL, err) == 0)
        return 0;
    return amp_code_is(err->code, claim_lost) || amp_code_is(err->code, illegal_transition) ? 1
                                                                                            : -1;
}

/* A job whose predecessor failed is skipped: 1; or it goes on, to fail or to start: 0. */
static int predecessors_look(struct amp_pool *p, const struct amp_queue_job *claimed,
                             struct amp_pool_job *job, struct amp_error *err)
{
    int action = amp_follow_else(claimed->on_failed);

    if (!claimed->follows.n || action == AMP_FOLLOW_START)
        return 0;
    int failed = amp_follow_failed(p->store, claimed, job->failed, err);
    if (failed <= 0 || action != AMP_FOLLOW_SKIP)
        return failed < 0 ? -1 : 0;
    p->opt->worker.note("%s is skipped: job %s, which it follows, did not do its work", job->id,
                        job->failed);
    struct amp_queue_step st = {.id = amp_span_str(job->id),
                                .event = AMP_QUEUE_EV_CANCEL,
                                .by = job->failed,
                                .why = "a job that it follows did not do its work",
                                .code = AMP_CODE(predecessor_failed),
                                .actor = p->opt->name,
                                .now_ms = amp_now_ms()};
    /* It is claimed: its release is the end. */
    if (amp_queue_worker_step(p->queue, &st, &p->mem, NULL, err) < 0 ||
        job_step(p, job, AMP_QUEUE_EV_RELEASE, NULL, 0, err) < 0)
        return -1;
    p->look = true;
    const struct amp_session_voice voice = {p->store, p->opt->name, amp_now_ms()};
    return amp_session_reconcile(&voice, AMP_SPAN(""), err) < 0 ? -1 : 1;
}

static int job_begin(struct amp_pool *p, const struct amp_queue_job *claimed, struct amp_error *err)
{
    struct amp_pool_job job;

    if (job_read(&job, claimed, err) < 0)
        return -1;
    int skipped = predecessors_look(p, claimed, &job, err);
    if (skipped)
        return skipped < 0 ? -1 : 0;
    struct choice c;
    if (slot_choose(p, &job, &c, err) < 0)
        return -1;
    int64_t now = amp_now_ms();
    if (!c.slot && c.gave && c.later) /* for another agent, when it is free */
        return job_step(p, &job, AMP_QUEUE_EV_PARK, AMP_CODE(handed_over),
                        now + p->opt->worker.pause_ms, err) < 0
                   ? -1
                   : 0;
    /* Without another agent it is refused by the one that handed it over. */
    struct amp_slot *slot = c.slot ? c.slot : c.gave;
    int closed = amp_pool_account_closed(p, &job, err);
    if (closed < 0)
        return -1;
    if (!slot || closed)
        return job_step(p, &job, AMP_QUEUE_EV_RELEASE, NULL, 0, err) < 0 ? -1 : 0;
    int allowed = amp_pool_task_allows(p, &job, err);
    if (allowed < 0)
        return -1;
    slot->job = job;
    amp_item_of(claimed, &slot->item);
    slot->over_budget = !allowed;
    slot->limited_ms = 0;
    slot->has_job = true;
    slot->woken = true;
    return 0;
}

int amp_pool_claim(struct amp_pool *p, struct amp_error *err)
{
    struct amp_span types[AMP_POOL_TYPES];
    struct amp_queue_job job;
    uint32_t n;

    p->park_ms = 0;
    if (p->stopping || p->failed)
        return 0;
    int blocked = amp_pool_budgets_look(p, err);
    if (blocked)
        return blocked < 0 ? -1 : 0;
    while ((n = types_free(p, true, types)) > 0) {
        int rc =
            amp_queue_worker_claim(p->queue, p->order, types, n, &p->mem, &job, &p->park_ms, err);
        if (rc <= 0)
            return rc;
        if (job_begin(p, &job, err) < 0)
            return -1;
        if (p->look) /* at the accounts first */
            break;
    }
    return 0;
}

/* ---- preemption ---- */

int amp_pool_ask_rivals(struct amp_pool *p, struct amp_error *err)
{
    struct amp_order_rival rival;
    int64_t now = amp_now_ms();

    /* The work of an input is never ended for other work. */
    if (p->stopping || p->failed || p->opt->input)
        return 0;
    for (uint32_t i = 0; i < p->opt->n_types; i++) {
        struct amp_span type = amp_span_str(p->opt->types[i].name), free_types[AMP_POOL_TYPES];
        const struct amp_order_want want = {p->opt->name, &type, 1, p->opt->name, now};
        bool full = true;
        uint32_t n = types_free(p, true, free_types);
        for (uint32_t k = 0; k < n; k++)
            full = full && !amp_span_eq(free_types[k], type);
        int rc = amp_order_rival(p->order, &want, full, &rival, err);
        if (rc < 0)
            return -1;
        if (!rc)
            continue;
        char victim[AMP_QUEUE_ID_MAX], by[AMP_QUEUE_ID_MAX];
        amp_span_copy(rival.victim, victim, sizeof victim);
        amp_span_copy(rival.by, by, sizeof by);
        struct amp_queue_step st = {.id = amp_span_str(victim),
                                    .event = AMP_QUEUE_EV_PREEMPT,
                                    .why = "more urgent work",
                                    .by = by,
                                    .actor = p->opt->name,
                                    .now_ms = now};
        p->opt->worker.note("%s (priority %lld) is asked to yield to %s (priority %lld)", victim,
                            (long long)rival.victim_priority, by, (long long)rival.by_priority);
        if (amp_queue_step(p->store, &st, &p->mem, NULL, err) < 0 && err->status != AMP_NO &&
            !amp_code_is(err->code, illegal_transition))
            return -1;
        p->look = true;
    }
    return 0;
}

int amp_pool_judge(struct amp_pool *p, struct amp_error *err)
{
    struct amp_span types[AMP_POOL_TYPES];

    if (p->stopping || p->failed)
        return 0;
    int rc = amp_judge_look(p->judge, p->order, types, types_free(p, true, types), err);
    p->look |= rc > 0;
    return rc < 0 ? -1 : 0;
}

/* Whether the slot's claim is the job's present one. */
static bool claim_is(const struct amp_queue_job *job, const struct amp_slot *s)
{
    return amp_queue_held(job->state) && amp_span_is(job->worker, s->pool->opt->name) &&
           job->attempts == s->job.attempts && job->seq == s->job.seq;
}

int amp_pool_claimed(struct amp_slot *slot, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_queue_job job;

    amp_buf_init(&mem, AMP_REC_MAX);
    int rc = amp_queue_read(slot->pool->store, amp_span_str(slot->job.id), &mem, &job, err);
    if (rc < 0 || (rc > 0 && claim_is(&job, slot)))
        return rc < 0 ? -1 : 0;
    return amp_fail(err, AMP_NO, claim_lost, "job %s: %s does not have it any more", slot->job.id,
                    slot->pool->opt->name);
}

int amp_pool_look_claims(struct amp_pool *p, struct amp_error *err)
{
    struct amp_queue_job job;

    for (uint32_t i = p->first; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        if (!s->has_job)
            continue;
        int rc = amp_queue_read(p->store, amp_span_str(s->job.id), &p->mem, &job, err);
        if (rc < 0 || amp_pool_limit(s, err) < 0)
            return -1;
        if (!rc || !claim_is(&job, s)) {
            if (!s->stop)
                p->opt->worker.note("%s: claim_lost: another process took the job; %s is stopped",
                                    s->job.id, s->agent);
            s->stop = SIGTERM;
            s->woken = true;
        } else if (job.state == AMP_QUEUE_PREEMPTING && !s->w.ask.what) {
            amp_slot_ask(s, AMP_ASK_PREEMPT, amp_mono_ms() + p->opt->safe_ms);
        }
    }
    return 0;
}

/* ---- the end of a job ---- */

/* A job that was cancelled while its agent worked, or that failed without an answer: its TASK, if
 * it has one, has ended, too. */
static int task_settle(const struct amp_slot *slot, struct amp_error *err)
{
    struct amp_pool *p = slot->pool;
    const struct amp_session_voice voice = {p->store, p->opt->name, amp_now_ms()};
    struct amp_queue_job job;
    int found = amp_queue_read(p->store, amp_span_str(slot->job.id), &p->mem, &job, err);

    return found <= 0 ? found : amp_session_job_ended(&voice, &job, err);
}

static uint8_t end_event(const struct amp_slot *slot, const struct amp_pool_outcome *out)
{
    switch (out->end) {
    case AMP_POOL_DONE:
        return AMP_QUEUE_EV_DONE;
    case AMP_POOL_FAILED:
        return AMP_QUEUE_EV_FAIL;
    case AMP_POOL_PARKED:
        return AMP_QUEUE_EV_PARK;
    default: /* its pool saw that it is PREEMPTING, or it is given back unasked */
        return slot->w.ask.what == AMP_ASK_PREEMPT ? AMP_QUEUE_EV_YIELD : AMP_QUEUE_EV_RELEASE;
    }
}

int amp_pool_end(struct amp_slot *slot, const struct amp_pool_outcome *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_queue_step st = {.event = end_event(slot, out),
                                .why = *out->why ? out->why : NULL,
                                .code = *out->code ? out->code : NULL,
                                .until_ms = out->until_ms,
                                .keeps = out->keeps};

    return claim_end(slot, &st, out->agent, &mem, NULL, err);
}

int amp_pool_settle(struct amp_slot *slot, const struct amp_pool_outcome *out,
                    struct amp_error *err)
{
    struct amp_pool *p = slot->pool;
    int rc = 0;

    if (!slot->ended) {
        if (amp_store_begin(p->store, err) < 0)
            return -1;
        rc = amp_pool_end(slot, out, err);
        amp_store_end(p->store);
        /* What a lost attempt used was used. */
        if (rc < 0 && (amp_code_is(err->code, claim_lost) || amp_code_is(err->code, unknown_job)))
            rc = amp_pool_spend(slot, err) < 0 ? -1 : 1;
    }
    if (rc < 0 || (rc == 0 && task_settle(slot, err) < 0))
        return -1;
    if (rc > 0)
        p->opt->worker.note("%s: claim_lost: what %s did is not recorded", slot->job.id,
                            slot->agent);
    p->look = true;
    if (out->end == AMP_POOL_AGAIN && p->stopping) {
        p->unfinished = true;
        p->opt->worker.note("%s: incomplete; queued again%s%s", slot->job.id,
                            *out->code ? ": " : "", out->code);
        if (strcmp(out->code, "agent_shutdown_timeout") == 0)
            slot->overran = true;
    }
    slot->stop = 0;
    return 0;
}
