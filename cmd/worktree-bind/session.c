/* The session of a verb, and the JSON form of a binding. */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "bind.h"
#include "work/git/bindings.h"
#include "json/record.h"
#include "json/text.h"

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

int session_open(struct session *s, struct amp_error *err)
{
    return git_open(s, err) < 0 ? -1 : amp_git_info(s->git, opt.repo, &s->info, err);
}

/* Finds the common directory by the repository's files, without starting git-worker. False:
 * git-worker has to look: no repository was found, a path is not UTF-8, or git's rules for other
 * owners and for other file systems apply. */
static bool common_find(struct session *s)
{
    char dir[PATH_MAX];
    struct amp_repository r;
    struct stat here, common;
    if (!realpath(opt.repo, dir) || amp_utf8_path(dir, NULL) < 0 ||
        amp_repository_find(dir, &r, NULL) < 0 || !r.found || amp_utf8_path(r.common, NULL) < 0 ||
        stat(dir, &here) != 0 || stat(r.common, &common) != 0 || common.st_uid != geteuid() ||
        common.st_dev != here.st_dev)
        return false;
    memcpy(s->info.common, r.common, sizeof s->info.common);
    return true;
}

void session_close(struct session *s)
{
    amp_identities_close(s->ids);
    amp_git_close(s->git);
}

int session_expire(struct session *s, struct amp_error *err)
{
    return amp_binding_expire(s->store, amp_now_ms(), NULL, NULL, NULL, NULL, err);
}

static int warn_overdue(void *ctx, const struct amp_binding *b, struct amp_error *err)
{
    const int64_t *now_ms = ctx;
    if (b->state == AMP_BINDING_BIND_FAILED && b->since_ms + AMP_BINDING_RECOVERY_MS <= *now_ms)
        amp_warn("%s: in BIND_FAILED for more than %d s (%s): bind again, or unbind", b->agent,
                 AMP_BINDING_RECOVERY_MS / 1000, amp_bind_reason_name(b->reason));
    return 0;
}

int bind_open(struct amp_command *c, struct amp_error *err)
{
    static struct session session;
    static char dir[PATH_MAX];
    struct session *s = &session;
    int64_t now_ms = amp_now_ms();
    if (!c->opens)
        return 0;
    c->own = s;
    if (git_open(s, err) < 0 ||
        ((c->opens & BIND_OPENS_GIT || !common_find(s)) && session_open(s, err) < 0))
        return -1;
    if (c->opens & AMP_OPENS_STATE && !c->state) {
        if (state_dir(s, dir, err) < 0 || amp_cli_state(dir, err) < 0)
            return -1;
        c->state = dir;
    }
    if (amp_state_open(c, err) < 0)
        return -1;
    s->store = c->store;
    if (c->opens & BIND_OPENS_EXPIRED && session_expire(s, err) < 0)
        return -1;
    return c->opens & BIND_OPENS_WARNED ? amp_binding_each(s->store, warn_overdue, &now_ms, err)
                                        : 0;
}

void bind_close(struct amp_command *c)
{
    if (c->own)
        session_close(c->own);
    amp_state_close(c);
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
    amp_rec_time(w, "since", b->since_ms);
    amp_rec_time(w, "until", b->due_ms);
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
