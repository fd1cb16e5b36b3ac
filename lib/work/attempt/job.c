/* The functions for the roles: claim a job, step it with its lines, refuse a message, escalate. */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/backoff.h"
#include "base/codes.h"
#include "message/delivery/ledger/ledger.h"
#include "message/delivery/settle/answer.h"
#include "message/protocol/amp/compose.h"
#include "work/agent/work.h"
#include "work/attempt/io.h"
#include "work/handoff/handoff.h"
#include "work/item/own.h"
#include "work/task/suspend.h"
#include "work/task/task.h"

enum { CLAIM_TRIES = 5 };

static struct amp_span line_trim(struct amp_span line)
{
    while (line.n && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
        line.n--;
    return line;
}

/* Views a composed line; an invalid line is never sent. */
static int line_view(struct amp_worker *w, struct amp_span line, struct amp_view *v,
                     struct amp_error *err)
{
    const struct amp_check_options opt = {0};
    int rc = amp_reader_line(w->own_reader, line, &opt, v, NULL, NULL, err);

    if (rc == 0)
        return amp_fail(err, AMP_INTERNAL, invalid_answer,
                        "internal: a composed message is invalid: %.*s",
                        (int)(line.n > 300 ? 300 : line.n), line.p);
    return rc < 0 ? -1 : 0;
}

static int emits_fill(struct amp_worker *w, const struct amp_worker_lines *lines,
                      struct amp_store_emit *emits, char ids[][256], struct amp_error *err)
{
    struct amp_view v;
    char name[AMP_MSG_ID_MAX];

    for (uint32_t i = 0; i < lines->n; i++) {
        struct amp_span line = line_trim(lines->v[i]);
        if (line_view(w, line, &v, err))
            return -1;
        if (amp_message_name(&v, name) || (v.kind != AMP_KIND_ACK && v.kind != AMP_KIND_NACK))
            amp_span_copy(v.id, ids[i], 256);
        else
            snprintf(ids[i], 256, "%s/%.*s", v.kind == AMP_KIND_NACK ? "nack" : "ack",
                     (int)v.body.ack.ref.n, v.body.ack.ref.p);
        emits[i] = (struct amp_store_emit){amp_span_str(ids[i]), line, v.needs_ack};
    }
    return 0;
}

static int lines_record(struct amp_worker *w, const struct amp_worker_lines *lines,
                        const struct amp_store_emit *emits, struct amp_error *err)
{
    enum amp_store_outcome outcome;
    struct amp_view v;

    for (uint32_t i = 0; i < lines->n; i++)
        if (emits[i].wants_ack && (line_view(w, emits[i].line, &v, err) ||
                                   amp_message_record(w->store, &v, amp_now_ms(), &outcome, err)))
            return -1;
    return 0;
}

static int step_record(struct amp_worker *w, struct amp_item *job, struct amp_queue_step *step,
                       const struct amp_worker_lines *lines, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_queue_job now;

    if ((w->opt->step ? w->opt->step(w->opt->wait_ctx, step, &mem, &now, err)
                      : amp_queue_step(w->store, step, &mem, &now, err)) < 0)
        return -1;
    amp_item_of(&now, job);
    w->io->dirty = true;
    return lines ? lines_record(w, lines, step->emits, err) : 0;
}

/* The code of a job that failed: the step's, that of the attempt, or that of its kind of end. */
static void step_code(const struct amp_worker *w, struct amp_queue_step *step)
{
    bool answered = step->event == AMP_QUEUE_EV_DONE;

    if (answered && w->left.failed)
        step->event = AMP_QUEUE_EV_FAIL;
    if (step->event == AMP_QUEUE_EV_FAIL && !step->code)
        step->code = *w->left.code ? w->left.code
                     : answered    ? AMP_CODE(task_failed)
                                   : AMP_CODE(refused);
}

int amp_worker_step(struct amp_worker *w, struct amp_item *job, struct amp_queue_step *step,
                    const struct amp_worker_lines *lines, struct amp_error *err)
{
    char ids[AMP_WORKER_LINES][256], id[256];
    struct amp_store_emit emits[AMP_WORKER_LINES];

    snprintf(id, sizeof id, "%s", job->msg_id);
    if (lines && emits_fill(w, lines, emits, ids, err))
        return -1;
    step_code(w, step);
    if (!w->opt->step) {
        step->owner = amp_span_str(w->opt->consumer);
        step->id = amp_span_str(id);
        step->worker = step->actor = w->opt->consumer;
    }
    step->emits = emits;
    step->n_emits = lines ? lines->n : 0;
    step->now_ms = amp_now_ms();
    if (!w->opt->step)
        return step_record(w, job, step, lines, err);
    if (step->event == AMP_QUEUE_EV_DONE || step->event == AMP_QUEUE_EV_FAIL ||
        step->event == AMP_QUEUE_EV_PARK)
        w->opt->leaves(w->opt->wait_ctx);
    if (amp_store_begin(w->store, err) < 0)
        return -1;
    int rc = step_record(w, job, step, lines, err);
    amp_store_end(w->store);
    return rc;
}

int amp_worker_conclude(struct amp_worker *w, struct amp_item *job, struct amp_queue_step *step,
                        const struct amp_worker_lines *lines, uint8_t agent_event,
                        struct amp_error *err)
{
    w->left.failed = agent_event == AMP_AGENT_EV_FAIL && step->event != AMP_QUEUE_EV_BREAK;
    return amp_worker_step(w, job, step, lines, err) < 0 ? -1
                                                         : amp_worker_finish(w, agent_event, err);
}

int amp_worker_escalate(struct amp_worker *w, const struct amp_view *v,
                        const struct amp_worker_trouble *trouble, struct amp_buf *out,
                        struct amp_error *err)
{
    char id[AMP_MSG_ID_MAX], task[256], of[256];
    const char *const affected[] = {of, NULL};
    const struct amp_escalation_args a = {
        .type = trouble->type,
        .from = w->opt->role,
        .severity = AMP_LEVEL_CRITICAL,
        .triggered_by = w->opt->role,
        .task_id = task,
        .description = trouble->what,
        .affected = affected,
        .suggested = trouble->suggested,
        .task_status = "suspended",
        .last_successful = "",
        .now_ms = amp_now_ms(),
    };

