/* The loop of a pool: it claims jobs for its free agents, waits for all of them at once, asks
 * agents to stop for more urgent work, and ends. */
#include "work/loop/pool/pool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "work/agent/work.h"
#include "work/aop/account/jobs.h"
#include "work/attempt/io.h"
#include "work/git/paths/glob.h"
#include "work/loop/pool/private.h"
#include "work/loop/pool/record.h"

#define NAMES_MAX 1000 /* builder-1 to builder-1000: names that are tried for an agent */
#define FIXED     3    /* descriptors of the pool itself: the log, the timer, the output */

const struct amp_pool_options *amp_pool_options(const struct amp_pool *p)
{
    return p->opt;
}

struct amp_store *amp_pool_store(struct amp_pool *p)
{
    return p->store;
}

bool amp_pool_is_walled(const struct amp_pool *p)
{
    const struct amp_confine_report *r = p->opt->worker.confine;

    return r && r->demand != AMP_CONFINE_OFF && r->level == AMP_LEVEL_FULL;
}

/* ---- the order of jobs ---- */

static int64_t type_most(void *ctx, struct amp_span type)
{
    const struct amp_pool *p = ctx;
    int64_t most = amp_queue_most(&p->opt->queue, type);

    for (uint32_t i = 0; i < p->opt->n_types && !amp_queue_limits(&p->opt->queue, type); i++)
        if (amp_span_is(type, p->opt->types[i].name) && p->opt->types[i].count > most)
            most = p->opt->types[i].count;
    return most;
}

static bool task_held(void *ctx, struct amp_span task)
{
    const struct amp_pool *p = ctx;

    return task.n && amp_pauses_find(&p->pauses, task, AMP_SPAN("")) != NULL;
}

static int64_t type_closed(void *ctx, struct amp_span type)
{
    const struct amp_pool *p = ctx;

    return amp_accounts_closed(&p->accounts, type);
}

static int order_open(struct amp_pool *p, struct amp_error *err)
{
    const struct amp_order_options o = {.ageing_ms = p->opt->queue.ageing_ms,
                                        .most = type_most,
                                        .patterns = amp_glob_overlap,
                                        .held = task_held,
                                        .closed = type_closed,
                                        .ctx = p};

    return amp_order_open(&p->order, p->store, &o, err);
}

/* ---- agents ---- */

static int agent_open(struct amp_pool *p, const struct amp_pool_type *type, uint32_t *next,
                      struct amp_error *err)
{
    struct amp_slot *slot = calloc(1, sizeof *slot);
    char name[AMP_QUEUE_AGENT_MAX];

    if (!slot)
        return amp_fail_memory(err);
    p->slot[p->n_slots++] = slot;
    for (; *next <= NAMES_MAX; ++*next) {
        amp_queue_agent(amp_span_str(type->name), *next, name);
        if (amp_slot_open(slot, p, type, name, err) < 0)
            return -1;
        if (amp_slot_resume(slot)) {
            ++*next;
            return 0;
        }
        bool busy = amp_code_is(slot->error.code, agent_busy);
        *err = slot->error;
        amp_slot_close(slot);
        if (!busy)
            return -1;
    }
    return amp_fail(err, AMP_TEMPFAIL, agent_busy, "the names %s-1 to %s-%d are used", type->name,
                    type->name, NAMES_MAX);
}

static int desk_open(struct amp_pool *p, struct amp_error *err)
{
    if (!p->opt->input)
        return 0;
    if (!(p->slot[0] = calloc(1, sizeof *p->slot[0])))
        return amp_fail_memory(err);
    p->first = p->n_slots = 1;
    if (amp_desk_open(p->slot[0], p, err) < 0)
        return -1;
    if (amp_slot_resume(p->slot[0]) || !p->slot[0]->failed)
        return 0;
    *err = p->slot[0]->error;
    return -1;
}

