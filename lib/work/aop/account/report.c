/* The final report of a session, and its record for lists. */
#include "work/aop/account/report.h"

#include <stdio.h>
#include <stdlib.h>

#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/protocol/aop/event.h"
#include "work/aop/session/private.h"
#include "json/record.h"

#define REPORT_MAX ((size_t)512 << 20)

/* ---- what is read ---- */

/* A TASK, with the memory of its texts. */
struct row {
    struct amp_session_task t;
    struct amp_buf mem;
};

/* A group of a table of costs. */
struct group {
    struct amp_span a, b; /* its name: one or two texts */
    int64_t tasks, runs;
    struct amp_session_usage used;
};
struct groups {
    struct group *v;
    size_t n, cap;
};

struct report {
    struct amp_store *store;
    struct amp_session_summary sum;
    struct row *rows;
    size_t n, cap;
    struct groups agents, providers, models, codes;
    struct amp_buf mem;
};

static void report_release(struct report *r)
{
    for (size_t i = 0; i < r->n; i++)
        amp_buf_release(&r->rows[i].mem);
    free(r->rows);
    free(r->agents.v);
    free(r->providers.v);
    free(r->models.v);
    free(r->codes.v);
    amp_buf_release(&r->mem);
}
#define SESSION_REPORT AMP_CLEANUP(report_release) struct report

static struct group *group_find(struct groups *g, struct amp_span a, struct amp_span b)
{
    for (size_t i = 0; i < g->n; i++)
        if (amp_span_eq(g->v[i].a, a) && amp_span_eq(g->v[i].b, b))
            return &g->v[i];
    if (g->n == g->cap) {
        size_t cap = g->cap ? 2 * g->cap : 16;
        struct group *v = reallocarray(g->v, cap, sizeof *v);
        if (!v)
            return NULL;
        g->v = v;
        g->cap = cap;
    }
    g->v[g->n] = (struct group){.a = a, .b = b};
    return &g->v[g->n++];
}

static void task_count(struct amp_session_summary *s, const struct amp_session_task *t)
{
    const struct amp_session_usage used = amp_session_task_used(t);

    s->tasks++;
    s->states[t->state]++;
    amp_session_usage_add(&s->used, &used);
    if (!amp_span_is(t->code, AMP_CODE(E_MAX_DEPTH_EXCEEDED)) && t->depth > s->depth)
        s->depth = t->depth;
    if (t->started_ms > 0 && (s->first_ms == 0 || t->started_ms < s->first_ms))
        s->first_ms = t->started_ms;
    if (t->ended_ms > s->last_ms)
        s->last_ms = t->ended_ms;
}

static int task_sum(void *ctx, const struct amp_session_task *t, struct amp_error *err)
{
    (void)err;
    task_count(ctx, t);
    return 0;
}

int64_t amp_session_open_tasks(const struct amp_session_summary *s)
{
    int64_t n = 0;

    for (uint8_t i = 0; i < AMP_SESSION_TASK_STATE_COUNT; i++)
        n += amp_session_task_ended(i) ? 0 : s->states[i];
    return n;
}

int amp_session_summarise(struct amp_store *s, struct amp_span session, struct amp_buf *mem,
                          struct amp_session_summary *out, struct amp_error *err)
{
    *out = (struct amp_session_summary){0};
    int found = amp_session_find(s, session, mem, &out->x, err);
    if (found <= 0)
        return found;
    return amp_session_each_task(s, session, task_sum, out, err) < 0 ? -1 : 1;
}

/* Reads the TASK again into memory of its own. */
static int row_note(void *ctx, const struct amp_session_task *t, struct amp_error *err)
{
    struct report *r = ctx;

    if (r->n == r->cap) {
        size_t cap = r->cap ? 2 * r->cap : 64;
        struct row *v = reallocarray(r->rows, cap, sizeof *v);
        if (!v)
            return amp_fail_memory(err);
        r->rows = v;
        r->cap = cap;
    }
    struct row *row = &r->rows[r->n];
    *row = (struct row){.mem = {.max = AMP_REC_MAX}};
    r->n++;
    int found = amp_session_task_find(r->store, t->session, t->id, &row->mem, &row->t, err);
    return found > 0   ? 0
           : found < 0 ? -1
                       : amp_fail(err, AMP_TEMPFAIL, changed, "a TASK was removed meanwhile");
}

