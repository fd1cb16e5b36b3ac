/* What is looked at while a message is in view, step by step. */
#include "route/admission/streams.h"

#include <amp/base/clock.h>

#include "message/ledger/ledger.h"
#include "message/order.h"
#include "route/admission/once.h"
#include "task/task.h"

bool amp_admission_is_work(const struct amp_view *v)
{
    return v->task.n > 0 && (v->kind == AMP_KIND_REVIEW ||
                             (v->kind == AMP_KIND_DISPATCH &&
                              !(v->n_to == 1 && amp_span_is(v->to[0], "coordinator"))));
}

/* New work for a suspended task waits for a person. */
static int suspended(struct router *r, struct job *j, const struct amp_view *v,
                     struct amp_error *err)
{
    if (!r->store || !amp_admission_is_work(v))
        return STEP_GO;
    int rc = amp_task_suspended(r->store, v->task, err);
    if (rc == 1)
        amp_route_job_refuse(j, "suspended", "its task is suspended until an admin's decision", "",
                             true);
    return rc < 0 ? -1 : STEP_GO;
}

/* What came too late is not handed over. */
static int expired(struct router *r, struct job *j, const struct amp_view *v, struct amp_error *err)
{
    (void)r;
    (void)err;
    j->expires_ms = amp_message_expiry(v, amp_now_ms());
    if (v->expires_ms > 0 && amp_message_expired(v, amp_now_ms()))
        amp_route_job_refuse(j, EXPIRED(j), "its time to live has passed", "", false);
    return STEP_GO;
}

/* How urgent it is, and what it must not overtake. */
static int lane(struct router *r, struct job *j, const struct amp_view *v, struct amp_error *err)
{
    (void)err;
    j->lane = amp_lane_of(&r->lane_rules, v);
    j->order = amp_lane_key_of(amp_order_key(v));
    return STEP_GO;
}

static int judge(struct router *r, struct job *j, const struct amp_view *v, struct amp_error *err)
{
    (void)err;
    amp_match_view(r, j, v);
    return STEP_GO;
}

static step_fn *const admit_steps[] = {amp_once_admit, amp_streams_admit, NULL};
static step_fn *const look_steps[] = {amp_unacked_look,    suspended, expired, lane, judge,
                                      amp_recipients_look, NULL};

static int take(step_fn *const *steps, struct router *r, struct job *j, const struct amp_view *v,
                struct amp_error *err)
{
    int rc = STEP_GO;
    for (; *steps && rc == STEP_GO; steps++)
        rc = (*steps)(r, j, v, err);
    return rc;
}

int amp_admission_admit(struct router *r, struct job *j, const struct amp_view *v,
                        struct amp_error *err)
{
    return take(admit_steps, r, j, v, err);
}

int amp_admission_look(struct router *r, struct job *j, const struct amp_view *v,
                       struct amp_error *err)
{
    return take(look_steps, r, j, v, err);
}
