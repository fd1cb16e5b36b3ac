/* Questions in: what arrives, which are open, and those that nobody answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "flow/suspend.h"
#include "flow/work/decider.h"
#include "hitl/escalation.h"
#include "message/dead/dead.h"
#include "message/ledger/ledger.h"
#include "message/record/sequence.h"
#include "message/settle/answer.h"
#include "protocol/amp/compose.h"
#include "protocol/sw4rm/answer.h"

/* An escalation to the admin; SW4RM's is for whoever is the human here, whether or not it says so.
 */
static bool is_question(const struct amp_view *v)
{
    bool to_admin = false;

    for (uint32_t i = 0; i < v->n_to; i++)
        to_admin |= amp_span_is(v->to[i], "admin");
    return v->kind == AMP_KIND_ESCALATION && v->id.n &&
           (v->protocol == AMP_PROTO_SW4RM ||
            (v->protocol == AMP_PROTO_AMP && v->task.n && to_admin));
}

/* The envelope, without the address around it. */
static json_t *load(struct amp_span line, struct amp_error *err)
{
    json_t *j = amp_json_load(line, err), *inner = json_object_get(j, "msg");

    if (!inner || json_object_get(j, "message_id"))
        return j;
    json_incref(inner);
    json_decref(j);
    return inner;
}

static int acknowledge(struct amp_decider *d, const struct amp_view *v, int64_t now,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf ack = {0};
    struct amp_worker *w = &d->w;
    struct amp_answered of = {.id = v->id, .producer = v->from, .correlation = v->correlation};
    const struct amp_span none = {"", 0};
    bool late;

    amp_buf_init(&ack, 1 << 16);
    if (amp_settle_ack(w->store, v->id, AMP_STAGE_READ, "admin", none, now, &late, err))
        return -1;
    int rc;
    if (v->protocol == AMP_PROTO_AMP)
        rc = amp_compose_ack(v, AMP_STAGE_READ, "admin", NULL, now, &ack, err);
    else
        rc = amp_sequence_rise(w->store, amp_span_str(d->opt.consumer), now, d->opt.consumer,
                               &of.sequence, err) ||
             amp_sw4rm_ack(&of, AMP_STAGE_READ, none, none, d->opt.consumer, now, &ack, err);
    w->io->dirty = true;
    return rc || amp_worker_send(w, amp_buf_span(&ack), err) ? -1 : 0;
}

/* What needs no decision is shown whether or not its subject ended. */
static uint32_t facts_of(const struct amp_view *v, const struct amp_subject *about, bool ended)
{
    static const uint32_t of_level[] = {[AMP_LEVEL_INFO] = AMP_ESC_IF_INFO,
                                        [AMP_LEVEL_WARNING] = AMP_ESC_IF_WARNING,
                                        [AMP_LEVEL_CRITICAL] = AMP_ESC_IF_CRITICAL};
    uint32_t level = v->protocol == AMP_PROTO_AMP ? of_level[v->body.escalation.severity] : 0;

    if (level == AMP_ESC_IF_INFO)
        return level;
    return (ended ? AMP_ESC_IF_ENDED : 0) | (about->kind == AMP_SUBJECT_TASK ? level : 0);
}

/* Carries out what an arrival has to do before it is recorded, so that a process that dies in
 * between does it again. */
static int arrival_carry(struct amp_decider *d, const struct amp_view *v, uint32_t facts,
                         int64_t now, struct amp_error *err)
{
    const struct amp_suspend how = {.by = d->opt.consumer, .say = d->opt.note, .now_ms = now};
    struct amp_fsm_result r;

    if (amp_fsm_step(&amp_escalation_fsm, AMP_ESC_NEW, AMP_ESC_EV_ARRIVE, facts, &r, err))
        return -1;
    return r.effects & (AMP_ESC_DO_SUSPEND | AMP_ESC_DO_SUSPEND_PARTY)
               ? amp_flow_suspend_view(d->w.store, v, &how, err)
               : 0;
}

