/*
 * The lines of the control FIFO: progress becomes an entry of the work log, a question an
 * escalation with the severity "warning", its withdrawal a nack of this escalation, a hold defers a
 * suspension, and the agent's task and inbox are written into its directory. A refused line is
 * logged once per code; one that is a message of a protocol once per type and sender (forgeries.h).
 */
#include "work/attempt/control.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/inbox/inbox.h"
#include "message/protocol/amp/compose.h"
#include "message/protocol/work.h"
#include "people/question/record.h"
#include "work/agent/work.h"
#include "work/attempt/left/forgeries.h"
#include "work/task/record.h"
#include "work/task/task.h"

#define SUGGESTIONS_MAX 8    /* of a question; schemas/agent/control.json */
#define LOG_MAX         1000 /* entries of an attempt from its FIFO */
#define BEAT_MS         1000 /* heartbeats in between are not recorded */
#define INBOX_MAX       32   /* messages of an answer */

int amp_words_log(struct amp_assignment *k, const char *action, const char *file,
                  const char *detail, struct amp_error *err)
{
    json_auto_t *e = json_pack("{s:s, s:s, s:s}", "action", action, "file", file, "detail", detail);

    if (!k->words.log)
        k->words.log = json_array();
    if (!e || !k->words.log)
        return amp_fail_memory(err);
    return amp_work_log_add(k->words.log, e, amp_now_ms(), err);
}

int amp_words_fd(const struct amp_assignment *k, int64_t *wait_ms)
{
    int64_t pause = amp_control_wait(&k->words.control, amp_mono_ms());

    if (pause == 0)
        return k->words.control.fd;
    if (*wait_ms < 0 || *wait_ms > pause)
        *wait_ms = pause;
    return -1;
}

/* Whether the agent is suspended by its own question only, or not any more: a question suspends the
 * party that asks (docs/qa-loop.md), and here that party waits for the answer. */
static bool waits_for_answer(struct amp_worker *w, const struct amp_assignment *k)
{
    struct amp_agent_status st;
    struct amp_error e;

    if (!k->words.n_questions || amp_task_suspended(w->store, k->v->task, &e) != 0 ||
        amp_agent_status(w->store, w->opt->agent, &st, &e) < 0)
        return false;
    for (uint32_t i = 0; st.suspended && i < k->words.n_questions; i++)
        if (strcmp(st.ref, k->words.questions[i].escalation) == 0)
            return true;
    return !st.suspended;
}

bool amp_words_hold(struct amp_worker *w, struct amp_assignment *k, int64_t *wait_ms)
{
    int64_t now = amp_mono_ms(), left = k->words.hold_ms - now;
    struct amp_error e;

    if (waits_for_answer(w, k)) {
        w->halted = false; /* looked at again soon */
        return true;
    }
    if (left > 0) {
        if (!k->words.held_over_ms)
            w->opt->note("%s: suspended; the agent asked for %lld ms before it stops", k->task,
                         (long long)left);
        k->words.held_over_ms = now;
        if (*wait_ms < 0 || *wait_ms > left)
            *wait_ms = left;
        return true;
    }
    if (k->words.hold_ms && k->words.held_over_ms) {
        w->opt->note("%s: forced_preemption: the agent's hold is over", k->task);
        amp_words_log(k, "forced_preemption", "", "the hold is over; the agent is stopped", &e);
        k->words.hold_ms = k->words.held_over_ms = 0;
    }
    return false;
}

/* ---- a question for a person ---- */

static int question_send(struct amp_worker *w, struct amp_assignment *k, const char *text,
                         const char *const *suggested, char id[AMP_MSG_ID_MAX],
                         struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    char of[256];
    const char *const affected[] = {of, NULL};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_SAY};

    amp_buf_init(&line, 1 << 18);
    amp_span_copy(k->v->id, of, sizeof of);
    const struct amp_escalation_args a = {
        .type = "unknown",
        .from = w->opt->role,
        .severity = AMP_LEVEL_WARNING,
        .triggered_by = w->opt->role,
        .task_id = k->task,
        .description = text,
        .affected = affected,
        .suggested = suggested,
        .task_status = "working",
        .last_successful = "",
        .now_ms = amp_now_ms(),
    };
    if (amp_compose_escalation(&a, &line, id, err) < 0)
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    return amp_worker_step(w, k->job, &step, &lines, err);
}