    amp_span_copy(v->task, task, sizeof task);
    amp_span_copy(v->id, of, sizeof of);
    if (amp_compose_escalation(&a, out, id, err) < 0)
        return -1;
    const struct amp_suspend s = {
        .task_id = v->task,
        .ref = amp_span_str(id),
        .type = a.type,
        .triggered_by = a.triggered_by,
        .level = a.severity,
        .by = w->opt->agent,
        .say = w->opt->note,
        .agent = w->opt->agent,
        .now_ms = a.now_ms,
    };
    w->opt->note("%s: escalated %s: %s", task, a.type, a.description);
    return amp_suspend_task(w->store, &s, err);
}

int amp_worker_refuse(struct amp_worker *w, const struct amp_view *v, const char *code,
                      const char *why, bool retryable, const struct amp_worker_trouble *trouble,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0}, line = {0};
    char task[256], text[512]; /* why may be err->what */
    enum amp_store_outcome outcome;
    struct amp_worker_lines lines = {.n = 1};

    snprintf(text, sizeof text, "%s", why);
    amp_buf_init(&nack, 1 << 18);
    amp_buf_init(&line, 1 << 18);
    amp_span_copy(v->task, task, sizeof task);
    if (amp_compose_nack(v, AMP_STAGE_REJECTED, w->opt->role, code, text, code, retryable,
                         amp_now_ms(), &nack, err))
        return -1;
    lines.v[0] = amp_buf_span(&nack);
    w->opt->note("%.*s: refused: %s: %s", (int)v->id.n, v->id.p, code, text);
    /* The id belongs to another message: the nack is sent, but nothing is recorded. */
    if (amp_code_is(code, duplicate_msg_id))
        return amp_worker_send(w, amp_buf_span(&nack), err) < 0 ? -1 : 1;
    const struct amp_own_take t = {.owner = w->opt->consumer,
                                   .type = w->opt->role,
                                   .protocol = amp_protocol_name(v->protocol),
                                   .msg_id = v->id,
                                   .from = v->from,
                                   .task = v->task,
                                   .line = v->message,
                                   .now_ms = amp_now_ms()};
    if (amp_own_take(w->store, &t, &outcome, err)) {
        if (err->status != AMP_NO)
            return -1;
        outcome = AMP_STORE_REDELIVERED; /* another message has the id; answered nevertheless */
    }
    if (outcome == AMP_STORE_REDELIVERED)
        return amp_worker_send(w, amp_buf_span(&nack), err) < 0 ? -1 : 1;
    if (trouble) {
        if (amp_worker_escalate(w, v, trouble, &line, err) < 0)
            return -1;
        lines.v[lines.n++] = amp_buf_span(&line);
    }
    struct amp_item job = {0};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_FAIL, .why = code, .code = code};
    amp_span_copy(v->id, job.msg_id, sizeof job.msg_id);
    if (amp_worker_step(w, &job, &step, &lines, err))
        return -1;
    return amp_settle_known(w->store, v->id, AMP_STAGE_REJECTED, w->opt->agent, amp_span_str(code),
                            amp_now_ms(), err) < 0
               ? -1
               : 1;
}

