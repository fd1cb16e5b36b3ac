/* Opening what the verbs work with. */
#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "bind.h"
#include "flow/bindings.h"
#include "flow/facts.h"

int session_open(struct session *s, bool with_store, struct amp_error *err)
{
    char dir[PATH_MAX];
    struct amp_store_options options = {
        .lock_timeout_ms = opt.lock_timeout_ms, .facts = &amp_flow_facts, .actor = amp_cli_name()};
    const struct amp_git_options git = {.stop = &amp_stop};
    *s = (struct session){0};
    if (amp_git_open(&git, &s->git, err) < 0)
        return -1;
    if (amp_git_info(s->git, opt.repo, &s->info, err) < 0 ||
        (with_store && !opt.state &&
         (amp_worktree_state_dir(&s->info, dir, sizeof dir, err) || amp_cli_state(dir, err))) ||
        (with_store && amp_store_open(opt.state ? opt.state : dir, &options, &s->store, err))) {
        session_close(s);
        return -1;
    }
    return 0;
}

void session_close(struct session *s)
{
    if (s->store)
        amp_store_close(s->store);
    amp_git_close(s->git);
    *s = (struct session){0};
}

static int warn_overdue(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    const int64_t *now_ms = ctx;
    if (b->state == AMP_BINDING_BIND_FAILED && b->since_ms + AMP_BINDING_RECOVERY_MS <= *now_ms)
        amp_warn("%s: in BIND_FAILED for more than %d s (%s): bind again, or unbind", b->agent,
                 AMP_BINDING_RECOVERY_MS / 1000, amp_bind_reason_name(b->reason));
    return 0;
}

int session_expire(struct session *s, int64_t now_ms, struct amp_error *err)
{
    return amp_binding_expire(s->store, now_ms, NULL, NULL, err);
}

int session_warn(struct session *s, int64_t now_ms, struct amp_error *err)
{
    return amp_binding_each(s->store, warn_overdue, &now_ms, err);
}

static void member_put(struct amp_jw *w, const char *key, const char *value)
{
    if (!value || !*value)
        return;
    amp_jw_key(w, key);
    amp_jw_str(w, amp_span_str(value));
}

int print_binding(const struct amp_binding *b, const char *ref, const struct amp_error *failure,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_jw w;
    char time[AMP_TIME_MAX];
    amp_buf_init(&out, 64 << 10);
    amp_jw_init(&w, &out);
    amp_jw_open(&w, '{');
    member_put(&w, "agent_id", b->agent);
    member_put(&w, "state", amp_binding_fsm.states[b->state].name);
    member_put(&w, "repo_id", b->repo);
    member_put(&w, "worktree_id",
               b->state == AMP_BINDING_BOUND_NON_HOME && b->other[0] ? b->other : b->worktree);
    if (b->state == AMP_BINDING_SWITCH_PENDING)
        member_put(&w, "target_worktree_id", b->other);
    member_put(&w, "invocation_id", b->invocation);
    if (b->state == AMP_BINDING_BOUND_NON_HOME)
        member_put(&w, "home_worktree_id", b->worktree);
    member_put(&w, "branch", b->branch);
    member_put(&w, "reason", amp_bind_reason_name(b->reason));
    member_put(&w, "why", b->why);
    if (b->since_ms) {
        amp_time_format(b->since_ms, time);
        member_put(&w, "since", time);
    }
    if (b->due_ms) {
        amp_time_format(b->due_ms, time);
        member_put(&w, "until", time);
    }
    member_put(&w, "ref_message_id", ref);
    if (failure) {
        member_put(&w, "error_code", failure->code);
        member_put(&w, "error", failure->what);
    }
    amp_jw_close(&w, '}');
    if (amp_jw_end_line(&w, err) < 0)
        return -1;
    return amp_out(amp_buf_span(&out), err);
}
