/* A worker's loop: takes messages, chooses the next job, and ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/sender/identity.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/work.h"
#include "people/question/record.h"
#include "work/agent/work.h"
#include "work/attempt/io.h"
#include "work/attempt/left/unfinished.h"
#include "work/attempt/walls/confined.h"
#include "work/item/own.h"
#include "work/task/suspend.h"
#include "work/task/task.h"

#define LINE_MAX_BYTES (32u << 20)

/* An acknowledgement or a nack of a sent message. */
static int ack_take(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    char by[64];

    amp_span_copy(v->from, by, sizeof by);
    if (v->kind == AMP_KIND_NACK)
        w->opt->note("%.*s was refused: %.*s", (int)v->body.ack.ref.n, v->body.ack.ref.p,
                     (int)v->body.ack.code.n, v->body.ack.code.p);
    return amp_settle_known(w->store, v->body.ack.ref, v->body.ack.stage, by, v->body.ack.code,
                            amp_now_ms(), err);
}

/* Other protocols have no role of their own for an acknowledgement. */
static bool is_read_by_role(const struct amp_worker *w, const struct amp_view *v)
{
    return amp_work_of(v->protocol)->keeps_tasks || !w->role->taken;
}

static int ack_compose(struct amp_worker *w, const struct amp_view *v, struct amp_buf *ack,
                       struct amp_error *err)
{
    return is_read_by_role(w, v)
               ? amp_compose_ack(v, AMP_STAGE_READ, w->opt->role, NULL, amp_now_ms(), ack, err)
               : w->role->taken(w, v, ack, err);
}

static int read_settle(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    if (!is_read_by_role(w, v))
        return 0; /* the message that accepts the work settles it */
    /* supervised: the agent's record shows whether it is alive, so the ledger sets no time limit.
     */
    const struct amp_message_answer read = {
        .stage = AMP_STAGE_READ, .by = w->opt->agent, .supervised = true};
    return amp_settle_answer(w->store, v->id, &read, amp_now_ms(), NULL, err);
}

int amp_worker_read(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf ack = {.max = 1 << 16};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_READ};

    if (job->read)
        return 0;
    if (ack_compose(w, v, &ack, err) < 0)
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&ack)}, 1};
    bool says = is_read_by_role(w, v) ? v->needs_ack : ack.len > 0;
    return amp_worker_step(w, job, &step, says ? &lines : NULL, err) < 0 ? -1
                                                                         : read_settle(w, v, err);
}

static int message_take(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf ack = {0}, id = {0};
    enum amp_store_outcome outcome;
    bool keeps = is_read_by_role(w, v);

    amp_buf_init(&ack, 1 << 16);
    amp_buf_init(&id, 1024);
    if (amp_message_record(w->store, v, amp_now_ms(), &outcome, err) ||
        ack_compose(w, v, &ack, err) < 0 ||
        amp_buf_fmt(&id, err, "ack/%.*s", (int)v->id.n, v->id.p) < 0)
        return -1;
    const struct amp_store_emit emit = {
        amp_buf_span(&id), {ack.data, ack.len - (ack.len > 0)}, false};
    const struct amp_own_take t = {
        .owner = w->opt->consumer,
        .type = w->opt->role,
        .protocol = amp_protocol_name(v->protocol),
        .msg_id = v->id,
        .from = v->from,
        .task = v->task,
        .line = v->message,
        .emits = &emit,
        .n_emits = keeps ? v->needs_ack : ack.len > 0,
        .now_ms = amp_now_ms(),
    };
    if (amp_own_take(w->store, &t, &outcome, err))
        return -1;
    w->io->dirty = true;
    if (outcome == AMP_STORE_REDELIVERED && keeps && v->needs_ack &&
        amp_worker_send(w, amp_buf_span(&ack), err))
        return -1;
    return read_settle(w, v, err);
}

