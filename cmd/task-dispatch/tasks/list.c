/* task-dispatch list: the tasks, first those that wait for a person. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/grow.h"
#include "cli/table.h"
#include "cli/time.h"
#include "people/story/story.h"
#include "shared/work/person.h"
#include "json/record.h"

#define LINE_MAX_BYTES (1u << 20)

static bool all, open_only, waiting, json, paths, protocol;
static const char *state_of, *agent;

static const char *const states[] = {"new",     "incomplete", "dispatched", "in_review", "rework",
                                     "waiting", "locked",     "suspended",  "done",      "landed",
                                     "failed",  "terminated", NULL};

static const struct amp_opt tasks_list_opts[] = {
    {'a', "all", AMP_OPT_FLAG, &all, NULL, "also tasks that have ended or landed"},
    {0, "open", AMP_OPT_FLAG, &open_only, NULL, "only tasks that have not ended"},
    {0, "waiting", AMP_OPT_FLAG, &waiting, NULL, "only tasks with an open question"},
    {0, "state-of", AMP_OPT_CHOICE, &state_of, "STATE", "only tasks in this state",
     .choices = states},
    {0, "agent", AMP_OPT_STRING, &agent, "NAME", "only tasks that this agent worked on",
     .values = "agent"},
    {0, "paths", AMP_OPT_FLAG, &paths, NULL,
     "print the worktree and the log of the last attempt under each task"},
    {'p', "protocol", AMP_OPT_FLAG, &protocol, NULL, "print the words of the protocol"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, "print one JSON object per task"},
    AMP_OPT_END,
};

/* The list shows first what a person has to do, then what agents do, then what has ended. */
enum rank { RANK_CRITICAL, RANK_QUESTION, RANK_LAND, RANK_WORK, RANK_ENDED };

struct row {
    struct amp_brief b; /* its texts are in the heap copy `texts` */
    char *texts;
    enum rank rank;
};

struct listing {
    struct amp_store *store;
    struct row *v;
    size_t n, cap;
    int64_t now_ms;
};

static enum rank brief_rank(const struct amp_brief *b)
{
    if (amp_span_is(b->severity, "critical") || b->state == AMP_TASK_LOCKED)
        return RANK_CRITICAL;
    if (b->questions || b->state == AMP_TASK_INCOMPLETE)
        return RANK_QUESTION;
    if (b->state == AMP_TASK_DONE && b->landing != AMP_LANDING_LANDED)
        return RANK_LAND;
    return b->ended ? RANK_ENDED : RANK_WORK;
}

/* Copies the texts of a summary. */
static int row_keep(struct row *r, struct amp_error *err)
{
    struct amp_span *of[] = {&r->b.id,      &r->b.description, &r->b.repo,          &r->b.branch,
                             &r->b.base,    &r->b.subtask,     &r->b.completion,    &r->b.commit,
                             &r->b.verdict, &r->b.question,    &r->b.question_type, &r->b.severity,
                             &r->b.agent,   &r->b.worktree,    &r->b.question_why,  &r->b.reason};
    size_t n = 0, count = sizeof of / sizeof *of;

    for (size_t i = 0; i < count; i++)
        n += of[i]->n;
    char *at = r->texts = malloc(n + 1);
    if (!at)
        return amp_fail_memory(err);
    for (size_t i = 0; i < count; i++) {
        if (of[i]->n)
            memcpy(at, of[i]->p, of[i]->n);
        of[i]->p = at;
        at += of[i]->n;
    }
    return 0;
}

static int brief_add(void *ctx, const struct amp_brief *b, struct amp_error *err)
{
    struct listing *l = ctx;

    if (state_of && strcmp(state_of, amp_brief_state(b)) != 0)
        return 0;
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    struct row *r = &l->v[l->n++];
    *r = (struct row){.b = *b, .rank = brief_rank(b)};
    return row_keep(r, err);
}

/* The newest change first. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->b.updated_ms != y->b.updated_ms)
        return x->b.updated_ms > y->b.updated_ms ? -1 : 1;
    size_t n = x->b.id.n < y->b.id.n ? x->b.id.n : y->b.id.n;
    return memcmp(x->b.id.p, y->b.id.p, n);
}

/* ---- for people ---- */

static enum amp_tint state_tint(const struct row *r)
{
    if (r->rank == RANK_CRITICAL || r->b.state == AMP_TASK_FAILED)
        return AMP_TINT_OLD;
    if (r->rank == RANK_QUESTION || r->b.paused)
        return AMP_TINT_WARN;
    if (r->b.state == AMP_TASK_DONE)
        return AMP_TINT_NEW;
    return r->rank == RANK_ENDED ? AMP_TINT_DIM : AMP_TINT_HUNK;
}

