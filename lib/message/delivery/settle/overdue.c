/*
 * The steps that are due for a message: it was not acknowledged, it expired, or another attempt or
 * a dead letter follows. Each step is one commit; if the record has changed since it was loaded, it
 * is loaded again. After a crash between two steps the record is still due, so the next sweep
 * continues. An escalation is composed first and committed together with the transition, so a crash
 * leaves both or neither.
 */
#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/dead/dead.h"
#include "message/delivery/dead/withdraw.h"
#include "message/delivery/facts.h"
#include "message/delivery/operation/retry.h"
#include "message/delivery/settle/step.h"
#include "message/protocol/delivery.h"
#include "message/protocol/work.h"

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
    return o->r.state == AMP_DELIVERY_SENT ||
           amp_delivery_of(amp_protocol_find(o->r.protocol))->work_is_ack;
}

/* AOP §6.1: a sign of life is overdue, so the agent counts as lost. */
static bool is_silent(const struct amp_overdue *o)
{
    return o->r.beat_ms > 0 && o->sw->now_ms < o->r.until_ms;
}

/* " by " before the recipient, if the message names one. */
static const char *by_of(const struct amp_overdue *o)
{
    return o->r.to.n > 0 ? " by " : "";
}

static void silence_describe(const struct amp_overdue *o, char *what, size_t size)
{
    snprintf(what, size, "E_HEARTBEAT_FAILURE: no sign of life of %.*s%s%.*s for %lld s and longer",
             AMP_CLIP(o->id, 200), by_of(o), AMP_CLIP(o->r.to, 64),
             (long long)(o->r.beat_ms / 1000));
}

/* Commits a step that notifies the sender or a person; 1. */
static int end_commit(struct amp_overdue *o, uint8_t event, enum amp_ack_stage stage,
                      const char *code, const char *what)
{
    o->st.event = event;
    o->end.stage = stage;
    o->end.code = code;
    o->end.what = what;
    o->end.level = o->sw->opt->severity;
    return amp_step_commit(o) < 0 ? -1 : 1;
}

/* Reports a missing sign of life; the message keeps its deadline. */
static int silence_warn(struct amp_overdue *o)
{
    char what[400];
    silence_describe(o, what, sizeof(what));
    return end_commit(o, AMP_DELIVERY_EV_SILENT, AMP_STAGE_TIMED_OUT, AMP_CODE(E_HEARTBEAT_FAILURE),
                      what);
}

/* Whether this timeout is not reported: another attempt follows, or a notice of the dead letter.
 * Producers that get nacks get one for each timeout. */
static bool is_notified_later(const struct amp_overdue *o)
{
    const struct amp_retry_rules *rules = o->sw->opt->retry;
    enum amp_protocol p = amp_protocol_find(o->r.protocol);
    if (amp_delivery_of(amp_protocol_find(o->r.protocol))->notifies == AMP_NOTIFIES_NACK ||
        !is_decided_on(o))
        return false;
    return amp_delivery_of(amp_protocol_find(o->r.protocol))->notifies != AMP_NOTIFIES_PERSON ||
           (rules && rules->of[p].budget > 0);
}

/* Reports work whose estimate and grace have passed, in the turn of its timeout. */
static int overdue_report(struct amp_overdue *o)
{
    const struct amp_message_facts *facts = amp_store_facts(o->sw->store);
    const struct amp_work_end e = {.request = o->r.line,
                                   .failure = "sla_breach",
                                   .actor = o->sw->opt->actor,
                                   .now_ms = o->sw->now_ms};
    bool reviews = amp_work_of(amp_protocol_find(o->r.protocol))->reviews;
    return reviews && facts && facts->ended ? facts->ended(o->sw->store, &e, o->sw->err) : 0;
}

