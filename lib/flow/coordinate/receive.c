/*
 * Taking one message: into the ledger, through one step of its task, out again what follows. The
 * order keeps every promise over a crash: the step and what it emits are one commit; agents are
 * suspended or let go, and senders answered, after it, and again when the message comes again.
 */
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "flow/coordinate/coordinator.h"
#include "flow/suspend.h"
#include "hitl/record.h"
#include "message/ledger/ledger.h"
#include "message/settle/answer.h"
#include "message/settle/progress.h"
#include "protocol/terms.h"

#define LINES_MAX ((size_t)256 << 20)

/* The ledger holds what we send, so that those who get it can refer to it. */
static int record_own(struct amp_coordinator *c, struct amp_span line, int64_t now_ms,
                      struct amp_error *err)
{
    struct amp_view v;
    const struct amp_check_options any = {0};
    enum amp_store_outcome outcome;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    if (rc <= 0 || !v.id.n)
        return rc == 0  ? amp_fail(err, AMP_INTERNAL, "invalid_output",
                                   "internal: a composed line is invalid")
               : rc > 0 ? 0
                        : -1;
    return amp_message_record(c->store, &v, now_ms, &outcome, err);
}

/* --- what git and the state say beforehand, outside the store's turn where it may take long --- */

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
    json_t *constraints =
        v->body.dispatch.constraints.n ? amp_json_load(v->body.dispatch.constraints, NULL) : NULL;
    const char *base = json_string_value(json_object_get(constraints, "base"));
    if (base && *base)
        amp_span_copy(amp_span_str(base), rev, sizeof rev);
    json_decref(constraints);
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

/* Whether the step that the decision makes puts the branch back. */
static bool goes_back(struct amp_task *t)
{
    const struct amp_task_part *p = amp_task_turn(t);
    struct amp_fsm_result r;
    return !p || (amp_fsm_step(&amp_qa_fsm, p->state, AMP_QA_EV_ROLLBACK, 0, &r, NULL) == 0 &&
                  (r.effects & AMP_QA_DO_BACK));
}

