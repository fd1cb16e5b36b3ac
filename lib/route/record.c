/* A router's record in the store. */
#include "route/record.h"

#include "json/record.h"

#define KIND       "route"
#define RECORD_MAX ((size_t)4 << 20)

struct record {
    int64_t batches;
    struct amp_span port;
    struct amp_span *redelivered;
    uint32_t n_redelivered;
};

static const struct amp_rec_field fields[] = {
    AMP_REC_EVER(INT, struct record, "batches", batches),
    AMP_REC(TEXT, struct record, "port", port),
    AMP_REC_WORDS(struct record, "redelivered", redelivered, false),
};
AMP_REC_TABLE(route_rec, "a router's record", struct record, fields);

struct change {
    const struct amp_route_commit *commit;
    struct amp_buf json;
};

static int change_fn(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                     struct amp_error *err)
{
    struct change *c = ctx;
    const struct amp_route_commit *of = c->commit;
    struct record r = {.batches = (int64_t)now->rev + 1,
                       .port = of->port,
                       .redelivered = of->redelivered,
                       .n_redelivered = of->n_redelivered};
    amp_buf_reset(&c->json);
    if (amp_rec_write(&route_rec, &r, &c->json, err) < 0)
        return -1;
    change->event = of->event;
    change->actor = of->actor;
    change->to = "OPEN";
    change->json = amp_buf_span(&c->json);
    change->emits = of->emits;
    change->n_emits = of->n_emits;
    return 0;
}

int amp_route_record(const struct amp_route_run *run, const struct amp_route_commit *commit,
                     enum amp_store_outcome *how, struct amp_error *err)
{
    struct change c = {.commit = commit};
    amp_buf_init(&c.json, RECORD_MAX);
    int rc = amp_store_update(run->store, AMP_KEY(KIND, amp_span_str(run->name)), commit->in,
                              change_fn, &c, how, err);
    amp_buf_release(&c.json);
    return rc;
}
