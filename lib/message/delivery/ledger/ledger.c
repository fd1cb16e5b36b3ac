/*
 * The commits of the ledger. Each change is one compare-and-set of the key "message.<id>". The
 * machine decides under the lock, on the current record, so concurrent acknowledgements and sweeps
 * are applied one after the other.
 */
#include "message/delivery/ledger/ledger.h"

#include "message/delivery/ledger/awaited.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/ledger/timeouts.h"
#include "message/delivery/record/operation_key.h"
#include "message/protocol/compose/answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"

static const uint8_t stage_events[] = {
    [AMP_STAGE_RECEIVED] = AMP_DELIVERY_EV_ACK_RECEIVED,
    [AMP_STAGE_READ] = AMP_DELIVERY_EV_ACK_READ,
    [AMP_STAGE_FULFILLED] = AMP_DELIVERY_EV_ACK_FULFILLED,
    [AMP_STAGE_REJECTED] = AMP_DELIVERY_EV_NACK_REJECTED,
    [AMP_STAGE_FAILED] = AMP_DELIVERY_EV_NACK_FAILED,
    [AMP_STAGE_TIMED_OUT] = AMP_DELIVERY_EV_NACK_TIMED_OUT,
};

/* The working memory of one update. The change that a callback returns points into it. */
struct work {
    struct amp_message_rec rec;
    struct amp_buf mem, out;
    char claim[AMP_KEY_MAX];
    struct amp_ack_note *acks; /* of the record, with those that are implied */
    int64_t now_ms;
    /* These are set for a message that is recorded. */
    const struct amp_view *view;
    const struct amp_message_former *former;
    bool same; /* it is recorded already */
    /* These are set for an answer. */
    struct amp_span id;
    const struct amp_message_answer *said;
    struct amp_ack_note note;
    char role[128];
    struct amp_message_changes *changes;
};
#define WORK AMP_CLEANUP(work_release) struct work

static struct work work_make(int64_t now_ms)
{
    return (struct work){
        .now_ms = now_ms, .mem = {.max = AMP_RECORD_MAX}, .out = {.max = AMP_RECORD_MAX}};
}

static void work_release(struct work *w)
{
    amp_buf_release(&w->mem);
    amp_buf_release(&w->out);
    free(w->acks);
}

static int unknown_fail(struct amp_error *err)
{
    return amp_fail(err, AMP_NO, unknown_ref, "the ledger has no message of that id");
}

static int record_load(struct work *w, const struct amp_store_rec *now, struct amp_error *err)
{
    return now->found ? amp_message_parse(now, &w->mem, &w->rec, err) : unknown_fail(err);
}

/* Fills the change from the record as the step left it. */
static int record_commit(struct work *w, uint8_t event, const struct amp_ack_note *note,
                         struct amp_store_change *change, struct amp_error *err)
{
    amp_buf_reset(&w->out);
    if (amp_record_write(&w->rec, note, &w->out, err) < 0)
        return -1;
    change->event = amp_delivery_fsm.events[event].name;
    change->to = amp_delivery_fsm.states[w->rec.state].name;
    change->json = amp_buf_span(&w->out);
    change->due_ms = amp_record_due(&w->rec, AMP_SILENCE_MS);
    change->actor = note && *note->by ? note->by : NULL;
    return 0;
}

/* Fills the record of a message that the ledger does not have. */
static int record_describe(struct work *w, struct amp_error *err)
{
    const struct amp_view *v = w->view;
    w->rec.line = v->line;
    w->rec.protocol = amp_span_str(amp_protocol_name(v->protocol));
    w->rec.type = v->type;
    w->rec.from = v->from;
    w->rec.to = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0};
    w->rec.task = v->task;
    struct amp_operation_key operation;
    if (amp_operation_key(v, &operation, err) < 0 ||
        (operation.key.n > 0 && amp_key_text(&operation.key, w->claim, &w->rec.claim, err) < 0))
        return -1;
    w->rec.sent_ms = w->now_ms;
    w->rec.correlation = v->correlation;
    w->rec.ack_timeout_ms = amp_timeouts_ack(v);
    w->rec.sla_ms = amp_timeouts_sla(v);
    w->rec.wants_outcome = v->wants_outcome;
    w->rec.for_many = v->n_to > 1 || amp_span_is(w->rec.to, "all");
    return 0;
}