/* Submits a message, and acknowledges that the queue has it; the agent that gets it reads it. */
static int message_submit(struct amp_worker *w, struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf ack = {.max = 1 << 16};

    if (w->opt->submit(w->opt->wait_ctx, v, err) < 0)
        return -1;
    w->io->dirty = true; /* the state is synced before a line is written */
    if (!v->needs_ack || !amp_work_of(v->protocol)->keeps_tasks)
        return 0;
    return amp_compose_ack(v, AMP_STAGE_RECEIVED, w->opt->role, NULL, amp_now_ms(), &ack, err) < 0
               ? -1
               : amp_worker_send(w, amp_buf_span(&ack), err);
}

/* A nack names the refused message. If the state knows a message with this id, the nack could be
 * taken for an answer to that one. */
static int sender_nack(struct amp_worker *w, const struct amp_view *v, const struct amp_error *why,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0}, nack = {0};
    struct amp_message_rec rec;

    if (!amp_work_of(v->protocol)->keeps_tasks || !v->id.n || !v->task.n ||
        v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
        return 0;
    amp_buf_init(&mem, 256 << 20);
    amp_buf_init(&nack, 1 << 18);
    if (amp_message_find(w->store, v->id, &mem, &rec, err) < 0)
        return -1;
    if (rec.found)
        return 0;
    return amp_compose_nack(v, AMP_STAGE_REJECTED, w->opt->role, why->code, why->what, "", false,
                            amp_now_ms(), &nack, err) < 0
               ? -1
               : amp_worker_send(w, amp_buf_span(&nack), err);
}

/* Whether the message counts as said by its sender, and the sender may say it. 0: it was refused,
 * or is invalid and gets no answer. */
static int message_hear(struct amp_worker *w, const struct amp_view *v, bool ours, const char *bad,
                        struct amp_error *err)
{
    /* Other protocols have no coordinator: any sender that may speak sends work. */
    const char *asker = ours && amp_work_of(v->protocol)->keeps_tasks ? w->role->asked_by : NULL;
    struct amp_said said;
    struct amp_error why;
    int rc = amp_identities_who(w->opt->ids, v, w->opt->trusted, &said, &why, err);

    if (rc > 0 && asker && !amp_said_by(w->opt->ids, &said, asker))
        rc = amp_said_refuse(&said, &why, "only the coordinator sends work");
    if (rc > 0 && !ours)
        rc = amp_said_by_addressee(w->store, v, &said, &why, err);
    if (rc)
        return rc;
    w->status = amp_status_worse(w->status, AMP_NO);
    if (bad)
        return 0;
    return amp_intake_refuse(&w->intake, v, &why, err) < 0 ? -1 : sender_nack(w, v, &why, err);
}

/* Refuses work with the name of other work, whose record and outcome stay as they are. */
static int repetition_refuse(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = 1 << 18};
    const struct amp_error why = *err;
    const struct amp_answer a = {.stage = AMP_STAGE_REJECTED,
                                 .by = w->opt->agent,
                                 .code = why.code,
                                 .rule = why.code,
                                 .note = why.what,
                                 .now_ms = amp_now_ms()};

    return amp_intake_refuse(&w->intake, v, &why, err) < 0 ||
                   amp_answer_line(v, &a, &line, err) < 0 ||
                   amp_worker_send(w, amp_buf_span(&line), err) < 0
               ? -1
               : 0;
}

/* bad: the error of an invalid line, or NULL; the view of such a line may be incomplete. */
static int message_handle(struct amp_worker *w, struct amp_view *v, const char *bad,
                          struct amp_error *err)
{
    int ours = w->role->ours ? w->role->ours(w, v, err)
                             : v->kind == w->role->takes && v->id.n && v->task.n &&
                                   amp_intake_is_to(v, w->opt->role);
    if (ours < 0)
        return -1;

