/* bind, unbind. */

#include <amp/base/clock.h>

#include "bind.h"

const char *binding_path(const struct amp_binding *b)
{
    return b->state == AMP_BINDING_BOUND_NON_HOME ? b->other : b->worktree;
}

/* Prints one line for people: the agent, its state, and the worktree or the failure. */
static int print_row(const struct amp_binding *b, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    const char *state = amp_binding_fsm.states[b->state].name;
    const char *path = binding_path(b);
    amp_buf_init(&out, 64 << 10);
    if (amp_text_safe(amp_span_str(b->agent), 0, &out, err) < 0 ||
        amp_buf_fmt(&out, err, "\t%s\t", state) < 0)
        return -1;
    if (b->state == AMP_BINDING_BIND_FAILED) {
        if (amp_buf_fmt(&out, err, "%s: ", amp_bind_reason_name(b->reason)) < 0 ||
            amp_text_safe(amp_span_str(b->why), 0, &out, err) < 0)
            return -1;
    } else if (amp_text_safe(amp_span_str(path), 0, &out, err) < 0 ||
               amp_buf_str(&out, "\t", err) < 0 ||
               amp_text_safe(amp_span_str(b->branch), 0, &out, err) < 0) {
        return -1;
    }
    return amp_buf_str(&out, "\n", err) || amp_out(amp_buf_span(&out), err) ? -1 : 0;
}

int binding_show(const struct amp_binding *b, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {.max = 64 << 10};
    if (!amp_listing_json)
        return print_row(b, err);
    return binding_record(b, NULL, NULL, &out, err) < 0 ? -1 : amp_out(amp_buf_span(&out), err);
}

static int verb_bind(struct amp_command *c, struct amp_error *err)
{
    struct binder *s = c->own;
    struct amp_error late;
    struct amp_binding b = {0};
    const struct amp_bind_spec spec = {.agent = c->argv[0],
                                       .repo = opt.repo,
                                       .path = opt.path,
                                       .branch = opt.branch,
                                       .base = opt.base,
                                       .retries = AMP_BINDING_RETRIES,
                                       .role = opt.role,
                                       .no_sparse = opt.no_sparse,
                                       .push = opt.push,
                                       .prepare = &opt.prepare,
                                       .now_ms = amp_now_ms()};
    int rc = amp_bind(s->store, s->git, &spec, &b, err);
    amp_git_rest(s->git);
    if (amp_store_sync(s->store, &late) == 0 &&
        ((rc < 0 && !b.rev) || binding_show(&b, &late) == 0))
        return rc;
    if (rc < 0)
        amp_complain(&late);
    else
        *err = late;
    return -1;
}

static int unbind_check(struct amp_command *c, struct amp_error *err)
{
    (void)c, (void)err;
    if (opt.force && !opt.remove)
        amp_die_usage("--force needs --remove");
    return 0;
}

static int verb_unbind(struct amp_command *c, struct amp_error *err)
{
    const struct binder *s = c->own;
    struct amp_binding b;
    const struct amp_unbind_spec spec = {.agent = c->argv[0],
                                         .repo = opt.state ? NULL : opt.repo,
                                         .remove = opt.remove,
                                         .force = opt.force,
                                         .now_ms = amp_now_ms()};
    return amp_unbind(s->store, s->git, &spec, &b, err) < 0 || amp_store_sync(s->store, err) < 0
               ? -1
               : binding_show(&b, err);
}

static const struct amp_opt bind_opts[] = {
    {'b', "branch", AMP_OPT_STRING, &opt.branch, "BRANCH",
     .doc = "branch, created if missing (default: a detached worktree)"},
    {0, "base", AMP_OPT_STRING, &opt.base, "REV",
     .doc = "start of a new branch or detached worktree (default: HEAD)"},
    {0, "path", AMP_OPT_DIR, &opt.path, "DIR",
     .doc = "directory of the worktree (default: REPO.worktrees/AGENT)"},
    {0, "role", AMP_OPT_STRING, &opt.role, "ROLE",
     .doc = "the agent's role, for the guard's rules per role"},
    {0, "push", AMP_OPT_FLAG, &opt.push, NULL,
     .doc = "let git push from the worktree (default: the guard refuses)"},
    {0, "no-sparse", AMP_OPT_FLAG, &opt.no_sparse, NULL,
     .doc = "write all files, although the main worktree has a sparse checkout"},
    AMP_OPT_PREPARE(opt.prepare),
    AMP_OPT_CONFIG(opt.config),
    AMP_OPT_END,
};

static const struct amp_opt unbind_opts[] = {
    {0, "remove", AMP_OPT_FLAG, &opt.remove, NULL,
     .doc = "also remove the worktree; its branch stays"},
    {0, "force", AMP_OPT_FLAG, &opt.force, NULL, .doc = "also with uncommitted changes"},
    AMP_OPT_END,
};

const struct amp_verb bind_verbs[] = {
    {"bind", "AGENT", "bind an agent to a worktree", bind_opts, verb_bind, BIND_ONE_AGENT,
     .opens = AMP_OPENS_MADE, .act = "bind an agent", .group = "Bindings", .who = AMP_WHO_SELF},
    {"unbind", "AGENT", "end an agent's binding", unbind_opts, verb_unbind, BIND_ONE_AGENT,
     .check = unbind_check, .opens = AMP_OPENS_MADE, .act = "end a binding", .values = "binding",
     .who = AMP_WHO_SELF},
    {0},
};
