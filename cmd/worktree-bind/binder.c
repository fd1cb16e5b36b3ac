/* The session of a verb, and the JSON form of a binding. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/file/repository.h"
#include "bind.h"
#include "work/git/bindings.h"
#include "json/text.h"

/* The default state directory, which the hooks use, too. */
static int state_dir(const struct binder *s, char dir[PATH_MAX], struct amp_error *err)
{
    int n = snprintf(dir, PATH_MAX, "%s/amp", s->info.common);
    return n < PATH_MAX ? 0 : amp_fail(err, AMP_USAGE, bad_path, "%s: too long", dir);
}

static int git_open(struct binder *s, struct amp_error *err)
{
    const struct amp_git_options git = {.stop = &amp_stop};
    return s->git ? 0 : amp_git_open(&git, &s->git, err);
}

int binder_wake(struct binder *s, struct amp_error *err)
{
    if (git_open(s, err) < 0)
        return -1;
    amp_git_wake(s->git, NULL); /* the first call tries it again, and reports the failure */
    return 0;
}

int binder_open(struct binder *s, struct amp_error *err)
{
    return git_open(s, err) < 0 ? -1 : amp_git_info(s->git, opt.repo, &s->info, err);
}

/* Finds the common directory by the repository's files, without starting git-worker. False:
 * git-worker has to look: no repository was found, a path is not UTF-8, or git's rules for other
 * owners and for other file systems apply. */
static bool common_find(struct binder *s)
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

void binder_close(struct binder *s)
{
    amp_identities_close(s->ids);
    amp_git_close(s->git);
}

int binder_expire(struct binder *s, struct amp_error *err)
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
    static struct binder session;
    static char dir[PATH_MAX];
    struct binder *s = &session;
    int64_t now_ms = amp_now_ms();
    if (!c->opens)
        return 0;
    c->own = s;
    if (git_open(s, err) < 0 ||
        ((c->opens & BIND_OPENS_GIT || !common_find(s)) && binder_open(s, err) < 0))
        return -1;
    if (c->opens & AMP_OPENS_STATE && !c->state) {
        if (state_dir(s, dir, err) < 0 || amp_cli_state(dir, err) < 0)
            return -1;
        c->state = dir;
    }
    if (amp_state_open(c, err) < 0)
        return -1;
    s->store = c->store;
    if (c->opens & BIND_OPENS_EXPIRED && binder_expire(s, err) < 0)
        return -1;
    return c->opens & BIND_OPENS_WARNED ? amp_binding_each(s->store, warn_overdue, &now_ms, err)
                                        : 0;
}

void bind_close(struct amp_command *c)
{
    if (c->own)
        binder_close(c->own);
    amp_state_close(c);
}

/* ---- bindings ---- */

void binding_row_init(struct binding_row *r, const struct amp_binding *b)
{
    memset(r, 0, sizeof *r);
    r->b = *b;
    r->tree.changes = r->tree.ahead = r->tree.behind = -1;
}

static const char *count_text(int64_t n, const char *before, char out[24])
{
    if (n < 0)
        return "?";
    snprintf(out, 24, "%s%lld", before, (long long)n);
    return out;
}

void binding_row_place(struct binding_row *r)
{
    const struct amp_binding *b = &r->b;
    const bool away = b->state == AMP_BINDING_BOUND_NON_HOME;
    const int64_t n = r->tree.changes;
    char a[24], z[24];
    r->worktree = away && *b->other ? b->other : b->worktree;
    r->home = away ? b->worktree : "";
    r->target = b->state == AMP_BINDING_SWITCH_PENDING ? b->other : "";
    r->works_on = *r->task ? r->task : "-";
    if (n == 0 || !r->has_git)
        snprintf(r->changes, sizeof r->changes, "%s", r->has_git ? "clean" : "-");
    else
        snprintf(r->changes, sizeof r->changes, "%s file%s", count_text(n, "", a),
                 n == 1 ? "" : "s");
    snprintf(r->commits, sizeof r->commits, "-");
    if (r->has_git)
        snprintf(r->commits, sizeof r->commits, "%s %s", count_text(r->tree.ahead, "+", a),
                 count_text(r->tree.behind, "-", z));
}

