/* Sends approved work back that does not land. */
#include "work/loop/coordinate/unland.h"

#include <string.h>

#include "base/codes.h"
#include "work/loop/coordinate/coordinator.h"

struct unland {
    struct amp_step step;
    const struct amp_unland *with;
};

static int unland_apply(void *ctx, const struct amp_store_rec *now, struct amp_store_change *out,
                        struct amp_error *err)
{
    struct unland *x = ctx;
    const struct amp_unland *u = x->with;
    struct amp_step *st = &x->step;
    struct amp_task *t = &st->t;
    uint32_t facts = u->ask ? AMP_QA_IF_MERGE_ASKS : 0;

    if (!now->found)
        return amp_fail(err, AMP_NO, unknown_task, "there is no task %.*s", AMP_CLIP(u->task, 100));
    if (amp_task_read(t, now, u->task, err) < 0)
        return -1;
    struct amp_task_part *p = t->n_parts ? &t->parts[t->n_parts - 1] : NULL;
    if (t->state != AMP_TASK_DONE || !p || strcmp(p->verdict_ref, u->verdict) != 0)
        return amp_fail(err, AMP_NO, not_done, "task %s is %s, not done by the verdict %.200s",
                        t->id, amp_task_fsm.states[t->state].name, u->verdict);
    if (t->unlanded + 1 >= u->policy->lock_after)
        facts |= AMP_QA_IF_UNLANDED_AGAIN;
    if (amp_step_replace(&t->blockers, json_deep_copy(u->why), err) < 0 ||
        amp_task_set(&p->rejected_commit, amp_span_str(p->commit), err) < 0 ||
        amp_step_qa(st, p, AMP_QA_EV_UNLANDED, amp_step_standing(st, p) | facts, err) < 0)
        return -1;
    return *st->nack ? amp_fail_text(err, AMP_NO, st->nack, "%s", st->why)
                     : amp_step_write(st, out, err);
}

int amp_task_unland(struct amp_store *s, const struct amp_unland *u, uint8_t *state,
                    struct amp_error *err)
{
    const struct amp_coordinate_options opt = {.consumer = AMP_CREATE_CONSUMER,
                                               .policy = *u->policy};
    struct amp_coordinator whole = {.store = s, .opt = &opt};
    const struct amp_view none = {.task = u->task};
    struct unland x = {.with = u};
    enum amp_store_outcome outcome;

    amp_step_init(&x.step, &whole, &none, u->now_ms);
    int rc =
        amp_store_update(s, AMP_KEY(AMP_TASK_KIND, u->task), NULL, unland_apply, &x, &outcome, err);
    if (rc == 0)
        rc = amp_store_sync(s, err) < 0 || amp_task_file(s, u->task, err) < 0 ? -1 : 0;
    *state = x.step.t.state;
    amp_step_release(&x.step);
    return rc;
}
