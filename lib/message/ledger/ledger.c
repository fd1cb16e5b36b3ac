/*
 * The ledger: every message, and how far its delivery came. Each change is one compare-and-set of
 * the key "message.<id>"; the machine decides under the lock on what stands there at that moment,
 * so two acknowledgements at once, or an acknowledgement against a sweep, come out in some order
 * and never half.
 */
#include "message/ledger/ledger.h"

#include "message/ledger/awaited.h"
#include "message/ledger/holder.h"
#include "message/ledger/stages.h"
#include "message/ledger/work.h"
#include "message/record/operation_key.h"
#include "protocol/terms.h"

#include <string.h>

static const uint8_t stage_events[] = {
    [AMP_STAGE_RECEIVED] = AMP_DELIVERY_EV_ACK_RECEIVED,
    [AMP_STAGE_READ] = AMP_DELIVERY_EV_ACK_READ,
    [AMP_STAGE_FULFILLED] = AMP_DELIVERY_EV_ACK_FULFILLED,
    [AMP_STAGE_REJECTED] = AMP_DELIVERY_EV_NACK_REJECTED,
    [AMP_STAGE_FAILED] = AMP_DELIVERY_EV_NACK_FAILED,
    [AMP_STAGE_TIMED_OUT] = AMP_DELIVERY_EV_TIMEOUT,
};

static bool admission_is_enough(struct amp_span protocol)
{
    const struct amp_terms *t = amp_terms_of(amp_protocol_find(protocol));
    return t->acknowledges && t->waits_for == AMP_STAGE_RECEIVED;
}

/* One update's working memory: what the callback hands to the store lives here. */
struct work {
    struct amp_message_rec rec;
    struct amp_buf mem, out, claim;
    struct amp_span result;
    const struct amp_view *view;
    const struct amp_message_former *former;
    int64_t now_ms;
    struct amp_ack_note note;
    enum amp_ack_stage stage;
    enum amp_failure failure;
    int64_t eta_ms;
    const struct amp_message_answer *said;
    bool holds, ours;
    struct amp_span id;
    char role[128];
    bool same;
    struct amp_message_changes *changes; /* of an answer */
};

static void work_init(struct work *w)
{
    memset(w, 0, sizeof(*w));
    amp_buf_init(&w->mem, AMP_RECORD_MAX);
    amp_buf_init(&w->out, AMP_RECORD_MAX);
    amp_buf_init(&w->claim, 4096);
}

static void work_release(struct work *w)
{
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
    amp_buf_release(&w->claim);
}

static int record_load(struct work *w, const struct amp_store_rec *now, struct amp_error *err)
{
    return amp_message_parse(now, &w->mem, &w->rec, err);
}

static int record_commit(struct work *w, const char *event, uint8_t to,
                         const struct amp_ack_note *note, struct amp_store_change *change,
                         struct amp_error *err)
{
    amp_buf_reset(&w->out);
    if (amp_record_write(&w->rec, note, &w->out, err) < 0)
        return -1;
    change->event = event;
    change->to = amp_delivery_fsm.states[to].name;
    change->json = amp_buf_span(&w->out);
    change->due_ms = amp_record_due(&w->rec, AMP_SILENCE_MS);
    change->actor = note && *note->by ? note->by : NULL;
    return 0;
}

/* When somebody has to look whether it was acknowledged, or expired before. */
static int64_t wait_until(const struct work *w)
{
    int64_t wait = w->rec.ack_timeout_ms, until = w->now_ms + wait;
    if (wait <= 0)
        return 0;
    return w->rec.expires_ms > 0 && w->rec.expires_ms < until ? w->rec.expires_ms : until;
}

/* The next sign of life is due before its time is over. */
static int64_t beat_next(const struct work *w)
{
    int64_t beat = w->now_ms + w->rec.beat_ms;
    return w->rec.beat_ms > 0 && beat < w->rec.until_ms ? beat : w->rec.until_ms;
}

