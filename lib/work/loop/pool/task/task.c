/*
 * The work on a job that is neither a dispatch nor a review request of AMP: an attempt of the
 * agent's command, with the same walls, files and control FIFO. If the scope names one repository
 * and branch, the command runs in a worktree on it, and what it leaves is committed; else in a
 * directory of the job. Its answer is given in the job's protocol (work/attempt/reply).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/record/record.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/json.h"
#include "work/agent/work.h"
#include "work/attempt/assignment.h"
#include "work/attempt/io.h"
#include "work/attempt/reply/reply.h"
#include "work/attempt/walls/confined.h"
#include "work/handoff/handoff.h"
#include "work/loop/pool/loop.h"

#define TEXT_MAX 4000 /* bytes of output that become the text of an answer */

struct task {
    struct amp_slot *slot;
    struct amp_assignment of;
    const struct amp_pool_outcome *ends; /* the answer that is said ends the job so; NULL: not */
    json_t *answer;                      /* the agent's, or NULL */
    char about[300]; /* for the activity buffer, of a message without a description */
};

/* ---- answers ---- */

static struct amp_git *git_get(void *ctx, struct amp_error *err)
{
    struct task *t = ctx;

    (void)err;
    return t->slot->w.git;
}

/* Checks the claim, and ends the job, in the batch of the answer. */
static int answer_allowed(void *ctx, struct amp_error *err)
{
    struct task *t = ctx;
    int rc = amp_pool_claimed(t->slot, err);

    return rc == 0 && t->ends && !t->slot->ended ? amp_pool_end(t->slot, t->ends, err) : rc;
}

/* A message that may not be answered so, such as one of a protocol without this answer, or one that
 * has its outcome already, is the record's affair alone. */
static int answer_say(struct task *t, struct amp_reply *r, struct amp_error *err)
{
    struct amp_slot *slot = t->slot;
    struct amp_worker *w = &slot->w;
    const struct amp_view *v = t->of.v;
    struct amp_reply_result out = {.how = AMP_REPLY_COMPOSED};
    char id[AMP_MSG_ID_MAX], by[AMP_REPLY_NAME_MAX], box[200];

    if (!v->id.n || !amp_span_copy(v->id, id, sizeof id))
        return 0;
    /* The addressee answers; a job without one is answered by the agent. */
    const struct amp_reply_terms *replies = amp_answers_of(v->protocol)->replies;
    bool by_role = replies && replies->by_role;
    if (by_role)
        snprintf(by, sizeof by, "%s/%s", w->opt->role, slot->agent);
    else if (v->n_to != 1 || !amp_span_copy(v->to[0], by, sizeof by) || !amp_id_is_safe(v->to[0]))
        snprintf(by, sizeof by, "%s", slot->agent);
    snprintf(box, sizeof box, "%s%s", slot->consumer, by_role ? "" : ".own");
    r->id = id;
    r->by = by;
    r->box = box;
    r->now_ms = amp_now_ms();
    r->git = git_get;
    r->git_ctx = t;
    r->allowed = answer_allowed;
    r->allowed_ctx = t;
    amp_buf_init(&out.line, AMP_REPLY_LINE_MAX);
    int rc = amp_reply(w->store, r, &out, err);
    amp_buf_release(&out.line);
    if (rc == 0 && by_role)
        w->io->dirty = true;
    if (rc == 0)
        return by_role ? amp_worker_turn(w, NULL, 0, 0, err) : amp_slot_answers(slot, box, err);
    if (err->status != AMP_NO || amp_code_is(err->code, claim_lost))
        return -1;
    if (r->act != AMP_REPLY_ACCEPT && r->act != AMP_REPLY_PROGRESS)
        w->opt->note("%s: no answer: %s", slot->job.id, err->what);
    return 0;
}

/* Only the addressee of a message accepts it: after a kill another agent may end the job of a
 * message without one. */
static int accept_say(struct task *t, struct amp_error *err)
{
    int64_t limit = t->slot->opt.timeout_ms;
    struct amp_reply r = {.act = AMP_REPLY_ACCEPT,
                          .eta_ms = amp_now_ms() + (limit > 0 ? limit : 3600000)};

    return t->of.v->n_to == 1 ? answer_say(t, &r, err) : 0;
}

