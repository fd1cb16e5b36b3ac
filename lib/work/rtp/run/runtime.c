/*
 * One task in a worker. After a crash the job is open: a task that was accepted goes on with
 * another attempt, and one whose outcome was committed is only acknowledged.
 */
#include "work/rtp/run/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/record/sequence.h"
#include "message/protocol/compose/json.h"
#include "work/attempt/assignment.h"
#include "work/attempt/io.h"
#include "work/attempt/walls/confined.h"

struct run {
    struct amp_assignment of; /* the first member: the progress callback gets it */
    struct amp_runtime_terms terms;
    const struct amp_runtime_options *opt;
    struct amp_runtime_voice voice;
    json_t *answer;
};

bool amp_runtime_is_task(const struct amp_view *v)
{
    struct amp_rtp_task t;
    return v->id.n && v->task.n && amp_rtp_task_read(v, &t);
}

int amp_runtime_is_ours(const struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    struct amp_rtp_task t;
    if (!v->id.n || !v->task.n || !amp_rtp_task_read(v, &t))
        return 0;
    for (uint32_t i = 0; i < v->n_to; i++)
        if (amp_span_is(v->to[i], w->opt->agent))
            return 1;
    return v->n_to == 0 ? amp_runtime_may(w->store, &t, w->opt->agent, err) : 0;
}

/* Appends an ack of the agent, numbered in its outbox. */
static int ack_add(struct amp_worker *w, const struct amp_view *v, enum amp_ack_stage stage,
                   struct amp_buf *out, struct amp_error *err)
{
    struct amp_answer a = {
        .stage = stage, .by = w->opt->agent, .node = w->opt->agent, .now_ms = amp_now_ms()};
    return amp_sequence_answer(w->store, v, w->opt->consumer, &a, err) < 0
               ? -1
               : amp_answer_line(v, &a, out, err);
}

int amp_runtime_taken(struct amp_worker *w, const struct amp_view *v, struct amp_buf *out,
                      struct amp_error *err)
{
    const struct amp_store_input in = {w->opt->consumer, v->id, v->message};
    struct amp_error why = {0};
    int seen = amp_store_seen(w->store, &in, &why);
    /* A number is used only by a line that is sent. */
    return seen != 0 ? 0 : ack_add(w, v, AMP_STAGE_RECEIVED, out, err);
}

/* Ends the job. processed: the outcome is known, and the sender gets it. */
static int job_end(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                   bool processed, const char *why, uint8_t agent_event, struct amp_error *err)
{
    AMP_BUF struct amp_buf ack = {.max = 1 << 18};
    struct amp_worker_lines lines = {.n = 0};
    struct amp_queue_step step = {.event = job->trying ? AMP_QUEUE_EV_DONE : AMP_QUEUE_EV_FAIL,
                                  .why = why};
    if (processed) {
        if (ack_add(w, v, AMP_STAGE_FULFILLED, &ack, err) < 0)
            return -1;
        lines.v[lines.n++] = amp_buf_span(&ack);
    }
    if (agent_event == 0)
        return amp_worker_step(w, job, &step, lines.n ? &lines : NULL, err);
    return amp_worker_conclude(w, job, &step, lines.n ? &lines : NULL, agent_event, err);
}

/* The task cannot be carried out here: refused, and the job ends. */
static int task_refuse(struct amp_worker *w, struct amp_item *job, const struct run *k,
                       const struct amp_error *why, struct amp_error *err)
{
    struct amp_error e = {0};
    w->opt->note("%s: refused: %s: %s", k->of.task, why->code, why->what);
    if (amp_runtime_refuse(&k->voice, k->of.v, why, amp_now_ms(), &e) < 0 &&
        amp_fail_unless_no(err, &e) < 0)
        return -1;
    w->status = amp_status_worse(w->status, AMP_NO);
    snprintf(w->left.code, sizeof w->left.code, "%.47s", why->code);
    return job_end(w, job, k->of.v, false, why->code, 0, err);
}

/* The task is another agent's, or has its outcome. */
static int task_dropped(struct amp_worker *w, struct amp_item *job, const struct run *k,
                        const char *code, bool processed, struct amp_error *err)
{
    snprintf(w->left.code, sizeof w->left.code, "%.47s", code);
    return job_end(w, job, k->of.v, processed, code, 0, err);
}

