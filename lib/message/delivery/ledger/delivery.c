/* The steps of a delivery: facts, the machine, and the effects on the record. */
#include "message/delivery/ledger/delivery.h"

#include "message/protocol/delivery.h"

static bool admission_ends(const struct amp_delivery_terms *t)
{
    return t->acknowledges && t->waits_for == AMP_STAGE_RECEIVED;
}

int amp_delivery_decide(const struct amp_message_rec *r, struct amp_delivery_step *st,
                        struct amp_error *err)
{
    const struct amp_delivery_terms *t = amp_delivery_of(amp_protocol_find(r->protocol));
    uint32_t facts = (r->departed_ms > 0 ? AMP_DELIVERY_IF_RETRY_DELIVERED : 0) |
                     (admission_ends(t) ? AMP_DELIVERY_IF_ADMISSION_ENDS : 0) |
                     (t->work_is_ack ? AMP_DELIVERY_IF_UNTIL_OUTCOME : 0) |
                     (t->work_is_ack || r->sla_ms > 0 ? AMP_DELIVERY_IF_RUNS_ON : 0) |
                     (st->failure != AMP_FAILURE_NONE ? AMP_DELIVERY_IF_CLASSED : 0) |
                     (st->notified ? AMP_DELIVERY_IF_NOTIFIED : 0);
    st->from = r->state;
    return amp_fsm_step(&amp_delivery_fsm, r->state, (uint8_t)st->event, facts, &st->r, err);
}

/* The deadline of the outcome if its time begins now. */
static int64_t outcome_due(const struct amp_message_rec *r, const struct amp_delivery_step *st)
{
    return (st->eta_ms > st->now_ms ? st->eta_ms : st->now_ms) + r->sla_ms;
}

bool amp_delivery_puts_off(const struct amp_message_rec *r, const struct amp_delivery_step *st)
{
    return st->eta_ms > 0 && r->sla_ms > 0 &&
           (r->state == AMP_DELIVERY_RECEIVED || r->state == AMP_DELIVERY_READ) &&
           outcome_due(r, st) != r->due_ms && st->holder;
}

/* The time at which the next sign of life is due, at the latest the deadline. */
static int64_t beat_next(const struct amp_message_rec *r, int64_t now_ms)
{
    int64_t beat = now_ms + r->beat_ms;
    return r->beat_ms > 0 && beat < r->until_ms ? beat : r->until_ms;
}

/* The time at which the sweep checks for the acknowledgement, or the expiry if it is earlier. */
static int64_t wait_until(const struct amp_message_rec *r, int64_t now_ms)
{
    int64_t until = now_ms + r->ack_timeout_ms;
    if (r->ack_timeout_ms <= 0)
        return 0;
    return r->expires_ms > 0 && r->expires_ms < until ? r->expires_ms : until;
}

static void wait_begin(struct amp_message_rec *r, int64_t now_ms)
{
    r->due_ms = wait_until(r, now_ms);
    r->until_ms = r->beat_ms > 0 ? r->due_ms : 0;
    if (r->until_ms > 0)
        r->due_ms = beat_next(r, now_ms);
}

/* The deadline of an admitted message: that of its outcome, or its expiry if its protocol lets
 * admitted messages expire. The time of an execution that waits in an inbox has not begun. */
static int64_t admission_due(const struct amp_message_rec *r, const struct amp_delivery_step *st)
{
    const struct amp_delivery_terms *t = amp_delivery_of(amp_protocol_find(r->protocol));
    int64_t expires = t->expires_unread ? r->expires_ms : 0;
    if (r->sla_ms == 0 || (t->begins_read && st->waits))
        return expires;
    int64_t due = outcome_due(r, st);
    return expires > 0 && expires < due ? expires : due;
}

static void outcome_expect(struct amp_message_rec *r, const struct amp_delivery_step *st)
{
    const struct amp_delivery_terms *t = amp_delivery_of(amp_protocol_find(r->protocol));
    bool admitted = st->from == AMP_DELIVERY_RECEIVED && r->due_ms > 0 && !t->begins_read;
    if (st->r.to == st->from && amp_delivery_puts_off(r, st))
        r->due_ms = outcome_due(r, st);
    else if (st->r.to == AMP_DELIVERY_RECEIVED && st->r.to != st->from && admission_ends(t))
        r->due_ms = admission_due(r, st);
    else if (st->r.to == AMP_DELIVERY_READ && st->r.to != st->from && r->sla_ms > 0 && !admitted)
        r->due_ms = outcome_due(r, st);
    if (r->beat_ms == 0 || (st->r.effects & AMP_DELIVERY_DO_LOG_LATE))
        return;
    /* Work that waits in an inbox has not begun: no sign of life is due. */
    if (st->r.to == AMP_DELIVERY_RECEIVED)
        r->due_ms = r->until_ms;
    else if (st->r.to == AMP_DELIVERY_READ && st->holder)
        r->due_ms = beat_next(r, st->now_ms);
}