static int row_compare(const void *a, const void *b)
{
    int64_t x = ((const struct row *)a)->t.seq, y = ((const struct row *)b)->t.seq;
    return x < y ? -1 : x > y;
}

static int group_add(struct groups *g, struct amp_span a, struct amp_span b, int64_t tasks,
                     int64_t runs, const struct amp_session_usage *u, struct amp_error *err)
{
    struct group *x = group_find(g, a, b);

    if (!x)
        return amp_fail_memory(err);
    x->tasks += tasks;
    x->runs += runs;
    if (u)
        amp_session_usage_add(&x->used, u);
    return 0;
}

static int row_group(struct report *r, const struct amp_session_task *t, struct amp_error *err)
{
    const struct amp_span none = AMP_SPAN("");
    const struct amp_session_usage used = amp_session_task_used(t);

    task_count(&r->sum, t);
    if (group_add(&r->agents, t->agent, none, 1, t->n_tries, &used, err) < 0 ||
        (t->code.n > 0 && group_add(&r->codes, t->code, none, 1, 0, NULL, err) < 0))
        return -1;
    for (uint32_t i = 0; i < t->n_tries; i++) {
        const struct amp_session_try *y = &t->tries[i];
        if (group_add(&r->providers, y->provider, none, 0, 1, &y->used, err) < 0 ||
            group_add(&r->models, y->provider, y->model, 0, 1, &y->used, err) < 0)
            return -1;
    }
    return 0;
}

static int report_read(struct report *r, struct amp_span session, struct amp_error *err)
{
    amp_buf_init(&r->mem, AMP_REC_MAX);
    int found = amp_session_find(r->store, session, &r->mem, &r->sum.x, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, unknown_ref, "there is no session %.*s",
                                    AMP_CLIP(session, 200));
    if (amp_session_each_task(r->store, session, row_note, r, err) < 0)
        return -1;
    if (r->n > 0)
        qsort(r->rows, r->n, sizeof *r->rows, row_compare);
    for (size_t i = 0; i < r->n; i++)
        if (row_group(r, &r->rows[i].t, err) < 0)
            return -1;
    return 0;
}

int amp_session_each_arrived(struct amp_store *s, struct amp_span session, amp_session_task_fn fn,
                             void *ctx, struct amp_error *err)
{
    SESSION_REPORT r = {.store = s};
    int rc = report_read(&r, session, err);

    for (size_t i = 0; rc == 0 && i < r.n; i++)
        rc = fn(ctx, &r.rows[i].t, err);
    return rc < 0 ? -1 : 0;
}

/* ---- writing ---- */

static void usage_write(struct amp_jw *w, const struct amp_session_usage *u)
{
    amp_session_dollars(w, "actual_cost_usd", u->micros);
    amp_session_dollars(w, "estimated_cost_usd", u->estimated);
    amp_jw_member_int(w, "tokens_input", u->tokens_in);
    amp_jw_member_int(w, "tokens_output", u->tokens_out);
}