static int question_take(struct amp_worker *w, struct amp_assignment *k,
                         const struct amp_control_line *l, struct amp_error *err)
{
    struct amp_words *said = &k->words;
    const char *own = amp_json_str(l->in, "text"), *suggested[SUGGESTIONS_MAX + 1] = {NULL};
    char id[AMP_MSG_ID_MAX], text[4300];
    const json_t *s;
    size_t i;

    if (!k->job && !k->ask)
        return amp_control_refuse(&said->control, l->id, AMP_CODE(unsupported_reply),
                                  "questions are asked in work on a dispatch or a review", err);
    if (said->n_questions == AMP_QUESTIONS_MAX)
        return amp_control_refuse(&said->control, l->id, AMP_CODE(control_limit),
                                  "at most 8 questions in an attempt", err);
    json_array_foreach (json_object_get(l->in, "suggestions"), i, s)
        if (i < SUGGESTIONS_MAX)
            suggested[i] = json_string_value(s);
    snprintf(text, sizeof text, "The agent %s asks: %s", w->opt->agent, own);
    if ((k->ask ? k->ask(w, k, own, suggested, id, err)
                : question_send(w, k, text, suggested, id, err)) < 0 ||
        amp_words_log(k, "question", "", text, err) < 0)
        return -1;
    struct amp_agent_question *q = &said->questions[said->n_questions++];
    snprintf(q->id, sizeof q->id, "%s", l->id);
    snprintf(q->escalation, sizeof q->escalation, "%s", id);
    w->opt->note("%s: %s", k->task, text);
    json_auto_t *more = json_pack("{s:s}", "escalation", id);
    if (!more)
        return amp_fail_memory(err);
    return amp_control_answer(&said->control, l->id, more, err);
}

/* The nack goes to the coordinator first: it ends the question, too, if this process is killed. */
static int withdrawal_send(struct amp_worker *w, struct amp_assignment *k, const char *ref,
                           const char *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {0};
    struct amp_queue_step step = {.event = AMP_QUEUE_EV_SAY};
    const struct amp_view of = {.id = amp_span_str(ref), .task = k->v->task};

    amp_buf_init(&line, 1 << 16);
    if (amp_compose_nack(&of, AMP_STAGE_FAILED, w->opt->role, AMP_HITL_WITHDRAWN, why, "", false,
                         amp_now_ms(), &line, err) < 0)
        return -1;
    const struct amp_worker_lines lines = {{amp_buf_span(&line)}, 1};
    return amp_worker_step(w, k->job, &step, &lines, err);
}

/* Whether the agent can no longer withdraw it: 1, and why; 0; -1: failure. */
static int question_is_over(struct amp_worker *w, const struct amp_agent_question *q,
                            struct amp_error *why, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec rec;

    if (q->withdrawn)
        amp_fail_text(why, AMP_NO, AMP_HITL_WITHDRAWN, "the question was withdrawn before");
    if (q->answered)
        amp_fail(why, AMP_NO, already_decided, "a person has answered the question");
    if (q->withdrawn || q->answered)
        return 1;
    amp_buf_init(&mem, AMP_QUESTION_BYTES);
    int found = amp_question_find(w->store, amp_span_str(q->escalation), &mem, &rec, err);
    if (found <= 0)
        return found;
    if (rec.decision.n && !rec.ended_ms)
        amp_fail(why, AMP_NO, already_decided, "a person has answered the question");
    else if (rec.ended_ms)
        amp_question_end_fail(&rec, why);
    return rec.decision.n > 0 || rec.ended_ms;
}

/* Withdraws the escalation. NO: it was decided meanwhile. */
static int escalation_revoke(struct amp_worker *w, struct amp_assignment *k, const char *escalation,
                             const char *reason, struct amp_error *err)
{
    const struct amp_revocation r = {.ref = amp_span_str(escalation),
                                     .task = k->v->task,
                                     .type = AMP_SPAN("unknown"),
                                     .severity = amp_span_str(amp_level_name(AMP_LEVEL_WARNING)),
                                     .why = reason,
                                     .by = w->opt->consumer,
                                     .now_ms = amp_now_ms()};
    /* Decided meanwhile: the coordinator refuses the nack, and the answer follows. */
    return withdrawal_send(w, k, escalation, reason, err) < 0
               ? -1
               : amp_question_revoke(w->store, &r, err);
}

