/* list, status, path. The list also says what git and the tasks know about the worktrees. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/grow.h"
#include "bind.h"
#include "cli/table.h"
#include "cli/time.h"
#include "people/story/story.h"

struct row {
    struct amp_binding b;
    bool has_git;
    struct amp_git_worktree tree;
    char task[AMP_TASK_ID_MAX];
};

struct rows {
    struct row *v;
    size_t n, cap;
};

static void rows_release(struct rows *r)
{
    free(r->v);
}

static int row_add(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    struct rows *r = ctx;
    if (amp_grow(&r->v, &r->cap, r->n, sizeof *r->v, err) < 0)
        return -1;
    memset(&r->v[r->n], 0, sizeof *r->v);
    r->v[r->n++].b = *b;
    return 0;
}

static int tree_note(void *ctx, const struct amp_git_worktree *w)
{
    struct rows *r = ctx;
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(binding_path(&r->v[i].b), w->path) == 0) {
            r->v[i].tree = *w;
            r->v[i].has_git = true;
        }
    return 0;
}

/* An open task is that of the worktree with its branch, or of the agent that works on it. */
static int task_note(void *ctx, const struct amp_brief *t, struct amp_error *err)
{
    struct rows *r = ctx;
    (void)err;
    for (size_t i = 0; i < r->n; i++) {
        struct row *row = &r->v[i];
        bool works = t->working && amp_span_is(t->agent, row->b.agent);
        bool branch = row->b.branch[0] && amp_span_is(t->branch, row->b.branch) &&
                      amp_span_is(t->repo, row->b.repo);
        if (works || (branch && !row->task[0]))
            amp_span_copy(t->id, row->task, sizeof row->task);
    }
    return 0;
}

static const char *count_text(int64_t n, const char *before, char out[32])
{
    if (n < 0)
        return "?";
    snprintf(out, 32, "%s%lld", before, (long long)n);
    return out;
}

/* The columns after those of status: changes, commits ahead and behind, age, task. */
enum { CHANGES, COMMITS, AGE, TASK, FACTS };
struct texts {
    char of[FACTS][80];
};

static void texts_fill(const struct row *row, int64_t now_ms, struct texts *t)
{
    char a[32], b[32];
    const struct amp_git_worktree *w = &row->tree;
    memset(t, 0, sizeof *t);
    snprintf(t->of[CHANGES], sizeof t->of[CHANGES], "%s", "-");
    snprintf(t->of[COMMITS], sizeof t->of[COMMITS], "%s", "-");
    if (row->has_git) {
        snprintf(t->of[CHANGES], sizeof t->of[CHANGES], "%s%s",
                 w->changes == 0 ? "clean" : count_text(w->changes, "", a),
                 w->changes == 0   ? ""
                 : w->changes == 1 ? " file"
                                   : " files");
        snprintf(t->of[COMMITS], sizeof t->of[COMMITS], "%s %s", count_text(w->ahead, "+", a),
                 count_text(w->behind, "-", b));
    }
    amp_age_text(now_ms - row->b.since_ms, t->of[AGE]);
    snprintf(t->of[TASK], sizeof t->of[TASK], "%.60s", row->task[0] ? row->task : "-");
}

