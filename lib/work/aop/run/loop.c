/* TASKs in a worker's loop: which are taken, their admission, and the end of their jobs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/aop/aop.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/work.h"
#include "people/question/record.h"
#include "work/agent/work.h"
#include "work/aop/account/escalate.h"
#include "work/aop/account/jobs.h"
#include "work/aop/account/trail.h"
#include "work/aop/run/private.h"
#include "work/attempt/io.h"

enum { TASK_TEXT_MAX = 64 << 20, NAME_DIGEST = 33 };

bool amp_session_is_task(const struct amp_view *v)
{
    return v->kind == AMP_KIND_DISPATCH && amp_work_of(v->protocol)->in_sessions && v->json;
}

/* ---- a TASK ---- */

/* A short name for a text that may not be a part of a path. */
static void name_digest(struct amp_span text, char out[NAME_DIGEST])
{
    char hex[AMP_SHA256_MAX];
    amp_sha256_hex(text, hex);
    snprintf(out, NAME_DIGEST, "%.32s", hex);
}

static int tasking_init(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_view *v = t->v;
    char digest[NAME_DIGEST];
    amp_buf_init(&t->message, TASK_TEXT_MAX);
    amp_buf_init(&t->response, TASK_TEXT_MAX);
    amp_buf_init(&t->of.criteria, 1024);
    t->task = amp_json_load(v->text, err);
    t->warnings = json_array();
    t->errors = json_array();
    t->actions = json_array();
    if (!t->task || !t->warnings || !t->errors || !t->actions)
        return t->task ? amp_fail_memory(err) : -1;
    if (amp_buf_str(&t->of.criteria, "[]", err) < 0)
        return -1;
    amp_aop_policy(v, &t->policy);
    const json_t *target = json_object_get(t->task, "target"),
                 *env = json_object_get(json_object_get(t->task, "task"), "environment");
    t->beats.percent = t->beats.eta_seconds = -1;
    t->of.v = v;
    t->of.about = v->body.dispatch.description;
    name_digest(v->correlation, digest);
    snprintf(t->session, sizeof t->session, "%.255s",
             amp_json_str(json_object_get(t->task, "session"), "session_id"));
    snprintf(t->agent, sizeof t->agent, "%.255s", amp_json_str(target, "agent_name"));
    snprintf(t->root, sizeof t->root, "%s", amp_json_str(env, "workspace_root"));
    /* The command's contract spells the role so. */
    const char *role = amp_json_str(target, "role");
    t->of.role = strcmp(role, "ORCHESTRATOR") == 0 ? "orchestrator"
                 : strcmp(role, "SPECIALIST") == 0 ? "specialist"
                                                   : NULL;
    /* Tasks of two sessions may have one name. */
    if (amp_id_is_safe(v->task) && v->task.n < 200)
        amp_span_copy(v->task, t->of.task, sizeof t->of.task);
    else
        name_digest(v->task, t->of.task);
    snprintf(t->of.subtask, sizeof t->of.subtask, "%.200s-%s", t->of.task, digest);
    return 0;
}

static void tasking_free(struct amp_tasking *t)
{
    amp_phases_release(&t->phases);
    amp_tasking_model_release(&t->model);
    amp_artifacts_release(&t->artifacts);
    amp_measure_free(t->before);
    amp_assignment_release(&t->of);
    amp_buf_release(&t->message);
    amp_buf_release(&t->response);
    json_decref(t->task);
    json_decref(t->kept);
    json_decref(t->answer);
    json_decref(t->warnings);
    json_decref(t->errors);
    json_decref(t->actions);
    free(t->places);
    free(t);
}

/* ---- the end ---- */

/* The ledger gets the outcome of the TASK before its job ends: after a crash both are done again.
 */
static int outcome_settle(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_check_options opt = {.only = t->v->protocol};
    struct amp_error why = {0};
    struct amp_view v;
    if (amp_reader_line(t->w->own_reader, amp_buf_span(&t->response), &opt, &v, NULL, NULL, err) <
        0)
        return -1;
    if (amp_outcome_apply(t->w->store, &v, amp_now_ms(), &why) == 0)
        return 0;
    if (why.status == AMP_NO)
        t->w->opt->note("%s: %s: %s", t->of.task, why.code, why.what);
    return amp_fail_unless_no(err, &why) < 0 ? -1 : 0;
}

static bool is_failed(const json_t *response)
{
    return strcmp(amp_json_str(json_object_get(response, "task_status"), "state"), "COMPLETED") !=
           0;
}

