/* The Reviewer's work on one review_request. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "agent/registry.h"
#include "flow/work/review_verdict.h"
#include "flow/work/verify.h"
#include "message/ledger/ledger.h"
#include "message/settle/answer.h"
#include "protocol/amp/compose.h"
#include "task/record.h"
#include "worktree/patch.h"
#include "worktree/worktree.h"

static const struct amp_review_options *options(struct amp_worker *w)
{
    return w->ctx;
}

static int refuse(struct amp_worker *w, const struct amp_view *v, const char *code, const char *why,
                  bool retryable, struct amp_error *err)
{
    return amp_worker_refuse(w, v, code, why, retryable, NULL, err) ? -1 : 1;
}

static int admit(struct amp_worker *w, const struct amp_view *v, const char *bad,
                 struct amp_error *err)
{
    const struct amp_span refs[] = {v->body.review.dispatch_ref, v->body.review.result_ref};

    if (bad)
        return refuse(w, v, bad, "The review request does not pass the checks", false, err);
    int suspended = amp_task_suspended(w->store, v->task, err);
    if (suspended < 0)
        return -1;
    if (suspended)
        return refuse(w, v, "suspended", "The task is suspended until the admin decides", true,
                      err);
    for (int i = 0; i < 2; i++) {
        AMP_BUF struct amp_buf mem = {0};
        struct amp_message_rec rec;
        amp_buf_init(&mem, 33u << 20);
        if (amp_message_find(w->store, refs[i], &mem, &rec, err))
            return -1;
        if (!rec.found)
            return refuse(w, v, "unknown_ref",
                          i ? "The task_result cannot be read in the state"
                            : "The original dispatch cannot be read in the state",
                          true, err);
    }
    return 0;
}

static void release(struct amp_judged *k)
{
    json_decref(k->dispatch);
    json_decref(k->result);
    json_decref(k->criteria);
    json_decref(k->fixes);
    amp_buf_release(&k->criteria_text);
    amp_buf_release(&k->context_text);
    amp_git_refs_release(&k->refs);
}

/* Criteria that the executor could not judge come first. */
static int order_criteria(struct amp_judged *k, const struct amp_spans *criteria, const json_t *met,
                          struct amp_error *err)
{
    k->criteria = json_array();
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < criteria->n; i++) {
            json_t *m = json_array_get(met, i);
            bool open = !m || json_is_null(m);
            if (open == (pass == 0))
                json_array_append_new(k->criteria,
                                      json_stringn(criteria->v[i].p, criteria->v[i].n));
        }
    }
    amp_buf_init(&k->criteria_text, 4 << 20);
    return amp_json_dump(k->criteria, &k->criteria_text, err);
}

/* The messages that the request refers to. */
static int look_up(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_view d, r;
    const struct amp_span dref = k->v->body.review.dispatch_ref,
                          rref = k->v->body.review.result_ref;

    amp_buf_init(&mem, 33u << 20);
    amp_span_copy(k->v->task, k->task, sizeof k->task);
    amp_span_copy(dref, k->dispatch_ref, sizeof k->dispatch_ref);
    amp_span_copy(rref, k->result_ref, sizeof k->result_ref);
    if (amp_worker_find(w, w->ref_reader, rref, &mem, &r, err) ||
        !(k->result = amp_json_load(r.line, err)))
        return -1;
    amp_span_copy(r.body.result.subtask, k->subtask, sizeof k->subtask);
    amp_span_copy(r.body.result.commit, k->commit, sizeof k->commit);
    if (amp_worker_find(w, w->ref_reader, dref, &mem, &d, err) ||
        !(k->dispatch = amp_json_load(d.line, err)))
        return -1;
    amp_span_copy(d.body.dispatch.repo, k->repo, sizeof k->repo);
    amp_span_copy(d.body.dispatch.branch, k->branch, sizeof k->branch);
    json_t *own = json_object_get(json_object_get(k->result, "payload"), "self_assessment");
    return order_criteria(k, &d.body.dispatch.criteria, json_object_get(own, "criteria_met"), err);
}

