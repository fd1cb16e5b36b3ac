/* The Reviewer's work on one review_request. */
#include "work/loop/review/review.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/amp/compose.h"
#include "work/agent/work.h"
#include "work/attempt/walls/confined.h"
#include "work/git/repository/patch.h"
#include "work/git/worktree.h"
#include "work/loop/review/verdict.h"
#include "work/loop/review/verify.h"

static const struct amp_review_options *review_options(struct amp_worker *w)
{
    return w->ctx;
}

static int request_admit(struct amp_worker *w, const struct amp_view *v, const char *bad,
                         struct amp_error *err)
{
    const struct amp_span refs[] = {v->body.review.dispatch_ref, v->body.review.result_ref};
    AMP_BUF struct amp_buf mem = {0};

    amp_buf_init(&mem, 33u << 20);
    if (bad)
        return amp_worker_refuse(w, v, bad, "The review request is invalid", false, NULL, err);
    int rc = amp_worker_refuse_suspended(w, v, err);
    if (rc)
        return rc;
    for (int i = 0; i < 2; i++) {
        struct amp_message_rec rec;
        if (amp_message_find(w->store, refs[i], &mem, &rec, err) < 0)
            return -1;
        if (!rec.found)
            return amp_worker_refuse(w, v, AMP_CODE(unknown_ref),
                                     i ? "The task_result is not in the state directory"
                                       : "The original dispatch is not in the state directory",
                                     true, NULL, err);
    }
    return 0;
}

static void judged_release(struct amp_judged *k)
{
    json_decref(k->dispatch);
    json_decref(k->result);
    json_decref(k->fixes);
    json_decref(k->checked);
    amp_buf_release(&k->context);
    amp_assignment_release(&k->of);
}

/* The criteria as JSON; those that the executor could not judge come first. */
static int criteria_order(struct amp_judged *k, const struct amp_spans *criteria, const json_t *met,
                          struct amp_error *err)
{
    json_auto_t *all = json_array();

    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < criteria->n; i++) {
            json_t *m = json_array_get(met, i);
            bool open = !m || json_is_null(m);
            if (open == (pass == 0))
                json_array_append_new(all, json_stringn(criteria->v[i].p, criteria->v[i].n));
        }
    }
    amp_buf_init(&k->of.criteria, 4 << 20);
    return amp_json_dump(all, &k->of.criteria, err);
}

/* Reads the dispatch and the result that the request refers to. */
static int messages_find(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_view d, r;
    const struct amp_span dref = k->of.v->body.review.dispatch_ref,
                          rref = k->of.v->body.review.result_ref;

    amp_buf_init(&mem, 33u << 20);
    amp_span_copy(k->of.v->task, k->of.task, sizeof k->of.task);
    amp_span_copy(dref, k->dispatch_ref, sizeof k->dispatch_ref);
    amp_span_copy(rref, k->result_ref, sizeof k->result_ref);
    if (amp_worker_find(w, w->ref_reader, rref, &mem, &r, err) ||
        !(k->result = amp_json_load(r.line, err)))
        return -1;
    amp_span_copy(r.body.result.subtask, k->of.subtask, sizeof k->of.subtask);
    amp_span_copy(r.body.result.commit, k->of.commit, sizeof k->of.commit);
    if (amp_worker_find(w, w->ref_reader, dref, &mem, &d, err) ||
        !(k->dispatch = amp_json_load(d.line, err)))
        return -1;
    amp_span_copy(d.body.dispatch.repo, k->of.repo, sizeof k->of.repo);
    amp_span_copy(d.body.dispatch.branch, k->of.branch, sizeof k->of.branch);
    json_t *own = json_object_get(json_object_get(k->result, "payload"), "self_assessment");
    return criteria_order(k, &d.body.dispatch.criteria, json_object_get(own, "criteria_met"), err);
}

/* Finds the range of the diff: the request's, else from the task's base. */
static int range_find(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    char commit[AMP_OID_MAX] = "", from[sizeof of->base], base[AMP_OID_MAX];
    bool local = amp_diff_url_parse(of->v->body.review.diff_url, of->base, sizeof of->base, commit,
                                    sizeof commit);

    if (amp_assignment_look_up(w, of, !local, err) < 0)
        return -1;
    if (!*of->commit)
        snprintf(of->commit, sizeof of->commit, "%s", commit);
    if (amp_git_resolve(w->git, of->repo, *of->commit ? of->commit : of->branch, of->commit, err) <
        0)
        return -1;
    snprintf(from, sizeof from, "%s", *of->base ? of->base : of->commit);
    if (amp_git_resolve(w->git, of->repo, from, base, err) < 0)
        return -1;
    snprintf(of->base, sizeof of->base, "%s", base);
    return 0;
}

