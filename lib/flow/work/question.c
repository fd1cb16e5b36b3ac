/* The record of a question and its steps. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "flow/work/decider.h"
#include "hitl/escalation.h"
#include "message/record/sequence.h"
#include "protocol/amp/compose.h"
#include "protocol/sw4rm/answer.h"

void amp_question_key(enum amp_protocol p, struct amp_span id, char out[AMP_QUESTION_KEY_MAX])
{
    if (p == AMP_PROTO_AMP)
        amp_span_copy(id, out, AMP_QUESTION_KEY_MAX);
    else
        snprintf(out, AMP_QUESTION_KEY_MAX, "%s/%.*s", amp_protocol_name(p), (int)id.n, id.p);
}

/* Nothing to open again: it is not decided, is about another task, or the refusal was recorded. */
static bool is_known_refusal(const struct amp_question_rec *r, int at,
                             const struct amp_refusal *refusal)
{
    return at != AMP_ESC_DECIDED || !amp_span_eq(refusal->task, r->task) ||
           r->refused_ms >= refusal->at_ms;
}

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct amp_question_update *u = ctx;
    int at = now->found ? amp_fsm_state(&amp_escalation_fsm, now->state) : AMP_ESC_NEW;
    struct amp_fsm_result r;
    struct amp_question_rec rec;

    if (now->found && u->event == AMP_ESC_EV_ARRIVE)
        return 1;
    if (amp_question_rec_read(now->found ? now->json : AMP_SPAN("{}"), &u->mem, &rec, err))
        return -1;
    if (u->event == AMP_ESC_EV_REFUSE && is_known_refusal(&rec, at, u->refusal))
        return 1;
    if (at == AMP_ESC_DECIDED && u->event != AMP_ESC_EV_REFUSE)
        return amp_fail(err, AMP_NO, "already_decided", "it was decided already");
    if (at == AMP_ESC_ENDED)
        return amp_fail(err, AMP_NO, "ended", "what it asked about has ended");
    if (at < 0 || amp_fsm_step(&amp_escalation_fsm, (uint8_t)at, u->event, u->facts, &r, err))
        return -1;
    if (r.effects & AMP_ESC_DO_ASK)
        u->set.asked_ms = u->now_ms;
    int rc = amp_question_rec_write(&rec, &u->set, &u->json, err);
    u->effects = r.effects;
    c->event = amp_escalation_fsm.events[u->event].name;
    c->actor = u->actor;
    c->to = amp_escalation_fsm.states[r.to].name;
    c->json = amp_buf_span(&u->json);
    if (r.effects & AMP_ESC_DO_EMIT) {
        c->emits = &u->emit;
        c->n_emits = 1;
    }
    return rc;
}

/* NO already_decided, ended. */
static int question_update(struct amp_store *s, struct amp_span key, struct amp_question_update *u,
                           enum amp_store_outcome *outcome, struct amp_error *err)
{
    u->effects = 0;
    amp_buf_init(&u->mem, AMP_REC_MAX);
    amp_buf_init(&u->json, AMP_QUESTION_BYTES);
    int rc = amp_store_update(s, AMP_ESCALATION_KIND, key, NULL, change, u, outcome, err);
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
    return rc;
}

int amp_question_step(struct amp_decider *d, const char *key, struct amp_question_update *u,
                      struct amp_error *err)
{
    enum amp_store_outcome outcome;

    u->actor = d->opt.consumer;
    d->w.io->dirty = true;
    return question_update(d->w.store, amp_span_str(key), u, &outcome, err);
}

bool amp_flow_reopens(struct amp_span code)
{
    return !amp_span_is(code, "already_decided") && !amp_span_is(code, "terminal");
}

int amp_flow_reopen(struct amp_store *s, const struct amp_refusal *r, bool *reopened,
                    struct amp_error *err)
{
    enum amp_store_outcome outcome = AMP_STORE_UNCHANGED;
    char why[512];

    snprintf(why, sizeof why, "%.*s: %.*s", (int)(r->code.n < 100 ? r->code.n : 100), r->code.p,
             (int)(r->why.n < 400 ? r->why.n : 400), r->why.p);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_REFUSE,
        .set = {.refused = amp_span_str(why), .refused_ms = r->at_ms},
        .actor = r->by,
        .refusal = r,
    };
    if (question_update(s, r->ref, &u, &outcome, err))
        return -1;
    *reopened = outcome == AMP_STORE_COMMITTED;
    return 0;
}

int amp_question_nack(struct amp_decider *d, const struct amp_question *q, enum amp_ack_stage stage,
                      const char *code, const char *why, bool retryable, struct amp_buf *out,
                      struct amp_error *err)
{
    int64_t now = amp_now_ms();

    if (q->protocol == AMP_PROTO_AMP) {
        const struct amp_view of = {.protocol = AMP_PROTO_AMP,
                                    .id = amp_span_str(q->id),
                                    .task = amp_span_str(amp_json_str(q->message, "task_id"))};
        return amp_compose_nack(&of, stage, "admin", code, why, "", retryable, now, out, err);
    }
    struct amp_answered of = {.id = amp_span_str(q->id),
                              .producer = amp_span_str(amp_json_str(q->message, "producer_id")),
                              .correlation =
                                  amp_span_str(amp_json_str(q->message, "correlation_id"))};
    return amp_sequence_rise(d->w.store, amp_span_str(d->opt.consumer), now, d->opt.consumer,
                             &of.sequence, err) ||
                   amp_sw4rm_nack(&of, AMP_STAGE_FAILED, amp_span_str(code), amp_span_str(why),
                                  d->opt.consumer, now, out, err)
               ? -1
               : 0;
}

int amp_question_end(struct amp_decider *d, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char id[AMP_QUESTION_KEY_MAX + 8];
    struct amp_error e;

    amp_buf_init(&line, AMP_QUESTION_BYTES);
    if (amp_question_nack(d, q, AMP_STAGE_REJECTED, "terminal", "what it asked about has ended",
                          false, &line, err))
        return -1;
    snprintf(id, sizeof id, "ended/%s", q->key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_END,
        .set = {.ended_ms = amp_now_ms()},
        .emit = {amp_span_str(id), {line.data, line.len - 1}, false},
    };
    if (amp_question_step(d, q->key, &u, &e) == 0) {
        d->opt.note("%s: %s is no longer asked: what it is about has ended", q->name, q->id);
        return 0;
    }
    if (e.status == AMP_NO) /* decided, or ended, by another process */
        return 0;
    *err = e;
    return -1;
}
