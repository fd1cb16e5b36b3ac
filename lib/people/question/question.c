/* Questions: their arrival, the list of open ones, and those left undecided. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/answers.h"
#include "message/protocol/question.h"
#include "message/protocol/work.h"
#include "people/question/question.h"

void amp_hitl_release(struct amp_hitl *h)
{
    free(h->passed);
    h->passed = NULL;
}

void amp_question_release(struct amp_question *q)
{
    json_decref(q->message);
    q->message = NULL;
}

const struct amp_question_terms *amp_question_terms(const struct amp_question *q)
{
    return amp_questions_of(q->protocol);
}

const char *amp_question_invocation(const struct amp_question *q)
{
    const struct amp_question_terms *t = amp_question_terms(q);
    return t->name ? t->name(q->message, q->id) : q->id;
}

const char *amp_question_answerer(const struct amp_hitl *h, enum amp_protocol p)
{
    return amp_work_of(p)->keeps_tasks ? AMP_HITL_ROLE : h->actor;
}

json_t *amp_question_load(struct amp_span line, struct amp_error *err)
{
    json_t *j = amp_json_load(line, err), *inner = json_object_get(j, "msg");

    if (!inner || json_object_get(j, "message_id"))
        return j;
    json_incref(inner);
    json_decref(j);
    return inner;
}

int amp_question_step(struct amp_hitl *h, const char *key, struct amp_question_update *u,
                      struct amp_error *err)
{
    enum amp_store_outcome outcome;

    u->actor = h->actor;
    *h->dirty = true;
    return amp_question_update(h->store, amp_span_str(key), u, &outcome, err);
}

const char *amp_question_decider(const struct amp_hitl *h, enum amp_protocol p, const char *op,
                                 char out[AMP_PRINCIPAL_MAX])
{
    int n = snprintf(out, AMP_PRINCIPAL_MAX, "operator/%s", op);
    return amp_work_of(p)->keeps_tasks || n < 0 || n >= AMP_PRINCIPAL_MAX ||
                   !amp_principal_is((struct amp_span){out, (size_t)n})
               ? amp_question_answerer(h, p)
               : out;
}

int amp_question_asked(struct amp_hitl *h, const struct amp_question *q, const char *by,
                       struct amp_asked *out, struct amp_error *err)
{
    struct amp_asked of = {.id = q->id, .message = q->message, .by = by, .now_ms = amp_now_ms()};

    if (amp_answers_of(q->protocol)->numbering == AMP_NUMBERED_BY_NODE &&
        amp_sequence_next(h->store, amp_span_str(of.by), 1, h->actor, &of.sequence, err) < 0)
        return -1;
    if (amp_answers_of(q->protocol)->numbering == AMP_NUMBERED_BY_PRODUCER &&
        amp_sequence_rise(h->store, amp_span_str(of.by), 1, of.now_ms, h->actor, &of.sequence,
                          err) < 0)
        return -1;
    *out = of;
    return 0;
}

int amp_question_nack(struct amp_hitl *h, const struct amp_question *q, enum amp_ack_stage stage,
                      const char *code, const char *why, bool retryable, struct amp_buf *out,
                      struct amp_error *err)
{
    struct amp_asked of;

    amp_buf_init(out, AMP_QUESTION_BYTES);
    if (!amp_question_terms(q)->refuse)
        return 0;
    return amp_question_asked(h, q, amp_question_answerer(h, q->protocol), &of, err) < 0
               ? -1
               : amp_question_terms(q)->refuse(&of, stage, code, why, retryable, out, err);
}

static int subject_ended(struct amp_hitl *h, const struct amp_about *a, bool *ended,
                         struct amp_error *err)
{
    *ended = false;
    switch (a->kind) {
    case AMP_ABOUT_TASK:
        return h->task_ended(h->ctx, amp_span_str(a->task), ended, err);
    case AMP_ABOUT_MESSAGE:
        return amp_about_ended(h->store, a->id, ended, err);
    default:
        return 0;
    }
}

/* A question that needs no decision is shown even if its subject has ended. */
static uint32_t arrival_facts(const struct amp_view *v, bool graded, const struct amp_about *about,
                              bool ended)
{
    static const uint32_t of_level[] = {[AMP_LEVEL_INFO] = AMP_ESC_IF_INFO,
                                        [AMP_LEVEL_WARNING] = AMP_ESC_IF_WARNING,
                                        [AMP_LEVEL_CRITICAL] = AMP_ESC_IF_CRITICAL};
    uint32_t level = graded ? of_level[v->body.escalation.severity] : 0;

    if (level == AMP_ESC_IF_INFO)
        return level;
    return (ended ? AMP_ESC_IF_ENDED : 0) | (about->kind == AMP_ABOUT_TASK ? level : 0);
}

