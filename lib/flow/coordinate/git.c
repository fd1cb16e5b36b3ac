/* What the coordinator asks of git, outside the store's turn because it may take its time. */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/clock.h>

#include "flow/coordinate/coordinator.h"

static bool is_local_git(const char *repo)
{
    char path[PATH_MAX];
    struct stat sb;
    size_t n = strlen(repo);
    if (*repo != '/' || n + 6 > sizeof path)
        return false;
    memcpy(path, repo, n);
    memcpy(path + n, "/.git", 6);
    if (stat(path, &sb) == 0)
        return true;
    memcpy(path + n, "/HEAD", 6);
    return stat(path, &sb) == 0;
}

static struct amp_git *git(struct amp_coordinator *c, struct amp_error *err)
{
    const struct amp_git_options opt = {.stop = c->opt->stop};
    if (!c->git && amp_git_open(&opt, &c->git, err) < 0)
        return NULL;
    return c->git;
}

int amp_coordinator_find_base(struct amp_coordinator *c, struct amp_step *st, struct amp_error *why)
{
    char repo[PATH_MAX], rev[256] = "HEAD";
    struct amp_error err = {0};
    const struct amp_view *v = st->view;
    if (!amp_span_copy(v->body.dispatch.repo, repo, sizeof repo) || !is_local_git(repo))
        return 0;
    json_t *constraints =
        v->body.dispatch.constraints.n ? amp_json_load(v->body.dispatch.constraints, NULL) : NULL;
    const char *base = json_string_value(json_object_get(constraints, "base"));
    if (base && *base)
        amp_span_copy(amp_span_str(base), rev, sizeof rev);
    json_decref(constraints);
    amp_coordinator_pause(c);
    if (!git(c, &err) || amp_git_resolve(c->git, repo, rev, st->base, &err) < 0) {
        st->base[0] = 0;
        if (err.status == AMP_INTERRUPTED) {
            *why = err;
            return -1;
        }
        c->opt->warn("%.*s: the base %s is not known: %s", (int)v->task.n, v->task.p, rev,
                     err.what);
    }
    return 0;
}

/* Whether the step that the decision makes puts the branch back. */
static bool goes_back(struct amp_task *t)
{
    const struct amp_task_part *p = amp_task_turn(t);
    struct amp_fsm_result r;
    return !p || (amp_fsm_step(&amp_qa_fsm, p->state, AMP_QA_EV_ROLLBACK, 0, &r, NULL) == 0 &&
                  (r.effects & AMP_QA_DO_BACK));
}

/* The branch goes back before the decision is recorded: done twice it is the same. */
int amp_coordinator_roll_back(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_task t;
    struct amp_error why = {0};
    char commit[AMP_OID_MAX], op[128], ref[AMP_MSG_ID_MAX], keep[AMP_KEEP_REF_MAX];
    if (amp_task_load(c->store, v->task, &t, NULL, err) < 0)
        return -1;
    /* What the step will refuse must not have moved the branch. */
    if (amp_task_ended(t.state) || t.n_parts == 0 || !goes_back(&t) ||
        !amp_span_copy(v->body.decision.ref, ref, sizeof ref) || amp_task_lists(t.decided, ref) ||
        (!st->ref_open && !amp_task_waits_for(&t, ref))) {
        amp_task_release(&t);
        return 0;
    }
    amp_coordinator_pause(c);
    if (!amp_span_copy(v->body.decision.commit, commit, sizeof commit) ||
        !amp_span_copy(v->body.decision.op, op, sizeof op) || !is_local_git(t.repo))
        amp_fail(&why, AMP_NO, "repo_not_git", "%s is no git repository", t.repo);
    else if (git(c, &why)) {
        struct amp_git_rollback_spec spec = {.repo = t.repo,
                                             .branch = t.branch,
                                             .commit = commit,
                                             .name = op,
                                             .email = "operator@operators.invalid",
                                             .keep = keep};
        amp_git_keep_ref("rollback", amp_now_ms(), keep);
        int rc = amp_git_rollback(c->git, &spec, &why);
        if (rc > 0)
            c->opt->warn("%.*s: what was on %s is kept as %s", (int)v->task.n, v->task.p, t.branch,
                         keep);
        if (rc >= 0) {
            amp_task_release(&t);
            return 0;
        }
    }
    if (why.status == AMP_INTERRUPTED) {
        *err = why;
        amp_task_release(&t);
        return -1;
    }
    amp_step_refuse(st, why.code, "the branch was not put back: %s", why.what);
    amp_task_release(&t);
    return 0;
}