/* The audit trail is a copy of records: lines that cannot be written now are added later. */
static void trail_write(struct amp_tasking *t)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    char base[PATH_MAX];
    struct amp_error why;
    int rc = 0;
    /* A TASK that was not begun, such as a skipped one, may have no workspace; then the trail is
     * written with that of a later one, or with the report. */
    bool placed = t->has_begun ? *t->place != '\0' : amp_tasking_place(t, &why) == 0;
    if (placed) {
        const char *storage = amp_tasking_trail(t, base);
        rc = amp_trail_place(&v, t->v->correlation, base, storage, &why);
    }
    if (rc < 0 || amp_trail_write(t->w->store, t->v->correlation, t->w->opt->note, &why) < 0)
        t->w->opt->note("%s: the audit trail is not written yet: %s", t->session, why.what);
}

/* After a failure that aborted the session: jobs of the queue that wait for its other TASKs end. */
static int jobs_skip(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    uint32_t n = 0;
    int aborted = amp_session_aborted(t->w->store, t->v, err);
    if (aborted <= 0)
        return aborted;
    if (amp_session_skip_jobs(&v, t->w->ref_reader, t->v->correlation, &n, err) < 0)
        return -1;
    if (n > 0) {
        t->w->opt->note("session %s was aborted: %u waiting TASKs are skipped", t->session, n);
        t->w->io->dirty = true;
    }
    return 0;
}

/* A job whose work was parked since is at work again; one that was never begun is refused. */
static int job_resume(struct amp_tasking *t, struct amp_queue_step *step, struct amp_error *err)
{
    struct amp_queue_step start = {.event = AMP_QUEUE_EV_START};
    if (!t->job->trying && t->job->attempts == 0) {
        step->event = AMP_QUEUE_EV_FAIL;
        t->w->status = amp_status_worse(t->w->status, AMP_NO);
        return 0;
    }
    step->event = AMP_QUEUE_EV_DONE;
    return t->job->trying ? 0 : amp_worker_step(t->w, t->job, &start, NULL, err);
}

/* The RESPONSE is recorded: it becomes the TASK's outcome, and the job ends with it. */
static int job_end(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_worker *w = t->w;
    json_auto_t *response = amp_json_load(amp_buf_span(&t->response), err);
    if (!response || outcome_settle(t, err) < 0 || jobs_skip(t, err) < 0)
        return -1;
    const json_t *status = json_object_get(response, "task_status");
    const char *state = amp_json_str(status, "state");
    const char *code = amp_json_str(json_object_get(response, "error_details"), "error_code");
    bool failed = is_failed(response);
    struct amp_queue_step step = {.why = *code ? code : state};
    const struct amp_worker_lines lines = {{amp_buf_span(&t->response)}, 1};
    if (job_resume(t, &step, err) < 0)
        return -1;
    w->opt->progress("%s: %s, %s%s%s", t->of.task, state, amp_json_str(status, "final_signal"),
                     *code ? ": " : "", code);
    /* A pool's job ends as these say, in the step. */
    w->left.failed = failed;
    snprintf(w->left.code, sizeof w->left.code, "%.47s", failed ? code : "");
    int rc = t->engaged
                 ? amp_worker_conclude(w, t->job, &step, &lines,
                                       failed ? AMP_AGENT_EV_FAIL : AMP_AGENT_EV_COMPLETE, err)
                 : amp_worker_step(w, t->job, &step, &lines, err);
    if (rc == 0) {
        amp_tasking_measure_forget(t);
        trail_write(t);
    }
    return rc;
}

/* The RESPONSE is recorded, unless a pool has lost the job meanwhile. The recorded one counts. */
static int response_record(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    struct amp_worker *w = t->w;
    struct amp_session_usage used;
    amp_expense_used(t, &used);
    if (amp_store_begin(w->store, err) < 0)
        return -1;
    int rc = w->opt->claimed ? w->opt->claimed(w->opt->wait_ctx, err) : 0;
    if (rc == 0)
        rc = amp_session_ended(&v, t->v, amp_buf_span(&t->response), t->has_begun ? &used : NULL,
                               NULL, 0, err);
    amp_store_end(w->store);
    if (rc < 0)
        return -1;
    AMP_BUF struct amp_buf recorded = {.max = TASK_TEXT_MAX};
    int found = amp_session_response(w->store, t->v, &recorded, err);
    if (found <= 0)
        return found;
    amp_buf_reset(&t->response);
    return amp_buf_add(&t->response, recorded.data, recorded.len, err);
}

