/*
 * Takes one message: records it in the ledger, makes one step of its task, and queues the lines
 * that follow. The order is crash-safe: the step and its emitted lines are one commit. Suspending
 * agents, lifting suspensions and answering the sender follow it, and are repeated when the message
 * arrives again.
 */
#include <limits.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "message/delivery/intake.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/settle/answer.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/question.h"
#include "message/protocol/work.h"
#include "people/question/record.h"
#include "work/loop/coordinate/coordinator.h"
#include "work/task/new.h"
#include "work/task/suspend.h"

#define LINES_MAX ((size_t)256 << 20)

/* Records an emitted line in the ledger, so that answers can refer to it. */
int amp_coordinator_record(struct amp_coordinator *c, struct amp_span line, int64_t now_ms,
                           struct amp_error *err)
{
    struct amp_view v;
    const struct amp_check_options any = {0};
    enum amp_store_outcome outcome;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    if (rc < 0)
        return -1;
    if (rc == 0)
        return amp_fail(err, AMP_INTERNAL, invalid_output, "internal: a composed line is invalid");
    return v.id.n ? amp_message_record(c->store, &v, now_ms, &outcome, err) : 0;
}

/* Queues a nack from the coordinator. */
static int nack_queue(struct amp_coordinator *c, const struct amp_view *of,
                      enum amp_ack_stage stage, const char *code, const char *why, int64_t now_ms,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    if (amp_compose_nack(of, stage, "coordinator", code, why, "", false, now_ms, &line, err) < 0)
        return -1;
    line.len--;
    return amp_coordinator_queue(c, amp_buf_span(&line), err);
}

/* --- lookups before the step, outside the store's turn if they may be slow --- */

static bool is_local_git(const char *repo)
{
    return *repo == '/' && amp_new_is_repo(repo);
}

static struct amp_git *git_get(struct amp_coordinator *c, struct amp_error *err)
{
    const struct amp_git_options opt = {.stop = c->opt->stop};
    if (!c->git && amp_git_open(&opt, &c->git, err) < 0)
        return NULL;
    return c->git;
}

static int base_find(struct amp_coordinator *c, struct amp_step *st, struct amp_error *why)
{
    char repo[PATH_MAX], rev[256] = "HEAD";
    struct amp_error err = {0};
    const struct amp_view *v = st->view;
    if (!amp_span_copy(v->body.dispatch.repo, repo, sizeof repo) || !is_local_git(repo))
        return 0;
    json_auto_t *constraints =
        v->body.dispatch.constraints.n ? amp_json_load(v->body.dispatch.constraints, NULL) : NULL;
    const char *base = amp_json_str(constraints, "base");
    if (*base)
        amp_span_copy(amp_span_str(base), rev, sizeof rev);
    amp_coordinator_pause(c);
    if (!git_get(c, &err) || amp_git_resolve(c->git, repo, rev, st->base, &err) < 0) {
        st->base[0] = 0;
        if (err.status == AMP_INTERRUPTED) {
            *why = err;
            return -1;
        }
        c->opt->warn("%.*s: unknown base %s: %s", (int)v->task.n, v->task.p, rev, err.what);
    }
    return 0;
}

/* Whether the step of a rollback resets the branch. */
static bool goes_back(struct amp_task *t)
{
    const struct amp_task_part *p = amp_task_turn(t);
    struct amp_fsm_result r;
    return !p || (amp_fsm_step(&amp_qa_fsm, p->state, AMP_QA_EV_ROLLBACK, 0, &r, NULL) == 0 &&
                  (r.effects & AMP_QA_DO_BACK));
}