static enum amp_fallback fallback_of(const struct amp_hitl *h, const struct amp_question_terms *t,
                                     enum amp_reason reason)
{
    int8_t f = h->policy ? h->policy->by_reason[reason] : -1;

    if (f < 0 && h->policy)
        f = h->policy->fallback;
    return f < 0 ? t->fallback : (enum amp_fallback)f;
}

bool amp_question_has_policy(const struct amp_hitl *h, const struct amp_question *q)
{
    int reason = amp_reason_find(amp_span_str(q->reason));
    const struct amp_hitl_policy *p = h->policy;
    int f = p && reason >= 0 && p->by_reason[reason] >= 0 ? p->by_reason[reason]
            : p                                           ? p->fallback
                                                          : -1;
    return f > AMP_FALLBACK_NONE;
}

/* The earlier of the protocol's own deadline and the configured one. */
static int64_t deadline_of(const struct amp_hitl *h, const struct amp_question_terms *t,
                           const struct amp_view *v, int64_t now_ms)
{
    int64_t own = v->kind == AMP_KIND_ESCALATION ? v->body.escalation.deadline_ms : 0;
    int64_t most = h->policy ? h->policy->deadline_ms : 0;

    if (most == 0 && own == 0)
        most = t->deadline_ms;
    if (most > 0 && (own == 0 || own > now_ms + most))
        return now_ms + most;
    return own;
}

/* Fills the deadline, the fallback, the reason, the risk and why it asks. `accept` has the action
 * of AUTO_DECIDE_THRESHOLD. */
static int arrival_terms(struct amp_hitl *h, const struct amp_view *v, int64_t now_ms,
                         struct amp_question_rec *r, char risk[16], char why[AMP_WHY_MAX],
                         struct amp_buf *accept, struct amp_error *err)
{
    const struct amp_question_terms *t = amp_questions_of(v->protocol);
    enum amp_reason reason = t->reason(v);
    enum amp_fallback fallback = fallback_of(h, t, reason);
    double score;
    const char *action;

    r->reason = amp_span_str(amp_reason_name(reason));
    r->fallback = amp_span_str(amp_fallback_name(fallback));
    r->deadline_ms = deadline_of(h, t, v, now_ms);
    r->timeout_ms = r->deadline_ms > now_ms ? r->deadline_ms - now_ms : 0;
    r->correlation = v->correlation;
    r->invocation = v->kind == AMP_KIND_ESCALATION ? v->body.escalation.ref : AMP_SPAN("");
    if (r->about.kind == AMP_ABOUT_TASK && h->task_facts) {
        if (h->task_facts(h->ctx, amp_span_str(r->about.task), v->id, risk, why, err) < 0)
            return -1;
        r->risk = amp_span_str(risk);
        r->why = amp_span_str(why);
    }
    if (fallback != AMP_FALLBACK_AUTO || !t->score || !h->policy)
        return 0;
    json_auto_t *message = amp_question_load(v->message, err);
    if (!message)
        return -1;
    if (!t->score(message, &score, &action) || score < h->policy->threshold)
        return 0;
    if (amp_buf_str(accept, action, err) < 0)
        return -1;
    r->accept = amp_buf_span(accept);
    return 0;
}