/* The RESPONSE may be sent: it decides from here on. */
static int task_end(struct amp_tasking *t, struct amp_error *err)
{
    return response_record(t, err) < 0 || job_end(t, err) < 0 ? -1 : 0;
}

/* In a pool the agent has other work meanwhile. */
static int job_wait(struct amp_tasking *t, const char *code, const char *what,
                    struct amp_error *err)
{
    struct amp_error cause;
    if (!t->w->opt->wait)
        return 1;
    amp_fail_text(&cause, AMP_NO, code, "%s", what);
    return amp_worker_lack(t->w, t->job, &cause, err) < 0 ? -1 : 0;
}

/* There is something to review: work that is done, at least in part. */
static bool is_reviewable(const struct amp_tasking *t)
{
    const struct amp_tasking_outcome *o = &t->outcome;
    return !o->state || strcmp(o->state, "COMPLETED") == 0 ||
           strcmp(o->signal, "PARTIAL_SUCCESS") == 0;
}

static int task_answer(struct amp_tasking *t, struct amp_error *err)
{
    int rc = is_reviewable(t) ? amp_tasking_review(t, err) : 0;
    if (rc > 0) {
        return job_wait(t, AMP_CODE(human_review), "waits for a person's decision", err);
    }
    return rc < 0 ? -1 : task_end(t, err);
}

/* ---- the work ---- */

/* A failure that is of the TASK is its outcome. 1: it is not. */
static int failure_judge(struct amp_tasking *t, const struct amp_error *why, const char *state)
{
    if (amp_code_is(why->code, branch_violation))
        amp_tasking_end(t, state, AMP_CODE(E_PERMISSION_DENIED), "%s", why->what);
    else if (strncmp(why->code, "E_", 2) == 0)
        amp_tasking_end(t, state, why->code, "%s", why->what);
    else if (amp_worker_is_cause(why))
        amp_tasking_end(t, state, AMP_CODE(E_UNKNOWN), "%s: %s", why->code, why->what);
    else
        return 1;
    t->w->opt->note("%s: %s: %s", t->of.task, t->outcome.code, t->outcome.what);
    return 0;
}

static int task_carry(struct amp_tasking *t, struct amp_error *err)
{
    struct amp_error why;
    enum amp_claim claim = amp_worker_engage(t->w, t->job->msg_id, amp_span_str(t->of.task), err);
    if (claim != AMP_CLAIM_TAKEN)
        return claim == AMP_CLAIM_WAITS ? 1 : -1;
    t->engaged = true;
    if (amp_worker_may_attempt(t->w, &why) < 0) {
        amp_tasking_end(t, "FAILED", amp_aop_code(why.code), "%s", why.what);
        return amp_tasking_respond(t, err) < 0 ? -1 : task_answer(t, err);
    }
    int rc = amp_tasking_attempt(t, &why);
    if (rc > 0)
        return 0;
    if (rc < 0 && amp_code_is(why.code, worktree_locked) && t->w->opt->wait)
        return amp_worker_lack(t->w, t->job, &why, err);
    if (rc < 0 && failure_judge(t, &why, "FAILED")) {
        *err = why;
        return -1;
    }
    return amp_tasking_respond(t, err) < 0 ? -1 : task_answer(t, err);
}

static void warning_keep(void *ctx, const struct amp_finding *f)
{
    json_t *list = ctx;
    if (f->severity == AMP_SEV_WARNING && strncmp(f->code, "E_", 2) == 0)
        json_array_append_new(list, json_sprintf("%s: %s %s", f->code, f->field, f->message));
}

/* The warnings about the TASK itself, such as a soft limit of its size (AOP §4), are in its
 * RESPONSE as well. */
static int warnings_take(struct amp_worker *w, const struct amp_view *v, json_t *list,
                         struct amp_error *err)
{
    const struct amp_check_options opt = {.only = v->protocol};
    struct amp_view again;
    return amp_reader_line(w->own_reader, v->line, &opt, &again, warning_keep, list, err) < 0 ? -1
                                                                                              : 0;
}

static enum amp_session_size size_of(const json_t *warnings)
{
    static const char code[] = "E_PAYLOAD_SIZE_WARNING";
    const json_t *one;
    size_t i;
    json_array_foreach (warnings, i, one)
        if (strncmp(json_string_value(one), code, sizeof code - 1) == 0)
            return AMP_SIZE_WARNS;
    return AMP_SIZE_FITS;
}