/* Resets the branch before the decision is recorded; repeating it has no further effect. */
static int decision_roll_back(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    AMP_TASK struct amp_task t = {0};
    struct amp_error why = {0};
    char commit[AMP_OID_MAX], op[128], ref[AMP_MSG_ID_MAX], keep[AMP_KEEP_REF_MAX];
    int rc = -1;
    if (amp_task_load(c->store, v->task, &t, NULL, err) < 0)
        return -1;
    /* A decision that the step will refuse must not move the branch. */
    if (amp_task_ended(t.state) || t.n_parts == 0 || !goes_back(&t) ||
        !amp_span_copy(v->body.decision.ref, ref, sizeof ref) || amp_task_lists(t.decided, ref) ||
        (!st->ref_open && !amp_task_waits_for(&t, ref)))
        return 0;
    amp_coordinator_pause(c);
    if (!amp_span_copy(v->body.decision.commit, commit, sizeof commit) ||
        !amp_span_copy(v->body.decision.op, op, sizeof op) || !is_local_git(t.repo)) {
        amp_fail(&why, AMP_NO, repo_not_git, "%s is not a git repository", t.repo);
    } else if (git_get(c, &why)) {
        const struct amp_git_rollback_spec spec = {.repo = t.repo,
                                                   .branch = t.branch,
                                                   .commit = commit,
                                                   .name = op,
                                                   .email = "operator@operators.invalid",
                                                   .keep = keep};
        amp_git_keep_ref("rollback", amp_now_ms(), keep);
        rc = amp_git_rollback(c->git, &spec, &why);
    }
    if (rc > 0)
        c->opt->warn("%.*s: what was on %s is kept as %s", (int)v->task.n, v->task.p, t.branch,
                     keep);
    if (rc >= 0)
        return 0;
    if (why.status == AMP_INTERRUPTED) {
        *err = why;
        return -1;
    }
    return amp_step_refuse(st, why.code, "the branch was not reset: %s", why.what);
}

/* --- decisions, and nacks instead of decisions --- */

/* Whether a message is an escalation that asks the admin for a decision. The coordinator's own and
 * those that it forwarded are in the task's record while they are open. */
static int is_awaiting(struct amp_coordinator *c, struct amp_span line, bool *yes,
                       struct amp_error *err)
{
    const struct amp_check_options any = {0};
    struct amp_view v;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    const struct amp_question_terms *t = rc > 0 ? amp_questions_of(v.protocol) : NULL;
    *yes = t && t->carried_out_by && t->asks(&v) && v.body.escalation.severity != AMP_LEVEL_INFO &&
           !amp_span_is(v.from, "coordinator");
    return rc < 0 ? -1 : 0;
}

/* Whether an escalation that the coordinator did not see awaits a decision, as those of a sweep do:
 * hitl-prompt has a record of it, or the ledger has. */
static int decision_is_awaited(struct amp_coordinator *c, struct amp_span task, struct amp_span ref,
                               bool *open, struct amp_error *err)
{
    struct amp_message_rec rec;
    struct amp_store_rec asked;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, LINES_MAX);
    *open = false;
    if (amp_message_find(c->store, ref, &mem, &rec, err) < 0 ||
        amp_store_get(c->store, AMP_KEY(AMP_ESCALATION_KIND, ref), &asked, err) < 0)
        return -1;
    if (rec.found && (!amp_span_eq(rec.task, task) || rec.state == AMP_DELIVERY_FULFILLED))
        return 0;
    if (!asked.found)
        return rec.found ? is_awaiting(c, rec.line, open, err) : 0;
    struct amp_question_rec q;
    if (amp_question_rec_read(asked.json, &mem, &q, err) < 0)
        return -1;
    *open = amp_span_eq(task, q.task) &&
            !amp_span_is(asked.state, amp_escalation_fsm.states[AMP_ESC_NOTED].name);
    return 0;
}

/* Whether a person has decided the escalation; the store's turn is open, so that no decision comes
 * between this look and the step. */
