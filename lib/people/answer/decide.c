/* Records arriving questions, carries out their effects on tasks and agents, and looks up the
 * commit of a rollback. */
#include "people/answer/decide.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/sender/identity.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/delivery.h"
#include "message/protocol/question.h"
#include "work/attempt/io.h"
#include "work/git/repository/git.h"
#include "work/task/record.h"
#include "work/task/suspend.h"
#include "work/task/task.h"

#define LOCK_AGAIN_MS 1000

_Static_assert(AMP_ABOUT_MAX > AMP_INTAKE_ID_MAX, "an id fits a subject");

static const struct amp_question_terms *questions_of(const struct amp_view *v)
{
    return amp_questions_of(v->protocol);
}

/* Also a message that says it was reviewed: its signature is checked, else an agent could review
 * its own work. */
static int is_question(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    const struct amp_question_terms *t = questions_of(v);
    struct amp_view named;
    struct amp_span op;
    char id[AMP_MSG_ID_MAX];
    if (t && t->reviewed && t->reviewed(v, &op))
        return 1;
    return amp_question_is(w->store, v, &named, id, err);
}

/* A later message may settle a question, if it counts as said by its sender; a decision must be an
 * operator's. */
static int message_seen(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_decider *d = w->ctx;
    struct amp_said said;
    struct amp_error why;

    if (!amp_question_may_settle(v))
        return 0;
    int rc = amp_identities_who(w->opt->ids, v, w->opt->trusted, &said, &why, err);
    if (rc <= 0)
        return rc;
    if (v->kind == AMP_KIND_DECISION && said.how == AMP_SAID_SIGNED && !said.is_operator)
        return 0;
    d->w.io->dirty = true;
    return amp_question_withdraw(&d->hitl, v, err);
}

static int question_acknowledge(struct amp_decider *d, const struct amp_view *v, int64_t now,
                                struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_worker *w = &d->w;
    bool reads = !(amp_answers_of(v->protocol)->no_stages & 1u << AMP_STAGE_READ);
    struct amp_answer ack = {.stage = reads ? AMP_STAGE_READ : AMP_STAGE_RECEIVED,
                             .by = amp_question_answerer(&d->hitl, v->protocol),
                             .now_ms = now};
    bool late;

    amp_buf_init(&line, 1 << 16);
    w->io->dirty = true;
    if (amp_settle_ack(w->store, v->id, ack.stage, AMP_HITL_ROLE, AMP_SPAN(""), now, &late, err) <
            0 ||
        amp_sequence_answer(w->store, v, d->opt.consumer, &ack, err) < 0 ||
        amp_answer_line(v, &ack, &line, err) < 0)
        return -1;
    return amp_worker_send(w, amp_buf_span(&line), err);
}

static int question_show(struct amp_decider *d, const struct amp_view *v, struct amp_error *err)
{
    json_auto_t *message = amp_question_load(v->message, err);
    const struct amp_question q = {.protocol = v->protocol, .message = message};

    if (!message)
        return -1;
    d->on_info(&q);
    return 0;
}

static int question_take(struct amp_worker *w, const struct amp_view *message, const char *bad,
                         struct amp_error *err)
{
    char id[AMP_MSG_ID_MAX];
    struct amp_view named;
    const struct amp_view *v = &named;
    struct amp_decider *d = w->ctx;
    enum amp_store_outcome outcome;
    int64_t now = amp_now_ms();
    uint32_t effects;

    if (bad)
        return 1;
    int asks = amp_question_is(w->store, message, &named, id, err);
    if (asks < 0)
        return -1;
    if (asks == 0) /* it was reviewed */
        return message_seen(w, message, err) < 0 || amp_worker_pass(w, message->line, err) < 0 ? -1
                                                                                               : 1;
    if (amp_message_record(w->store, v, now, &outcome, err)) {
        if (err->status != AMP_NO)
            return -1;
        w->status = amp_status_worse(w->status, AMP_NO);
        w->opt->note("%.*s: %s", (int)v->id.n, v->id.p, err->what);
        return 1;
    }
    /* In protocols whose messages cannot ask for an acknowledgement, each message gets one. */
    bool ack =
        message->id.n > 0 && (v->needs_ack || amp_delivery_of(v->protocol)->ack_timeout_ms > 0);
    if (amp_question_arrive(&d->hitl, v, now, &effects, err) < 0 ||
        (ack && question_acknowledge(d, v, now, err) < 0) ||
        ((effects & AMP_ESC_DO_SHOW) && question_show(d, v, err) < 0))
        return -1;
    if (effects & AMP_ESC_DO_EMIT) /* its subject has ended */
        w->status = amp_status_worse(w->status, AMP_NO);
    return 1;
}