/* It waits for a change of another TASK of the session. */
static int order_await(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_key of = AMP_KEY(AMP_SESSION_TASK_KIND, t->v->correlation);
    struct amp_span text;
    if (amp_key_text(&of, t->w->waits_for, &text, err) < 0)
        return -1;
    memcpy(t->w->waits_for + text.n, ".", 2);
    return 0;
}

static int task_begin(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_session_voice v = amp_tasking_voice(t);
    struct amp_error why = {0};
    int found;
    if (warnings_take(t->w, t->v, t->warnings, err) < 0)
        return -1;
    switch (amp_session_admit(&v, t->v, size_of(t->warnings), &why)) {
    case AMP_ADMIT_WAITS:
        t->w->io->dirty = true;
        if (order_await(t, err) < 0)
            return -1;
        return job_wait(t, AMP_CODE(session_order), "waits for another TASK of its session", err);
    case AMP_ADMIT_ENDED:
        found = amp_session_response(t->w->store, t->v, &t->response, err);
        if (found == 0)
            return amp_fail(err, AMP_INTERNAL, bad_record, "%s: its RESPONSE is not recorded",
                            t->job->msg_id);
        return found < 0 ? -1 : job_end(t, err);
    case AMP_ADMIT_BEGINS:
        found = amp_tasking_review_find(t, err);
        return found < 0 ? -1 : found > 0 ? task_answer(t, err) : task_carry(t, err);
    case AMP_ADMIT_FAILED:
        break;
    }
    if (why.status != AMP_NO) {
        *err = why;
        return -1;
    }
    failure_judge(t, &why, amp_session_refused_state(why.code));
    return amp_tasking_respond(t, err) < 0 ? -1 : task_end(t, err);
}

/* 1: a person suspended the task or the agent. */
static int pause_look(struct amp_tasking *t, struct amp_error *err)
{
    const struct amp_pause *by;
    char said[AMP_PAUSE_SAID_MAX];
    int paused =
        amp_pause_look(&t->w->pauses, t->v->task, amp_span_str(t->w->opt->agent), &by, err);
    if (paused > 0) {
        amp_pause_say(by, said);
        t->w->opt->note("%s waits: %s", t->job->msg_id, said);
    }
    return paused;
}

/* ---- the role ---- */

static const struct amp_session_options *options_of(struct amp_worker *w)
{
    return w->ctx;
}

static int role_ours(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    const char *agent = options_of(w)->agent;
    (void)err;
    if (!amp_session_is_task(v))
        return 0;
    return !agent || (v->n_to == 1 && amp_span_is(v->to[0], agent));
}

/* ---- the order: by priority, also one that was changed since ---- */

/* The session in the name of a TASK, SESSION/TASK/ATTEMPT. */
static struct amp_span session_in(const char *name, const char *task)
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0, len = strlen(task);
    bool fits = n > len && name[n - len - 1] == '/' && memcmp(name + n - len, task, len) == 0;
    return (struct amp_span){name, fits ? n - len - 1 : 0};
}

static int role_rank(void *ctx, const char *name, const char *task, char key[AMP_KEY_MAX],
                     int64_t *rank, struct amp_error *err)
{
    static const char *const words[] = {"CRITICAL", "HIGH", "NORMAL", "LOW", NULL};
    struct amp_worker *w = ctx;
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task rec;
    struct amp_span session = session_in(name, task), text;
    const struct amp_key by = AMP_KEY(AMP_SESSION_TASK_KIND, session, amp_span_str(task));
    *rank = 2;
    if (session.n == 0 || !*task)
        return 0;
    if (amp_key_text(&by, key, &text, err) < 0)
        return -1;
    int found = amp_session_task_find(w->store, session, amp_span_str(task), &mem, &rec, err);
    int level = found > 0 ? amp_word_find(words, rec.priority) : -1;
    if (level >= 0)
        *rank = level;
    return found < 0 ? -1 : 0;
}

/* A PRIORITY_ESCALATION is carried out, and passed on in any case. */
static int role_seen(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    const struct amp_session_voice voice = {w->store, w->opt->consumer, amp_now_ms()};
    char job[AMP_QUEUE_ID_MAX];
    struct amp_error why = {0};
    if (amp_session_escalation_take(&voice, w->opt->ids, v, w->opt->trusted, job, &why) >= 0)
        return 0;
    if (why.status == AMP_NO) {
        w->status = amp_status_worse(w->status, AMP_NO);
        return amp_intake_refuse(&w->intake, v, &why, err);
    }
    *err = why;
    return -1;
}