/* Records it. effects: of the step, 0 where it is known. */
static int record(struct amp_decider *d, const struct amp_view *v, int64_t now, uint32_t *effects,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    struct amp_store *s = d->w.store;
    struct amp_store_rec rec;
    struct amp_subject about;
    char key[AMP_QUESTION_KEY_MAX], emit[AMP_QUESTION_KEY_MAX + 8];
    bool ended;

    *effects = 0;
    amp_question_key(v->protocol, v->id, key);
    if (amp_store_get(s, AMP_ESCALATION_KIND, amp_span_str(key), &rec, err))
        return -1;
    if (rec.found)
        return 0;
    if (amp_subject_find(s, v, &about, err) || amp_subject_ended(s, &about, &ended, err))
        return -1;
    uint32_t facts = facts_of(v, &about, ended);
    if (arrival_carry(d, v, facts, now, err))
        return -1;
    amp_buf_init(&nack, 1 << 16);
    if (ended && amp_compose_nack(v, AMP_STAGE_REJECTED, "admin", "terminal",
                                  "what it asks about has ended", "", false, now, &nack, err))
        return -1;
    snprintf(emit, sizeof emit, "ended/%s", key);
    struct amp_question_update u = {
        .event = AMP_ESC_EV_ARRIVE,
        .facts = facts,
        .set = {.task = v->task,
                .type = v->body.escalation.type,
                .severity = amp_span_str(v->protocol == AMP_PROTO_AMP
                                             ? amp_level_name(v->body.escalation.severity)
                                             : ""),
                .arrived_ms = now,
                .protocol = amp_span_str(amp_protocol_name(v->protocol)),
                .about = about},
        .emit = {amp_span_str(emit), {nack.data, nack.len ? nack.len - 1 : 0}, false},
    };
    if (amp_question_step(d, key, &u, err))
        return -1;
    *effects = u.effects;
    if (u.effects & AMP_ESC_DO_EMIT) {
        d->opt.note("%.*s is not asked: what it is about has ended", (int)v->id.n, v->id.p);
        d->w.status = amp_status_worse(d->w.status, AMP_NO);
    }
    return 0;
}

static int arrive(struct amp_worker *w, const struct amp_view *v, const char *bad,
                  struct amp_error *err)
{
    struct amp_decider *d = w->ctx;
    enum amp_store_outcome outcome;
    int64_t now = amp_now_ms();
    uint32_t effects;

    if (bad)
        return 1;
    if (amp_message_record(w->store, v, now, &outcome, err)) {
        if (err->status != AMP_NO)
            return -1;
        w->status = amp_status_worse(w->status, AMP_NO);
        w->opt->note("%.*s: %s", (int)v->id.n, v->id.p, err->what);
        return 1;
    }
    /* SW4RM's messages are acknowledged without saying that they want it (§11). */
    bool ack = v->needs_ack || v->protocol == AMP_PROTO_SW4RM;
    if (record(d, v, now, &effects, err) || (ack && acknowledge(d, v, now, err)))
        return -1;
    if (effects & AMP_ESC_DO_SHOW) {
        json_t *m = load(v->line, err);
        if (!m)
            return -1;
        d->on_info(d->ctx, m);
        json_decref(m);
    }
    return 1;
}

/* The coordinator says what a decision has come to; where both share the state it has opened the
 * question again itself. */
static int nacked(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_decider *d = w->ctx;
    struct amp_store_rec rec;
    bool reopened;

    if (v->protocol != AMP_PROTO_AMP || !amp_span_is(v->from, "coordinator") || !v->body.ack.ref.n)
        return 0;
    if (amp_store_get(w->store, AMP_ESCALATION_KIND, v->body.ack.ref, &rec, err))
        return -1;
    if (!rec.found)
        return 0;
    w->opt->note("%.*s: the decision was refused: %.*s: %.*s", (int)v->body.ack.ref.n,
                 v->body.ack.ref.p, (int)v->body.ack.code.n, v->body.ack.code.p,
                 (int)v->body.ack.note.n, v->body.ack.note.p);
    if (!amp_flow_reopens(v->body.ack.code))
        return 1;
    const struct amp_refusal r = {.ref = v->body.ack.ref,
                                  .task = v->task,
                                  .code = v->body.ack.code,
                                  .why = v->body.ack.note,
                                  .by = d->opt.consumer,
                                  .at_ms = v->created_ms};
    d->w.io->dirty = true;
    return amp_flow_reopen(w->store, &r, &reopened, err) ? -1 : 1;
}