/* The title of a task: the first line of what it says. */
static struct amp_span line_first(struct amp_span text)
{
    const char *end = text.n ? memchr(text.p, '\n', text.n) : NULL;
    return (struct amp_span){text.p, end ? (size_t)(end - text.p) : text.n};
}

static int row_print(struct listing *l, struct amp_table *t, const struct row *r,
                     struct amp_error *err)
{
    const struct amp_brief *b = &r->b;
    char state[AMP_BRIEF_WORDS_MAX], tries[48] = "", age[AMP_AGE_MAX];
    bool rejected = amp_span_is(b->verdict, "rejected");

    if (protocol)
        snprintf(state, sizeof state, "%s%s", amp_brief_state(b), b->paused ? " (paused)" : "");
    else
        amp_brief_words(b, l->now_ms, state);
    if (b->subtasks > 1)
        snprintf(tries, sizeof tries, "%lld (%u/%u)", (long long)b->attempts, b->approved,
                 b->subtasks);
    else if (b->attempts)
        snprintf(tries, sizeof tries, "%lld", (long long)b->attempts);
    amp_age_text(l->now_ms - b->created_ms, age);
    const struct amp_span plain[] = {b->id, amp_span_str(state), amp_span_str(tries),
                                     amp_span_str(age), line_first(b->description)};
    const struct amp_span words[] = {b->id,      amp_span_str(state), amp_span_str(tries),
                                     b->verdict, b->question_why,     amp_span_str(age),
                                     b->agent,   b->branch,           line_first(b->description)};
    if (amp_table_row(t, protocol ? words : plain, t->columns, err) < 0)
        return -1;
    amp_table_tint(t, 1, state_tint(r));
    if (!protocol)
        return 0;
    amp_table_tint(t, 3, rejected ? AMP_TINT_OLD : b->verdict.n ? AMP_TINT_NEW : AMP_TINT_NONE);
    amp_table_tint(t, 4, b->questions ? AMP_TINT_WARN : AMP_TINT_NONE);
    return 0;
}

static int table_print(struct listing *l, struct amp_error *err)
{
    static const char *const plain[] = {"ID", "STATE", "TRY", "AGE", "TASK"};
    static const char *const words[] = {"ID",  "STATE", "TRY",    "VERDICT", "QUESTION",
                                        "AGE", "AGENT", "BRANCH", "TASK"};
    struct amp_table t;
    int rc = 0, n = protocol ? 9 : 5;

    amp_table_init(&t, protocol ? words : plain, n);
    t.fit = amp_page_columns(STDOUT_FILENO);
    t.color = amp_color_of(STDOUT_FILENO);
    for (int i = 0; i < n; i++)
        amp_table_tint(&t, i, AMP_TINT_HEAD);
    for (size_t i = 0; rc == 0 && i < l->n; i++)
        rc = row_print(l, &t, &l->v[i], err);
    if (rc == 0)
        rc = amp_table_print(&t, err);
    amp_table_release(&t);
    return rc;
}

/* Each path on a line of its own, complete. */
static int path_print(const char *label, struct amp_span path, struct amp_buf *line,
                      struct amp_error *err)
{
    if (path.n == 0)
        return 0;
    return amp_buf_fmt(line, err, "    %-8s  ", label) < 0 ||
                   amp_text_safe(path, 0, line, err) < 0 || amp_buf_str(line, "\n", err) < 0
               ? -1
               : 0;
}

static int paths_print(struct listing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char log[PATH_MAX];

    amp_buf_init(&line, LINE_MAX_BYTES);
    for (size_t i = 0; i < l->n; i++) {
        const struct amp_brief *b = &l->v[i].b;
        char id[AMP_TASK_ID_MAX];
        amp_span_copy(b->id, id, sizeof id);
        amp_story_log(l->store, id, log, sizeof log);
        amp_buf_reset(&line);
        char state[AMP_BRIEF_WORDS_MAX];
        amp_brief_words(b, l->now_ms, state);
        if (amp_buf_fmt(&line, err, "%s  ", id) < 0 ||
            amp_text_safe(amp_span_str(protocol ? amp_brief_state(b) : state), 0, &line, err) < 0 ||
            amp_buf_str(&line, "\n", err) < 0 ||
            path_print("worktree", b->worktree, &line, err) < 0 ||
            path_print("log", amp_span_str(log), &line, err) < 0 ||
            amp_out(amp_buf_span(&line), err) < 0)
            return -1;
    }
    return 0;
}

