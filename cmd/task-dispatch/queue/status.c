/*
 * task-dispatch status: who does what now. One section for the types of agents, workers, agents,
 * parked jobs, budgets and open questions; a table each for people, one JSON object for programs.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "../tasks/tasks.h"
#include "activity/activity.h"
#include "agent/record.h"
#include "base/grow.h"
#include "cli/table.h"
#include "cli/time.h"
#include "desk.h"
#include "flow/agent_notices.h"
#include "flow/pool/budget.h"
#include "flow/pool/record.h"
#include "flow/queue/account.h"
#include "hitl/question.h"
#include "queue.h"
#include "json/record.h"

#define DOCUMENT_MAX ((size_t)64 << 20)
#define CELLS        7

static bool json;

const struct amp_opt queue_status_opts[] = {
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object"},
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
    struct amp_table table; /* of the section */
    struct amp_buf text;
    struct amp_jw w;
    struct held *held;
    size_t n_held, cap_held;
    int64_t now_ms;
    struct amp_error *err;
};

/* ---- sections ---- */

static void section_begin(struct status *t, const char *name, const char *const *head)
{
    int n = 0;

    while (head[n])
        n++;
    if (json) {
        amp_jw_member_open(&t->w, name, '[');
        return;
    }
    amp_table_init(&t->table, head, n);
    t->table.fit = amp_page_columns(STDOUT_FILENO);
    t->table.color = amp_color_of(STDOUT_FILENO);
    for (int i = 0; i < n; i++)
        amp_table_tint(&t->table, i, AMP_TINT_HEAD);
}

/* Empty sections are not printed; an empty line is between two. */
static int section_end(struct status *t, int rc)
{
    if (json) {
        amp_jw_close(&t->w, ']');
        return rc;
    }
    bool rows = t->table.rows > 1;
    if (rc == 0 && rows && t->text.len)
        rc = amp_out(AMP_SPAN("\n"), t->err);
    if (rc == 0 && rows)
        rc = amp_table_print(&t->table, t->err);
    if (rows && t->text.len == 0 && amp_buf_str(&t->text, "x", t->err) < 0)
        rc = -1; /* text: something was printed */
    amp_table_release(&t->table);
    return rc;
}

static struct amp_span number_text(int64_t n, char out[24])
{
    snprintf(out, 24, "%lld", (long long)n);
    return amp_span_str(out);
}

static struct amp_span age_of(const struct status *t, int64_t since_ms, char out[AMP_AGE_MAX])
{
    return since_ms ? amp_age_text(t->now_ms - since_ms, out) : AMP_SPAN("");
}

static struct amp_span id_cut(const char *id)
{
    struct amp_span s = amp_span_str(id);