static int withdrawal_prepare(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    struct amp_store_rec rec;
    char ref[AMP_MSG_ID_MAX] = "";
    amp_span_copy(st->view->body.ack.ref, ref, sizeof ref);
    if (amp_task_load(c->store, st->view->task, &t, NULL, err) < 0)
        return -1;
    const json_t *e = amp_task_find_escalation(&t, ref);
    if (amp_store_get(c->store,
                      AMP_KEY(AMP_ESCALATION_KIND,
                              e ? amp_span_str(amp_json_str(e, "ref")) : amp_span_str(ref)),
                      &rec, err) < 0)
        return -1;
    st->is_decided =
        rec.found && amp_span_is(rec.state, amp_escalation_fsm.states[AMP_ESC_DECIDED].name);
    return 0;
}

/* Opens the question again; the nack may have another recipient. */
static int decision_reopen(struct amp_coordinator *c, const struct amp_view *v,
                           const struct amp_step *st, struct amp_error *err)
{
    const struct amp_refusal r = {.ref = v->body.decision.ref,
                                  .task = v->task,
                                  .code = amp_span_str(st->nack),
                                  .why = amp_span_str(st->why),
                                  .by = c->opt->consumer,
                                  .at_ms = st->now_ms};
    bool reopened = false;
    if (amp_question_reopens(r.code) && amp_question_reopen(c->store, &r, &reopened, err) < 0)
        return -1;
    c->opt->warn("%.*s: decision%s%s refused: %s: %s%s", (int)v->task.n, v->task.p,
                 st->bad_code ? "" : " ",
                 st->bad_code ? "" : amp_operator_word_name(v->body.decision.word), st->nack,
                 st->why, reopened ? "; the question is open again" : "");
    return 0;
}

/* The escalation cannot be answered now: this run does not wait for the task. */
static bool is_unanswered(const struct amp_view *v)
{
    return v->kind == AMP_KIND_NACK && amp_span_is(v->from, "admin") &&
           amp_span_is(v->body.ack.code, AMP_HITL_UNAVAILABLE);
}