    if (ours && !bad) {
        int held = amp_intake_holds(&w->intake, v, err);
        if (held < 0)
            return -1;
        bad = held ? NULL : w->intake.bad_code;
    }
    if (bad)
        w->status = amp_status_worse(w->status, AMP_NO);
    /* An id with a NUL would be cut, and the answer would name another message. */
    if (bad && v->id.n && memchr(v->id.p, '\0', v->id.n))
        return 0;
    if (ours || v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK) {
        int heard = message_hear(w, v, ours, bad, err);
        if (heard <= 0)
            return heard;
    }
    if (!ours) {
        if (bad)
            return 0;
        if (v->kind == AMP_KIND_NACK && w->role->nacked) {
            int own = w->role->nacked(w, v, err);
            if (own)
                return own < 0 ? -1 : 0;
        }
        if (v->kind == AMP_KIND_ACK || v->kind == AMP_KIND_NACK)
            return ack_take(w, v, err);
        if (w->role->seen && w->role->seen(w, v, err) < 0)
            return -1;
        return amp_worker_pass(w, v->line, err);
    }
    int rc = w->role->admit(w, v, bad, err);
    if (rc || bad)
        return rc < 0 ? -1 : 0;
    if ((w->opt->submit ? message_submit(w, v, err) : message_take(w, v, err)) == 0)
        return 0;
    if (err->status != AMP_NO)
        return -1;
    char code[48];
    snprintf(code, sizeof code, "%s", err->code);
    w->status = amp_status_worse(w->status, AMP_NO);
    if (w->role->in_sessions)
        return repetition_refuse(w, v, err);
    return amp_worker_refuse(w, v, code, err->what, false, NULL, err) < 0 ? -1 : 0;
}

/* The answer of a protocol that falls back, such as the work for a version 1 agent. */
static int invalid_answer(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};

    amp_buf_init(&line, LINE_MAX_BYTES);
    int rc = amp_intake_answer(&w->intake, v, amp_now_ms(), &line, err);
    return rc <= 0 ? rc : amp_worker_send(w, amp_buf_span(&line), err);
}

int amp_worker_take_lines(struct amp_worker *w, struct amp_error *err)
{
    char name[AMP_MSG_ID_MAX];
    struct amp_view v;
    int rc;

    /* Not in one batch, because a refusal may suspend a task, which syncs. */
    while ((rc = amp_intake_next(&w->intake, &v, err)) > 0) {
        if (w->role->in_sessions)
            amp_message_name(&v, name);
        if ((rc == AMP_INTAKE_BAD && invalid_answer(w, &v, err) < 0) ||
            message_handle(w, &v, rc == AMP_INTAKE_BAD ? w->intake.bad_code : NULL, err))
            return -1;
    }
    return rc;
}

int amp_worker_find(struct amp_worker *w, struct amp_reader *reader, struct amp_span id,
                    struct amp_buf *keep, struct amp_view *view, struct amp_error *err)
{
    struct amp_message_rec rec;
    const struct amp_check_options opt = {0};

    if (amp_message_find(w->store, id, keep, &rec, err) < 0)
        return -1;
    if (!rec.found)
        return amp_fail(err, AMP_NO, unknown_ref, "message %.*s is not in the state directory",
                        (int)id.n, id.p);
    if (amp_reader_line(reader, rec.line, &opt, view, NULL, NULL, err) < 0)
        return -1;
    if (!view->id.n && amp_work_of(view->protocol)->in_sessions)
        view->id = id;
    return 0;
}

/* The worker's jobs; held are those that wait, such as for the end of a suspension. */
struct queue {
    struct amp_own_order *order;
    int64_t wake_ms;
    uint64_t writes; /* of the log, that the held jobs were tried after */
};

static void queue_release(struct queue *q)
{
    amp_own_order_close(q->order);
}

static int queue_open(struct amp_worker *w, struct queue *q, struct amp_error *err)
{
    const struct amp_own_order_options opt = {
        .consumer = w->opt->consumer, .rank = w->role->rank, .follows = w->role->follows, .ctx = w};
    return amp_own_order_open(&q->order, w->store, &opt, err);
}

/* 1: worked on a job, 0: no job is ready, -1: failure. */
static int job_work(struct amp_worker *w, struct queue *q, struct amp_error *err)
{
    bool found;
    struct amp_item job;
    struct amp_view v;

    if (amp_own_order_next(q->order, amp_now_ms(), &found, &job, &q->wake_ms, err) < 0)
        return -1;
    if (!found)
        return 0;
    w->left = (struct amp_worker_left){0};
    if (amp_worker_find(w, w->job_reader, amp_span_str(job.msg_id), &w->message, &v, err) < 0)
        return -1;
    w->waits_for[0] = '\0';
    int rc = w->role->work(w, &job, &v, err);
    w->task = NULL;
    w->halted = w->paused = false;
    if (rc == 1 && amp_own_order_hold(q->order, job.msg_id, w->waits_for, err) < 0)
        return -1;
    return rc < 0 ? -1 : 1;
}

