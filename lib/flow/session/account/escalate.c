/* Priorities of TASKs that change, and the waiting jobs of a session that was aborted. */
#include "flow/session/account/escalate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "flow/session/private.h"
#include "message/record/record.h"
#include "message/settle/outcome.h"
#include "protocol/aop/aop.h"
#include "protocol/aop/event.h"
#include "queue/priority.h"
#include "json/record.h"

/* ---- the jobs of a TASK, or of a session ---- */

struct found {
    struct amp_span session, task; /* task empty: all of the session */
    char (*ids)[AMP_QUEUE_ID_MAX];
    size_t n, cap;
};

/* The message of a job is SESSION/TASK/ATTEMPT. */
static bool is_of(const struct found *f, struct amp_span message)
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

static int job_note(void *ctx, const struct amp_queue_job *j, struct amp_error *err)
{
    struct found *f = ctx;

    if (!is_of(f, j->message))
        return 0;
    if (amp_grow(&f->ids, &f->cap, f->n, sizeof *f->ids, err) < 0)
        return -1;
    amp_span_copy(j->id, f->ids[f->n++], sizeof *f->ids);
    return 0;
}

/* The jobs that wait. */
static int jobs_find(struct amp_store *s, struct found *f, struct amp_error *err)
{
    static const uint8_t waits[] = {AMP_QUEUE_QUEUED, AMP_QUEUE_PARKED};

    for (size_t i = 0; i < sizeof waits; i++)
        if (amp_queue_each(s, amp_queue_fsm.states[waits[i]].name, job_note, f, err) < 0)
            return -1;
    return 0;
}

static int jobs_rank(const struct amp_session_voice *v, const struct amp_session_rank *r,
                     char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    struct found f = {.session = r->session, .task = r->task};
    struct amp_queue_step st = {.event = AMP_QUEUE_EV_RANK, .actor = v->actor, .now_ms = v->now_ms};
    struct amp_error why = {0};

    int rc = amp_priority_of_word(r->priority, &st.priority, err) < 0
                 ? -1
                 : jobs_find(v->store, &f, err);
    for (size_t i = 0; rc == 0 && i < f.n; i++) {
        st.id = amp_span_str(f.ids[i]);
        if (amp_queue_step(v->store, &st, NULL, NULL, &why) == 0)
            memcpy(job, f.ids[i], AMP_QUEUE_ID_MAX);
        else if (why.status != AMP_NO) {
            *err = why;
            rc = -1;
        }
    }
    free(f.ids);
    return rc;
}

/* ---- another priority ---- */

static int event_note(const struct amp_session_voice *v, const struct amp_session_rank *r,
                      int64_t attempt, struct amp_span line, struct amp_error *err)
{
    const struct amp_session_entry e = {.type = AMP_SESSION_ENTRY_EVENT,
                                        .session = r->session,
                                        .task = r->task,
                                        .attempt = attempt,
                                        .event = AMP_SPAN("PRIORITY_ESCALATION"),
                                        .json = line};

    return amp_session_entry_add(v, &e, NULL, NULL, 0, err) < 0 ? -1 : 0;
}

static int escalate(const struct amp_session_voice *v, const struct amp_session_rank *r,
                    struct amp_buf *out, char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, line = {.max = AMP_REC_MAX};
    struct amp_session_task t;
    const struct amp_aop_about about = {r->session, r->task, v->now_ms};

    int found = amp_session_task_find(v->store, r->session, r->task, &mem, &t, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, "unknown_ref", "session %.*s has no TASK %.*s",
                                    AMP_CLIP(r->session, 200), AMP_CLIP(r->task, 200));
    if (amp_session_task_ended(t.state))
        return amp_fail(err, AMP_NO, "task_ended", "the TASK %.*s is %s", AMP_CLIP(r->task, 200),
                        amp_session_task_fsm.states[t.state].name);
    const struct amp_aop_escalation e = {t.priority, r->priority, r->reason, r->by};
    if (amp_aop_priority_escalation(&about, &e, &line, err) < 0)
        return -1;
    if (amp_span_eq(t.priority, r->priority))
        return AMP_RANK_SAME;
    struct amp_span said = {line.data, line.len - 1};
    const struct amp_session_step step = {.event = AMP_SESSION_TASK_EV_RANK,
                                          .session = r->session,
                                          .task = r->task,
                                          .priority = r->priority};
    return event_note(v, r, t.attempt, r->line.n > 0 ? r->line : said, err) < 0 ||
                   amp_session_task_step(v, &step, NULL, NULL, err) < 0 ||
                   jobs_rank(v, r, job, err) < 0 ||
                   (r->line.n == 0 && amp_buf_add(out, line.data, line.len, err) < 0)
               ? -1
               : AMP_RANK_DONE;
}