/* Whether the message is that of the recorded line with the names that a router has assigned since:
 * 1, 0; -1: failure. */
static int was_assigned(struct amp_span line, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf assigned = {.max = line.n + 4096};
    const struct amp_check_options opt = {0};
    struct amp_view recorded;
    if (!amp_delivery_of(v->protocol)->assign)
        return 0;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, line, &opt, &recorded, NULL, NULL, err);
    if (rc > 0)
        rc = amp_assigned_line(&recorded, &assigned, err);
    if (rc > 0)
        rc = amp_span_eq(amp_buf_span(&assigned), v->message);
    amp_reader_free(reader);
    return rc;
}

static int bytes_check(const struct work *w, struct amp_error *err)
{
    const struct amp_view *v = w->view;
    int same = amp_line_has_message(w->rec.line, v, err);
    if (same == 0)
        same = was_assigned(w->rec.line, v, err);
    if (same != 0)
        return same < 0 ? -1 : 0;
    return amp_fail(err, AMP_NO, duplicate_msg_id, "another message already has the id %.*s",
                    (int)v->id.n, v->id.p);
}

static int record_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct work *w = ctx;
    const struct amp_view *v = w->view;
    if (now->found) {
        if (record_load(w, now, err) < 0 || bytes_check(w, err) < 0)
            return -1;
        w->same = true;
        return 1;
    }
    if ((w->same = now->forgotten))
        return 1;
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
    const struct amp_delivery_terms *terms = amp_delivery_of(v->protocol);
    if (terms->beat)
        terms->beat(v, &w->rec.beat_ms, &w->rec.beat_warns);
    /* A further attempt begins in the state in which the previous one waits for it. */
    struct amp_delivery_step st = {
        .event = w->former ? AMP_DELIVERY_EV_RESEND : AMP_DELIVERY_EV_RECORD, .now_ms = w->now_ms};
    w->rec.state = w->former ? AMP_DELIVERY_RETRYING : amp_delivery_fsm.initial;
    if (amp_delivery_step(&w->rec, &st, err) < 0)
        return -1;
    if (!w->former && amp_message_expired(v, w->now_ms)) { /* also if it needs no acknowledgement */
        w->rec.expires_ms = amp_again_until(v);
        w->rec.due_ms = w->now_ms;
    }
    return record_commit(w, st.event, NULL, change, err);
}

int64_t amp_message_expiry(const struct amp_view *v, int64_t now_ms)
{
    bool counts = v->expires_ms == 0 && v->ttl_ms > 0 && v->ttl_ms < INT64_MAX - now_ms;
    if (amp_delivery_of(v->protocol)->expiry_is_advisory)
        return 0;
    return counts ? now_ms + v->ttl_ms : amp_again_until(v);
}

bool amp_message_expired(const struct amp_view *v, int64_t now_ms)
{
    int64_t until = amp_again_until(v);
    return until > 0 && until <= now_ms && !amp_delivery_of(v->protocol)->expiry_is_advisory;
}

int amp_message_record_next(struct amp_store *s, const struct amp_view *v,
                            const struct amp_message_former *former, int64_t now_ms,
                            enum amp_store_outcome *outcome, struct amp_error *err)
{
    enum amp_store_outcome how;
    if (v->id.n == 0)
        return amp_fail(err, AMP_NO, missing_field, "a message without an id is not recorded");
    WORK w = work_make(now_ms);
    w.view = v;
    w.former = former;
    if (amp_awaited_note(s, v, now_ms, err) < 0 ||
        amp_store_update(s, AMP_KEY(AMP_MESSAGE_KIND, v->id), NULL, record_fn, &w, &how, err) < 0)
        return -1;
    if (outcome)
        *outcome = w.same ? AMP_STORE_REDELIVERED : how;
    return 0;
}

int amp_message_record(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                       enum amp_store_outcome *outcome, struct amp_error *err)
{
    return amp_message_record_next(s, v, NULL, now_ms, outcome, err);
}