static int withdraw_take(struct amp_worker *w, struct amp_assignment *k,
                         const struct amp_control_line *l, struct amp_error *err)
{
    struct amp_words *said = &k->words;
    struct amp_agent_question *q = NULL;
    const char *reason = amp_json_str(l->in, "reason");
    struct amp_error why;

    for (uint32_t i = 0; i < said->n_questions; i++)
        if (strcmp(said->questions[i].id, amp_json_str(l->in, "question")) == 0)
            q = &said->questions[i];
    if (!q)
        return amp_control_refuse(&said->control, l->id, AMP_CODE(unknown_ref),
                                  "no question of this attempt has this id", err);
    if (!*reason)
        reason = "the agent does not wait for the answer any more";
    int over = question_is_over(w, q, &why, err);
    if (over < 0)
        return -1;
    if (over)
        return amp_control_refuse(&said->control, l->id, why.code, why.what, err);
    int rc = k->ask ? k->unask(w, q->escalation, reason, &why)
                    : escalation_revoke(w, k, q->escalation, reason, &why);
    if (rc > 0)
        rc = amp_fail(&why, AMP_NO, already_decided, "a person has answered the question");
    if (rc < 0 && why.status == AMP_NO)
        return amp_control_refuse(&said->control, l->id, why.code, why.what, err);
    if (rc < 0) {
        *err = why;
        return -1;
    }
    q->withdrawn = true;
    w->opt->note("%s: %s withdrew its question: %s", k->task, w->opt->agent, reason);
    if (amp_words_log(k, "question_withdrawn", "", reason, err) < 0)
        return -1;
    json_auto_t *more = json_pack("{s:s, s:b}", "escalation", q->escalation, "withdrawn", 1);
    if (!more)
        return amp_fail_memory(err);
    return amp_control_answer(&said->control, q->id, more, err) < 0
               ? -1
               : amp_control_answer(&said->control, l->id, more, err);
}