/* Its sender does not wait for the answer any more. A coordinator with the same state directory has
 * ended the question already; a decision that it refuses because of this says so here, too. */
static int question_withdrawn(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    char why[256];
    struct amp_error no;
    struct amp_decider *d = w->ctx;

    amp_span_copy(v->body.ack.note, why, sizeof why);
    const struct amp_revocation r = {.protocol = v->protocol,
                                     .ref = v->body.ack.ref,
                                     .task = v->task,
                                     .why = why,
                                     .by = d->opt.consumer,
                                     .now_ms = amp_now_ms()};
    d->w.io->dirty = true;
    if (amp_question_revoke(w->store, &r, &no) == 0)
        w->opt->note("%.*s is no longer asked: it was withdrawn: %s", AMP_CLIP(r.ref, 200), why);
    else if (no.status == AMP_NO)
        w->opt->note("%.*s was withdrawn too late: %s", AMP_CLIP(r.ref, 200), no.what);
    else {
        *err = no;
        return -1;
    }
    return 1;
}

/* Opens the question of a refused decision again. A sender with the same state directory has
 * already done so. 1: the nack refuses a decision, 0: it does not. */
static int decision_nacked(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_decider *d = w->ctx;
    struct amp_store_rec rec;
    bool reopened;
    const struct amp_question_terms *t = questions_of(v);

    if (!t || !t->carried_out_by || !amp_span_is(v->from, t->carried_out_by) || !v->body.ack.ref.n)
        return 0;
    if (amp_store_get(w->store, AMP_KEY(AMP_ESCALATION_KIND, v->body.ack.ref), &rec, err))
        return -1;
    if (!rec.found)
        return 0;
    if (amp_span_is(v->body.ack.code, AMP_HITL_WITHDRAWN))
        return question_withdrawn(w, v, err);
    w->opt->note("%.*s: the decision was refused: %.*s: %.*s", (int)v->body.ack.ref.n,
                 v->body.ack.ref.p, (int)v->body.ack.code.n, v->body.ack.code.p,
                 (int)v->body.ack.note.n, v->body.ack.note.p);
    if (!amp_question_reopens(v->body.ack.code))
        return 1;
    const struct amp_refusal r = {.ref = v->body.ack.ref,
                                  .task = v->task,
                                  .code = v->body.ack.code,
                                  .why = v->body.ack.note,
                                  .by = d->opt.consumer,
                                  .at_ms = v->created_ms};
    d->w.io->dirty = true;
    return amp_question_reopen(w->store, &r, &reopened, err) ? -1 : 1;
}

static int line_send(void *ctx, struct amp_span line, struct amp_error *err)
{
    return amp_worker_send(ctx, line, err);
}

static int subject_suspend(void *ctx, const struct amp_view *v, int64_t now_ms,
                           struct amp_error *err)
{
    struct amp_worker *w = ctx;
    const struct amp_suspend how = {.by = w->opt->consumer, .say = w->opt->note, .now_ms = now_ms};

    return amp_suspend_view(w->store, v, &how, err);
}

static int task_ended(void *ctx, struct amp_span task, bool *ended, struct amp_error *err)
{
    const struct amp_worker *w = ctx;
    return amp_decision_task_ended(w->store, task, ended, err);
}

static int task_facts(void *ctx, struct amp_span task, struct amp_span ref, char risk[16],
                      char why[AMP_WHY_MAX], struct amp_error *err)
{
    const struct amp_worker *w = ctx;
    return amp_decision_task_facts(w->store, task, ref, risk, why, err);
}

