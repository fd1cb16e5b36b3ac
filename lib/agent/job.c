/* Jobs in the state. */
#include <stdio.h>
#include <string.h>

#include "agent/job.h"
#include "protocol/amp/compose.h"

#define KIND "job"

struct update {
    const struct amp_job_take *take; /* or */
    const struct amp_job_step *step;
    struct amp_job job;
    struct amp_buf json;
    char state[16];
};

static int key(const struct amp_job_ref *ref, char *out, size_t size, struct amp_error *err)
{
    int n = snprintf(out, size, "%s/%.*s", ref->consumer, (int)ref->msg_id.n, ref->msg_id.p);
    if (n < 0 || (size_t)n >= size)
        return amp_fail(err, AMP_DATAERR, "bad_msg_id", "message id too long");
    return 0;
}

static int64_t number(const json_t *j, const char *name)
{
    return json_integer_value(json_object_get(j, name));
}

static const char *text(const json_t *j, const char *name)
{
    const char *s = json_string_value(json_object_get(j, name));
    return s ? s : "";
}

static void read_job(const struct amp_store_rec *rec, const json_t *j, struct amp_job *out)
{
    int state = amp_fsm_state(&amp_job_fsm, rec->state);

    *out = (struct amp_job){
        .state = state < 0 ? AMP_JOB_FAILED : (uint8_t)state,
        .attempts = number(j, "attempts"),
        .breaks = number(j, "breaks"),
        .next = number(j, "next"),
        .until_ms = number(j, "until"),
        .taken_ms = number(j, "taken"),
    };
    snprintf(out->msg_id, sizeof out->msg_id, "%s", text(j, "msg_id"));
    snprintf(out->start, sizeof out->start, "%s", text(j, "start"));
}

static void write_job(const struct amp_job *b, json_t *j)
{
    json_object_set_new(j, "attempts", json_integer(b->attempts));
    json_object_set_new(j, "breaks", json_integer(b->breaks));
    json_object_set_new(j, "next", json_integer(b->next));
    json_object_set_new(j, "until", json_integer(b->until_ms));
    json_object_set_new(j, "taken", json_integer(b->taken_ms));
    json_object_set_new(j, "start", json_string(b->start));
}

/* Carries out the effects of a step on the job and on what is committed. */
static int job_carry(struct amp_job *b, const struct amp_job_step *st,
                     const struct amp_fsm_result *r, struct amp_store_change *c,
                     struct amp_error *err)
{
    b->state = r->to;
    b->until_ms = r->effects & AMP_JOB_DO_WAIT ? st->until_ms : 0;
    if (r->effects & AMP_JOB_DO_ATTEMPT) {
        b->attempts++;
        if (st->start)
            snprintf(b->start, sizeof b->start, "%s", st->start);
    }
    if (r->effects & AMP_JOB_DO_BREAK)
        b->breaks++;
    if (r->effects & AMP_JOB_DO_NEXT) {
        b->next++;
        b->attempts = b->breaks = 0;
        b->start[0] = 0;
    }
    if (st->n_emits > 0 && !(r->effects & AMP_JOB_DO_EMIT))
        return amp_fail(err, AMP_INTERNAL, "machine_unsound", "job: nothing leaves on %s",
                        amp_job_fsm.events[st->event].name);
    c->emits = st->emits;
    c->n_emits = st->n_emits;
    return 0;
}

/* Steps u->job; takes j. */
static int finish(struct update *u, const struct amp_job_step *st, json_t *j,
                  struct amp_store_change *c, struct amp_error *err)
{
    struct amp_fsm_result r;
    uint32_t facts =
        st->event == AMP_JOB_EV_BREAK && u->job.breaks >= st->most ? AMP_JOB_IF_SPENT : 0;

    if (amp_fsm_step(&amp_job_fsm, u->job.state, st->event, facts, &r, err) ||
        job_carry(&u->job, st, &r, c, err)) {
        json_decref(j);
        return -1;
    }
    c->event = amp_job_fsm.events[st->event].name;
    write_job(&u->job, j);
    snprintf(u->state, sizeof u->state, "%s", amp_job_fsm.states[u->job.state].name);
    int rc = amp_json_dump(j, &u->json, err);
    c->to = u->state;
    c->json = amp_buf_span(&u->json);
    c->due_ms = u->job.state == AMP_JOB_PARKED ? u->job.until_ms : 0;
    json_decref(j);
    return rc;
}