/* What the diff is against: the request's own range, else the task's base. */
static int find_range(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    char commit[AMP_OID_MAX] = "", from[AMP_OID_MAX * 4];
    bool found;
    struct amp_task t;

    k->attempt = 1;
    bool local = amp_diff_url_parse(k->v->body.review.diff_url, k->base, sizeof k->base, commit,
                                    sizeof commit);
    if (amp_task_load(w->store, k->v->task, &t, &found, err) < 0)
        return -1;
    struct amp_task_part *part = amp_task_part(&t, amp_span_str(k->subtask));
    if (part && part->attempts > 0)
        k->attempt = part->attempts;
    if (found && !local)
        snprintf(k->base, sizeof k->base, "%s", t.base);
    amp_task_release(&t);
    if (!*k->commit)
        snprintf(k->commit, sizeof k->commit, "%s", commit);
    if (amp_git_resolve(w->git, k->repo, *k->commit ? k->commit : k->branch, k->commit, err))
        return -1;
    char base[AMP_OID_MAX];
    snprintf(from, sizeof from, "%s", *k->base ? k->base : k->commit);
    if (amp_git_resolve(w->git, k->repo, from, base, err))
        return -1;
    snprintf(k->base, sizeof k->base, "%s", base);
    return 0;
}

static int place_bind(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    const struct amp_worker_place place = {k->repo, NULL, k->commit, true};
    return amp_worker_bind(w, &place, k->worktree, sizeof k->worktree, err);
}

static int contract(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    struct amp_git_diff d;
    json_t *c = json_pack("{s:O, s:O}", "dispatch", k->dispatch, "result", k->result);

    amp_buf_init(&k->context_text, 64u << 20);
    int rc = amp_json_dump(c, &k->context_text, err);
    json_decref(c);
    if (rc)
        return -1;
    k->contract = (struct amp_contract){
        .role = w->opt->role,
        .agent = w->opt->agent,
        .task = k->task,
        .subtask = k->subtask,
        .attempt = k->attempt,
        .worktree = k->worktree,
        .branch = k->branch,
        .base = k->base,
        .state_dir = w->state_dir,
        .message = k->v->line,
        .criteria = amp_buf_span(&k->criteria_text),
        .diff = AMP_SPAN(""),
        .context = amp_buf_span(&k->context_text),
        .extra = amp_agent_git_env(),
    };
    if (amp_attempt_make(&k->contract, &k->files, err) ||
        amp_git_diff(w->git, k->repo, NULL, k->base, k->commit, k->files.diff, &d, err))
        return -1;
    amp_git_diff_release(&d);
    return 0;
}

static int approve(struct amp_worker *w, struct amp_judged *k, struct amp_span line,
                   struct amp_error *err)
{
    char tree[AMP_OID_MAX], id[256];
    const char *commit = *k->fixed ? k->fixed : k->commit;
    const struct amp_check_options opt = {0};
    struct amp_view v;

    if (amp_git_tree(w->git, k->repo, commit, tree, err) ||
        amp_reader_line(w->own_reader, line, &opt, &v, NULL, NULL, err) < 0)
        return -1;
    amp_span_copy(v.id, id, sizeof id);
    const struct amp_approval a = {tree, k->task, k->subtask, commit, id};
    return amp_approval_record(w->store, &a, err);
}

/* No verdict, and no attempts are left: the coordinator is told; nobody was judged. */
static int give_up(struct amp_worker *w, struct amp_job *job, struct amp_judged *k,
                   const char *code, const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    bool late;
    struct amp_error e;
    struct amp_job_step step = {
        .event = job->state == AMP_JOB_RUNNING ? AMP_JOB_EV_BREAK : AMP_JOB_EV_REFUSE,
        .why = why,
        .most = 0,
    };

    amp_buf_init(&nack, 1 << 18);
    w->opt->note("%s: %s: no verdict: %s", k->task, k->subtask, why);
    if (amp_compose_nack(k->v, AMP_STAGE_FAILED, w->opt->role, code, why, "agent_contract", true,
                         amp_now_ms(), &nack, err))
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&nack)}, 1};
    if (amp_worker_step(w, job, &step, &lines, err))
        return -1;
    amp_settle_ack(w->store, k->v->id, AMP_STAGE_FAILED, w->opt->agent, amp_span_str(code),
                   amp_now_ms(), &late, &e);
    return amp_worker_finish(w, AMP_AGENT_EV_FAIL, err);
}

