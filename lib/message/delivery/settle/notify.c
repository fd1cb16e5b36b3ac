/* Notices of the sweep: nacks and notices to senders, escalations to persons. */
#include <stdio.h>

#include "message/delivery/facts.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/step.h"
#include "message/protocol/amp/amp.h"
#include "message/protocol/answers.h"
#include "message/protocol/delivery.h"
#include "message/protocol/work.h"

static int task_look(struct amp_sweep *sw, struct amp_span task, struct amp_task_facts *out)
{
    const struct amp_message_facts *facts = amp_store_facts(sw->store);
    *out = (struct amp_task_facts){0};
    return facts ? facts->task(sw->store, task, out, sw->err) : 0;
}

int amp_notify_suspended(struct amp_sweep *sw, struct amp_span task)
{
    struct amp_task_facts t;
    return task_look(sw, task, &t) < 0 ? -1 : t.suspended;
}

/* Appends the work to the text, for tasks without a record: "TEXT (rtp task tsk-1)". */
static int work_describe(struct amp_sweep *sw, const char *what, struct amp_span protocol,
                         struct amp_span task, struct amp_buf *out)
{
    int n = (int)(protocol.n < 16 ? protocol.n : 16);
    if (n == 0)
        return amp_buf_str(out, what, sw->err);
    if (task.n == 0)
        return amp_buf_fmt(out, sw->err, "%s (work of %.*s)", what, n, protocol.p);
    return amp_buf_fmt(out, sw->err, "%s (%.*s task %.*s)", what, n, protocol.p,
                       AMP_CLIP(task, 200));
}

/* Makes sw->line, without its LF, the line to emit. */
static void line_emit(struct amp_sweep *sw, struct amp_span id, enum amp_role role)
{
    struct amp_span line = amp_buf_span(&sw->line);
    if (amp_span_ends(line, "\n"))
        line.n--;
    sw->emit = (struct amp_store_emit){.id = id, .line = line, .role = role};
}

/* An escalation names a task of AMP that has a record; its description names other work. */
static int escalation_compose(struct amp_overdue *o, const char *const *affected,
                              const char *const *suggested)
{
    struct amp_sweep *sw = o->sw;
    char task_id[128] = AMP_TASK_NONE;
    struct amp_task_facts t = {0};
    AMP_BUF struct amp_buf words = {.max = 8192};
    bool ours =
        amp_work_of(amp_protocol_find(o->r.protocol))->keeps_tasks && amp_is_task_id(o->r.task);
    if (ours) {
        amp_span_copy(o->r.task, task_id, sizeof(task_id));
        if (task_look(sw, o->r.task, &t) < 0)
            return -1;
    } else if (work_describe(sw, o->end.what, o->r.protocol, o->r.task, &words) < 0) {
        return -1;
    }
    struct amp_escalation_args a = {
        .type = amp_step_escalation(o),
        .from = sw->opt->from,
        .severity = o->end.level,
        .triggered_by = "system",
        .task_id = task_id,
        .description = ours ? o->end.what : words.data,
        .affected = affected,
        .suggested = suggested,
        .task_status = t.found ? t.state : "unknown",
        .last_successful = "",
        .reject_count = t.reject_count,
        .now_ms = sw->now_ms,
    };
    amp_buf_reset(&sw->line);
    if (amp_compose_escalation(&a, &sw->line, sw->id, sw->err) < 0)
        return -1;
    line_emit(sw, amp_span_str(sw->id), AMP_ROLE_message);
    return 0;
}

static int sender_notify(struct amp_overdue *o)
{
    struct amp_sweep *sw = o->sw;
    struct amp_view whole, of = {.protocol = amp_protocol_find(o->r.protocol),
                                 .id = o->id,
                                 .type = o->r.type,
                                 .from = o->r.from,
                                 .correlation = o->r.correlation,
                                 .payload = AMP_TOK_NONE};
    /* An outcome, and the trace of a notice, repeat members that the record does not have. */
    int read = amp_delivery_of(amp_protocol_find(o->r.protocol))->notifies != AMP_NOTIFIES_NACK
                   ? amp_step_read(o, o->r.line, &whole)
                   : 0;
    if (read > 0)
        of = whole;
    /* Not by the actor: it names an outbox, which has no key. */
    struct amp_answer a = {.stage = o->end.stage,
                           .by = sw->opt->from ? sw->opt->from : sw->opt->actor,
                           .node = sw->opt->actor,
                           .code = o->end.code,
                           .note = o->end.what,
                           .is_dead = o->end.stage == AMP_STAGE_REJECTED,
                           .now_ms = sw->now_ms};
    amp_buf_reset(&sw->line);
    if (read < 0 || amp_sequence_answer(sw->store, &of, sw->opt->actor, &a, sw->err) < 0 ||
        amp_answers_of(amp_protocol_find(o->r.protocol))->answer(&of, &a, &sw->line, sw->err) < 0)
        return -1;
    line_emit(sw, o->id, AMP_ROLE_answer);
    return 0;
}

static int person_notify(struct amp_overdue *o)
{
    char msg_id[AMP_AFFECTED_MAX + 1], look[160];
    bool fits = amp_span_copy(o->id, msg_id, sizeof(msg_id));
    struct amp_span who = o->r.to.n > 0 ? o->r.to : AMP_SPAN("the recipient");
    bool role = amp_work_of(amp_protocol_find(o->r.protocol))->keeps_tasks &&
                o->r.to.n > 0; /* AMP names roles */
    snprintf(look, sizeof(look), "Check that %s%.*s is running and reads its input",
             role ? "the " : "", AMP_CLIP(who, 64));
    const char *affected[] = {fits ? msg_id : NULL, NULL};
    const char *suggested[] = {look, "Send the message again", "Terminate the task", NULL};
    return escalation_compose(o, affected, suggested);
}

int amp_notify_end(struct amp_overdue *o)
{
    const struct amp_delivery_terms *t = amp_delivery_of(amp_protocol_find(o->r.protocol));
    bool sender = (t->notifies == AMP_NOTIFIES_NACK && o->r.from.n > 0) ||
                  (t->notifies == AMP_NOTIFIES_NOTICE && o->end.stage != AMP_STAGE_TIMED_OUT) ||
                  (t->notifies == AMP_NOTIFIES_OUTCOME && o->st.event == AMP_DELIVERY_EV_GIVE_UP &&
                   o->end.stage == AMP_STAGE_TIMED_OUT);
    o->emits = true;
    o->notified = sender ? AMP_NOTIFIED_SENDER : AMP_NOTIFIED_PERSON;
    return sender ? sender_notify(o) : person_notify(o);
}