static void wait_begin(struct work *w)
{
    w->rec.due_ms = wait_until(w);
    w->rec.until_ms = w->rec.beat_ms > 0 ? w->rec.due_ms : 0;
    if (w->rec.until_ms > 0)
        w->rec.due_ms = beat_next(w);
}

/* The record of a message that the ledger does not know. */
static int record_describe(struct work *w, struct amp_error *err)
{
    const struct amp_view *v = w->view;
    w->rec.line = v->line;
    w->rec.protocol = amp_span_str(amp_protocol_name(v->protocol));
    w->rec.type = v->type;
    w->rec.from = v->from;
    w->rec.to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0};
    w->rec.task = v->task;
    if (amp_operation_key(v, &w->claim, err) < 0)
        return -1;
    w->rec.claim = amp_buf_span(&w->claim);
    w->rec.sent_ms = w->now_ms;
    w->rec.correlation = v->correlation;
    w->rec.ack_timeout_ms = amp_stages_timeout(v);
    w->rec.sla_ms = amp_stages_sla(v);
    w->rec.wants_outcome = v->wants_outcome;
    w->rec.for_many = v->n_to > 1 || amp_span_is(w->rec.to, "all");
    return 0;
}

static int bytes_check(const struct work *w, struct amp_error *err)
{
    const struct amp_view *v = w->view;
    if (amp_span_eq(w->rec.line, v->line))
        return 0;
    return amp_fail(err, AMP_NO, "duplicate_msg_id", "another message already has the id %.*s",
                    (int)v->id.n, v->id.p);
}

static int record_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct work *w = ctx;
    const struct amp_view *v = w->view;
    if (now->found) {
        if (record_load(w, now, err) < 0)
            return -1;
        if (bytes_check(w, err) < 0)
            return -1;
        w->same = true;
        return 1;
    }
    if (record_describe(w, err) < 0)
        return -1;
    w->rec.expires_ms = w->rec.ack_timeout_ms > 0 ? amp_message_expiry(v, w->now_ms) : 0;
    if (w->former) {
        w->rec.attempt = w->former->attempt + 1;
        w->rec.origin = w->former->first;
        w->rec.tries = w->former->tries;
        w->rec.n_tries = w->former->n_tries;
        w->rec.ack_timeout_ms = w->former->ack_timeout_ms;
        w->rec.sla_ms = w->former->sla_ms;
    }
    const struct amp_terms *terms = amp_terms_of(v->protocol);
    if (terms->beat)
        terms->beat(v, &w->rec.beat_ms, &w->rec.beat_warns);
    wait_begin(w);
    if (!w->former && amp_message_expired(v, w->now_ms)) { /* whether or not it is waited for */
        w->rec.expires_ms = v->expires_ms;
        w->rec.due_ms = w->now_ms;
    }
    return record_commit(w, w->former ? "resend" : "record", AMP_DELIVERY_SENT, NULL, change, err);
}

int64_t amp_message_expiry(const struct amp_view *v, int64_t now_ms)
{
    bool counts = v->expires_ms == 0 && v->ttl_ms > 0 && v->ttl_ms < INT64_MAX - now_ms;
    if (amp_terms_of(v->protocol)->expiry_is_wish)
        return 0;
    return counts ? now_ms + v->ttl_ms : v->expires_ms;
}

bool amp_message_expired(const struct amp_view *v, int64_t now_ms)
{
    return v->expires_ms > 0 && v->expires_ms <= now_ms &&
           !amp_terms_of(v->protocol)->expiry_is_wish;
}

static int message_record(struct amp_store *s, struct work *w, enum amp_store_outcome *outcome,
                          struct amp_error *err)
{
    enum amp_store_outcome how;
    if (w->view->id.n == 0)
        return amp_fail(err, AMP_NO, "missing_field", "a message without an id is not recorded");
    int rc = amp_awaited_note(s, w->view, w->now_ms, err);
    if (rc == 0)
        rc = amp_store_update(s, AMP_MESSAGE_KIND, w->view->id, NULL, record_fn, w, &how, err);
    if (rc == 0 && outcome)
        *outcome = w->same ? AMP_STORE_REDELIVERED : how;
    work_release(w);
    return rc;
}