static int line_sign(void *ctx, const char *op, struct amp_span line, struct amp_buf *out,
                     char key[AMP_FINGERPRINT_MAX], struct amp_error *err)
{
    struct amp_worker *w = ctx;
    struct amp_decider *d = w->ctx;
    return amp_decision_sign(&d->signer, op, line, out, key, err);
}

static int work_none(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                     struct amp_error *err)
{
    return 1;
}

static const struct amp_worker_role role = {.takes = AMP_KIND_ESCALATION,
                                            .admit = question_take,
                                            .work = work_none,
                                            .nacked = decision_nacked,
                                            .seen = message_seen,
                                            .ours = is_question};

static void decider_init(struct amp_decider *d, struct amp_store *s,
                         const struct amp_worker_options *opt)
{
    *d = (struct amp_decider){.opt = *opt, .lock = -1};
    d->opt.role = AMP_HITL_ROLE;
    d->w = (struct amp_worker){.opt = &d->opt, .role = &role, .ctx = d, .store = s};
    d->hitl = (struct amp_hitl){.store = s,
                                .actor = d->opt.consumer,
                                .dirty = &d->dirty,
                                .note = d->opt.note,
                                .ctx = &d->w,
                                .send = line_send,
                                .suspend = subject_suspend,
                                .task_ended = task_ended,
                                .task_facts = task_facts,
                                .sign = line_sign};
    d->signer = (struct amp_decision_signer){
        .ids = opt->ids, .state = amp_store_dir(s), .own = opt->operator_name};
}

/* Only the process with the lock of the name emits its outbox. */
static int lock_try(struct amp_decider *d, struct amp_error *err)
{
    struct amp_error why;

    d->tried_ms = amp_mono_ms();
    if (amp_outbox_lock(d->w.store, d->opt.consumer, 0, &d->lock, &why) < 0) {
        d->lock = -1;
        if (!amp_code_is(why.code, lock_timeout)) {
            *err = why;
            return -1;
        }
    }
    d->w.io->dirty |= d->w.io->muted && d->lock >= 0;
    d->w.io->muted = d->lock < 0;
    return 0;
}

int amp_decider_open(struct amp_decider *d, struct amp_store *s,
                     const struct amp_worker_options *opt, amp_info_fn on_info,
                     struct amp_error *err)
{
    decider_init(d, s, opt);
    d->on_info = on_info;
    if (amp_dead_recover(s, d->opt.consumer, amp_now_ms(), err) < 0 ||
        amp_worker_open(&d->w, err) < 0)
        return -1;
    d->hitl.dirty = &d->w.io->dirty;
    if (lock_try(d, err) < 0)
        return -1;
    if (d->lock < 0)
        d->opt.note("another process with the name %s runs on this state directory; it writes the "
                    "decisions (--as gives another name)",
                    d->opt.consumer);
    return 0;
}

int amp_decider_upkeep(struct amp_decider *d, struct amp_question_swept *out, struct amp_error *err)
{
    int64_t due, now = amp_now_ms();

    if (d->lock < 0 && amp_mono_ms() - d->tried_ms >= LOCK_AGAIN_MS && lock_try(d, err) < 0)
        return -1;
    if (amp_store_next_due(d->w.store, AMP_ESCALATION_KIND, &due, err) < 0)
        return -1;
    return due > 0 && due <= now ? amp_question_sweep(&d->hitl, now, out, err) : 0;
}

int amp_decider_wait(struct amp_decider *d, int64_t *wait_ms, struct amp_error *err)
{
    int64_t due;

    if (amp_store_next_due(d->w.store, AMP_ESCALATION_KIND, &due, err) < 0)
        return -1;
    int64_t left = due - amp_now_ms();
    if (due > 0 && left < *wait_ms)
        *wait_ms = left > 0 ? left : 0;
    return 0;
}

int amp_decider_open_bare(struct amp_decider *d, struct amp_store *s,
                          const struct amp_worker_options *opt, struct amp_error *err)
{
    decider_init(d, s, opt);
    d->bare = true;
    return amp_dead_recover(s, d->opt.consumer, amp_now_ms(), err);
}