static int on_take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_job_take *t = u->take;

    if (now->found)
        return amp_fail(err, AMP_NO, "duplicate_msg_id", "the message was taken before");
    json_t *j =
        json_pack("{s:s, s:s, s:s, s:o}", "consumer", t->ref.consumer, "agent", t->agent, "task",
                  t->task, "msg_id", json_stringn(t->ref.msg_id.p, t->ref.msg_id.n));
    if (!j)
        return amp_fail(err, AMP_DATAERR, "bad_msg_id", "message id is not text");
    const struct amp_job_step take = {
        .event = AMP_JOB_EV_TAKE, .emits = t->emits, .n_emits = t->n_emits};
    u->job = (struct amp_job){.state = AMP_JOB_QUEUED, .taken_ms = t->now_ms};
    return finish(u, &take, j, c, err);
}

int amp_job_take(struct amp_store *s, const struct amp_job_take *t, enum amp_store_outcome *outcome,
                 struct amp_error *err)
{
    char id[512];
    struct update u = {.take = t};
    const struct amp_store_input input = {t->ref.consumer, t->ref.msg_id, t->line};

    if (key(&t->ref, id, sizeof id, err))
        return -1;
    amp_buf_init(&u.json, 1 << 16);
    int rc = amp_store_update(s, KIND, amp_span_str(id), &input, on_take, &u, outcome, err);
    amp_buf_release(&u.json);
    return rc;
}

static int on_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_job_step *st = u->step;

    if (!now->found)
        return amp_fail(err, AMP_INTERNAL, "unknown_ref", "no such job");
    json_t *j = amp_json_load(now->json, err);
    if (!j)
        return -1;
    read_job(now, j, &u->job);
    if (st->why)
        json_object_set_new(j, "why", json_string(st->why));
    c->actor = st->ref.consumer;
    return finish(u, st, j, c, err);
}

int amp_job_step(struct amp_store *s, const struct amp_job_step *st, struct amp_job *out,
                 struct amp_error *err)
{
    char id[512];
    struct update u = {.step = st};
    enum amp_store_outcome outcome;

    if (key(&st->ref, id, sizeof id, err))
        return -1;
    amp_buf_init(&u.json, 1 << 16);
    int rc = amp_store_update(s, KIND, amp_span_str(id), NULL, on_step, &u, &outcome, err);
    if (!rc && out) {
        *out = u.job;
        amp_span_copy(st->ref.msg_id, out->msg_id, sizeof out->msg_id);
    }
    amp_buf_release(&u.json);
    return rc;
}

int amp_job_get(struct amp_store *s, const struct amp_job_ref *ref, bool *found,
                struct amp_job *out, struct amp_error *err)
{
    char id[512];
    struct amp_store_rec rec;

    if (key(ref, id, sizeof id, err) || amp_store_get(s, KIND, amp_span_str(id), &rec, err))
        return -1;
    *found = rec.found;
    if (!rec.found)
        return 0;
    json_t *j = amp_json_load(rec.json, err);
    if (!j)
        return -1;
    read_job(&rec, j, out);
    json_decref(j);
    return 0;
}

struct search {
    const char *consumer;
    const char *const *skip;
    int64_t now_ms, wake_ms, open;
    bool found;
    struct amp_job best;
};

static bool skipped(const struct search *q, const char *id)
{
    for (int i = 0; q->skip && q->skip[i]; i++)
        if (!strcmp(q->skip[i], id))
            return true;
    return false;
}

static int consider(void *ctx, struct amp_span id, const struct amp_store_rec *rec)
{
    struct search *q = ctx;
    struct amp_job b;
    json_t *j = amp_json_load(rec->json, NULL);

    if (!j || strcmp(text(j, "consumer"), q->consumer)) {
        json_decref(j);
        return 0;
    }
    read_job(rec, j, &b);
    json_decref(j);
    q->open++;
    if (skipped(q, b.msg_id))
        return 0;
    if (b.state == AMP_JOB_PARKED && b.until_ms > q->now_ms) {
        if (!q->wake_ms || b.until_ms < q->wake_ms)
            q->wake_ms = b.until_ms;
        return 0;
    }
    if (!q->found || b.taken_ms < q->best.taken_ms ||
        (b.taken_ms == q->best.taken_ms && strcmp(b.msg_id, q->best.msg_id) < 0)) {
        q->found = true;
        q->best = b;
    }
    return 0;
}

int amp_job_next(struct amp_store *s, const char *consumer, int64_t now_ms, const char *const *skip,
                 bool *found, struct amp_job *out, int64_t *wake_ms, int64_t *open,
                 struct amp_error *err)
{
    struct search q = {.consumer = consumer, .skip = skip, .now_ms = now_ms};
    static const uint8_t live[] = {AMP_JOB_QUEUED, AMP_JOB_RUNNING, AMP_JOB_PARKED};

    for (size_t i = 0; i < sizeof live; i++)
        if (amp_store_each(s, KIND, amp_job_fsm.states[live[i]].name, consider, &q, err))
            return -1;
    *found = q.found;
    if (q.found)
        *out = q.best;
    *wake_ms = q.wake_ms;
    *open = q.open;
    return 0;
}
