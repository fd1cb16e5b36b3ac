/* The record of a question, its subject and its steps. */
#include "people/question/record.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/question.h"

#define LINE_MAX_BYTES (256u << 20)
#define ATTEMPTS_MAX   32 /* limit of the chain of later attempts */

/* --- subjects --- */

static const char *const kinds[] = {[AMP_ABOUT_UNKNOWN] = "unknown",
                                    [AMP_ABOUT_TASK] = "task",
                                    [AMP_ABOUT_MESSAGE] = "message",
                                    NULL};

static const struct amp_rec_words kind_words = {.list = kinds};
static const struct amp_rec_field subject_fields[] = {
    AMP_REC_ENUM(struct amp_about, "kind", kind, &kind_words),
    AMP_REC_EVER(CHARS, struct amp_about, "protocol", protocol),
    AMP_REC_EVER(CHARS, struct amp_about, "id", id),
    AMP_REC_EVER(CHARS, struct amp_about, "task", task),
};
AMP_REC_TABLE(subject_rec, "what a question is about", struct amp_about, subject_fields);

int amp_about_find(struct amp_store *s, const struct amp_view *v, struct amp_about *out,
                   struct amp_error *err)
{
    const struct amp_question_terms *q = amp_questions_of(v->protocol);
    const struct amp_spans *affected = &v->body.escalation.affected;
    struct amp_message_rec rec;
    AMP_BUF struct amp_buf mem = {0};
    *out = (struct amp_about){.kind = q ? q->about(v) : AMP_ABOUT_UNKNOWN};
    if (out->kind != AMP_ABOUT_MESSAGE) {
        snprintf(out->protocol, sizeof out->protocol, "%s", amp_protocol_name(v->protocol));
        amp_span_copy(v->task, out->task, sizeof out->task);
        return 0;
    }
    out->kind = AMP_ABOUT_UNKNOWN;
    if (affected->n == 0)
        return 0;
    amp_buf_init(&mem, LINE_MAX_BYTES);
    if (amp_message_find(s, affected->v[0], &mem, &rec, err) < 0)
        return -1;
    if (!rec.found || !amp_span_copy(affected->v[0], out->id, sizeof out->id))
        return 0;
    out->kind = AMP_ABOUT_MESSAGE;
    amp_span_copy(rec.protocol, out->protocol, sizeof out->protocol);
    amp_span_copy(rec.task, out->task, sizeof out->task);
    return 0;
}

int amp_about_ended(struct amp_store *s, const char *first, bool *ended, struct amp_error *err)
{
    char id[AMP_ABOUT_MAX];
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, LINE_MAX_BYTES);
    *ended = false;
    amp_span_copy(amp_span_str(first), id, sizeof id);
    for (int i = 0; i < ATTEMPTS_MAX && !*ended; i++) {
        if (amp_message_find(s, amp_span_str(id), &mem, &r, err) < 0)
            return -1;
        if (!r.found)
            return 0;
        *ended = r.state == AMP_DELIVERY_FULFILLED || amp_record_has_stage(&r, "FULFILLED") ||
                 (r.wants_outcome && amp_outcome_known(&r));
        if (r.next.n == 0 || !amp_span_copy(r.next, id, sizeof id))
            return 0;
    }
    return 0;
}

/* --- records --- */

#define MEMBER(as, key, member) AMP_REC(as, struct amp_question_rec, key, member)
static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(TEXT, struct amp_question_rec, "task", task),
    AMP_REC_EVER(TEXT, struct amp_question_rec, "type", type),
    AMP_REC_EVER(TEXT, struct amp_question_rec, "severity", severity),
    MEMBER(INT, "arrived", arrived_ms),
    MEMBER(TEXT, "protocol", protocol),
    AMP_REC_IN(struct amp_question_rec, "about", about, &subject_rec, false),
    MEMBER(INT, "asked", asked_ms),
    MEMBER(TEXT, "decision", decision),
    MEMBER(TEXT, "operator", operator),
    MEMBER(INT, "decided_at", decided_ms),
    MEMBER(TEXT, "note", note),
    MEMBER(TEXT, "passed", passed),
    MEMBER(TEXT, "refused", refused),
    MEMBER(INT, "refused_at", refused_ms),
    MEMBER(INT, "ended", ended_ms),
    MEMBER(TEXT, "withdrawn", withdrawn),
    MEMBER(TEXT, "invocation", invocation),
    MEMBER(TEXT, "correlation", correlation),
    MEMBER(TEXT, "reason", reason),
    MEMBER(TEXT, "risk", risk),
    MEMBER(TEXT, "why", why),
    MEMBER(INT, "deadline", deadline_ms),
    MEMBER(INT, "extensions", extensions),
    MEMBER(TEXT, "fallback", fallback),
    MEMBER(TEXT, "accept", accept),
    MEMBER(INT, "timeout", timeout_ms),
    MEMBER(INT, "until", until_ms),
    MEMBER(TEXT, "channel", channel),
    MEMBER(TEXT, "method", method),
    MEMBER(TEXT, "key", key),
    MEMBER(TEXT, "shown", shown),
    MEMBER(TEXT, "patch", patch),
    MEMBER(TEXT, "line", line),
    MEMBER(TEXT, "policy", policy),
    MEMBER(TEXT, "because", because),
    MEMBER(INT, "expired", expired_ms),
    MEMBER(INT, "need", need),
    AMP_REC_MANY(struct amp_question_rec, "votes", votes, &amp_vote_rec, false),
};
AMP_REC_TABLE(question_rec, "a question's record", struct amp_question_rec, fields);

