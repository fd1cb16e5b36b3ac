/* The steps of the sweep. Each is one commit, which fails if the record has changed. */
#include <stdio.h>

#include "base/codes.h"
#include "message/delivery/settle/step.h"
#include "message/protocol/delivery.h"

const char *amp_step_escalation(const struct amp_overdue *o)
{
    return o->silent || o->r.silent ? AMP_CODE(heartbeat_timeout) : AMP_CODE(ack_timeout);
}

static int move_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                   struct amp_error *err)
{
    struct amp_overdue *o = ctx;
    struct amp_sweep *sw = o->sw;
    o->raced = now->rev != o->rev;
    if (o->raced)
        return 1;
    amp_buf_reset(&sw->out);
    if (amp_record_write(&o->r, NULL, &sw->out, err) < 0)
        return -1;
    change->event = amp_delivery_fsm.events[o->st.event].name;
    change->to = amp_delivery_fsm.states[o->r.state].name;
    change->json = amp_buf_span(&sw->out);
    change->due_ms = amp_record_due(&o->r, AMP_SILENCE_MS);
    change->actor = sw->opt->actor;
    if (o->emits && !sw->opt->answers) {
        change->emits = &sw->emit;
        change->n_emits = 1;
    }
    return 0;
}

static void step_count(const struct amp_overdue *o)
{
    struct amp_metrics *m = o->sw->opt->metrics;
    struct amp_span type = amp_span_str(amp_step_escalation(o));
    struct amp_metric_labels escalation = {.code = type};
    struct amp_metric_labels l = {.agent = o->r.to,
                                  .code = o->r.given_up.n > 0 ? o->r.given_up : type,
                                  .protocol = amp_protocol_name(amp_protocol_find(o->r.protocol))};
    if (o->st.r.effects & AMP_DELIVERY_DO_LOG_TIMEOUT)
        amp_metrics_add(m, AMP_METRIC_TIMEOUTS, &l, 1);
    if (o->st.r.effects & AMP_DELIVERY_DO_DEPART)
        amp_metrics_add(m, AMP_METRIC_RETRIES, &l, 1);
    if (o->notified == AMP_NOTIFIED_SENDER)
        amp_metrics_add(m, AMP_METRIC_NACKS, &l, 1);
    if (o->notified == AMP_NOTIFIED_PERSON)
        amp_metrics_add(m, AMP_METRIC_ESCALATIONS, &escalation, 1);
}

/* Carries out the effects of a step. Its commit also puts the notice or the next attempt into the
 * outbox. */
static int step_carry(struct amp_overdue *o)
{
    uint32_t eff = o->st.r.effects;
    if ((eff & AMP_DELIVERY_DO_NOTIFY) && amp_notify_end(o) < 0)
        return -1;
    if (eff & AMP_DELIVERY_DO_LOG_TIMEOUT) {
        o->r.notified = o->notified == AMP_NOTIFIED_PERSON;
        o->r.silent = o->silent;
    }
    o->emits |= (eff & AMP_DELIVERY_DO_DEPART) != 0;
    amp_delivery_carry(&o->r, &o->st);
    return 0;
}

int amp_step_commit(struct amp_overdue *o)
{
    o->st.now_ms = o->sw->now_ms;
    if (amp_delivery_decide(&o->r, &o->st, o->sw->err) < 0 || step_carry(o) < 0)
        return -1;
    if (amp_store_update(o->sw->store, AMP_KEY(AMP_MESSAGE_KIND, o->id), NULL, move_fn, o, NULL,
                         o->sw->err) < 0)
        return -1;
    if (o->raced)
        return 1;
    o->sw->raised += o->emits;
    step_count(o);
    struct amp_buf *answers = o->sw->opt->answers;
    struct amp_span line = o->sw->emit.line;
    if (o->emits && answers &&
        (amp_buf_add(answers, line.p, line.n, o->sw->err) < 0 ||
         amp_buf_add(answers, "\n", 1, o->sw->err) < 0))
        return -1;
    return 0;
}

int amp_step_settle(struct amp_overdue *o)
{
    o->st.event = AMP_DELIVERY_EV_SETTLE;
    return amp_step_commit(o) < 0 ? -1 : 1;
}

int amp_step_read(struct amp_overdue *o, struct amp_span line, struct amp_view *v)
{
    struct amp_sweep *sw = o->sw;
    struct amp_check_options opt = {.bare = false};
    if (!sw->reader && !(sw->reader = amp_reader_new(NULL, sw->err)))
        return -1;
    int rc = amp_reader_line(sw->reader, line, &opt, v, NULL, NULL, sw->err);
    if (rc > 0)
        amp_message_name(v, sw->named);
    return rc;
}

/* If a message is sent again until its outcome, it arrives only with the outcome. */
bool amp_step_has_arrived(const struct amp_message_rec *r)
{
    return amp_delivery_of(amp_protocol_find(r->protocol))->work_is_ack
               ? amp_record_has_stage(r, "FULFILLED")
               : amp_record_arrived(r);
}

int amp_step_arrived(struct amp_overdue *o, bool *arrived)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    *arrived = amp_step_has_arrived(&o->r);
    for (uint32_t i = 0; i < o->r.n_tries && !*arrived; i++) {
        struct amp_message_rec former;
        if (o->r.tries[i].msg_id.n == 0)
            continue;
        if (amp_message_find(o->sw->store, o->r.tries[i].msg_id, &mem, &former, o->sw->err) < 0)
            return -1;
        *arrived = former.found && amp_step_has_arrived(&former);
    }
    return 0;
}

void amp_step_code(const struct amp_message_rec *r, char out[128])
{
    const char *timeout = amp_delivery_of(amp_protocol_find(r->protocol))->timeout_code;
    bool expired = r->failure.n == 0 && amp_span_is(r->given_up, AMP_CODE(ttl_expired));
    snprintf(out, 128, "%s",
             r->failure.n > 0 ? "rejected"
             : expired        ? AMP_CODE(ttl_expired)
             : r->silent      ? AMP_CODE(E_HEARTBEAT_FAILURE)
             : timeout        ? timeout
                              : AMP_CODE(ack_timeout));
    for (uint32_t i = 0; r->failure.n > 0 && i < r->n_acks; i++)
        if (r->acks[i].code.n > 0)
            amp_span_copy(r->acks[i].code, out, 128);
}

int64_t amp_step_attempts(const struct amp_message_rec *r)
{
    return r->attempt > 0 ? r->attempt : 1;
}