/* ---- for programs ---- */

static int json_print(struct listing *l, const struct amp_brief *b, struct amp_buf *line,
                      struct amp_error *err)
{
    char id[AMP_TASK_ID_MAX], log[PATH_MAX];
    struct amp_jw w;

    amp_span_copy(b->id, id, sizeof id);
    amp_story_log(l->store, id, log, sizeof log);
    amp_buf_reset(line);
    amp_jw_init(&w, line);
    amp_jw_open(&w, '{');
    amp_jw_member_str(&w, "task", b->id);
    amp_jw_member_text(&w, "state", amp_brief_state(b));
    amp_jw_member_bool(&w, "ended", b->ended);
    amp_jw_member_bool(&w, "paused", b->paused);
    amp_jw_member_str(&w, "description", b->description);
    if (b->risk != AMP_RISK_NONE)
        amp_jw_member_text(&w, "risk", amp_risk_name(b->risk));
    amp_jw_some_str(&w, "repo", b->repo);
    amp_jw_some_str(&w, "branch", b->branch);
    amp_jw_some_str(&w, "base", b->base);
    amp_jw_member_int(&w, "subtasks", b->subtasks);
    amp_jw_member_int(&w, "approved", b->approved);
    amp_jw_some_str(&w, "subtask", b->subtask);
    if (b->subtask.n)
        amp_jw_member_text(&w, "subtask_state", amp_qa_fsm.states[b->subtask_state].name);
    amp_jw_member_int(&w, "attempts", b->attempts);
    amp_jw_member_int(&w, "rejections", b->rejections);
    amp_jw_some_str(&w, "completion", b->completion);
    amp_jw_some_str(&w, "commit", b->commit);
    amp_jw_some_str(&w, "verdict", b->verdict);
    amp_jw_member_int(&w, "questions", b->questions);
    amp_jw_some_str(&w, "question", b->question);
    amp_jw_some_str(&w, "question_type", b->question_type);
    amp_jw_some_str(&w, "question_why", b->question_why);
    amp_jw_some_str(&w, "severity", b->severity);
    amp_jw_some_str(&w, "agent", b->agent);
    amp_jw_member_bool(&w, "working", b->working);
    amp_jw_some_str(&w, "worktree", b->worktree);
    amp_jw_some_str(&w, "log", amp_span_str(log));
    amp_rec_time(&w, "created", b->created_ms);
    amp_rec_time(&w, "updated", b->updated_ms);
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(line), err);
}

static int all_json(struct listing *l, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};

    amp_buf_init(&line, LINE_MAX_BYTES);
    for (size_t i = 0; i < l->n; i++)
        if (json_print(l, &l->v[i].b, &line, err) < 0)
            return -1;
    return 0;
}

static int list_print(struct listing *l, struct amp_error *err)
{
    if (json)
        return all_json(l, err);
    if (l->n == 0) {
        amp_note("no %stasks in %s%s", all || state_of || agent || waiting ? "such " : "open ",
                 amp_tool_state, all ? "" : " (--all also lists those that have ended)");
        return 0;
    }
    return paths ? paths_print(l, err) : table_print(l, err);
}

static int tasks_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (open_only && (all || state_of))
        amp_die_usage("--open excludes --all and --state-of");
    for (size_t i = 0; c->state && states[i]; i++)
        if (strcmp(states[i], c->state) == 0 && access(c->state, F_OK) != 0)
            amp_die_usage("--state is the state directory; the tasks in a state: --state-of %s",
                          states[i]);
    return 0;
}

static int tasks_list(struct amp_command *c, struct amp_error *err)
{
    struct listing l = {.store = c->store, .now_ms = amp_now_ms()};
    bool landed = state_of && strcmp(state_of, "landed") == 0;
    const struct amp_brief_filter f = {.ended = all || state_of,
                                       .unlanded = !open_only,
                                       .state = landed ? "done" : state_of,
                                       .agent = agent,
                                       .question = waiting};

    int rc = amp_brief_each(l.store, &f, brief_add, &l, err);
    if (l.n)
        qsort(l.v, l.n, sizeof *l.v, compare_rows);
    if (rc == 0)
        rc = list_print(&l, err);
    for (size_t i = 0; i < l.n; i++)
        free(l.v[i].texts);
    free(l.v);
    return rc;
}

const struct amp_verb list_verbs[] = {
    {"list", "", "list the tasks", tasks_list_opts, tasks_list, .check = tasks_check,
     .opens = AMP_OPENS_READ, .finds_state = true},
    {0},
};