static int agents_open(struct amp_pool *p, struct amp_error *err)
{
    const struct amp_pool_options *o = p->opt;
    int64_t n = 0;

    for (uint32_t i = 0; i < o->n_types; i++)
        n += o->types[i].count;
    if (n > AMP_POOL_AGENTS)
        return amp_fail(err, AMP_USAGE, too_many_agents, "at most %d agents", AMP_POOL_AGENTS);
    p->slot = calloc((size_t)n + 2, sizeof(struct amp_slot *));
    if (!p->slot)
        return amp_fail_memory(err);
    if (desk_open(p, err) < 0)
        return -1;
    for (uint32_t i = 0; i < o->n_types; i++) {
        uint32_t next = 1;
        for (int64_t k = 0; k < o->types[i].count; k++)
            if (agent_open(p, &o->types[i], &next, err) < 0)
                return -1;
    }
    return 0;
}

static void slot_run(struct amp_pool *p, struct amp_slot *slot)
{
    if (amp_slot_resume(slot) || !slot->failed || p->failed)
        return;
    p->failed = true;
    p->error = slot->error;
}

/* ---- the end of the pool ---- */

static void shutdown_begin(struct amp_pool *p)
{
    struct amp_error e;
    int64_t now = amp_now_ms();

    p->stopping = true;
    p->stop_ms = amp_mono_ms() + p->opt->shutdown_ms;
    uint32_t busy = 0;
    for (uint32_t i = 0; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        s->quit = true;
        s->woken = true;
        if (!s->has_job)
            continue;
        busy++;
        amp_agent_step_within(p->store, s->agent, AMP_AGENT_EV_SHUTDOWN, p->opt->shutdown_ms, now,
                              &e);
        amp_slot_ask(s, AMP_ASK_SHUTDOWN, p->stop_ms);
    }
    p->opt->worker.note("shutting down: no new work; %u agent%s at work, grace period %lld ms",
                        busy, busy == 1 ? "" : "s", (long long)p->opt->shutdown_ms);
}

/* A second signal does not wait. */
static void shutdown_hurry(struct amp_pool *p)
{
    p->hurried = true;
    for (uint32_t i = 0; i < p->n_slots; i++) {
        p->slot[i]->stop = SIGTERM;
        p->slot[i]->woken = true;
    }
}

/* Nobody reads what the agents answer. */
static bool output_lost(struct amp_pool *p)
{
    if (p->n_fds > 2 && p->fds[2].revents & (POLLERR | POLLNVAL))
        p->lost = true;
    for (uint32_t i = 0; i < p->n_slots && !p->lost; i++)
        p->lost = p->slot[i]->w.io && p->slot[i]->w.io->broken;
    return p->lost;
}

static void ends_look(struct amp_pool *p, bool asked)
{
    int sig = *p->opt->stop;

    if (sig)
        *p->opt->stop = 0;
    if (!p->signal)
        p->signal = sig;
    /* The end of a terminal may come twice, from the kernel and from the shell. */
    bool hurry = p->failed || (sig && sig != SIGHUP && p->stopping);
    bool lost = !p->stopping && output_lost(p);
    if (lost)
        p->opt->worker.note("the output has lost its reader: its lines are kept");
    if (!p->stopping && (asked || sig || p->failed || lost))
        shutdown_begin(p);
    if (!p->hurried && hurry)
        shutdown_hurry(p);
}

/* drain: whether no job is left that an agent of this pool could work on. */
static int is_drained(struct amp_pool *p, struct amp_error *err)
{
    struct amp_order_counts c;

    for (uint32_t i = p->first; i < p->n_slots; i++)
        if (p->slot[i]->has_job)
            return 0;
    for (uint32_t i = 0; i < p->opt->n_types; i++) {
        if (amp_order_counts(p->order, amp_span_str(p->opt->types[i].name), &c, err) < 0)
            return -1;
        if (c.waiting || c.parked || c.working)
            return 0;
    }
    return 1;
}

/* Whether an agent works, and does not only wait for the end of a suspension; `kept` gets the
 * number of those that do, `has_idle` the types with others. */
