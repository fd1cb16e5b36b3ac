/* The state and the order of the jobs, for the verbs about the queue. */
#include "desk.h"

#include <string.h>

#include <amp/base/clock.h>

#include <amp/base/num.h>

#include "cli/config.h"
#include "shared/work/tool.h"
#include "work/git/paths/glob.h"
#include "work/loop/pool/record.h"

#define STAFF_MAX (1u << 20)

static int64_t type_most(void *ctx, struct amp_span type)
{
    const struct queue_desk *d = ctx;
    int64_t most = amp_queue_most(&d->set, type), agents = queue_desk_staff(d, type);

    return amp_queue_limits(&d->set, type) || agents < most ? most : agents;
}

static bool task_held(void *ctx, struct amp_span task)
{
    const struct queue_desk *d = ctx;

    return task.n && amp_pauses_find(&d->pauses, task, AMP_SPAN("")) != NULL;
}

static int64_t type_closed(void *ctx, struct amp_span type)
{
    const struct queue_desk *d = ctx;

    return amp_accounts_closed(&d->accounts, type);
}

static struct queue_staff *staff_find(const struct queue_desk *d, struct amp_span type)
{
    for (size_t i = 0; i + sizeof(struct queue_staff) <= d->staff.len;
         i += sizeof(struct queue_staff)) {
        struct queue_staff *s = (struct queue_staff *)(void *)(d->staff.data + i);
        if (amp_span_is(type, s->type))
            return s;
    }
    return NULL;
}

int64_t queue_desk_staff(const struct queue_desk *d, struct amp_span type)
{
    const struct queue_staff *s = staff_find(d, type);

    return s ? s->agents : 0;
}

bool queue_desk_type(const struct queue_desk *d, size_t i, struct amp_span *out)
{
    if ((i + 1) * sizeof(struct queue_staff) > d->staff.len)
        return false;
    *out = amp_span_str(((struct queue_staff *)(void *)d->staff.data)[i].type);
    return true;
}

/* The types of a pool: "builder=4 reviewer=1". */
static int on_pool(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_pool_rec *r = rec;
    struct queue_desk *d = ctx;

    if (r->state == AMP_POOL_STOPPING || !amp_queue_worker_lives(d->store, r->name))
        return 0;
    for (const char *t = r->types; *t;) {
        size_t all = strcspn(t, " "), n = strcspn(t, "=");
        struct queue_staff one = {.agents = 1}, *known;
        amp_span_copy((struct amp_span){t, n < all ? n : all}, one.type, sizeof one.type);
        if (n < all)
            amp_num_parse((struct amp_span){t + n + 1, all - n - 1}, 0, INT32_MAX, &one.agents,
                          NULL);
        if ((known = staff_find(d, amp_span_str(one.type))))
            known->agents += one.agents;
        else if (amp_buf_add(&d->staff, (const char *)&one, sizeof one, err) < 0)
            return -1;
        t += all + (t[all] == ' ');
    }
    return 0;
}

int queue_desk_look(struct queue_desk *d, struct amp_error *err)
{
    amp_buf_reset(&d->staff);
    return amp_order_look(d->order, err) < 0 || amp_pauses_read(d->store, &d->pauses, err) < 0 ||
                   amp_accounts_load(&d->accounts, d->store, amp_now_ms(), err) < 0
               ? -1
               : amp_subject_each(&amp_pool_subject, d->store, NULL, on_pool, d, err);
}

int queue_desk_open(struct queue_desk *d, struct amp_store *store, struct amp_error *err)
{
    struct amp_order_options how = {.most = type_most,
                                    .patterns = amp_glob_overlap,
                                    .held = task_held,
                                    .closed = type_closed,
                                    .ctx = d};

    *d = (struct queue_desk){.store = store};
    amp_buf_init(&d->staff, STAFF_MAX);
    amp_pauses_init(&d->pauses);
    amp_queue_settings_default(&d->set);
    d->accounts.set = &d->set;
    if (amp_config_load(amp_tool_config, amp_tool_state, &d->config, err) < 0 ||
        amp_queue_settings_load(&d->set, d->config, err) < 0)
        return -1;
    how.ageing_ms = d->set.ageing_ms;
    return amp_order_open(&d->order, d->store, &how, err) < 0 ? -1 : queue_desk_look(d, err);
}

void queue_desk_close(struct queue_desk *d)
{
    amp_order_close(d->order);
    amp_pauses_release(&d->pauses);
    amp_buf_release(&d->staff);
    json_decref(d->config);
}

enum amp_waits queue_desk_waits(const struct queue_desk *d, struct amp_span type,
                                const struct amp_order_place *p)
{
    bool could = p->why == AMP_WAITS_TURN || p->why == AMP_WAITS_BEHIND;

    return could && queue_desk_staff(d, type) == 0 ? AMP_WAITS_WORKER : p->why;
}