int amp_worker_refuse_suspended(struct amp_worker *w, const struct amp_view *v,
                                struct amp_error *err)
{
    int suspended = amp_task_suspended(w->store, v->task, err);
    return suspended <= 0 ? suspended
                          : amp_worker_refuse(w, v, AMP_CODE(suspended),
                                              "The task is suspended until the admin decides", true,
                                              NULL, err);
}

/* Steps the agent's record; an illegal transition is ignored, because it does not affect the job.
 */
static int agent_event(struct amp_worker *w, uint8_t event, const char *task, struct amp_error *err)
{
    if (!amp_agent_step(w->store, w->opt->agent, event, task, amp_now_ms(), err))
        return 0;
    return amp_code_is(err->code, illegal_transition) ? 0 : -1;
}

/* After a failure the agent recovers and is ready again, unless the worker ends. */
static int agent_recover(struct amp_worker *w, struct amp_error *err)
{
    return agent_event(w, AMP_AGENT_EV_RECOVER, NULL, err) ||
                   agent_event(w, *w->opt->stop ? AMP_AGENT_EV_SHUTDOWN : AMP_AGENT_EV_READY, NULL,
                               err)
               ? -1
               : 0;
}

static int agent_claim_once(struct amp_worker *w, const char *task, struct amp_error *err)
{
    struct amp_agent_status st;

    if (amp_agent_status(w->store, w->opt->agent, &st, err))
        return -1;
    switch (st.state) {
    case AMP_AGENT_SUSPENDED:
        return amp_agent_step(w->store, w->opt->agent, AMP_AGENT_EV_RESUME, task, amp_now_ms(),
                              err);
    case AMP_AGENT_WAITING:
    case AMP_AGENT_WAITING_RESOURCES:
    case AMP_AGENT_SCHEDULED:
    case AMP_AGENT_RESUMED:
        if (!strcmp(st.task, task)) /* it has the task: only its start is missing */
            return 0;
        break;
    case AMP_AGENT_FAILED: /* a time limit passed */
        if (agent_recover(w, err))
            return -1;
        break;
    default:
        break;
    }
    if (st.state != AMP_AGENT_RUNNABLE && st.state != AMP_AGENT_FAILED &&
        st.state != AMP_AGENT_WAITING && st.state != AMP_AGENT_WAITING_RESOURCES &&
        (amp_agent_register(w->store, w->opt->agent, w->opt->role, amp_now_ms(), err) ||
         agent_event(w, AMP_AGENT_EV_READY, NULL, err))) /* an earlier process was killed */
        return -1;
    return amp_agent_step(w->store, w->opt->agent, AMP_AGENT_EV_ASSIGN, task, amp_now_ms(), err);
}

/* A time limit of the agent may pass between the look at its state and the step. */
static int agent_claim(struct amp_worker *w, const char *task, struct amp_error *err)
{
    for (int again = 0;; again++)
        if (!agent_claim_once(w, task, err))
            return 0;
        else if (again == CLAIM_TRIES || !amp_code_is(err->code, illegal_transition))
            return -1;
}