/* Suspends before the arrival is recorded, so that a process killed in between repeats it. */
static int arrival_carry(struct amp_hitl *h, const struct amp_view *v, uint32_t facts,
                         int64_t now_ms, struct amp_error *err)
{
    struct amp_fsm_result r;

    if (amp_fsm_step(&amp_escalation_fsm, AMP_ESC_NEW, AMP_ESC_EV_ARRIVE, facts, &r, err) < 0)
        return -1;
    return r.effects & (AMP_ESC_DO_SUSPEND | AMP_ESC_DO_SUSPEND_PARTY)
               ? h->suspend(h->ctx, v, now_ms, err)
               : 0;
}

/* The nack to a question whose subject ended before it arrived. */
static int arrival_refuse(struct amp_hitl *h, const struct amp_view *v, struct amp_buf *nack,
                          struct amp_error *err)
{
    json_auto_t *message = amp_question_load(v->message, err);
    struct amp_question q = {.protocol = v->protocol, .message = message};

    amp_span_copy(v->id, q.id, sizeof q.id);
    return message ? amp_question_nack(h, &q, AMP_STAGE_REJECTED, AMP_CODE(terminal),
                                       "its subject has ended", false, nack, err)
                   : -1;
}

int amp_question_arrive(struct amp_hitl *h, const struct amp_view *v, int64_t now_ms,
                        uint32_t *effects, struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0}, accept = {0};
    char risk[16] = "", why[AMP_WHY_MAX] = "";
    struct amp_store *s = h->store;
    struct amp_store_rec rec;
    struct amp_about about;
    char key[AMP_QUESTION_KEY_MAX], emit[AMP_QUESTION_KEY_MAX + 8];
    bool graded = amp_questions_of(v->protocol)->graded, ended;

    *effects = 0;
    amp_question_key(v->protocol, v->id, key);
    if (amp_store_get(s, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(key)), &rec, err) < 0)
        return -1;
    if (rec.found)
        return 0;
    if (amp_about_find(s, v, &about, err) < 0 || subject_ended(h, &about, &ended, err) < 0)
        return -1;
    uint32_t facts = arrival_facts(v, graded, &about, ended);
    if (arrival_carry(h, v, facts, now_ms, err) < 0 ||
        (ended && arrival_refuse(h, v, &nack, err) < 0))
        return -1;
    snprintf(emit, sizeof emit, "ended/%s", key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_ARRIVE,
        .facts = facts,
        .set = {.task = v->task,
                .type = v->kind == AMP_KIND_ESCALATION ? v->body.escalation.type : v->type,
                .severity = amp_span_str(graded ? amp_level_name(v->body.escalation.severity) : ""),
                .arrived_ms = now_ms,
                .protocol = amp_span_str(amp_protocol_name(v->protocol)),
                .about = about},
        .emit = {amp_span_str(emit), {nack.data, nack.len ? nack.len - 1 : 0}, false},
    };
    amp_buf_init(&accept, AMP_REC_MAX);
    if (!(facts & (AMP_ESC_IF_INFO | AMP_ESC_IF_ENDED)) &&
        arrival_terms(h, v, now_ms, &u.set, risk, why, &accept, err) < 0)
        return -1;
    if (amp_question_step(h, key, &u, err) < 0)
        return -1;
    *effects = u.effects;
    if (u.effects & AMP_ESC_DO_EMIT)
        h->note("%.*s is not asked: its subject has ended", (int)v->id.n, v->id.p);
    return 0;
}

/* Ends a question whose subject has ended; the sender gets the nack terminal. */
static int question_end(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char id[AMP_QUESTION_KEY_MAX + 8];
    struct amp_error e;

    if (amp_question_nack(h, q, AMP_STAGE_REJECTED, AMP_CODE(terminal), "its subject has ended",
                          false, &line, err) < 0)
        return -1;
    snprintf(id, sizeof id, "ended/%s", q->key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_END,
        .set = {.ended_ms = amp_now_ms()},
        .emit = {amp_span_str(id), {line.data, line.len ? line.len - 1 : 0}, false},
    };
    if (amp_question_step(h, q->key, &u, &e) == 0) {
        h->note("%s: %s is no longer asked: its subject has ended", q->name, q->id);
        return 0;
    }
    if (e.status == AMP_NO) /* decided or ended by another process */
        return 0;
    *err = e;
    return -1;
}