static int end_say(struct task *t, const struct amp_pool_outcome *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    json_auto_t *said = NULL;
    struct amp_reply r = {.act = out->end == AMP_POOL_DONE ? AMP_REPLY_COMPLETE : AMP_REPLY_FAIL,
                          .taken = true,
                          .code = out->end == AMP_POOL_DONE ? NULL : out->code,
                          .data = json_object_get(t->answer, "data")};
    const char *own = json_string_value(json_object_get(t->answer, "text"));

    amp_buf_init(&text, TEXT_MAX + 65537);
    if (own)
        r.text = own;
    else if (out->end != AMP_POOL_DONE)
        r.text = out->why;
    else if (amp_attempt_output(t->of.files.out, TEXT_MAX, &text) == 0 && text.len)
        said = json_stringn(text.data, text.len); /* NULL if it is not UTF-8 */
    if (said)
        r.text = json_string_value(said);
    if (!json_is_object(r.data))
        r.data = NULL;
    amp_slot_leave(t->slot);
    t->ends = out;
    return answer_say(t, &r, err);
}

/* ---- the attempt ---- */

static int place_make(struct task *t, struct amp_error *err)
{
    struct amp_assignment *of = &t->of;
    struct amp_slot *slot = t->slot;

    if (*slot->job.repo) {
        bool fresh = slot->job.attempts > 1 && !slot->job.again;
        const struct amp_worker_place place = {of->branch, NULL, fresh};
        return amp_assignment_bind(&slot->w, of, &place, err) < 0 ||
                       amp_git_resolve(slot->w.git, of->worktree, "HEAD", of->start, err) < 0
                   ? -1
                   : 0;
    }
    int n =
        snprintf(of->worktree, sizeof of->worktree, "%s/run/%s/work", slot->w.state_dir, of->task);
    if (n < 0 || (size_t)n >= sizeof of->worktree)
        return amp_fail(err, AMP_CANTCREAT, path_too_long, "%s: path too long", slot->w.state_dir);
    return amp_mkdirs(of->worktree, 0700, err);
}

/* Commits what the agent left in its worktree. */
static int change_commit(struct task *t, char *trouble, size_t size, struct amp_error *err)
{
    struct amp_assignment *of = &t->of;
    struct amp_slot *slot = t->slot;
    char email[256], message[400];
    const char *own = json_string_value(json_object_get(t->answer, "commit_message"));

    if (*of->taking.error.code) {
        snprintf(trouble, size, "%s: %s", of->taking.error.code, of->taking.error.what);
        return 0;
    }
    amp_agent_email(slot->agent, email, sizeof email);
    snprintf(message, sizeof message, "Work on %s\n", of->task);
    const struct amp_git_commit_spec spec = {of->repo,
                                             of->worktree,
                                             slot->agent,
                                             email,
                                             own ? own : message,
                                             slot->agent,
                                             of->task,
                                             slot->w.opt->take.object_bytes};
    int rc = amp_git_commit(slot->w.git, &spec, of->commit, err);
    if (rc >= 0)
        return 0;
    if (!amp_worker_is_cause(err))
        return -1;
    snprintf(trouble, size, "the changes cannot be committed: %.300s", err->what);
    return 0;
}

static void outcome_fail(struct amp_pool_outcome *out, const char *code, const char *why)
{
    out->end = AMP_POOL_FAILED;
    snprintf(out->code, sizeof out->code, "%s", code);
    snprintf(out->why, sizeof out->why, "%.255s", why);
}

int amp_pool_refuse(struct amp_slot *slot, const struct amp_view *v, const char *code,
                    const char *why, struct amp_pool_outcome *out, struct amp_error *err)
{
    struct task *t = calloc(1, sizeof *t);
    struct amp_reply r = {.act = AMP_REPLY_FAIL, .code = code, .text = why};

    if (!t)
        return amp_fail_memory(err);
    t->slot = slot;
    t->of.v = v;
    outcome_fail(out, code, why);
    slot->w.opt->note("%s: %s: %s", slot->job.id, code, why);
    t->ends = out;
    int rc = answer_say(t, &r, err);
    free(t);
    return rc;
}

/* Judges the result after the agent ended its work. */
static int result_judge(struct task *t, struct amp_pool_outcome *out, struct amp_error *err)
{
    struct amp_worker *w = &t->slot->w;
    char trouble[600] = "";
    struct amp_error e;

    if (*t->of.forgeries.answer) {
        outcome_fail(out, AMP_CODE(bad_sender), t->of.forgeries.answer);
        return 0;
    }
    if (amp_answer_read(&t->of.files, NULL, &t->answer, &e) < 0) {
        t->answer = NULL;
        outcome_fail(out, AMP_CODE(bad_answer), e.what);
        return 0;
    }
    int tripped = *t->of.repo ? amp_assignment_tripped(w, &t->of, trouble, sizeof trouble, err) : 0;
    if (tripped) {
        if (tripped > 0)
            outcome_fail(out, AMP_CODE(branch_violation), trouble);
        return tripped < 0 ? -1 : 0;
    }
    if (*t->of.repo && change_commit(t, trouble, sizeof trouble, err) < 0)
        return -1;
    const char *word = amp_json_str(t->answer, "completion_status");
    if (*trouble)
        outcome_fail(out, AMP_CODE(change_refused), trouble);
    else if (strcmp(word, "failed") == 0)
        outcome_fail(out, AMP_CODE(task_failed), "the agent reported a failure");
    else
        out->end = AMP_POOL_DONE;
    return 0;
}

