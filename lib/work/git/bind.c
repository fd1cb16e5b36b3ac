/*
 * Binds an agent: creates the worktree, then records it, so that a crash in between leaves a
 * worktree that the next bind finds by its marker, never a record of a worktree that is missing.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "work/git/marker.h"
#include "work/git/paths/reserve.h"
#include "work/git/push.h"
#include "work/git/switch.h"
#include "work/git/worktree.h"
#include "json/text.h"

#define DONE "amp-prepared" /* in the git directory of a worktree whose command succeeded */

struct search {
    const char *path;
    struct amp_git_worktree found;
    bool hit;
};

/* The worktree that a bind needs. The main worktree comes first in the list, and with it the
 * repository, beside which the worktree is by default. */
struct place {
    const struct amp_bind_spec *spec;
    struct amp_binding *b; /* gets the repository and the path */
    struct search s;
    struct amp_error *err;
    bool failed;
};

static int match_path(void *ctx, const struct amp_git_worktree *w)
{
    struct search *s = ctx;
    if (strcmp(w->path, s->path) != 0)
        return 0;
    s->found = *w;
    s->hit = true;
    return 1;
}

/* Takes an existing worktree, which must be free or the agent's own. */
static int take_existing(const struct amp_git_worktree *w, const struct amp_bind_spec *spec,
                         struct amp_error *err)
{
    if (w->main)
        return amp_fail(err, AMP_NOPERM, permission_denied, "%s: the main worktree", w->path);
    if (w->locked)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: the worktree is locked", w->path);
    if (w->agent[0] && strcmp(w->agent, spec->agent) != 0)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: bound to %s", w->path, w->agent);
    if (spec->branch && strcmp(w->branch, spec->branch) != 0)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: is on %s, not on %s", w->path,
                        w->branch[0] ? w->branch : "no branch", spec->branch);
    /* An agent's own worktree keeps its marker if this bind names no branch. */
    if (w->agent[0] && !spec->branch)
        return 0;
    return amp_marker_put(w->gitdir, spec->agent, w->branch, spec->role, err);
}

static int match_place(void *ctx, const struct amp_git_worktree *w)
{
    struct place *p = ctx;
    char path[PATH_MAX * 2];
    if (!w->main)
        return match_path(&p->s, w);
    amp_span_copy(amp_span_str(w->gitdir), p->b->repo, sizeof p->b->repo);
    size_t n = strlen(p->b->repo);
    if (n > 5 && strcmp(p->b->repo + n - 5, "/.git") == 0)
        p->b->repo[n - 5] = '\0';
    if (p->spec->path)
        snprintf(path, sizeof path, "%s", p->spec->path);
    else
        snprintf(path, sizeof path, "%s.worktrees/%s", p->b->repo, p->spec->agent);
    p->failed = amp_path_canonical(path, p->b->worktree, p->err) < 0;
    p->s.path = p->b->worktree;
    return p->failed ? 1 : match_path(&p->s, w);
}

static int worktree_make(struct amp_git *g, const struct amp_bind_spec *spec, struct amp_binding *b,
                         struct amp_error *err)
{
    struct place p = {.spec = spec, .b = b, .err = err};
    if (amp_git_worktrees(g, spec->repo, match_place, &p, err) < 0 || p.failed)
        return -1;
    struct search s = p.s;
    /* A worktree whose .git leads elsewhere is not taken; creating one there will fail. */
    if (s.hit && !s.found.missing && !s.found.foreign)
        return take_existing(&s.found, spec, err);
    struct amp_git_worktree_spec w = {spec->repo,  b->worktree, spec->branch,   spec->base,
                                      spec->agent, spec->role,  spec->no_sparse};
    struct amp_error failed;
    if (amp_git_worktree_add(g, &w, NULL, &failed) == 0)
        return 0;
    /* The worker of a bind that was killed may have created it in the meantime. */
    if (amp_code_is(failed.code, worktree_exists) &&
        amp_git_worktrees(g, spec->repo, match_path, &s, err) == 0 && s.hit && !s.found.missing &&
        !s.found.foreign)
        return take_existing(&s.found, spec, err);
    if (err)
        *err = failed;
    return -1;
}

/* Refuses a worktree that another agent has switched to; it has no marker. */
static int check_visitor(struct amp_store *s, const struct amp_bind_spec *spec,
                         struct amp_error *err)
{
    char real[PATH_MAX], holder[128];
    if (!spec->path)
        return 0;
    if (amp_path_canonical(spec->path, real, err) < 0)
        return -1;
    int held = amp_binding_holder(s, real, spec->agent, true, holder, err);
    if (held > 0)
        amp_fail(err, AMP_NO, worktree_locked, "%s: %s has switched to it", real, holder);
    return held ? -1 : 0;
}

/* Whether the bind has another target than the failed one, so that the earlier tries do not count.
 */