static int message_time_out(struct amp_overdue *o)
{
    char what[512], sent[AMP_TIME_MAX];
    bool accepted = o->r.state != AMP_DELIVERY_SENT && o->r.sla_ms > 0;
    bool call = accepted && amp_delivery_of(amp_protocol_find(o->r.protocol))->begins_read;
    struct amp_span who = o->r.holder.n > 0 ? o->r.holder
                          : o->r.to.n > 0   ? o->r.to
                                            : AMP_SPAN("an agent");
    amp_time_format(o->r.sent_ms, sent);
    if (o->silent)
        silence_describe(o, what, sizeof(what));
    else if (call)
        snprintf(what, sizeof(what), "No result of %.*s within %lld ms", AMP_CLIP(o->id, 200),
                 (long long)o->r.sla_ms);
    else if (accepted)
        snprintf(what, sizeof(what),
                 "sla_breach: %.*s accepted %.*s of %s and reported no outcome within %lld s, "
                 "message %.*s",
                 AMP_CLIP(who, 64), AMP_CLIP(o->r.type, 64), sent, (long long)(o->r.sla_ms / 1000),
                 AMP_CLIP(o->id, 200));
    else
        snprintf(what, sizeof(what), "No %s %.*s%s%.*s: sent at %s, due within %g s, message %.*s",
                 amp_delivery_of(amp_protocol_find(o->r.protocol))->work_is_ack
                     ? "RESPONSE to"
                     : "acknowledgement of",
                 AMP_CLIP(o->r.type, 64), by_of(o), AMP_CLIP(o->r.to, 64), sent,
                 (double)o->r.ack_timeout_ms / 1e3, AMP_CLIP(o->id, 200));
    const char *overdue = amp_delivery_of(amp_protocol_find(o->r.protocol))->overdue_code;
    if (accepted && overdue_report(o) < 0)
        return -1;
    o->st.notified = is_notified_later(o);
    return end_commit(o, AMP_DELIVERY_EV_TIMEOUT, AMP_STAGE_TIMED_OUT,
                      accepted && overdue ? overdue : AMP_CODE(ack_timeout), what);
}

static int message_expire(struct amp_overdue *o)
{
    char what[200], at[AMP_TIME_MAX];
    amp_time_format(o->r.expires_ms, at);
    snprintf(what, sizeof(what), "Its time to live ended at %s, before it was taken", at);
    o->r.given_up = AMP_CODE_SPAN(ttl_expired);
    return end_commit(o, AMP_DELIVERY_EV_EXPIRE, AMP_STAGE_FAILED, AMP_CODE(ttl_expired), what);
}

/* Whether people suspend the message's task, the holder of its work, or one of its recipients: then
 * nobody is to answer it. */
static int is_suspended(struct amp_overdue *o)
{
    const struct amp_sweep_options *opt = o->sw->opt;
    const struct amp_span who = o->r.holder.n > 0 ? o->r.holder : o->r.to;
    struct amp_view v;
    if (!opt->suspended)
        return 0;
    if (opt->suspended(opt->ctx, o->r.task, who))
        return 1;
    if (!o->r.for_many || o->r.holder.n > 0)
        return 0;
    int rc = amp_step_read(o, o->r.line, &v);
    for (uint32_t i = 0; rc > 0 && i < v.n_to; i++)
        if (opt->suspended(opt->ctx, o->r.task, v.to[i]))
            return 1;
    return rc < 0 ? -1 : 0;
}

/* After the suspension the receiver has the whole time once more. */
static int deadline_put_off(struct amp_overdue *o, bool suspended)
{
    o->st.event = AMP_DELIVERY_EV_HOLD;
    o->r.held = suspended;
    return amp_step_commit(o) < 0 ? -1 : 1;
}

/* AMP: reports once that the holder of work gave no sign of life. While the task is suspended, none
 * is expected. */
static int holder_lose(struct amp_overdue *o)
{
    char what[500], seen[AMP_TIME_MAX];
    int suspended = is_suspended(o);
    if (suspended == 0)
        suspended = amp_notify_suspended(o->sw, o->r.task);
    if (suspended < 0)
        return -1;
    o->st.event = AMP_DELIVERY_EV_ALIVE;
    if (suspended)
        return amp_step_commit(o) < 0 ? -1 : 1;
    amp_time_format(o->r.seen_ms, seen);
    snprintf(what, sizeof(what),
             "Agent %.*s, at work on %.*s, gave no sign of life for %lld min: last seen at %s, "
             "message %.*s",
             AMP_CLIP(o->r.holder, 64), AMP_CLIP(o->r.task, 64),
             (long long)(o->sw->opt->silence_ms / 60000), seen, AMP_CLIP(o->id, 200));
    o->silent = true;
    return end_commit(o, AMP_DELIVERY_EV_SILENT, AMP_STAGE_TIMED_OUT, AMP_CODE(heartbeat_timeout),
                      what);
}

/* ---- dead letters ---- */

/* Whether no letter is needed: a message that timed out arrived after all, or the work of one that
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

/* Fills the letter from the record, for a message that its protocol does not allow. */
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
    /* Before a crash the letter was made already. */
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
    d.retryable = amp_code_is(given, retries_exhausted);
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
    return 1; /* the next step settles the record */
}