static int files_make(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    struct amp_git_diff d;
    json_auto_t *c = json_pack("{s:O, s:O}", "dispatch", k->dispatch, "result", k->result);

    amp_buf_init(&k->context, 64u << 20);
    if (amp_json_dump(c, &k->context, err) < 0)
        return -1;
    of->contract.diff = AMP_SPAN("");
    of->contract.context = amp_buf_span(&k->context);
    if (amp_assignment_files(w, of, err) < 0 ||
        amp_git_diff(w->git, of->repo, NULL, 0, of->base, of->commit, of->files.diff, &d, err) < 0)
        return -1;
    amp_git_diff_release(&d);
    return 0;
}

static int commit_approve(struct amp_worker *w, struct amp_judged *k, struct amp_span line,
                          struct amp_error *err)
{
    char id[256];
    const struct amp_check_options opt = {0};
    struct amp_view v;

    if (amp_reader_line(w->own_reader, line, &opt, &v, NULL, NULL, err) < 0)
        return -1;
    amp_span_copy(v.id, id, sizeof id);
    const struct amp_approval a = {*k->fixed ? k->fixed : k->of.commit, k->of.task, k->of.subtask,
                                   id};
    return amp_approval_record(w->store, &a, err);
}

/* Without a verdict and without further attempts the coordinator gets a nack. */
static int review_abandon(struct amp_worker *w, struct amp_item *job, struct amp_judged *k,
                          const char *code, const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    struct amp_queue_step step = {
        .event = AMP_QUEUE_EV_FAIL,
        .why = why,
        .code = job->trying && !*w->left.code ? AMP_CODE(machinery) : NULL,
    };

    amp_buf_init(&nack, 1 << 18);
    w->opt->note("%s: %s: no verdict: %s", k->of.task, k->of.subtask, why);
    if (amp_compose_nack(k->of.v, AMP_STAGE_FAILED, w->opt->role, code, why, "agent_contract", true,
                         amp_now_ms(), &nack, err))
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&nack)}, 1};
    if (amp_worker_step(w, job, &step, &lines, err))
        return -1;
    if (amp_settle_known(w->store, k->of.v->id, AMP_STAGE_FAILED, w->opt->agent, amp_span_str(code),
                         amp_now_ms(), err) < 0)
        return -1;
    return amp_worker_finish(w, AMP_AGENT_EV_FAIL, err);
}

static int review_trip(struct amp_worker *w, struct amp_item *job, struct amp_judged *k,
                       const char *what, struct amp_error *err)
{
    static const char *const suggested[] = {"Reset the branch", "Terminate the task", NULL};
    const struct amp_worker_trouble trouble = {"branch_violation", what, suggested};
    AMP_BUF struct amp_buf line = {0};

    amp_buf_init(&line, 1 << 18);
    if (amp_worker_escalate(w, k->of.v, &trouble, &line, err) < 0)
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_FAIL, .why = trouble.type};
    return amp_worker_conclude(w, job, &step, &lines, AMP_AGENT_EV_FAIL, err);
}

static int review_conclude(struct amp_worker *w, struct amp_item *job, struct amp_judged *k,
                           struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    bool approved, spent;
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_DONE, .why = k->of.why};

    amp_buf_init(&line, 16u << 20);
    if (amp_judged_verdict(w, k, review_options(w)->verdict_by_exit, &line, &approved, err) < 0) {
        if (err->status != AMP_NO)
            return -1;
        struct amp_error cause = *err;
        if (amp_assignment_again(w, job, &k->of, AMP_END_MACHINERY, cause.what, &spent, err) < 0)
            return -1;
        return spent ? review_abandon(w, job, k, cause.code, cause.what, err) : 0;
    }
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    if (approved && commit_approve(w, k, (struct amp_span){line.data, line.len - 1}, err) < 0)
        return -1;
    return amp_worker_conclude(w, job, &step, &lines, AMP_AGENT_EV_COMPLETE, err);
}

/* The files that commands wrote are no part of the work: the reviewer gets the commit as it is. A
 * worktree in which they wrote only ignored files, such as a build's, is used as it is. */
static int worktree_renew(struct amp_worker *w, struct amp_judged *k, struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    const struct amp_worker_place place = {NULL, of->commit, true};
    struct amp_git_diff d = {0};
    struct amp_error e;
    bool clean = amp_git_diff(w->git, of->repo, of->worktree, w->opt->take.object_bytes, of->commit,
                              NULL, NULL, &d, &e) == 0 &&
                 d.n_files == 0;

    amp_git_diff_release(&d);
    return clean ? 0 : amp_assignment_bind(w, of, &place, err);
}

/* What became of the criteria that are commands. DONE: the request is concluded, parked or given
 * up, and the reviewer is not started. */
enum commands { COMMANDS_FAILED = -1, COMMANDS_PASSED, COMMANDS_DONE };