/* Reports, once, the suspension that a job waits for. */
static int wait_note(struct amp_worker *w, const char *name, const char *task,
                     struct amp_error *err)
{
    AMP_BUF struct amp_buf key = {0};
    struct amp_agent_status st;
    struct amp_task_status t;

    if (amp_task_status(w->store, amp_span_str(task), &t, err) ||
        amp_agent_status(w->store, w->opt->agent, &st, err))
        return -1;
    amp_buf_init(&key, 2048);
    if (amp_buf_fmt(&key, err, "\n%s %s\n", name, t.suspended ? t.ref : st.ref) < 0)
        return -1;
    if (w->waiting.len && memmem(w->waiting.data, w->waiting.len, key.data, key.len))
        return 0;
    if (w->waiting.len + key.len > AMP_WORKER_WAITING)
        amp_buf_reset(&w->waiting);
    if (t.suspended)
        w->opt->note("%s waits: task %s is suspended until the admin decides %s", name, task,
                     t.ref);
    else if (st.suspended)
        w->opt->note("%s waits: task %s suspends agent %s until the admin decides %s", name,
                     st.cause, w->opt->agent, st.ref);
    else /* lifted in the meantime */
        return 0;
    return amp_buf_add(&w->waiting, key.data, key.len, err);
}

/* Notes a suspension by a person. */
static int pause_note(struct amp_worker *w, const char *name, const struct amp_pause *p,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf key = {0};
    char said[AMP_PAUSE_SAID_MAX];

    amp_buf_init(&key, 4096);
    amp_pause_say(p, said);
    if (amp_buf_fmt(&key, err, "\n%s %lld\n", name, (long long)p->since_ms) < 0)
        return -1;
    if (w->waiting.len && memmem(w->waiting.data, w->waiting.len, key.data, key.len))
        return 0;
    if (w->waiting.len + key.len > AMP_WORKER_WAITING)
        amp_buf_reset(&w->waiting);
    w->opt->note("%s waits: %s", name, said);
    return amp_buf_add(&w->waiting, key.data, key.len, err);
}

/* Ends a job whose dispatch was replaced, or whose task has ended. */
static enum amp_claim job_drop(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                               struct amp_error *err)
{
    AMP_BUF struct amp_buf nack = {0};
    char code[48];

    amp_buf_init(&nack, 1 << 16);
    snprintf(code, sizeof code, "%s", err->code);
    snprintf(w->left.code, sizeof w->left.code, "%s", code);
    w->opt->note("%s: dropped: %s", job->msg_id, code);
    if (amp_compose_nack(v, AMP_STAGE_REJECTED, w->opt->role, code, "the task has changed", code,
                         false, amp_now_ms(), &nack, err) < 0)
        return AMP_CLAIM_FAILED;
    const struct amp_worker_lines lines = {{amp_buf_span(&nack)}, 1};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_FAIL, .why = code};
    return amp_worker_step(w, job, &step, &lines, err) < 0 ? AMP_CLAIM_FAILED : AMP_CLAIM_DROPPED;
}

/* An agent that handed the task over does not go on (SW4RM §17.6). 1: refused. */
static int given_check(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    char owner[256];
    int given = amp_handoff_given(w->store, amp_span_str(w->opt->agent), v->task, owner, err);

    if (given > 0)
        amp_fail(err, AMP_NO, handed_over, "%s handed the task over to %s", w->opt->agent, owner);
    return given;
}

/* Whether a person suspended the task or the agent; says so once. */
static int pause_look(struct amp_worker *w, const char *name, struct amp_span task,
                      struct amp_error *err)
{
    const struct amp_pause *p;
    int paused = amp_pause_look(&w->pauses, task, amp_span_str(w->opt->agent), &p, err);

    return paused > 0 && pause_note(w, name, p, err) < 0 ? -1 : paused;
}

static enum amp_claim agent_engage(struct amp_worker *w, const char *name, const char *task,
                                   struct amp_error *err)
{
    if (!agent_claim(w, task, err) && !agent_event(w, AMP_AGENT_EV_START, task, err))
        return AMP_CLAIM_TAKEN;
    return !amp_code_is(err->code, suspended) || wait_note(w, name, task, err) < 0
               ? AMP_CLAIM_FAILED
               : AMP_CLAIM_WAITS;
}