/* Returns how long no job wakes up; the end of a suspension wakes the turn. */
static int64_t idle_ms(const struct queue *q)
{
    int64_t wait = q->wake_ms ? q->wake_ms - amp_now_ms() : -1;
    return q->wake_ms && wait < 0 ? 0 : wait;
}

static int suspensions_look(struct amp_worker *w, struct amp_error *err)
{
    const struct amp_pause *any;

    return amp_pause_look(&w->pauses, AMP_SPAN(""), AMP_SPAN(""), &any, err);
}

/* 1: the input has ended and no job can go on; the loop waits for what a person suspended. */
static int jobs_ended(struct amp_worker *w, const struct queue *q, struct amp_error *err)
{
    if (!w->io->ended || q->wake_ms)
        return 0;
    long long open = (long long)amp_own_order_count(q->order);
    if (open == 0)
        return 1;
    if (suspensions_look(w, err) < 0)
        return -1;
    if (w->pauses.now.n_v > 0 || w->pauses.writes != q->writes)
        return 0;
    w->opt->note("%lld %s kept until %s", open, open == 1 ? "message is" : "messages are",
                 amp_own_order_held(q->order, AMP_ESCALATION_KIND ".") > 0
                     ? "a person decides"
                     : "a suspension is lifted");
    w->status = amp_status_worse(w->status, AMP_TEMPFAIL);
    return 1;
}

static int jobs_loop(struct amp_worker *w, struct amp_error *err)
{
    AMP_CLEANUP(queue_release) struct queue q = {0};

    if (queue_open(w, &q, err) < 0)
        return -1;
    while (!*w->opt->stop) {
        if (amp_worker_turn(w, NULL, 0, 0, err) < 0)
            return -1;
        if (amp_pause_watch_due(&w->pauses) && suspensions_look(w, err) < 0)
            return -1;
        if (q.writes != w->pauses.writes && amp_own_order_free_held(q.order, err) < 0)
            return -1;
        q.writes = w->pauses.writes;
        if (w->io->broken) /* jobs stay queued, unsent lines stay in the outbox */
            return 0;
        int rc = job_work(w, &q, err);
        if (rc < 0)
            return -1;
        if (rc)
            continue;
        if ((rc = jobs_ended(w, &q, err)) != 0)
            return rc < 0 ? -1 : 0;
        w->waits = amp_own_order_held(q.order, "") > 0;
        rc = amp_worker_turn(w, NULL, 0, idle_ms(&q), err);
        w->waits = false;
        if (rc < 0)
            return -1;
    }
    w->status = amp_status_worse(w->status, AMP_INTERRUPTED);
    return 0;
}

int amp_worker_open(struct amp_worker *w, struct amp_error *err)
{
    const struct amp_worker_options *o = w->opt;

    amp_buf_init(&w->message, LINE_MAX_BYTES);
    amp_buf_init(&w->waiting, 2 * AMP_WORKER_WAITING);
    if (amp_intake_init(&w->intake, w->store, o->tool, err) ||
        amp_intake_resume(&w->intake, o->consumer ? o->consumer : o->tool, o->trusted, err) < 0)
        return -1;
    w->intake.check.protected_ = o->protected_;
    w->intake.say = o->say;
    w->seen_ms = amp_mono_ms();
    if (o->agent && o->wait)
        amp_pause_watch_feed(&w->pauses, w->store);
    else if (o->agent)
        amp_pause_watch_open(&w->pauses, w->store);
    if (!(w->job_reader = amp_reader_new(NULL, err)) ||
        !(w->ref_reader = amp_reader_new(NULL, err)) ||
        !(w->own_reader = amp_reader_new(NULL, err)))
        return -1;
    return amp_worker_io_open(w, err);
}

