/*
 * task-queue status: who does what now. One section for the types of agents, workers, agents,
 * parked jobs, budgets and open questions; a table each for people, one JSON object for programs.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/grow.h"
#include "cli/list.h"
#include "desk.h"
#include "people/question/question.h"
#include "shared/work/tool.h"
#include "work/agent/agent_notices.h"
#include "work/agent/work.h"
#include "work/item/claim/account.h"
#include "work/loop/pool/budget.h"
#include "work/loop/pool/record.h"
#include "work/task/activity/activity.h"
#include "json/record.h"

#define DOCUMENT_MAX ((size_t)64 << 20)

static const struct amp_opt queue_status_opts[] = {
    AMP_OPT_JSON("print one JSON object"),
    AMP_OPT_END,
};

/* A job at work. */
struct held {
    char id[AMP_QUEUE_ID_MAX], *task;
    char worker[AMP_QUEUE_WORKER_MAX];
};

struct status {
    struct queue_desk desk;
    struct amp_budgets budgets;
    struct amp_listing list; /* of the section */
    bool any;                /* a section was printed */
    struct amp_buf text;
    struct amp_jw w;
    struct held *held;
    size_t n_held, cap_held;
    int64_t now_ms;
    struct amp_error *err;
};

/* ---- sections ---- */

/* The document for programs: its rows are printed by `print`, in the same order. */
#define SECTION(name)                                                                              \
    {                                                                                              \
        .key = #name, .form = AMP_FORM_ROWS, .ever = true, .of = name##_columns                    \
    }

/* Empty sections are not printed; an empty line is between two. */
static int section_print(struct status *t, const struct amp_column *section,
                         int (*print)(struct status *t))
{
    amp_listing_init(&t->list, section->of);
    if (amp_listing_json)
        amp_listing_open(&t->list, &t->w, section->key);
    int rc = print(t);
    if (rc == 0 && !amp_listing_json && t->list.rows && t->any)
        rc = amp_out(AMP_SPAN("\n"), t->err);
    t->any |= t->list.rows > 0;
    return amp_listing_end(&t->list, rc, t->err);
}

/* ---- jobs ---- */

static int held_add(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *j = rec;
    struct status *t = ctx;

    if (amp_grow(&t->held, &t->cap_held, t->n_held, sizeof *t->held, err) < 0)
        return -1;
    struct held *h = &t->held[t->n_held];
    amp_span_copy(j->id, h->id, sizeof h->id);
    amp_span_copy(j->worker, h->worker, sizeof h->worker);
    if (!(h->task = amp_span_dup(j->task)))
        return amp_fail_memory(err);
    t->n_held++;
    return 0;
}

static int held_read(struct status *t)
{
    for (int s = AMP_QUEUE_CLAIMED; s <= AMP_QUEUE_PREEMPTING; s++)
        if (amp_queue_each(t->desk.store, amp_queue_fsm.states[s].name, held_add, t, t->err) < 0)
            return -1;
    return 0;
}

static int64_t held_count(const struct status *t, const char *worker)
{
    int64_t n = 0;

    for (size_t i = 0; i < t->n_held; i++)
        n += strcmp(t->held[i].worker, worker) == 0;
    return n;
}

static const struct amp_column parked_columns[] = {
    AMP_COLUMN_EVER(ID, struct amp_queue_job, "job", "PARKED", id),
    AMP_COLUMN_EVER(TEXT, struct amp_queue_job, "type", "TYPE", type),
    AMP_COLUMN(TEXT, struct amp_queue_job, "task", "TASK", task),
    AMP_COLUMN(LEFT, struct amp_queue_job, "until", "FOR", until_ms),
    AMP_COLUMN(TEXT, struct amp_queue_job, "code", "CODE", code),
    AMP_COLUMN(TEXT, struct amp_queue_job, "reason", "WHY", reason),
    {0},
};

static int parked_print(struct status *t)
{
    return amp_queue_each(t->desk.store, amp_queue_fsm.states[AMP_QUEUE_PARKED].name,
                          amp_listing_row, &t->list, t->err);
}

