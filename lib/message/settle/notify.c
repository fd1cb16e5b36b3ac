/* Notices of the sweep: a nack or notice to the sender in its protocol, an escalation to a person.
 */
#include <stdio.h>

#include "message/facts.h"
#include "message/record/sequence.h"
#include "message/settle/step.h"
#include "protocol/amp/amp.h"

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

/* "What (rtp task tsk-1)": the work, where its task has no record. */
static int work_describe(struct amp_sweep *sw, const char *what, struct amp_span protocol,
                         struct amp_span task, struct amp_buf *out)
{
    int n = (int)(protocol.n < 16 ? protocol.n : 16);
    if (n == 0)
        return amp_buf_str(out, what, sw->err);
    if (task.n == 0)
        return amp_buf_fmt(out, sw->err, "%s (work of %.*s)", what, n, protocol.p);
    return amp_buf_fmt(out, sw->err, "%s (%.*s task %.*s)", what, n, protocol.p,
                       (int)(task.n < 200 ? task.n : 200), task.p);
}

/* Composes an escalation into sw->line and sw->emit. protocol, task: whose work it is about; a
 * task without a record is in the description. */
static int escalation_compose(struct amp_sweep *sw, const char *type, enum amp_level level,
                              struct amp_span protocol, struct amp_span task, const char *what,
                              const char *const *affected, const char *const *suggested)
{
    char task_id[128] = AMP_TASK_NONE;
    struct amp_task_facts t = {0};
    AMP_BUF struct amp_buf words = {0};
    bool ours = amp_terms_of(amp_protocol_find(protocol))->keeps_tasks && amp_is_task_id(task);
    amp_buf_init(&words, 8192);
    if (ours) {
        amp_span_copy(task, task_id, sizeof(task_id));
        if (task_look(sw, task, &t) < 0)
            return -1;
    } else if (work_describe(sw, what, protocol, task, &words) < 0) {
        return -1;
    }
    struct amp_escalation_args a = {
        .type = type,
        .from = sw->opt->from,
        .severity = level,
        .triggered_by = "system",
        .task_id = task_id,
        .description = ours ? what : words.data,
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
    struct amp_span line = amp_buf_span(&sw->line);
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    sw->emit = (struct amp_store_emit){.id = amp_span_str(sw->id), .line = line};
    return 0;
}

static int sender_notify(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                         const char *what)
{
    struct amp_sweep *sw = o->sw;
    const struct amp_view of = {.protocol = amp_protocol_find(o->r.protocol),
                                .id = o->id,
                                .type = o->r.type,
                                .from = o->r.from,
                                .correlation = o->r.correlation,
                                .payload = AMP_TOK_NONE};
    struct amp_answer a = {.stage = stage,
                           .by = sw->opt->actor,
                           .code = code,
                           .note = what,
                           .is_dead = stage == AMP_STAGE_REJECTED,
                           .now_ms = sw->now_ms};
    amp_buf_reset(&sw->line);
    if (amp_sequence_answer(sw->store, &of, sw->opt->actor, &a, sw->err) < 0 ||
        amp_delivery_terms(&o->r)->answer(&of, &a, &sw->line, sw->err) < 0)
        return -1;
    struct amp_span line = amp_buf_span(&sw->line);
    line.n -= line.n > 0; /* its LF */
    sw->emit = (struct amp_store_emit){.id = o->id, .line = line, .role = AMP_ROLE_answer};
    return 0;
}

static int person_notify(struct amp_overdue *o, enum amp_level level, const char *what)
{
    char msg_id[AMP_AFFECTED_MAX + 1], look[160];
    bool whole = amp_span_copy(o->id, msg_id, sizeof(msg_id));
    snprintf(look, sizeof(look), "Check whether the %.*s is running and reads its input",
             o->r.to.n > 0 ? (int)(o->r.to.n < 64 ? o->r.to.n : 64) : 9,
             o->r.to.n > 0 ? o->r.to.p : "recipient");
    const char *affected[] = {whole ? msg_id : NULL, NULL};
    const char *suggested[] = {look, "Send the message again", "Terminate the task", NULL};
    return escalation_compose(o->sw, amp_step_escalation(o), level, o->r.protocol, o->r.task, what,
                              affected, suggested);
}

int amp_notify_end(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                   enum amp_level level, const char *what)
{
    const struct amp_terms *t = amp_delivery_terms(&o->r);
    o->emits = true;
    o->notified = AMP_NOTIFIED_SENDER;
    if ((t->notifies == AMP_NOTIFIES_NACK && o->r.from.n > 0) ||
        (t->notifies == AMP_NOTIFIES_NOTICE && stage != AMP_STAGE_TIMED_OUT))
        return sender_notify(o, stage, code, what);
    o->notified = AMP_NOTIFIED_PERSON;
    return person_notify(o, level, what);
}