static int row_json(const struct row *row, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {.max = 64 << 10};
    char at[AMP_TIME_MAX];
    struct amp_jw w;
    amp_jw_init(&w, &out);
    amp_jw_open(&w, '{');
    binding_members(&w, &row->b);
    if (row->has_git && row->tree.changes >= 0) {
        amp_jw_member_bool(&w, "dirty", row->tree.changes > 0);
        amp_jw_member_int(&w, "changes", row->tree.changes);
    }
    if (row->has_git && row->tree.ahead >= 0) {
        amp_jw_member_int(&w, "ahead", row->tree.ahead);
        amp_jw_member_int(&w, "behind", row->tree.behind);
    }
    if (row->has_git)
        amp_jw_some_str(&w, "head", amp_span_str(row->tree.head));
    if (row->has_git && row->tree.head_ms > 0) {
        amp_time_format(row->tree.head_ms, at);
        amp_jw_member_text(&w, "head_at", at);
    }
    amp_jw_some_str(&w, "task_id", amp_span_str(row->task));
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

static struct amp_span place_of(const struct row *row, struct amp_buf *why)
{
    if (row->b.state != AMP_BINDING_BIND_FAILED)
        return amp_span_str(binding_path(&row->b));
    amp_buf_fmt(why, NULL, "%s: %s", amp_bind_reason_name(row->b.reason), row->b.why);
    return amp_buf_span(why);
}

static int table_print(const struct rows *r, struct amp_error *err)
{
    static const char *const head[] = {"agent",   "state", "branch", "changes",
                                       "commits", "age",   "task",   "worktree"};
    struct amp_table t;
    int64_t now = amp_now_ms();
    int rc = 0;
    amp_table_init(&t, head, 8);
    for (size_t i = 0; i < r->n && rc == 0; i++) {
        const struct row *row = &r->v[i];
        AMP_BUF struct amp_buf why = {.max = 1024};
        struct texts x;
        texts_fill(row, now, &x);
        const struct amp_span cells[] = {amp_span_str(row->b.agent),
                                         amp_span_str(amp_binding_fsm.states[row->b.state].name),
                                         amp_span_str(row->b.branch[0] ? row->b.branch : "-"),
                                         amp_span_str(x.of[CHANGES]),
                                         amp_span_str(x.of[COMMITS]),
                                         amp_span_str(x.of[AGE]),
                                         amp_span_str(x.of[TASK]),
                                         place_of(row, &why)};
        rc = amp_table_row(&t, cells, 8, err);
    }
    if (rc == 0 && r->n > 0)
        rc = amp_table_print(&t, err);
    amp_table_release(&t);
    return rc;
}

/* For programs: the columns of status, and the others, separated by tabs. */
static int line_print(const struct row *row, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {.max = 64 << 10}, why = {.max = 1024};
    struct texts x;
    texts_fill(row, amp_now_ms(), &x);
    if (amp_text_safe(amp_span_str(row->b.agent), 0, &out, err) < 0 ||
        amp_buf_fmt(&out, err, "\t%s\t", amp_binding_fsm.states[row->b.state].name) < 0 ||
        amp_text_safe(place_of(row, &why), 0, &out, err) < 0 || amp_buf_str(&out, "\t", err) < 0 ||
        amp_text_safe(amp_span_str(row->b.branch), 0, &out, err) < 0)
        return -1;
    for (int i = 0; i < FACTS; i++)
        if (amp_buf_str(&out, "\t", err) < 0 ||
            amp_text_safe(amp_span_str(x.of[i]), 0, &out, err) < 0)
            return -1;
    return amp_buf_str(&out, "\n", err) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

static int rows_print(const struct rows *r, struct amp_error *err)
{
    if (!opt.json && isatty(STDOUT_FILENO))
        return table_print(r, err);
    for (size_t i = 0; i < r->n; i++)
        if ((opt.json ? row_json(&r->v[i], err) : line_print(&r->v[i], err)) < 0)
            return -1;
    return 0;
}

static int verb_list(struct amp_command *c, struct amp_error *err)
{
    const struct session *s = c->own;
    __attribute__((cleanup(rows_release))) struct rows r = {0};
    const struct amp_brief_filter open = {0};
    if (amp_store_sync(s->store, err) < 0 || amp_binding_each(s->store, row_add, &r, err) < 0 ||
        (r.n > 0 && (amp_git_worktree_facts(s->git, opt.repo, tree_note, &r, err) < 0 ||
                     amp_brief_each(s->store, &open, task_note, &r, err) < 0)))
        return -1;
    return rows_print(&r, err);
}

/* 1: not bound to any worktree. */
static int verb_status(struct amp_command *c, struct amp_error *err)
{
    struct amp_binding b;
    if (amp_binding_get(c->store, c->argv[0], &b, err) < 0 || amp_store_sync(c->store, err) < 0 ||
        binding_show(&b, err) < 0)
        return -1;
    return b.state == AMP_BINDING_UNBOUND || b.state == AMP_BINDING_BIND_FAILED ? AMP_NO : 0;
}

/* 1: not bound, or the files of the worktree are gone. */
static int verb_path(struct amp_command *c, struct amp_error *err)
{
    struct amp_binding b;
    AMP_BUF struct amp_buf out = {.max = PATH_MAX + 1};
    if (amp_binding_get(c->store, c->argv[0], &b, err) < 0 || amp_store_sync(c->store, err) < 0)
        return -1;
    if (!amp_binding_is_bound(&b))
        return amp_fail(err, AMP_NO, worktree_not_bound, "%s is not bound to a worktree",
                        c->argv[0]);
    const char *path = binding_path(&b);
    if (access(path, F_OK) != 0)
        return amp_fail(err, AMP_NO, worktree_not_found,
                        "the files of %s are gone; 'worktree-bind repair' makes them again", path);
    if (opt.json)
        return print_binding(&b, err);
    return amp_buf_fmt(&out, err, "%s\n", path) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

const struct amp_verb list_verbs[] = {
    {"list", "", "print all bindings, with their changes, commits and tasks", NULL, verb_list,
     .opens = BIND_OPENS_LOOK},
    {"status", "AGENT", "print an agent's binding", NULL, verb_status, BIND_ONE_AGENT,
     .opens = BIND_OPENS_LOOK, .values = "binding"},
    {"path", "AGENT", "print the directory of an agent's worktree", NULL, verb_path, BIND_ONE_AGENT,
     .opens = BIND_OPENS_LOOK, .values = "binding"},
    {0},
};
