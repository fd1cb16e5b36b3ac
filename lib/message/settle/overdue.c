/*
 * What is due of a message: nobody acknowledged it, it expired, or what became of it is to be
 * decided. Each step is one commit, which holds against the record as it was looked at; whoever
 * loses the race looks again. A crash between two steps leaves a record that is due, so the next
 * sweep goes on from there.
 */
#include <stdio.h>
#include <string.h>

#include "message/dead/dead.h"
#include "message/dead/withdraw.h"
#include "message/operation/retry.h"
#include "message/settle/step.h"

#define STEPS_MAX 16

static int record_load(struct amp_overdue *o)
{
    struct amp_store_rec row;
    if (amp_store_get(o->sw->store, AMP_KEY(AMP_MESSAGE_KIND, o->id), &row, o->sw->err) < 0)
        return -1;
    o->rev = row.rev;
    o->r.found = row.found;
    return row.found ? amp_message_parse(&row, &o->sw->mem, &o->r, o->sw->err) : 0;
}

/* Another attempt, or a dead letter, follows. */
static bool is_decided_on(const struct amp_overdue *o)
{
    return o->r.state == AMP_DELIVERY_SENT || amp_delivery_terms(&o->r)->work_is_ack;
}

/* AOP §6.1: so many signs of life were missed that the agent counts as lost. */
static bool is_silent(const struct amp_overdue *o)
{
    return o->r.beat_ms > 0 && o->sw->now_ms < o->r.until_ms;
}

/* What stands before the recipient, where the message names one. */
static const char *by_of(const struct amp_overdue *o)
{
    return o->r.to.n > 0 ? " by " : "";
}

static void silence_describe(const struct amp_overdue *o, char *what, size_t size)
{
    snprintf(what, size, "E_HEARTBEAT_FAILURE: no sign of life of %.*s%s%.*s for %lld s and longer",
             (int)(o->id.n < 200 ? o->id.n : 200), o->id.p, by_of(o),
             (int)(o->r.to.n < 64 ? o->r.to.n : 64), o->r.to.p, (long long)(o->r.beat_ms / 1000));
}

/* A step that notifies the sender or a person; 1. */
static int end_commit(struct amp_overdue *o, enum amp_delivery_event event,
                      enum amp_ack_stage stage, const char *code, const char *what)
{
    o->st.event = event;
    o->end.stage = stage;
    o->end.code = code;
    o->end.what = what;
    o->end.level = o->sw->opt->severity;
    return amp_step_commit(o) < 0 ? -1 : 1;
}

/* Its time runs on; the next sign of life is followed by others that are due. */
static int silence_warn(struct amp_overdue *o)
{
    char what[400];
    silence_describe(o, what, sizeof(what));
    return end_commit(o, AMP_DELIVERY_EV_SILENT, AMP_STAGE_TIMED_OUT, "E_HEARTBEAT_FAILURE", what);
}

/* While another attempt follows, nobody is notified of the timeout, except a producer that gets a
 * nack each time. A producer that gets notices is notified of the dead letter. */
static bool is_notified_later(const struct amp_overdue *o)
{
    const struct amp_retry_rules *rules = o->sw->opt->retry;
    enum amp_protocol p = amp_protocol_find(o->r.protocol);
    if (amp_delivery_terms(&o->r)->notifies == AMP_NOTIFIES_NACK || !is_decided_on(o))
        return false;
    return amp_delivery_terms(&o->r)->notifies == AMP_NOTIFIES_NOTICE ||
           (rules && rules->of[p].budget > 0);
}