int amp_message_record(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       enum amp_store_outcome *outcome, struct amp_error *err)
{
    struct work w;
    work_init(&w);
    w.view = v;
    w.now_ms = now_ms;
    return message_record(s, &w, outcome, err);
}

int amp_message_record_next(struct amp_store *s, const struct amp_view *v,
                            const struct amp_message_former *former, int64_t now_ms,
                            struct amp_error *err)
{
    struct work w;
    work_init(&w);
    w.view = v;
    w.former = former;
    w.now_ms = now_ms;
    return message_record(s, &w, NULL, err);
}

/* What the machinery says of work that nobody took up needs no holder. */
static int holder_check(const struct work *w, struct amp_span id, struct amp_error *err)
{
    struct amp_holder_claim c = {
        .stage = w->stage, .by = w->note.by, .role = w->role, .takes_up = w->said->takes_up};
    return w->ours && w->rec.holder.n == 0 ? 0 : amp_holder_check(&w->rec, id, &c, err);
}

static bool is_failure(enum amp_ack_stage stage)
{
    return stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED;
}

static bool is_sw4rm(const struct work *w)
{
    return amp_span_is(w->rec.protocol, "sw4rm");
}

/* When its outcome must be known, where its time begins now. */
static int64_t outcome_due(const struct work *w)
{
    return (w->eta_ms > w->now_ms ? w->eta_ms : w->now_ms) + w->rec.sla_ms;
}

/* Admitted: SW4RM's messages may still expire unread, the Runtime Protocol's tasks have until the
 * outcome that somebody waits for. A TOOL_CALL's time is that of its execution: in an inbox it has
 * not begun. */
static int64_t admission_due(const struct work *w)
{
    if (w->rec.sla_ms == 0 || (is_sw4rm(w) && w->said->waits))
        return is_sw4rm(w) ? w->rec.expires_ms : 0;
    int64_t due = outcome_due(w);
    bool expires_first = is_sw4rm(w) && w->rec.expires_ms > 0 && w->rec.expires_ms < due;
    return expires_first ? w->rec.expires_ms : due;
}

static bool is_of_holder(const struct work *w)
{
    struct amp_holder_claim c = {.stage = w->stage, .by = w->note.by, .role = w->role};
    return amp_holder_is(&w->rec, &c);
}

/* Whether the agent that has the work tells when it expects to be done. */
static bool puts_off(const struct work *w)
{
    return w->eta_ms > 0 && w->rec.sla_ms > 0 &&
           (w->rec.state == AMP_DELIVERY_RECEIVED || w->rec.state == AMP_DELIVERY_READ) &&
           outcome_due(w) != w->rec.due_ms && is_of_holder(w);
}

/* Work that was taken up runs on until its outcome. The Runtime Protocol counts from the admission,
 * an execution begins when it is taken up. */
static void outcome_expect(struct work *w)
{
    bool admitted = w->rec.state == AMP_DELIVERY_RECEIVED && w->rec.due_ms > 0;
    if (w->rec.state == AMP_DELIVERY_READ || (admitted && !is_sw4rm(w)))
        return;
    w->rec.due_ms = outcome_due(w);
}

/* The receiver has this attempt after all: none is needed that did not begin its way yet. */
static void late_settle(struct work *w, uint32_t eff)
{
    if (!w->note.late || is_failure(w->stage) || w->stage == AMP_STAGE_TIMED_OUT)
        return;
    if (w->rec.state == AMP_DELIVERY_TIMED_OUT)
        w->rec.due_ms = 0;
    /* A letter of it, or of a later attempt, is closed after this commit, or by the sweep after a
     * crash. */
    bool left = (eff & AMP_DELIVERY_DO_TRACK_BOTH) && w->rec.due_ms == 0;
    bool silence = w->rec.state == AMP_DELIVERY_TIMED_OUT && w->rec.failure.n == 0 &&
                   !amp_span_is(w->rec.protocol, "aop");
    w->changes->withdraw |=
        left || (w->rec.given_up.n > 0 && (silence || w->stage == AMP_STAGE_FULFILLED));
    if ((eff & AMP_DELIVERY_DO_TRACK_BOTH) && w->stage != AMP_STAGE_RECEIVED)
        amp_span_copy(w->rec.next, w->changes->close_next, sizeof(w->changes->close_next));
}