enum amp_claim amp_worker_claim(struct amp_worker *w, struct amp_item *job,
                                const struct amp_view *v, struct amp_span dispatch,
                                struct amp_error *err)
{
    char task[256];
    const struct amp_task_claim claim = {v->task, dispatch, w->opt->agent, amp_now_ms()};

    amp_span_copy(v->task, task, sizeof task);
    int paused = pause_look(w, job->msg_id, v->task, err);
    if (paused)
        return paused < 0 ? AMP_CLAIM_FAILED : AMP_CLAIM_WAITS;
    int given = given_check(w, v, err);
    if (given)
        return given < 0 ? AMP_CLAIM_FAILED : job_drop(w, job, v, err);
    if (!amp_task_claim(w->store, &claim, err))
        return agent_engage(w, job->msg_id, task, err);
    if (err->status != AMP_NO)
        return AMP_CLAIM_FAILED;
    if (!amp_code_is(err->code, suspended))
        return job_drop(w, job, v, err);
    return wait_note(w, job->msg_id, task, err) < 0 ? AMP_CLAIM_FAILED : AMP_CLAIM_WAITS;
}

enum amp_claim amp_worker_engage(struct amp_worker *w, const char *name, struct amp_span task,
                                 struct amp_error *err)
{
    char of[256];
    int paused = pause_look(w, name, task, err);

    amp_span_copy(task, of, sizeof of);
    if (paused)
        return paused < 0 ? AMP_CLAIM_FAILED : AMP_CLAIM_WAITS;
    return agent_engage(w, name, of, err);
}

int amp_worker_lack(struct amp_worker *w, struct amp_item *job, const struct amp_error *cause,
                    struct amp_error *err)
{
    struct amp_queue_step start = {.event = AMP_QUEUE_EV_START, .why = cause->what};
    struct amp_queue_step park = {.event = AMP_QUEUE_EV_PARK, .why = cause->what};
    uint64_t random;

    /* Two jobs may wait for what the other one's agent has: they do not try at the same time. */
    amp_random(&random, sizeof random);
    park.until_ms = amp_now_ms() + w->opt->pause_ms + amp_backoff_jitter(w->opt->pause_ms, random);
    snprintf(w->left.code, sizeof w->left.code, "%s", cause->code);
    w->opt->note("%s: %s: again later", job->msg_id, cause->what);
    return amp_worker_step(w, job, &start, NULL, err) < 0 ||
                   amp_worker_step(w, job, &park, NULL, err) < 0
               ? -1
               : amp_worker_wait(w, AMP_AGENT_EV_LACK, 0, err);
}

int amp_worker_wait(struct amp_worker *w, uint8_t event, int64_t until_ms, struct amp_error *err)
{
    int rc = amp_agent_wait(w->store, w->opt->agent, event, until_ms, amp_now_ms(), err);

    return rc < 0 && amp_code_is(err->code, illegal_transition) ? 0 : rc;
}

int amp_worker_begin(struct amp_worker *w, const char *task, struct amp_error *err)
{
    return agent_claim(w, task, err) || agent_event(w, AMP_AGENT_EV_START, task, err) ? -1 : 0;
}

int amp_worker_finish(struct amp_worker *w, uint8_t event, struct amp_error *err)
{
    if (agent_event(w, event, NULL, err))
        return -1;
    if (event == AMP_AGENT_EV_FAIL)
        return agent_recover(w, err);
    return event == AMP_AGENT_EV_COMPLETE ? agent_event(w, AMP_AGENT_EV_READY, NULL, err) : 0;
}

bool amp_worker_is_forced(const struct amp_worker *w)
{
    return amp_code_is(w->left.code, forced_preemption);
}

int amp_worker_may_attempt(struct amp_worker *w, struct amp_error *err)
{
    if (w->refusal.status == AMP_OK)
        return 0;
    *err = w->refusal;
    snprintf(w->left.code, sizeof w->left.code, "%.47s", err->code);
    return -1;
}

bool amp_worker_is_cause(const struct amp_error *err)
{
    return err->status != AMP_INTERNAL && err->status != AMP_TEMPFAIL && err->status != AMP_IOERR &&
           err->status != AMP_INTERRUPTED;
}