/* ---- types ---- */

struct type_row {
    struct amp_span type;
    int64_t places, running, waiting, parked, agents;
};

static int type_print(struct status *t, struct amp_span type)
{
    struct amp_order_counts n;

    if (amp_order_counts(t->desk.order, type, &n, t->err) < 0)
        return -1;
    const struct type_row row = {type,
                                 amp_queue_most(&t->desk.set, type),
                                 (int64_t)n.working,
                                 (int64_t)n.waiting,
                                 (int64_t)n.parked,
                                 queue_desk_staff(&t->desk, type)};
    return amp_listing_row(&t->list, &row, t->err);
}

/* The types of jobs, then those that only pools have. */
static int types_print(struct status *t)
{
    struct amp_span type;
    size_t i;

    for (i = 0; amp_order_type(t->desk.order, i, &type); i++)
        if (type_print(t, type) < 0)
            return -1;
    for (i = 0; queue_desk_type(&t->desk, i, &type); i++)
        if (!amp_order_knows(t->desk.order, type) && type_print(t, type) < 0)
            return -1;
    return 0;
}

static const struct amp_column types_columns[] = {
    AMP_COLUMN_EVER(TEXT, struct type_row, "type", "TYPE", type),
    AMP_COLUMN_EVER(INT, struct type_row, "places", "PLACES", places),
    AMP_COLUMN_EVER(INT, struct type_row, "running", "RUNNING", running),
    AMP_COLUMN_EVER(INT, struct type_row, "waiting", "WAITING", waiting),
    AMP_COLUMN_EVER(INT, struct type_row, "parked", "PARKED", parked),
    AMP_COLUMN_EVER(INT, struct type_row, "agents", "AGENTS", agents),
    {0},
};

/* ---- workers ---- */

struct beat_seen {
    const char *worker;
    struct amp_queue_beat beat;
    bool found;
};

static int beat_find(void *ctx, const struct amp_queue_beat *b, struct amp_error *err)
{
    struct beat_seen *f = ctx;

    (void)err;
    if (!amp_span_is(b->worker, f->worker))
        return 0;
    f->beat = *b;
    return f->found = true;
}

struct worker_row {
    const char *worker, *state, *types;
    int64_t pid, jobs, since_ms, beat_ms, left_ms;
};

static int worker_print(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_pool_rec *r = rec;
    struct status *t = ctx;
    struct beat_seen seen = {.worker = r->name};

    if (amp_queue_beats(t->desk.store, beat_find, &seen, err) < 0)
        return -1;
    const struct worker_row row = {.worker = r->name,
                                   .state = !amp_queue_worker_lives(t->desk.store, r->name) ? "lost"
                                            : r->state == AMP_POOL_STOPPING ? "stopping"
                                                                            : "working",
                                   .types = r->types,
                                   .pid = r->pid,
                                   .jobs = held_count(t, r->name),
                                   .since_ms = r->since_ms,
                                   .beat_ms = seen.found ? seen.beat.at_ms : 0,
                                   .left_ms = seen.found ? seen.beat.left_ms : 0};
    return amp_listing_row(&t->list, &row, err);
}

static const struct amp_column workers_columns[] = {
    AMP_COLUMN_EVER(CSTR, struct worker_row, "worker", "WORKER", worker),
    AMP_COLUMN_EVER(CSTR, struct worker_row, "state", "STATE", state),
    AMP_COLUMN_EVER(INT, struct worker_row, "pid", "PID", pid),
    AMP_COLUMN_EVER(CSTR, struct worker_row, "types", "TYPES", types),
    AMP_COLUMN_EVER(INT, struct worker_row, "jobs", "JOBS", jobs),
    AMP_COLUMN(AGE, struct worker_row, "heartbeat", "HEARTBEAT", beat_ms),
    AMP_COLUMN(INT, struct worker_row, "lost_in_ms", NULL, left_ms),
    AMP_COLUMN_EVER(AGE, struct worker_row, "since", "FOR", since_ms),
    {0},
};

