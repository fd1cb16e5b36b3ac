/* task-dispatch list: the tasks, first those that wait for a person. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/codes.h"
#include "base/grow.h"
#include "cli/list.h"
#include "people/story/story.h"
#include "shared/work/person.h"

#define LINE_MAX_BYTES (1u << 20)

static bool all, open_only, waiting, paths, protocol;
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
    AMP_OPT_JSON("print one JSON object per task"),
    AMP_OPT_END,
};

/* The list shows first what a person has to do, then what agents do, then what has ended. */
enum rank { RANK_CRITICAL, RANK_QUESTION, RANK_LAND, RANK_WORK, RANK_ENDED };

struct row {
    struct amp_brief b; /* its texts are in the heap copy `texts` */
    char *texts;
    enum rank rank;
    struct amp_span title; /* the first line of what it says */
    const char *state, *part, *risk;
    char words[AMP_BRIEF_WORDS_MAX], tries[48]; /* words: the state for people */
    char log[PATH_MAX];                         /* with --json and --paths */
};

struct listing {
    struct amp_store *store;
    struct row *v;
    size_t n, cap;
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

static int state_tint(const void *row)
{
    const struct row *r = row;

    if (r->rank == RANK_CRITICAL || r->b.state == AMP_TASK_FAILED)
        return AMP_TINT_OLD;
    if (r->rank == RANK_QUESTION || r->b.paused)
        return AMP_TINT_WARN;
    if (r->b.state == AMP_TASK_DONE)
        return AMP_TINT_NEW;
    return r->rank == RANK_ENDED ? AMP_TINT_DIM : AMP_TINT_HUNK;
}

static int verdict_tint(const void *row)
{
    const struct row *r = row;

    return amp_span_is(r->b.verdict, "rejected") ? AMP_TINT_OLD
           : r->b.verdict.n                      ? AMP_TINT_NEW
                                                 : AMP_TINT_NONE;
}

static int question_tint(const void *row)
{
    return ((const struct row *)row)->b.questions ? AMP_TINT_WARN : AMP_TINT_NONE;
}

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct row, key, head, b.member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct row, key, head, b.member)
#define STATE                         AMP_COLUMN(CHARS, struct row, NULL, "STATE", words, .tint = state_tint)
#define TRY                           AMP_COLUMN(CHARS, struct row, NULL, "TRY", tries)
#define TITLE                         AMP_COLUMN(TEXT, struct row, NULL, "TASK", title)
static const struct amp_column columns[] = {
    EVER(TEXT, "task", "ID", id),
    STATE,
    AMP_COLUMN_EVER(CSTR, struct row, "state", NULL, state),
    TRY,
    EVER(FLAG, "ended", NULL, ended),
    EVER(FLAG, "paused", NULL, paused),
    EVER(TEXT, "description", NULL, description),
    AMP_COLUMN(CSTR, struct row, "risk", NULL, risk),
    SOME(TEXT, "repo", NULL, repo),
    SOME(TEXT, "branch", NULL, branch),
    SOME(TEXT, "base", NULL, base),
    EVER(INT, "subtasks", NULL, subtasks),
    EVER(INT, "approved", NULL, approved),
    SOME(TEXT, "subtask", NULL, subtask),
    AMP_COLUMN(CSTR, struct row, "subtask_state", NULL, part),
    EVER(INT, "attempts", NULL, attempts),
    EVER(INT, "rejections", NULL, rejections),
    SOME(TEXT, "completion", NULL, completion),
    SOME(TEXT, "commit", NULL, commit),
    SOME(TEXT, "verdict", NULL, verdict),
    EVER(INT, "questions", NULL, questions),
    SOME(TEXT, "question", NULL, question),
    SOME(TEXT, "question_type", NULL, question_type),
    SOME(TEXT, "question_why", NULL, question_why),
    SOME(TEXT, "severity", NULL, severity),
    SOME(TEXT, "agent", NULL, agent),
    EVER(FLAG, "working", NULL, working),
    SOME(TEXT, "worktree", NULL, worktree),
    AMP_COLUMN(CHARS, struct row, "log", NULL, log),
    SOME(AGE, "created", "AGE", created_ms),
    SOME(TIME, "updated", NULL, updated_ms),
    TITLE,
    {0},
};
static const struct amp_column protocol_columns[] = {
    EVER(TEXT, NULL, "ID", id),
    STATE,
    TRY,
    AMP_COLUMN(TEXT, struct row, NULL, "VERDICT", b.verdict, .tint = verdict_tint),
    AMP_COLUMN(TEXT, struct row, NULL, "QUESTION", b.question_why, .tint = question_tint),
    SOME(AGE, NULL, "AGE", created_ms),
    SOME(TEXT, NULL, "AGENT", agent),
    SOME(TEXT, NULL, "BRANCH", branch),
    TITLE,
    {0},
};

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

