/* What the sweep tells: a nack or notice to the sender in its protocol, an escalation to a person.
 */
#include <stdio.h>

#include "message/record/sequence.h"
#include "message/settle/step.h"
#include "protocol/amp/amp.h"
#include "protocol/rtp/answer.h"
#include "protocol/sw4rm/answer.h"

/* What the sweep needs of a task. */
struct task {
    int64_t rejects;
    struct amp_span suspended;
};
static const struct amp_rec_field task_fields[] = {
    AMP_REC(INT, struct task, "reject_count", rejects),
    AMP_REC(RAW, struct task, "suspended", suspended),
};
AMP_REC_TABLE(task_rec, "a task's record", struct task, task_fields);

/* What the task's own record says, for the snapshot in the escalation. */
static int64_t task_snapshot(struct amp_sweep *sw, struct amp_span task, char status[64])
{
    struct amp_store_rec rec;
    struct task t;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    snprintf(status, 64, "unknown");
    if (amp_store_get(sw->store, "task", task, &rec, NULL) < 0 || !rec.found)
        return 0;
    amp_span_copy(rec.state, status, 64);
    return amp_rec_parse(&task_rec, rec.json, &mem, &t, NULL) < 0 ? 0 : t.rejects;
}

int amp_tell_suspended(struct amp_sweep *sw, struct amp_span task)
{
    struct amp_store_rec rec;
    struct task t;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_store_get(sw->store, "task", task, &rec, sw->err) < 0)
        return -1;
    if (!rec.found)
        return 0;
    return amp_rec_parse(&task_rec, rec.json, &mem, &t, sw->err) < 0 ? -1 : t.suspended.n > 0;
}

/* "What (rtp task tsk-1)": the work, where it is not a task of AMP. */
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

int amp_tell_person(struct amp_sweep *sw, const char *type, enum amp_level level,
                    struct amp_span protocol, struct amp_span task, const char *what,
                    const char *const *affected, const char *const *suggested)
{
    char task_id[128] = AMP_TASK_NONE, status[64] = "unknown";
    AMP_BUF struct amp_buf words = {0};
    bool ours = amp_span_is(protocol, "amp") && amp_is_task_id(task);
    int64_t rejects = 0;
    amp_buf_init(&words, 8192);
    if (ours) {
        amp_span_copy(task, task_id, sizeof(task_id));
        rejects = task_snapshot(sw, task, status);
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
        .task_status = status,
        .last_successful = "",
        .reject_count = rejects,
        .now_ms = sw->now_ms,
    };
    amp_buf_reset(&sw->line);
    if (amp_compose_escalation(&a, &sw->line, sw->id, sw->err) < 0)
        return -1;
    struct amp_span line = amp_buf_span(&sw->line);
    if (line.n > 0 && line.p[line.n - 1] == '\n')
        line.n--;
    sw->emit = (struct amp_store_emit){.id = amp_span_str(sw->id), .line = line};
    sw->committed = false;
    return 0;
}

static void answer_emit(struct amp_sweep *sw, struct amp_span id)
{
    struct amp_span line = amp_buf_span(&sw->line);
    line.n -= line.n > 0; /* its LF */
    snprintf(sw->id, sizeof(sw->id), "answer-to-%.*s", (int)(id.n < 200 ? id.n : 200), id.p);
    sw->emit = (struct amp_store_emit){.id = amp_span_str(sw->id), .line = line};
    sw->committed = false;
}

static int nack_tell(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                     const char *what)
{
    struct amp_sweep *sw = o->sw;
    struct amp_answered of = {.id = o->id, .producer = o->r.from, .correlation = o->r.correlation};
    amp_buf_reset(&sw->line);
    if (amp_sequence_rise(sw->store, amp_span_str(sw->opt->actor), sw->now_ms, sw->opt->actor,
                          &of.sequence, sw->err) < 0)
        return -1;
    if (amp_sw4rm_nack(&of, stage, amp_span_str(code), amp_span_str(what), sw->opt->actor,
                       sw->now_ms, &sw->line, sw->err) < 0)
        return -1;
    answer_emit(sw, o->id);
    return 0;
}

static int notice_tell(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                       const char *what)
{
    struct amp_sweep *sw = o->sw;
    struct amp_rtp_answer a = {.id = o->id,
                               .type = o->r.type,
                               .source = o->r.from,
                               .correlation = o->r.correlation,
                               .node = sw->opt->actor,
                               .by = sw->opt->actor,
                               .now_ms = sw->now_ms};
    amp_buf_reset(&sw->line);
    if (amp_sequence_next(sw->store, amp_span_str(a.node), 1, sw->opt->actor, &a.sequence,
                          sw->err) < 0)
        return -1;
    int rc = stage == AMP_STAGE_FAILED ? amp_rtp_ack(&a, stage, amp_span_str(code),
                                                     amp_span_str(what), &sw->line, sw->err)
                                       : amp_rtp_notice(&a, "dead_letter", amp_span_str(code),
                                                        amp_span_str(what), &sw->line, sw->err);
    if (rc == 0)
        answer_emit(sw, o->id);
    return rc;
}

static int person_tell(struct amp_overdue *o, enum amp_level level, const char *what)
{
    char msg_id[AMP_AFFECTED_MAX + 1], look[160];
    bool whole = amp_span_copy(o->id, msg_id, sizeof(msg_id));
    snprintf(look, sizeof(look), "Look whether the %.*s is running and reads its input",
             o->r.to.n > 0 ? (int)(o->r.to.n < 64 ? o->r.to.n : 64) : 9,
             o->r.to.n > 0 ? o->r.to.p : "recipient");
    const char *affected[] = {whole ? msg_id : NULL, NULL};
    const char *suggested[] = {look, "Send the message again", "Terminate the task", NULL};
    return amp_tell_person(o->sw, amp_step_escalation(o), level, o->r.protocol, o->r.task, what,
                           affected, suggested);
}

int amp_tell_end(struct amp_overdue *o, enum amp_ack_stage stage, const char *code,
                 enum amp_level level, const char *what)
{
    o->emits = true;
    o->told = AMP_TOLD_SENDER;
    if (amp_delivery_terms(&o->r)->tells == AMP_TELLS_NACK && o->r.from.n > 0)
        return nack_tell(o, stage, code, what);
    if (amp_delivery_terms(&o->r)->tells == AMP_TELLS_NOTICE && stage != AMP_STAGE_TIMED_OUT)
        return notice_tell(o, stage, code, what);
    o->told = AMP_TOLD_PERSON;
    return person_tell(o, level, what);
}
