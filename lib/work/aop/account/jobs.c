/* The jobs of the queue for the TASKs of sessions. */
#include "work/aop/account/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/grow.h"
#include "message/delivery/record/record.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/work.h"
#include "work/aop/account/trail.h"
#include "work/aop/session/private.h"
#include "work/item/claim/queue.h"
#include "json/record.h"

/* ---- jobs that wait ---- */

struct search {
    struct amp_span session, task;
    struct amp_session_jobs *out;
};

/* The message of a job is SESSION/TASK/ATTEMPT. */
static bool is_of(const struct search *f, struct amp_span message)
{
    size_t at = f->session.n;

    if (message.n <= at + 1 || memcmp(message.p, f->session.p, at) != 0 || message.p[at] != '/')
        return false;
    if (f->task.n == 0)
        return true;
    at++;
    return message.n > at + f->task.n && memcmp(message.p + at, f->task.p, f->task.n) == 0 &&
           message.p[at + f->task.n] == '/';
}

static int job_note(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *j = rec;
    const struct search *f = ctx;
    struct amp_session_jobs *to = f->out;

    if (!is_of(f, j->message))
        return 0;
    if (amp_grow(&to->ids, &to->cap, to->n, sizeof *to->ids, err) < 0)
        return -1;
    amp_span_copy(j->id, to->ids[to->n++], sizeof *to->ids);
    return 0;
}

int amp_session_jobs_find(struct amp_store *s, struct amp_span session, struct amp_span task,
                          struct amp_session_jobs *out, struct amp_error *err)
{
    static const uint8_t waits[] = {AMP_QUEUE_QUEUED, AMP_QUEUE_PARKED};
    struct search f = {session, task, out};

    for (size_t i = 0; i < sizeof waits; i++)
        if (amp_queue_each(s, amp_queue_fsm.states[waits[i]].name, job_note, &f, err) < 0)
            return -1;
    return 0;
}

/* ---- the end of a TASK without a worker ---- */

