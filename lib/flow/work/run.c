/*
 * The Executor's work on one dispatch.
 *
 * A repeated attempt begins where the first one began: what a killed agent left is kept
 * under a ref, and what it committed is taken back from the branch. A finished attempt is
 * committed under the agent's name before anything is measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "flow/work/run.h"
#include "flow/work/run_result.h"
#include "protocol/amp/compose.h"
#include "task/record.h"
#include "json/record.h"

static const struct amp_run_options *options(struct amp_worker *w)
{
    return w->ctx;
}

/* An escalation of the executor about this message's task. */
static struct amp_escalation_args about(const struct amp_view *v, char *task, size_t task_size,
                                        char *id, size_t id_size, const char **affected,
                                        const char *const *suggested)
{
    amp_span_copy(v->task, task, task_size);
    amp_span_copy(v->id, id, id_size);
    affected[0] = id;
    affected[1] = NULL;
    return (struct amp_escalation_args){
        .from = "executor",
        .severity = AMP_LEVEL_CRITICAL,
        .triggered_by = "executor",
        .task_id = task,
        .affected = affected,
        .suggested = suggested,
        .task_status = "suspended",
        .last_successful = "",
        .now_ms = amp_now_ms(),
    };
}

static int admit(struct amp_worker *w, const struct amp_view *v, const char *bad,
                 struct amp_error *err)
{
    static const char *const suggested[] = {"Dispatch the task again with a branch of its own",
                                            "Terminate the task", NULL};
    char task[256], id[256], why[512];
    const char *affected[2];
    struct amp_span branch = v->body.dispatch.branch;

    if ((bad && !strcmp(bad, "branch_violation")) ||
        (!bad && amp_branch_is_protected(branch, w->opt->protected_))) {
        struct amp_escalation_args esc =
            about(v, task, sizeof task, id, sizeof id, affected, suggested);
        snprintf(why, sizeof why, "The dispatch names the protected branch %.*s", (int)branch.n,
                 branch.p ? branch.p : "");
        esc.type = "branch_violation";
        esc.description = why;
        return amp_worker_refuse(w, v, "branch_violation", why, false, &esc, err) ? -1 : 1;
    }
    if ((bad && !strcmp(bad, "empty_acceptance_criteria")) ||
        (!bad && !v->body.dispatch.criteria.n))
        return amp_worker_refuse(w, v, "empty_acceptance_criteria",
                                 "Please complete the acceptance criteria: there are none", true,
                                 NULL, err)
                   ? -1
                   : 1;
    if (bad)
        return amp_worker_refuse(w, v, bad, "The dispatch does not pass the checks", false, NULL,
                                 err)
                   ? -1
                   : 1;
    int suspended = amp_task_suspended(w->store, v->task, err);
    if (suspended < 0)
        return -1;
    if (suspended)
        return amp_worker_refuse(w, v, "suspended", "The task is suspended until the admin decides",
                                 true, NULL, err)
                   ? -1
                   : 1;
    return 0;
}

/* Where no coordinator records the base, the commit at which work on the branch began stays it. */
struct base {
    const char *commit;
};
static const struct amp_rec_field base_fields[] = {
    AMP_REC_EVER(CSTR, struct base, "commit", commit)};
AMP_REC_TABLE(base_rec, "the record of a branch's base", struct base, base_fields);

struct base_note {
    struct base base;
    struct amp_buf json;
};

static int note_base(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                     struct amp_error *err)
{
    struct base_note *n = ctx;

    if (now->found)
        return 1;
    int rc = amp_rec_write(&base_rec, &n->base, &n->json, err);
    c->event = "begin";
    c->to = "KNOWN";
    c->json = amp_buf_span(&n->json);
    return rc;
}

static int keep_base(struct amp_worker *w, struct amp_work *k, struct amp_error *err)
{
    struct base_note n = {.base = {k->start}};
    struct amp_store_rec rec;
    enum amp_store_outcome outcome;
    char id[600];

    snprintf(id, sizeof id, "%s/%s", k->task, k->branch);
    amp_buf_init(&n.json, AMP_REC_MAX);
    int rc =
        amp_store_update(w->store, "base", amp_span_str(id), NULL, note_base, &n, &outcome, err)
            ? -1
            : amp_store_get(w->store, "base", amp_span_str(id), &rec, err);
    if (rc == 0)
        rc = amp_rec_parse(&base_rec, rec.json, &n.json, &n.base, err);
    if (rc == 0 && !amp_span_copy(amp_span_str(n.base.commit), k->base, sizeof k->base))
        rc = amp_fail(err, AMP_DATAERR, "bad_record", "the base of %s is not a commit", id);
    amp_buf_release(&n.json);
    return rc;
}

