/* aop-session list, show: the sessions, and the TASKs of one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "cli/table.h"
#include "cli/time.h"
#include "shared/work/tool.h"
#include "work/aop/account/report.h"
#include "json/record.h"

static const char *state_of;
static bool list_json, show_json;

static const char *const states[] = {"OPEN", "ABORTED", "REPORTED", NULL};

static const struct amp_opt session_list_opts[] = {
    {0, "state-of", AMP_OPT_CHOICE, &state_of, "STATE", "only sessions in this state",
     .choices = states},
    {0, "json", AMP_OPT_FLAG, &list_json, NULL, "print one JSON object per session"},
    AMP_OPT_END,
};
static const struct amp_opt session_show_opts[] = {
    {0, "json", AMP_OPT_FLAG, &show_json, NULL, "print one JSON object with the TASKs"},
    AMP_OPT_END,
};

/* ---- all sessions ---- */

enum { COLUMNS = 8 };

struct listing {
    struct amp_store *store;
    struct amp_table table;
    struct amp_buf line;
    int64_t now_ms;
    size_t n;
};

/* Dollars and cents, rounded up, so that no cost is shown as nothing. */
static struct amp_span cost_text(int64_t micros, char out[32])
{
    int64_t cents = (micros + 9999) / 10000;

    snprintf(out, 32, "%lld.%02lld", (long long)(cents / 100), (long long)(cents % 100));
    return amp_span_str(out);
}

static int session_row(struct listing *l, const struct amp_session_summary *s,
                       struct amp_error *err)
{
    char age[AMP_AGE_MAX], tasks[48], cost[32], lost[24];
    int64_t open = amp_session_open_tasks(s);

    snprintf(tasks, sizeof tasks, "%lld/%lld", (long long)(s->tasks - open), (long long)s->tasks);
    snprintf(lost, sizeof lost, "%lld",
             (long long)(s->tasks - open - s->states[AMP_SESSION_TASK_COMPLETED]));
    const struct amp_span cells[COLUMNS] = {s->x.id,
                                            amp_span_str(amp_session_fsm.states[s->x.state].name),
                                            s->x.pattern,
                                            amp_span_str(tasks),
                                            amp_span_str(lost),
                                            cost_text(s->used.micros, cost),
                                            amp_age_text(l->now_ms - s->x.opened_ms, age),
                                            s->x.orchestrator};
    return amp_table_row(&l->table, cells, COLUMNS, err);
}

static int session_print(void *ctx, const struct amp_session *x, struct amp_error *err)
{
    struct listing *l = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_summary s;

    int found = amp_session_summarise(l->store, x->id, &mem, &s, err);
    if (found <= 0)
        return found;
    l->n++;
    if (!list_json)
        return session_row(l, &s, err);
    amp_buf_reset(&l->line);
    return amp_session_write(l->store, &s, false, &l->line, err) < 0
               ? -1
               : amp_out(amp_buf_span(&l->line), err);
}

static int session_list(struct amp_command *c, struct amp_error *err)
{
    static const char *const head[] = {"SESSION", "STATE", "PATTERN", "ENDED",
                                       "LOST",    "COST",  "AGE",     "ORCHESTRATOR"};
    struct listing l = {.store = c->store, .line = {.max = AMP_REC_MAX}, .now_ms = amp_now_ms()};

    amp_table_init(&l.table, head, COLUMNS);
    l.table.fit = amp_page_columns(STDOUT_FILENO);
    int rc = amp_session_each(l.store, state_of, session_print, &l, err);
    if (rc == 0 && !list_json && l.n > 0)
        rc = amp_table_print(&l.table, err);
    else if (rc == 0 && !list_json)
        amp_note("no %ssessions in %s", state_of ? "such " : "", c->state);
    amp_table_release(&l.table);
    amp_buf_release(&l.line);
    return rc;
}

/* ---- one session ---- */

enum { TASK_COLUMNS = 9 };