static bool any_works(const struct amp_pool *p, uint64_t *kept, bool has_idle[AMP_POOL_TYPES])
{
    for (uint32_t i = p->first; i < p->n_slots; i++) {
        const struct amp_slot *s = p->slot[i];
        has_idle[s->type - p->opt->types] |= !s->has_job;
        *kept += s->has_job;
        if (s->has_job && !s->w.waits)
            return true;
    }
    return false;
}

/* After the end of its input: whether nothing can go on before a suspension is lifted. The agents
 * that wait for that are stopped; their jobs stay in the queue. */
static int input_ended(struct amp_pool *p, struct amp_error *err)
{
    struct amp_order_counts c;
    uint64_t kept = 0, working = 0, waiting = 0;
    bool has_idle[AMP_POOL_TYPES] = {false};
    struct amp_span idle[AMP_POOL_TYPES], id;
    struct amp_order_want want = {p->opt->name, idle, 0, p->opt->name, amp_now_ms()};

    if (p->slot[0]->turn || any_works(p, &kept, has_idle))
        return 0;
    for (uint32_t i = 0; i < p->opt->n_types; i++) {
        struct amp_span type = amp_span_str(p->opt->types[i].name);
        if (amp_order_counts(p->order, type, &c, err) < 0)
            return -1;
        if (c.parked || type_closed(p, type) > 0)
            return 0;
        working += c.working;
        waiting += c.waiting;
        if (has_idle[i])
            idle[want.n_types++] = type;
    }
    if (working > kept)
        return 0;
    int ready = want.n_types ? amp_order_pick(p->order, &want, &id, err) : 0;
    if (ready)
        return ready < 0 ? -1 : 0;
    kept += waiting;
    if (kept == 0)
        return 1;
    p->opt->worker.note("%llu %s kept until a suspension is lifted", (unsigned long long)kept,
                        kept == 1 ? "message is" : "messages are");
    p->stopping = p->unfinished = true;
    shutdown_hurry(p);
    return 1;
}

/* ---- the loop ---- */

static int fds_grow(struct amp_pool *p, unsigned n, struct amp_error *err)
{
    if (n <= p->cap_fds)
        return 0;
    struct pollfd *v = reallocarray(p->fds, n, sizeof *v);
    if (!v)
        return amp_fail_memory(err);
    p->fds = v;
    p->cap_fds = n;
    return 0;
}

static void alarm_lower(int64_t *at_ms, int64_t ms)
{
    if (ms > 0 && (*at_ms == 0 || ms < *at_ms))
        *at_ms = ms;
}

/* The next times at which the pool has something to do: by the wall's clock and the monotonic one.
 */
static int alarm_set(struct amp_pool *p, struct amp_error *err)
{
    int64_t at = 0, now = amp_now_ms();

    alarm_lower(&at, p->park_ms);
    alarm_lower(&at, p->budget_ms);
    for (uint32_t i = 0; i < p->opt->n_types && !p->stopping; i++)
        alarm_lower(&at, type_closed(p, amp_span_str(p->opt->types[i].name)));
    p->due_ms = amp_queue_worker_due(p->queue);
    if (!p->stopping) {
        alarm_lower(&at, p->job_due_ms);
        alarm_lower(&p->due_ms, p->lost_due_ms);
    }
    for (uint32_t i = p->first; i < p->n_slots; i++)
        if (p->slot[i]->limited_ms > now)
            alarm_lower(&at, p->slot[i]->limited_ms);
    return amp_wake_at(&p->wake, at > 0 && at < now ? now + 1 : at, err);
}

