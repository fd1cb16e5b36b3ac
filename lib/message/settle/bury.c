/*
 * What is not sent again: a dead letter of it, with the attempts that were made, unless it turns
 * out that one of them came through.
 */
#include <stdio.h>
#include <string.h>

#include "message/dead/dead.h"
#include "message/dead/letters.h"
#include "message/settle/step.h"

/* Whether there is nothing to bury: the message that nobody acknowledged arrived after all, or what
 * failed or expired was done. */
static int letter_is_void(struct amp_overdue *o, bool *void_)
{
    if (o->r.state == AMP_DELIVERY_TIMED_OUT && o->r.failure.n == 0)
        return amp_step_arrived(o, void_);
    *void_ = amp_record_has_stage(&o->r, "FULFILLED");
    return 0;
}

int amp_bury_withdraw(struct amp_overdue *o)
{
    return amp_letters_withdraw(o->sw->store, o->id, o->sw->opt->actor, o->sw->err) < 0
               ? -1
               : amp_step_settle(o);
}

/* What the record tells of a message that its protocol does not read. */
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

int amp_bury_letter(struct amp_overdue *o)
{
    struct amp_dead_letter d = {0};
    struct amp_view v;
    char code[128], given[64], why[300];
    bool buried, nothing;
    if (letter_is_void(o, &nothing) < 0)
        return -1;
    if (nothing)
        return amp_bury_withdraw(o);
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
