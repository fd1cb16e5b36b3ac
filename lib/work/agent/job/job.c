/* The records of jobs. */
#include "work/agent/job/job.h"

#include <stdio.h>
#include <string.h>

#include <amp/compose.h>

#include "base/codes.h"
#include "message/record/subject.h"

struct stored {
    struct amp_job job;
    const char *consumer, *agent, *why;
};
#define MEMBER(as, key, member) AMP_REC_EVER(as, struct stored, key, member)
static const struct amp_rec_field fields[] = {
    MEMBER(CSTR, "consumer", consumer),
    MEMBER(CSTR, "agent", agent),
    MEMBER(CHARS, "task", job.task),
    MEMBER(CHARS, "msg_id", job.msg_id),
    MEMBER(INT, "attempts", job.attempts),
    MEMBER(INT, "breaks", job.breaks),
    MEMBER(INT, "next", job.next),
    MEMBER(INT, "until", job.until_ms),
    MEMBER(INT, "taken", job.taken_ms),
    MEMBER(CHARS, "start", job.start),
    AMP_REC(CSTR, struct stored, "why", why),
    AMP_REC(BOOL, struct stored, "keeps", job.keeps),
    AMP_REC(INT, struct stored, "frame", job.frame),
};
AMP_REC_TABLE(stored_rec, "a job's record", struct stored, fields);

/* with: a step, or the taking of a message, which is a step, too. */
struct with {
    const struct amp_job_take *take; /* NULL: a step */
    const struct amp_job_step *step;
};

static int job_check(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_job_take *take = ((const struct with *)t->step->with)->take;
    struct stored *k = rec;

    if (!take)
        return t->now->found ? 0 : amp_fail(err, AMP_INTERNAL, unknown_ref, "no such job");
    if (t->now->found || t->now->forgotten)
        return amp_fail(err, AMP_NO, duplicate_msg_id, "the message was already taken");
    if (memchr(take->ref.msg_id.p, '\0', take->ref.msg_id.n) ||
        !amp_span_copy(take->ref.msg_id, k->job.msg_id, sizeof k->job.msg_id))
        return amp_fail(err, AMP_DATAERR, bad_msg_id, "message id is not text");
    if (!amp_span_copy(amp_span_str(take->task), k->job.task, sizeof k->job.task))
        return amp_fail(err, AMP_DATAERR, bad_record, "the name of the task is too long");
    k->consumer = take->ref.consumer;
    k->agent = take->agent;
    k->job.taken_ms = take->now_ms;
    k->job.frame = (int64_t)t->now->next;
    return 0;
}

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    const struct amp_job_step *st = ((const struct with *)t->step->with)->step;

    return st->event == AMP_JOB_EV_BREAK && ((const struct stored *)rec)->job.breaks >= st->most
               ? AMP_JOB_IF_SPENT
               : 0;
}

static int job_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_job_step *st = ((const struct with *)t->step->with)->step;
    struct stored *k = rec;
    struct amp_job *b = &k->job;

    if (st->n_emits > 0 && !(t->effects & AMP_JOB_DO_EMIT))
        return amp_fail(err, AMP_INTERNAL, machine_unsound, "job: no lines are emitted on %s",
                        amp_job_fsm.events[st->event].name);
    b->until_ms = t->effects & AMP_JOB_DO_WAIT ? st->until_ms : 0;
    b->keeps = st->keeps;
    if (st->why)
        k->why = st->why;
    if (t->effects & AMP_JOB_DO_ATTEMPT) {
        b->attempts++;
        if (st->start)
            snprintf(b->start, sizeof b->start, "%s", st->start);
    }
    if (t->effects & AMP_JOB_DO_BREAK)
        b->breaks++;
    if (t->effects & AMP_JOB_DO_NEXT) {
        b->next++;
        b->attempts = b->breaks = 0;
        b->start[0] = 0;
    }
    t->change->due_ms = b->state == AMP_JOB_PARKED ? b->until_ms : 0;
    return 0;
}