/* Another sign of life of work that goes on. */
static bool is_beat(const struct work *w)
{
    return w->rec.beat_ms > 0 && w->rec.state == AMP_DELIVERY_READ && w->stage == AMP_STAGE_READ &&
           is_of_holder(w);
}

/* While the work goes on. What waits in an inbox is not begun: of that no sign is due. */
static void beats_expect(struct work *w, uint8_t to)
{
    if (w->rec.beat_ms == 0 || w->note.late)
        return;
    if (to == AMP_DELIVERY_RECEIVED)
        w->rec.due_ms = w->rec.until_ms;
    else if (to == AMP_DELIVERY_READ && is_of_holder(w))
        w->rec.due_ms = beat_next(w);
}

static bool has_outcome(const struct work *w)
{
    return amp_record_has_stage(&w->rec, "FULFILLED") || amp_record_has_stage(&w->rec, "FAILED") ||
           amp_record_has_stage(&w->rec, "REJECTED");
}

/* Work of AMP is watched from when it is read until its end, however late. Of an agent that is
 * supervised, its own record tells. */
static void work_watch(struct work *w, uint8_t to)
{
    bool goes_on =
        to == AMP_DELIVERY_READ || to == AMP_DELIVERY_TIMED_OUT || to == AMP_DELIVERY_RETRYING;
    if (goes_on && w->stage == AMP_STAGE_READ && amp_work_is(&w->rec) && !has_outcome(w)) {
        w->rec.supervised |= w->said->supervised;
        w->rec.lost = false;
        if (w->rec.seen_ms < w->now_ms)
            w->rec.seen_ms = w->now_ms;
    }
    if (w->rec.supervised || w->stage == AMP_STAGE_FULFILLED || is_failure(w->stage))
        w->rec.seen_ms = 0;
}

/* A sign of life of who holds the work: 1 where it tells nothing. */
static int life_note(struct work *w, struct amp_store_change *change, struct amp_error *err)
{
    if (w->rec.seen_ms == 0 || w->rec.seen_ms >= w->now_ms || !amp_work_holds(&w->rec, w->note.by))
        return 1;
    w->rec.seen_ms = w->now_ms;
    w->rec.lost = false;
    return record_commit(w, "alive", w->rec.state, NULL, change, err);
}

/* It was said before, in the same words. */
static bool is_repeated(struct work *w)
{
    bool takes_up = w->holds && w->rec.holder.n == 0;
    bool supervises = w->said->supervised && !w->rec.supervised && amp_work_is(&w->rec);
    return !supervises && !takes_up && !puts_off(w) && amp_record_knows_ack(&w->rec, &w->note);
}