static int workers_print(struct status *t)
{
    return amp_subject_each(&amp_pool_subject, t->desk.store, NULL, worker_print, t, t->err);
}

/* ---- agents ---- */

struct doing {
    struct amp_buf branch, task;
    int64_t since_ms;
};

static int doing_note(void *ctx, const struct amp_activity *a, struct amp_error *err)
{
    struct doing *d = ctx;

    if (a->ended_ms || a->began_ms < d->since_ms)
        return 0;
    d->since_ms = a->began_ms;
    amp_buf_reset(&d->branch);
    amp_buf_reset(&d->task);
    return amp_buf_add(&d->branch, a->branch.p, a->branch.n, err) < 0
               ? -1
               : amp_buf_add(&d->task, a->task.p, a->task.n, err);
}

static bool is_alive(int64_t pid)
{
    return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

/* The job at work that belongs to the task, which may be the job's own id. */
static const struct held *job_of(const struct status *t, struct amp_span task)
{
    for (size_t i = 0; task.n && i < t->n_held; i++)
        if (amp_span_is(task, t->held[i].task) || amp_span_is(task, t->held[i].id))
            return &t->held[i];
    return NULL;
}

struct agent_row {
    struct amp_span name, task, branch, job;
    const char *state, *shown, *role, *worker, *code; /* shown: to people */
    bool suspended, lost;
    int64_t since_ms, limit_ms, seen_ms;
};

static int agent_row(struct status *t, struct amp_span name, const struct amp_agent_rec *r,
                     const struct doing *d)
{
    const struct amp_agent_work *work = &r->work;
    const struct amp_span task = amp_span_str(work->task ? work->task : "");
    const struct held *job = job_of(t, task);
    const char *state = amp_agent_fsm.states[work->state].name;
    bool lost = amp_agent_lost(t->desk.store, name, r);
    const struct agent_row row = {.name = name,
                                  .task = task,
                                  .branch = task.n ? amp_buf_span(&d->branch) : AMP_SPAN(""),
                                  .job = amp_span_str(job ? job->id : ""),
                                  .state = state,
                                  .shown = lost ? "lost" : amp_agent_word(work),
                                  .role = work->role,
                                  .worker = job ? job->worker : "",
                                  .code = work->code,
                                  .suspended = amp_agent_is_suspended(r),
                                  .lost = lost,
                                  .since_ms = task.n ? d->since_ms : 0,
                                  .limit_ms = work->limit_ms,
                                  .seen_ms = work->last_seen_ms};

    return amp_listing_row(&t->list, &row, t->err);
}

/* Agents that have a process or a task. */
static int agent_print(void *ctx, struct amp_span name, const struct amp_agent_rec *r,
                       struct amp_error *err)
{
    struct status *t = ctx;
    struct doing d = {.branch = {.max = AMP_REC_MAX}, .task = {.max = AMP_REC_MAX}};
    const struct amp_activity_filter f = {.agent = name};

    if (!amp_agent_has_work(r) ||
        (!is_alive(r->work.pid) && !(r->work.task && *r->work.task) && !amp_agent_is_suspended(r)))
        return 0;
    int rc = amp_activity_each(t->desk.store, &f, doing_note, &d, err);
    if (rc == 0)
        rc = agent_row(t, name, r, &d);
    amp_buf_release(&d.branch);
    amp_buf_release(&d.task);
    return rc;
}

static const struct amp_column agents_columns[] = {
    AMP_COLUMN_EVER(TEXT, struct agent_row, "agent", "AGENT", name),
    AMP_COLUMN_EVER(CSTR, struct agent_row, "state", NULL, state),
    AMP_COLUMN(CSTR, struct agent_row, NULL, "STATE", shown),
    AMP_COLUMN(CSTR, struct agent_row, "role", NULL, role),
    AMP_COLUMN(TEXT, struct agent_row, "task", "TASK", task),
    AMP_COLUMN(ID, struct agent_row, "job", "JOB", job),
    AMP_COLUMN(CSTR, struct agent_row, "worker", NULL, worker),
    AMP_COLUMN(AGE, struct agent_row, "since", "FOR", since_ms),
    AMP_COLUMN(TEXT, struct agent_row, "branch", "BRANCH", branch),
    AMP_COLUMN_EVER(FLAG, struct agent_row, "suspended", NULL, suspended),
    AMP_COLUMN(FLAG, struct agent_row, "lost", NULL, lost),
    AMP_COLUMN(CSTR, struct agent_row, "code", NULL, code),
    AMP_COLUMN(TIME, struct agent_row, "limit", NULL, limit_ms),
    AMP_COLUMN(TIME, struct agent_row, "seen", NULL, seen_ms),
    {0},
};

static int agents_print(struct status *t)
{
    return amp_agent_records(t->desk.store, agent_print, t, t->err);
}

/* ---- budgets ---- */

struct budget_row {
    const char *of, *name, *state;
    int64_t micros, micros_limit, tokens, tokens_limit;
};

static int budget_row(struct status *t, enum amp_budget_of of, const char *name,
                      const struct amp_expense *s)
{
    const struct amp_budget_limit *l = amp_budget_limit_of(&t->budgets, of);
    const struct budget_row row = {.of = amp_budget_name(of),
                                   .name = name,
                                   .state = amp_budget_reached(l, s, 100) ? "spent"
                                            : amp_budget_reached(l, s, t->budgets.warn_percent)
                                                ? "warning"
                                                : "ok",
                                   .micros = s->micros,
                                   .micros_limit = l->micros,
                                   .tokens = s->tokens_in + s->tokens_out,
                                   .tokens_limit = l->tokens};

    return amp_listing_row(&t->list, &row, t->err);
}

/* Prints a budget that was used or has a limit. */
static int budget_print(struct status *t, enum amp_budget_of of, const char *name)
{
    const struct amp_budget_limit *l = amp_budget_limit_of(&t->budgets, of);
    struct amp_expense s;

    if (amp_budget_used(t->desk.store, of, name, t->now_ms, &s, t->err) < 0)
        return -1;
    bool used = s.micros || s.tokens_in || s.tokens_out;
    return used || (of == AMP_BUDGET_DAY && (l->micros || l->tokens)) ? budget_row(t, of, name, &s)
                                                                      : 0;
}

static int budget_agent(void *ctx, struct amp_span name, const struct amp_agent_rec *r,
                        struct amp_error *err)
{
    char text[256];

    (void)r, (void)err;
    return amp_span_copy(name, text, sizeof text) ? budget_print(ctx, AMP_BUDGET_AGENT, text) : 0;
}

static int budgets_print(struct status *t)
{
    if (budget_print(t, AMP_BUDGET_DAY, "") < 0 ||
        amp_agent_records(t->desk.store, budget_agent, t, t->err) < 0)
        return -1;
    for (size_t i = 0; i < t->n_held; i++)
        if (budget_print(t, AMP_BUDGET_TASK, *t->held[i].task ? t->held[i].task : t->held[i].id) <
            0)
            return -1;
    return 0;
}

static const struct amp_column budgets_columns[] = {
    AMP_COLUMN_EVER(CSTR, struct budget_row, "budget", "BUDGET", of),
    AMP_COLUMN(CSTR, struct budget_row, "name", "OF", name),
    AMP_COLUMN_EVER(CSTR, struct budget_row, "state", "STATE", state),
    AMP_COLUMN_EVER(COST, struct budget_row, "cost_micros", "USD", micros),
    AMP_COLUMN(COST, struct budget_row, "cost_limit_micros", "LIMIT", micros_limit),
    AMP_COLUMN_EVER(INT, struct budget_row, "tokens", "TOKENS", tokens),
    AMP_COLUMN(INT, struct budget_row, "tokens_limit", "LIMIT", tokens_limit),
    {0},
};

/* ---- usage limits ---- */

static const struct amp_column limits_columns[] = {
    AMP_COLUMN_EVER(CSTR, struct amp_account, "account", "USAGE LIMIT", name),
    AMP_COLUMN(CSTR, struct amp_account, "agent", "REPORTED BY", agent),
    AMP_COLUMN(AGE, struct amp_account, "since", "FOR", since_ms),
    AMP_COLUMN_EVER(LEFT, struct amp_account, "until", "LEFT", until_ms),
    {0},
};

static int limits_print(struct status *t)
{
    return amp_accounts_each(t->desk.store, t->now_ms, amp_listing_row, &t->list, t->err);
}

/* ---- questions ---- */

static int question_print(void *ctx, const struct amp_question *q)
{
    struct status *t = ctx;

    return amp_listing_row(&t->list, q, t->err);
}

static const struct amp_column questions_columns[] = {
    AMP_COLUMN_EVER(CHARS, struct amp_question, "question", NULL, key),
    AMP_COLUMN_EVER(CHARS, struct amp_question, "name", "QUESTION", name),
    AMP_COLUMN_EVER(CHARS, struct amp_question, "reason", "REASON", reason),
    AMP_COLUMN(CHARS, struct amp_question, "severity", "SEVERITY", severity),
    AMP_COLUMN(CHARS, struct amp_question, "task", NULL, about.task),
    AMP_COLUMN_EVER(AGE, struct amp_question, "since", "FOR", arrived_ms),
    AMP_COLUMN(LEFT, struct amp_question, "deadline", "LEFT", deadline_ms),
    {0},
};

static int questions_print(struct status *t)
{
    bool dirty = false;
    struct amp_hitl h = {
        .store = t->desk.store, .actor = amp_cli_name(), .dirty = &dirty, .note = amp_note};

    return amp_question_each(&h, question_print, t, t->err);
}

/* ---- the verb ---- */

static const struct amp_column document[] = {
    SECTION(types),
    SECTION(workers),
    SECTION(agents),
    SECTION(parked),
    SECTION(limits),
    SECTION(budgets),
    SECTION(questions),
    {.key = "time", .form = AMP_FORM_TIME, .ever = true},
    {0},
};

static int sections_print(struct status *t)
{
    static int (*const print[])(struct status *) = {
        types_print,  workers_print, agents_print,    parked_print,
        limits_print, budgets_print, questions_print,
    };

    for (size_t i = 0; i < sizeof print / sizeof *print; i++)
        if (section_print(t, &document[i], print[i]) < 0)
            return -1;
    return 0;
}

static int status_print(struct status *t)
{
    if (!amp_listing_json) {
        int rc = sections_print(t);
        if (rc == 0 && !t->any)
            amp_note("no jobs, workers, agents or questions in %s", amp_tool_state);
        return rc;
    }
    amp_jw_init(&t->w, &t->text);
    amp_jw_open(&t->w, '{');
    amp_rec_time(&t->w, "time", t->now_ms);
    if (sections_print(t) < 0)
        return -1;
    amp_jw_close(&t->w, '}');
    return amp_jw_end_line(&t->w, t->err) < 0 ? -1 : amp_out(amp_buf_span(&t->text), t->err);
}

static int queue_status(struct amp_command *c, struct amp_error *err)
{
    struct status t = {.now_ms = amp_now_ms(), .err = err, .text = {.max = DOCUMENT_MAX}};

    int rc = queue_desk_open(&t.desk, c->store, err) < 0 ||
                     amp_budgets_load(&t.budgets, t.desk.config, err) < 0 || held_read(&t) < 0
                 ? -1
                 : status_print(&t);
    for (size_t i = 0; i < t.n_held; i++)
        free(t.held[i].task);
    free(t.held);
    amp_buf_release(&t.text);
    queue_desk_close(&t.desk);
    return rc;
}

const struct amp_verb queue_status_verbs[] = {
    {"status", "", "print who does what now: types, workers, agents, budgets, questions",
     queue_status_opts, queue_status, .opens = AMP_OPENS_READ, .lists = document,
     .finds_state = true},
    {0},
};