int amp_question_rec_read(struct amp_span json, struct amp_buf *mem, struct amp_question_rec *out,
                          struct amp_error *err)
{
    return amp_rec_parse(&question_rec, json, mem, out, err);
}

int amp_question_find(struct amp_store *s, struct amp_span key, struct amp_buf *mem,
                      struct amp_question_rec *out, struct amp_error *err)
{
    struct amp_store_rec rec;

    if (amp_store_get(s, AMP_KEY(AMP_ESCALATION_KIND, key), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return amp_question_rec_read(rec.json, mem, out, err) < 0 ? -1 : 1;
}

static bool has_bare_key(enum amp_protocol p)
{
    const struct amp_question_terms *q = amp_questions_of(p);
    return q && q->carried_out_by;
}

static int decided_fail(const struct amp_question_rec *r, struct amp_error *err)
{
    return amp_fail(err, AMP_NO, already_decided, "it was already decided by %.100s: %.100s",
                    r->operator.n ? r->operator.p : "another process", r->decision.p);
}

int amp_question_end_fail(const struct amp_question_rec *r, struct amp_error *err)
{
    return r->withdrawn.n ? amp_fail_text(err, AMP_NO, AMP_HITL_WITHDRAWN,
                                          "its sender withdrew the question: %.*s",
                                          AMP_CLIP(r->withdrawn, 200))
                          : amp_fail(err, AMP_NO, ended, "its subject has ended");
}

/* A question with a name, of the state that is read. */
struct closed {
    struct amp_span name;
    bool decided;
};

static int closed_match(void *ctx, struct amp_span key, const struct amp_store_rec *rec,
                        struct amp_error *err)
{
    const struct closed *c = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_question_rec r;

    if (amp_question_rec_read(rec->json, &mem, &r, err) < 0)
        return -1;
    const char *slash = memchr(key.p, '/', key.n);
    size_t at = slash ? (size_t)(slash - key.p) + 1 : 0;
    const struct amp_span id = {key.p + at, key.n - at};
    if (!amp_span_eq(c->name, key) && !amp_span_eq(c->name, id) &&
        !amp_span_eq(c->name, r.invocation) && !amp_span_eq(c->name, r.task))
        return 0;
    return c->decided ? decided_fail(&r, err) : amp_question_end_fail(&r, err);
}

int amp_question_closed(struct amp_store *s, struct amp_span name, struct amp_error *err)
{
    struct closed c = {.name = name, .decided = true};

    if (amp_store_each(s, AMP_ESCALATION_KIND, "DECIDED", closed_match, &c, err) < 0)
        return -1;
    c.decided = false;
    return amp_store_each(s, AMP_ESCALATION_KIND, "ENDED", closed_match, &c, err);
}

enum amp_protocol amp_question_protocol(const struct amp_question_rec *r)
{
    enum amp_protocol p = r->protocol.n ? amp_protocol_find(r->protocol) : AMP_PROTO_NONE;

    /* A record of a former version names no protocol; its key is bare. */
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

/* Whether the refusal does not apply: not decided, about another task, or recorded before. */
static bool refusal_is_void(const struct amp_question_rec *r, int at,
                            const struct amp_refusal *refusal)
{
    return at != AMP_ESC_DECIDED || !amp_span_eq(refusal->task, r->task) ||
           r->refused_ms >= refusal->at_ms;
}

/* After a fallback's decision was refused, only a person can decide. */
static bool has_deadline(const struct amp_question_rec *r)
{
    return r->deadline_ms > 0 && r->expired_ms == 0 && r->policy.n == 0;
}

/* The next time at which something is due: the end of a deferral, the deadline; 0: nothing. */
static int64_t question_due(uint8_t state, const struct amp_question_rec *r)
{
    int64_t due = has_deadline(r) ? r->deadline_ms : 0;

    if (state == AMP_ESC_DEFERRED && r->until_ms > 0 && (due == 0 || r->until_ms < due))
        return r->until_ms;
    return state == AMP_ESC_OPEN || state == AMP_ESC_ASKED || state == AMP_ESC_DEFERRED ? due : 0;
}

/* Whether the time of an EXPIRE or WAKE has not come: another process made the step before. */
static bool is_early(const struct amp_question_update *u, const struct amp_question_rec *r)
{
    if (u->event == AMP_ESC_EV_WAKE)
        return r->until_ms > u->now_ms;
    return u->event == AMP_ESC_EV_EXPIRE && !u->unreachable &&
           (!has_deadline(r) || r->deadline_ms > u->now_ms);
}

/* Finds an answer's event if several have to agree, VOTE or DECIDE; -1: it does not count. */
static int vote_count(struct amp_question_update *u, const struct amp_question_rec *rec,
                      struct amp_error *err)
{
    if (u->event != AMP_ESC_EV_DECIDE || u->approval.need <= 1)
        return u->event;
    enum amp_votes_end end =
        amp_votes_add(&u->approval, rec->votes, rec->n_votes, u->vote, &u->count, err);
    if (end == AMP_VOTES_REFUSED)
        return -1;
    return end == AMP_VOTES_DECIDED ? AMP_ESC_EV_DECIDE : AMP_ESC_EV_VOTE;
}

static int question_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                         struct amp_error *err)
{
    struct amp_question_update *u = ctx;
    int at = now->found ? amp_fsm_state(&amp_escalation_fsm, now->state) : AMP_ESC_NEW;
    struct amp_fsm_result r;
    struct amp_question_rec rec;

    if ((now->found || now->forgotten) && u->event == AMP_ESC_EV_ARRIVE)
        return 1;
    if (amp_question_rec_read(now->found ? now->json : AMP_SPAN("{}"), &u->mem, &rec, err) < 0)
        return -1;
    if (u->event == AMP_ESC_EV_REFUSE && refusal_is_void(&rec, at, u->refusal))
        return 1;
    if (at == AMP_ESC_DECIDED && u->event != AMP_ESC_EV_REFUSE)
        return decided_fail(&rec, err);
    if (at == AMP_ESC_ENDED)
        return amp_question_end_fail(&rec, err);
    if (is_early(u, &rec))
        return amp_fail(err, AMP_NO, not_due, "another process did what was due");
    int event = vote_count(u, &rec, err);
    if (at < 0 || event < 0 ||
        amp_fsm_step(&amp_escalation_fsm, (uint8_t)at, (uint8_t)event, u->facts, &r, err))
        return -1;
    if (event == AMP_ESC_EV_REFUSE) /* the question is asked again, of all */
        rec.n_votes = 0;
    if (r.effects & AMP_ESC_DO_EXTEND) {
        u->set.deadline_ms = u->now_ms + u->extend_ms;
        u->set.extensions = rec.extensions + 1;
    }
    if (r.effects & AMP_ESC_DO_ASK)
        u->set.asked_ms = u->now_ms;
    if (event != AMP_ESC_EV_VOTE)
        amp_rec_overlay(&question_rec, &u->set, &rec);
    if ((r.effects & AMP_ESC_DO_COUNT) || (event == AMP_ESC_EV_DECIDE && u->approval.need > 1)) {
        rec.votes[u->count.at] = *u->vote; /* a list has room for one more */
        rec.n_votes += !u->count.replaces;
        rec.need = u->approval.need;
    }
    int rc = amp_rec_write(&question_rec, &rec, &u->json, err);
    u->effects = r.effects;
    c->event = amp_escalation_fsm.events[event].name;
    c->actor = u->actor;
    c->to = amp_escalation_fsm.states[r.to].name;
    c->json = amp_buf_span(&u->json);
    c->due_ms = question_due(r.to, &rec);
    if ((r.effects & AMP_ESC_DO_EMIT) && u->emit.line.n > 0) {
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
    amp_buf_init(&u->json, 4 * AMP_QUESTION_BYTES); /* the note, and the line with it, escaped */
    int rc = amp_store_update(s, AMP_KEY(AMP_ESCALATION_KIND, key), NULL, question_step, u, outcome,
                              err);
    amp_buf_release(&u->mem);
    amp_buf_release(&u->json);
    return rc;
}

bool amp_question_reopens(struct amp_span code)
{
    return !amp_span_is(code, AMP_CODE(already_decided)) &&
           !amp_span_is(code, AMP_CODE(terminal)) && !amp_span_is(code, AMP_HITL_WITHDRAWN);
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
    if (amp_question_update(s, r->ref, &u, &outcome, err) < 0)
        return -1;
    *reopened = outcome == AMP_STORE_COMMITTED;
    return 0;
}
