/*
 * What is due of a message: nobody acknowledged it, it expired, or what became of it is to be
 * decided. Each step is one commit, which holds against the record as it was looked at; whoever
 * loses the race looks again. A crash between two steps leaves a record that is due, so the next
 * sweep goes on from there.
 */
#include <stdio.h>

#include "message/operation/retry.h"
#include "message/settle/step.h"

#define STEPS_MAX 16

static int record_load(struct amp_overdue *o)
{
    struct amp_store_rec row;
    if (amp_store_get(o->sw->store, AMP_MESSAGE_KIND, o->id, &row, o->sw->err) < 0)
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

/* A step that tells the sender or a person; 1. */
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
static bool is_told_later(const struct amp_overdue *o)
{
    const struct amp_retry_rules *rules = o->sw->opt->retry;
    enum amp_protocol p = amp_protocol_find(o->r.protocol);
    if (amp_delivery_terms(&o->r)->tells == AMP_TELLS_NACK || !is_decided_on(o))
        return false;
    return amp_delivery_terms(&o->r)->tells == AMP_TELLS_NOTICE ||
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
                 "sla_breach: %.*s accepted %.*s of %s and told no outcome within %lld s, "
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
    o->st.told = is_told_later(o);
    return end_commit(o, AMP_DELIVERY_EV_TIMEOUT, AMP_STAGE_TIMED_OUT,
                      accepted && overdue ? overdue : "ack_timeout", what);
}

static int message_expire(struct amp_overdue *o)
{
    char what[200], at[AMP_TIME_MAX];
    amp_time_format(o->r.expires_ms, at);
    snprintf(what, sizeof(what), "Its time to live ended at %s and nobody had taken it up", at);
    o->r.given_up = AMP_SPAN("ttl_expired");
    return end_commit(o, AMP_DELIVERY_EV_EXPIRE, AMP_STAGE_FAILED, "ttl_expired", what);
}

/* AMP: the holder of work that was read gave no sign of life. This is reported once, until the next
 * sign. While the task is suspended, no sign is expected. */
static int holder_lose(struct amp_overdue *o)
{
    char what[500], seen[AMP_TIME_MAX];
    int suspended = amp_tell_suspended(o->sw, o->r.task);
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
        return o->r.given_up.n > 0 ? amp_bury_letter(o) : amp_attempt_decide(o);
    case AMP_DELIVERY_RETRYING:
        return late && o->r.departed_ms == 0 ? message_expire(o) : amp_attempt_depart(o);
    case AMP_DELIVERY_FULFILLED:
        return amp_bury_withdraw(o);
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
