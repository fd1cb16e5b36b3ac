/* The records of jobs in the queue. */
#include "work/item/queue.h"

#include <string.h>

#include "base/codes.h"

#define CONSUMER "queue" /* of submitted messages, to know one that comes again */

#define EVER(as, key, member) AMP_REC_EVER(as, struct amp_queue_job, key, member)
#define SOME(as, key, member) AMP_REC(as, struct amp_queue_job, key, member)
static const struct amp_rec_field job_fields[] = {
    EVER(TEXT, "id", id),
    EVER(INT, "seq", seq),
    EVER(TEXT, "type", type),
    EVER(TEXT, "protocol", protocol),
    SOME(TEXT, "message", message),
    SOME(TEXT, "from", from),
    SOME(TEXT, "by", by),
    SOME(TEXT, "task", task),
    EVER(INT, "priority", priority),
    SOME(TEXT, "scope", scope),
    EVER(TEXT, "digest", digest),
    EVER(TIME, "submitted", submitted_ms),
    SOME(TIME, "claimed", claimed_ms),
    SOME(TIME, "started", started_ms),
    SOME(TIME, "ended", ended_ms),
    SOME(TIME, "deadline", deadline_ms),
    SOME(TIME, "until", until_ms),
    SOME(TEXT, "worker", worker),
    SOME(INT, "attempts", attempts),
    SOME(INT, "losses", losses),
    EVER(INT, "runs", runs),
    SOME(TEXT, "reason", reason),
    SOME(TEXT, "code", code),
    SOME(TEXT, "asked_by", asked_by),
    SOME(TIME, "asked", asked_ms),
    SOME(TEXT, "cancelled_by", cancelled_by),
    SOME(TEXT, "worktree", worktree),
    SOME(TEXT, "session", session),
    SOME(TEXT, "data", data),
    SOME(INT, "tokens_in", tokens_in),
    SOME(INT, "tokens_out", tokens_out),
    SOME(INT, "cost_micros", micros),
    SOME(TEXT, AMP_CODE(follows), follows),
    SOME(TEXT, "on_failed", on_failed),
    SOME(TEXT, "owner", owner),
    SOME(INT, "tries", tries),
    SOME(INT, "breaks", breaks),
    SOME(INT, "next", next),
    SOME(TEXT, "start", start),
    SOME(BOOL, "trying", trying),
    SOME(BOOL, "keeps", keeps),
    SOME(BOOL, "read", read),
};
AMP_REC_TABLE(job_rec, "a job's record", struct amp_queue_job, job_fields);

bool amp_queue_ended(uint8_t state)
{
    return amp_queue_fsm.terminal >> state & 1;
}

void amp_item_of(const struct amp_queue_job *job, struct amp_item *out)
{
    *out = (struct amp_item){.state = job->state,
                             .attempts = job->tries,
                             .breaks = job->breaks,
                             .next = job->next,
                             .until_ms = job->until_ms,
                             .submitted_ms = job->submitted_ms,
                             .seq = job->seq,
                             .trying = job->trying,
                             .keeps = job->keeps,
                             .read = job->read};
    amp_span_copy(job->id, out->id, sizeof out->id);
    amp_span_copy(job->message, out->msg_id, sizeof out->msg_id);
    amp_span_copy(job->task, out->task, sizeof out->task);
    amp_span_copy(job->start, out->start, sizeof out->start);
}

bool amp_queue_held(uint8_t state)
{
    return state == AMP_QUEUE_CLAIMED || state == AMP_QUEUE_RUNNING ||
           state == AMP_QUEUE_PREEMPTING;
}