    return (struct amp_span){s.p, s.n < 12 ? s.n : 12};
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
        if (amp_subject_each(&amp_queue_subject, t->desk.store, amp_queue_fsm.states[s].name,
                             held_add, t, t->err) < 0)
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

static int parked_print(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *j = rec;
    struct status *t = ctx;
    char left[AMP_AGE_MAX];

    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_str(&t->w, "job", j->id);
        amp_jw_member_str(&t->w, "type", j->type);
        amp_jw_some_str(&t->w, "task", j->task);
        amp_time_member(&t->w, "until", j->until_ms);
        amp_jw_some_str(&t->w, "code", j->code);
        amp_jw_some_str(&t->w, "reason", j->reason);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    const struct amp_span cells[] = {{j->id.p, j->id.n < 12 ? j->id.n : 12},
                                     j->type,
                                     j->task,
                                     j->until_ms ? amp_age_text(j->until_ms - t->now_ms, left)
                                                 : AMP_SPAN(""),
                                     j->code,
                                     j->reason};
    return amp_table_row(&t->table, cells, 6, err);
}

static int parked_section(struct status *t)
{
    static const char *const head[] = {"PARKED", "TYPE", "TASK", "FOR", "CODE", "WHY", NULL};

    section_begin(t, "parked", head);
    return section_end(t, amp_subject_each(&amp_queue_subject, t->desk.store,
                                           amp_queue_fsm.states[AMP_QUEUE_PARKED].name,
                                           parked_print, t, t->err));
}

/* ---- types ---- */

static int type_print(struct status *t, struct amp_span type)
{
    struct amp_order_counts n;
    char text[5][24];
    const int64_t most = amp_queue_most(&t->desk.set, type),
                  agents = queue_desk_staff(&t->desk, type);

    if (amp_order_counts(t->desk.order, type, &n, t->err) < 0)
        return -1;
    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_str(&t->w, "type", type);
        amp_jw_member_int(&t->w, "places", most);
        amp_jw_member_uint(&t->w, "running", n.working);
        amp_jw_member_uint(&t->w, "waiting", n.waiting);
        amp_jw_member_uint(&t->w, "parked", n.parked);
        amp_jw_member_int(&t->w, "agents", agents);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    const struct amp_span cells[] = {type,
                                     number_text(most, text[0]),
                                     number_text((int64_t)n.working, text[1]),
                                     number_text((int64_t)n.waiting, text[2]),
                                     number_text((int64_t)n.parked, text[3]),
                                     number_text(agents, text[4])};
    return amp_table_row(&t->table, cells, 6, t->err);
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

static int types_section(struct status *t)
{
    static const char *const head[] = {"TYPE",   "PLACES", "RUNNING", "WAITING",
                                       "PARKED", "AGENTS", NULL};

    section_begin(t, "types", head);
    return section_end(t, types_print(t));
}

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

static int worker_print(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_pool_rec *r = rec;
    struct status *t = ctx;
    struct beat_seen seen = {.worker = r->name};
    char pid[24], jobs[24], beat[AMP_AGE_MAX], since[AMP_AGE_MAX];

    if (amp_queue_beats(t->desk.store, beat_find, &seen, err) < 0)
        return -1;
    const char *state = !amp_queue_worker_lives(t->desk.store, r->name) ? "lost"
                        : r->state == AMP_POOL_STOPPING                 ? "stopping"
                                                                        : "working";
    int64_t n = held_count(t, r->name);
    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_text(&t->w, "worker", r->name);
        amp_jw_member_text(&t->w, "state", state);
        amp_jw_member_int(&t->w, "pid", r->pid);
        amp_jw_member_text(&t->w, "types", r->types);
        amp_jw_member_int(&t->w, "jobs", n);
        amp_time_member(&t->w, "since", r->since_ms);
        amp_time_member(&t->w, "heartbeat", seen.found ? seen.beat.at_ms : 0);
        if (seen.found)
            amp_jw_member_int(&t->w, "lost_in_ms", seen.beat.left_ms);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    const struct amp_span cells[] = {
        amp_span_str(r->name),        amp_span_str(state),
        number_text(r->pid, pid),     amp_span_str(r->types),
        number_text(n, jobs),         age_of(t, seen.found ? seen.beat.at_ms : 0, beat),
        age_of(t, r->since_ms, since)};
    return amp_table_row(&t->table, cells, 7, err);
}

static int workers_section(struct status *t)
{
    static const char *const head[] = {"WORKER", "STATE",     "PID", "TYPES",
                                       "JOBS",   "HEARTBEAT", "FOR", NULL};

    section_begin(t, "workers", head);
    return section_end(
        t, amp_subject_each(&amp_pool_subject, t->desk.store, NULL, worker_print, t, t->err));
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

static int agent_row(struct status *t, struct amp_span name, const struct amp_agent_rec *r,
                     const struct doing *d)
{
    struct amp_span task = amp_span_str(r->work.task ? r->work.task : "");
    struct amp_span branch = amp_buf_span(&d->branch);
    const struct held *job = job_of(t, task);
    const char *state = amp_agent_fsm.states[r->work.state].name;
    bool lost = amp_agent_lost(t->desk.store, name, r);
    int64_t since = task.n ? d->since_ms : 0;
    char age[AMP_AGE_MAX];

    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_str(&t->w, "agent", name);
        amp_jw_member_text(&t->w, "state", state);
        amp_jw_some_str(&t->w, "role", amp_span_str(r->work.role ? r->work.role : ""));
        amp_jw_some_str(&t->w, "task", task);
        amp_jw_some_str(&t->w, "job", amp_span_str(job ? job->id : ""));
        amp_jw_some_str(&t->w, "worker", amp_span_str(job ? job->worker : ""));
        amp_jw_some_str(&t->w, "branch", task.n ? branch : AMP_SPAN(""));
        amp_jw_member_bool(&t->w, "suspended", amp_agent_is_suspended(r));
        if (lost)
            amp_jw_member_bool(&t->w, "lost", true);
        amp_jw_some_str(&t->w, "code", amp_span_str(r->work.code ? r->work.code : ""));
        amp_time_member(&t->w, "since", since);
        amp_time_member(&t->w, "limit", r->work.limit_ms);
        amp_time_member(&t->w, "seen", r->work.last_seen_ms);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    const struct amp_span cells[] = {name,
                                     amp_span_str(lost ? "lost" : state),
                                     task,
                                     job ? id_cut(job->id) : AMP_SPAN(""),
                                     age_of(t, since, age),
                                     task.n ? branch : AMP_SPAN("")};
    return amp_table_row(&t->table, cells, 6, t->err);
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

static int agents_section(struct status *t)
{
    static const char *const head[] = {"AGENT", "STATE", "TASK", "JOB", "FOR", "BRANCH", NULL};

    section_begin(t, "agents", head);
    return section_end(t, amp_agent_records(t->desk.store, agent_print, t, t->err));
}

/* ---- budgets ---- */

static int budget_row(struct status *t, enum amp_budget_of of, const char *name,
                      const struct amp_spent *s)
{
    const struct amp_budget_limit *l = amp_budget_limit_of(&t->budgets, of);
    const char *state = amp_budget_reached(l, s, 100)                       ? "spent"
                        : amp_budget_reached(l, s, t->budgets.warn_percent) ? "warning"
                                                                            : "ok";
    char usd[2][32] = {"", ""}, tokens[2][24] = {"", ""};

    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_text(&t->w, "budget", amp_budget_name(of));
        amp_jw_some_str(&t->w, "name", amp_span_str(name));
        amp_jw_member_text(&t->w, "state", state);
        amp_jw_member_int(&t->w, "cost_micros", s->micros);
        amp_jw_some_int(&t->w, "cost_limit_micros", l->micros);
        amp_jw_member_int(&t->w, "tokens", s->tokens_in + s->tokens_out);
        amp_jw_some_int(&t->w, "tokens_limit", l->tokens);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    snprintf(usd[0], sizeof usd[0], "%.2f", (double)s->micros / 1e6);
    if (l->micros)
        snprintf(usd[1], sizeof usd[1], "%.2f", (double)l->micros / 1e6);
    number_text(s->tokens_in + s->tokens_out, tokens[0]);
    if (l->tokens)
        number_text(l->tokens, tokens[1]);
    const struct amp_span cells[] = {amp_span_str(amp_budget_name(of)),
                                     amp_span_str(name),
                                     amp_span_str(state),
                                     amp_span_str(usd[0]),
                                     amp_span_str(usd[1]),
                                     amp_span_str(tokens[0]),
                                     amp_span_str(tokens[1])};
    return amp_table_row(&t->table, cells, 7, t->err);
}

/* What was used, or has a limit. */
static int budget_print(struct status *t, enum amp_budget_of of, const char *name)
{
    const struct amp_budget_limit *l = amp_budget_limit_of(&t->budgets, of);
    struct amp_spent s;

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

static int budgets_section(struct status *t)
{
    static const char *const head[] = {"BUDGET", "OF",     "STATE", "USD",
                                       "LIMIT",  "TOKENS", "LIMIT", NULL};

    section_begin(t, "budgets", head);
    return section_end(t, budgets_print(t));
}

/* ---- usage limits ---- */

static int limit_print(void *ctx, const struct amp_account *a, struct amp_error *err)
{
    struct status *t = ctx;
    char since[AMP_AGE_MAX], left[AMP_AGE_MAX];

    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_text(&t->w, "account", a->name);
        amp_jw_some_str(&t->w, "agent", amp_span_str(a->agent));
        amp_time_member(&t->w, "since", a->since_ms);
        amp_time_member(&t->w, "until", a->until_ms);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    const struct amp_span cells[] = {amp_span_str(a->name), amp_span_str(a->agent),
                                     age_of(t, a->since_ms, since),
                                     amp_age_text(a->until_ms - t->now_ms, left)};
    return amp_table_row(&t->table, cells, 4, err);
}

static int limits_section(struct status *t)
{
    static const char *const head[] = {"USAGE LIMIT", "REPORTED BY", "FOR", "LEFT", NULL};

    section_begin(t, "limits", head);
    return section_end(t, amp_accounts_each(t->desk.store, t->now_ms, limit_print, t, t->err));
}

/* ---- questions ---- */

static int question_print(void *ctx, const struct amp_question *q)
{
    struct status *t = ctx;
    char age[AMP_AGE_MAX], left[AMP_AGE_MAX];
    struct amp_span task = amp_span_str(q->about.task);

    if (json) {
        amp_jw_open(&t->w, '{');
        amp_jw_member_text(&t->w, "question", q->key);
        amp_jw_member_text(&t->w, "name", q->name);
        amp_jw_member_text(&t->w, "reason", q->reason);
        amp_jw_some_str(&t->w, "severity", amp_span_str(q->severity));
        amp_jw_some_str(&t->w, "task", task);
        amp_time_member(&t->w, "since", q->arrived_ms);
        amp_time_member(&t->w, "deadline", q->deadline_ms);
        amp_jw_close(&t->w, '}');
        return 0;
    }
    const struct amp_span cells[] = {amp_span_str(q->name), amp_span_str(q->reason),
                                     amp_span_str(q->severity), age_of(t, q->arrived_ms, age),
                                     q->deadline_ms ? amp_age_text(q->deadline_ms - t->now_ms, left)
                                                    : AMP_SPAN("")};
    return amp_table_row(&t->table, cells, 5, t->err);
}

static int questions_section(struct status *t)
{
    static const char *const head[] = {"QUESTION", "REASON", "SEVERITY", "FOR", "LEFT", NULL};
    bool dirty = false;
    struct amp_hitl h = {
        .store = t->desk.store, .actor = amp_cli_name(), .dirty = &dirty, .note = amp_note};

    section_begin(t, "questions", head);
    return section_end(t, amp_question_each(&h, question_print, t, t->err));
}

/* ---- the verb ---- */

static int sections_print(struct status *t)
{
    return types_section(t) < 0 || workers_section(t) < 0 || agents_section(t) < 0 ||
                   parked_section(t) < 0 || limits_section(t) < 0 || budgets_section(t) < 0 ||
                   questions_section(t) < 0
               ? -1
               : 0;
}

static int status_print(struct status *t)
{
    if (!json) {
        int rc = sections_print(t);
        if (rc == 0 && t->text.len == 0)
            amp_note("no jobs, workers, agents or questions in %s", task_state);
        return rc;
    }
    amp_jw_init(&t->w, &t->text);
    amp_jw_open(&t->w, '{');
    amp_time_member(&t->w, "time", t->now_ms);
    if (sections_print(t) < 0)
        return -1;
    amp_jw_close(&t->w, '}');
    return amp_jw_end_line(&t->w, t->err) < 0 ? -1 : amp_out(amp_buf_span(&t->text), t->err);
}

int queue_status(int argc, char **argv)
{
    struct amp_error err;
    struct status t = {.now_ms = amp_now_ms(), .err = &err, .text = {.max = DOCUMENT_MAX}};

    (void)argc, (void)argv;
    int rc = queue_desk_open(&t.desk, false, &err) < 0 ||
                     amp_budgets_load(&t.budgets, t.desk.config, &err) < 0 || held_read(&t) < 0
                 ? -1
                 : status_print(&t);
    for (size_t i = 0; i < t.n_held; i++)
        free(t.held[i].task);
    free(t.held);
    amp_buf_release(&t.text);
    queue_desk_close(&t.desk);
    return rc < 0 ? amp_complain(&err) : AMP_OK;
}