static bool binding_is_other(const struct amp_binding *failed, const struct amp_bind_spec *spec)
{
    char real[PATH_MAX];
    return strcmp(failed->branch, spec->branch ? spec->branch : "") != 0 ||
           (spec->path && failed->worktree[0] && amp_path_canonical(spec->path, real, NULL) == 0 &&
            strcmp(real, failed->worktree) != 0);
}

/* The reason for an error of the git worker or the file system. */
static enum amp_bind_reason reason_of(const struct amp_error *err)
{
    static const struct {
        const char *code;
        enum amp_bind_reason reason;
    } table[] = {
        {AMP_CODE(worktree_not_found), AMP_BIND_WORKTREE_NOT_FOUND},
        {AMP_CODE(repo_not_git), AMP_BIND_WORKTREE_NOT_FOUND},
        {AMP_CODE(unknown_revision), AMP_BIND_WORKTREE_NOT_FOUND},
        {AMP_CODE(branch_violation), AMP_BIND_PERMISSION_DENIED},
        {AMP_CODE(permission_denied), AMP_BIND_PERMISSION_DENIED},
        {AMP_CODE(path_escape), AMP_BIND_PERMISSION_DENIED},
        {AMP_CODE(repo_not_owned), AMP_BIND_PERMISSION_DENIED},
        {"eacces", AMP_BIND_PERMISSION_DENIED},
        {"eperm", AMP_BIND_PERMISSION_DENIED},
        {AMP_CODE(worktree_locked), AMP_BIND_WORKTREE_LOCKED},
        {AMP_CODE(branch_checked_out), AMP_BIND_WORKTREE_LOCKED},
        {AMP_CODE(git_locked), AMP_BIND_WORKTREE_LOCKED},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(err->code, table[i].code) == 0)
            return table[i].reason;
    return AMP_BIND_FILESYSTEM_ERROR;
}

/* Reservations end with the binding; a crash may have left some, so a new binding removes them,
 * too.
 */
static int reservations_end(struct amp_store *s, struct amp_git *g, const struct amp_binding *b,
                            struct amp_error *err)
{
    const struct amp_reserve_spec all = {.holder = b->agent};
    struct amp_git_info info;
    struct amp_error gone;
    uint32_t n;
    if (amp_reserve_release(s, &all, &n, err) < 0)
        return -1;
    if (n == 0 || amp_git_info(g, b->repo, &info, &gone) < 0)
        return 0;
    return amp_reserve_publish(s, info.common, err);
}

/* ---- what a worktree gets before its agent is bound to it ---- */

static int files_include(struct amp_git *g, const char *worktree, const struct amp_prepare *p,
                         struct amp_error *err)
{
    struct amp_git_included in;
    char modules[PATH_MAX + 16];
    snprintf(modules, sizeof modules, "%s/.gitmodules", worktree);
    if (!p->include && access(modules, F_OK) != 0)
        return 0;
    if (amp_git_worktree_include(g, worktree, worktree, p->include ? p->include_bytes : 0, &in,
                                 err) < 0)
        return -1;
    if (in.copied > 0)
        p->note("%s: copied %lld ignored %s (.worktreeinclude)", worktree, (long long)in.copied,
                in.copied == 1 ? "file" : "files");
    if (in.skipped > 0)
        p->note("%s: %lld not copied, because they are not regular files (.worktreeinclude)",
                worktree, (long long)in.skipped);
    if (in.submodules > 0)
        p->note("%s: %lld %s not fetched; fetch with: git -C %s submodule update --init", worktree,
                (long long)in.submodules, in.submodules == 1 ? "submodule is" : "submodules are",
                worktree);
    return 0;
}

static int command_start(const struct amp_prepare *p, const struct amp_child_spec *spec,
                         struct amp_child_end *end, struct amp_error *err)
{
    struct amp_child child;
    if (p->run)
        return p->run(p->ctx, spec, end, err);
    return amp_child_start(spec, &child, err) < 0
               ? -1
               : amp_child_wait(&child, p->command_ms, AMP_PREPARE_GRACE, p->stop, end, err);
}

/* Runs the command in the worktree; its output goes to stderr. */
static int command_run(const char *worktree, const struct amp_prepare *p, struct amp_error *err)
{
    const char *const argv[] = {"/bin/sh", "-c", p->command, NULL};
    const struct amp_child_spec spec = {.argv = argv,
                                        .cwd = worktree,
                                        .fd_in = -1,
                                        .fd_out = STDERR_FILENO,
                                        .fd_err = STDERR_FILENO,
                                        .dies_with_us = true,
                                        .owns_tree = true};
    struct amp_child_end end = {0};
    if (command_start(p, &spec, &end, err) < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 0;
    if (p->stop && *p->stop)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "the post-create command was stopped");
    if (end.timed_out)
        return amp_fail(err, AMP_NO, post_create_failed,
                        "the post-create command did not end in %lld ms", (long long)p->command_ms);
    return amp_fail(err, AMP_NO, post_create_failed,
                    "the post-create command ended with %s %d: fix it and bind again",
                    end.exited ? "status" : "signal", end.exited ? end.exit_code : end.signal);
}