static const struct amp_subject jobs = {.kind = AMP_JOB_KIND,
                                        .table = &stored_rec,
                                        .machine = &amp_job_fsm,
                                        .state = AMP_SUBJECT_AT(struct stored, job.state),
                                        .check = job_check,
                                        .facts = facts_of,
                                        .carry = job_carry};

static int record_step(struct amp_store *s, const struct with *with,
                       const struct amp_store_input *input, struct amp_job *out,
                       enum amp_store_outcome *outcome, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_job_step *st = with->step;
    struct stored k;

    if (st->ref.msg_id.n >= AMP_MSG_ID_MAX)
        return amp_fail(err, AMP_DATAERR, bad_msg_id, "a message id of %zu bytes; the limit is %d",
                        st->ref.msg_id.n, AMP_MSG_ID_MAX - 1);
    const struct amp_subject_step step = {
        .key = AMP_KEY(AMP_JOB_KIND, amp_span_str(st->ref.consumer), st->ref.msg_id),
        .event = st->event,
        .with = with,
        .actor = input ? NULL : st->ref.consumer,
        .input = input,
        .emits = st->emits,
        .n_emits = st->n_emits};
    int rc = amp_subject_step(&jobs, s, &step, &mem, out ? &k : NULL, outcome, err);
    if (rc == 0 && out)
        *out = k.job;
    return rc;
}

int amp_job_take(struct amp_store *s, const struct amp_job_take *t, enum amp_store_outcome *outcome,
                 struct amp_error *err)
{
    const struct amp_job_step st = {
        .ref = t->ref, .event = AMP_JOB_EV_TAKE, .emits = t->emits, .n_emits = t->n_emits};
    const struct amp_store_input input = {t->ref.consumer, t->ref.msg_id, t->line};

    return record_step(s, &(struct with){t, &st}, &input, NULL, outcome, err);
}

int amp_job_step(struct amp_store *s, const struct amp_job_step *st, struct amp_job *out,
                 struct amp_error *err)
{
    return record_step(s, &(struct with){NULL, st}, NULL, out, NULL, err);
}

int amp_job_get(struct amp_store *s, struct amp_key key, bool *found, struct amp_job *out,
                struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct stored k;
    int rc = amp_subject_find(&jobs, s, key, &mem, &k, err);

    *found = rc > 0;
    if (*found)
        *out = k.job;
    return rc < 0 ? -1 : 0;
}

int amp_job_find(struct amp_store *s, const struct amp_job_ref *ref, bool *found,
                 struct amp_job *out, struct amp_error *err)
{
    return amp_job_get(s, AMP_KEY(AMP_JOB_KIND, amp_span_str(ref->consumer), ref->msg_id), found,
                       out, err);
}

bool amp_job_ended(const struct amp_job *job)
{
    return amp_job_fsm.terminal & 1u << job->state;
}

struct search {
    const char *consumer;
    amp_job_each_fn fn;
    void *ctx;
};

static int on_job(void *ctx, const void *rec, struct amp_error *err)
{
    const struct search *q = ctx;
    const struct stored *k = rec;

    return strcmp(k->consumer, q->consumer) == 0 ? q->fn(q->ctx, &k->job, err) : 0;
}

int amp_job_each(struct amp_store *s, const char *consumer, amp_job_each_fn fn, void *ctx,
                 struct amp_error *err)
{
    struct search q = {consumer, fn, ctx};

    for (uint8_t state = 0; state < amp_job_fsm.n_states; state++)
        if (!(amp_job_fsm.terminal & 1u << state) &&
            amp_subject_each(&jobs, s, amp_job_fsm.states[state].name, on_job, &q, err) < 0)
            return -1;
    return 0;
}

static int on_any(void *ctx, const struct amp_job *job, struct amp_error *err)
{
    (void)job, (void)err;
    *(bool *)ctx = true;
    return 1;
}

int amp_job_any(struct amp_store *s, const char *consumer, bool *any, struct amp_error *err)
{
    *any = false;
    return amp_job_each(s, consumer, on_any, any, err);
}