/* Waits for all agents, the log, the alarm and signals. */
static int pool_wait(struct amp_pool *p, struct amp_error *err)
{
    struct pollfd judged[AMP_JUDGE_FDS];
    unsigned n_judged = amp_judge_fds(p->judge, judged), n = FIXED + n_judged;
    int64_t now = amp_mono_ms();

    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slot[i]->turn)
            n += p->slot[i]->turn->n;
    if (fds_grow(p, n, err) < 0)
        return -1;
    struct amp_loop turn = amp_loop_turn(p->fds, n, p->opt->stop, NULL);
    amp_loop_add(&turn, p->wake.log, POLLIN);
    amp_loop_add(&turn, p->wake.timer, POLLIN);
    /* Its error, if nobody reads it; a worker finds that out only when it writes. */
    amp_loop_add(&turn, p->lost || p->opt->worker.out ? -1 : STDOUT_FILENO, 0);
    for (uint32_t i = 0; i < p->n_slots; i++) {
        const struct amp_slot *s = p->slot[i];
        if (!s->turn)
            continue;
        for (unsigned k = 0; k < s->turn->n; k++)
            amp_loop_add(&turn, s->turn->fds[k].fd, s->turn->fds[k].events);
        if (s->woken || s->due_ms >= 0)
            amp_loop_within(&turn, s->woken || s->due_ms <= now ? 0 : s->due_ms - now);
    }
    for (unsigned i = 0; i < n_judged; i++)
        amp_loop_add(&turn, judged[i].fd, judged[i].events);
    amp_loop_within(&turn, amp_judge_wait(p->judge));
    if (p->look)
        amp_loop_within(&turn, 0);
    if (p->due_ms)
        amp_loop_within(&turn, p->due_ms > now ? p->due_ms - now : 0);
    p->n_fds = turn.n;
    return amp_loop_wait(&turn, err) < 0 ? -1 : 0;
}

/* Takes the events of the log and of the alarm. 1: look again. */
static int wake_take(struct amp_pool *p, struct amp_error *err)
{
    uint64_t times;
    bool woken = p->fds[1].revents != 0;

    if (woken && (read(p->wake.timer, &times, sizeof times) >= 0 || errno == ECANCELED))
        p->wake.at_ms = 0;
    int wrote = p->fds[0].revents ? amp_wake_drain(&p->wake, err) : 0;
    if (wrote < 0)
        return -1;
    bool due = (p->due_ms && amp_mono_ms() >= p->due_ms) || amp_judge_is_due(p->judge);
    if (!woken && !wrote && !due && !p->look)
        return 0;
    p->look = false;
    for (uint32_t i = p->first; wrote && i < p->n_slots; i++) {
        amp_pause_watch_renew(&p->slot[i]->w.pauses);
        p->slot[i]->woken |= p->slot[i]->has_job;
    }
    return 1;
}

/* Resumes the agents whose wait is over. */
static void slots_run(struct amp_pool *p)
{
    unsigned at = FIXED;
    int64_t now = amp_mono_ms();

    for (uint32_t i = 0; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        if (!s->turn)
            continue;
        bool due = s->woken || (s->due_ms >= 0 && s->due_ms <= now);
        for (unsigned k = 0; k < s->turn->n && at < p->n_fds; k++, at++) {
            s->turn->fds[k].revents = p->fds[at].revents;
            due |= p->fds[at].revents != 0;
        }
        s->due_now = due;
    }
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slot[i]->turn && p->slot[i]->due_now)
            slot_run(p, p->slot[i]);
}

static bool all_ended(const struct amp_pool *p)
{
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slot[i]->turn)
            return false;
    return true;
}

static int dues_read(struct amp_pool *p, struct amp_error *err)
{
    return amp_store_next_due(p->store, AMP_QUEUE_KIND, &p->job_due_ms, err) < 0 ||
                   amp_queue_worker_lost_due(p->store, &p->lost_due_ms, err) < 0
               ? -1
               : 0;
}

/* TASKs of jobs that ended while no worker had them. */
static int tasks_reconcile(struct amp_pool *p, struct amp_error *err)
{
    const struct amp_session_voice voice = {p->store, p->opt->name, amp_now_ms()};

    return amp_session_reconcile(&voice, AMP_SPAN(""), err);
}

/* Does what is due. Each change of the log and each end of a job brings another look, so these
 * times are right until then. */
