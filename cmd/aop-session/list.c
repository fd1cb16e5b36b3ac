/* aop-session list, show: the sessions, and the TASKs of one. */
#include <stdio.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "cli/list.h"
#include "cli/time.h"
#include "shared/work/tool.h"
#include "work/aop/account/report.h"
#include "json/record.h"

static const char *state_of;

static const char *const states[] = {"OPEN", "ABORTED", "REPORTED", NULL};

static const struct amp_opt session_list_opts[] = {
    {0, "state-of", AMP_OPT_CHOICE, &state_of, "STATE", "only sessions in this state",
     .choices = states},
    AMP_OPT_JSON("print one JSON object per session"),
    AMP_OPT_END,
};
static const struct amp_opt session_show_opts[] = {
    AMP_OPT_JSON("print one JSON object with the TASKs"),
    AMP_OPT_END,
};

/* ---- all sessions ---- */

struct listing {
    struct amp_store *store;
    struct amp_listing *list;
    struct amp_buf line;
};

struct row {
    struct amp_session_summary s;
    char ended[48]; /* of all TASKs */
    int64_t lost;
};

#define CELL(form, head, member) AMP_COLUMN_EVER(form, struct row, NULL, head, member)
static const struct amp_column columns[] = {
    CELL(TEXT, "SESSION", s.x.id),
    AMP_COLUMN_STATE(struct row, NULL, "STATE", s.x.state, &amp_session_fsm),
    CELL(TEXT, "PATTERN", s.x.pattern),
    CELL(CHARS, "ENDED", ended),
    CELL(INT, "LOST", lost),
    CELL(COST, "COST", s.used.micros),
    CELL(AGE, "AGE", s.x.opened_ms),
    CELL(TEXT, "ORCHESTRATOR", s.x.orchestrator),
    {0},
};

static int session_print(void *ctx, const struct amp_session *x, struct amp_error *err)
{
    struct listing *l = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct row r;

    int found = amp_session_summarise(l->store, x->id, &mem, &r.s, err);
    if (found <= 0)
        return found;
    if (amp_listing_json) {
        amp_buf_reset(&l->line);
        return amp_session_write(l->store, &r.s, false, &l->line, err) < 0
                   ? -1
                   : amp_out(amp_buf_span(&l->line), err);
    }
    int64_t ended = r.s.tasks - amp_session_open_tasks(&r.s);
    snprintf(r.ended, sizeof r.ended, "%lld/%lld", (long long)ended, (long long)r.s.tasks);
    r.lost = ended - r.s.states[AMP_SESSION_TASK_COMPLETED];
    return amp_listing_row(l->list, &r, err);
}

static int session_list(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.store = c->store, .list = c->list, .line = {.max = AMP_REC_MAX}};

    if (state_of)
        c->none = "no such sessions";
    int rc = amp_session_each(l.store, state_of, session_print, &l, err);
    amp_buf_release(&l.line);
    return rc;
}

/* ---- one session ---- */

struct task_row {
    struct amp_session_task t;
    struct amp_span model;
    int64_t micros;
    char took[AMP_AGE_MAX]; /* until its end, or until now */
};

#define TASK_CELL(form, head, member) AMP_COLUMN_EVER(form, struct task_row, NULL, head, member)
static const struct amp_column task_columns[] = {
    TASK_CELL(TEXT, "TASK", t.id),
    AMP_COLUMN_STATE(struct task_row, NULL, "STATE", t.state, &amp_session_task_fsm),
    TASK_CELL(TEXT, "CODE", t.code),
    TASK_CELL(TEXT, "PRIORITY", t.priority),
    TASK_CELL(INT, "DEPTH", t.depth),
    TASK_CELL(INT, "ATTEMPT", t.attempt),
    TASK_CELL(TEXT, "MODEL", model),
    TASK_CELL(COST, "COST", micros),
    TASK_CELL(CHARS, "TIME", took),
    {0},
};

static int task_print(void *ctx, const struct amp_session_task *t, struct amp_error *err)
{
    struct listing *l = ctx;
    struct task_row row = {.t = *t,
                           .model = t->n_tries > 0 ? t->tries[t->n_tries - 1].model : t->model,
                           .micros = amp_session_task_used(t).micros};

    if (t->started_ms > 0)
        amp_age_text((t->ended_ms > 0 ? t->ended_ms : l->list->now_ms) - t->started_ms, row.took);
    return amp_listing_row(l->list, &row, err);
}

static int session_tell(struct listing *l, const struct amp_session_summary *s,
                        struct amp_error *err)
{
    const struct amp_session *x = &s->x;
    AMP_BUF struct amp_buf text = {.max = AMP_REC_MAX}, safe = {.max = AMP_REC_MAX};
    char cost[AMP_CELL_MAX];

    if (amp_buf_fmt(&text, err, "%.*s: %s, %lld TASK%s, %lld open, depth %lld, %s USD",
                    AMP_CLIP(x->id, 300), amp_session_fsm.states[x->state].name,
                    (long long)s->tasks, s->tasks == 1 ? "" : "s",
                    (long long)amp_session_open_tasks(s), (long long)s->depth,
                    amp_cost_text(s->used.micros, cost).p) < 0 ||
        (x->aborted_ms > 0 && amp_buf_fmt(&text, err, "; aborted by %.*s: %.*s",
                                          AMP_CLIP(x->cause, 300), AMP_CLIP(x->code, 100)) < 0) ||
        (x->trail.n > 0 && amp_buf_fmt(&text, err, "; audit trail: %.*s in %.*s",
                                       AMP_CLIP(x->storage, 400), AMP_CLIP(x->trail, 400)) < 0))
        return -1;
    if (amp_text_safe(amp_buf_span(&text), 0, &safe, err) < 0 || amp_buf_str(&safe, "\n", err) < 0)
        return -1;
    return amp_out(amp_buf_span(&safe), err);
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
    if (amp_listing_json)
        return amp_session_write(l->store, &s, true, &l->line, err) < 0
                   ? -1
                   : amp_out(amp_buf_span(&l->line), err);
    return amp_session_each_arrived(l->store, s.x.id, task_print, l, err) < 0
               ? -1
               : session_tell(l, &s, err);
}

static int session_show(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.store = c->store, .list = c->list, .line = {.max = AMP_REC_MAX}};

    int rc = session_look(&l, c->argv[0], err);
    amp_buf_release(&l.line);
    return rc;
}

const struct amp_verb session_list_verbs[] = {
    {"list", "", "list the sessions of AOP", session_list_opts, session_list,
     .opens = AMP_OPENS_READ, .lists = columns, .none = "no sessions", .finds_state = true},
    {"show", "SESSION", "list the TASKs of a session", session_show_opts, session_show,
     .opens = AMP_OPENS_READ, .lists = task_columns, .least = 1, .most = 1,
     .usage = "expected one session (aop-session list shows them)", .finds_state = true,
     .values = "session"},
    {0},
};
