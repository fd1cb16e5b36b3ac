/* gc, repair. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>

#include "bind.h"
#include "cli/config.h"
#include "work/attempt/left/unfinished.h"
#include "work/confine/confine.h"
#include "work/git/gc.h"

struct row {
    const char *action, *reason, *path, *branch, *agent, *error;
};

#define EVER(form, key, head, member) AMP_COLUMN_EVER(form, struct row, key, head, member)
#define SOME(form, key, head, member) AMP_COLUMN(form, struct row, key, head, member)
static const struct amp_column columns[] = {
    EVER(CSTR, "action", "action", action),
    EVER(CSTR, "reason", "reason", reason),
    EVER(CSTR, "worktree_id", "worktree", path),
    SOME(CSTR, "branch", "branch", branch),
    SOME(CSTR, "agent_id", NULL, agent),
    SOME(CSTR, "error", NULL, error),
    {0},
};

static int report_print(void *ctx, const struct amp_gc_report *r, struct amp_error *err)
{
    const struct row row = {.action = r->action == AMP_GC_FAILED ? "failed"
                                      : r->action == AMP_GC_KEEP ? "keep"
                                      : opt.apply                ? "removed"
                                                                 : "remove",
                            .reason = r->reason,
                            .path = r->worktree->path,
                            .branch = r->worktree->branch,
                            .agent = r->worktree->agent,
                            .error = r->what};
    int rc = amp_listing_row(ctx, &row, err);
    if (r->what[0])
        amp_warn("%s", r->what);
    return rc;
}

static int gc_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (opt.apply)
        c->act = "remove worktrees";
    return 0;
}

static int verb_gc(struct amp_command *c, struct amp_error *err)
{
    const struct binder *s = c->own;
    uint32_t failed = 0;
    const struct amp_gc_spec spec = {
        .repo = opt.repo, .into = opt.into, .apply = opt.apply, .now_ms = amp_now_ms()};
    c->list->tabs = true;
    if (amp_store_sync(s->store, err) < 0 ||
        amp_worktree_gc(s->store, s->git, &spec, report_print, c->list, &failed, err) < 0)
        return -1;
    int left = opt.apply ? amp_confine_scratch_sweep(scratch_parent()) : 0;
    if (left)
        amp_note("%s: removed %d %s of killed commands", scratch_parent(), left,
                 left == 1 ? "directory" : "directories");
    return failed ? AMP_NO : 0;
}

struct repair {
    struct binder *s;
    struct amp_listing *list;
    struct amp_error *err;
    uint32_t failed;
};

static void path_print(void *ctx, const char *path)
{
    const struct repair *r = ctx;
    const struct row row = {.action = "removed", .reason = "half_made", .path = path};
    amp_listing_row(r->list, &row, r->err);
}

/* Makes the worktree of a bound agent again, if its files are gone. */
static int binding_repair(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    struct repair *r = ctx;
    char git[PATH_MAX + 8];
    struct amp_binding now;
    struct amp_error failed;
    const struct amp_bind_spec spec = {.agent = b->agent,
                                       .repo = b->repo,
                                       .path = b->worktree,
                                       .branch = *b->branch ? b->branch : NULL,
                                       .base = *b->base ? b->base : NULL,
                                       .prepare = &opt.prepare,
                                       .now_ms = amp_now_ms()};
    snprintf(git, sizeof git, "%s/.git", b->worktree);
    if (b->state != AMP_BINDING_BOUND_HOME || access(git, F_OK) == 0)
        return 0;
    if (amp_bind(r->s->store, r->s->git, &spec, &now, &failed) < 0) {
        amp_warn("%s: %s", b->agent, failed.what);
        r->failed++;
        return 0;
    }
    return binding_show(&now, err);
}

static int limit_set(void *arg, const char *text, struct amp_error *err)
{
    return amp_num_parse(amp_span_str(text), 1, INT64_MAX, arg, err);
}

/* Keeps the commits of attempts whose worker was killed, with the limits of task-dispatch run. */
static int attempts_repair(struct binder *s, struct repair *r, struct amp_error *err)
{
    char state[PATH_MAX];
    uint32_t failed;
    struct amp_unfinished_spec spec = {.store = s->store,
                                       .git = s->git,
                                       .state_dir = state,
                                       .tool = amp_cli_name(),
                                       .note = amp_note};
    const char *dir = amp_store_dir(s->store);
    struct amp_git_take_limits *l = &spec.limits;
    if (!realpath(dir, state))
        return amp_fail_errno(err, AMP_IOERR, "%s", dir);
    if (amp_config_values(opt.config, dir, "quarantine.objects", limit_set, &l->objects, err) < 0 ||
        amp_config_values(opt.config, dir, "quarantine.bytes", limit_set, &l->bytes, err) < 0 ||
        amp_config_values(opt.config, dir, "quarantine.object_bytes", limit_set, &l->object_bytes,
                          err) < 0 ||
        amp_unfinished_settle(&spec, &failed, err) < 0)
        return -1;
    r->failed += failed;
    return 0;
}

static int verb_repair(struct amp_command *c, struct amp_error *err)
{
    struct binder *s = c->own;
    struct repair r = {.s = s, .list = c->list, .err = err};
    c->list->tabs = true;
    if (amp_git_worktree_repair(s->git, opt.repo, path_print, &r, err) < 0 ||
        amp_binding_each(s->store, binding_repair, &r, err) < 0 ||
        attempts_repair(s, &r, err) < 0 || amp_store_sync(s->store, err) < 0)
        return -1;
    return r.failed ? AMP_NO : 0;
}

static const struct amp_opt repair_opts[] = {
    AMP_OPT_PREPARE(opt.prepare),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};
static const struct amp_opt gc_opts[] = {
    {0, "apply", AMP_OPT_FLAG, &opt.apply, NULL, .doc = "remove; default: only report"},
    {0, "into", AMP_OPT_STRING, &opt.into, "REV",
     .doc = "revision that must have the commits (default: a protected branch)"},
    AMP_OPT_END,
};

const struct amp_verb life_verbs[] = {
    {"gc", "", "report or remove worktrees that are not needed any more", gc_opts, verb_gc,
     .check = gc_check, .opens = AMP_OPENS_MADE | BIND_OPENS_EXPIRED, .lists = columns,
     .group = "Worktrees", .who = AMP_WHO_WITH("--apply")},
    {"repair", "", "remove half-made worktrees, and make missing ones again", repair_opts,
     verb_repair, .opens = AMP_OPENS_MADE | BIND_OPENS_EXPIRED, .lists = columns,
     .act = "repair worktrees", .who = AMP_WHO_PERSON},
    {0},
};
