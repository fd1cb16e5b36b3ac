/* Escalations in, decisions out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "flow/decide.h"
#include "flow/suspend.h"
#include "flow/worker_io.h"
#include "message/message.h"
#include "protocol/compose.h"
#include "task/record.h"
#include "task/task.h"
#include "worktree/git.h"

#define KIND       "escalation"
#define RECORD_MAX (1u << 20)

struct amp_decider {
    struct amp_worker w;
    struct amp_worker_options opt;
    amp_info_fn on_info;
    void *ctx;
    char (*passed)[256]; /* the escalations that were passed over in this run */
    size_t n_passed, cap_passed;
};

/* One step of an escalation's record. */
struct update {
    uint8_t event;
    uint32_t facts, effects;
    json_t *set; /* members to lay over the record */
    struct amp_store_emit emit;
    struct amp_buf json;
    char state[16];
    const char *actor; /* whose outbox it is */
    const struct amp_refusal *refusal;
};

/* Nothing to open again: it is not decided, is about another task, or the refusal was recorded. */
static bool is_known_refusal(const struct amp_store_rec *now, int at, const struct update *u)
{
    if (!now->found || at != AMP_ESC_DECIDED)
        return true;
    json_t *j = amp_json_load(now->json, NULL);
    const char *task = json_string_value(json_object_get(j, "task"));
    int64_t before = json_integer_value(json_object_get(j, "refused_at"));
    bool known = !task || !amp_span_is(u->refusal->task, task) || before >= u->refusal->at_ms;
    json_decref(j);
    return known;
}

static int change(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                  struct amp_error *err)
{
    struct update *u = ctx;
    int at = now->found ? amp_fsm_state(&amp_escalation_fsm, now->state) : AMP_ESC_NEW;
    struct amp_fsm_result r;

    if (now->found && u->event == AMP_ESC_EV_ARRIVE)
        return 1;
    if (u->event == AMP_ESC_EV_REFUSE && is_known_refusal(now, at, u))
        return 1;
    if (at == AMP_ESC_DECIDED && u->event != AMP_ESC_EV_REFUSE)
        return amp_fail(err, AMP_NO, "already_decided", "it was decided already");
    if (at < 0 || amp_fsm_step(&amp_escalation_fsm, (uint8_t)at, u->event, u->facts, &r, err))
        return -1;
    json_t *j = now->found ? amp_json_load(now->json, err) : json_object();
    if (!j)
        return -1;
    json_object_update(j, u->set);
    snprintf(u->state, sizeof u->state, "%s", amp_escalation_fsm.states[r.to].name);
    int rc = amp_json_dump(j, &u->json, err);
    json_decref(j);
    u->effects = r.effects;
    c->event = amp_escalation_fsm.events[u->event].name;
    c->actor = u->actor;
    c->to = u->state;
    c->json = amp_buf_span(&u->json);
    if (r.effects & AMP_ESC_DO_EMIT) {
        c->emits = &u->emit;
        c->n_emits = 1;
    }
    return rc;
}

/* Takes u->set. */
static int update(struct amp_store *s, struct amp_span id, struct update *u,
                  enum amp_store_outcome *outcome, struct amp_error *err)
{
    amp_buf_init(&u->json, RECORD_MAX);
    int rc = u->set ? amp_store_update(s, KIND, id, NULL, change, u, outcome, err)
                    : amp_fail(err, AMP_TEMPFAIL, "no_memory", "no memory for an escalation");
    amp_buf_release(&u->json);
    json_decref(u->set);
    return rc;
}

static int step(struct amp_decider *d, struct amp_span id, struct update *u, struct amp_error *err)
{
    enum amp_store_outcome outcome;

    u->actor = d->opt.consumer;
    d->w.io->dirty = true;
    return update(d->w.store, id, u, &outcome, err);
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
    struct update u = {
        .event = AMP_ESC_EV_REFUSE,
        .set = json_pack("{s:o, s:I}", "refused", amp_json_text(why), "refused_at",
                         (json_int_t)r->at_ms),
        .actor = r->by,
        .refusal = r,
    };
    if (update(s, r->ref, &u, &outcome, err))
        return -1;
    *reopened = outcome == AMP_STORE_COMMITTED;
    return 0;
}

/* Recorded, suspended if nobody did so yet, acknowledged where that is asked for. */
static int arrive(struct amp_worker *w, const struct amp_view *v, const char *bad,
                  struct amp_error *err)
{
    struct amp_decider *d = w->ctx;
    enum amp_level level = v->body.escalation.severity;
    enum amp_store_outcome outcome;
    int64_t now = amp_now_ms();
    bool late;