static struct amp_holder_claim claim_of(const struct work *w)
{
    return (struct amp_holder_claim){.stage = w->said->stage,
                                     .by = w->note.by,
                                     .role = w->role,
                                     .worded = w->said->worded,
                                     .takes_up = w->said->takes_up};
}

/* A report of the carrier about work that no agent took up needs no holder. */
static int holder_check(const struct work *w, struct amp_error *err)
{
    struct amp_holder_claim c = claim_of(w);
    return w->said->ours && w->rec.holder.n == 0 ? 0 : amp_holder_check(&w->rec, w->id, &c, err);
}

static bool is_of_holder(const struct work *w)
{
    struct amp_holder_claim c = claim_of(w);
    return amp_holder_is(&w->rec, &c);
}

static bool is_failure(enum amp_ack_stage stage)
{
    return stage == AMP_STAGE_REJECTED || stage == AMP_STAGE_FAILED;
}

/* Whether the answer makes dead letters void: the receiver has the message that timed out without
 * an acknowledgement, or the work is done. They are closed after this commit, or by the sweep after
 * a crash. */
static bool voids_letters(const struct work *w, const struct amp_delivery_step *st)
{
    bool tracked = (st->r.effects & AMP_DELIVERY_DO_TRACK_BOTH) && w->rec.due_ms == 0;
    bool silence = st->from == AMP_DELIVERY_TIMED_OUT && w->rec.failure.n == 0 &&
                   !amp_delivery_of(amp_protocol_find(w->rec.protocol))->work_is_ack;
    return tracked || (w->rec.given_up.n > 0 && (silence || w->said->stage == AMP_STAGE_FULFILLED));
}

/* Adds the earlier stages that were not acknowledged. */
static int stages_imply(struct work *w, struct amp_error *err)
{
    const struct amp_delivery_terms *delivery = amp_delivery_of(amp_protocol_find(w->rec.protocol));
    const struct amp_answer_terms *answers = amp_answers_of(amp_protocol_find(w->rec.protocol));
    struct amp_message_rec *r = &w->rec;
    /* Lists have room for one more: the acknowledgement itself. */
    struct amp_ack_note *all = calloc(r->n_acks + AMP_STAGE_FULFILLED + 1, sizeof(*all));
    if (!all)
        return amp_fail_memory(err);
    if (r->n_acks > 0)
        memcpy(all, r->acks, r->n_acks * sizeof(*all));
    uint32_t n = r->n_acks;
    for (int i = AMP_STAGE_RECEIVED; delivery->stages_follow && i < (int)w->said->stage; i++) {
        const char *stage = amp_ack_stage_name((enum amp_ack_stage)i);
        if (!(answers->no_stages & 1u << i) && !amp_record_has_stage(r, stage))
            all[n++] = (struct amp_ack_note){
                .stage = stage, .by = w->note.by, .at_ms = w->now_ms, .implied = true};
    }
    free(w->acks);
    r->acks = w->acks = all;
    r->n_acks = n;
    return 0;
}

/* Carries out the effects of a step that amp_delivery_carry does not. */
static int answer_carry(struct work *w, const struct amp_delivery_step *st, struct amp_error *err)
{
    uint32_t eff = st->r.effects;
    w->note.late = (eff & AMP_DELIVERY_DO_LOG_LATE) != 0;
    w->changes->close_outbox = (eff & AMP_DELIVERY_DO_CLOSE_OUTBOX) != 0;
    if (eff & AMP_DELIVERY_DO_WITHDRAW)
        w->changes->withdraw |= voids_letters(w, st);
    if ((eff & AMP_DELIVERY_DO_TRACK_BOTH) && w->said->stage != AMP_STAGE_RECEIVED)
        amp_span_copy(w->rec.next, w->changes->close_next, sizeof(w->changes->close_next));
    if (w->changes->withdraw)
        w->rec.due_ms = w->now_ms;
    return eff & AMP_DELIVERY_DO_IMPLY ? stages_imply(w, err) : 0;
}

/* Whether the answer is a further sign of life of work in progress. */
static bool is_beat(const struct work *w)
{
    return w->rec.beat_ms > 0 && w->rec.state == AMP_DELIVERY_READ &&
           w->said->stage == AMP_STAGE_READ && is_of_holder(w);
}