static int message_time_out(struct amp_overdue *o)
{
    char what[512], sent[AMP_TIME_MAX];
    bool accepted = o->r.state != AMP_DELIVERY_SENT && o->r.sla_ms > 0;
    bool call = accepted && amp_delivery_terms(&o->r)->begins_read;
    struct amp_span who = o->r.holder.n > 0 ? o->r.holder : o->r.to;
    amp_time_format(o->r.sent_ms, sent);
    if (o->silent)
        silence_describe(o, what, sizeof(what));
    else if (call)
        snprintf(what, sizeof(what), "No result of %.*s within %lld ms",
                 (int)(o->id.n < 200 ? o->id.n : 200), o->id.p, (long long)o->r.sla_ms);
    else if (accepted)
        snprintf(what, sizeof(what),
                 "sla_breach: %.*s accepted %.*s of %s and reported no outcome within %lld s, "
                 "message %.*s",
                 who.n > 0 ? (int)(who.n < 64 ? who.n : 64) : 8, who.n > 0 ? who.p : "somebody",
                 (int)(o->r.type.n < 64 ? o->r.type.n : 64), o->r.type.p, sent,
                 (long long)(o->r.sla_ms / 1000), (int)(o->id.n < 200 ? o->id.n : 200), o->id.p);
    else
        snprintf(what, sizeof(what), "No %s %.*s%s%.*s: sent at %s, due within %g s, message %.*s",
                 amp_delivery_terms(&o->r)->work_is_ack ? "RESPONSE to" : "acknowledgement of",
                 (int)(o->r.type.n < 64 ? o->r.type.n : 64), o->r.type.p, by_of(o),
                 (int)(o->r.to.n < 64 ? o->r.to.n : 64), o->r.to.p, sent,
                 (double)o->r.ack_timeout_ms / 1e3, (int)(o->id.n < 200 ? o->id.n : 200), o->id.p);
    const char *overdue = amp_delivery_terms(&o->r)->overdue_code;
    o->st.notified = is_notified_later(o);
    return end_commit(o, AMP_DELIVERY_EV_TIMEOUT, AMP_STAGE_TIMED_OUT,
                      accepted && overdue ? overdue : "ack_timeout", what);
}

static int message_expire(struct amp_overdue *o)
{
    char what[200], at[AMP_TIME_MAX];
    amp_time_format(o->r.expires_ms, at);
    snprintf(what, sizeof(what), "Its time to live ended at %s, before it was taken", at);
    o->r.given_up = AMP_SPAN("ttl_expired");
    return end_commit(o, AMP_DELIVERY_EV_EXPIRE, AMP_STAGE_FAILED, "ttl_expired", what);
}

/* AMP: the holder of work that was read gave no sign of life. This is reported once, until the next
 * sign. While the task is suspended, no sign is expected. */
static int holder_lose(struct amp_overdue *o)
{
    char what[500], seen[AMP_TIME_MAX];
    int suspended = amp_notify_suspended(o->sw, o->r.task);
    if (suspended < 0)
        return -1;
    o->st.event = AMP_DELIVERY_EV_ALIVE;
    if (suspended)
        return amp_step_commit(o) < 0 ? -1 : 1;
    amp_time_format(o->r.seen_ms, seen);
    snprintf(what, sizeof(what),
             "Agent %.*s, at work on %.*s, gave no sign of life for %lld min: last seen at %s, "
             "message %.*s",
             (int)(o->r.holder.n < 64 ? o->r.holder.n : 64), o->r.holder.p,
             (int)(o->r.task.n < 64 ? o->r.task.n : 64), o->r.task.p,
             (long long)(o->sw->opt->silence_ms / 60000), seen,
             (int)(o->id.n < 200 ? o->id.n : 200), o->id.p);
    o->silent = true;
    return end_commit(o, AMP_DELIVERY_EV_SILENT, AMP_STAGE_TIMED_OUT, "heartbeat_timeout", what);
}

/* ---- dead letters: of what is not sent again, unless one of its attempts came through ---- */

/* Whether there is nothing to bury: the message that nobody acknowledged arrived after all, or what
 * failed or expired was done. */
static int letter_is_void(struct amp_overdue *o, bool *void_)
{
    if (o->r.state == AMP_DELIVERY_TIMED_OUT && o->r.failure.n == 0)
        return amp_step_arrived(o, void_);
    *void_ = amp_record_has_stage(&o->r, "FULFILLED");
    return 0;
}

static int letter_withdraw(struct amp_overdue *o)
{
    return amp_dead_chain_withdraw(o->sw->store, o->id, o->sw->opt->actor, o->sw->err) < 0
               ? -1
               : amp_step_settle(o);
}

/* What the record has of a message that its protocol does not read. */
static void letter_describe(struct amp_dead_letter *d, const struct amp_message_rec *r)
{
    d->protocol = amp_protocol_name(amp_protocol_find(r->protocol));
    d->type = r->type;
    d->from = r->from;
    d->to = r->to;
    d->task = r->task;
    d->correlation = r->correlation;
    d->content_type = AMP_SPAN("text/plain");
    d->created_ms = r->sent_ms;
}

