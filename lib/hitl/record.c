/* The record of a question and its steps. */
#include "hitl/record.h"

#include <stdio.h>
#include <string.h>

#include "protocol/terms.h"

#define MEMBER(as, key, member) AMP_REC(as, struct amp_question_rec, key, member)
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(TEXT, struct amp_question_rec, "task", task),
    AMP_REC_EVER(TEXT, struct amp_question_rec, "type", type),
    AMP_REC_EVER(TEXT, struct amp_question_rec, "severity", severity),
    MEMBER(INT, "arrived", arrived_ms),
    MEMBER(TEXT, "protocol", protocol),
    AMP_REC_IN(struct amp_question_rec, "about", about, &amp_subject_rec, false),
    MEMBER(INT, "asked", asked_ms),
    MEMBER(TEXT, "decision", decision),
    MEMBER(TEXT, "operator", operator),
    MEMBER(INT, "decided_at", decided_ms),
    MEMBER(TEXT, "note", note),
    MEMBER(TEXT, "passed", passed),
    MEMBER(TEXT, "refused", refused),
    MEMBER(INT, "refused_at", refused_ms),
    MEMBER(INT, "ended", ended_ms),
};
AMP_REC_TABLE(question_rec, "a question's record", struct amp_question_rec, fields);

int amp_question_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_question_rec *out,
                          struct amp_error *err)
{
    return amp_rec_parse(&question_rec, json, mem, out, err);
}

static bool has_bare_key(enum amp_protocol p)
{
    const struct amp_question_terms *q = amp_terms_of(p)->questions;
    return q && q->carried_out_by;
}

enum amp_protocol amp_question_protocol(const struct amp_question_rec *r)
{
    enum amp_protocol p = r->protocol.n ? amp_protocol_find(r->protocol) : AMP_PROTO_NONE;

    /* A record of a former version names none; there were only bare keys. */
    while (!r->protocol.n && !has_bare_key(p))
        p++;
    return p;
}

void amp_question_key(enum amp_protocol p, struct amp_span id, char out[AMP_QUESTION_KEY_MAX])
{
    if (has_bare_key(p))
        amp_span_copy(id, out, AMP_QUESTION_KEY_MAX);
    else
        snprintf(out, AMP_QUESTION_KEY_MAX, "%s/%.*s", amp_protocol_name(p), (int)id.n, id.p);
}

const char *amp_question_key_id(enum amp_protocol p, const char *key)
{
    return has_bare_key(p) ? key : key + strlen(amp_protocol_name(p)) + 1;
}

/* Nothing to open again: it is not decided, is about another task, or the refusal was recorded. */
static bool is_known_refusal(const struct amp_question_rec *r, int at,
                             const struct amp_refusal *refusal)
{
    return at != AMP_ESC_DECIDED || !amp_span_eq(refusal->task, r->task) ||
           r->refused_ms >= refusal->at_ms;
}

static int question_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
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
        return amp_fail(err, AMP_NO, "already_decided", "it was already decided");
    if (at == AMP_ESC_ENDED)
        return amp_fail(err, AMP_NO, "ended", "its subject has ended");
    if (at < 0 || amp_fsm_step(&amp_escalation_fsm, (uint8_t)at, u->event, u->facts, &r, err))
        return -1;
    if (r.effects & AMP_ESC_DO_ASK)
        u->set.asked_ms = u->now_ms;
    amp_rec_overlay(&question_rec, &u->set, &rec);
    int rc = amp_rec_write(&question_rec, &rec, &u->json, err);
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

int amp_question_update(struct amp_store *s, struct amp_span key, struct amp_question_update *u,
                        enum amp_store_outcome *outcome, struct amp_error *err)
{
    u->effects = 0;
    amp_buf_init(&u->mem, AMP_REC_MAX);
    amp_buf_init(&u->json, AMP_QUESTION_BYTES);
    int rc = amp_store_update(s, AMP_KEY(AMP_ESCALATION_KIND, key), NULL, question_step, u, outcome,
                              err);
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
    return rc;
}

bool amp_question_reopens(struct amp_span code)
{
    return !amp_span_is(code, "already_decided") && !amp_span_is(code, "terminal");
}

int amp_question_reopen(struct amp_store *s, const struct amp_refusal *r, bool *reopened,
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
    if (amp_question_update(s, r->ref, &u, &outcome, err))
        return -1;
    *reopened = outcome == AMP_STORE_COMMITTED;
    return 0;
}