/* The TASK of a job: 1, and its view; 0: the ledger does not have it any more. */
static int task_read(struct amp_store *s, struct amp_reader *reader, struct amp_span message,
                     struct amp_buf *line, struct amp_view *task, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_message_rec rec;

    if (amp_message_find(s, message, &mem, &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    amp_buf_reset(line);
    return amp_buf_add(line, rec.line.p, rec.line.n, err) < 0
               ? -1
               : amp_reader_line(reader, amp_buf_span(line), NULL, task, NULL, NULL, err);
}

/* The ledger gets the outcome of the TASK. */
static int outcome_apply(const struct amp_session_voice *v, struct amp_reader *reader,
                         struct amp_span response, struct amp_error *err)
{
    struct amp_error why = {0};
    struct amp_view view;

    if (amp_reader_line(reader, response, NULL, &view, NULL, NULL, err) < 0)
        return -1;
    return amp_outcome_apply(v->store, &view, v->now_ms, &why) < 0 ? amp_fail_unless_no(err, &why)
                                                                   : 0;
}

/* Records the RESPONSE and the end of the TASK. The view is that of the reader, and is gone then.
 * The outcome comes first: while the TASK is open, all of this is made again after a crash. */
static int task_end(const struct amp_session_voice *v, struct amp_reader *reader,
                    struct amp_span line, const struct amp_view *task,
                    const struct amp_aop_end *end, struct amp_error *err)
{
    AMP_BUF struct amp_buf response = {.max = AMP_REC_MAX};
    struct amp_view again;

    if (amp_aop_ended(task, end, v->now_ms, &response, err) < 0)
        return -1;
    const struct amp_span said = {response.data, response.len - 1};
    const struct amp_store_emit emit = {.line = said, .role = AMP_ROLE_message};
    if (outcome_apply(v, reader, said, err) < 0 ||
        amp_reader_line(reader, line, NULL, &again, NULL, NULL, err) < 0)
        return -1;
    return amp_session_ended(v, &again, said, NULL, &emit, 1, err) < 0 ? -1 : 0;
}

/* ---- aborted sessions ---- */

/* A job that waits, and its TASK. 1; 0: it does not wait any more. */
static int job_read(const struct amp_session_voice *v, struct amp_reader *reader, const char *id,
                    struct amp_buf *line, struct amp_view *task, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_queue_job job;

    int found = amp_queue_read(v->store, amp_span_str(id), &mem, &job, err);
    if (found <= 0 || amp_queue_held(job.state))
        return found < 0 ? -1 : 0;
    return task_read(v->store, reader, job.message, line, task, err);
}

/* The TASK is SKIPPED and its RESPONSE emitted; then its job ends. 1: so it is. */
static int job_skip(const struct amp_session_voice *v, struct amp_reader *reader, const char *id,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_view task;
    struct amp_error why = {0};

    int waits = job_read(v, reader, id, &line, &task, err);
    if (waits <= 0)
        return waits;
    enum amp_session_admission a = amp_session_admit(v, &task, AMP_SIZE_UNKNOWN, &why);
    if (a == AMP_ADMIT_FAILED && why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    bool lost = a == AMP_ADMIT_FAILED && amp_code_is(why.code, E_DEPENDENCY_FAILED);
    if (!lost && a != AMP_ADMIT_ENDED)
        return 0; /* its worker decides */
    const struct amp_aop_end end = {.state = "SKIPPED", .code = why.code, .what = why.what};
    if (lost && task_end(v, reader, amp_buf_span(&line), &task, &end, err) < 0)
        return -1;
    const struct amp_queue_step st = {.id = amp_span_str(id),
                                      .event = AMP_QUEUE_EV_CANCEL,
                                      .by = v->actor,
                                      .why = lost ? why.what : NULL,
                                      .code = AMP_CODE(E_DEPENDENCY_FAILED),
                                      .actor = v->actor,
                                      .now_ms = v->now_ms};
    return amp_queue_step(v->store, &st, NULL, NULL, err) < 0 ? -1 : 1;
}

int amp_session_skip_jobs(const struct amp_session_voice *v, struct amp_reader *reader,
                          struct amp_span session, uint32_t *n, struct amp_error *err)
{
    struct amp_session_jobs jobs = {0};

    if (amp_store_begin(v->store, err) < 0)
        return -1;
    int rc = amp_session_jobs_find(v->store, session, AMP_SPAN(""), &jobs, err);
    for (size_t i = 0; rc == 0 && i < jobs.n; i++) {
        int skipped = job_skip(v, reader, jobs.ids[i], err);
        *n += skipped > 0;
        rc = skipped < 0 ? -1 : 0;
    }
    amp_store_end(v->store);
    free(jobs.ids);
    return rc;
}

/* ---- jobs that ended ---- */

/* Returns how a TASK ends whose job ended so. */
static struct amp_aop_end end_of(const struct amp_queue_job *j, const struct amp_session_task *t,
                                 struct amp_buf *what)
{
    struct amp_aop_end end = {.code = AMP_CODE(E_UNKNOWN), .began_ms = t->started_ms};

    if (j->state == AMP_QUEUE_CANCELLED) {
        end.state = "ABORTED";
        amp_buf_fmt(what, NULL, "%.*s cancelled its job%s%.*s",
                    AMP_CLIP(j->cancelled_by.n > 0 ? j->cancelled_by : AMP_SPAN("a person"), 200),
                    j->reason.n > 0 ? ": " : "", AMP_CLIP(j->reason, 400));
    } else {
        end.state = "FAILED";
        amp_buf_fmt(what, NULL, "its job failed: %.*s%s%.*s", AMP_CLIP(j->code, 100),
                    j->reason.n > 0 ? ": " : "", AMP_CLIP(j->reason, 400));
    }
    end.what = what->data ? what->data : "its job has ended";
    return end;
}

/* Without its message there is nothing to answer. */
static int task_abort(const struct amp_session_voice *v, const struct amp_session_task *t,
                      const struct amp_aop_end *end, struct amp_error *err)
{
    const struct amp_session_step step = {.event = AMP_SESSION_TASK_EV_ABORT,
                                          .session = t->session,
                                          .task = t->id,
                                          .attempt = t->attempt,
                                          .signal = AMP_SPAN("ABORTED"),
                                          .code = amp_span_str(end->code),
                                          .message = amp_span_str(end->what)};
    struct amp_error why = {0};

    return amp_session_task_step(v, &step, NULL, NULL, &why) < 0 ? amp_fail_unless_no(err, &why)
                                                                 : 0;
}

struct ended_jobs {
    const struct amp_session_voice *v;
    struct amp_span session;
    struct amp_reader *reader; /* NULL: not needed yet */
};

/* 1: the TASK ended so; 0: its message is gone. */
static int task_answer(struct ended_jobs *e, const struct amp_session_voice *v,
                       const struct amp_queue_job *j, const struct amp_aop_end *end,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    struct amp_view task;

    if (!e->reader && !(e->reader = amp_reader_new(NULL, err)))
        return -1;
    int found = task_read(v->store, e->reader, j->message, &line, &task, err);
    if (found <= 0)
        return found;
    return task_end(v, e->reader, amp_buf_span(&line), &task, end, err) < 0 ? -1 : 1;
}

/* If the end of the TASK aborted its session, other jobs of it end. */
static int session_look(struct ended_jobs *e, const struct amp_session_voice *v,
                        const struct amp_session_task *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session x;
    uint32_t n = 0;

    int rc = amp_session_find(v->store, t->session, &mem, &x, err);
    if (rc > 0)
        rc = amp_session_is_aborted(v->store, &x, err);
    return rc <= 0 ? rc : amp_session_skip_jobs(v, e->reader, t->session, &n, err);
}

static int task_settle(struct ended_jobs *e, const struct amp_queue_job *j,
                       const struct amp_session_task *t, struct amp_error *err)
{
    AMP_BUF struct amp_buf what = {.max = 1 << 16};
    const struct amp_aop_end end = end_of(j, t, &what);
    struct amp_error why;
    char agent[AMP_QUEUE_AGENT_MAX], consumer[AMP_QUEUE_CONSUMER_MAX];

    amp_queue_agent(j->type, 1, agent);
    amp_queue_consumer(agent, consumer);
    const struct amp_session_voice v = {e->v->store, consumer, e->v->now_ms};
    int rc = task_answer(e, &v, j, &end, err);
    rc = rc < 0 ? -1 : rc == 0 ? task_abort(&v, t, &end, err) : session_look(e, &v, t, err);
    if (rc == 0) /* what cannot be written now is added later */
        amp_trail_write(v.store, t->session, NULL, &why);
    return rc;
}

/* The TASK of the job, if it has not ended. */
static int job_look(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_queue_job *j = rec;
    struct ended_jobs *e = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task t;
    char name[AMP_MSG_ID_MAX];
    struct amp_span session = j->message;

    if (!amp_work_of(amp_protocol_find(j->protocol))->in_sessions)
        return 0;
    /* SESSION/TASK/ATTEMPT: the TASK is known, so the rest before it is the session. */
    for (size_t i = 0; i + 1 < j->message.n; i++) {
        if (j->message.p[i] != '/' || j->message.n < i + 1 + j->task.n ||
            memcmp(j->message.p + i + 1, j->task.p, j->task.n) != 0)
            continue;
        session.n = i;
        if (e->session.n > 0 && !amp_span_eq(session, e->session))
            continue;
        int found = amp_session_task_find(e->v->store, session, j->task, &mem, &t, err);
        if (found < 0)
            return -1;
        if (!found || amp_session_task_ended(t.state))
            continue;
        int n = snprintf(name, sizeof name, "%.*s/%.*s/%lld", (int)session.n, session.p,
                         (int)j->task.n, j->task.p, (long long)t.attempt);
        if (n < (int)sizeof name && amp_span_is(j->message, name))
            return task_settle(e, j, &t, err);
    }
    return 0;
}

int amp_session_job_ended(const struct amp_session_voice *v, const struct amp_queue_job *job,
                          struct amp_error *err)
{
    struct ended_jobs e = {v, AMP_SPAN(""), NULL};
    bool unanswered = job->state == AMP_QUEUE_CANCELLED || job->state == AMP_QUEUE_FAILED;
    int rc = unanswered ? job_look(&e, job, err) : 0;

    amp_reader_free(e.reader);
    return rc;
}

int amp_session_reconcile(const struct amp_session_voice *v, struct amp_span session,
                          struct amp_error *err)
{
    static const uint8_t ended[] = {AMP_QUEUE_CANCELLED, AMP_QUEUE_FAILED};
    struct ended_jobs e = {v, session, NULL};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof ended; i++)
        rc = amp_queue_each(v->store, amp_queue_fsm.states[ended[i]].name, job_look, &e, err);
    amp_reader_free(e.reader);
    return rc < 0 ? -1 : 0;
}