/* Work that is not finished: later, again, or not any more. */
static int attempt_again(struct task *t, struct amp_pool_outcome *out, struct amp_error *err)
{
    struct amp_slot *slot = t->slot;
    struct amp_worker *w = &slot->w;
    int64_t now = amp_now_ms(), wait = 0;

    snprintf(out->code, sizeof out->code, "%s", w->left.code);
    snprintf(out->why, sizeof out->why, "%s", t->of.why);
    switch (t->of.end) {
    case AMP_END_STOPPED:
        out->end = AMP_POOL_AGAIN;
        out->keeps = w->left.yielded || w->paused;
        return amp_worker_finish(w,
                                 w->ask.what == AMP_ASK_SHUTDOWN || slot->stop
                                     ? AMP_AGENT_EV_SHUTDOWN
                                     : AMP_AGENT_EV_SUSPEND,
                                 err);
    case AMP_END_REPEAT:
        wait = amp_assignment_wait(w, &t->of);
        out->end = AMP_POOL_PARKED;
        out->keeps = true;
        out->until_ms = now + (wait > 0 ? wait : w->opt->pause_ms);
        if (wait > 0)
            w->left.limit_ms = out->until_ms;
        snprintf(out->code, sizeof out->code, "%s",
                 wait > 0 ? "usage_limit" : AMP_CODE(again_later));
        return amp_worker_wait(w, wait > 0 ? AMP_AGENT_EV_LACK : AMP_AGENT_EV_WAIT, out->until_ms,
                               err);
    default:
        if (slot->job.attempts <= w->opt->retries) {
            out->end = AMP_POOL_AGAIN;
            w->opt->note("%s: %s: not counted against the agent; repeating", slot->job.id,
                         t->of.why);
        } else {
            outcome_fail(out, *w->left.code ? w->left.code : AMP_CODE(machinery), t->of.why);
        }
        return amp_worker_finish(w, AMP_AGENT_EV_FAIL, err);
    }
}

/* 1: the lost agent had answered by itself, and the job ends as it said. */
static int outcome_find(const struct task *t, struct amp_pool_outcome *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    const struct amp_slot *slot = t->slot;
    struct amp_message_rec r;
    char code[sizeof out->code];

    if (slot->job.losses == 0 || t->of.v->id.n == 0)
        return 0;
    if (amp_message_find(slot->w.store, t->of.v->id, &mem, &r, err) < 0)
        return -1;
    const struct amp_ack_note *last = r.found && r.n_acks > 0 ? &r.acks[r.n_acks - 1] : NULL;
    if (!last || last->at_ms < slot->job.submitted_ms)
        return 0;
    if (r.state == AMP_DELIVERY_FULFILLED)
        out->end = AMP_POOL_DONE;
    else if (r.state == AMP_DELIVERY_FAILED || r.state == AMP_DELIVERY_REJECTED)
        outcome_fail(
            out,
            last->code.n && amp_span_copy(last->code, code, sizeof code) ? code : AMP_CODE(refused),
            "its message was answered so");
    else
        return 0;
    return 1;
}

/* 1: the agent handed the task over, and the job is refused. */
static int given_refuse(struct task *t, struct amp_pool_outcome *out, struct amp_error *err)
{
    struct amp_slot *slot = t->slot;
    char owner[256], why[512];
    int given = amp_handoff_given(slot->w.store, amp_span_str(slot->agent),
                                  amp_span_str(slot->job.task), owner, err);

    if (given <= 0)
        return given;
    snprintf(why, sizeof why, "%s handed the task over to %s", slot->agent, owner);
    slot->w.opt->note("%s: handed_over: %s", slot->job.id, why);
    outcome_fail(out, AMP_CODE(handed_over), why);
    t->ends = out;
    struct amp_reply r = {.act = AMP_REPLY_FAIL, .code = out->code, .text = out->why};
    return answer_say(t, &r, err) < 0 ? -1 : 1;
}

/* 1: the job ends without an attempt. */
static int end_without(struct task *t, struct amp_pool_outcome *out, struct amp_error *err)
{
    int rc = given_refuse(t, out, err);

    if (rc == 0)
        rc = outcome_find(t, out, err);
    if (rc != 0 || amp_worker_may_attempt(&t->slot->w, err) == 0)
        return rc;
    t->slot->w.opt->note("%s: %s: %s", t->slot->job.id, err->code, err->what);
    outcome_fail(out, err->code, err->what);
    return end_say(t, out, err) < 0 ? -1 : 1;
}