static enum commands commands_run(struct amp_worker *w, struct amp_item *job, struct amp_judged *k,
                                  struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    char what[512];
    bool spent;

    if (!amp_judged_has_commands(k))
        return COMMANDS_PASSED;
    if (amp_git_refs(w->git, of->repo, true, &of->refs, err) < 0)
        return COMMANDS_FAILED;
    int rc = amp_judged_check(w, k, err);
    if (rc == 0 && !k->failed)
        rc = worktree_renew(w, k, err);
    struct amp_error cause = rc < 0 ? *err : (struct amp_error){0};
    if (rc < 0 && cause.status != AMP_NO)
        return COMMANDS_FAILED;
    int trip = amp_assignment_tripped(w, of, what, sizeof what, err);
    amp_git_refs_release(&of->refs);
    if (trip != 0)
        return trip < 0 || review_trip(w, job, k, what, err) < 0 ? COMMANDS_FAILED : COMMANDS_DONE;
    if (rc == 0 && !k->failed)
        return COMMANDS_PASSED;
    if (rc == 0)
        return review_conclude(w, job, k, err) < 0 ? COMMANDS_FAILED : COMMANDS_DONE;
    if (rc > 0)
        snprintf(cause.what, sizeof cause.what, "it was stopped");
    if (amp_assignment_again(w, job, of, rc > 0 ? AMP_END_STOPPED : AMP_END_MACHINERY, cause.what,
                             &spent, err) < 0 ||
        (spent && review_abandon(w, job, k, cause.code, cause.what, err) < 0))
        return COMMANDS_FAILED;
    return COMMANDS_DONE;
}

static int review_attempt(struct amp_worker *w, struct amp_item *job, struct amp_judged *k,
                          struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    char what[512];
    bool spent;
    int rc;
    AMP_BUF struct amp_buf walls = {0};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_START};

    amp_buf_init(&walls, 4096);
    if (amp_confined_note(w, &walls, err) < 0)
        return -1;
    step.why = walls.data;
    if (amp_worker_step(w, job, &step, NULL, err) < 0)
        return -1;
    w->opt->progress("%s: %s reviews %s at %.12s", of->task, w->opt->agent, of->subtask,
                     of->commit);
    snprintf(k->about, sizeof k->about, "reviews %.200s at %.12s", of->subtask, of->commit);
    of->about = amp_span_str(k->about);
    if (files_make(w, k, err) < 0)
        return -1;
    rc = commands_run(w, job, k, err);
    if (rc != COMMANDS_PASSED)
        return rc == COMMANDS_DONE ? 0 : -1;
    if (amp_assignment_run(w, job, of, err) < 0 || amp_assignment_cost(w, of, err) < 0)
        return -1;
    int trip = amp_assignment_tripped(w, of, what, sizeof what, err);
    if (trip)
        return trip < 0 ? -1 : review_trip(w, job, k, what, err);
    bool failed = of->end == AMP_END_FAILED;
    /* SW4RM §7.2: work that was ended by force has failed; another request may follow. */
    if (failed && amp_worker_is_forced(w))
        return review_abandon(w, job, k, w->left.code, of->why, err);
    if (of->end == AMP_END_DONE || (failed && review_options(w)->verdict_by_exit))
        return review_conclude(w, job, k, err);
    /* A failed reviewer has not judged; this is not a rejection. */
    if (amp_assignment_again(w, job, of, failed ? AMP_END_MACHINERY : of->end, of->why, &spent,
                             err) < 0)
        return -1;
    return spent ? review_abandon(w, job, k, AMP_CODE(no_verdict), of->why, err) : 0;
}

static int review_work(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                       struct amp_error *err)
{
    struct amp_judged *k = calloc(1, sizeof *k);
    int rc = -1;

    if (!k)
        return amp_fail_memory(err);
    k->of.v = v;
    const struct amp_worker_place place = {NULL, k->of.commit, true};
    enum amp_claim claim = amp_worker_claim(w, job, v, (struct amp_span){NULL, 0}, err);
    if (claim != AMP_CLAIM_TAKEN) {
        rc = claim == AMP_CLAIM_DROPPED ? 0 : (int)claim;
    } else if (messages_find(w, k, err) == 0 && amp_worker_may_attempt(w, err) == 0 &&
               range_find(w, k, err) == 0 && amp_assignment_bind(w, &k->of, &place, err) == 0) {
        rc = review_attempt(w, job, k, err);
    } else if (amp_worker_is_cause(err)) {
        struct amp_error cause = *err;
        rc = review_abandon(w, job, k, cause.code, cause.what, err);
    }
    judged_release(k);
    free(k);
    return rc;
}

const struct amp_worker_role amp_review_role = {.takes = AMP_KIND_REVIEW,
                                                .asked_by = AMP_WORK_ASKED_BY,
                                                .disposable = true,
                                                .admit = request_admit,
                                                .work = review_work};

int amp_review_loop(struct amp_store *s, const struct amp_review_options *opt,
                    enum amp_status *status, struct amp_error *err)
{
    struct amp_review_options mine = *opt;

    return amp_worker_run(s, &mine.worker, &amp_review_role, &mine, status, err);
}