static int paths_print(const struct row *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = LINE_MAX_BYTES};

    return amp_text_safe(r->b.id, 0, &line, err) < 0 || amp_buf_str(&line, "  ", err) < 0 ||
                   amp_text_safe(amp_span_str(protocol ? r->state : r->words), 0, &line, err) < 0 ||
                   amp_buf_str(&line, "\n", err) < 0 ||
                   path_print("worktree", r->b.worktree, &line, err) < 0 ||
                   path_print("log", amp_span_str(r->log), &line, err) < 0
               ? -1
               : amp_out(amp_buf_span(&line), err);
}

static void row_fill(struct listing *l, struct row *r, int64_t now_ms)
{
    const struct amp_brief *b = &r->b;
    const char *end = b->description.n ? memchr(b->description.p, '\n', b->description.n) : NULL;
    char id[AMP_TASK_ID_MAX];

    r->title = b->description;
    if (end)
        r->title.n = (size_t)(end - b->description.p);
    r->state = amp_brief_state(b);
    r->part = b->subtask.n ? amp_qa_fsm.states[b->subtask_state].name : NULL;
    r->risk = b->risk != AMP_RISK_NONE ? amp_risk_name(b->risk) : NULL;
    if (b->subtasks > 1)
        snprintf(r->tries, sizeof r->tries, "%lld (%u/%u)", (long long)b->attempts, b->approved,
                 b->subtasks);
    else if (b->attempts)
        snprintf(r->tries, sizeof r->tries, "%lld", (long long)b->attempts);
    if (protocol)
        snprintf(r->words, sizeof r->words, "%s%s", r->state, b->paused ? " (paused)" : "");
    else
        amp_brief_words(b, now_ms, r->words);
    if (amp_listing_json || paths) {
        amp_span_copy(b->id, id, sizeof id);
        amp_story_log(l->store, id, r->log, sizeof r->log);
    }
}

static int list_print(struct listing *l, struct amp_listing *list, struct amp_error *err)
{
    for (size_t i = 0; i < l->n; i++) {
        row_fill(l, &l->v[i], list->now_ms);
        if ((amp_listing_json || !paths ? amp_listing_row(list, &l->v[i], err)
                                        : paths_print(&l->v[i], err)) < 0)
            return -1;
    }
    if (l->n == 0 && !amp_listing_json)
        amp_note("no %stasks in %s%s", all || state_of || agent || waiting ? "such " : "open ",
                 amp_tool_state, all ? "" : " (--all also lists those that have ended)");
    return 0;
}

static int tasks_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (protocol && !amp_listing_json)
        c->lists = protocol_columns;
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
    struct listing l = {.store = c->store};
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
        rc = list_print(&l, c->list, err);
    for (size_t i = 0; i < l.n; i++)
        free(l.v[i].texts);
    free(l.v);
    return rc;
}

const struct amp_verb list_verbs[] = {
    {"list", "", "list the tasks", tasks_list_opts, tasks_list, .check = tasks_check,
     .opens = AMP_OPENS_READ, .lists = columns, .finds_state = true},
    {0},
};