/* 1: the task is this agent's now; 0: the job has ended; -1: failure. */
static int task_begin(struct amp_worker *w, struct amp_item *job, struct run *k,
                      struct amp_error *err)
{
    struct amp_error why = {0};
    int64_t now = amp_now_ms();
    if (amp_runtime_terms(w->store, k->of.v, w->opt->agent, k->opt, now, &k->terms, &why) < 0) {
        if (why.status == AMP_NO && job->attempts == 0)
            return task_refuse(w, job, k, &why, err);
        /* Only the agent that has the work now reports it. */
        if (why.status == AMP_NO && amp_code_is(why.code, handed_over))
            return task_dropped(w, job, k, why.code, false, err);
        /* An accepted task whose deadline has passed since fails. */
        if (why.status == AMP_NO && amp_code_is(why.code, deadline_passed))
            return 1;
        *err = why;
        return -1;
    }
    if (amp_runtime_accept(&k->voice, k->of.v, &k->terms, NULL, now, &why) >= 0) {
        w->io->dirty = true;
        return amp_worker_turn(w, NULL, 0, 0, err) < 0 ? -1 : 1;
    }
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    if (amp_code_is(why.code, backpressure) || amp_code_is(why.code, approval_required))
        return task_refuse(w, job, k, &why, err);
    bool done = amp_code_is(why.code, already_completed);
    w->opt->note("%s: %s: %s", k->of.task, why.code, why.what);
    return task_dropped(w, job, k, why.code, done && job->trying, err);
}

static int progress_take(struct amp_worker *w, struct amp_assignment *of, const json_t *line,
                         struct amp_error *err)
{
    struct run *k = (struct run *)of;
    struct amp_error why = {0};
    const json_t *percent = json_object_get(line, "percent");
    int rc = amp_runtime_update(&k->voice, of->v, &k->terms, k->opt,
                                percent ? json_number_value(percent) : -1,
                                amp_json_str(line, "detail"), amp_now_ms(), &why);
    if (rc == 0)
        w->io->dirty = true;
    return rc < 0 ? amp_fail_unless_no(err, &why) : 0;
}

/* The directory in which the command works. */
static int place_make(struct run *k, struct amp_error *err)
{
    snprintf(k->of.worktree, sizeof k->of.worktree, "%s/work", k->of.files.dir);
    return mkdir(k->of.worktree, 0700) == 0
               ? 0
               : amp_fail_errno(err, AMP_CANTCREAT, "%s", k->of.worktree);
}

static bool is_late(const struct run *k)
{
    return k->terms.task.deadline_ms > 0 && k->terms.task.deadline_ms <= amp_now_ms();
}

/* After the attempt: the outcome, and the ack that it was processed. */
static int task_end(struct amp_worker *w, struct amp_item *job, struct run *k, const char *failure,
                    const char *said, struct amp_error *err)
{
    char code[64], last[200] = "", text[800];
    struct amp_error why = {0};
    if (*k->of.files.dir)
        amp_attempt_last_line(failure ? k->of.files.err : k->of.files.out, last, sizeof last);
    if (strstr(said, last))
        *last = '\0';
    snprintf(text, sizeof text, "%s%s%s", said, *said && *last ? ": " : "", last);
    const struct amp_runtime_end end = {
        .answer = k->answer, .failed = failure != NULL, .failure = failure, .said = text};
    if (amp_runtime_finish(&k->voice, k->of.v, &k->terms, &end, code, amp_now_ms(), &why) < 0) {
        if (why.status != AMP_NO) {
            *err = why;
            return -1;
        }
        w->opt->note("%s: %s: %s", k->of.task, why.code, why.what);
        w->status = amp_status_worse(w->status, AMP_NO);
        return job_end(w, job, k->of.v, false, why.code, AMP_AGENT_EV_FAIL, err);
    }
    w->io->dirty = true;
    if (*code && w->refusal.status == AMP_OK)
        snprintf(w->left.code, sizeof w->left.code, "%.47s", code);
    w->opt->progress("%s: %s%s%s", k->of.task, *code ? "failed" : "complete", *code ? ": " : "",
                     code);
    return job_end(w, job, k->of.v, true, *code ? code : "complete",
                   *code ? AMP_AGENT_EV_FAIL : AMP_AGENT_EV_COMPLETE, err);
}