/* The task's record, where there is a coordinator that keeps one: its base, the dispatch count. */
static int look_up(struct amp_worker *w, struct amp_work *k, struct amp_error *err)
{
    struct amp_task t;

    k->attempt = 1;
    snprintf(k->base, sizeof k->base, "%s", options(w)->base ? options(w)->base : "");
    if (amp_task_load(w->store, k->v->task, &t, NULL, err) < 0)
        return -1;
    if (*t.base)
        snprintf(k->base, sizeof k->base, "%s", t.base);
    struct amp_task_part *part = amp_task_part(&t, amp_span_str(k->subtask));
    if (part && part->attempts > 0)
        k->attempt = part->attempts;
    amp_task_release(&t);
    return 0;
}

static int prepare(struct amp_worker *w, struct amp_job *job, struct amp_work *k,
                   struct amp_error *err)
{
    char head[AMP_OID_MAX];
    bool again = job->start[0] != 0;

    const struct amp_worker_place place = {k->repo, k->branch, *k->base ? k->base : NULL, again};

    if (amp_worker_bind(w, &place, k->worktree, sizeof k->worktree, err) ||
        amp_git_resolve(w->git, k->worktree, "HEAD", head, err))
        return -1;
    if (again && strcmp(head, job->start)) {
        char email[256], ref[AMP_KEEP_REF_MAX];
        amp_agent_email(w->opt->agent, email, sizeof email);
        amp_git_keep_ref(w->opt->agent, amp_now_ms(), ref);
        const struct amp_git_rollback_spec back = {k->repo,       k->branch, job->start, head,
                                                   w->opt->agent, email,     ref};
        int rc = amp_git_rollback(w->git, &back, err);
        if (rc < 0)
            return -1;
        if (rc)
            w->opt->note("%s: back at %.12s; what the attempt before committed is kept as %s",
                         k->branch, job->start, ref);
        snprintf(head, sizeof head, "%s", job->start);
    }
    snprintf(k->start, sizeof k->start, "%s", head);
    return *k->base ? 0 : keep_base(w, k, err);
}

/* The agent is done, well or badly: commit, measure, judge the scope, answer. */
static int answer(struct amp_worker *w, struct amp_job *job, struct amp_work *k,
                  enum amp_attempt_end end, const char *why, struct amp_error *err)
{
    static const char *const suggested[] = {"Look at the branch", "Roll back to the base commit",
                                            "Dispatch the task again", "Terminate the task", NULL};
    AMP_BUF struct amp_buf line = {0}, esc_line = {0};
    char task[256], id[256], what[512];
    const char *affected[2];
    struct amp_worker_lines lines = {.n = 1};

    amp_buf_init(&line, 16 << 20);
    amp_buf_init(&esc_line, 1 << 18);
    struct amp_escalation_args esc =
        about(k->v, task, sizeof task, id, sizeof id, affected, suggested);
    int tripped = amp_worker_tripped(w, k->repo, &k->refs, what, sizeof what, err);
    if (tripped < 0 || amp_work_measure(w, k, err))
        return -1;
    if (tripped) {
        esc.type = "branch_violation";
        snprintf(k->trouble, sizeof k->trouble, "%s", what);
    } else if (amp_work_out_of_scope(k, options(w)->forbid[k->v->body.dispatch.risk], what,
                                     sizeof what)) {
        esc.type = "permission_denied";
        snprintf(k->trouble, sizeof k->trouble, "%s", what);
    }
    if (amp_work_result(w, k, end, why, &line, err))
        return -1;
    lines.v[0] = amp_buf_span(&line);
    if (esc.type) {
        esc.description = what;
        if (amp_worker_escalate(w, &esc, &esc_line, err))
            return -1;
        lines.v[lines.n++] = amp_buf_span(&esc_line);
    }
    struct amp_job_step step = {.why = why};
    step.event = (uint32_t)job->next + 1 < k->v->body.dispatch.n_subtasks ? AMP_JOB_EV_STEP
                                                                          : AMP_JOB_EV_ANSWER;
    if (amp_worker_step(w, job, &step, &lines, err))
        return -1;
    return amp_worker_finish(w, end == AMP_END_DONE ? AMP_AGENT_EV_COMPLETE : AMP_AGENT_EV_FAIL,
                             err);
}