static int task_row(void *ctx, const struct amp_session_task *t, struct amp_error *err)
{
    struct listing *l = ctx;
    const struct amp_session_usage used = amp_session_task_used(t);
    const struct amp_span model = t->n_tries > 0 ? t->tries[t->n_tries - 1].model : t->model;
    char attempt[24], depth[24], cost[32], took[AMP_AGE_MAX];
    int64_t end = t->ended_ms > 0 ? t->ended_ms : l->now_ms;

    snprintf(attempt, sizeof attempt, "%lld", (long long)t->attempt);
    snprintf(depth, sizeof depth, "%lld", (long long)t->depth);
    const struct amp_span cells[TASK_COLUMNS] = {
        t->id,
        amp_span_str(amp_session_task_fsm.states[t->state].name),
        t->code,
        t->priority,
        amp_span_str(depth),
        amp_span_str(attempt),
        model,
        cost_text(used.micros, cost),
        t->started_ms > 0 ? amp_age_text(end - t->started_ms, took) : AMP_SPAN("-")};
    return amp_table_row(&l->table, cells, TASK_COLUMNS, err);
}

static int session_tell(struct listing *l, const struct amp_session_summary *s,
                        struct amp_error *err)
{
    const struct amp_session *x = &s->x;
    AMP_BUF struct amp_buf text = {.max = AMP_REC_MAX}, safe = {.max = AMP_REC_MAX};
    char cost[32];

    if (amp_buf_fmt(&text, err, "%.*s: %s, %lld TASK%s, %lld open, depth %lld, %s USD",
                    AMP_CLIP(x->id, 300), amp_session_fsm.states[x->state].name,
                    (long long)s->tasks, s->tasks == 1 ? "" : "s",
                    (long long)amp_session_open_tasks(s), (long long)s->depth,
                    cost_text(s->used.micros, cost).p) < 0 ||
        (x->aborted_ms > 0 && amp_buf_fmt(&text, err, "; aborted by %.*s: %.*s",
                                          AMP_CLIP(x->cause, 300), AMP_CLIP(x->code, 100)) < 0) ||
        (x->trail.n > 0 && amp_buf_fmt(&text, err, "; audit trail: %.*s in %.*s",
                                       AMP_CLIP(x->storage, 400), AMP_CLIP(x->trail, 400)) < 0))
        return -1;
    if (amp_text_safe(amp_buf_span(&text), 0, &safe, err) < 0 || amp_buf_str(&safe, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&safe), err) < 0 ? -1 : amp_table_print(&l->table, err);
}

static int session_look(struct listing *l, const char *name, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_summary s;

    int found = amp_session_summarise(l->store, amp_span_str(name), &mem, &s, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, unknown_ref, "there is no session %s in %s", name,
                                    amp_tool_state);
    if (show_json)
        return amp_session_write(l->store, &s, true, &l->line, err) < 0
                   ? -1
                   : amp_out(amp_buf_span(&l->line), err);
    return amp_session_each_arrived(l->store, s.x.id, task_row, l, err) < 0
               ? -1
               : session_tell(l, &s, err);
}

static int session_show(struct amp_command *c, struct amp_error *err)
{
    static const char *const head[] = {"TASK",    "STATE", "CODE", "PRIORITY", "DEPTH",
                                       "ATTEMPT", "MODEL", "COST", "TIME"};
    struct listing l = {.store = c->store, .line = {.max = AMP_REC_MAX}, .now_ms = amp_now_ms()};

    amp_table_init(&l.table, head, TASK_COLUMNS);
    l.table.fit = amp_page_columns(STDOUT_FILENO);
    int rc = session_look(&l, c->argv[0], err);
    amp_table_release(&l.table);
    amp_buf_release(&l.line);
    return rc;
}

const struct amp_verb session_list_verbs[] = {
    {"list", "", "list the sessions of AOP", session_list_opts, session_list,
     .opens = AMP_OPENS_READ, .finds_state = true},
    {"show", "SESSION", "list the TASKs of a session", session_show_opts, session_show,
     .opens = AMP_OPENS_READ, .least = 1, .most = 1,
     .usage = "expected one session (aop-session list shows them)", .finds_state = true,
     .values = "session"},
    {0},
};