static bool has_outcome(const struct work *w)
{
    return amp_record_has_stage(&w->rec, "FULFILLED") || amp_record_has_stage(&w->rec, "FAILED") ||
           amp_record_has_stage(&w->rec, "REJECTED");
}

/* AMP's work is watched from READ until its outcome, also a late one. The record of a supervised
 * agent shows its silence, so the work is not watched here. */
static void work_watch(struct work *w, uint8_t to)
{
    bool goes_on =
        to == AMP_DELIVERY_READ || to == AMP_DELIVERY_TIMED_OUT || to == AMP_DELIVERY_RETRYING;
    if (goes_on && w->said->stage == AMP_STAGE_READ && amp_work_is(&w->rec) && !has_outcome(w)) {
        w->rec.supervised |= w->said->supervised;
        w->rec.lost = false;
        if (w->rec.seen_ms < w->now_ms)
            w->rec.seen_ms = w->now_ms;
    }
    if (w->rec.supervised || w->said->stage == AMP_STAGE_FULFILLED || is_failure(w->said->stage))
        w->rec.seen_ms = 0;
}

static int sign_commit(struct work *w, struct amp_store_change *change, struct amp_error *err)
{
    struct amp_delivery_step st = {.event = AMP_DELIVERY_EV_ALIVE, .now_ms = w->now_ms};
    return amp_delivery_step(&w->rec, &st, err) < 0 ? -1
                                                    : record_commit(w, st.event, NULL, change, err);
}

/* Records a sign of life of the holder; 1: it changes nothing. */
static int life_note(struct work *w, struct amp_store_change *change, struct amp_error *err)
{
    if (w->rec.seen_ms == 0 || w->rec.seen_ms >= w->now_ms || !amp_work_holds(&w->rec, w->note.by))
        return 1;
    return sign_commit(w, change, err);
}

static struct amp_delivery_step answer_step(const struct work *w)
{
    return (struct amp_delivery_step){.event = stage_events[w->said->stage],
                                      .now_ms = w->now_ms,
                                      .eta_ms = w->said->eta_ms,
                                      .failure = is_failure(w->said->stage) ? w->said->failure
                                                                            : AMP_FAILURE_NONE,
                                      .waits = w->said->waits,
                                      .holder = is_of_holder(w)};
}

/* Whether the record has this answer already. */
static bool is_repeated(struct work *w)
{
    struct amp_delivery_step st = answer_step(w);
    bool takes_up = w->said->holds && w->rec.holder.n == 0;
    bool supervises = w->said->supervised && !w->rec.supervised && amp_work_is(&w->rec);
    return !supervises && !takes_up && !amp_delivery_puts_off(&w->rec, &st) &&
           amp_record_knows_ack(&w->rec, &w->note);
}

/* Whether it is a newer report of progress; then the record has its time. */
static bool progress_note(struct work *w)
{
    bool newer = w->said->progress_ms > w->rec.progress_ms;
    if (newer)
        w->rec.progress_ms = w->said->progress_ms;
    return newer;
}

static int ack_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                  struct amp_error *err)
{
    struct work *w = ctx;
    if (record_load(w, now, err) < 0)
        return -1;
    if (w->said->alive)
        return life_note(w, change, err);
    bool reports = progress_note(w);
    if (is_beat(w))
        return sign_commit(w, change, err);
    if (is_repeated(w)) {
        w->changes->close_outbox = true;
        return reports && w->rec.state == AMP_DELIVERY_READ ? sign_commit(w, change, err) : 1;
    }
    if (holder_check(w, err) < 0)
        return -1;
    struct amp_delivery_step st = answer_step(w);
    if (amp_delivery_step(&w->rec, &st, err) < 0 || answer_carry(w, &st, err) < 0)
        return -1;
    work_watch(w, st.r.to);
    bool takes = w->rec.claim.n > 0 || amp_work_is(&w->rec) ||
                 (!w->said->worded && amp_holder_named(&w->rec));
    bool begins =
        w->said->holds || (w->said->stage == AMP_STAGE_READ && !amp_holder_accepts(&w->rec));
    if (takes && w->rec.holder.n == 0 && begins)
        w->rec.holder = amp_span_str(w->note.by);
    if (w->said->releases)
        w->rec.holder = (struct amp_span){"", 0};
    /* Duplicates are answered with the earliest success. */
    if (w->rec.claim.n > 0 && w->rec.result.n == 0 && w->said->result.n > 0 &&
        w->said->stage == AMP_STAGE_FULFILLED)
        w->rec.result = w->said->result;
    if (w->said->emit) {
        change->emits = w->said->emit;
        change->n_emits = 1;
    }
    if (record_commit(w, st.event, &w->note, change, err) < 0)
        return -1;
    if (w->said->emit)
        change->actor = w->said->actor;
    return 0;
}