/* The open questions. */
struct list {
    struct amp_hitl *h;
    struct list_item {
        char key[AMP_QUESTION_KEY_MAX];
        int64_t arrived;
        int rank;
        size_t at; /* in the order of keys */
    } * v;
    size_t n, cap;
};

static int question_rank(struct amp_span severity)
{
    return !amp_span_is(severity, amp_level_name(AMP_LEVEL_CRITICAL));
}

static int list_add(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                    struct amp_error *err)
{
    struct list *l = ctx;
    char key[AMP_QUESTION_KEY_MAX];

    amp_span_copy(id, key, sizeof key);
    for (size_t i = 0; i < l->h->n_passed; i++)
        if (!strcmp(l->h->passed[i], key))
            return 0;
    if (amp_grow(&l->v, &l->cap, l->n, sizeof *l->v, err) < 0)
        return -1;
    struct amp_question_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_question_rec_read(rec->json, &mem, &r, err) < 0)
        return -1;
    memcpy(l->v[l->n].key, key, sizeof key);
    l->v[l->n].arrived = r.arrived_ms;
    l->v[l->n].rank = question_rank(r.severity);
    l->v[l->n].at = l->n;
    l->n++;
    return 0;
}

static int list_compare(const void *a, const void *b)
{
    const struct list_item *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->arrived != y->arrived)
        return x->arrived < y->arrived ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

static void question_name(struct amp_question *q)
{
    const struct amp_about *a = &q->about;
    const char *what = *a->task ? a->task : *a->id ? a->id : q->id;

    if (a->kind == AMP_ABOUT_TASK || !*a->protocol)
        snprintf(q->name, sizeof q->name, "%s", what);
    else
        snprintf(q->name, sizeof q->name, "%s %s", a->protocol, what);
}

/* A replacement for a message that the state no longer has. */
static json_t *message_gone(const struct amp_question *q, const struct amp_question_rec *r)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s}}", "msg_id", q->id, "task_id", r->task.p,
                     "payload", "severity", r->severity.p, "escalation_type", r->type.p,
                     "triggered_by", "unknown", "description",
                     "The message is no longer in the state directory.");
}

