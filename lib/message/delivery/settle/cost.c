/* Records of what work cost. */
#include "message/delivery/settle/cost.h"

#include "message/record/subject.h"

static const struct amp_rec_field fields[] = {
    AMP_REC(TEXT, struct amp_cost, "task", task),
    AMP_REC(TEXT, struct amp_cost, "correlation", correlation),
    AMP_REC(TEXT, struct amp_cost, "agent", agent),
    AMP_REC(INT, struct amp_cost, "tokens_in", tokens_in),
    AMP_REC(INT, struct amp_cost, "tokens_out", tokens_out),
    AMP_REC(INT, struct amp_cost, "micros", micros),
    AMP_REC(INT, struct amp_cost, "at_ms", at_ms),
};
AMP_REC_TABLE(spent_rec, "the record of a cost", struct amp_cost, fields);

/* A repeated outcome changes nothing. */
static int spent_set(void *rec, struct amp_subject_turn *t, struct amp_error *err)
{
    const struct amp_cost *now = t->step->with;
    struct amp_cost *was = rec;

    (void)err;
    if (t->now->found && was->tokens_in == now->tokens_in && was->tokens_out == now->tokens_out &&
        was->micros == now->micros)
        return 1;
    *was = *now;
    t->change->event = "spend";
    return 0;
}

static const char *const states[] = {"SPENT", NULL};
static const struct amp_subject costs = {
    .kind = AMP_COST_KIND, .table = &spent_rec, .states = states, .carry = spent_set};

int amp_cost_record(struct amp_store *s, struct amp_span id, const struct amp_view *outcome,
                    const struct amp_usage *usage, int64_t now_ms, struct amp_error *err)
{
    const struct amp_cost rec = {.task = outcome->task,
                                 .correlation = outcome->correlation,
                                 .agent = outcome->from,
                                 .tokens_in = usage->tokens_in,
                                 .tokens_out = usage->tokens_out,
                                 .micros = usage->micros,
                                 .at_ms = now_ms};
    const struct amp_subject_step step = {.key = AMP_KEY(AMP_COST_KIND, id), .with = &rec};

    return amp_subject_step(&costs, s, &step, NULL, NULL, NULL, err);
}

int amp_cost_parse(const struct amp_store_rec *row, struct amp_buf *mem, struct amp_cost *out,
                   struct amp_error *err)
{
    return amp_rec_parse(&spent_rec, row->json, mem, out, err);
}
