/* The state and the order of the jobs, for the verbs about the queue. */
#include "desk.h"

#include <string.h>

#include <amp/base/clock.h>

#include "../tasks/tasks.h"
#include "../verbs.h"
#include "cli/config.h"
#include "flow/pool/record.h"
#include "worktree/paths/glob.h"

#define STAFF_MAX (1u << 20)

static int64_t type_most(void *ctx, struct amp_span type)
{
    const struct queue_desk *d = ctx;

    return amp_queue_most(&d->set, type);
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

/* "builder=4 reviewer=1" */
static int on_pool(void *ctx, const struct amp_pool_rec *r, struct amp_error *err)
{
    struct queue_desk *d = ctx;

    if (r->stopping)
        return 0;
    for (const char *t = r->types; *t;) {
        size_t n = strcspn(t, "="), all = strcspn(t, " ");
        if (amp_buf_add(&d->staff, t, n < all ? n : all, err) < 0 ||
            amp_buf_str(&d->staff, " ", err) < 0)
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
               : amp_pool_recs(d->store, on_pool, d, err);
}

int queue_desk_open(struct queue_desk *d, bool write, struct amp_error *err)
{
    struct amp_order_options how = {.most = type_most,
                                    .patterns = amp_glob_overlap,
                                    .held = task_held,
                                    .closed = type_closed,
                                    .ctx = d};

    *d = (struct queue_desk){0};
    amp_buf_init(&d->staff, STAFF_MAX);
    amp_pauses_init(&d->pauses);
    amp_queue_settings_default(&d->set);
    d->accounts.set = &d->set;
    if (amp_config_load(task_config, task_state, &d->config, err) < 0 ||
        amp_queue_settings_load(&d->set, d->config, err) < 0 ||
        (write ? task_open(&d->store, err) : tasks_look(&d->store, err)) < 0)
        return -1;
    how.ageing_ms = d->set.ageing_ms;
    return amp_order_open(&d->order, d->store, &how, err) < 0 ? -1 : queue_desk_look(d, err);
}

void queue_desk_close(struct queue_desk *d)
{
    amp_order_close(d->order);
    amp_store_close(d->store);
    amp_pauses_release(&d->pauses);
    amp_buf_release(&d->staff);
    json_decref(d->config);
}

static bool has_agents(const struct queue_desk *d, struct amp_span type)
{
    const char *at = d->staff.data, *end = at + d->staff.len;

    while (at < end) {
        const char *blank = memchr(at, ' ', (size_t)(end - at));
        if (!blank)
            break;
        if (amp_span_eq((struct amp_span){at, (size_t)(blank - at)}, type))
            return true;
        at = blank + 1;
    }
    return false;
}

enum amp_waits queue_desk_waits(const struct queue_desk *d, struct amp_span type,
                                const struct amp_order_place *p)
{
    bool could = p->why == AMP_WAITS_TURN || p->why == AMP_WAITS_BEHIND;

    return could && !has_agents(d, type) ? AMP_WAITS_WORKER : p->why;
}