enum amp_session_ranked amp_session_escalate(const struct amp_session_voice *v,
                                             const struct amp_session_rank *r, struct amp_buf *out,
                                             char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    bool own = !amp_store_in_batch(v->store);

    *job = '\0';
    if (own && amp_store_begin(v->store, err) < 0)
        return AMP_RANK_FAILED;
    int rc = escalate(v, r, out, job, err);
    if (own)
        amp_store_end(v->store);
    return (enum amp_session_ranked)rc;
}

/* ---- messages ---- */

static struct amp_span member_of(const struct amp_view *v, const char *key, struct amp_buf *mem)
{
    uint32_t tok = amp_tape_get(v->tape, 0, amp_span_str(key));
    struct amp_span out;
    struct amp_error e;

    if (tok == AMP_TOK_NONE || v->tape->tok[tok].type != AMP_JSON_STRING ||
        amp_tok_text(v->tape, tok, mem, &out, &e) < 0)
        return AMP_SPAN("");
    return out;
}

bool amp_session_is_escalation(const struct amp_view *v)
{
    return v->kind == AMP_KIND_ESCALATION && v->session.n > 0 && v->task.n > 0 && v->tape &&
           amp_tape_get(v->tape, 0, AMP_SPAN("new_priority")) != AMP_TOK_NONE;
}

/* Whether the sender is a person or the orchestrator. */
static int sender_check(const struct amp_session_voice *v, struct amp_identities *ids,
                        const struct amp_view *event, bool trusted, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session x;
    struct amp_said said;
    struct amp_error why = {0};
    char name[256];

    int found = amp_session_find(v->store, event->session, &mem, &x, err);
    if (found <= 0)
        return found < 0 ? -1 : 1;
    int who = amp_identities_who(ids, event, trusted, &said, &why, err);
    if (who < 0)
        return -1;
    if (who == 0)
        return amp_fail(err, AMP_NO, "E_PERMISSION_DENIED", "%s: %s", why.code, why.what);
    bool may = said.how != AMP_SAID_SIGNED || said.is_operator ||
               (amp_span_copy(x.orchestrator, name, sizeof name) && amp_said_by(ids, &said, name));
    return may ? 0
               : amp_fail(err, AMP_NO, "E_PERMISSION_DENIED",
                          "only a person or the orchestrator changes the priority of a TASK");
}

int amp_session_escalation_take(const struct amp_session_voice *v, struct amp_identities *ids,
                                const struct amp_view *event, bool trusted,
                                char job[AMP_QUEUE_ID_MAX], struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, none = {.max = 16};

    *job = '\0';
    if (!amp_session_is_escalation(event))
        return 1;
    int rc = sender_check(v, ids, event, trusted, err);
    if (rc != 0)
        return rc;
    if (amp_buf_reserve(&mem, event->text.n, err) < 0)
        return -1;
    const struct amp_session_rank r = {.session = event->session,
                                       .task = event->task,
                                       .priority = member_of(event, "new_priority", &mem),
                                       .reason = member_of(event, "reason", &mem),
                                       .by = member_of(event, "escalated_by", &mem),
                                       .line = event->message};
    rc = amp_session_escalate(v, &r, &none, job, err);
    if (rc < 0 && err->status == AMP_NO && strcmp(err->code, "unknown_ref") == 0)
        return 1;
    return rc < 0 ? -1 : 0;
}

/* ---- aborted sessions ---- */

