/* bind, unbind, status, path. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "bind.h"
#include "worktree/person.h"

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
    return opt.json ? print_binding(b, err) : print_row(b, err);
}

static const char *one_agent(int argc, char **argv)
{
    if (argc != 1)
        amp_die_usage("exactly one AGENT is required");
    return argv[0];
}

int verb_bind(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err, failed;
    struct amp_binding b = {0};
    struct amp_bind_spec spec = {.agent = one_agent(argc, argv),
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
    if (amp_person_or_self(environ, spec.agent, "bind an agent", &err) ||
        session_open(&s, true, &err))
        return amp_complain(&err);
    int rc = amp_bind(s.store, s.git, &spec, &b, &failed), status = 0;
    amp_git_rest(s.git);
    if (amp_store_sync(s.store, &err) < 0 || ((rc == 0 || b.rev) && binding_show(&b, &err)))
        status = amp_complain(&err);
    return rc ? amp_complain(&failed) : status;
}

int verb_unbind(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    struct amp_binding b;
    const struct amp_unbind_spec spec = {.agent = one_agent(argc, argv),
                                         .repo = opt.state ? NULL : opt.repo,
                                         .remove = opt.remove,
                                         .force = opt.force,
                                         .now_ms = amp_now_ms()};
    if (opt.force && !opt.remove)
        amp_die_usage("--force needs --remove");
    if (amp_person_or_self(environ, spec.agent, "end a binding", &err) ||
        session_open(&s, true, &err) || amp_unbind(s.store, s.git, &spec, &b, &err) ||
        amp_store_sync(s.store, &err) || binding_show(&b, &err))
        return amp_complain(&err);
    return 0;
}

static int warn_overdue(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    const int64_t *now_ms = ctx;
    if (b->state == AMP_BINDING_BIND_FAILED && b->since_ms + AMP_BINDING_RECOVERY_MS <= *now_ms)
        amp_warn("%s: in BIND_FAILED for more than %d s (%s): bind again, or unbind", b->agent,
                 AMP_BINDING_RECOVERY_MS / 1000, amp_bind_reason_name(b->reason));
    return 0;
}

int session_look(struct session *s, struct amp_error *err)
{
    int64_t now_ms = amp_now_ms();
    return session_open(s, true, err) || session_expire(s, err) ||
           amp_binding_each(s->store, warn_overdue, &now_ms, err);
}

/* 1: not bound to any worktree. */
int verb_status(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    struct amp_binding b;
    const char *agent = one_agent(argc, argv);
    if (session_look(&s, &err) || amp_binding_get(s.store, agent, &b, &err) < 0 ||
        amp_store_sync(s.store, &err) < 0 || binding_show(&b, &err))
        return amp_complain(&err);
    return b.state == AMP_BINDING_UNBOUND || b.state == AMP_BINDING_BIND_FAILED ? AMP_NO : 0;
}

/* 1: not bound, or the files of the worktree are gone. */
int verb_path(int argc, char **argv)
{
    SESSION s = {0};
    struct amp_error err;
    struct amp_binding b;
    AMP_BUF struct amp_buf out = {.max = PATH_MAX + 1};
    const char *agent = one_agent(argc, argv);
    if (session_look(&s, &err) || amp_binding_get(s.store, agent, &b, &err) < 0 ||
        amp_store_sync(s.store, &err) < 0)
        return amp_complain(&err);
    if (!amp_binding_is_bound(&b)) {
        amp_fail(&err, AMP_NO, worktree_not_bound, "%s is not bound to a worktree", agent);
        return amp_complain(&err);
    }
    const char *path = binding_path(&b);
    if (access(path, F_OK) != 0) {
        amp_fail(&err, AMP_NO, worktree_not_found,
                 "the files of %s are gone; 'worktree-bind repair' makes them again", path);
        return amp_complain(&err);
    }
    if (opt.json)
        return print_binding(&b, &err) < 0 ? amp_complain(&err) : 0;
    return amp_buf_fmt(&out, &err, "%s\n", path) < 0 || amp_out(amp_buf_span(&out), &err) < 0
               ? amp_complain(&err)
               : 0;
}
