/* The intake of a pool: reads messages, and submits them for its types. */
#include <string.h>

#include <amp/base/clock.h>

#include "message/protocol/compose/json.h"
#include "work/item/claim/submit.h"
#include "work/loop/pool/private.h"

/* The type that the task names, or else the first one. */
static const char *type_choose(const struct amp_pool *p, const struct amp_view *v)
{
    const struct amp_pool_options *o = p->opt;
    bool any = v->kind == AMP_KIND_DISPATCH && v->body.dispatch.constraints.n;
    json_auto_t *c = any ? amp_json_load(v->body.dispatch.constraints, NULL) : NULL;
    const char *name = amp_json_str(c, "agent_type");

    for (uint32_t i = 0; i < o->n_types; i++)
        if (strcmp(o->types[i].name, name) == 0)
            return o->types[i].name;
    if (*name)
        o->worker.note("%.*s: no agents of the type \"%.64s\": it is for the type %s",
                       AMP_CLIP(v->task, 64), name, o->types[0].name);
    return o->types[0].name;
}

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
                                    .type = type_choose(slot->pool, v),
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
    snprintf(slot->agent, sizeof slot->agent, "%s", o->worker.agent);
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