static int ack_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                  struct amp_error *err)
{
    struct work *w = ctx;
    if (!now->found)
        return amp_fail(err, AMP_NO, "unknown_ref", "the ledger has no message of that id");
    if (record_load(w, now, err) < 0)
        return -1;
    if (w->said->alive)
        return life_note(w, change, err);
    if (is_beat(w)) {
        w->rec.due_ms = beat_next(w);
        return record_commit(w, "alive", w->rec.state, NULL, change, err);
    }
    if (is_repeated(w)) {
        w->changes->close_outbox = true;
        return 1;
    }
    if (holder_check(w, w->id, err) < 0)
        return -1;
    struct amp_fsm_result step;
    uint8_t event = stage_events[w->stage];
    uint32_t facts = w->rec.departed_ms > 0 ? AMP_DELIVERY_IF_RETRY_DELIVERED : 0;
    if (amp_fsm_step(&amp_delivery_fsm, w->rec.state, event, facts, &step, err) < 0)
        return -1;
    uint32_t eff = step.effects;
    bool admitted = (eff & AMP_DELIVERY_DO_ADMITTED) && admission_is_enough(w->rec.protocol);
    w->note.late = (eff & AMP_DELIVERY_DO_LOG_LATE) != 0;
    /* Late or not: the receiver has spoken, the sender need not keep the message. */
    w->changes->close_outbox = admitted || w->note.late || (eff & AMP_DELIVERY_DO_CLOSE_OUTBOX);
    if (eff & AMP_DELIVERY_DO_CANCEL_RETRY) {
        w->rec.next = (struct amp_span){"", 0};
        wait_begin(w);
    }
    if (puts_off(w) && step.to == w->rec.state)
        w->rec.due_ms = outcome_due(w);
    else if (admitted)
        w->rec.due_ms = admission_due(w);
    /* Neither a sign of life (AOP) nor the beginning of the work is an end: its time runs on. */
    bool at_work = step.to == AMP_DELIVERY_READ;
    bool runs_on = at_work && (amp_span_is(w->rec.protocol, "aop") || w->rec.sla_ms > 0);
    if (!runs_on && (eff & AMP_DELIVERY_DO_CLEAR_DEADLINE))
        w->rec.due_ms = 0;
    if (at_work && w->rec.sla_ms > 0)
        outcome_expect(w);
    beats_expect(w, step.to);
    late_settle(w, eff);
    if (w->changes->withdraw)
        w->rec.due_ms = w->now_ms;
    if (!w->note.late && w->failure != AMP_FAILURE_NONE && is_failure(w->stage)) {
        w->rec.failure = amp_span_str(w->failure == AMP_FAILURE_PASSING ? "passing" : "terminal");
        w->rec.due_ms = w->now_ms;
    }
    if (step.to == AMP_DELIVERY_TIMED_OUT && w->rec.state != step.to)
        w->rec.timed_out_ms = w->now_ms;
    work_watch(w, step.to);
    bool takes = w->rec.claim.n > 0 || amp_work_is(&w->rec) ||
                 (!w->said->worded && amp_holder_named(&w->rec));
    if (takes && w->rec.holder.n == 0 && (w->stage == AMP_STAGE_READ || w->holds))
        w->rec.holder = amp_span_str(w->note.by);
    /* The earliest success is what is told to duplicates. */
    if (w->rec.claim.n > 0 && w->rec.result.n == 0 && w->result.n > 0 &&
        w->stage == AMP_STAGE_FULFILLED)
        w->rec.result = w->result;
    if (w->said->emit) {
        change->emits = w->said->emit;
        change->n_emits = 1;
    }
    if (record_commit(w, amp_delivery_fsm.events[event].name, step.to, &w->note, change, err) < 0)
        return -1;
    if (w->said->emit)
        change->actor = w->said->actor;
    return 0;
}

static void work_answer(struct work *w, struct amp_span id, const struct amp_message_answer *a,
                        int64_t now_ms)
{
    work_init(w);
    w->now_ms = now_ms;
    w->stage = a->stage;
    w->result = a->result;
    w->failure = a->failure;
    w->holds = a->holds;
    w->ours = a->ours;
    w->id = id;
    w->eta_ms = a->eta_ms;
    w->said = a;
    w->note = (struct amp_ack_note){.stage = amp_ack_stage_name(a->stage),
                                    .by = a->by ? a->by : "",
                                    .id = a->id,
                                    .code = a->code,
                                    .at_ms = now_ms};
}

int amp_message_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct work w;
    work_init(&w);
    w.view = v;
    int rc = amp_message_find(s, v->id, &w.mem, &w.rec, err);
    if (rc == 0 && w.rec.found)
        rc = bytes_check(&w, err);
    work_release(&w);
    return rc;
}

/* Checks the holder of the record that w has. */
static int answer_check(struct amp_store *s, struct work *w, struct amp_error *err)
{
    struct amp_error e = {0};
    if (is_beat(w) || is_repeated(w) || holder_check(w, w->id, &e) == 0)
        return 0;
    /* The message may be for a role. */
    if (amp_holder_denied(&e) && amp_holder_role(s, w->note.by, w->role, err) < 0)
        return -1;
    if (*w->role && holder_check(w, w->id, &e) == 0)
        return 0;
    if (err)
        *err = e;
    return -1;
}