    if (bad)
        return 1;
    if (amp_message_record(w->store, v, now, &outcome, err)) {
        if (err->status != AMP_NO)
            return -1;
        w->status = amp_status_worse(w->status, AMP_NO);
        w->opt->note("%.*s: %s", (int)v->id.n, v->id.p, err->what);
        return 1;
    }
    /* Suspended before it is recorded: who dies between does it again. */
    struct amp_store_rec rec;
    if (amp_store_get(w->store, KIND, v->id, &rec, err))
        return -1;
    bool known = rec.found;
    const struct amp_suspend how = {.by = "hitl-prompt", .say = w->opt->note, .now_ms = now};
    if (!known && amp_flow_suspend_view(w->store, v, &how, err))
        return -1;
    struct update u = {
        .event = AMP_ESC_EV_ARRIVE,
        .facts = level == AMP_LEVEL_CRITICAL ? AMP_ESC_IF_CRITICAL
                 : level == AMP_LEVEL_INFO   ? AMP_ESC_IF_INFO
                                             : 0,
        .set = json_pack("{s:o, s:o, s:s, s:I}", "task", json_stringn(v->task.p, v->task.n), "type",
                         json_stringn(v->body.escalation.type.p, v->body.escalation.type.n),
                         "severity", amp_level_name(level), "arrived", (json_int_t)now),
    };
    if (step(d, v->id, &u, err))
        return -1;
    if (v->needs_ack) {
        AMP_BUF struct amp_buf ack = {0};
        amp_buf_init(&ack, 1 << 16);
        if (amp_message_ack(w->store, v->id, AMP_STAGE_READ, "admin", (struct amp_span){NULL, 0},
                            now, &late, err) ||
            amp_compose_ack(v, AMP_STAGE_READ, "admin", NULL, now, &ack, err) ||
            amp_worker_send(w, amp_buf_span(&ack), err))
            return -1;
    }
    if (u.effects & AMP_ESC_DO_SHOW) {
        json_t *m = amp_json_load(v->line, err);
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

    if (!amp_span_is(v->from, "coordinator") || !v->body.ack.ref.n)
        return 0;
    if (amp_store_get(w->store, KIND, v->body.ack.ref, &rec, err))
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
    static const struct amp_worker_role role = {AMP_KIND_ESCALATION, false, arrive, no_work,
                                                nacked};
    struct amp_decider *d = calloc(1, sizeof *d);

    if (!d) {
        amp_fail(err, AMP_INTERNAL, "no_memory", "no memory");
        return NULL;
    }
    d->opt = *opt;
    d->opt.role = "admin";
    d->opt.agent = NULL;
    d->on_info = on_info;
    d->ctx = ctx;
    d->w = (struct amp_worker){.opt = &d->opt, .role = &role, .ctx = d, .store = s};
    if (amp_worker_open(&d->w, err)) {
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

/* The open escalations, earliest first. */
struct list {
    struct amp_decider *d;
    struct {
        char id[256], task[256], refused[512];
        int64_t arrived;
    } * v;
    size_t n, cap;
};

static int collect(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct list *l = ctx;
    json_t *j = amp_json_load(rec->json, NULL);
    const char *task = json_string_value(json_object_get(j, "task"));
    char name[256];
    int rc = 0;

    if (!amp_span_copy(id, name, sizeof name) || !task)
        goto out;
    for (size_t i = 0; i < l->d->n_passed; i++)
        if (!strcmp(l->d->passed[i], name))
            goto out;
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 16;
        void *p = realloc(l->v, cap * sizeof l->v[0]);
        if (!p) {
            rc = 1;
            goto out;
        }
        l->v = p;
        l->cap = cap;
    }
    int64_t arrived = json_integer_value(json_object_get(j, "arrived"));
    size_t at = l->n++;
    for (; at && l->v[at - 1].arrived > arrived; at--)
        l->v[at] = l->v[at - 1];
    memcpy(l->v[at].id, name, sizeof name);
    snprintf(l->v[at].task, sizeof l->v[at].task, "%s", task);
    l->v[at].arrived = arrived;
    const char *refused = json_string_value(json_object_get(j, "refused"));
    snprintf(l->v[at].refused, sizeof l->v[at].refused, "%s", refused ? refused : "");
out:
    json_decref(j);
    return rc;
}

int amp_decider_each(struct amp_decider *d, amp_question_fn fn, void *ctx, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct list l = {.d = d};
    struct amp_message_rec m;
    struct amp_task_status st;
    int rc = 0;

    amp_buf_init(&mem, 33u << 20);
    if (amp_store_each(d->w.store, KIND, "OPEN", collect, &l, err) ||
        amp_store_each(d->w.store, KIND, "ASKED", collect, &l, err))
        rc = -1;
    for (size_t i = 0; !rc && i < l.n; i++) {
        struct amp_question q = {.arrived_ms = l.v[i].arrived};
        memcpy(q.id, l.v[i].id, sizeof q.id);
        memcpy(q.task, l.v[i].task, sizeof q.task);
        memcpy(q.refused, l.v[i].refused, sizeof q.refused);
        if (amp_task_status(d->w.store, amp_span_str(q.task), &st, err) ||
            amp_message_find(d->w.store, amp_span_str(q.id), &mem, &m, err)) {
            rc = -1;
        } else if (!st.terminal && m.found && (q.message = amp_json_load(m.line, NULL))) {
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
    struct update u = {.event = AMP_ESC_EV_ASK,
                       .set = json_pack("{s:I}", "asked", (json_int_t)amp_now_ms())};
    return step(d, amp_span_str(q->id), &u, err);
}

int amp_decider_pass(struct amp_decider *d, const struct amp_question *q, const char *why,
                     struct amp_error *err)
{
    struct update u = {.event = AMP_ESC_EV_PASS, .set = json_pack("{s:s}", "passed", why)};

    if (d->n_passed == d->cap_passed) {
        size_t cap = d->cap_passed ? 2 * d->cap_passed : 16;
        void *p = realloc(d->passed, cap * sizeof d->passed[0]);
        if (!p) {
            json_decref(u.set);
            return amp_fail(err, AMP_INTERNAL, "no_memory", "no memory");
        }
        d->passed = p;
        d->cap_passed = cap;
    }
    memcpy(d->passed[d->n_passed++], q->id, sizeof q->id);
    if (step(d, amp_span_str(q->id), &u, err))
        return -1;

    AMP_BUF struct amp_buf nack = {0};
    const struct amp_view of = {
        .protocol = AMP_PROTO_AMP, .id = amp_span_str(q->id), .task = amp_span_str(q->task)};
    amp_buf_init(&nack, 1 << 16);
    return amp_compose_nack(&of, AMP_STAGE_FULFILLED, "admin", AMP_HITL_UNAVAILABLE, why, "", true,
                            amp_now_ms(), &nack, err) ||
                   amp_worker_send(&d->w, amp_buf_span(&nack), err)
               ? -1
               : 0;
}

/* The commit of a rollback as the task's repository knows it, into oid; as it was typed where the
 * state does not know the task. 1: it is refused, err says why. */
static int resolve(struct amp_decider *d, const struct amp_question *q, const char *commit,
                   char oid[AMP_OID_MAX], struct amp_error *err)
{
    struct amp_span id = amp_span_str(q->task);
    struct amp_store_rec rec;
    struct amp_task t;
    int rc = 0;

    if (!commit || !*commit) {
        amp_fail(err, AMP_DATAERR, "missing_commit",
                 "rollback needs the commit to go back to (rollback COMMIT [NOTE])");
        return 1;
    }
    if (amp_store_get(d->w.store, "task", id, &rec, err) || amp_task_read(&t, &rec, id, err))
        return -1;
    *oid = 0;
    if (*t.repo && !d->w.git && amp_git_open(NULL, &d->w.git, err))
        rc = -1;
    else if (*t.repo && amp_git_resolve(d->w.git, t.repo, commit, oid, err)) {
        if (err->status == AMP_NO)
            err->status = AMP_DATAERR;
        rc = 1;
    }
    amp_task_release(&t);
    return rc;
}

int amp_decider_decide(struct amp_decider *d, const struct amp_question *q,
                       const struct amp_answer *a, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char id[300], oid[AMP_OID_MAX];
    const char *commit = a->commit;
    int64_t now = amp_now_ms();

    if (a->word == AMP_DO_ROLLBACK) {
        int rc = resolve(d, q, a->commit, oid, err);
        if (rc)
            return rc;
        commit = *oid ? oid : a->commit;
    }
    amp_buf_init(&line, RECORD_MAX);
    if (amp_compose_decision(q->id, q->task, a->word, a->note, commit, a->op, now, &line, err))
        return err->status == AMP_DATAERR ? 1 : -1;
    snprintf(id, sizeof id, "decision/%s", q->id);
    struct update u = {
        .event = AMP_ESC_EV_DECIDE,
        .set = json_pack("{s:s, s:s, s:I, s:s}", "decision", amp_operator_word_name(a->word),
                         "operator", a->op, "decided_at", (json_int_t)now, "note",
                         a->note ? a->note : ""),
        .emit = {amp_span_str(id), {line.data, line.len - 1}, false},
    };
    return step(d, amp_span_str(q->id), &u, err);
}

bool amp_answer_parse(char *line, struct amp_answer *out)
{
    static const char *const words[] = {
#define X(id, name) [AMP_DO_##id] = name,
        AMP_DO_LIST(X)
#undef X
    };
    static const char space[] = " \t\r\n";
    struct amp_answer a = {0};
    char *p = line + strspn(line, space);
    size_t n = strcspn(p, space);
    int word = -1;

    for (int i = 0; i < (int)(sizeof words / sizeof words[0]); i++)
        if (strlen(words[i]) == n && !strncasecmp(p, words[i], n))
            word = i;
    if (word < 0)
        return false;
    a.word = (enum amp_operator_word)word;
    p += n;
    p += strspn(p, space);
    if (a.word == AMP_DO_ROLLBACK) {
        a.commit = p;
        p += strcspn(p, space);
        if (*p)
            *p++ = 0;
        p += strspn(p, space);
    }
    for (size_t len = strlen(p); len && strchr(space, p[len - 1]);)
        p[--len] = 0;
    a.note = p;
    *out = a;
    return true;
}