static void groups_write(struct amp_jw *w, const char *key, const struct groups *g,
                         const char *name, const char *second, bool tasks)
{
    amp_jw_member_open(w, key, '[');
    for (size_t i = 0; i < g->n; i++) {
        const struct group *x = &g->v[i];
        amp_jw_open(w, '{');
        amp_jw_member_str(w, name, x->a);
        if (second)
            amp_jw_member_str(w, second, x->b);
        if (tasks)
            amp_jw_member_int(w, "tasks", x->tasks);
        amp_jw_member_int(w, "runs", x->runs);
        usage_write(w, &x->used);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static void costs_write(struct amp_jw *w, const struct report *r)
{
    const struct amp_session_usage *u = &r->sum.used;

    amp_jw_open(w, '{');
    amp_session_dollars(w, "total_cost_usd", u->micros);
    amp_session_dollars(w, "total_estimated_cost_usd", u->estimated);
    amp_jw_member_int(w, "total_tokens_input", u->tokens_in);
    amp_jw_member_int(w, "total_tokens_output", u->tokens_out);
    amp_jw_member_open(w, "by_task", '[');
    for (size_t i = 0; i < r->n; i++) {
        const struct amp_session_usage used = amp_session_task_used(&r->rows[i].t);
        amp_jw_open(w, '{');
        amp_jw_member_str(w, "task_id", r->rows[i].t.id);
        amp_jw_member_int(w, "runs", r->rows[i].t.n_tries);
        usage_write(w, &used);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
    groups_write(w, "by_agent", &r->agents, "agent", NULL, true);
    groups_write(w, "by_provider", &r->providers, "provider", NULL, false);
    groups_write(w, "by_model", &r->models, "provider", "model", false);
    amp_jw_close(w, '}');
}

static void graph_write(struct amp_jw *w, const struct report *r)
{
    amp_jw_open(w, '{');
    amp_jw_member_open(w, "nodes", '[');
    for (size_t i = 0; i < r->n; i++) {
        const struct amp_session_task *t = &r->rows[i].t;
        amp_jw_open(w, '{');
        amp_jw_member_str(w, "task_id", t->id);
        amp_jw_member_str(w, "agent", t->agent);
        amp_jw_member_text(w, "state", amp_session_task_fsm.states[t->state].name);
        amp_jw_member_int(w, "depth", t->depth);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
    amp_jw_member_open(w, "edges", '[');
    for (size_t i = 0; i < r->n; i++) {
        const struct amp_session_task *t = &r->rows[i].t;
        if (t->parent.n == 0)
            continue;
        amp_jw_open(w, '{');
        amp_jw_member_str(w, "from", t->parent);
        amp_jw_member_str(w, "to", t->id);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
    amp_jw_member_int(w, "depth", r->sum.depth);
    amp_jw_close(w, '}');
}

static void tries_write(struct amp_jw *w, const struct amp_session_task *t)
{
    amp_jw_member_open(w, "runs", '[');
    for (uint32_t i = 0; i < t->n_tries; i++) {
        const struct amp_session_try *y = &t->tries[i];
        amp_jw_open(w, '{');
        amp_jw_member_int(w, "attempt", y->attempt);
        amp_jw_member_str(w, "provider", y->provider);
        amp_jw_member_str(w, "model", y->model);
        amp_jw_some_str(w, "error_code", y->code);
        amp_rec_time(w, "started_at", y->started_ms);
        amp_rec_time(w, "completed_at", y->ended_ms);
        usage_write(w, &y->used);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static void task_write(struct amp_jw *w, const struct amp_session_task *t)
{
    const struct amp_session_usage used = amp_session_task_used(t);

    amp_jw_open(w, '{');
    amp_jw_member_str(w, "task_id", t->id);
    amp_jw_some_str(w, "parent_task_id", t->parent);
    amp_jw_member_int(w, "depth", t->depth);
    amp_jw_member_int(w, "attempt", t->attempt);
    amp_jw_member_str(w, "agent", t->agent);
    amp_jw_some_str(w, "role", t->role);
    amp_jw_member_str(w, "provider", t->provider);
    amp_jw_member_str(w, "model", t->model);
    amp_jw_some_str(w, "category", t->category);
    amp_jw_some_str(w, "complexity", t->complexity);
    amp_jw_some_str(w, "priority", t->priority);
    amp_jw_some_str(w, "objective", t->objective);
    amp_jw_member_text(w, "state", amp_session_task_fsm.states[t->state].name);
    amp_jw_some_str(w, "final_signal", t->signal);
    amp_jw_some_str(w, "error_code", t->code);
    amp_jw_some_str(w, "message", t->message);
    amp_jw_member_open(w, "timing", '{');
    amp_rec_time(w, "arrived_at", t->entered_ms);
    amp_rec_time(w, "started_at", t->started_ms);
    amp_rec_time(w, "completed_at", t->ended_ms);
    if (t->ended_ms > 0)
        amp_jw_member_int(w, "duration_ms", t->started_ms > 0 ? t->ended_ms - t->started_ms : 0);
    amp_jw_close(w, '}');
    amp_jw_member_open(w, "cost_tracking", '{');
    usage_write(w, &used);
    amp_jw_close(w, '}');
    tries_write(w, t);
    amp_jw_close(w, '}');
}

static void tasks_write(struct amp_jw *w, const struct report *r)
{
    amp_jw_open(w, '[');
    for (size_t i = 0; i < r->n; i++)
        task_write(w, &r->rows[i].t);
    amp_jw_close(w, ']');
}

static int event_write(void *ctx, const struct amp_session_entry *e, struct amp_error *err)
{
    struct amp_jw *w = ctx;

    (void)err;
    if (e->type == AMP_SESSION_ENTRY_EVENT || e->type == AMP_SESSION_ENTRY_ROLLBACK_EVENT)
        amp_jw_raw(w, e->json);
    return 0;
}

static void states_write(struct amp_jw *w, const struct amp_session_summary *s)
{
    amp_jw_member_open(w, "x_states", '{');
    for (uint8_t i = 0; i < AMP_SESSION_TASK_STATE_COUNT; i++)
        amp_jw_member_int(w, amp_session_task_fsm.states[i].name, s->states[i]);
    amp_jw_close(w, '}');
}

static void errors_write(struct amp_jw *w, const struct groups *codes)
{
    amp_jw_member_open(w, "x_errors", '[');
    for (size_t i = 0; i < codes->n; i++) {
        amp_jw_open(w, '{');
        amp_jw_member_str(w, "error_code", codes->v[i].a);
        amp_jw_member_int(w, "tasks", codes->v[i].tasks);
        amp_jw_close(w, '}');
    }
    amp_jw_close(w, ']');
}

static void open_write(struct amp_jw *w, const struct report *r)
{
    amp_jw_member_open(w, "x_open_tasks", '[');
    for (size_t i = 0; i < r->n; i++)
        if (!amp_session_task_ended(r->rows[i].t.state))
            amp_jw_str(w, r->rows[i].t.id);
    amp_jw_close(w, ']');
}

static void extensions_write(struct amp_jw *w, const struct report *r, bool interim)
{
    const struct amp_session *x = &r->sum.x;

    amp_jw_open(w, '{');
    amp_jw_member_bool(w, "x_interim", interim);
    open_write(w, r);
    amp_jw_member_open(w, "x_session", '{');
    amp_jw_member_str(w, "created_at", x->created);
    amp_jw_member_str(w, "orchestrator", x->orchestrator);
    amp_jw_some_str(w, "origin", x->origin);
    amp_jw_some_str(w, "workflow_pattern", x->pattern);
    amp_rec_time(w, "opened_at", x->opened_ms);
    amp_rec_time(w, "aborted_at", x->aborted_ms);
    amp_jw_some_str(w, "aborted_by", x->cause);
    amp_jw_some_str(w, "error_code", x->code);
    amp_jw_close(w, '}');
    amp_jw_member_int(w, "x_tasks", r->sum.tasks);
    states_write(w, &r->sum);
    errors_write(w, &r->codes);
    amp_jw_member_open(w, "x_timing", '{');
    amp_rec_time(w, "started_at", r->sum.first_ms);
    amp_rec_time(w, "completed_at", r->sum.last_ms);
    amp_jw_member_int(w, "duration_ms",
                      r->sum.first_ms > 0 && r->sum.last_ms > r->sum.first_ms
                          ? r->sum.last_ms - r->sum.first_ms
                          : 0);
    amp_jw_close(w, '}');
    amp_jw_close(w, '}');
}

/* A part of the report, as JSON. */
#define PART(buf) AMP_BUF struct amp_buf buf = {.max = REPORT_MAX}

static int report_compose(struct report *r, bool interim, int64_t now_ms, struct amp_buf *out,
                          struct amp_error *err)
{
    PART(costs);
    PART(graph);
    PART(tasks);
    PART(events);
    PART(extensions);
    struct amp_jw w;
    const struct amp_session *x = &r->sum.x;
    const struct amp_aop_about about = {.session = x->id, .now_ms = now_ms};

    amp_jw_init(&w, &costs);
    costs_write(&w, r);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    amp_jw_init(&w, &graph);
    graph_write(&w, r);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    amp_jw_init(&w, &tasks);
    tasks_write(&w, r);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    amp_jw_init(&w, &events);
    amp_jw_open(&w, '[');
    if (amp_session_entries(r->store, x->id, 0, event_write, &w, err) < 0)
        return -1;
    amp_jw_close(&w, ']');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    amp_jw_init(&w, &extensions);
    extensions_write(&w, r, interim);
    if (amp_jw_end(&w, err) < 0)
        return -1;
    const struct amp_aop_final_report report = {.cost_summary = amp_buf_span(&costs),
                                                .delegation_graph = amp_buf_span(&graph),
                                                .tasks = amp_buf_span(&tasks),
                                                .events = amp_buf_span(&events),
                                                .storage_path = x->storage,
                                                .extensions = amp_buf_span(&extensions)};
    return amp_aop_session_final_report(&about, &report, out, err);
}

static int report_check(const struct report *r, bool *interim, struct amp_error *err)
{
    int64_t open = amp_session_open_tasks(&r->sum);

    if (open > 0 && !*interim)
        return amp_fail(err, AMP_NO, session_open,
                        "%lld of %lld TASKs of session %.*s have not ended", (long long)open,
                        (long long)r->sum.tasks, AMP_CLIP(r->sum.x.id, 200));
    *interim = open > 0;
    return 0;
}

int amp_session_report_line(struct amp_store *s, struct amp_span session, bool interim,
                            int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    SESSION_REPORT r = {.store = s};

    return report_read(&r, session, err) < 0 || report_check(&r, &interim, err) < 0
               ? -1
               : report_compose(&r, interim, now_ms, out, err);
}

/* ---- the summary in the audit trail ---- */

static int summary_add(const struct amp_session_voice *v, const struct report *r,
                       struct amp_error *err)
{
    const struct amp_session_summary *s = &r->sum;
    PART(payload);
    struct amp_jw w;
    char name[32];

    amp_jw_init(&w, &payload);
    amp_jw_open(&w, '{');
    amp_jw_member_int(&w, "total_tasks", s->tasks);
    amp_jw_member_int(&w, "completed", s->states[AMP_SESSION_TASK_COMPLETED]);
    amp_jw_member_int(&w, "failed", s->states[AMP_SESSION_TASK_FAILED]);
    amp_jw_member_int(&w, "aborted", s->states[AMP_SESSION_TASK_ABORTED]);
    amp_jw_member_int(&w, "skipped", s->states[AMP_SESSION_TASK_SKIPPED]);
    amp_session_dollars(&w, "total_cost_usd", s->used.micros);
    amp_session_dollars(
        &w, "total_duration_seconds",
        s->first_ms > 0 && s->last_ms > s->first_ms ? (s->last_ms - s->first_ms) * 1000 : 0);
    amp_jw_member_open(&w, "agents_used", '[');
    for (size_t i = 0; i < r->agents.n; i++)
        amp_jw_str(&w, r->agents.v[i].a);
    amp_jw_close(&w, ']');
    amp_jw_member_open(&w, "role_assignments", '[');
    for (size_t i = 0; i < r->n; i++) {
        const struct amp_session_task *t = &r->rows[i].t;
        amp_jw_open(&w, '{');
        amp_jw_member_str(&w, "task_id", t->id);
        amp_jw_member_str(&w, "agent", t->agent);
        amp_jw_member_str(&w, "role", t->role);
        amp_jw_member_str(&w, "model", t->model);
        amp_jw_close(&w, '}');
    }
    amp_jw_close(&w, ']');
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0)
        return -1;
    const struct amp_session_audit a = {.type = AMP_SESSION_ENTRY_SESSION_SUMMARY,
                                        .session = s->x.id,
                                        .attempt = 1,
                                        .role = "ORCHESTRATOR",
                                        .actor = s->x.orchestrator,
                                        .payload = amp_buf_span(&payload),
                                        .access = "N/A",
                                        .reason = s->x.code};
    snprintf(name, sizeof name, "summary.%lld", (long long)s->x.reports + 1);
    return amp_session_audit_add(v, &a, name, NULL, 0, err);
}

int amp_session_report(const struct amp_session_voice *v, struct amp_span session,
                       struct amp_buf *out, struct amp_error *err)
{
    SESSION_REPORT r = {.store = v->store};
    PART(line);
    bool interim = false;
    int rc;

    /* In one turn of the store, so that no TASK arrives between the look and the commit. */
    if (amp_store_begin(v->store, err) < 0)
        return -1;
    rc = report_read(&r, session, err) < 0 || report_check(&r, &interim, err) < 0 ||
                 report_compose(&r, interim, v->now_ms, &line, err) < 0
             ? -1
             : 0;
    /* A repeated report, as after a kill before it was written, records nothing. */
    if (rc == 0 && r.sum.x.state != AMP_SESSION_REPORTED) {
        const struct amp_session_change c = {.event = AMP_SESSION_EV_REPORT, .session = session};
        rc = summary_add(v, &r, err) < 0 || amp_session_step(v, &c, err) < 0 ? -1 : 0;
    }
    amp_store_end(v->store);
    return rc < 0 ? -1 : amp_buf_add(out, line.data, line.len, err);
}

/* ---- records for lists ---- */

int amp_session_write(struct amp_store *s, const struct amp_session_summary *sum, bool full,
                      struct amp_buf *out, struct amp_error *err)
{
    const struct amp_session *x = &sum->x;
    SESSION_REPORT r = {.store = s};
    struct amp_jw w;

    if (full && report_read(&r, x->id, err) < 0)
        return -1;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "session_id", x->id);
    amp_jw_member_text(&w, "state", amp_session_fsm.states[x->state].name);
    amp_jw_member_str(&w, "created_at", x->created);
    amp_jw_member_str(&w, "orchestrator", x->orchestrator);
    amp_jw_some_str(&w, "origin", x->origin);
    amp_jw_some_str(&w, "workflow_pattern", x->pattern);
    amp_rec_time(&w, "opened_at", x->opened_ms);
    amp_rec_time(&w, "aborted_at", x->aborted_ms);
    amp_rec_time(&w, "reported_at", x->reported_ms);
    amp_jw_some_str(&w, "aborted_by", x->cause);
    amp_jw_some_str(&w, "error_code", x->code);
    amp_jw_member_int(&w, "tasks", sum->tasks);
    amp_jw_member_open(&w, "states", '{');
    for (uint8_t i = 0; i < AMP_SESSION_TASK_STATE_COUNT; i++)
        amp_jw_member_int(&w, amp_session_task_fsm.states[i].name, sum->states[i]);
    amp_jw_close(&w, '}');
    amp_jw_member_int(&w, "depth", sum->depth);
    usage_write(&w, &sum->used);
    amp_jw_some_str(&w, "storage_path", x->storage);
    amp_jw_some_str(&w, "trail", x->trail);
    if (full) {
        amp_jw_key(&w, "list");
        tasks_write(&w, &r);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