int amp_message_may_answer(struct amp_store *s, struct amp_span id, const struct amp_view *v,
                           const struct amp_message_answer *a, struct amp_error *err)
{
    struct work w;
    work_answer(&w, id, a, 0);
    int rc = amp_message_find(s, id, &w.mem, &w.rec, err);
    if (rc == 0 && !w.rec.found && v) {
        w.view = v;
        rc = record_describe(&w, err);
        w.rec.found = rc == 0;
    }
    if (rc == 0 && !w.rec.found)
        rc = amp_fail(err, AMP_NO, "unknown_ref", "the ledger has no message of that id");
    if (rc == 0)
        rc = answer_check(s, &w, err);
    work_release(&w);
    return rc;
}

int amp_message_answered(struct amp_store *s, struct amp_span id,
                         const struct amp_message_answer *a, int64_t now_ms,
                         struct amp_message_changes *changes, struct amp_error *err)
{
    *changes = (struct amp_message_changes){.withdraw = a->has_letter};
    if (id.n == 0)
        return amp_fail(err, AMP_NO, "unknown_ref", "the acknowledgement names no id");
    struct work w;
    work_answer(&w, id, a, now_ms);
    w.changes = changes;
    enum amp_store_outcome how;
    int rc = amp_store_update(s, AMP_MESSAGE_KIND, id, NULL, ack_fn, &w, &how, err);
    /* The message may be for a role. */
    if (rc < 0 && err && amp_holder_denied(err) &&
        amp_holder_role(s, w.note.by, w.role, err) == 0 && *w.role)
        rc = amp_store_update(s, AMP_MESSAGE_KIND, id, NULL, ack_fn, &w, &how, err);
    changes->late = w.note.late;
    work_release(&w);
    return rc;
}

int amp_message_close_outbox(struct amp_store *s, struct amp_span id,
                             const struct amp_message_changes *changes, struct amp_error *err)
{
    if (changes->close_outbox && amp_store_outbox_answered(s, id, err) < 0)
        return -1;
    return *changes->close_next ? amp_store_outbox_acked(s, amp_span_str(changes->close_next), err)
                                : 0;
}

static int requeue_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                      struct amp_error *err)
{
    struct work *w = ctx;
    if (!now->found)
        return amp_fail(err, AMP_NO, "unknown_ref", "the ledger has no message of that id");
    if (record_load(w, now, err) < 0)
        return -1;
    if (w->rec.state == AMP_DELIVERY_SENT)
        return 1;
    struct amp_fsm_result step;
    if (amp_fsm_step(&amp_delivery_fsm, w->rec.state, AMP_DELIVERY_EV_REQUEUE, 0, &step, err) < 0)
        return -1;
    struct amp_span none = {"", 0};
    w->rec.expires_ms = w->rec.seen_ms = 0;
    w->rec.silent = w->rec.lost = w->rec.supervised = false;
    wait_begin(w);
    w->rec.attempt = w->rec.departed_ms = w->rec.sequence = 0;
    w->rec.n_tries = w->rec.n_acks = 0;
    w->rec.next = w->rec.node = w->rec.failure = w->rec.given_up = none;
    /* A new life: what was answered before must not make the next answer a repetition. */
    w->rec.timed_out_ms = 0;
    w->rec.told = false;
    w->rec.holder = w->rec.result = none;
    return record_commit(w, "requeue", step.to, NULL, change, err);
}

int amp_message_requeue(struct amp_store *s, struct amp_span id, int64_t now_ms,
                        struct amp_error *err)
{
    struct work w;
    work_init(&w);
    w.now_ms = now_ms;
    enum amp_store_outcome how;
    int rc = amp_store_update(s, AMP_MESSAGE_KIND, id, NULL, requeue_fn, &w, &how, err);
    work_release(&w);
    return rc;
}