/* The TASK gets its place in its session when it arrives. A refusal is repeated when it is begun.
 */
static int arrival_note(struct amp_worker *w, const struct amp_view *v, struct amp_error *err)
{
    const struct amp_session_voice voice = {w->store, w->opt->consumer, amp_now_ms()};
    json_auto_t *warnings = json_array();
    struct amp_error why = {0};
    if (!warnings || warnings_take(w, v, warnings, err) < 0)
        return warnings ? -1 : amp_fail_memory(err);
    return amp_session_admit(&voice, v, size_of(warnings), &why) == AMP_ADMIT_FAILED &&
                   amp_fail_unless_no(err, &why) < 0
               ? -1
               : 0;
}

/* Refuses a TASK that cannot be taken, without a record of it. */
static int task_refuse(struct amp_worker *w, const struct amp_view *v, const char *field,
                       const char *pointer, const char *what, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = TASK_TEXT_MAX};
    const struct amp_finding f = {.severity = AMP_SEV_ERROR,
                                  .protocol = v->protocol,
                                  .code = AMP_CODE(E_SCHEMA_VALIDATION),
                                  .field = field,
                                  .pointer = pointer,
                                  .rule = "limit",
                                  .message = what,
                                  .found = "",
                                  .expected = ""};
    w->status = amp_status_worse(w->status, AMP_NO);
    return amp_refuse(v, &f, amp_now_ms(), &line, err) == AMP_REFUSE_FAILED ||
                   amp_worker_send(w, amp_buf_span(&line), err) < 0
               ? -1
               : 1;
}

/* An invalid TASK was answered when it was read. Without a name there is no record of it. */
static int role_admit(struct amp_worker *w, const struct amp_view *v, const char *bad,
                      struct amp_error *err)
{
    struct amp_error why;
    /* Valid, but not to be represented by the documents of this executor. */
    if (bad && strcmp(bad, "bad_value") == 0)
        return task_refuse(w, v, "", "", "has a text with a NUL, or a number out of range", err);
    if (bad)
        return 1;
    /* The names are parts of keys, and the agent's is that of a directory. */
    if (v->id.n > 0 && v->task.n < 256 && v->correlation.n < 256 &&
        (v->n_to == 0 || v->to[0].n < 256))
        return arrival_note(w, v, err);
    amp_fail(&why, AMP_NO, E_SCHEMA_VALIDATION,
             "the names of the TASK: one of them is empty, or they have more than 240 bytes");
    return amp_intake_refuse(&w->intake, v, &why, err) < 0
               ? -1
               : task_refuse(w, v, "task.task_id", "/task/task_id",
                             "makes no name: empty, of more than 240 bytes, or not of one line",
                             err);
}

/* AOP has no acknowledgement of a TASK. */
static int role_taken(struct amp_worker *w, const struct amp_view *v, struct amp_buf *out,
                      struct amp_error *err)
{
    (void)w, (void)v, (void)out, (void)err;
    return 0;
}

static int role_work(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                     struct amp_error *err)
{
    struct amp_tasking *t = calloc(1, sizeof *t);
    if (!t)
        return amp_fail_memory(err);
    t->w = w;
    t->job = job;
    t->v = v;
    t->opt = options_of(w);
    int rc = tasking_init(t, err) < 0 ? -1 : pause_look(t, err);
    if (rc == 0)
        rc = task_begin(t, err);
    tasking_free(t);
    return rc;
}

static const char *const follows[] = {AMP_SESSION_TASK_KIND, AMP_ESCALATION_KIND, NULL};

const struct amp_worker_role amp_session_role = {.ours = role_ours,
                                                 .takes = AMP_KIND_DISPATCH,
                                                 .admit = role_admit,
                                                 .taken = role_taken,
                                                 .seen = role_seen,
                                                 .rank = role_rank,
                                                 .follows = follows,
                                                 .work = role_work,
                                                 .in_sessions = true};

int amp_session_loop(struct amp_store *s, const struct amp_session_options *opt,
                     enum amp_status *status, struct amp_error *err)
{
    struct amp_session_options mine = *opt;
    return amp_worker_run(s, &mine.worker, &amp_session_role, &mine, status, err);
}