/* Takes one step. 1: another may follow at once; 0: nothing more is due. */
static int step_choose(struct amp_overdue *o)
{
    bool taken_up = o->r.state == AMP_DELIVERY_READ || o->r.holder.n > 0;
    bool late = !taken_up && o->r.expires_ms > 0 && o->r.expires_ms <= o->sw->now_ms;
    int suspended;
    o->emits = false;
    switch (o->r.state) {
    case AMP_DELIVERY_SENT:
    case AMP_DELIVERY_RECEIVED:
    case AMP_DELIVERY_READ:
        suspended = late ? 0 : is_suspended(o);
        if (suspended < 0)
            return -1;
        if (suspended || (o->r.held && !late))
            return deadline_put_off(o, suspended);
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
    default:
        return 0;
    }
}

/* Takes all steps that are due for one message. */
static int message_look(struct amp_sweep *sw, struct amp_span id)
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

/* ---- the sweep ---- */

static int overdue_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct amp_sweep *sw = ctx;
    /* One turn, so that the number of an answer is used by it. */
    if (amp_store_begin(sw->store, err) < 0)
        return -1;
    int rc = message_look(sw, id);
    amp_store_end(sw->store);
    return rc == 0 && sw->opt->most > 0 && sw->raised >= sw->opt->most ? 1 : rc;
}

#define SWEEP AMP_CLEANUP(sweep_release) struct amp_sweep

static struct amp_sweep sweep_make(struct amp_store *s, int64_t now_ms,
                                   const struct amp_sweep_options *opt, struct amp_error *err)
{
    return (struct amp_sweep){.store = s,
                              .opt = opt,
                              .now_ms = now_ms,
                              .err = err,
                              .line = {.max = 1 << 20},
                              .mem = {.max = AMP_RECORD_MAX},
                              .out = {.max = AMP_RECORD_MAX}};
}

static void sweep_release(struct amp_sweep *sw)
{
    amp_reader_free(sw->reader);
    amp_buf_release(&sw->line);
    amp_buf_release(&sw->mem);
    amp_buf_release(&sw->out);
}

int amp_message_sweep(struct amp_store *s, int64_t now_ms, const struct amp_sweep_options *opt,
                      uint32_t *raised, struct amp_error *err)
{
    SWEEP sw = sweep_make(s, now_ms, opt, err);
    /* The index has the due time of the usual silence; with a shorter one, look further ahead. */
    bool sooner = opt->silence_ms > 0 && opt->silence_ms < AMP_SILENCE_MS;
    int64_t ahead = sooner ? AMP_SILENCE_MS - opt->silence_ms : 0;
    if (amp_store_due(s, AMP_MESSAGE_KIND, now_ms + ahead, overdue_fn, &sw, err) < 0)
        return -1;
    if (raised)
        *raised = sw.raised;
    return 0;
}

int amp_message_sweep_one(struct amp_store *s, struct amp_span id, int64_t now_ms,
                          const struct amp_sweep_options *opt, struct amp_error *err)
{
    SWEEP sw = sweep_make(s, now_ms, opt, err);
    return message_look(&sw, id);
}

struct earliest {
    int64_t silence_ms, due_ms;
};

/* Rows are in the order of the index, whose due times have the usual silence: a row that is due
 * earlier by a shorter one comes at most `later` behind. */
static int message_fn(void *ctx, struct amp_span id, const struct amp_store_rec *rec,
                      struct amp_error *err)
{
    struct earliest *e = ctx;
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    int64_t later =
        e->silence_ms > 0 && e->silence_ms < AMP_SILENCE_MS ? AMP_SILENCE_MS - e->silence_ms : 0;
    if (e->due_ms > 0 && rec->due_ms - later >= e->due_ms)
        return 1;
    if (amp_message_parse(rec, &mem, &r, err) < 0)
        return -1;
    int64_t due = amp_record_due(&r, e->silence_ms);
    if (due > 0 && (e->due_ms == 0 || due < e->due_ms))
        e->due_ms = due;
    return 0;
}

int amp_message_next_due(struct amp_store *s, int64_t silence_ms, int64_t *due_ms,
                         struct amp_error *err)
{
    struct earliest e = {.silence_ms = silence_ms};
    if (silence_ms == AMP_SILENCE_MS)
        return amp_store_next_due(s, AMP_MESSAGE_KIND, due_ms, err);
    if (amp_store_due(s, AMP_MESSAGE_KIND, INT64_MAX, message_fn, &e, err) < 0)
        return -1;
    *due_ms = e.due_ms;
    return 0;
}