/* Runs the command unless it has succeeded in this worktree before. */
static int command_once(struct amp_git *g, const char *worktree, const struct amp_prepare *p,
                        struct amp_error *err)
{
    struct amp_git_info info;
    if (!p->command || !*p->command)
        return 0;
    if (amp_git_info(g, worktree, &info, err) < 0)
        return -1;
    AMP_CLOSE int fd = open(info.gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", info.gitdir);
    if (faccessat(fd, DONE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    return command_run(worktree, p, err) < 0
               ? -1
               : amp_file_write_atomic(fd, DONE, 0644, AMP_SPAN("1\n"), err);
}

/* The lock that work/attempt/place.c takes while a worker uses the worktree: gc leaves it alone. */
static int worktree_lock(const char *worktree, int *fd, struct amp_error *err)
{
    char path[PATH_MAX + 8];
    struct amp_error why;
    snprintf(path, sizeof path, "%s/.git", worktree);
    AMP_CLOSE int lock = amp_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0, err);
    if (lock < 0)
        return -1;
    if (amp_lock(lock, 0, &why) < 0)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: another process works there", worktree);
    *fd = lock;
    lock = -1;
    return 0;
}

/* Can be repeated, so a bind that was killed is completed by the next one. */
static int worktree_prepare(struct amp_git *g, const char *worktree, const struct amp_prepare *p,
                            struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    bool any = p->include || (p->command && *p->command);
    if (any && worktree_lock(worktree, &lock, err) < 0)
        return -1;
    return files_include(g, worktree, p, err) < 0 ? -1 : command_once(g, worktree, p, err);
}

/* ---- the bind ---- */

int amp_bind(struct amp_store *s, struct amp_git *g, const struct amp_bind_spec *spec,
             struct amp_binding *out, struct amp_error *err)
{
    struct amp_binding now;
    struct amp_binding_step step = {.agent = spec->agent,
                                    .event = AMP_BINDING_EV_BIND,
                                    .now_ms = spec->now_ms,
                                    .input = spec->input};
    struct amp_error failed, late;
    if (!amp_id_is_safe(amp_span_str(spec->agent)))
        return amp_fail(err, AMP_USAGE, bad_value, "%s: not a name for an agent", spec->agent);
    if (amp_binding_get(s, spec->agent, &now, err) < 0)
        return -1;
    if (now.state == AMP_BINDING_SWITCH_PENDING || now.state == AMP_BINDING_BOUND_NON_HOME)
        return amp_fail(err, AMP_NO, illegal_transition, "%s: %s: unbind first", spec->agent,
                        amp_binding_fsm.states[now.state].name);
    /* A retry may run elsewhere. */
    if (!spec->misplaced && amp_path_canonical(spec->repo, step.with.repo, NULL) < 0)
        amp_span_copy(amp_span_str(spec->repo), step.with.repo, sizeof step.with.repo);
    if (spec->path && amp_path_canonical(spec->path, step.with.worktree, NULL) < 0)
        step.with.worktree[0] = '\0';
    if (spec->branch)
        amp_span_copy(amp_span_str(spec->branch), step.with.branch, sizeof step.with.branch);
    if (spec->base)
        amp_span_copy(amp_span_str(spec->base), step.with.base, sizeof step.with.base);
    if (amp_utf8_path(step.with.repo, err) < 0 || amp_utf8_path(step.with.worktree, err) < 0)
        return -1;
    /* Bound elsewhere: nothing is created for a bind that will be refused. */
    if (now.state == AMP_BINDING_BOUND_HOME && spec->path) {
        char real[PATH_MAX];
        if (amp_path_canonical(spec->path, real, err) < 0)
            return -1;
        if (strcmp(real, now.worktree) != 0)
            return amp_fail(err, AMP_NOPERM, permission_denied, "%s is already bound to %s",
                            spec->agent, now.worktree);
    }
    if (now.state == AMP_BINDING_BIND_FAILED && binding_is_other(&now, spec)) {
        const struct amp_binding_step reset = {
            .agent = spec->agent, .event = AMP_BINDING_EV_RETRY_RESET, .now_ms = spec->now_ms};
        if (amp_binding_step(s, &reset, &now, err) < 0)
            return -1;
    }
    struct amp_bind_spec here = *spec;
    if (now.state == AMP_BINDING_BOUND_HOME && !spec->path)
        here.path = now.worktree;
    int rc = spec->misplaced                        ? (failed = *spec->misplaced, -1)
             : check_visitor(s, &here, &failed) < 0 ? -1
                                                    : worktree_make(g, &here, &step.with, &failed);
    if (rc == 0)
        rc = amp_push_set(step.with.worktree, spec->push, &failed);
    if (rc == 0 && spec->prepare)
        rc = worktree_prepare(g, step.with.worktree, spec->prepare, &failed);
    if (rc == 0) {
        if (amp_binding_step(s, &step, out, &failed) == 0)
            return amp_binding_is_bound(&now) ? 0 : reservations_end(s, g, out, err);
        /* Only a worktree that another agent took meanwhile is a failure of the bind. */
        if (!amp_code_is(failed.code, worktree_locked)) {
            if (err)
                *err = failed;
            return -1;
        }
    }

    /* A failed repetition of a bind does not end the binding. */
    if (now.state != AMP_BINDING_BOUND_HOME) {
        step.event = AMP_BINDING_EV_BIND_ERROR;
        step.with.retries = spec->misplaced ? 0 : spec->retries;
        step.with.reason = reason_of(&failed);
        amp_span_copy(amp_span_str(failed.what), step.with.why, sizeof step.with.why);
        if (amp_binding_step(s, &step, out, &late) < 0)
            failed = late;
    }
    if (err)
        *err = failed;
    return -1;
}

/* Whether the binding is of this repository. A state directory that was copied with its repository
 * names the worktrees of the original. */
static int is_of_repo(struct amp_git *g, const char *repo, const struct amp_binding *b,
                      struct amp_error *err)
{
    struct amp_git_info here, there;
    if (amp_git_info(g, repo, &here, err) < 0)
        return -1;
    if (amp_git_info(g, b->repo, &there, err) < 0)
        return amp_code_is(err->code, repo_not_git) ? 0 : -1;
    return strcmp(here.common, there.common) == 0;
}

int amp_unbind(struct amp_store *s, struct amp_git *g, const struct amp_unbind_spec *spec,
               struct amp_binding *out, struct amp_error *err)
{
    struct amp_binding now;
    struct amp_binding_step step = {.agent = spec->agent,
                                    .event = AMP_BINDING_EV_UNBIND,
                                    .now_ms = spec->now_ms,
                                    .input = spec->input};
    if (amp_binding_get(s, spec->agent, &now, err) < 0)
        return -1;
    bool bound = amp_binding_is_bound(&now);
    int known = bound && spec->repo ? is_of_repo(g, spec->repo, &now, err) : 1;
    if (known < 0)
        return -1;
    if (!known && spec->remove)
        return amp_fail(err, AMP_NO, worktree_unknown,
                        "%s: not removed: a worktree of %s, not of this repository", now.worktree,
                        now.repo);
    if (bound && known && amp_switch_leave(g, &now, err) < 0)
        return -1;
    if (bound && known && now.worktree[0]) {
        struct search w = {.path = now.worktree};
        struct amp_error gone;
        /* Without its repository, the worktree is gone, too. */
        if (amp_git_worktrees(g, now.repo, match_path, &w, &gone) < 0 &&
            !amp_code_is(gone.code, repo_not_git)) {
            if (err)
                *err = gone;
            return -1;
        }
        bool ours = w.hit && strcmp(w.found.agent, spec->agent) == 0;
        if (ours && spec->remove &&
            amp_git_worktree_remove(g, now.repo, now.worktree, spec->force, err) < 0)
            return -1;
        if (ours && !spec->remove && amp_marker_drop(w.found.gitdir, spec->agent, err))
            return -1;
    }
    return amp_binding_step(s, &step, out, err) < 0 ? -1 : reservations_end(s, g, &now, err);
}

/* Every URL begins with the empty prefix, so every push goes to a scheme that does not exist; a
 * fetch keeps its URL. A remote with its own pushurl is not rewritten; the pre-push hook refuses
 * it. The settings are given in both ways that git knows, so that changing one is not enough;
 * push.h has a third one, without the environment. */
const char *const *amp_agent_git_env(void)
{
    static const char *const env[] = {
        "GIT_CONFIG_PARAMETERS='url.amp-refused://.pushInsteadOf=' 'push.default=nothing' "
        "'alias.remote-amp-refused=" AMP_PUSH_REFUSAL "'",
        "GIT_CONFIG_COUNT=3",
        "GIT_CONFIG_KEY_0=url.amp-refused://.pushInsteadOf",
        "GIT_CONFIG_VALUE_0=",
        "GIT_CONFIG_KEY_1=push.default",
        "GIT_CONFIG_VALUE_1=nothing",
        "GIT_CONFIG_KEY_2=alias.remote-amp-refused",
        "GIT_CONFIG_VALUE_2=" AMP_PUSH_REFUSAL,
        NULL,
    };
    return env;
}