/* The message of a job that waits: 1, and its view; 0: it does not wait any more. */
static int job_read(const struct amp_session_voice *v, struct amp_reader *reader, const char *id,
                    struct amp_buf *line, struct amp_view *task, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX}, rec_mem = {.max = AMP_REC_MAX};
    struct amp_queue_job job;
    struct amp_message_rec rec;

    int found = amp_queue_read(v->store, amp_span_str(id), &mem, &job, err);
    if (found <= 0 || amp_queue_held(job.state))
        return found < 0 ? -1 : 0;
    if (amp_message_find(v->store, job.message, &rec_mem, &rec, err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    amp_buf_reset(line);
    return amp_buf_add(line, rec.line.p, rec.line.n, err) < 0
               ? -1
               : amp_reader_line(reader, amp_buf_span(line), NULL, task, NULL, NULL, err);
}

/* The TASK is SKIPPED and its RESPONSE emitted; then its job ends. 1: so it is. */
static int job_skip(const struct amp_session_voice *v, struct amp_reader *reader, const char *id,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX}, response = {.max = AMP_REC_MAX};
    struct amp_view task;
    struct amp_error why = {0};

    int waits = job_read(v, reader, id, &line, &task, err);
    if (waits <= 0)
        return waits;
    enum amp_session_admission a = amp_session_admit(v, &task, false, &why);
    if (a == AMP_ADMIT_FAILED && why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    bool lost = a == AMP_ADMIT_FAILED && strcmp(why.code, "E_DEPENDENCY_FAILED") == 0;
    if (!lost && a != AMP_ADMIT_ENDED)
        return 0; /* its worker decides */
    if (lost) {
        if (amp_aop_skipped(&task, why.code, why.what, v->now_ms, &response, err) < 0)
            return -1;
        const struct amp_span said = {response.data, response.len - 1};
        const struct amp_store_emit emit = {.line = said, .role = AMP_ROLE_message};
        if (amp_session_ended(v, &task, said, NULL, &emit, 1, err) < 0)
            return -1;
    }
    const struct amp_queue_step st = {.id = amp_span_str(id),
                                      .event = AMP_QUEUE_EV_CANCEL,
                                      .by = v->actor,
                                      .why = lost ? why.what : NULL,
                                      .code = "E_DEPENDENCY_FAILED",
                                      .actor = v->actor,
                                      .now_ms = v->now_ms};
    return amp_queue_step(v->store, &st, NULL, NULL, err) < 0 ? -1 : 1;
}

/* The ledger gets the outcome of a TASK that was skipped. */
static int outcome_note(const struct amp_session_voice *v, struct amp_reader *reader,
                        const char *id, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX}, response = {.max = AMP_REC_MAX};
    struct amp_view view;
    struct amp_error why = {0};

    int rc = job_read(v, reader, id, &line, &view, err);
    if (rc > 0)
        rc = amp_session_response(v->store, &view, &response, err);
    if (rc > 0)
        rc = amp_reader_line(reader, amp_buf_span(&response), NULL, &view, NULL, NULL, err);
    if (rc <= 0 || amp_outcome_apply(v->store, &view, v->now_ms, &why) == 0)
        return rc < 0 ? -1 : 0;
    return amp_fail_unless_no(err, &why);
}

int amp_session_skip_jobs(const struct amp_session_voice *v, struct amp_reader *reader,
                          struct amp_span session, uint32_t *n, struct amp_error *err)
{
    struct found f = {.session = session};
    size_t skipped = 0;

    if (amp_store_begin(v->store, err) < 0)
        return -1;
    int rc = jobs_find(v->store, &f, err);
    for (size_t i = 0; rc == 0 && i < f.n; i++) {
        int one = job_skip(v, reader, f.ids[i], err);
        if (one > 0)
            memmove(f.ids[skipped++], f.ids[i], sizeof *f.ids);
        rc = one < 0 ? -1 : 0;
    }
    amp_store_end(v->store);
    for (size_t i = 0; rc == 0 && i < skipped; i++)
        rc = outcome_note(v, reader, f.ids[i], err);
    *n += (uint32_t)skipped;
    free(f.ids);
    return rc;
}

/* ---- jobs that ended without their TASK ---- */

/* The job of a TASK that waits has ended. */
static int task_abort(const struct amp_session_voice *v, const struct amp_session_task *t,
                      const struct amp_queue_job *j, struct amp_error *err)
{
    const struct amp_session_step step = {
        .event = AMP_SESSION_TASK_EV_ABORT,
        .session = t->session,
        .task = t->id,
        .attempt = t->attempt,
        .signal = AMP_SPAN("ABORTED"),
        .code = AMP_SPAN("E_UNKNOWN"),
        .message = j->reason.n > 0 ? j->reason : AMP_SPAN("its job was cancelled")};
    struct amp_error why = {0};

    return amp_session_task_step(v, &step, NULL, NULL, &why) < 0 ? amp_fail_unless_no(err, &why)
                                                                 : 0;
}

struct ended_jobs {
    const struct amp_session_voice *v;
    struct amp_span session;
};

static int job_reconcile(void *ctx, const struct amp_queue_job *j, struct amp_error *err)
{
    const struct ended_jobs *e = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task t;
    char name[AMP_MSG_ID_MAX];
    struct amp_span session = j->message;

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
        if (!found || t.state != AMP_SESSION_TASK_PENDING)
            continue;
        int n = snprintf(name, sizeof name, "%.*s/%.*s/%lld", (int)session.n, session.p,
                         (int)j->task.n, j->task.p, (long long)t.attempt);
        if (n < (int)sizeof name && amp_span_is(j->message, name))
            return task_abort(e->v, &t, j, err);
    }
    return 0;
}

int amp_session_reconcile(const struct amp_session_voice *v, struct amp_span session,
                          struct amp_error *err)
{
    struct ended_jobs e = {v, session};

    return amp_queue_each(v->store, amp_queue_fsm.states[AMP_QUEUE_CANCELLED].name, job_reconcile,
                          &e, err) < 0 ||
                   amp_queue_each(v->store, amp_queue_fsm.states[AMP_QUEUE_FAILED].name,
                                  job_reconcile, &e, err) < 0
               ? -1
               : 0;
}