static int attempt_run(struct task *t, struct amp_pool_outcome *out, struct amp_error *err)
{
    struct amp_slot *slot = t->slot;
    struct amp_worker *w = &slot->w;
    struct amp_queue_step start = {.event = AMP_QUEUE_EV_START};
    struct amp_error cause;

    if (place_make(t, err) < 0) {
        cause = *err;
        if (!amp_worker_is_cause(&cause))
            return -1;
        if (amp_code_is(cause.code, worktree_locked)) {
            out->end = AMP_POOL_PARKED;
            out->until_ms = amp_now_ms() + w->opt->pause_ms;
            snprintf(out->code, sizeof out->code, "%s", cause.code);
            snprintf(out->why, sizeof out->why, "%.255s", cause.what);
            return amp_worker_wait(w, AMP_AGENT_EV_LACK, 0, err);
        }
        outcome_fail(out, cause.code, cause.what);
        return end_say(t, out, err) < 0 ? -1 : amp_worker_finish(w, AMP_AGENT_EV_FAIL, err);
    }
    if (amp_worker_step(w, &slot->item, &start, NULL, err) < 0 || accept_say(t, err) < 0 ||
        amp_assignment_files(w, &t->of, err) < 0 || amp_assignment_run(w, NULL, &t->of, err) < 0)
        return -1;
    if (t->of.end == AMP_END_DONE) {
        if (result_judge(t, out, err) < 0)
            return -1;
    } else if (t->of.end == AMP_END_FAILED) {
        amp_answer_read(&t->of.files, NULL, &t->answer, &cause);
        outcome_fail(out, *w->left.code ? w->left.code : AMP_CODE(task_failed), t->of.why);
    } else if (attempt_again(t, out, err) < 0) {
        return -1;
    } else if (out->end != AMP_POOL_FAILED) {
        return 0;
    }
    if (end_say(t, out, err) < 0)
        return -1;
    bool failed = out->end == AMP_POOL_FAILED;
    if (t->of.end != AMP_END_DONE && t->of.end != AMP_END_FAILED)
        return 0; /* the agent's state was set */
    return amp_worker_finish(w, failed ? AMP_AGENT_EV_FAIL : AMP_AGENT_EV_COMPLETE, err);
}

int amp_pool_task(struct amp_slot *slot, const struct amp_view *v, struct amp_pool_outcome *out,
                  struct amp_error *err)
{
    struct amp_worker *w = &slot->w;
    struct task *t = calloc(1, sizeof *t);
    int rc = -1;

    if (!t)
        return amp_fail_memory(err);
    t->slot = slot;
    struct amp_assignment *of = &t->of;
    of->v = v;
    of->attempt = slot->job.attempts;
    snprintf(t->about, sizeof t->about, "%.100s: %.*s from %.*s", slot->job.type,
             AMP_CLIP(v->type, 60), AMP_CLIP(v->from, 60));
    of->about = v->kind == AMP_KIND_DISPATCH && v->body.dispatch.description.n
                    ? v->body.dispatch.description
                    : amp_span_str(t->about);
    amp_buf_init(&of->criteria, 1 << 16);
    snprintf(of->task, sizeof of->task, "%s",
             amp_id_is_safe(amp_span_str(slot->job.task)) ? slot->job.task : slot->job.id);
    snprintf(of->subtask, sizeof of->subtask, "%s", slot->job.id);
    snprintf(of->repo, sizeof of->repo, "%s", slot->job.repo);
    snprintf(of->branch, sizeof of->branch, "%s", slot->job.branch);
    int ended = end_without(t, out, err);
    if (ended) {
        amp_assignment_release(of);
        free(t);
        return ended < 0 ? -1 : 0;
    }
    enum amp_claim claim;
    const struct amp_span name = v->task.n ? v->task : amp_span_str(of->task);
    while ((claim = amp_worker_engage(w, slot->job.id, name, err)) == AMP_CLAIM_WAITS) {
        if (w->ask.what || slot->stop)
            break;
        w->waits = true; /* for the end of a suspension */
        rc = amp_worker_turn(w, NULL, 0, -1, err);
        w->waits = false;
        if (rc < 0)
            break;
    }
    if (claim == AMP_CLAIM_TAKEN) {
        rc = amp_buf_str(&of->criteria, "[]", err) < 0 ? -1 : attempt_run(t, out, err);
    } else if (claim == AMP_CLAIM_WAITS && rc >= 0) {
        out->end = AMP_POOL_AGAIN;
        rc = 0;
    } else {
        rc = -1;
    }
    amp_assignment_release(of);
    json_decref(t->answer);
    free(t);
    return rc;
}