static struct work answer_make(struct amp_span id, const struct amp_message_answer *a,
                               int64_t now_ms)
{
    struct work w = work_make(now_ms);
    w.id = id;
    w.said = a;
    w.note = (struct amp_ack_note){.stage = amp_ack_stage_name(a->stage),
                                   .by = a->by ? a->by : "",
                                   .id = a->id,
                                   .code = a->code,
                                   .at_ms = now_ms};
    return w;
}

int amp_message_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    WORK w = work_make(0);
    w.view = v;
    if (amp_message_find(s, v->id, &w.mem, &w.rec, err) < 0)
        return -1;
    return w.rec.found ? bytes_check(&w, err) : 0;
}

/* Checks whether the sender of the answer may give it. */
static int answer_check(struct amp_store *s, struct work *w, struct amp_error *err)
{
    struct amp_error e = {0}; /* err may be NULL */
    if (is_beat(w) || is_repeated(w) || holder_check(w, &e) == 0)
        return 0;
    /* The message may be for a role. */
    if (amp_holder_denied(&e) && amp_holder_role(s, w->note.by, w->role, err) < 0)
        return -1;
    if (*w->role && holder_check(w, &e) == 0)
        return 0;
    if (err)
        *err = e;
    return -1;
}

int amp_message_may_answer(struct amp_store *s, struct amp_span id, const struct amp_view *v,
                           const struct amp_message_answer *a, struct amp_error *err)
{
    WORK w = answer_make(id, a, 0);
    w.view = v;
    if (amp_message_find(s, id, &w.mem, &w.rec, err) < 0)
        return -1;
    if (!w.rec.found && !v)
        return unknown_fail(err);
    if (!w.rec.found && record_describe(&w, err) < 0)
        return -1;
    return answer_check(s, &w, err);
}

int amp_message_answered(struct amp_store *s, struct amp_span id,
                         const struct amp_message_answer *a, int64_t now_ms,
                         struct amp_message_changes *changes, struct amp_error *err)
{
    *changes = (struct amp_message_changes){.withdraw = a->has_letter};
    if (id.n == 0)
        return amp_fail(err, AMP_NO, unknown_ref, "the acknowledgement names no id");
    WORK w = answer_make(id, a, now_ms);
    w.changes = changes;
    int rc = amp_store_update(s, AMP_KEY(AMP_MESSAGE_KIND, id), NULL, ack_fn, &w, NULL, err);
    /* The message may be for a role. */
    if (rc < 0 && err && amp_holder_denied(err) &&
        amp_holder_role(s, w.note.by, w.role, err) == 0 && *w.role)
        rc = amp_store_update(s, AMP_KEY(AMP_MESSAGE_KIND, id), NULL, ack_fn, &w, NULL, err);
    changes->late = w.note.late;
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
    if (record_load(w, now, err) < 0)
        return -1;
    if (w->rec.state == AMP_DELIVERY_SENT)
        return 1;
    struct amp_delivery_step st = {.event = AMP_DELIVERY_EV_REQUEUE, .now_ms = w->now_ms};
    if (amp_delivery_step(&w->rec, &st, err) < 0)
        return -1;
    return record_commit(w, st.event, NULL, change, err);
}

int amp_message_requeue(struct amp_store *s, struct amp_span id, int64_t now_ms,
                        struct amp_error *err)
{
    WORK w = work_make(now_ms);
    return amp_store_update(s, AMP_KEY(AMP_MESSAGE_KIND, id), NULL, requeue_fn, &w, NULL, err);
}