static int attempt(struct amp_worker *w, struct amp_job *job, struct amp_work *k,
                   struct amp_error *err)
{
    enum amp_attempt_end end;
    char why[256];
    bool spent;
    struct amp_job_step step = {.event = AMP_JOB_EV_START, .start = k->start};

    if (amp_worker_step(w, job, &step, NULL, err) ||
        amp_git_refs(w->git, k->repo, true, &k->refs, err))
        return -1;
    w->opt->progress("%.*s: %s works on %s, attempt %lld", (int)k->v->task.n, k->v->task.p,
                     w->opt->agent, k->subtask, (long long)k->attempt);
    if (amp_work_contract(w, k, err) || amp_worker_attempt(w, &k->contract, &k->files, k->worktree,
                                                           &end, why, sizeof why, &k->wall_ms, err))
        return -1;
    if (end == AMP_END_REPEAT || end == AMP_END_MACHINERY || end == AMP_END_STOPPED) {
        int64_t wait = end == AMP_END_REPEAT ? amp_worker_retry_after(w, &k->files) : 0;
        /* A bound that was crossed does not wait for a proper end. */
        char what[512];
        int tripped = amp_worker_tripped(w, k->repo, &k->refs, what, sizeof what, err);
        if (tripped)
            return tripped < 0 ? -1 : answer(w, job, k, AMP_END_FAILED, why, err);
        if (amp_worker_again(w, job, end, wait, why, &spent, err))
            return -1;
        if (!spent)
            return 0;
        end = AMP_END_MACHINERY;
    }
    return answer(w, job, k, end, why, err);
}

/* What keeps the work from beginning is told to the coordinator as a failed result. */
static int cannot_begin(struct amp_worker *w, struct amp_job *job, struct amp_work *k,
                        const struct amp_error *cause, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_job_step start = {.event = AMP_JOB_EV_START}, step = {.why = cause->code};

    amp_buf_init(&line, 16 << 20);
    snprintf(k->trouble, sizeof k->trouble, "%s: %s", cause->code, cause->what);
    if (amp_work_result(w, k, AMP_END_MACHINERY, cause->what, &line, err) ||
        amp_worker_step(w, job, &start, NULL, err))
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    step.event = (uint32_t)job->next + 1 < k->v->body.dispatch.n_subtasks ? AMP_JOB_EV_STEP
                                                                          : AMP_JOB_EV_ANSWER;
    if (amp_worker_step(w, job, &step, &lines, err))
        return -1;
    return amp_worker_finish(w, AMP_AGENT_EV_FAIL, err);
}

static int work(struct amp_worker *w, struct amp_job *job, const struct amp_view *v,
                struct amp_error *err)
{
    struct amp_work *k = calloc(1, sizeof *k);
    int rc = -1;

    if (!k)
        return amp_fail_memory(err);
    k->v = v;
    amp_work_names(k, job->next);
    int claimed = amp_worker_claim(w, job, v, v->id, err);
    if (claimed) {
        rc = claimed == 2 ? 0 : claimed;
        goto out;
    }
    if (look_up(w, k, err))
        goto out;
    if (prepare(w, job, k, err)) {
        if (err->status == AMP_INTERNAL || err->status == AMP_TEMPFAIL ||
            err->status == AMP_IOERR || err->status == AMP_INTERRUPTED)
            goto out;
        struct amp_error cause = *err;
        rc = cannot_begin(w, job, k, &cause, err);
        goto out;
    }
    rc = attempt(w, job, k, err);
out:
    amp_work_release(k);
    free(k);
    return rc;
}

int amp_flow_run(struct amp_store *s, const struct amp_run_options *opt, enum amp_status *status,
                 struct amp_error *err)
{
    static const struct amp_worker_role role = {AMP_KIND_DISPATCH, false, admit, work};
    struct amp_run_options mine = *opt;

    return amp_worker_run(s, &mine.worker, &role, &mine, status, err);
}