static int dues_sweep(struct amp_pool *p, int64_t now, struct amp_error *err)
{
    uint32_t done = 0;

    if ((!p->job_due_ms || p->job_due_ms > now) &&
        (!p->lost_due_ms || p->lost_due_ms > amp_mono_ms()))
        return 0;
    if (amp_queue_sweep(p->store, now, p->opt->name, &done, err) < 0 ||
        (done > 0 && tasks_reconcile(p, err) < 0))
        return -1;
    return dues_read(p, err);
}

/* Wakes the first agent of each type if its outbox has lines of an earlier process. */
static int unsaid_look(struct amp_pool *p, struct amp_error *err)
{
    for (uint32_t i = p->first; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        bool any = false;
        if (!s->is_first || !s->ready || !s->w.io)
            continue;
        if (amp_outbox_any(p->store, s->consumer, &any, err) < 0)
            return -1;
        s->w.io->dirty |= any;
        s->woken |= any;
    }
    return 0;
}

/* Reads what may have changed, in one turn of the store. 1: it is asked to shut down. */
static int state_read(struct amp_pool *p, int64_t now, struct amp_error *err)
{
    if (amp_store_begin(p->store, err) < 0)
        return -1;
    int rc = amp_pool_look_claims(p, err) < 0 || amp_pauses_read(p->store, &p->pauses, err) < 0 ||
                     amp_accounts_load(&p->accounts, p->store, now, err) < 0 ||
                     unsaid_look(p, err) < 0 || (!p->stopping && dues_read(p, err) < 0)
                 ? -1
                 : amp_pool_rec_asked(p->store, p->opt->name, err);
    amp_store_end(p->store);
    return rc;
}

static int pool_look(struct amp_pool *p, struct amp_error *err)
{
    int64_t now = amp_now_ms(), due = amp_queue_worker_due(p->queue);

    if (due > 0 && due <= amp_mono_ms() && amp_queue_worker_beat(p->queue, err) < 0)
        return -1;
    int asked = state_read(p, now, err);
    if (asked < 0 || (!p->stopping && dues_sweep(p, now, err) < 0))
        return -1;
    ends_look(p, asked > 0);
    return amp_pool_claim(p, err) < 0 || amp_pool_ask_rivals(p, err) < 0 ||
                   amp_pool_judge(p, err) < 0
               ? -1
               : 0;
}

/* The conflicts of the last jobs end with them. */
static int pairs_end(struct amp_pool *p, struct amp_error *err)
{
    return amp_order_look(p->order, err) < 0 || amp_judge_look(p->judge, p->order, NULL, 0, err) < 0
               ? -1
               : 0;
}

static int pool_loop(struct amp_pool *p, struct amp_error *err)
{
    p->look = true;
    if (tasks_reconcile(p, err) < 0)
        return -1;
    while (!all_ended(p)) {
        if (p->look) {
            p->look = false;
            if (pool_look(p, err) < 0)
                return -1;
        }
        if ((p->opt->drain || p->opt->input) && !p->stopping) {
            int done = p->opt->input ? input_ended(p, err) : is_drained(p, err);
            if (done < 0)
                return -1;
            if (done)
                for (uint32_t i = 0; i < p->n_slots; i++)
                    p->slot[i]->quit = p->slot[i]->woken = true;
        }
        if (alarm_set(p, err) < 0 || pool_wait(p, err) < 0)
            return -1;
        int judged = amp_judge_answers(p->judge, err);
        if (judged < 0)
            return -1;
        p->look |= judged > 0;
        int look = wake_take(p, err);
        if (look < 0 || (look && pool_look(p, err) < 0))
            return -1;
        ends_look(p, false);
        slots_run(p);
    }
    return pairs_end(p, err);
}

/* After a failure: lets every agent end, which the store may no more record. */
static void pool_abort(struct amp_pool *p)
{
    struct amp_error e;

    p->failed = p->stopping = true;
    shutdown_hurry(p);
    for (uint32_t i = 0; i < p->n_slots; i++)
        p->slot[i]->quit = true;
    while (!all_ended(p)) {
        if (pool_wait(p, &e) < 0)
            return;
        slots_run(p);
    }
}