/* Clears the earlier answers, so that the next one is not taken for a repetition. */
static void begin_anew(struct amp_message_rec *r)
{
    struct amp_span none = {"", 0};
    r->requeues++;
    r->expires_ms = r->seen_ms = r->timed_out_ms = r->progress_ms = 0;
    r->silent = r->lost = r->supervised = r->notified = r->held = false;
    r->attempt = r->departed_ms = r->sequence = 0;
    r->n_tries = r->n_acks = 0;
    r->next = r->node = r->failure = r->given_up = r->holder = r->result = none;
}

static void sign_note(struct amp_message_rec *r, const struct amp_delivery_step *st)
{
    if (r->beat_ms > 0 && st->from == AMP_DELIVERY_READ)
        r->due_ms = beat_next(r, st->now_ms);
    if (r->seen_ms > 0) {
        r->seen_ms = st->now_ms;
        r->lost = false;
    }
}

/* The time limit of the state begins anew; that of the time to live does not. */
static void put_off(struct amp_message_rec *r, int64_t now_ms)
{
    bool outcome = r->state != AMP_DELIVERY_SENT && r->sla_ms > 0;
    int64_t limit = outcome ? r->sla_ms : r->ack_timeout_ms;
    int64_t due = now_ms + (limit > 0 ? limit : r->beat_ms);
    bool expires = r->state == AMP_DELIVERY_SENT ||
                   (r->state == AMP_DELIVERY_RECEIVED &&
                    amp_delivery_of(amp_protocol_find(r->protocol))->expires_unread);
    if (expires && r->expires_ms > now_ms && r->expires_ms < due)
        due = r->expires_ms;
    r->due_ms = due;
    if (r->beat_ms > 0) {
        r->until_ms = due;
        r->due_ms = beat_next(r, now_ms);
    }
}

void amp_delivery_carry(struct amp_message_rec *r, const struct amp_delivery_step *st)
{
    uint32_t eff = st->r.effects;
    if (eff & AMP_DELIVERY_DO_BEGIN_ANEW)
        begin_anew(r);
    if (eff & AMP_DELIVERY_DO_CANCEL_RETRY)
        r->next = (struct amp_span){"", 0};
    if (eff & (AMP_DELIVERY_DO_SET_DEADLINE | AMP_DELIVERY_DO_CANCEL_RETRY))
        wait_begin(r, st->now_ms);
    if (eff & AMP_DELIVERY_DO_CLEAR_DEADLINE)
        r->due_ms = 0;
    if (eff & AMP_DELIVERY_DO_EXPECT)
        outcome_expect(r, st);
    if (eff & AMP_DELIVERY_DO_HEARD)
        sign_note(r, st);
    if (eff & AMP_DELIVERY_DO_PUT_OFF)
        put_off(r, st->now_ms);
    if (eff & AMP_DELIVERY_DO_RUN_ON) {
        r->lost = r->seen_ms > 0;
        r->due_ms = r->beat_ms > 0 ? r->until_ms : r->due_ms;
    }
    if (eff & AMP_DELIVERY_DO_LOG_TIMEOUT)
        r->timed_out_ms = st->now_ms;
    if (eff & AMP_DELIVERY_DO_AWAIT_RETRY) {
        r->due_ms = st->at_ms;
        r->departed_ms = 0;
    }
    if (eff & AMP_DELIVERY_DO_DEPART)
        r->departed_ms = st->now_ms;
    if (st->failure != AMP_FAILURE_NONE && (eff & AMP_DELIVERY_DO_DECIDE))
        r->failure = amp_span_str(st->failure == AMP_FAILURE_PASSING ? "passing" : "terminal");
    /* The next sweep continues here. */
    if (eff & (AMP_DELIVERY_DO_DECIDE | AMP_DELIVERY_DO_DEPART | AMP_DELIVERY_DO_BURY))
        r->due_ms = st->now_ms;
    r->held = r->held && st->r.to == st->from;
    r->state = st->r.to;
}

int amp_delivery_step(struct amp_message_rec *r, struct amp_delivery_step *st,
                      struct amp_error *err)
{
    if (amp_delivery_decide(r, st, err) < 0)
        return -1;
    amp_delivery_carry(r, st);
    return 0;
}