/* Looks whether a person has decided. */
static int questions_look(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};

    if (!k->words.n_questions || k->words.looked_ms == w->pauses.looked_ms)
        return 0;
    k->words.looked_ms = w->pauses.looked_ms;
    amp_buf_init(&mem, AMP_QUESTION_BYTES);
    for (uint32_t i = 0; i < k->words.n_questions; i++) {
        struct amp_agent_question *q = &k->words.questions[i];
        struct amp_question_rec rec;
        if (q->answered || q->withdrawn)
            continue;
        int found = amp_question_find(w->store, amp_span_str(q->escalation), &mem, &rec, err);
        if (found < 0)
            return -1;
        if (!found || !rec.decision.n)
            continue;
        json_auto_t *more =
            json_pack("{s:s, s:s%, s:s%}", "escalation", q->escalation, "decision", rec.decision.p,
                      rec.decision.n, "note", rec.note.p ? rec.note.p : "", rec.note.n);
        if (!more)
            return amp_fail_memory(err);
        q->answered = true;
        if (amp_control_answer(&k->words.control, q->id, more, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- its own task and inbox ---- */

static int task_answer(struct amp_worker *w, struct amp_assignment *k, const char *id,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    AMP_TASK struct amp_task t = {0};
    bool found;

    amp_buf_init(&text, 32u << 20);
    if (amp_task_load(w->store, k->v->task, &t, &found, err) < 0)
        return -1;
    if (!found)
        return amp_control_refuse(&k->words.control, id, AMP_CODE(unknown_ref),
                                  "the coordinator has no record of the task", err);
    if (amp_task_write(&t, &text, err) < 0)
        return -1;
    json_t *task = amp_json_load(amp_buf_span(&text), err);
    if (!task)
        return -1;
    json_auto_t *more = json_pack("{s:o}", "task", task);
    if (!more)
        return amp_fail_memory(err);
    return amp_control_answer(&k->words.control, id, more, err);
}

static int message_list(void *ctx, const struct amp_inbox_msg *m)
{
    struct amp_span bare;
    json_t *list = ctx,
           *message = amp_line_message(m->line, &bare, NULL) < 0 ? NULL : amp_json_load(bare, NULL);

    if (message)
        json_array_append_new(list, message);
    return json_array_size(list) >= INBOX_MAX;
}

static int inbox_answer(struct amp_worker *w, struct amp_assignment *k, const char *id,
                        struct amp_error *err)
{
    json_auto_t *more = json_pack("{s:[]}", "inbox");

    if (!more)
        return amp_fail_memory(err);
    if (amp_inbox_each(w->store, amp_span_str(w->opt->agent), message_list,
                       json_object_get(more, "inbox"), err) < 0)
        return -1;
    return amp_control_answer(&k->words.control, id, more, err);
}

/* ---- lines ---- */

struct reading {
    struct amp_worker *w;
    struct amp_assignment *k;
};

static int progress_take(struct amp_worker *w, struct amp_assignment *k, const json_t *in,
                         struct amp_error *err)
{
    const json_t *percent = json_object_get(in, "percent");
    char detail[4200], part[16] = "";

    if (percent)
        snprintf(part, sizeof part, "%d%%: ", (int)json_integer_value(percent));
    snprintf(detail, sizeof detail, "%s%s", part, amp_json_str(in, "detail"));
    w->opt->progress("%s: %s: %s", k->task, w->opt->agent, detail);
    if (k->progress && k->progress(w, k, in, err) < 0)
        return -1;
    return json_array_size(k->words.log) >= LOG_MAX
               ? 0
               : amp_words_log(k, "progress", amp_json_str(in, "file"), detail, err);
}

static int hold_take(struct amp_assignment *k, const struct amp_control_line *l,
                     struct amp_error *err)
{
    int64_t max = json_integer_value(json_object_get(l->in, "max_ms"));
    char until[AMP_TIME_MAX], detail[4300];

    /* Once it is asked to stop, it can put that off only by what it had begun before. */
    if (k->words.asked)
        return amp_control_refuse(&k->words.control, l->id, AMP_CODE(preempting),
                                  "the agent is asked to stop at its next safe point", err);
    k->words.hold_ms = amp_mono_ms() + max;
    amp_time_format(amp_now_ms() + max, until);
    snprintf(detail, sizeof detail, "for %lld ms: %s", (long long)max,
             amp_json_str(l->in, "reason"));
    if (json_array_size(k->words.log) < LOG_MAX && amp_words_log(k, "hold", "", detail, err) < 0)
        return -1;
    json_auto_t *more = json_pack("{s:s}", "until", until);
    if (!more)
        return amp_fail_memory(err);
    return amp_control_answer(&k->words.control, l->id, more, err);
}

/* Repeated safe points give no more time. */
static void safe_take(const struct amp_worker *w, struct amp_assignment *k, int64_t now)
{
    if (w->ask.what == AMP_ASK_NOTHING || k->words.safe)
        return;
    k->words.safe = true;
    k->words.act_ms = now + w->ask.act_ms;
}

/* The end of a section is no safe point, but one may follow. */
static void release_take(const struct amp_worker *w, struct amp_assignment *k, int64_t now)
{
    if (k->words.asked && k->words.hold_ms && !k->words.safe)
        k->words.act_ms = now + w->ask.act_ms;
    k->words.hold_ms = k->words.held_over_ms = 0;
}

/* A step that the agent cannot take from its present state changes nothing. */
static int unless_illegal(int rc, const struct amp_error *err)
{
    return rc < 0 && amp_code_is(err->code, illegal_transition) ? 0 : rc;
}

static int state_start(struct amp_worker *w, const char *task, struct amp_error *err)
{
    return unless_illegal(
        amp_agent_step(w->store, w->opt->agent, AMP_AGENT_EV_START, task, amp_now_ms(), err), err);
}

static int waiting_take(struct amp_worker *w, struct amp_assignment *k,
                        const struct amp_control_line *l, struct amp_error *err)
{
    bool resource = strcmp(amp_json_str(l->in, "for"), "resource") == 0;
    const char *detail = amp_json_str(l->in, "detail");
    int64_t limit = w->opt->resource_ms > 0 ? w->opt->resource_ms
                                            : amp_agent_limit_ms(AMP_AGENT_WAITING_RESOURCES);

    /* A second line does not prolong the time. */
    if (k->words.waits)
        return 0;
    k->words.waits = true;
    k->words.waits_to_ms = resource ? amp_mono_ms() + limit : 0;
    if (amp_words_log(k, resource ? "waiting_resource" : "waiting", "", detail, err) < 0)
        return -1;
    return unless_illegal(amp_agent_step_within(w->store, w->opt->agent,
                                                resource ? AMP_AGENT_EV_LACK : AMP_AGENT_EV_WAIT,
                                                limit, amp_now_ms(), err),
                          err);
}

static int running_take(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    if (!k->words.waits)
        return 0;
    k->words.waits = false;
    k->words.waits_to_ms = 0;
    return state_start(w, k->task, err);
}

int64_t amp_amount_read(const json_t *n, double scale)
{
    return amp_usage_amount(json_number_value(n), scale);
}

void amp_usage_read(const json_t *in, struct amp_worker_usage *u)
{
    const json_t *cost = json_object_get(in, "cost_usd");

    if (!cost)
        cost = json_object_get(in, "total_cost_usd");
    u->input_tokens = amp_amount_read(json_object_get(in, "input_tokens"), 1);
    u->output_tokens = amp_amount_read(json_object_get(in, "output_tokens"), 1);
    u->cost_micros = amp_amount_read(cost, 1e6);
}

bool amp_session_is_safe(const char *session)
{
    size_t n = strlen(session);

    return n > 0 && n <= 256 && strchr("._:-", session[0]) == NULL &&
           strspn(session, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-") ==
               n;
}

static int limit_take(struct amp_worker *w, struct amp_assignment *k, const json_t *in,
                      struct amp_error *err)
{
    int64_t sec = json_integer_value(json_object_get(in, "retry_after_sec"));
    char until[AMP_TIME_MAX];

    k->words.limited = true;
    k->words.limit_ms = amp_now_ms() + sec * 1000;
    w->left.limit_ms = k->words.limit_ms;
    amp_time_format(k->words.limit_ms, until);
    w->opt->note("%s: %s reached a usage limit, until %s", k->task, w->opt->agent, until);
    return amp_words_log(k, "usage_limit", "", until, err);
}

/* Takes lines about the agent's process: what it used, and how it is stopped and resumed. */
static int process_take(struct amp_worker *w, struct amp_assignment *k,
                        const struct amp_control_line *l, struct amp_error *err)
{
    switch (l->kind) {
    case AMP_CONTROL_SIGNAL:
        k->words.signals = true;
        return 0;
    case AMP_CONTROL_WAITING:
        return waiting_take(w, k, l, err);
    case AMP_CONTROL_RUNNING:
        return running_take(w, k, err);
    case AMP_CONTROL_USAGE:
        amp_usage_read(l->in, &w->left.usage);
        return 0;
    case AMP_CONTROL_LIMIT:
        return limit_take(w, k, l->in, err);
    case AMP_CONTROL_SESSION:
        snprintf(w->left.session, sizeof w->left.session, "%s", amp_json_str(l->in, "session"));
        return 0;
    default:
        return 0;
    }
}

static int line_take(void *ctx, const struct amp_control_line *l, struct amp_error *err)
{
    const struct reading *r = ctx;
    struct amp_worker *w = r->w;
    struct amp_assignment *k = r->k;
    int64_t now = amp_mono_ms();
    json_auto_t *more = NULL;

    if (now - k->words.beat_ms >= BEAT_MS) { /* every line is a sign of life */
        k->words.beat_ms = now;
        if (amp_agent_seen(w->store, w->opt->agent, amp_now_ms(), err) < 0)
            return -1;
    }
    int done = k->line ? k->line(w, k, l, err) : 0;
    if (done)
        return done < 0 ? -1 : 0;
    switch (l->kind) {
    case AMP_CONTROL_PROGRESS:
        if (progress_take(w, k, l->in, err) < 0)
            return -1;
        break;
    case AMP_CONTROL_SAFE:
        safe_take(w, k, now);
        more = json_pack("{s:b}", "stop", w->halted || k->words.safe);
        if (!more)
            return amp_fail_memory(err);
        break;
    case AMP_CONTROL_HOLD:
        return hold_take(k, l, err);
    case AMP_CONTROL_RELEASE:
        release_take(w, k, now);
        break;
    case AMP_CONTROL_QUESTION:
        return question_take(w, k, l, err);
    case AMP_CONTROL_WITHDRAW:
        return withdraw_take(w, k, l, err);
    case AMP_CONTROL_TASK:
        return task_answer(w, k, l->id, err);
    case AMP_CONTROL_INBOX:
        return inbox_answer(w, k, l->id, err);
    case AMP_CONTROL_REFUSED:
        if (amp_forgeries_refused(w, k, amp_json_str(l->in, "detail"), err) < 0)
            return -1;
        break;
    case AMP_CONTROL_CHECKPOINT:
    case AMP_CONTROL_DELEGATE:
    case AMP_CONTROL_ERROR:
        return amp_control_refuse(&k->words.control, l->id, AMP_CODE(unsupported_reply),
                                  "the message of this work is not the TASK of a session", err);
    case AMP_CONTROL_HEARTBEAT:
        break;
    default:
        if (process_take(w, k, l, err) < 0)
            return -1;
    }
    return amp_control_answer(&k->words.control, l->id, more, err);
}

/* The first refused line of each code is logged; amp_words_end notes their number. */
static int line_refuse(void *ctx, struct amp_span line, const char *id, const char *code,
                       const char *why, struct amp_error *err)
{
    const struct reading *r = ctx;
    struct amp_words *said = &r->k->words;
    AMP_BUF struct amp_buf record = {0};
    char what[600], claim[AMP_FORGERY_WHY];
    const struct amp_line_place at = {.tool = r->w->opt->tool, .line = 1, .now_ms = amp_now_ms()};

    int claims = amp_code_is(code, schema_violation)
                     ? amp_forgeries_control(r->w, r->k, line, claim, err)
                     : 0;
    if (claims)
        return claims < 0 ||
                       amp_control_refuse(&said->control, id, AMP_CODE(bad_sender), claim, err) <
                           0 ||
                       (json_array_size(said->log) < LOG_MAX &&
                        amp_words_log(r->k, "control_refused", "", claim, err) < 0)
                   ? -1
                   : 0;
    if (amp_control_refuse(&said->control, id, code, why, err) < 0)
        return -1;
    for (uint32_t i = 0; i < said->n_codes; i++)
        if (strcmp(said->codes[i], code) == 0)
            return 0;
    if (said->n_codes == sizeof said->codes / sizeof *said->codes)
        return 0;
    snprintf(said->codes[said->n_codes++], sizeof said->codes[0], "%s", code);
    snprintf(what, sizeof what, "%s: a line of %s in AMP_CONTROL was refused: %.300s", r->k->task,
             r->w->opt->agent, why);
    r->w->opt->note("%s: %s", code, what);
    const struct amp_finding f = {.severity = AMP_SEV_ERROR,
                                  .type = AMP_SPAN("control"),
                                  .id = r->k->v->id,
                                  .code = code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "control",
                                  .message = what,
                                  .found = "",
                                  .expected = ""};
    amp_buf_init(&record, 1 << 16);
    return amp_finding_record(&f, &at, &record, err) < 0 ||
                   amp_store_error_log(r->w->store, amp_buf_span(&record), err) < 0 ||
                   amp_words_log(r->k, "control_refused", "", what, err) < 0
               ? -1
               : 0;
}

int amp_words_read(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    struct reading r = {w, k};
    const struct amp_control_calls calls = {line_take, line_refuse, &r};

    return amp_control_read(&k->words.control, &calls, amp_mono_ms(), err) < 0 ||
                   questions_look(w, k, err) < 0
               ? -1
               : 0;
}

/* An agent whose process has ended does not wait any more. */
static int wait_end(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    if (!k->words.waits)
        return 0;
    return k->words.out_of_time
               ? unless_illegal(amp_agent_expire(w->store, w->opt->agent, amp_now_ms(), err), err)
               : state_start(w, k->task, err);
}

int amp_words_end(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err)
{
    struct amp_control *c = &k->words.control;
    char detail[120];

    if (amp_words_read(w, k, err) < 0 || wait_end(w, k, err) < 0)
        return -1;
    if (!c->refused)
        return 0;
    snprintf(detail, sizeof detail, "%lld lines of AMP_CONTROL were refused",
             (long long)c->refused);
    return amp_words_log(k, "control_refused", "", detail, err);
}
