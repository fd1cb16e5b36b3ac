/* list, status, path. The list also says what git and the tasks know about the worktrees. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"
#include "bind.h"
#include "people/story/story.h"

struct rows {
    struct binding_row *v;
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
    binding_row_init(&r->v[r->n++], b);
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
        struct binding_row *row = &r->v[i];
        bool works = t->working && amp_span_is(t->agent, row->b.agent);
        bool branch = row->b.branch[0] && amp_span_is(t->branch, row->b.branch) &&
                      amp_span_is(t->repo, row->b.repo);
        if (works || (branch && !row->task[0]))
            amp_span_copy(t->id, row->task, sizeof row->task);
    }
    return 0;
}

/* Without a terminal the output is for programs. */
static int list_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (!amp_listing_json && !isatty(STDOUT_FILENO))
        c->lists = binding_line_columns;
    return 0;
}

static int verb_list(struct amp_command *c, struct amp_error *err)
{
    const struct binder *s = c->own;
    __attribute__((cleanup(rows_release))) struct rows r = {0};
    const struct amp_brief_filter open = {0};
    c->list->tabs = c->lists == binding_line_columns;
    if (amp_store_sync(s->store, err) < 0 || amp_binding_each(s->store, row_add, &r, err) < 0 ||
        (r.n > 0 && (amp_git_worktree_facts(s->git, opt.repo, tree_note, &r, err) < 0 ||
                     amp_brief_each(s->store, &open, task_note, &r, err) < 0)))
        return -1;
    for (size_t i = 0; i < r.n; i++) {
        binding_row_place(&r.v[i]);
        if (amp_listing_row(c->list, &r.v[i], err) < 0)
            return -1;
    }
    return 0;
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
    if (amp_listing_json)
        return binding_show(&b, err);
    return amp_buf_fmt(&out, err, "%s\n", path) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

const struct amp_verb list_verbs[] = {
    {"list", "", "print all bindings, with their changes, commits and tasks", NULL, verb_list,
     .check = list_check, .opens = BIND_OPENS_LOOK, .lists = binding_columns},
    {"status", "AGENT", "print an agent's binding", NULL, verb_status, BIND_ONE_AGENT,
     .opens = BIND_OPENS_LOOK, .values = "binding"},
    {"path", "AGENT", "print the directory of an agent's worktree", NULL, verb_path, BIND_ONE_AGENT,
     .opens = BIND_OPENS_LOOK, .values = "binding"},
    {0},
};
