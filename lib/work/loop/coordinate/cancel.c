/* Cancels a task. */
#include "work/loop/coordinate/cancel.h"

#include <stdio.h>
#include <string.h>

#include "base/codes.h"
#include "message/delivery/settle/answer.h"
#include "work/loop/coordinate/coordinator.h"
#include "work/task/suspend.h"

struct cancel {
    struct amp_step step;
    const struct amp_cancel *by;
    bool again; /* it was cancelled before */
};

/* Puts the nack for the receiver of the open message into the outbox. */
static int nack_emit(struct amp_step *st, struct amp_error *err)
{
    const struct amp_view of = {.id = amp_span_str(st->called_off), .task = st->view->task};
    size_t at = st->text.len;

    if (!*st->called_off)
        return 0;
    if (amp_compose_nack(&of, AMP_STAGE_FAILED, "coordinator", AMP_CODE(terminated),
                         "a person cancelled the task", "", false, st->now_ms, &st->text, err) < 0)
        return -1;
    snprintf(st->out[st->n_out].id, sizeof st->out[st->n_out].id, AMP_CANCEL_NACK "%.*s",
             AMP_CLIP(of.id, AMP_MSG_ID_MAX - sizeof AMP_CANCEL_NACK));
    st->out[st->n_out].at = at;
    st->out[st->n_out].n = st->text.len - at - 1;
    st->n_out++;
    return 0;
}

static int cancel_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                        struct amp_error *err)
{
    struct cancel *c = ctx;
    struct amp_step *st = &c->step;
    struct amp_task *t = &st->t;

    if (!now->found)
        return amp_fail(err, AMP_NO, unknown_task, "there is no task %.*s",
                        AMP_CLIP(st->view->task, 100));
    if (amp_task_read(t, now, st->view->task, err) < 0)
        return -1;
    c->again = t->state == AMP_TASK_TERMINATED && *t->cancelled;
    if (c->again)
        return 1;
    if (amp_task_ended(t->state))
        return amp_fail(err, AMP_NO, ended, "task %s has ended: it is %s", t->id,
                        amp_task_fsm.states[t->state].name);
    if (amp_step_cancel(st, err) < 0 || amp_task_set(&t->cancelled, c->by->line, err) < 0 ||
        nack_emit(st, err) < 0)
        return -1;
    return amp_step_write(st, out, err);
}

static int cancel_follow(struct amp_store *s, struct cancel *c, struct amp_error *err)
{
    const struct amp_cancel *by = c->by;

    if (*c->step.called_off &&
        amp_settle_known(s, amp_span_str(c->step.called_off), AMP_STAGE_FAILED, "coordinator",
                         AMP_SPAN("terminated"), by->now_ms, err) < 0)
        return -1;
    return amp_task_lift_agents(s, by->task, AMP_SPAN(""), by->now_ms, err) < 0 ||
                   amp_store_sync(s, err) < 0 || amp_task_file(s, by->task, err) < 0
               ? -1
               : 0;
}

static int view_cancel(struct amp_store *s, const struct amp_cancel *by, const struct amp_view *v,
                       bool *changed, struct amp_error *err)
{
    const struct amp_coordinate_options opt = {.consumer = by->consumer};
    struct amp_coordinator whole = {.store = s, .opt = &opt};
    struct cancel c = {.by = by};
    enum amp_store_outcome outcome;

    amp_step_init(&c.step, &whole, v, by->now_ms);
    int rc = amp_store_update(s, AMP_KEY(AMP_TASK_KIND, by->task), NULL, cancel_apply, &c, &outcome,
                              err);
    if (rc == 0)
        rc = cancel_follow(s, &c, err);
    *changed = !c.again;
    amp_step_release(&c.step);
    return rc;
}

int amp_task_cancel(struct amp_store *s, const struct amp_cancel *c, bool *changed,
                    struct amp_error *err)
{
    static const struct amp_check_options any = {0};
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);

    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, c->line, &any, &v, NULL, NULL, err);
    if (rc == 0)
        amp_fail(err, AMP_INTERNAL, invalid_output, "internal: the decision is invalid");
    rc = rc <= 0 ? -1 : view_cancel(s, c, &v, changed, err);
    amp_reader_free(reader);
    return rc;
}
