/*
 * Heartbeats and progress of a TASK (AOP §6). Every line of the agent's control FIFO is a sign of
 * life. HEARTBEAT events are for real ones only, at most one in each interval; a PROGRESS_UPDATE
 * follows another one after at least 30 s, and what was reported between them is sent then.
 */
#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/protocol/aop/event.h"
#include "message/protocol/compose/json.h"
#include "message/protocol/delivery.h"
#include "work/aop/run/private.h"
#include "json/text.h"

#define EVENT_MAX (64u << 10)

static int64_t interval_ms(const struct amp_tasking *t)
{
    double ms = t->policy.heartbeat_seconds * 1000;
    return ms >= 1e15 ? INT64_C(1000000000000000) : ms >= 1 ? (int64_t)ms : 1;
}

static void wait_lower(int64_t *wait_ms, int64_t left)
{
    if (left < 0)
        left = 0;
    if (*wait_ms < 0 || *wait_ms > left)
        *wait_ms = left;
}

void amp_beats_begin(struct amp_tasking *t)
{
    struct amp_beats *b = &t->beats;
    int64_t now = amp_mono_ms();
    bool first = b->last_ms == 0;

    b->last_ms = now;
    b->missed = 0;
    b->beating = b->warned = false;
    t->phases.n_asked = 0;
    if (!first)
        return;
    b->percent = b->eta_seconds = -1;
    /* The last line of an earlier process or attempt is not known here: it may be a moment old. */
    if ((t->job && t->job->attempts > 1) || amp_attempt_of(t->v) > 1)
        b->sent_ms = b->progress_ms = now;
}

/* ---- events ---- */

static int event_send(struct amp_tasking *t, bool progress, struct amp_error *err)
{
    struct amp_beats *b = &t->beats;
    AMP_BUF struct amp_buf line = {.max = EVENT_MAX};
    const struct amp_aop_about about = {amp_span_str(t->session), t->v->task, amp_now_ms()};
    const struct amp_aop_progress p = {.agent = amp_span_str(t->agent),
                                       .percentage = b->percent < 0 ? 0 : (double)b->percent,
                                       .phase = amp_span_str(b->phase),
                                       .checkpoint = amp_span_str(b->checkpoint),
                                       .message = amp_span_str(b->note),
                                       .eta_seconds = b->eta_seconds};

    if ((progress ? amp_aop_progress_update : amp_aop_heartbeat)(&about, &p, &line, err) < 0 ||
        amp_tasking_emit(t, amp_buf_span(&line), err) < 0)
        return -1;
    if (progress) {
        b->progress_ms = amp_mono_ms();
        b->progress_wall_ms = about.now_ms;
        b->withheld = false;
    } else {
        b->sent_ms = amp_mono_ms();
        b->beating = false;
    }
    return 0;
}

static int progress_look(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err)
{
    const struct amp_beats *b = &t->beats;
    int64_t due = b->progress_ms ? b->progress_ms + AMP_AOP_PROGRESS_LEAST_MS : 0;

    if (!b->withheld)
        return 0;
    if (amp_mono_ms() >= due)
        return event_send(t, true, err);
    wait_lower(wait_ms, due - amp_mono_ms());
    return 0;
}

static int beat_look(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err)
{
    const struct amp_beats *b = &t->beats;
    int64_t due = b->sent_ms ? b->sent_ms + interval_ms(t) : 0;

    if (!b->beating || !t->policy.heartbeat.value)
        return 0;
    if (amp_mono_ms() >= due)
        return event_send(t, false, err);
    wait_lower(wait_ms, due - amp_mono_ms());
    return 0;
}

/* ---- lines ---- */

void amp_beats_text(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text);
    amp_utf8_clean(to);
}

static void progress_take(struct amp_tasking *t, const json_t *in)
{
    struct amp_beats *b = &t->beats;
    const json_t *percent = json_object_get(in, "percent"),
                 *eta = json_object_get(in, "eta_seconds");

    if (percent)
        b->percent = json_integer_value(percent);
    b->eta_seconds = eta ? json_integer_value(eta) : -1;
    if (*amp_json_str(in, "phase"))
        amp_beats_text(b->phase, sizeof b->phase, amp_json_str(in, "phase"));
    if (*amp_json_str(in, "checkpoint"))
        amp_beats_text(b->checkpoint, sizeof b->checkpoint, amp_json_str(in, "checkpoint"));
    amp_beats_text(b->note, sizeof b->note, amp_json_str(in, "detail"));
    b->withheld = true;
}

int amp_beats_line(struct amp_tasking *t, const struct amp_control_line *l, struct amp_error *err)
{
    struct amp_beats *b = &t->beats;
    int64_t wait = -1;

    b->last_ms = amp_mono_ms();
    b->missed = 0;
    b->warned = false;
    b->beating = true;
    if (l->kind == AMP_CONTROL_PROGRESS)
        progress_take(t, l->in);
    return progress_look(t, &wait, err) < 0 || beat_look(t, &wait, err) < 0 ? -1 : 0;
}

/* ---- silence ---- */

static int silence_report(struct amp_tasking *t, int64_t silent_ms, struct amp_error *err)
{
    struct amp_beats *b = &t->beats;
    long long sec = (long long)silent_ms / 1000;

    b->warned = true;
    switch ((enum amp_aop_on_silence)t->policy.on_heartbeat_failure.value) {
    case AMP_AOP_SILENCE_ABORT:
        amp_tasking_fail(t, AMP_CODE(E_HEARTBEAT_FAILURE), true,
                         "no sign of life for %lld s: %lld beats were missed", sec,
                         (long long)b->missed);
        return 0;
    case AMP_AOP_SILENCE_WARN:
        return amp_tasking_warn(t, err,
                                "E_HEARTBEAT_FAILURE: no sign of life for %lld s: %lld beats were "
                                "missed; the work goes on",
                                sec, (long long)b->missed);
    case AMP_AOP_SILENCE_CONTINUE:
        t->w->opt->note("%s: no sign of life for %lld s; the work goes on", t->of.task, sec);
        break;
    }
    return 0;
}

static int silence_look(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err)
{
    struct amp_beats *b = &t->beats;
    int64_t now = amp_mono_ms(), every = interval_ms(t), silent = now - b->last_ms;
    double most = (double)every * (double)t->policy.heartbeat_missed_most.value;

    if (!t->policy.heartbeat.value || !(most >= 1))
        return 0;
    b->missed = silent / every;
    if (b->warned || t->failing)
        return 0;
    if (amp_aop_lost(&t->policy, b->last_ms, now))
        return silence_report(t, silent, err);
    wait_lower(wait_ms, most < 1e15 ? (int64_t)most + 1 - silent : every);
    return 0;
}

int amp_beats_turn(struct amp_tasking *t, int64_t *wait_ms, struct amp_error *err)
{
    return amp_phases_turn(t, err) < 0 || amp_expense_turn(t, wait_ms, err) < 0 ||
                   progress_look(t, wait_ms, err) < 0 || beat_look(t, wait_ms, err) < 0 ||
                   silence_look(t, wait_ms, err) < 0
               ? -1
               : 0;
}

int amp_beats_end(struct amp_tasking *t, struct amp_error *err)
{
    int64_t wait = -1;

    return progress_look(t, &wait, err);
}