/* The branch goes back before the decision is recorded: done twice it is the same. */
static int decision_roll_back(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
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
        amp_fail(&why, AMP_NO, "repo_not_git", "%s is not a git repository", t.repo);
    else if (git_get(c, &why)) {
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
    amp_step_refuse(st, why.code, "the branch was not reset: %s", why.what);
    amp_task_release(&t);
    return 0;
}

/* --- decisions, and where none comes --- */

/* Whether a message is an escalation that asks the admin for a decision. Ours are in the task's
 * record for as long as they are open, and so is what asks for one that is not addressed to the
 * admin: it went on as ours. */
static int is_awaiting(struct amp_coordinator *c, struct amp_span line, bool *yes,
                       struct amp_error *err)
{
    const struct amp_check_options any = {0};
    struct amp_view v;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    const struct amp_question_terms *t = rc > 0 ? amp_terms_of(v.protocol)->questions : NULL;
    *yes = t && t->carried_out_by && t->asks(&v) && v.body.escalation.severity != AMP_LEVEL_INFO &&
           !amp_span_is(v.from, "coordinator");
    return rc < 0 ? -1 : 0;
}

/* Whether a decision is awaited by an escalation that reached the admin without passing here, as
 * those of a sweep: hitl-prompt has a record of it, or the ledger. */
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

/* The nack goes where a route takes it; the question is open again here and now. */
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

/* The admin's side cannot answer now: the task waits for another run, and this one not for it. */
static bool is_unanswered(const struct amp_view *v)
{
    return v->kind == AMP_KIND_NACK && amp_span_is(v->from, "admin") &&
           amp_span_is(v->body.ack.code, AMP_HITL_UNAVAILABLE);
}

/* Only where it is about an open escalation of the task: nobody else's nack ends this run. */
static int task_park(struct amp_coordinator *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_task t;
    char ref[AMP_MSG_ID_MAX];
    bool open = false;
    if (amp_task_load(c->store, v->task, &t, NULL, err) < 0)
        return -1;
    bool waits = amp_span_copy(v->body.ack.ref, ref, sizeof ref) && amp_task_waits_for(&t, ref);
    amp_task_release(&t);
    if (!waits && decision_is_awaited(c, v->task, v->body.ack.ref, &open, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n_tasks; i++)
        if ((waits || open) && amp_span_is(v->task, c->tasks[i].id))
            c->tasks[i].parked = true;
    return 0;
}

/* --- answers --- */

static int sender_answer(struct amp_coordinator *c, const struct amp_view *v,
                         const struct amp_step *st, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    struct amp_view of = *v;
    if (v->kind == AMP_KIND_DECISION)
        of.id = v->body.decision.ref;
    else if (!v->id.n || v->kind == AMP_KIND_NACK || v->kind == AMP_KIND_ACK)
        return 0;
    bool no = *st->nack;
    if (!no && (!v->needs_ack || v->kind == AMP_KIND_DECISION))
        return 0;
    int rc = no ? amp_compose_nack(&of, AMP_STAGE_REJECTED, "coordinator", st->nack, st->why, "",
                                   false, st->now_ms, &line, err)
                : amp_compose_ack(&of, AMP_STAGE_READ, "coordinator", NULL, st->now_ms, &line, err);
    if (rc < 0)
        return -1;
    c->refused += no;
    if (no && v->kind == AMP_KIND_DISPATCH) {
        c->refused_tasks++;
        c->opt->warn("%.*s: the task was refused: %s: %s", (int)v->task.n, v->task.p, st->nack,
                     st->why);
    }
    line.len--;
    if (amp_coordinator_queue(c, AMP_SPAN(""), amp_buf_span(&line), true, err) < 0)
        return -1;
    if (v->kind == AMP_KIND_DECISION)
        return decision_reopen(c, v, st, err);
    return amp_settle_known(c->store, v->id, no ? AMP_STAGE_REJECTED : AMP_STAGE_READ,
                            "coordinator", amp_span_str(st->nack), st->now_ms, err);
}

/* An answer shows that what it answers arrived, whether or not that was acknowledged. */
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
    static const char *const asked[] = {
        [AMP_KIND_RESULT] = "task_dispatch-", [AMP_KIND_VERDICT] = "review_request-"};
    size_t n = strlen(asked[v->kind]);
    for (uint32_t i = 0; i < v->context.n; i++)
        if (v->context.v[i].n > n && memcmp(v->context.v[i].p, asked[v->kind], n) == 0 &&
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

/* --- after the commit, also when the message came again --- */

static int agents_update(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    if (v->kind == AMP_KIND_DECISION && !*st->nack)
        return answer_settle(c, v, AMP_STAGE_FULFILLED, v->body.decision.ref, st->now_ms, err) < 0
                   ? -1
                   : amp_flow_lift_agents(c->store, v->task,
                                          v->body.decision.word == AMP_DO_TERMINATE
                                              ? AMP_SPAN("")
                                              : v->body.decision.ref,
                                          st->now_ms, err);
    if (v->kind == AMP_KIND_ESCALATION) {
        char ref[AMP_MSG_ID_MAX];
        struct amp_view asked = *v;
        amp_say_again_id(v, ref);
        asked.id = amp_span_str(ref);
        amp_coordinator_pause(c);
        const struct amp_suspend how = {
            .by = c->opt->consumer, .say = c->opt->warn, .now_ms = st->now_ms};
        return amp_flow_suspend_view(c->store, &asked, &how, err);
    }
    if (st->lift)
        return amp_flow_lift_agents(c->store, v->task, AMP_SPAN(""), st->now_ms, err);
    if (!*st->suspend_ref)
        return 0;
    const struct amp_suspend a = {.task_id = v->task,
                                  .ref = amp_span_str(st->suspend_ref),
                                  .type = st->suspend_type,
                                  .triggered_by = "coordinator",
                                  .level = AMP_LEVEL_CRITICAL,
                                  .by = c->opt->consumer,
                                  .say = c->opt->warn,
                                  .now_ms = st->now_ms};
    return amp_flow_suspend(c->store, &a, err);
}

/* What is no longer asked is neither sent again nor waited for. */
static int dispatch_drop(struct amp_coordinator *c, const struct amp_step *st, const char *id,
                         const char *code, struct amp_error *err)
{
    return *id ? amp_settle_known(c->store, amp_span_str(id), AMP_STAGE_FAILED, "coordinator",
                                  amp_span_str(code), st->now_ms, err)
               : 0;
}

static int dispatches_end(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    if (dispatch_drop(c, st, st->dropped[0], "replaced", err) < 0 ||
        dispatch_drop(c, st, st->dropped[1], "replaced", err) < 0 ||
        dispatch_drop(c, st, st->called_off, "terminated", err) < 0)
        return -1;
    if (!*st->called_off)
        return 0;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, 65536);
    const struct amp_view of = {.id = amp_span_str(st->called_off), .task = st->view->task};
    if (amp_compose_nack(&of, AMP_STAGE_FAILED, "coordinator", "terminated",
                         "the admin ended the task", "", false, st->now_ms, &line, err) < 0)
        return -1;
    line.len--;
    return amp_coordinator_queue(c, AMP_SPAN(""), amp_buf_span(&line), true, err);
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
        if (record_own(c, e->line, st->now_ms, err) < 0 ||
            amp_coordinator_queue(c, e->id, e->line, e->wants_ack, err) < 0)
            return -1;
    }
    return dispatches_end(c, st, err);
}

static int message_step(struct amp_coordinator *c, struct amp_step *st, struct amp_error *err)
{
    const struct amp_view *v = st->view;
    char digest[AMP_SHA256_MAX];
    struct amp_store_input in = {c->opt->consumer, v->id, v->line};
    enum amp_store_outcome outcome = AMP_STORE_UNCHANGED;
    if (v->kind == AMP_KIND_DECISION || v->kind == AMP_KIND_CI_STATUS || v->kind == AMP_KIND_NACK) {
        /* Control records have no id: the same bytes are the same record. */
        amp_sha256_hex(v->line, digest);
        in.id = amp_span_str(digest);
    }
    if (step_prepare(c, st, &in, err) < 0 || amp_coordinator_begin(c, err) < 0)
        return -1;
    if (!*st->nack) {
        struct amp_error why = {0};
        if (amp_store_update(c->store, AMP_KEY(AMP_TASK_KIND, v->task), &in, amp_step_apply, st,
                             &outcome, &why) < 0) {
            if (why.status != AMP_NO) {
                if (err)
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

bool amp_coordinator_speaks(const struct amp_view *v)
{
    return amp_terms_of(v->protocol)->keeps_tasks;
}

bool amp_coordinator_is_ours(const struct amp_view *v)
{
    if (!amp_coordinator_speaks(v))
        return false;
    switch (v->kind) {
    case AMP_KIND_DISPATCH:
    case AMP_KIND_RESULT:
    case AMP_KIND_VERDICT:
        for (uint32_t i = 0; i < v->n_to; i++)
            if (amp_span_is(v->to[i], "coordinator"))
                return true;
        return false;
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

/* What an escalation about another protocol's work (AMP_TASK_NONE) brings: it passes on its way to
 * the admin, and hitl-prompt has carried the decision out. As the task of anything else the name is
 * refused. */
static int take_foreign(struct amp_coordinator *c, const struct amp_view *v, int64_t now_ms,
                        struct amp_error *err)
{
    struct amp_store_rec asked;
    struct amp_step st;
    amp_step_init(&st, c, v, now_ms);
    int rc = 0;
    switch (v->kind) {
    case AMP_KIND_ESCALATION:
        if ((rc = amp_say_again(&st, err)) == 0)
            rc = amp_coordinator_queue(c, AMP_SPAN(""),
                                       (struct amp_span){st.text.data, st.out[0].n}, true, err);
        break;
    case AMP_KIND_NACK: /* about a question that nobody answered, or that ended */
        break;
    case AMP_KIND_DECISION:
        rc = amp_store_get(c->store, AMP_KEY(AMP_ESCALATION_KIND, v->body.decision.ref), &asked,
                           err);
        if (rc == 0 && !asked.found) {
            amp_step_refuse(&st, "unknown_ref", "%.*s is not an escalation of this state",
                            (int)v->body.decision.ref.n, v->body.decision.ref.p);
            rc = sender_answer(c, v, &st, err);
        }
        break;
    default:
        amp_step_refuse(&st, "bad_value", "%s is not the id of a task", AMP_TASK_NONE);
        rc = sender_answer(c, v, &st, err);
    }
    amp_step_release(&st);
    return rc;
}

int amp_coordinator_take(struct amp_coordinator *c, const struct amp_view *v, const char *bad_code,
                         const char *bad_field, struct amp_error *err)
{
    int64_t now_ms = amp_now_ms();
    enum amp_store_outcome outcome;
    if (amp_coordinator_begin(c, err) < 0)
        return -1;
    if (!amp_coordinator_is_ours(v)) {
        if (v->kind == AMP_KIND_ACK && amp_coordinator_speaks(v))
            return answer_settle(c, v, v->body.ack.stage, v->body.ack.ref, now_ms, err) < 0
                       ? -1
                       : amp_progress_apply(c->store, v, now_ms, err);
        return bad_code ? 0 : amp_coordinator_queue(c, AMP_SPAN(""), v->line, true, err);
    }
    if (amp_span_is(v->task, AMP_TASK_NONE))
        return take_foreign(c, v, now_ms, err);
    c->seen = true;
    if (is_unanswered(v))
        return task_park(c, v, err);
    struct amp_step st;
    amp_step_init(&st, c, v, now_ms);
    st.bad_code = bad_code;
    st.bad_field = bad_field;
    int rc = 0;
    if (v->id.n && v->kind != AMP_KIND_NACK && !bad_code) {
        struct amp_error why = {0};
        rc = amp_message_record(c->store, v, now_ms, &outcome, &why);
        if (rc < 0 && why.status == AMP_NO) {
            /* Another message under an id that was given before. */
            amp_step_refuse(&st, why.code, "%s", why.what);
            rc = 0;
        } else if (rc < 0 && err) {
            *err = why;
        }
    }
    if (rc == 0 && v->kind == AMP_KIND_NACK)
        rc = answer_settle(c, v, v->body.ack.stage, v->body.ack.ref, now_ms, err);
    if (rc == 0 && (v->kind == AMP_KIND_RESULT || v->kind == AMP_KIND_VERDICT))
        rc = context_settle(c, v, now_ms, err);
    if (rc == 0)
        rc = message_step(c, &st, err);
    if (rc == 0 && !*st.nack)
        rc = amp_progress_apply(c->store, v, now_ms, err);
    amp_step_release(&st);
    return rc;
}
