/* A router's record in the store. */
#include "message/route/record.h"

#include "message/record/subject.h"

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

static int batch_note(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_route_commit *of = t->step->with;

    (void)err;
    *(struct record *)rec = (struct record){.batches = (int64_t)t->now->rev + 1,
                                            .port = of->port,
                                            .redelivered = of->redelivered,
                                            .n_redelivered = of->n_redelivered};
    t->change->event = of->event;
    return 0;
}

static const char *const states[] = {"OPEN", NULL};
static const struct amp_subject routers = {
    .kind = "route", .table = &route_rec, .states = states, .carry = batch_note};

int amp_route_record(const struct amp_route_run *run, const struct amp_route_commit *commit,
                     enum amp_store_outcome *how, struct amp_error *err)
{
    const struct amp_subject_step step = {.key = AMP_KEY(routers.kind, amp_span_str(run->name)),
                                          .with = commit,
                                          .actor = commit->actor,
                                          .input = commit->in,
                                          .emits = commit->emits,
                                          .n_emits = commit->n_emits};

    return amp_subject_step(&routers, run->store, &step, NULL, NULL, how, err);
}