int amp_queue_identity(struct amp_span type, struct amp_span scope, struct amp_span digest,
                       struct amp_span salt, char out[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    const struct amp_span parts[] = {AMP_SPAN("amp-job-v1"), type, scope, digest, salt};
    char text[AMP_KEY_NAME_MAX];

    if (amp_key_digest(parts, sizeof parts / sizeof *parts, text, err) < 0)
        return -1;
    const char *hex = strrchr(text, ':');
    amp_span_copy(amp_span_str(hex ? hex + 1 : text), out, AMP_QUEUE_ID_MAX);
    return 0;
}

/* ---- steps ---- */

/* These events are of the worker that has the claim. */
static bool is_workers(uint8_t event)
{
    switch (event) {
    case AMP_QUEUE_EV_START:
    case AMP_QUEUE_EV_RELEASE:
    case AMP_QUEUE_EV_YIELD:
    case AMP_QUEUE_EV_FORCE:
    case AMP_QUEUE_EV_PARK:
    case AMP_QUEUE_EV_DONE:
    case AMP_QUEUE_EV_FAIL:
    case AMP_QUEUE_EV_LOSE:
    case AMP_QUEUE_EV_READ:
    case AMP_QUEUE_EV_SAY:
    case AMP_QUEUE_EV_BREAK:
    case AMP_QUEUE_EV_NEXT:
    case AMP_QUEUE_EV_HALT:
        return true;
    default:
        return false;
    }
}

static int claim_check(const struct amp_queue_step *st, const struct amp_queue_job *job,
                       struct amp_error *err)
{
    if (!is_workers(st->event) || (!st->worker && !amp_queue_held(job->state)))
        return 0;
    if (st->worker && amp_queue_held(job->state) && amp_span_is(job->worker, st->worker) &&
        (!st->attempt || (st->attempt == job->attempts && st->seq == job->seq)))
        return 0;
    if (st->worker && job->owner.n && amp_span_is(job->owner, st->worker))
        return 0;
    return amp_fail(err, AMP_NO, claim_lost, "job %.*s: %s does not have it", AMP_CLIP(job->id, 64),
                    st->worker ? st->worker : "the caller");
}

/* A member that a step changes: an empty text leaves it, "-" empties it. */
static void member_set(struct amp_span *member, struct amp_span value)
{
    if (value.n)
        *member = amp_span_is(value, "-") ? AMP_SPAN("") : value;
}

static struct amp_span text_cut(const char *text)
{
    struct amp_span t = amp_span_str(text);

    if (t.n <= AMP_QUEUE_TEXT_MAX)
        return t;
    t.n = AMP_QUEUE_TEXT_MAX;
    while (t.n && ((unsigned char)t.p[t.n] & 0xc0) == 0x80)
        t.n--;
    return t;
}

static void attempt_apply(const struct amp_queue_step *st, const struct amp_subject_turn *r,
                          struct amp_queue_job *job)
{
    if (r->effects & AMP_QUEUE_DO_READ)
        job->read = true;
    if (r->effects & AMP_QUEUE_DO_TRY) {
        job->tries++;
        job->trying = true;
        job->keeps = false;
        if (st->start)
            job->start = amp_span_str(st->start);
    }
    if (r->effects & AMP_QUEUE_DO_REST) {
        job->trying = false;
        job->keeps = st->keeps;
    }
    if (r->effects & AMP_QUEUE_DO_BREAK)
        job->breaks++;
    if (r->effects & AMP_QUEUE_DO_NEXT) {
        job->next++;
        job->tries = job->breaks = 0;
        job->start = AMP_SPAN("");
    }
}

static void job_apply(const struct amp_queue_step *st, const struct amp_subject_turn *r,
                      struct amp_queue_job *job)
{
    if (r->effects & AMP_QUEUE_DO_TAKE) {
        job->worker = amp_span_str(st->worker);
        job->claimed_ms = st->now_ms;
        job->attempts++;
        job->reason = job->code = job->asked_by = AMP_SPAN("");
        job->asked_ms = job->started_ms = 0;
    }
    if (r->effects & AMP_QUEUE_DO_START)
        job->started_ms = st->now_ms;
    if (r->effects & AMP_QUEUE_DO_FREE)
        job->worker = AMP_SPAN("");
    if (r->effects & AMP_QUEUE_DO_LOSS)
        job->losses++;
    if (r->effects & AMP_QUEUE_DO_ASK) {
        job->asked_by = amp_span_str(st->by);
        job->asked_ms = st->now_ms;
    }
    if (r->effects & AMP_QUEUE_DO_CANCEL)
        job->cancelled_by = amp_span_str(st->by);
    if (r->effects & AMP_QUEUE_DO_RANK)
        job->priority = st->priority;
    if (r->effects & AMP_QUEUE_DO_END)
        job->ended_ms = st->now_ms;
    attempt_apply(st, r, job);
    job->until_ms = r->effects & AMP_QUEUE_DO_WAIT ? st->until_ms : 0;
    if (st->why)
        job->reason = text_cut(st->why);
    if (st->code || r->code)
        job->code = amp_span_str(st->code ? st->code : r->code);
    member_set(&job->worktree, st->worktree);
    member_set(&job->session, st->session);
    member_set(&job->data, st->data);
    job->tokens_in += st->tokens_in;
    job->tokens_out += st->tokens_out;
    job->micros += st->micros;
}

/* The time at which the record has work for the sweep; 0: never. */
static int64_t due_of(const struct amp_queue_step *st, const struct amp_queue_job *job)
{
    if (job->owner.n)
        return 0; /* its worker wakes it, and it is kept as messages are */
    if (amp_queue_ended(job->state))
        return job->ended_ms + (st->keep_ms > 0 ? st->keep_ms : AMP_QUEUE_KEEP_MS);
    if (amp_queue_held(job->state))
        return 0;
    if (job->state == AMP_QUEUE_PARKED && job->until_ms &&
        (!job->deadline_ms || job->until_ms < job->deadline_ms))
        return job->until_ms;
    return job->deadline_ms;
}

static int refuse_duplicate(struct amp_span id, uint8_t state, struct amp_error *err)
{
    return amp_fail(err, AMP_NO, duplicate_job, "an identical job, %.*s, is %s", AMP_CLIP(id, 64),
                    amp_queue_fsm.states[state].name);
}

/* Tells whether an identical job may take the place of this one. */
static bool may_enter(const struct amp_queue_job *old, bool again)
{
    return amp_queue_ended(old->state) && (old->state != AMP_QUEUE_DONE || again);
}

static int submit_check(const struct amp_queue_submit *q, uint8_t *was, struct amp_queue_job *job,
                        const struct amp_store_rec *now, struct amp_error *err)
{
    int64_t runs = 1;

    if (q->job->owner.n && (now->found || now->forgotten))
        return amp_fail(err, AMP_NO, duplicate_msg_id, "the message was already taken");
    if (now->found) {
        *was = job->state;
        if (!may_enter(job, q->again))
            return refuse_duplicate(q->job->id, job->state, err);
        runs = job->runs + 1;
    }
    *job = *q->job;
    job->runs = runs;
    return 0;
}

/* with: a step, or a submission. */
struct with {
    const struct amp_queue_step *step;
    const struct amp_queue_submit *submit; /* NULL: a step */
    uint8_t *was;                          /* the state of an identical job */
};

static int job_check(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct with *with = t->step->with;
    struct amp_queue_job *job = rec;

    if (with->submit)
        return submit_check(with->submit, with->was, job, t->now, err);
    return t->now->found
               ? claim_check(with->step, job, err)
               : amp_fail(err, AMP_NO, unknown_job, "no job %.*s", AMP_CLIP(with->step->id, 64));
}

static uint32_t facts_of(const void *rec, const struct amp_subject_turn *t)
{
    const struct amp_queue_submit *q = ((const struct with *)t->step->with)->submit;
    const struct amp_queue_job *job = rec;

    if (q)
        return q->again ? AMP_QUEUE_IF_AGAIN : 0;
    return (job->cancelled_by.n ? AMP_QUEUE_IF_CANCELLED : 0u) |
           (job->owner.n ? AMP_QUEUE_IF_OWN : 0u);
}

static int job_carry(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct with *with = t->step->with;
    struct amp_queue_job *job = rec;

    (void)err;
    if (!with->submit) {
        job_apply(with->step, t, job);
    } else if (t->effects & AMP_QUEUE_DO_ENTER) {
        job->seq = (int64_t)t->now->next;
        job->submitted_ms = with->submit->now_ms;
    }
    t->change->due_ms = due_of(with->step, job);
    return 0;
}

const struct amp_subject amp_queue_subject = {.kind = AMP_QUEUE_KIND,
                                              .table = &job_rec,
                                              .machine = &amp_queue_fsm,
                                              .state = AMP_SUBJECT_AT(struct amp_queue_job, state),
                                              .check = job_check,
                                              .facts = facts_of,
                                              .carry = job_carry};

static struct amp_key key_of(struct amp_span owner, struct amp_span id)
{
    return owner.n ? AMP_KEY(AMP_QUEUE_KIND, owner, id) : AMP_KEY(AMP_QUEUE_KIND, id);
}

int amp_queue_read(struct amp_store *s, struct amp_span id, struct amp_buf *mem,
                   struct amp_queue_job *out, struct amp_error *err)
{
    return amp_subject_find(&amp_queue_subject, s, key_of(AMP_SPAN(""), id), mem, out, err);
}

struct search {
    amp_subject_each_fn fn;
    void *ctx;
};

static int on_each(void *ctx, const void *rec, struct amp_error *err)
{
    const struct search *q = ctx;
    return ((const struct amp_queue_job *)rec)->owner.n ? 0 : q->fn(q->ctx, rec, err);
}

int amp_queue_each(struct amp_store *s, const char *state, amp_subject_each_fn fn, void *ctx,
                   struct amp_error *err)
{
    struct search q = {fn, ctx};
    return amp_subject_each(&amp_queue_subject, s, state, on_each, &q, err);
}

int amp_queue_step(struct amp_store *s, const struct amp_queue_step *st, struct amp_buf *mem,
                   struct amp_queue_job *out, struct amp_error *err)
{
    const struct with with = {.step = st};
    const struct amp_subject_step step = {.key = key_of(st->owner, st->id),
                                          .event = st->event,
                                          .with = &with,
                                          .actor = st->actor,
                                          .emits = st->emits,
                                          .n_emits = st->n_emits};

    return amp_subject_step(&amp_queue_subject, s, &step, mem, out, NULL, err);
}

/* ---- submissions ---- */

static struct amp_store_input input_of(const struct amp_queue_submit *q)
{
    return (struct amp_store_input){q->consumer ? q->consumer : CONSUMER, q->job->message, q->line};
}

int amp_queue_check(struct amp_store *s, const struct amp_queue_submit *q, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    const struct amp_store_input in = input_of(q);
    struct amp_queue_job old;

    if (in.id.n) {
        int seen = amp_store_seen(s, &in, err);
        if (seen == AMP_STORE_SEEN_OTHER)
            return amp_fail(err, AMP_NO, duplicate_msg_id,
                            "another message with the id %.*s was submitted before",
                            AMP_CLIP(in.id, 200));
        if (seen != AMP_STORE_NOT_SEEN)
            return seen == AMP_STORE_SEEN ? 1 : -1;
    }
    int found = amp_queue_read(s, q->job->id, &mem, &old, err);
    if (found <= 0)
        return found;
    return may_enter(&old, q->again) ? 0 : refuse_duplicate(q->job->id, old.state, err);
}

int amp_queue_submit(struct amp_store *s, const struct amp_queue_submit *q, int64_t *seq,
                     uint8_t *now, enum amp_store_outcome *outcome, struct amp_error *err)
{
    const struct amp_queue_step st = {
        .event = AMP_QUEUE_EV_SUBMIT, .actor = q->actor, .now_ms = q->now_ms};
    const struct amp_store_input in = input_of(q);
    uint8_t was = AMP_QUEUE_QUEUED;
    const struct with with = {&st, q, now ? now : &was};
    const struct amp_queue_job *job = q->job;
    const struct amp_subject_step step = {
        .key = key_of(job->owner, job->owner.n ? job->message : job->id),
        .event = st.event,
        .with = &with,
        .actor = st.actor,
        .input = in.id.n ? &in : NULL,
        .emits = q->emits,
        .n_emits = q->n_emits};
    int rc = amp_subject_step(&amp_queue_subject, s, &step, NULL, NULL, outcome, err);

    *seq = rc == 0 ? (int64_t)amp_store_last_frame(s) : 0;
    return rc;
}

/* ---- removal ---- */

static int record_drop(void *ctx, const struct amp_store_rec *now, struct amp_store_change *c,
                       struct amp_error *err)
{
    const char *actor = ctx;
    int state = now->found ? amp_fsm_state(&amp_queue_fsm, now->state) : -1;

    (void)err;
    if (!now->found || (state >= 0 && !amp_queue_ended((uint8_t)state)))
        return 1;
    c->event = "forget";
    c->to = "REMOVED";
    c->json = AMP_SPAN("{}");
    c->actor = actor;
    c->remove = true;
    return 0;
}

int amp_queue_forget(struct amp_store *s, struct amp_span id, const char *actor,
                     struct amp_error *err)
{
    void *ctx = (void *)(uintptr_t)actor;

    return amp_store_update(s, AMP_KEY(AMP_QUEUE_KIND, id), NULL, record_drop, ctx, NULL, err);
}