static int record_begin(struct amp_pool *p, struct amp_error *err)
{
    AMP_BUF struct amp_buf types = {0};
    struct amp_pool_rec r = {
        .name = p->opt->name, .by = "", .pid = getpid(), .since_ms = amp_now_ms()};

    amp_buf_init(&types, 8192);
    for (uint32_t i = 0; i < p->opt->n_types; i++)
        if (amp_buf_fmt(&types, err, "%s%s=%lld", i ? " " : "", p->opt->types[i].name,
                        (long long)p->opt->types[i].count) < 0)
            return -1;
    if (amp_buf_add(&types, "", 1, err) < 0)
        return -1;
    r.types = types.data;
    if (amp_pool_rec_begin(p->store, &r, err) < 0 || amp_store_sync(p->store, err) < 0)
        return -1;
    p->recorded = true;
    return 0;
}

/* Writes a question to the output, by an agent that has one. */
static int question_say(void *ctx, struct amp_span line, struct amp_error *err)
{
    struct amp_pool *p = ctx;

    for (uint32_t i = p->first; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        if (!s->ready || !s->w.io)
            continue;
        s->woken = true;
        return amp_worker_pass(&s->w, line, err);
    }
    return 0;
}

static int judge_open(struct amp_pool *p, struct amp_error *err)
{
    const struct amp_judge_options o = {.set = &p->opt->queue,
                                        .worker = p->opt->name,
                                        .identify = p->opt->identify,
                                        .identify_ctx = p->opt->identify_ctx,
                                        .say = question_say,
                                        .say_ctx = p,
                                        .note = p->opt->worker.note,
                                        .stop = p->opt->stop};

    return amp_judge_open(&p->judge, p->store, &o, err);
}

static int pool_open(struct amp_pool *p, struct amp_error *err)
{
    const struct amp_pool_options *o = p->opt;

    amp_buf_init(&p->mem, AMP_REC_MAX);
    amp_pauses_init(&p->pauses);
    p->accounts.set = &o->queue;
    return amp_wake_open(&p->wake, amp_store_dir(p->store), err) < 0 ||
                   amp_queue_worker_open(&p->queue, p->store, &o->queue, o->name, err) < 0 ||
                   record_begin(p, err) < 0 || order_open(p, err) < 0 || judge_open(p, err) < 0 ||
                   agents_open(p, err) < 0
               ? -1
               : 0;
}

static void pool_close(struct amp_pool *p)
{
    struct amp_error e;

    for (uint32_t i = 0; i < p->n_slots; i++) {
        struct amp_slot *s = p->slot[i];
        amp_slot_close(s);
        free(s);
    }
    free(p->slot);
    free(p->fds);
    amp_judge_close(p->judge);
    amp_order_close(p->order);
    amp_queue_worker_close(p->queue);
    if (p->recorded && amp_pool_rec_end(p->store, p->opt->name, &e) == 0)
        amp_store_sync(p->store, &e);
    amp_wake_close(&p->wake);
    amp_pauses_release(&p->pauses);
    amp_buf_release(&p->mem);
}

int amp_pool_run(struct amp_store *s, const struct amp_pool_options *opt, enum amp_status *status,
                 struct amp_error *err)
{
    struct amp_pool p = {.opt = opt, .store = s, .wake = {-1, -1, 0}};
    int rc = pool_open(&p, err) < 0 || pool_loop(&p, err) < 0 ? -1 : 0;

    if (rc < 0 && !all_ended(&p))
        pool_abort(&p);
    if (rc == 0 && p.failed) {
        *err = p.error;
        rc = -1;
    }
    *status = p.unfinished ? AMP_TEMPFAIL : p.signal ? AMP_INTERRUPTED : p.status;
    pool_close(&p);
    return rc;
}