static int no_work(struct amp_worker *w, struct amp_job *job, const struct amp_view *v,
                   struct amp_error *err)
{
    return 1;
}

struct amp_decider *amp_decider_new(struct amp_store *s, const struct amp_worker_options *opt,
                                    amp_info_fn on_info, void *ctx, struct amp_error *err)
{
    static const struct amp_worker_role role = {.takes = AMP_KIND_ESCALATION,
                                                .admit = arrive,
                                                .work = no_work,
                                                .nacked = nacked,
                                                .ours = is_question};
    struct amp_decider *d = calloc(1, sizeof *d);

    if (!d) {
        amp_fail_memory(err);
        return NULL;
    }
    d->opt = *opt;
    d->opt.role = "admin";
    d->opt.agent = NULL;
    d->on_info = on_info;
    d->ctx = ctx;
    d->w = (struct amp_worker){.opt = &d->opt, .role = &role, .ctx = d, .store = s};
    if (amp_dead_recover(s, d->opt.consumer, amp_now_ms(), err) || amp_worker_open(&d->w, err)) {
        amp_decider_free(d);
        return NULL;
    }
    return d;
}

void amp_decider_free(struct amp_decider *d)
{
    if (!d)
        return;
    amp_worker_close(&d->w);
    free(d->passed);
    free(d);
}

int amp_decider_turn(struct amp_decider *d, struct pollfd *fds, unsigned n, int64_t wait_ms,
                     struct amp_error *err)
{
    return amp_worker_turn(&d->w, fds, n, wait_ms, err);
}

bool amp_decider_ended(const struct amp_decider *d)
{
    return amp_worker_ended(&d->w);
}

enum amp_status amp_decider_status(const struct amp_decider *d)
{
    return d->w.status;
}

void amp_question_release(struct amp_question *q)
{
    json_decref(q->message);
    q->message = NULL;
}

/* The open questions, earliest first. */
struct list {
    struct amp_decider *d;
    struct {
        char key[AMP_QUESTION_KEY_MAX];
        int64_t arrived;
    } * v;
    size_t n, cap;
    struct amp_error *err;
    int rc;
};

static int collect(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct list *l = ctx;
    char key[AMP_QUESTION_KEY_MAX];

    amp_span_copy(id, key, sizeof key);
    for (size_t i = 0; i < l->d->n_passed; i++)
        if (!strcmp(l->d->passed[i], key))
            return 0;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        void *p = realloc(l->v, cap * sizeof l->v[0]);
        if (!p) {
            l->rc = amp_fail_memory(l->err);
            return 1;
        }
        l->v = p;
        l->cap = cap;
    }
    struct amp_question_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    l->rc = amp_question_rec_read(rec->json, &mem, &r, l->err);
    if (l->rc)
        return 1;
    int64_t arrived = r.arrived_ms;
    size_t at = l->n++;
    for (; at && l->v[at - 1].arrived > arrived; at--)
        l->v[at] = l->v[at - 1];
    memcpy(l->v[at].key, key, sizeof key);
    l->v[at].arrived = arrived;
    return 0;
}

static void name(struct amp_question *q)
{
    const struct amp_subject *a = &q->about;
    const char *what = *a->task ? a->task : *a->id ? a->id : q->id;

    if (a->kind == AMP_SUBJECT_TASK || !*a->protocol)
        snprintf(q->name, sizeof q->name, "%s", what);
    else
        snprintf(q->name, sizeof q->name, "%s %s", a->protocol, what);
}

/* What is left of a question whose message the state no longer has. */
static json_t *gone(const struct amp_question *q, const struct amp_question_rec *r)
{
    return json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s}}", "msg_id", q->id, "task_id", r->task.p,
                     "payload", "severity", r->severity.p, "escalation_type", r->type.p,
                     "triggered_by", "unknown", "description",
                     "The state no longer has the message itself.");
}

