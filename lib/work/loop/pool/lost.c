/* Releases what pools and agents had whose process was killed. */
#include "work/loop/pool/lost.h"

#include <stdio.h>
#include <stdlib.h>

#include <amp/base/clock.h>

#include "message/delivery/outbox.h"
#include "work/agent/agent_notices.h"
#include "work/agent/work.h"
#include "work/item/claim/queue.h"
#include "work/loop/pool/record.h"

#define POOLS_MAX 64    /* of one run; the next one has the rest */
#define LOOK_MS   10000 /* between two looks at the processes of agents at work */

struct look {
    struct amp_store *store;
    amp_lost_fn fn;
    void *ctx;
    bool living; /* an agent at work whose process lives */
};

static int on_pool(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_pool_rec *r = rec;
    const struct look *k = ctx;

    if (amp_queue_worker_lives(k->store, r->name))
        return 0;
    const struct amp_lost l = {
        .what = "pool", .name = amp_span_str(r->name), .seen_ms = r->since_ms};
    return k->fn(k->ctx, &l, err);
}

static int on_agent(void *ctx, struct amp_span name, const struct amp_agent_rec *rec,
                    struct amp_error *err)
{
    struct look *k = ctx;

    if (!amp_agent_lost(k->store, name, rec)) {
        k->living |= amp_agent_works(rec);
        return 0;
    }
    const struct amp_lost l = {.what = "agent",
                               .name = name,
                               .task = amp_span_str(rec->work.task ? rec->work.task : ""),
                               .seen_ms = rec->work.last_seen_ms};
    return k->fn(k->ctx, &l, err);
}

static int look_run(struct look *k, struct amp_error *err)
{
    int rc = amp_subject_each(&amp_pool_subject, k->store, NULL, on_pool, k, err);

    return rc != 0 ? rc : amp_agent_records(k->store, on_agent, k, err);
}

int amp_lost_each(struct amp_store *s, amp_lost_fn fn, void *ctx, struct amp_error *err)
{
    struct look k = {.store = s, .fn = fn, .ctx = ctx};

    return look_run(&k, err);
}

static int earliest(void *ctx, const struct amp_lost *l, struct amp_error *err)
{
    int64_t *ms = ctx;

    (void)err;
    if (*ms == 0 || l->seen_ms < *ms)
        *ms = l->seen_ms;
    return 0;
}

int amp_lost_due(struct amp_store *s, const struct amp_deadline_ctx *c, int64_t *ms,
                 struct amp_error *err)
{
    struct look k = {.store = s, .fn = earliest, .ctx = ms};

    (void)c;
    *ms = 0;
    if (look_run(&k, err) < 0)
        return -1;
    if (*ms == 0 && k.living) /* nothing tells of a kill */
        *ms = amp_now_ms() + LOOK_MS;
    return 0;
}

struct pools {
    struct amp_store *store;
    char name[POOLS_MAX][AMP_QUEUE_WORKER_MAX];
    unsigned n;
};

static int pool_add(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_pool_rec *r = rec;
    struct pools *p = ctx;

    (void)err;
    if (!amp_queue_worker_lives(p->store, r->name) &&
        amp_span_copy(amp_span_str(r->name), p->name[p->n], sizeof p->name[0]))
        p->n++;
    return p->n == POOLS_MAX;
}

/* Its record is removed under its lock: another pool may begin with the name. */
static int pool_forget(struct pools *p, const char *name, int64_t now_ms, uint32_t *done,
                       struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    char file[AMP_QUEUE_WORKER_MAX + 16];
    struct amp_error e;

    snprintf(file, sizeof file, "worker.%s", name);
    if (amp_outbox_lock(p->store, file, 0, &lock, &e) < 0)
        return 0;
    ++*done;
    return amp_pool_rec_end(p->store, name, err);
}

int amp_lost_run(struct amp_store *s, int64_t now_ms, const struct amp_deadline_ctx *c,
                 uint32_t *done, struct amp_error *err)
{
    AMP_FREE struct pools *p = calloc(1, sizeof *p);

    if (!p)
        return amp_fail_memory(err);
    p->store = s;
    int rc = amp_queue_lost_release(s, NULL, c->actor, done, err) < 0 ||
                     amp_subject_each(&amp_pool_subject, s, NULL, pool_add, p, err) < 0
                 ? -1
                 : 0;
    for (unsigned i = 0; i < p->n && rc >= 0; i++)
        rc = pool_forget(p, p->name[i], now_ms, done, err);
    return rc < 0 ? -1 : amp_agent_lost_run(s, now_ms, c, done, err);
}