int amp_decider_flush(struct amp_decider *d, int fd, struct amp_error *err)
{
    struct amp_outq out;
    struct amp_error why;
    AMP_CLOSE int lock = -1;

    if (!d->dirty)
        return 0;
    if (amp_store_sync(d->w.store, err) < 0)
        return -1;
    if (amp_outbox_lock(d->w.store, d->opt.consumer, 0, &lock, &why) < 0) {
        if (amp_code_is(why.code, lock_timeout))
            return 0; /* the process that has the lock emits */
        *err = why;
        return -1;
    }
    if (amp_outq_open(&out, fd, false, AMP_WORKER_PENDING, err) < 0)
        return -1;
    struct amp_outbox box = {
        .store = d->w.store, .name = d->opt.consumer, .ids = d->opt.ids, .out = &out};
    int rc = amp_outbox_finish(&box, d->opt.stop, err);
    amp_outbox_release(&box);
    amp_outq_close(&out);
    d->dirty = rc < 0;
    return rc;
}

void amp_decider_close(struct amp_decider *d)
{
    amp_worker_close(&d->w);
    amp_hitl_release(&d->hitl);
    amp_decision_signer_release(&d->signer);
    if (d->lock > 0)
        amp_auto_close(&d->lock);
}

int amp_decider_git(struct amp_decider *d, struct amp_git **out, struct amp_error *err)
{
    const struct amp_git_options git = {.stop = d->opt.stop};

    if (!d->w.git && amp_git_open(&git, &d->w.git, err) < 0)
        return -1;
    *out = d->w.git;
    return 0;
}

void amp_decider_hold(struct amp_decider *d, bool held)
{
    d->w.io->held = held;
}

/* Whether it has the form of a commit id in a message: 4 to 64 hexadecimal digits. */
static bool is_commit_id(const char *commit)
{
    size_t n = strspn(commit, "0123456789abcdefABCDEF");
    return !commit[n] && n >= 4 && n <= 64;
}

/* Looks up the commit of a rollback in the task's repository. If the state does not have the task,
 * oid is the id as it was typed. */
static enum amp_decided commit_find(struct amp_decider *d, const struct amp_question *q,
                                    const char *commit, char oid[AMP_OID_MAX],
                                    struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    struct amp_git *git;

    if (q->about.kind != AMP_ABOUT_TASK) {
        amp_fail(err, AMP_DATAERR, no_task,
                 "rollback applies to AMP tasks only; this question has no branch");
        return AMP_DECIDED_REFUSED;
    }
    if (!commit || !*commit) {
        amp_fail(err, AMP_DATAERR, missing_commit,
                 "rollback needs a commit (rollback COMMIT [NOTE])");
        return AMP_DECIDED_REFUSED;
    }
    if (amp_task_load(d->w.store, amp_span_str(q->about.task), &t, NULL, err) < 0)
        return AMP_DECIDED_FAILED;
    if (!*t.repo && is_commit_id(commit)) {
        snprintf(oid, AMP_OID_MAX, "%s", commit);
        return AMP_DECIDED_OK;
    }
    if (!*t.repo) {
        amp_fail(err, AMP_DATAERR, unknown_revision,
                 "the task is not in the state directory, so \"%.100s\" cannot be resolved; give "
                 "the commit id (4 to 64 hexadecimal digits)",
                 commit);
        return AMP_DECIDED_REFUSED;
    }
    if (amp_decider_git(d, &git, err) < 0)
        return AMP_DECIDED_FAILED;
    if (amp_git_resolve(git, t.repo, commit, oid, err) == 0)
        return AMP_DECIDED_OK;
    if (err->status == AMP_INTERRUPTED)
        return AMP_DECIDED_FAILED;
    if (err->status == AMP_NO)
        err->status = AMP_DATAERR;
    return AMP_DECIDED_REFUSED;
}

enum amp_decided amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                                    const struct amp_operator_answer *a,
                                    const struct amp_decided_by *by, uint32_t *left,
                                    struct amp_error *err)
{
    char oid[AMP_OID_MAX] = "";
    struct amp_operator_answer found = *a;
    enum amp_decided rc = AMP_DECIDED_OK;

    if (a->does == AMP_ACTION_ROLLBACK) {
        rc = commit_find(d, q, a->commit, oid, err);
        found.commit = oid;
    }
    return rc == AMP_DECIDED_OK ? amp_question_decide(&d->hitl, q, &found, by, left, err) : rc;
}
