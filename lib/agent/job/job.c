/* The records of jobs. */
#include <stdio.h>
#include <string.h>

#include <amp/compose.h>

#include "agent/job/job.h"
#include "base/codes.h"
#include "json/record.h"

struct stored {
    const char *consumer, *agent, *task, *msg_id;
    int64_t attempts, breaks, next, until_ms, taken_ms, frame;
    const char *start, *why;
    bool keeps;
};
#define MEMBER(as, key, member) AMP_REC_EVER(as, struct stored, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CSTR, "consumer", consumer),
    MEMBER(CSTR, "agent", agent),
    MEMBER(CSTR, "task", task),
    MEMBER(CSTR, "msg_id", msg_id),
    MEMBER(INT, "attempts", attempts),
    MEMBER(INT, "breaks", breaks),
    MEMBER(INT, "next", next),
    MEMBER(INT, "until", until_ms),
    MEMBER(INT, "taken", taken_ms),
    MEMBER(CSTR, "start", start),
    AMP_REC(CSTR, struct stored, "why", why),
    AMP_REC(BOOL, struct stored, "keeps", keeps),
    AMP_REC(INT, struct stored, "frame", frame),
};
AMP_REC_TABLE(stored_rec, "a job's record", struct stored, fields);

struct update {
    const struct amp_job_take *take; /* or NULL: */
    const struct amp_job_step *step;
    struct amp_job job;
    struct amp_buf *mem, *json;
};

/* The texts of *raw are in mem, those of *out are not. */
static int job_read(const struct amp_store_rec *rec, struct amp_buf *mem, struct stored *raw,
                    struct amp_job *out, struct amp_error *err)
{
    int state = amp_fsm_state(&amp_job_fsm, rec->state);
    if (amp_rec_parse(&stored_rec, rec->json, mem, raw, err) < 0)
        return -1;
    *out = (struct amp_job){
        .state = state < 0 ? AMP_JOB_FAILED : (uint8_t)state,
        .attempts = raw->attempts,
        .breaks = raw->breaks,
        .next = raw->next,
        .until_ms = raw->until_ms,
        .taken_ms = raw->taken_ms,
        .frame = raw->frame,
        .keeps = raw->keeps,
    };
    if (amp_span_copy(amp_span_str(raw->msg_id), out->msg_id, sizeof out->msg_id) &&
        amp_span_copy(amp_span_str(raw->task), out->task, sizeof out->task) &&
        amp_span_copy(amp_span_str(raw->start), out->start, sizeof out->start))
        return 0;
    return amp_fail(err, AMP_DATAERR, bad_record,
                    "a job's record has no usable msg_id, task or start");
}

static int update_run(struct update *u, struct amp_store *s, const struct amp_job_ref *ref,
                      const struct amp_store_input *input, amp_store_fn fn,
                      enum amp_store_outcome *outcome, struct amp_error *err)
{
    if (ref->msg_id.n >= AMP_MSG_ID_MAX)
        return amp_fail(err, AMP_DATAERR, bad_msg_id, "a message id of %zu bytes; the limit is %d",
                        ref->msg_id.n, AMP_MSG_ID_MAX - 1);
    AMP_BUF struct amp_buf mem = {0}, json = {0};
    amp_buf_init(&mem, AMP_REC_MAX);
    amp_buf_init(&json, AMP_REC_MAX);
    u->mem = &mem;
    u->json = &json;
    return amp_store_update(s, AMP_KEY(AMP_JOB_KIND, amp_span_str(ref->consumer), ref->msg_id),
                            input, fn, u, outcome, err);
}

static int job_carry(struct amp_job *b, const struct amp_job_step *st,
                     const struct amp_fsm_result *r, struct amp_store_change *c,
                     struct amp_error *err)
{
    b->state = r->to;
    b->until_ms = r->effects & AMP_JOB_DO_WAIT ? st->until_ms : 0;
    b->keeps = st->keeps;
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
        return amp_fail(err, AMP_INTERNAL, machine_unsound, "job: no lines are emitted on %s",
                        amp_job_fsm.events[st->event].name);
    c->emits = st->emits;
    c->n_emits = st->n_emits;
    return 0;
}

/* Steps u->job and writes it to the record, whose other members are in raw. */
static int job_advance(struct update *u, const struct amp_job_step *st, struct stored *raw,
                       struct amp_store_change *c, struct amp_error *err)
{
    struct amp_job *b = &u->job;
    struct amp_fsm_result r;
    uint32_t facts = st->event == AMP_JOB_EV_BREAK && b->breaks >= st->most ? AMP_JOB_IF_SPENT : 0;