static struct amp_span place_text(const void *row, char mem[AMP_CELL_MAX])
{
    const struct amp_binding *b = row;
    if (b->state != AMP_BINDING_BIND_FAILED)
        return amp_span_str(binding_path(b));
    snprintf(mem, AMP_CELL_MAX, "%s: %s", amp_bind_reason_name(b->reason), b->why);
    return amp_span_str(mem);
}

static void dirty_put(const void *row, const char *key, struct amp_jw *w)
{
    const struct binding_row *r = row;
    if (r->tree.changes >= 0)
        amp_jw_member_bool(w, key, r->tree.changes > 0);
}

#define SOME(form, key, head, member) AMP_COLUMN(form, struct binding_row, key, head, member)
#define STATE                         AMP_COLUMN_STATE(struct binding_row, "state", "state", b.state, &amp_binding_fsm)
const struct amp_column binding_columns[] = {
    AMP_COLUMN_EVER(CHARS, struct binding_row, "agent_id", "agent", b.agent),
    STATE,
    SOME(CHARS, "repo_id", NULL, b.repo),
    SOME(CSTR, "worktree_id", NULL, worktree),
    SOME(CSTR, "target_worktree_id", NULL, target),
    SOME(CHARS, "invocation_id", NULL, b.invocation),
    SOME(CSTR, "home_worktree_id", NULL, home),
    SOME(CHARS, "approved_by", NULL, b.by),
    SOME(CHARS, "branch", "branch", b.branch),
    AMP_COLUMN(WORD, struct binding_row, "reason", NULL, b.reason, .word = amp_bind_reason_name),
    SOME(CHARS, "why", NULL, b.why),
    SOME(CHARS, NULL, "changes", changes),
    SOME(CHARS, NULL, "commits", commits),
    SOME(AGE, "since", "age", b.since_ms),
    SOME(TIME, "until", NULL, b.due_ms),
    SOME(CSTR, "ref_message_id", NULL, ref),
    SOME(CSTR, "error_code", NULL, code),
    SOME(CSTR, "error", NULL, error),
    AMP_COLUMN_PUT("dirty", dirty_put),
    SOME(COUNT, "changes", NULL, tree.changes),
    SOME(COUNT, "ahead", NULL, tree.ahead),
    SOME(COUNT, "behind", NULL, tree.behind),
    SOME(CHARS, "head", NULL, tree.head),
    SOME(TIME, "head_at", NULL, tree.head_ms),
    SOME(CHARS, "task_id", NULL, task),
    SOME(CSTR, NULL, "task", works_on),
    AMP_COLUMN_MADE(NULL, "worktree", place_text),
    {0},
};
const struct amp_column binding_line_columns[] = {
    SOME(CHARS, NULL, "agent", b.agent),
    STATE,
    AMP_COLUMN_MADE(NULL, "worktree", place_text),
    SOME(CHARS, NULL, "branch", b.branch),
    SOME(CHARS, NULL, "changes", changes),
    SOME(CHARS, NULL, "commits", commits),
    SOME(AGE, NULL, "age", b.since_ms),
    SOME(CSTR, NULL, "task", works_on),
    {0},
};

int binding_record(const struct amp_binding *b, const char *ref, const struct amp_error *failure,
                   struct amp_buf *out, struct amp_error *err)
{
    struct binding_row row;
    binding_row_init(&row, b);
    binding_row_place(&row);
    row.ref = ref;
    row.code = failure ? failure->code : NULL;
    row.error = failure ? failure->what : NULL;
    return amp_view_line(binding_columns, &row, out, err);
}