/* Parks the task if the nack is about one of its open escalations; other nacks are ignored. */
static int task_park(struct amp_coordinator *c, const struct amp_view *v, struct amp_error *err)
{
    AMP_TASK struct amp_task t = {0};
    char ref[AMP_MSG_ID_MAX];
    bool open = false;
    if (amp_task_load(c->store, v->task, &t, NULL, err) < 0)
        return -1;
    bool waits = amp_span_copy(v->body.ack.ref, ref, sizeof ref) && amp_task_waits_for(&t, ref);
    if (!waits && decision_is_awaited(c, v->task, v->body.ack.ref, &open, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n_tasks; i++)
        if ((waits || open) && amp_span_is(v->task, c->tasks[i].id))
            c->tasks[i].parked = true;
    return 0;
}

/* --- answers --- */

static int ack_queue(struct amp_coordinator *c, const struct amp_view *v, int64_t now_ms,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    if (amp_compose_ack(v, AMP_STAGE_READ, "coordinator", NULL, now_ms, &line, err) < 0)
        return -1;
    line.len--;
    return amp_coordinator_queue(c, amp_buf_span(&line), err);
}

/* Answers the sender: a nack if the step refused the message, else an ack if it asks for one. A
 * decision has no id and gets no ack; its nack names the escalation. */
static int sender_answer(struct amp_coordinator *c, const struct amp_view *v,
                         const struct amp_step *st, struct amp_error *err)
{
    struct amp_view of = *v;
    bool decision = v->kind == AMP_KIND_DECISION, no = *st->nack;
    if (no && amp_coordinator_withdraws(v))
        c->opt->warn("%.*s: the withdrawal of %.*s was refused: %s: %s", AMP_CLIP(v->task, 100),
                     AMP_CLIP(v->body.ack.ref, 200), st->nack, st->why);
    enum amp_ack_stage stage = no ? AMP_STAGE_REJECTED : AMP_STAGE_READ;
    if (decision)
        of.id = v->body.decision.ref;
    else if (!v->id.n || v->kind == AMP_KIND_NACK || v->kind == AMP_KIND_ACK)
        return 0;
    if (!no && (!v->needs_ack || decision))
        return 0;
    if ((no ? nack_queue(c, &of, stage, st->nack, st->why, st->now_ms, err)
            : ack_queue(c, &of, st->now_ms, err)) < 0)
        return -1;
    if (no && v->kind == AMP_KIND_DISPATCH) {
        c->refused_tasks++;
        c->opt->warn("%.*s: the task was refused: %s: %s", (int)v->task.n, v->task.p, st->nack,
                     st->why);
    }
    if (decision)
        return decision_reopen(c, v, st, err);
    return amp_settle_known(c->store, v->id, stage, "coordinator", amp_span_str(st->nack),
                            st->now_ms, err);
}

/* Settles the message that this one answers, also if it was not acknowledged. */
static int answer_settle(struct amp_coordinator *c, const struct amp_view *v,
                         enum amp_ack_stage stage, struct amp_span ref, int64_t now_ms,
                         struct amp_error *err)
{
    char by[64] = "coordinator";
    amp_span_copy(v->from, by, sizeof by);
    struct amp_span code = v->kind == AMP_KIND_NACK ? v->body.ack.code : AMP_SPAN("");
    return ref.n ? amp_settle_known(c->store, ref, stage, by, code, now_ms, err) : 0;
}

static int context_settle(struct amp_coordinator *c, const struct amp_view *v, int64_t now_ms,
                          struct amp_error *err)
{
    const char *asked = v->kind == AMP_KIND_RESULT ? "task_dispatch" : "review_request";
    for (uint32_t i = 0; i < v->context.n; i++)
        if (amp_coordinator_is_id(v->context.v[i], asked, v->task) &&
            answer_settle(c, v, AMP_STAGE_FULFILLED, v->context.v[i], now_ms, err) < 0)
            return -1;
    return 0;
}

static int step_prepare(struct amp_coordinator *c, struct amp_step *st,
                        const struct amp_store_input *in, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    int seen = amp_store_seen(c->store, in, err);
    if (seen != AMP_STORE_NOT_SEEN)
        return seen < 0 ? -1 : 0;
    if (v->kind == AMP_KIND_DISPATCH && !st->bad_code && base_find(c, st, err) < 0)
        return -1;
    if (v->kind != AMP_KIND_DECISION)
        return 0;
    if (decision_is_awaited(c, v->task, v->body.decision.ref, &st->ref_open, err) < 0)
        return -1;
    if (v->body.decision.word == AMP_DO_ROLLBACK && !st->bad_code)
        return decision_roll_back(c, st, err);
    return 0;
}

/* --- after the commit, also when the message arrives again --- */

/* Ends the question of a person who looks at it, lifts the suspension that it caused, and settles
 * the message. */
static int withdrawal_follow(struct amp_coordinator *c, const struct amp_step *st,
                             struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_span ref = *st->withdrawn ? amp_span_str(st->withdrawn) : v->body.ack.ref;
    return amp_coordinator_revoke(c, v->task, ref, v->body.ack.note, st->now_ms, err) < 0 ||
                   answer_settle(c, v, AMP_STAGE_FAILED, v->body.ack.ref, st->now_ms, err) < 0
               ? -1
               : 0;
}

static int agents_update(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    if (v->kind == AMP_KIND_DECISION && !*st->nack) {
        struct amp_span ref = v->body.decision.ref;
        if (answer_settle(c, v, AMP_STAGE_FULFILLED, ref, st->now_ms, err) < 0)
            return -1;
        if (v->body.decision.word == AMP_DO_TERMINATE)
            ref = AMP_SPAN("");
        return amp_task_lift_agents(c->store, v->task, ref, st->now_ms, err);
    }
    if (v->kind == AMP_KIND_ESCALATION) {
        char ref[AMP_MSG_ID_MAX];
        struct amp_view asked = *v;
        amp_step_forward_id(v, ref);
        asked.id = amp_span_str(ref);
        amp_coordinator_pause(c);
        const struct amp_suspend how = {
            .by = c->opt->consumer, .say = c->opt->warn, .now_ms = st->now_ms};
        return amp_suspend_view(c->store, &asked, &how, err);
    }
    if (amp_coordinator_withdraws(v))
        return *st->nack ? 0 : withdrawal_follow(c, st, err);
    if (st->lift)
        return amp_task_lift_agents(c->store, v->task, AMP_SPAN(""), st->now_ms, err);
    return *st->suspend_ref ? amp_coordinator_suspend(c, v->task, st->suspend_ref, st->suspend_type,
                                                      st->now_ms, err)
                            : 0;
}

/* Settles a message that needs no answer any longer. */
static int dispatch_drop(struct amp_coordinator *c, const struct amp_step *st, const char *id,
                         const char *code, struct amp_error *err)
{
    return *id ? amp_settle_known(c->store, amp_span_str(id), AMP_STAGE_FAILED, "coordinator",
                                  amp_span_str(code), st->now_ms, err)
               : 0;
}

static int dispatches_end(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view of = {.id = amp_span_str(st->called_off), .task = st->view->task};
    if (dispatch_drop(c, st, st->dropped[0], AMP_CODE(replaced), err) < 0 ||
        dispatch_drop(c, st, st->dropped[1], AMP_CODE(replaced), err) < 0 ||
        dispatch_drop(c, st, st->called_off, AMP_CODE(terminated), err) < 0)
        return -1;
    return *st->called_off ? nack_queue(c, &of, AMP_STAGE_FAILED, AMP_CODE(terminated),
                                        "the admin ended the task", st->now_ms, err)
                           : 0;
}

static int step_follow(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    bool open = amp_task_is_open(st->t.state);
    struct amp_known_task *k = amp_coordinator_know(c, st->view->task, open, err);
    if (!k)
        return -1;
    k->dirty = true;
    k->parked = st->t.state == AMP_TASK_INCOMPLETE;
    for (uint32_t i = 0; i < st->n_out; i++) {
        struct amp_store_emit *e = &st->emits[i];
        if ((!c->unsent && amp_coordinator_record(c, e->line, st->now_ms, err) < 0) ||
            amp_coordinator_queue_entry(c, e->id, e->line, e->wants_ack, err) < 0)
            return -1;
    }
    return dispatches_end(c, st, err);
}

static int message_step(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    char digest[AMP_SHA256_MAX];
    struct amp_store_input in = {c->opt->consumer, v->id, v->message};
    enum amp_store_outcome outcome = AMP_STORE_UNCHANGED;
    if (v->kind == AMP_KIND_DECISION || v->kind == AMP_KIND_CI_STATUS || v->kind == AMP_KIND_NACK) {
        /* Control records have no id; their digest identifies them. */
        amp_sha256_hex(v->message, digest);
        in.id = amp_span_str(digest);
    }
    if (step_prepare(c, st, &in, err) < 0 || amp_coordinator_begin(c, err) < 0 ||
        (amp_coordinator_withdraws(v) && withdrawal_prepare(c, st, err) < 0))
        return -1;
    if (!*st->nack) {
        struct amp_error why = {0};
        if (amp_store_update(c->store, AMP_KEY(AMP_TASK_KIND, v->task), &in, amp_step_apply, st,
                             &outcome, &why) < 0) {
            if (why.status != AMP_NO) {
                *err = why;
                return -1;
            }
            amp_step_refuse(st, why.code, "%s", why.what);
        }
    }
    if (outcome == AMP_STORE_COMMITTED && step_follow(c, st, err) < 0)
        return -1;
    if (outcome != AMP_STORE_UNCHANGED && agents_update(c, st, err) < 0)
        return -1;
    return amp_coordinator_begin(c, err) < 0 ? -1 : sender_answer(c, v, st, err);
}

bool amp_coordinator_has_protocol(const struct amp_view *v)
{
    return amp_work_of(v->protocol)->keeps_tasks;
}

bool amp_coordinator_is_ours(const struct amp_view *v)
{
    if (!amp_coordinator_has_protocol(v))
        return false;
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
    case AMP_KIND_RESULT:
    case AMP_KIND_VERDICT:
        return amp_intake_is_to(v, "coordinator");
    case AMP_KIND_ESCALATION:
        return !amp_span_is(v->from, "coordinator");
    case AMP_KIND_DECISION:
    case AMP_KIND_CI_STATUS:
    case AMP_KIND_NACK:
        return true;
    default:
        return false;
    }
}