    if (amp_fsm_step(&amp_job_fsm, b->state, st->event, facts, &r, err) ||
        job_carry(b, st, &r, c, err))
        return -1;
    raw->attempts = b->attempts;
    raw->breaks = b->breaks;
    raw->next = b->next;
    raw->until_ms = b->until_ms;
    raw->taken_ms = b->taken_ms;
    raw->frame = b->frame;
    raw->start = b->start;
    raw->keeps = b->keeps;
    int rc = amp_rec_write(&stored_rec, raw, u->json, err);
    c->event = amp_job_fsm.events[st->event].name;
    c->to = amp_job_fsm.states[b->state].name;
    c->json = amp_buf_span(u->json);
    c->due_ms = b->state == AMP_JOB_PARKED ? b->until_ms : 0;
    return rc;
}

static int on_take(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_job_take *t = u->take;

    if (now->found || now->forgotten)
        return amp_fail(err, AMP_NO, duplicate_msg_id, "the message was already taken");
    char msg_id[AMP_MSG_ID_MAX];
    if (memchr(t->ref.msg_id.p, '\0', t->ref.msg_id.n) ||
        !amp_span_copy(t->ref.msg_id, msg_id, sizeof msg_id))
        return amp_fail(err, AMP_DATAERR, bad_msg_id, "message id is not text");
    struct stored raw = {
        .consumer = t->ref.consumer, .agent = t->agent, .task = t->task, .msg_id = msg_id};
    const struct amp_job_step take = {
        .event = AMP_JOB_EV_TAKE, .emits = t->emits, .n_emits = t->n_emits};
    u->job = (struct amp_job){
        .state = AMP_JOB_QUEUED, .taken_ms = t->now_ms, .frame = (int64_t)now->next};
    return job_advance(u, &take, &raw, c, err);
}

int amp_job_take(struct amp_store *s, const struct amp_job_take *t, enum amp_store_outcome *outcome,
                 struct amp_error *err)
{
    struct update u = {.take = t};
    const struct amp_store_input input = {t->ref.consumer, t->ref.msg_id, t->line};

    return update_run(&u, s, &t->ref, &input, on_take, outcome, err);
}

static int on_step(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                   struct amp_error *err)
{
    struct update *u = ctx;
    const struct amp_job_step *st = u->step;

    if (!now->found)
        return amp_fail(err, AMP_INTERNAL, unknown_ref, "no such job");
    struct stored raw;
    if (job_read(now, u->mem, &raw, &u->job, err) < 0)
        return -1;
    if (st->why)
        raw.why = st->why;
    c->actor = st->ref.consumer;
    return job_advance(u, st, &raw, c, err);
}

int amp_job_step(struct amp_store *s, const struct amp_job_step *st, struct amp_job *out,
                 struct amp_error *err)
{
    struct update u = {.step = st};
    enum amp_store_outcome outcome;

    int rc = update_run(&u, s, &st->ref, NULL, on_step, &outcome, err);
    if (!rc && out)
        *out = u.job;
    return rc;
}

int amp_job_find(struct amp_store *s, const struct amp_job_ref *ref, bool *found,
                 struct amp_job *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_store_rec rec;
    struct stored raw;

    amp_buf_init(&mem, AMP_REC_MAX);
    if (amp_store_get(s, AMP_KEY(AMP_JOB_KIND, amp_span_str(ref->consumer), ref->msg_id), &rec,
                      err) < 0)
        return -1;
    *found = rec.found;
    return rec.found ? job_read(&rec, &mem, &raw, out, err) : 0;
}

bool amp_job_ended(const struct amp_job *job)
{
    return amp_job_fsm.terminal & 1u << job->state;
}

int amp_job_read(const struct amp_store_rec *rec, struct amp_job *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct stored raw;

    return job_read(rec, &mem, &raw, out, err);
}

struct search {
    const char *consumer;
    bool found;
};

static int on_job(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct search *q = ctx;
    struct amp_job job;
    struct stored raw;

    (void)id;
    if (job_read(rec, &mem, &raw, &job, err) < 0)
        return -1;
    q->found = strcmp(raw.consumer, q->consumer) == 0;
    return q->found;
}

int amp_job_any(struct amp_store *s, const char *consumer, bool *any, struct amp_error *err)
{
    struct search q = {.consumer = consumer};

    for (uint8_t state = 0; state < amp_job_fsm.n_states && !q.found; state++)
        if (!(amp_job_fsm.terminal & 1u << state) &&
            amp_store_each(s, AMP_JOB_KIND, amp_job_fsm.states[state].name, on_job, &q, err) < 0)
            return -1;
    *any = q.found;
    return 0;
}
