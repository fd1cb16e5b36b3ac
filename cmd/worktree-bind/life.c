/* gc, repair. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/base/num.h>
#include <amp/json/writer.h>

#include "agent/confine.h"
#include "bind.h"
#include "cli/config.h"
#include "flow/work/left/unfinished.h"
#include "worktree/gc.h"
#include "worktree/person.h"

static int report_print(void *ctx, const struct amp_gc_report *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    const char *action = r->action == AMP_GC_FAILED ? "failed"
                         : r->action == AMP_GC_KEEP ? "keep"
                         : opt.apply                ? "removed"
                                                    : "remove";
    struct amp_jw w;
    (void)ctx;
    amp_buf_init(&out, 64 << 10);
    if (opt.json) {
        amp_jw_init(&w, &out);
        amp_jw_open(&w, '{');
        amp_jw_some_str(&w, "action", amp_span_str(action));
        amp_jw_some_str(&w, "reason", amp_span_str(r->reason));
        amp_jw_some_str(&w, "worktree_id", amp_span_str(r->worktree->path));
        amp_jw_some_str(&w, "branch", amp_span_str(r->worktree->branch));
        amp_jw_some_str(&w, "agent_id", amp_span_str(r->worktree->agent));
        amp_jw_some_str(&w, "error", amp_span_str(r->what));
        amp_jw_close(&w, '}');
        if (amp_jw_end_line(&w, err) < 0)
            return -1;
    } else if (amp_buf_fmt(&out, err, "%s\t%s\t", action, r->reason) < 0 ||
               amp_text_safe(amp_span_str(r->worktree->path), 0, &out, err) < 0 ||
               amp_buf_str(&out, "\t", err) < 0 ||
               amp_text_safe(amp_span_str(r->worktree->branch), 0, &out, err) < 0 ||
               amp_buf_str(&out, "\n", err) < 0) {
        return -1;
    }
    if (r->what[0])
        amp_warn("%s", r->what);
    return amp_out(amp_buf_span(&out), err);
}

static void path_print(void *ctx, const char *path)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_error *err = ctx;
    int rc;
    amp_buf_init(&out, 64 << 10);
    if (opt.json) {
        struct amp_jw w;
        amp_jw_init(&w, &out);
        amp_jw_open(&w, '{');
        amp_jw_member_text(&w, "action", "removed");
        amp_jw_member_text(&w, "reason", "half_made");
        amp_jw_member_text(&w, "worktree_id", path);
        amp_jw_close(&w, '}');
        rc = amp_jw_end_line(&w, err);
    } else {
        rc = amp_buf_str(&out, "removed\thalf_made\t", err) < 0 ||
             amp_text_safe(amp_span_str(path), 0, &out, err) < 0 ||
             amp_buf_str(&out, "\n", err) < 0;
    }
    if (rc == 0)
        amp_out(amp_buf_span(&out), err);
}

int verb_gc(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    uint32_t failed = 0;
    const struct amp_gc_spec spec = {
        .repo = opt.repo, .into = opt.into, .apply = opt.apply, .now_ms = amp_now_ms()};
    (void)argc;
    (void)argv;
    if ((opt.apply && amp_person_only(environ, "remove worktrees", &err)) ||
        session_open(&s, true, &err) || session_expire(&s, &err) || amp_store_sync(s.store, &err) ||
        amp_worktree_gc(s.store, s.git, &spec, report_print, NULL, &failed, &err))
        return amp_complain(&err);
    int left = opt.apply ? amp_confine_scratch_sweep(scratch_parent()) : 0;
    if (left)
        amp_note("%s: removed %d %s of killed commands", scratch_parent(), left,
                 left == 1 ? "directory" : "directories");
    return failed ? AMP_NO : 0;
}

struct repair {
    struct session *s;
    uint32_t failed;
};

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
static int attempts_repair(struct session *s, struct repair *r, struct amp_error *err)
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

int verb_repair(int argc, char **argv)
{
    SESSION s = {0};
    struct repair r = {.s = &s};
    struct amp_error err;
    (void)argc;
    (void)argv;
    if (amp_person_only(environ, "repair worktrees", &err) || session_open(&s, true, &err) ||
        session_expire(&s, &err) ||
        amp_git_worktree_repair(s.git, opt.repo, path_print, &err, &err) ||
        amp_binding_each(s.store, binding_repair, &r, &err) || attempts_repair(&s, &r, &err) ||
        amp_store_sync(s.store, &err))
        return amp_complain(&err);
    return r.failed ? AMP_NO : 0;
}