/* A message about AMP_TASK_NONE, the task of escalations about another protocol's work. Such an
 * escalation is forwarded to the admin; hitl-prompt carries out its decision. Other messages about
 * this task are refused. */
static int foreign_step(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    struct amp_store_rec asked;
    switch (v->kind) {
    case AMP_KIND_ESCALATION:
        return amp_step_forward(st, err) < 0
                   ? -1
                   : amp_coordinator_queue(c, (struct amp_span){st->text.data, st->out[0].n}, err);
    case AMP_KIND_NACK:
        return 0;
    case AMP_KIND_DECISION:
        if (amp_store_get(c->store, AMP_KEY(AMP_ESCALATION_KIND, v->body.decision.ref), &asked,
                          err) < 0)
            return -1;
        if (asked.found)
            return 0;
        amp_step_refuse(st, AMP_CODE(unknown_ref), "%.*s is not an escalation of this state",
                        (int)v->body.decision.ref.n, v->body.decision.ref.p);
        break;
    default:
        amp_step_refuse(st, AMP_CODE(bad_value), "%s is not the id of a task", AMP_TASK_NONE);
    }
    return sender_answer(c, v, st, err);
}

/* Records the message in the ledger; one whose id belongs to another message is refused. */
static int ledger_record(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    enum amp_store_outcome outcome;
    struct amp_error why = {0};
    if (amp_message_record(c->store, st->view, st->now_ms, &outcome, &why) == 0)
        return 0;
    if (why.status == AMP_NO)
        return amp_step_refuse(st, why.code, "%s", why.what);
    *err = why;
    return -1;
}