void amp_worker_close(struct amp_worker *w)
{
    amp_worker_io_close(w);
    amp_pause_watch_close(&w->pauses);
    amp_git_close(w->git);
    amp_reader_free(w->job_reader);
    amp_reader_free(w->ref_reader);
    amp_reader_free(w->own_reader);
    amp_intake_release(&w->intake);
    amp_buf_release(&w->message);
    amp_buf_release(&w->waiting);
}

/* Keeps what the agent of an earlier, killed process committed, and removes what it left. */
static int unfinished_settle(struct amp_worker *w, struct amp_error *err)
{
    const struct amp_unfinished_spec s = {.store = w->store,
                                          .git = w->git,
                                          .state_dir = w->state_dir,
                                          .tool = w->opt->tool,
                                          .agent = w->opt->agent,
                                          .limits = w->opt->take,
                                          .note = w->opt->note};
    char run[PATH_MAX + 8];
    uint32_t failed;

    snprintf(run, sizeof run, "%s/run", w->state_dir);
    amp_confine_scratch_sweep(run);
    return amp_unfinished_settle(&s, &failed, err);
}

int amp_worker_join(struct amp_worker *w, struct amp_error *err)
{
    const struct amp_worker_options *o = w->opt;
    struct amp_error e;

    if (!realpath(amp_store_dir(w->store), w->state_dir))
        return amp_fail_errno(err, AMP_IOERR, "%s", amp_store_dir(w->store));
    if (amp_outbox_lock(w->store, o->agent, 0, &w->lock, &e)) {
        if (amp_code_is(e.code, lock_timeout))
            amp_fail(&e, AMP_TEMPFAIL, agent_busy,
                     "another process uses the name %s in %s: choose another --agent", o->agent,
                     w->state_dir);
        *err = e;
        return -1;
    }
    if ((o->argv || w->role->in_sessions) && !o->wait && amp_confined_record(w, err) < 0)
        return -1;
    int left = amp_agent_end_leftovers(w->state_dir, o->agent, false);
    if (left)
        o->note("ended %d process%s left by an earlier run of %s", left, left == 1 ? "" : "es",
                o->agent);
    const struct amp_git_options git = {.stop = o->stop, .wait = o->wait, .wait_ctx = o->wait_ctx};
    if (amp_agent_register(w->store, o->agent, o->role, amp_now_ms(), err) < 0)
        return -1;
    int rc = (!w->git && amp_git_open(&git, &w->git, err) < 0) || unfinished_settle(w, err) < 0
                 ? -1
                 : amp_worker_open(w, err);
    /* If the output had no reader for too long, the agent has failed by its time limit; it recovers
     * when it takes work. */
    if (rc == 0 &&
        amp_agent_step(w->store, o->agent, AMP_AGENT_EV_READY, NULL, amp_now_ms(), &e) < 0 &&
        !amp_code_is(e.code, illegal_transition)) {
        *err = e;
        rc = -1;
    }
    return rc;
}

void amp_worker_leave(struct amp_worker *w, bool unbind)
{
    const char *agent = w->opt->agent;
    struct amp_error e;

    amp_agent_step(w->store, agent, AMP_AGENT_EV_SHUTDOWN, NULL, amp_now_ms(), &e);
    if (unbind)
        amp_worker_unbind(w);
    amp_agent_step(w->store, agent, AMP_AGENT_EV_EXIT, NULL, amp_now_ms(), &e);
}

static int worker_run(struct amp_worker *w, struct amp_error *err)
{
    int rc = amp_worker_join(w, err);

    /* The lock of the name: without it the agent is another process's. */
    if (w->lock < 0)
        return rc;
    if (rc == 0)
        rc = jobs_loop(w, err);
    amp_worker_leave(w, !rc && !*w->opt->stop);
    return rc;
}

int amp_worker_run(struct amp_store *s, const struct amp_worker_options *opt,
                   const struct amp_worker_role *role, void *ctx, enum amp_status *status,
                   struct amp_error *err)
{
    struct amp_worker w = {
        .opt = opt, .role = role, .ctx = ctx, .store = s, .lock = -1, .tree = -1};
    int rc = worker_run(&w, err);

    amp_worker_close(&w);
    amp_auto_close(&w.tree);
    amp_auto_close(&w.lock);
    if (!rc)
        *status = w.status;
    return rc;
}
