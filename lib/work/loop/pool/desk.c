/* The intake of a pool: reads messages, and submits those that are for its type. */
#include <string.h>

#include <amp/base/clock.h>

#include "work/item/claim/submit.h"
#include "work/loop/pool/private.h"

/* The job of a message is its own, also if another message asked for the same work. */
static int message_submit(void *ctx, struct amp_view *v, struct amp_error *err)
{
    struct amp_slot *slot = ctx;
    struct amp_pool *p = slot->pool;
    struct amp_submitted out;
    struct amp_error why;
    char salt[AMP_MSG_ID_MAX];

    amp_span_copy(v->id, salt, sizeof salt);
    const struct amp_submitter q = {.store = p->store,
                                    .order = p->order,
                                    .type = slot->type->name,
                                    .salt = salt,
                                    .actor = slot->consumer};

    if (amp_store_begin(p->store, err) < 0)
        return -1;
    int rc = amp_submit(&q, v, &out, &why, err);
    amp_store_end(p->store);
    if (rc == 0)
        *err = why;
    p->look = true;
    return rc > 0 ? 0 : -1;
}

static int desk_loop(struct amp_slot *slot, struct amp_error *err)
{
    while (!slot->quit && !slot->stop && !amp_worker_ended(&slot->w))
        if (amp_worker_turn(&slot->w, NULL, 0, -1, err) < 0)
            return -1;
    return 0;
}

static void desk_main(void *ctx)
{
    struct amp_slot *slot = ctx;

    slot->failed = amp_worker_open(&slot->w, &slot->error) < 0 || desk_loop(slot, &slot->error) < 0;
    slot->pool->status = slot->w.status;
    slot->pool->look = true;
    amp_worker_close(&slot->w);
}

int amp_desk_open(struct amp_slot *slot, struct amp_pool *pool, struct amp_error *err)
{
    const struct amp_pool_options *o = pool->opt;
    const struct amp_pool_input *in = o->input;

    *slot = (struct amp_slot){.pool = pool, .type = &o->types[0], .due_ms = -1};
    snprintf(slot->agent, sizeof slot->agent, "%s", slot->type->name);
    snprintf(slot->consumer, sizeof slot->consumer, "%s", in->consumer);
    slot->opt = o->worker;
    slot->opt.role = in->name;
    slot->opt.agent = slot->agent;
    slot->opt.consumer = slot->consumer;
    slot->opt.in = in->in;
    slot->opt.trusted = in->trusted;
    slot->opt.ids = in->ids;
    slot->opt.stop = &slot->stop;
    slot->opt.wait = amp_slot_wait;
    slot->opt.wait_ctx = slot;
    slot->opt.submit = message_submit;
    slot->w = (struct amp_worker){.opt = &slot->opt,
                                  .role = in->role,
                                  .ctx = in->ctx,
                                  .store = pool->store,
                                  .lock = -1,
                                  .tree = -1};
    return amp_fiber_new(desk_main, slot, AMP_SLOT_STACK, &slot->fiber, err);
}