static int tripped(struct amp_worker *w, struct amp_job *job, struct amp_judged *k,
                   const char *what, struct amp_error *err)
{
    static const char *const suggested[] = {"Set the branch back", "Terminate the task", NULL};
    AMP_BUF struct amp_buf line = {0};
    char id[256];
    const char *affected[] = {id, NULL};

    amp_buf_init(&line, 1 << 18);
    amp_span_copy(k->v->id, id, sizeof id);
    const struct amp_escalation_args esc = {
        .type = "branch_violation",
        .from = "reviewer",
        .severity = AMP_LEVEL_CRITICAL,
        .triggered_by = "reviewer",
        .task_id = k->task,
        .description = what,
        .affected = affected,
        .suggested = suggested,
        .task_status = "suspended",
        .last_successful = "",
        .now_ms = amp_now_ms(),
    };
    if (amp_worker_escalate(w, &esc, &line, err))
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    struct amp_job_step step = {.event = AMP_JOB_EV_REFUSE, .why = "branch_violation"};
    if (amp_worker_step(w, job, &step, &lines, err))
        return -1;
    return amp_worker_finish(w, AMP_AGENT_EV_FAIL, err);
}

static int conclude(struct amp_worker *w, struct amp_job *job, struct amp_judged *k,
                    enum amp_attempt_end end, const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    bool approved, spent;
    const struct amp_judgement j = {end, why, options(w)->verdict_by_exit};
    struct amp_job_step step = {.event = AMP_JOB_EV_ANSWER, .why = why};

    amp_buf_init(&line, 16u << 20);
    if (amp_judged_verdict(w, k, &j, &line, &approved, err)) {
        if (err->status != AMP_NO)
            return -1;
        struct amp_error cause = *err;
        if (amp_worker_again(w, job, AMP_END_MACHINERY, 0, cause.what, &spent, err))
            return -1;
        return spent ? give_up(w, job, k, cause.code, cause.what, err) : 0;
    }
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    if (approved && approve(w, k, (struct amp_span){line.data, line.len - 1}, err))
        return -1;
    if (amp_worker_step(w, job, &step, &lines, err))
        return -1;
    return amp_worker_finish(w, AMP_AGENT_EV_COMPLETE, err);
}

static int attempt(struct amp_worker *w, struct amp_job *job, struct amp_judged *k,
                   struct amp_error *err)
{
    enum amp_attempt_end end;
    char why[256], what[512];
    bool spent;
    struct amp_job_step step = {.event = AMP_JOB_EV_START};

    if (amp_worker_step(w, job, &step, NULL, err))
        return -1;
    w->opt->progress("%s: %s reviews %s at %.12s", k->task, w->opt->agent, k->subtask, k->commit);
    if (amp_git_refs(w->git, k->repo, true, &k->refs, err) || contract(w, k, err) ||
        amp_worker_attempt(w, &k->contract, &k->files, k->worktree, &end, why, sizeof why,
                           &k->wall_ms, err))
        return -1;
    int trip = amp_worker_tripped(w, k->repo, &k->refs, what, sizeof what, err);
    if (trip)
        return trip < 0 ? -1 : tripped(w, job, k, what, err);
    if (end == AMP_END_DONE || (end == AMP_END_FAILED && options(w)->verdict_by_exit))
        return conclude(w, job, k, end, why, err);
    int64_t wait = end == AMP_END_REPEAT ? amp_worker_retry_after(w, &k->files) : 0;
    /* A reviewer that fails has not judged: that is no rejection. */
    if (amp_worker_again(w, job, end == AMP_END_FAILED ? AMP_END_MACHINERY : end, wait, why, &spent,
                         err))
        return -1;
    return spent ? give_up(w, job, k, "no_verdict", why, err) : 0;
}

static int work(struct amp_worker *w, struct amp_job *job, const struct amp_view *v,
                struct amp_error *err)
{
    struct amp_judged *k = calloc(1, sizeof *k);
    int rc = -1;

    if (!k)
        return amp_fail_memory(err);
    k->v = v;
    int claimed = amp_worker_claim(w, job, v, (struct amp_span){NULL, 0}, err);
    if (claimed) {
        rc = claimed == 2 ? 0 : claimed;
    } else if (look_up(w, k, err) || find_range(w, k, err) || place_bind(w, k, err)) {
        if (err->status != AMP_INTERNAL && err->status != AMP_TEMPFAIL &&
            err->status != AMP_IOERR && err->status != AMP_INTERRUPTED) {
            struct amp_error cause = *err;
            rc = give_up(w, job, k, cause.code, cause.what, err);
        }
    } else {
        rc = attempt(w, job, k, err);
    }
    release(k);
    free(k);
    return rc;
}

int amp_flow_review(struct amp_store *s, const struct amp_review_options *opt,
                    enum amp_status *status, struct amp_error *err)
{
    static const struct amp_worker_role role = {AMP_KIND_REVIEW, true, admit, work};
    struct amp_review_options mine = *opt;

    return amp_worker_run(s, &mine.worker, &role, &mine, status, err);
}
