/* Decides about the input of a coding agent's hook. */
#include "worktree/call/call.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <amp/base/file.h>

#include "base/file/repository.h"
#include "worktree/paths/glob.h"
#include "worktree/paths/reserved.h"
#include "worktree/stopped.h"
#include "worktree/worktree.h"

int call_refuse(struct amp_call_refusal *out, const char *code, const char *fmt, ...)
{
    va_list ap;
    snprintf(out->code, sizeof out->code, "%s", code);
    va_start(ap, fmt);
    vsnprintf(out->what, sizeof out->what, fmt, ap);
    va_end(ap);
    return 1;
}

int call_repo_find(const struct amp_call *c, const char *dir, struct call_repo *out,
                   struct amp_error *err)
{
    struct amp_repository r;
    memset(out, 0, sizeof *out);
    amp_rule_default(&out->rule);
    amp_rule_caller(c->agent ? c->agent : "", c->role, -1, &out->caller);
    if (amp_repository_find(dir, &r, err) < 0)
        return -1;
    if (!r.found)
        return 0;
    out->found = true;
    memcpy(out->top, r.top, sizeof out->top);
    memcpy(out->gitdir, r.gitdir, sizeof out->gitdir);
    memcpy(out->common, r.common, sizeof out->common);
    amp_repository_text(out->gitdir, "HEAD", "ref: ", out->head, sizeof out->head);
    AMP_CLOSE int gitdir = open(out->gitdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AMP_CLOSE int common = open(out->common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (gitdir < 0 || common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", out->gitdir);
    amp_rule_caller(c->agent ? c->agent : "", c->role, gitdir, &out->caller);
    return amp_rule_load(&out->rule, common, err);
}

/* ---- files that a tool writes ---- */

static bool is_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return n && strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* The rules about paths; path is relative to the top of the working tree. */
static int file_rules_check(const struct call_repo *r, const char *path,
                            struct amp_call_refusal *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf reserved = {0};
    struct amp_reservation other;
    for (int i = 0; r->rule.paths[i]; i++)
        if (amp_glob_match(amp_span_str(r->rule.paths[i]), amp_span_str(path)))
            return call_refuse(out, "path_forbidden",
                               "%.300s: forbidden path (%.100s): refused to %s", path,
                               r->rule.paths[i], r->caller.name);
    AMP_CLOSE int common = open(r->common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", r->common);
    if (amp_reserved_load(&reserved, common, err) < 0)
        return -1;
    if (amp_reserved_by(&reserved, amp_span_str(r->caller.name), amp_span_str(path), &other))
        return call_refuse(out, "path_reserved", "%.300s: reserved for %.*s (%.*s): refused to %s",
                           path, AMP_CLIP(other.holder, 100), AMP_CLIP(other.pattern, 100),
                           r->caller.name);
    return 0;
}

static int file_check(const struct amp_call *c, const char *name, struct amp_call_refusal *out,
                      struct amp_error *err)
{
    struct call_repo r;
    char text[2 * PATH_MAX], path[PATH_MAX], dir[PATH_MAX];
    snprintf(text, sizeof text, "%s/%s", *name == '/' ? "" : c->cwd, name);
    if (!*name || strlen(name) >= PATH_MAX || amp_path_canonical(text, path, NULL) < 0)
        return call_refuse(out, "call_malformed", "%.200s: not a path", name);
    memcpy(dir, path, sizeof dir);
    char *slash = strrchr(dir, '/');
    bool git = strstr(path, "/.git/") || (slash && strcmp(slash, "/.git") == 0);
    if (slash)
        *slash = '\0';
    if (!git && call_repo_find(c, dir, &r, err) < 0)
        return -1;
    if (git || (r.found && (is_below(path, r.gitdir) || is_below(path, r.common))))
        return call_refuse(out, "guard_bypass", "%.300s: in a git directory; only git writes there",
                           path);
    if (!r.found || !r.top[0] || !is_below(path, r.top) || !path[strlen(r.top)])
        return 0;
    return file_rules_check(&r, path + strlen(r.top) + 1, out, err);
}

/* ---- the input ---- */

int amp_call_suspended(const struct amp_call *c, struct amp_call_refusal *out,
                       struct amp_error *err)
{
    struct call_repo r;
    char why[300];
    if (!c->cwd || c->cwd[0] != '/')
        return amp_fail(err, AMP_DATAERR, "call_malformed", "cwd is not an absolute path");
    if (call_repo_find(c, c->cwd, &r, err) < 0)
        return -1;
    if (!r.found)
        return 0;
    AMP_CLOSE int common = open(r.common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", r.common);
    int rc = amp_stopped_is(common, r.caller.name, why, sizeof why, err);
    return rc > 0 ? call_refuse(out, "suspended", "%.100s is suspended by %s", r.caller.name, why)
                  : rc;
}

int amp_call_input(const struct amp_call *c, struct amp_span json, struct amp_call_refusal *out,
                   struct amp_error *err)
{
    AMP_CALL_EVENT struct amp_call_event e = {0};
    AMP_PLAIN line = {0};
    char dir[PATH_MAX];
    struct amp_call call = *c;
    memset(out, 0, sizeof *out);
    if (amp_call_event_read(json, AMP_CLI_NONE, &e, err) < 0 || amp_plain_read(&e, &line, err) < 0)
        return -1;
    if (e.cwd.n) {
        if (!amp_span_copy(e.cwd, dir, sizeof dir))
            dir[0] = '\0';
        call.cwd = dir;
    }
    bool reads = e.kind == AMP_CALL_READ || e.kind == AMP_CALL_SEARCH;
    int rc = amp_call_suspended(&call, out, err);
    if (!rc)
        rc = call_git(&call, &line, out, err);
    if (!rc && e.odd_patch)
        rc = call_refuse(out, "patch_unreadable", "a line of the patch with *** is not understood");
    for (size_t i = 0; i < e.n_paths && !rc && !reads; i++)
        rc = file_check(&call, e.paths[i], out, err);
    return rc;
}
