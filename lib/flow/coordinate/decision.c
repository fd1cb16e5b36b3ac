/* Decisions and their absence: which escalations are open, what follows where one is refused, or
 * where nobody answers. */
#include "flow/coordinate/coordinator.h"
#include "flow/question.h"
#include "flow/work/decide.h"
#include "message/ledger/ledger.h"

#define LINES_MAX ((size_t)256 << 20)

/* Whether a message is an escalation that asks the admin for a decision. Ours are in the task's
 * record for as long as they are open, and so is what asks for one that is not addressed to the
 * admin: it went on as ours. */
static int asks(struct amp_coordinator *c, struct amp_span line, bool *yes, struct amp_error *err)
{
    const struct amp_check_options any = {0};
    struct amp_view v;
    int rc = amp_reader_line(c->own, line, &any, &v, NULL, NULL, err);
    bool to_admin = false;
    for (uint32_t i = 0; rc > 0 && i < v.n_to; i++)
        to_admin |= amp_span_is(v.to[i], "admin");
    *yes = to_admin && v.protocol == AMP_PROTO_AMP && v.kind == AMP_KIND_ESCALATION &&
           v.body.escalation.severity != AMP_LEVEL_INFO && !amp_span_is(v.from, "coordinator");
    return rc < 0 ? -1 : 0;
}

/* Whether a decision is awaited by an escalation that reached the admin without passing here, as
 * those of a sweep: hitl-prompt has a record of it, or the ledger. */
int amp_coordinator_is_open(struct amp_coordinator *c, struct amp_span task, struct amp_span ref,
                            bool *open, struct amp_error *err)
{
    struct amp_message_rec rec;
    struct amp_store_rec asked;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, LINES_MAX);
    *open = false;
    if (amp_message_find(c->store, ref, &mem, &rec, err) < 0 ||
        amp_store_get(c->store, AMP_ESCALATION_KIND, ref, &asked, err) < 0)
        return -1;
    if (rec.found && (!amp_span_eq(rec.task, task) || rec.state == AMP_DELIVERY_FULFILLED))
        return 0;
    if (!asked.found)
        return rec.found ? asks(c, rec.line, open, err) : 0;
    struct amp_question_rec q;
    if (amp_question_rec_read(asked.json, &mem, &q, err) < 0)
        return -1;
    *open = amp_span_eq(task, q.task) &&
            !amp_span_is(asked.state, amp_escalation_fsm.states[AMP_ESC_NOTED].name);
    return 0;
}

/* The nack goes where a route takes it; the question is open again here and now. */
int amp_coordinator_reopen(struct amp_coordinator *c, const struct amp_view *v,
                           const struct amp_step *st, struct amp_error *err)
{
    const struct amp_refusal r = {.ref = v->body.decision.ref,
                                  .task = v->task,
                                  .code = amp_span_str(st->nack),
                                  .why = amp_span_str(st->why),
                                  .by = c->opt->consumer,
                                  .at_ms = st->now_ms};
    bool reopened = false;
    if (amp_flow_reopens(r.code) && amp_flow_reopen(c->store, &r, &reopened, err) < 0)
        return -1;
    c->opt->warn("%.*s: the decision%s%s is refused: %s: %s%s", (int)v->task.n, v->task.p,
                 st->bad_code ? "" : " ",
                 st->bad_code ? "" : amp_operator_word_name(v->body.decision.word), st->nack,
                 st->why, reopened ? "; the question is open again" : "");
    return 0;
}

/* The admin's side cannot answer now: the task waits for another run, and this one not for it. */
bool amp_coordinator_is_no_answer(const struct amp_view *v)
{
    return v->kind == AMP_KIND_NACK && amp_span_is(v->from, "admin") &&
           amp_span_is(v->body.ack.code, AMP_HITL_UNAVAILABLE);
}

/* Only where it is about an open escalation of the task: nobody else's nack ends this run. */
int amp_coordinator_park(struct amp_coordinator *c, const struct amp_view *v, struct amp_error *err)
{
    struct amp_task t;
    char ref[AMP_MSG_ID_MAX];
    bool open = false;
    if (amp_task_load(c->store, v->task, &t, NULL, err) < 0)
        return -1;
    bool waits = amp_span_copy(v->body.ack.ref, ref, sizeof ref) && amp_task_waits_for(&t, ref);
    amp_task_release(&t);
    if (!waits && amp_coordinator_is_open(c, v->task, v->body.ack.ref, &open, err) < 0)
        return -1;
    for (size_t i = 0; i < c->n_tasks; i++)
        if ((waits || open) && amp_span_is(v->task, c->tasks[i].id))
            c->tasks[i].parked = true;
    return 0;
}
