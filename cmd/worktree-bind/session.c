/* The session of a verb, and the JSON form of a binding. */
#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "bind.h"
#include "cli/time.h"
#include "flow/bindings.h"
#include "flow/facts.h"
#include "flow/identity/head.h"
#include "flow/keep.h"
#include "message/history/find.h"

/* The default state directory, which the hooks use, too. */
static int state_dir(const struct session *s, char dir[PATH_MAX], struct amp_error *err)
{
    int n = snprintf(dir, PATH_MAX, "%s/amp", s->info.common);
    return n < PATH_MAX ? 0 : amp_fail(err, AMP_USAGE, bad_path, "%s: too long", dir);
}

static int git_open(struct session *s, struct amp_error *err)
{
    const struct amp_git_options git = {.stop = &amp_stop};
    return s->git ? 0 : amp_git_open(&git, &s->git, err);
}

int session_wake(struct session *s, struct amp_error *err)
{
    if (git_open(s, err) < 0)
        return -1;
    amp_git_wake(s->git, NULL); /* the first call tries it again, and reports the failure */
    return 0;
}

int session_open(struct session *s, bool with_store, struct amp_error *err)
{
    char dir[PATH_MAX];
    struct amp_store_options options = {.lock_timeout_ms = opt.lock_timeout_ms,
                                        .facts = &amp_flow_facts,
                                        .keep = amp_flow_keep,
                                        .names = amp_history_names,
                                        .sign_head = amp_head_sign,
                                        .actor = amp_cli_name()};
    if (git_open(s, err) < 0)
        return -1;
    if (amp_git_info(s->git, opt.repo, &s->info, err) < 0 ||
        (with_store && !opt.state && (state_dir(s, dir, err) || amp_cli_state(dir, err))) ||
        (with_store && amp_store_open(opt.state ? opt.state : dir, &options, &s->store, err)))
        return -1;
    return 0;
}

void session_close(struct session *s)
{
    amp_identities_close(s->ids);
    if (s->store)
        amp_store_close(s->store);
    amp_git_close(s->git);
}

int session_expire(struct session *s, struct amp_error *err)
{
    return amp_binding_expire(s->store, amp_now_ms(), NULL, NULL, NULL, NULL, err);
}

static void text_put(struct amp_jw *w, const char *key, const char *value)
{
    amp_jw_some_str(w, key, amp_span_str(value));
}

void binding_members(struct amp_jw *w, const struct amp_binding *b)
{
    text_put(w, "agent_id", b->agent);
    text_put(w, "state", amp_binding_fsm.states[b->state].name);
    text_put(w, "repo_id", b->repo);
    text_put(w, "worktree_id",
             b->state == AMP_BINDING_BOUND_NON_HOME && b->other[0] ? b->other : b->worktree);
    if (b->state == AMP_BINDING_SWITCH_PENDING)
        text_put(w, "target_worktree_id", b->other);
    text_put(w, "invocation_id", b->invocation);
    if (b->state == AMP_BINDING_BOUND_NON_HOME)
        text_put(w, "home_worktree_id", b->worktree);
    text_put(w, "approved_by", b->by);
    text_put(w, "branch", b->branch);
    text_put(w, "reason", amp_bind_reason_name(b->reason));
    text_put(w, "why", b->why);
    amp_time_member(w, "since", b->since_ms);
    amp_time_member(w, "until", b->due_ms);
}

int binding_record(const struct amp_binding *b, const char *ref, const struct amp_error *failure,
                   struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    binding_members(&w, b);
    text_put(&w, "ref_message_id", ref);
    if (failure) {
        text_put(&w, "error_code", failure->code);
        text_put(&w, "error", failure->what);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end(&w, err);
}

int print_binding(const struct amp_binding *b, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    amp_buf_init(&out, 64 << 10);
    return binding_record(b, NULL, NULL, &out, err) < 0 || amp_buf_add(&out, "\n", 1, err) < 0
               ? -1
               : amp_out(amp_buf_span(&out), err);
}