/* The question of a record: 1; 0 there is nothing to ask (any more). */
static int fill(struct amp_decider *d, const char *key, struct amp_question *q,
                struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store *s = d->w.store;
    struct amp_store_rec rec;
    struct amp_message_rec m;
    bool ended = false;

    *q = (struct amp_question){0};
    if (amp_store_get(s, AMP_ESCALATION_KIND, amp_span_str(key), &rec, err))
        return -1;
    AMP_BUF struct amp_buf rec_mem = {0};
    struct amp_question_rec r;
    amp_buf_init(&rec_mem, AMP_REC_MAX);
    if (!rec.found)
        return 0;
    if (amp_question_rec_read(rec.json, &rec_mem, &r, err))
        return -1;
    q->protocol = r.protocol.n ? amp_protocol_find(r.protocol) : AMP_PROTO_AMP;
    q->arrived_ms = r.arrived_ms;
    amp_span_copy(amp_span_str(key), q->key, sizeof q->key);
    const char *id = q->protocol == AMP_PROTO_AMP ? key : key + r.protocol.n + 1;
    amp_span_copy(amp_span_str(id), q->id, sizeof q->id);
    amp_span_copy(r.refused, q->refused, sizeof q->refused);
    q->about = r.about;
    if (r.about.kind == AMP_SUBJECT_UNKNOWN && !*r.about.protocol &&
        !amp_span_is(r.task, AMP_TASK_NONE)) { /* recorded by a former version */
        q->about = (struct amp_subject){.kind = AMP_SUBJECT_TASK, .protocol = "amp"};
        amp_span_copy(r.task, q->about.task, sizeof q->about.task);
    }
    name(q);
    amp_buf_init(&mem, 33u << 20);
    int rc = amp_message_find(s, amp_span_str(q->id), &mem, &m, err);
    if (!rc && !(q->message = m.found ? load(m.line, err) : gone(q, &r)))
        rc = -1;
    if (!rc)
        rc = amp_subject_ended(s, &q->about, &ended, err);
    if (!rc && ended)
        rc = amp_question_end(d, q, err);
    if (rc || ended)
        amp_question_release(q);
    return rc ? -1 : !ended;
}

int amp_decider_each(struct amp_decider *d, amp_question_fn fn, void *ctx, struct amp_error *err)
{
    struct list l = {.d = d, .err = err};
    struct amp_question q;
    int rc = 0;

    if (amp_store_each(d->w.store, AMP_ESCALATION_KIND, "OPEN", collect, &l, err) ||
        amp_store_each(d->w.store, AMP_ESCALATION_KIND, "ASKED", collect, &l, err))
        rc = -1;
    if (!rc)
        rc = l.rc;
    for (size_t i = 0; !rc && i < l.n; i++) {
        int open = fill(d, l.v[i].key, &q, err);
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

static int first(void *ctx, const struct amp_question *q)
{
    struct amp_question *out = ctx;

    *out = *q;
    json_incref(out->message);
    return 1;
}

int amp_decider_next(struct amp_decider *d, struct amp_question *q, struct amp_error *err)
{
    *q = (struct amp_question){0};
    if (amp_decider_each(d, first, q, err))
        return -1;
    return q->message != NULL;
}

int amp_decider_ask(struct amp_decider *d, const struct amp_question *q, struct amp_error *err)
{
    struct amp_question_update u = {.event = AMP_ESC_EV_ASK, .now_ms = amp_now_ms()};
    return amp_question_step(d, q->key, &u, err);
}

int amp_decider_pass(struct amp_decider *d, const struct amp_question *q, const char *why,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    struct amp_question_update u = {.event = AMP_ESC_EV_PASS, .set = {.passed = amp_span_str(why)}};

    if (d->n_passed == d->cap_passed) {
        size_t cap = d->cap_passed ? 2 * d->cap_passed : 16;
        void *p = realloc(d->passed, cap * sizeof d->passed[0]);
        if (!p)
            return amp_fail_memory(err);
        d->passed = p;
        d->cap_passed = cap;
    }
    memcpy(d->passed[d->n_passed++], q->key, sizeof q->key);
    if (amp_question_step(d, q->key, &u, err))
        return -1;
    amp_buf_init(&nack, 1 << 16);
    return amp_question_nack(d, q, AMP_STAGE_FULFILLED, AMP_HITL_UNAVAILABLE, why, true, &nack,
                             err) ||
                   amp_worker_send(&d->w, amp_buf_span(&nack), err)
               ? -1
               : 0;
}