static int step_take(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    if (v->id.n && v->kind != AMP_KIND_NACK && !st->bad_code && ledger_record(c, st, err) < 0)
        return -1;
    if (v->kind == AMP_KIND_NACK && !amp_coordinator_withdraws(v) &&
        answer_settle(c, v, v->body.ack.stage, v->body.ack.ref, st->now_ms, err) < 0)
        return -1;
    if ((v->kind == AMP_KIND_RESULT || v->kind == AMP_KIND_VERDICT) &&
        context_settle(c, v, st->now_ms, err) < 0)
        return -1;
    if (message_step(c, st, err) < 0)
        return -1;
    return *st->nack ? 0 : amp_progress_apply(c->store, v, st->now_ms, err);
}

int amp_coordinator_take(struct amp_coordinator *c, const struct amp_view *v, const char *bad_code,
                         const char *bad_field, struct amp_error *err)
{
    int64_t now_ms = amp_now_ms();
    bool foreign = amp_span_is(v->task, AMP_TASK_NONE);
    if (amp_coordinator_begin(c, err) < 0)
        return -1;
    amp_store_unit(c->store);
    if (!amp_coordinator_is_ours(v)) {
        if (v->kind == AMP_KIND_ACK && amp_coordinator_has_protocol(v))
            return answer_settle(c, v, v->body.ack.stage, v->body.ack.ref, now_ms, err) < 0 ||
                           amp_coordinator_bind(c, v, err) < 0
                       ? -1
                       : amp_progress_apply(c->store, v, now_ms, err);
        return bad_code ? 0 : amp_coordinator_pass(c, v->line, err);
    }
    c->seen |= !foreign;
    if (!foreign && is_unanswered(v))
        return task_park(c, v, err);
    struct amp_step st;
    amp_step_init(&st, c, v, now_ms);
    st.bad_code = bad_code;
    st.bad_field = bad_field;
    int rc = foreign ? foreign_step(c, &st, err) : step_take(c, &st, err);
    amp_step_release(&st);
    return rc;
}