int amp_question_peek(struct amp_store *s, const char *key, struct amp_buf *rec_mem,
                      struct amp_question_rec *out, struct amp_question *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = 33u << 20};
    struct amp_store_rec rec;
    struct amp_question_rec r;
    struct amp_message_rec m;

    *q = (struct amp_question){0};
    if (amp_store_get(s, AMP_KEY(AMP_ESCALATION_KIND, amp_span_str(key)), &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    if (amp_question_rec_read(rec.json, rec_mem, &r, err) < 0)
        return -1;
    *out = r;
    q->protocol = amp_question_protocol(&r);
    q->arrived_ms = r.arrived_ms;
    q->deadline_ms = r.deadline_ms;
    q->until_ms = r.until_ms;
    q->extensions = r.extensions;
    int state = amp_fsm_state(&amp_escalation_fsm, rec.state);
    int fallback = amp_fallback_find(r.fallback);
    q->state = (uint8_t)(state < 0 ? AMP_ESC_OPEN : state);
    q->fallback = fallback < 0 ? AMP_FALLBACK_NONE : (enum amp_fallback)fallback;
    amp_span_copy(r.severity, q->severity, sizeof q->severity);
    amp_span_copy(r.reason, q->reason, sizeof q->reason);
    amp_span_copy(r.risk, q->risk, sizeof q->risk);
    amp_span_copy(r.why, q->why, sizeof q->why);
    amp_span_copy(amp_span_str(key), q->key, sizeof q->key);
    amp_span_copy(amp_span_str(amp_question_key_id(q->protocol, key)), q->id, sizeof q->id);
    amp_span_copy(r.refused, q->refused, sizeof q->refused);
    q->about = r.about;
    if (r.about.kind == AMP_ABOUT_UNKNOWN && !*r.about.protocol &&
        !amp_span_is(r.task, AMP_TASK_NONE)) { /* recorded by a former version */
        q->about = (struct amp_about){.kind = AMP_ABOUT_TASK};
        snprintf(q->about.protocol, sizeof q->about.protocol, "%s", amp_protocol_name(q->protocol));
        amp_span_copy(r.task, q->about.task, sizeof q->about.task);
    }
    question_name(q);
    if (amp_message_find(s, amp_span_str(q->id), &mem, &m, err) < 0 ||
        !(q->message = m.found ? amp_question_load(m.line, err) : message_gone(q, &r)))
        return -1;
    return 1;
}

int amp_question_load_key(struct amp_hitl *h, const char *key, struct amp_question *q,
                          struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_question_rec rec;
    bool ended = false;

    int found = amp_question_peek(h->store, key, &mem, &rec, q, err);
    if (found <= 0)
        return found;
    int rc = subject_ended(h, &q->about, &ended, err);
    if (rc == 0 && ended)
        rc = question_end(h, q, err);
    if (rc < 0 || ended)
        amp_question_release(q);
    return rc < 0 ? -1 : !ended;
}

static int questions_call(struct amp_hitl *h, bool deferred, amp_question_fn fn, void *ctx,
                          struct amp_error *err)
{
    struct list l = {.h = h};
    struct amp_question q;
    int rc = 0;

    if (amp_store_each(h->store, AMP_ESCALATION_KIND, "OPEN", list_add, &l, err) < 0 ||
        amp_store_each(h->store, AMP_ESCALATION_KIND, "ASKED", list_add, &l, err) < 0 ||
        (deferred &&
         amp_store_each(h->store, AMP_ESCALATION_KIND, "DEFERRED", list_add, &l, err) < 0))
        rc = -1;
    if (l.n)
        qsort(l.v, l.n, sizeof *l.v, list_compare);
    for (size_t i = 0; !rc && i < l.n; i++) {
        int open = amp_question_load_key(h, l.v[i].key, &q, err);
        if (open < 0) {
            rc = -1;
        } else if (open) {
            rc = fn(ctx, &q);
            amp_question_release(&q);
        }
    }
    free(l.v);
    return rc < 0 ? -1 : 0;
}

int amp_question_each(struct amp_hitl *h, amp_question_fn fn, void *ctx, struct amp_error *err)
{
    return questions_call(h, false, fn, ctx, err);
}

int amp_question_all(struct amp_hitl *h, amp_question_fn fn, void *ctx, struct amp_error *err)
{
    return questions_call(h, true, fn, ctx, err);
}

static int question_first(void *ctx, const struct amp_question *q)
{
    struct amp_question *out = ctx;

    *out = *q;
    json_incref(out->message);
    return 1;
}

int amp_question_next(struct amp_hitl *h, struct amp_question *q, struct amp_error *err)
{
    *q = (struct amp_question){0};
    if (amp_question_each(h, question_first, q, err) < 0)
        return -1;
    return q->message != NULL;
}

int amp_question_ask(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err)
{
    struct amp_question_update u = {.event = AMP_ESC_EV_ASK, .now_ms = amp_now_ms()};
    return amp_question_step(h, q->key, &u, err);
}

int amp_question_skip(struct amp_hitl *h, const struct amp_question *q, struct amp_error *err)
{
    if (amp_grow(&h->passed, &h->cap_passed, h->n_passed, sizeof *h->passed, err) < 0)
        return -1;
    memcpy(h->passed[h->n_passed++], q->key, sizeof q->key);
    return 0;
}

int amp_question_pass(struct amp_hitl *h, const struct amp_question *q, const char *why,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    struct amp_question_update u = {.event = AMP_ESC_EV_PASS, .set = {.passed = amp_span_str(why)}};

    if (amp_question_skip(h, q, err) < 0)
        return -1;
    if (amp_question_step(h, q->key, &u, err) < 0)
        return -1;
    if (amp_question_nack(h, q, AMP_STAGE_FULFILLED, AMP_HITL_UNAVAILABLE, why, true, &nack, err) <
        0)
        return -1;
    return nack.len ? h->send(h->ctx, amp_buf_span(&nack), err) : 0;
}
