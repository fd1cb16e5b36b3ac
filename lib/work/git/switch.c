/* Requests, approvals and ends of switches. */
#include "work/git/switch.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/id.h>

#include "base/codes.h"
#include "work/git/marker.h"
#include "work/git/push.h"

int amp_switch_path(struct amp_git *g, const char *repo, const char *root, const char *id,
                    char out[PATH_MAX], const char **name, struct amp_error *err)
{
    char here[PATH_MAX + 16], real[PATH_MAX];
    struct amp_git_info info;
    if (amp_git_info(g, repo, &info, err) < 0)
        return -1;
    size_t n = strlen(info.common);
    if (n > 5 && strcmp(info.common + n - 5, "/.git") == 0)
        info.common[n - 5] = '\0';
    snprintf(here, sizeof here, "%s%s", root ? root : info.common, root ? "" : ".worktrees");
    /* The root itself is not a worktree. */
    if (amp_path_inside(here, id, out, err) == 0 && amp_path_canonical(here, real, err) == 0 &&
        strcmp(real, out) != 0) {
        if (name)
            *name = out + strlen(real) + 1;
        return 0;
    }
    return amp_fail(err, AMP_NOPERM, permission_denied, "worktree_id %s: outside %s", id, here);
}

struct target {
    const char *path;
    struct amp_git_worktree found;
    bool hit;
};

static int is_target(void *ctx, const struct amp_git_worktree *w)
{
    struct target *t = ctx;
    t->hit = strcmp(w->path, t->path) == 0 && !w->missing && !w->foreign && !w->main;
    if (t->hit)
        t->found = *w;
    return t->hit;
}

/* Finds the target, which must exist inside the root and be free; t->path is in `path`. */
static int target_find(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                       const struct amp_binding *now, char path[PATH_MAX], struct target *t,
                       struct amp_error *err)
{
    const char *id = spec->target && *spec->target ? spec->target : now->other;
    const char *repo = *now->repo ? now->repo : spec->repo;
    char holder[128];
    *t = (struct target){.path = path};
    if (!*id)
        return amp_fail(err, AMP_NO, validation_error, "target_worktree_id: missing");
    if (amp_switch_path(g, repo, spec->root, id, path, NULL, err) < 0 ||
        amp_git_worktrees(g, repo, is_target, t, err) < 0)
        return -1;
    if (!t->hit)
        return amp_fail(err, AMP_NO, worktree_not_found, "%s: no worktree of %s", path, repo);
    if (t->found.locked)
        return amp_fail(err, AMP_NO, worktree_locked, "%s: the worktree is locked", path);
    int held = amp_binding_holder(s, path, spec->agent, false, holder, err);
    if (held < 0)
        return -1;
    if (!held && (!*t->found.agent || strcmp(t->found.agent, spec->agent) == 0))
        return 0;
    return amp_fail(err, AMP_NO, worktree_locked, "%s: held by %s", path,
                    held ? holder : t->found.agent);
}

int amp_switch_request(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                       struct amp_binding *out, struct amp_error *err)
{
    struct amp_binding_step step = {.agent = spec->agent,
                                    .event = AMP_BINDING_EV_SWITCH_REQUEST,
                                    .now_ms = spec->now_ms,
                                    .input = spec->input};
    struct amp_binding now;
    struct target t;
    if (amp_binding_get(s, spec->agent, &now, err) < 0)
        return -1;
    if (now.state != AMP_BINDING_BOUND_HOME)
        return amp_binding_step(s, &step, out, err); /* fails: illegal_transition */
    if (target_find(s, g, spec, &now, step.with.other, &t, err) < 0)
        return -1;
    if (strcmp(step.with.other, now.worktree) == 0)
        return amp_fail(err, AMP_NO, validation_error, "%s: the agent's own worktree",
                        now.worktree);
    step.with.person = spec->person;
    step.with.ttl_ms = spec->ttl_ms;
    amp_uuid4(step.with.invocation);
    return amp_binding_step(s, &step, out, err);
}

int amp_switch_approve(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                       struct amp_binding *out, struct amp_error *err)
{
    struct amp_binding_step step = {.agent = spec->agent,
                                    .event = AMP_BINDING_EV_SWITCH_APPROVE,
                                    .now_ms = spec->now_ms,
                                    .ttl_ms = spec->ttl_ms,
                                    .input = spec->input};
    struct amp_binding now;
    struct amp_error late;
    struct target t;
    if (amp_binding_get(s, spec->agent, &now, err) < 0)
        return -1;
    if (strcmp(spec->by, spec->agent) == 0)
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "%s: an agent cannot approve its own switch", spec->agent);
    if (now.state != AMP_BINDING_SWITCH_PENDING)
        return amp_binding_step(s, &step, out, err); /* fails: illegal_transition */
    if (target_find(s, g, spec, &now, step.with.other, &t, err) < 0)
        return -1;
    if (strcmp(now.other, step.with.other) != 0)
        return amp_fail(err, AMP_NO, validation_error, "%s was requested, not %s", now.other,
                        step.with.other);
    amp_span_copy(amp_span_str(spec->by), step.with.by, sizeof step.with.by);
    if (amp_marker_put(t.found.gitdir, spec->agent, t.found.branch, NULL, err) < 0)
        return -1;
    if (amp_push_set(step.with.other, false, err) == 0 && amp_binding_step(s, &step, out, err) == 0)
        return 0;
    /* Rejected, ended or taken meanwhile. The marker stays if another approval was faster. */
    if (amp_binding_get(s, spec->agent, &now, &late) == 0 &&
        now.state != AMP_BINDING_BOUND_NON_HOME)
        amp_marker_drop(t.found.gitdir, spec->agent, NULL);
    return -1;
}

int amp_switch_leave(struct amp_git *g, const struct amp_binding *b, struct amp_error *err)
{
    struct target t = {.path = b->other};
    struct amp_error gone;
    if (!*b->other)
        return 0;
    if (amp_git_worktrees(g, b->repo, is_target, &t, &gone) < 0) {
        /* Without its repository, the worktree is gone, too. */
        if (amp_code_is(gone.code, repo_not_git))
            return 0;
        if (err)
            *err = gone;
        return -1;
    }
    return t.hit ? amp_marker_drop(t.found.gitdir, b->agent, err) : 0;
}

int amp_switch_end(struct amp_store *s, struct amp_git *g, const struct amp_switch_spec *spec,
                   uint8_t event, struct amp_binding *out, struct amp_error *err)
{
    const struct amp_binding_step step = {
        .agent = spec->agent, .event = event, .now_ms = spec->now_ms, .input = spec->input};
    struct amp_binding now;
    if (amp_binding_get(s, spec->agent, &now, err) < 0)
        return -1;
    bool pending = now.state == AMP_BINDING_SWITCH_PENDING;
    bool away = now.state == AMP_BINDING_BOUND_NON_HOME;
    if ((event == AMP_BINDING_EV_SWITCH_REJECT ? pending : away) &&
        amp_switch_leave(g, &now, err) < 0)
        return -1;
    return amp_binding_step(s, &step, out, err);
}