static int letter_make(struct amp_overdue *o)
{
    struct amp_dead_letter d = {0};
    struct amp_view v;
    char code[128], given[64], why[300];
    bool buried, nothing;
    if (letter_is_void(o, &nothing) < 0)
        return -1;
    if (nothing)
        return letter_withdraw(o);
    /* A crash came after the letter of this end. */
    if (amp_dead_is_open(o->sw->store, o->id, o->r.due_ms, &buried, o->sw->err) < 0)
        return -1;
    if (buried)
        return amp_step_settle(o);
    int valid = amp_step_read(o, o->r.line, &v);
    if (valid < 0)
        return -1;
    amp_step_code(&o->r, code);
    amp_span_copy(o->r.given_up, given, sizeof(given));
    bool terminal = strcmp(given, "terminal_error") == 0;
    snprintf(why, sizeof(why), "%s after %lld %s; the last: %s", given,
             (long long)amp_step_attempts(&o->r),
             amp_step_attempts(&o->r) == 1 ? "attempt" : "attempts", code);
    if (valid)
        amp_dead_from_view(&d, &v);
    else
        letter_describe(&d, &o->r);
    d.line = o->r.line;
    d.msg_id = o->id;
    d.code = terminal ? code : given;
    d.last_code = code;
    d.settled = true;
    d.why = why;
    d.route = "";
    d.retryable = strcmp(given, "retries_exhausted") == 0;
    d.failed_ms = o->sw->now_ms;
    d.attempts = amp_step_attempts(&o->r);
    d.before = o->r.tries;
    d.n_before = o->r.n_tries;
    if (amp_dead_add(o->sw->store, &d, o->sw->opt->actor, (struct amp_span){"", 0}, NULL,
                     o->sw->err) < 0)
        return -1;
    struct amp_metric_labels l = {
        .agent = d.to, .code = amp_span_str(d.code), .protocol = d.protocol};
    amp_metrics_add(o->sw->opt->metrics, AMP_METRIC_DEAD_LETTERS, &l, 1);
    return 1; /* what is due of it now is seen to be done */
}

/* One step: 1 when the next may follow at once, 0 when nothing is due any more. */
static int step_choose(struct amp_overdue *o)
{
    bool taken_up = o->r.state == AMP_DELIVERY_READ || o->r.holder.n > 0;
    bool late = !taken_up && o->r.expires_ms > 0 && o->r.expires_ms <= o->sw->now_ms;
    o->emits = false;
    switch (o->r.state) {
    case AMP_DELIVERY_SENT:
    case AMP_DELIVERY_RECEIVED:
    case AMP_DELIVERY_READ:
        o->silent = !late && is_silent(o);
        return late                           ? message_expire(o)
               : o->silent && o->r.beat_warns ? silence_warn(o)
                                              : message_time_out(o);
    case AMP_DELIVERY_REJECTED:
    case AMP_DELIVERY_FAILED:
    case AMP_DELIVERY_TIMED_OUT:
        return o->r.given_up.n > 0 ? letter_make(o) : amp_attempt_decide(o);
    case AMP_DELIVERY_RETRYING:
        return late && o->r.departed_ms == 0 ? message_expire(o) : amp_attempt_depart(o);
    case AMP_DELIVERY_FULFILLED:
        return letter_withdraw(o);
    default: /* nobody waits for it */
        return 0;
    }
}

int amp_overdue_look(struct amp_sweep *sw, struct amp_span id)
{
    int rc = 1;
    for (int i = 0; rc > 0 && i < STEPS_MAX; i++) {
        struct amp_overdue o = {.sw = sw, .id = id};
        if (record_load(&o) < 0)
            return -1;
        if (!o.r.found)
            return 0;
        int64_t lost = amp_record_lost_at(&o.r, sw->opt->silence_ms);
        if (o.r.due_ms > 0 && o.r.due_ms <= sw->now_ms)
            rc = step_choose(&o);
        else if (lost > 0 && lost <= sw->now_ms)
            rc = holder_lose(&o);
        else
            return 0;
    }
    return rc < 0 ? -1 : 0;
}