/* Reads the agent's answer. -1: failure of the worker; 0: *bad has what is wrong with it. */
static int answer_read(struct amp_worker *w, struct run *k, char *bad, size_t size,
                       struct amp_error *err)
{
    struct amp_error why = {0};
    *bad = '\0';
    if (*k->of.forgeries.answer)
        snprintf(bad, size, "%s", k->of.forgeries.answer);
    else if (amp_answer_read(&k->of.files, "runtime_result.json", &k->answer, &why) == 0)
        return 0;
    else if (why.status != AMP_DATAERR) {
        *err = why;
        return -1;
    } else
        snprintf(bad, size, "bad_answer: %.400s", why.what);
    w->opt->note("%s: %s", k->of.task, bad);
    return 0;
}

static int attempt_run(struct amp_worker *w, struct amp_item *job, struct run *k,
                       struct amp_error *err)
{
    struct amp_assignment *of = &k->of;
    AMP_BUF struct amp_buf walls = {.max = 4096};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_START};
    char bad[500];
    bool spent;
    if (amp_confined_note(w, &walls, err) < 0)
        return -1;
    step.why = walls.data;
    if (amp_worker_step(w, job, &step, NULL, err) < 0)
        return -1;
    of->attempt = job->attempts;
    of->about = of->v->body.dispatch.description;
    if (is_late(k))
        return task_end(w, job, k, AMP_CODE(timeout),
                        "the deadline passed before the work was done", err);
    if (k->terms.task.deadline_ms > 0)
        of->limit_ms = k->terms.task.deadline_ms - amp_now_ms();
    w->opt->progress("%s: %s works on it, attempt %lld", of->task, w->opt->agent,
                     (long long)of->attempt);
    if (amp_assignment_files(w, of, err) < 0 || place_make(k, err) < 0 ||
        amp_assignment_run(w, job, of, err) < 0 || answer_read(w, k, bad, sizeof bad, err) < 0)
        return -1;
    if (of->end == AMP_END_MACHINERY && is_late(k))
        return task_end(w, job, k, AMP_CODE(timeout), "the deadline passed during the work", err);
    if (of->end == AMP_END_REPEAT || of->end == AMP_END_MACHINERY || of->end == AMP_END_STOPPED) {
        if (amp_assignment_again(w, job, of, of->end, of->why, &spent, err) < 0)
            return -1;
        if (!spent)
            return 0;
        return task_end(w, job, k, AMP_CODE(execution_error), of->why, err);
    }
    if (*bad)
        return task_end(w, job, k, AMP_CODE(execution_error), bad, err);
    return task_end(w, job, k, of->end == AMP_END_DONE ? NULL : AMP_CODE(execution_error),
                    of->end == AMP_END_DONE ? "" : of->why, err);
}

static int task_work(struct amp_worker *w, struct amp_item *job, struct run *k,
                     struct amp_error *err)
{
    const struct amp_pause *by;
    char said[AMP_PAUSE_SAID_MAX];
    int paused = amp_pause_look(&w->pauses, k->of.v->task, amp_span_str(w->opt->agent), &by, err);
    if (paused < 0)
        return -1;
    if (paused) {
        amp_pause_say(by, said);
        w->opt->note("%s waits: %s", job->msg_id, said);
        return 1;
    }
    int rc = task_begin(w, job, k, err);
    if (rc <= 0)
        return rc;
    if (amp_worker_begin(w, k->of.task, err) < 0)
        return -1;
    rc = amp_worker_may_attempt(w, err) < 0 ? -1 : attempt_run(w, job, k, err);
    if (rc == 0 || !amp_worker_is_cause(err))
        return rc;
    struct amp_error cause = *err;
    return task_end(w, job, k, AMP_CODE(execution_error), cause.what, err);
}

int amp_runtime_work(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                     const struct amp_runtime_options *opt, struct amp_error *err)
{
    struct run *k = calloc(1, sizeof *k);
    if (!k)
        return amp_fail_memory(err);
    k->opt = opt;
    k->voice = (struct amp_runtime_voice){w->store, w->opt->agent, w->opt->consumer};
    k->of.v = v;
    k->of.progress = progress_take;
    amp_buf_init(&k->of.criteria, 1024);
    amp_span_copy(v->task, k->of.task, sizeof k->of.task);
    int rc = amp_buf_str(&k->of.criteria, "[]", err) < 0 ? -1 : task_work(w, job, k, err);
    amp_runtime_terms_release(&k->terms);
    amp_assignment_release(&k->of);
    json_decref(k->answer);
    free(k);
    return rc;
}
