/* Records of what work cost. */
#include "message/settle/cost.h"

#include "json/record.h"

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

struct spending {
    struct amp_cost rec;
    struct amp_buf mem, json; /* mem: of the record that there is */
};

/* A repeated outcome changes nothing. */
static int spent_commit(void *ctx, const struct amp_store_rec *now, struct amp_store_change *change,
                        struct amp_error *err)
{
    struct spending *w = ctx;
    struct amp_cost was;
    if (now->found && amp_cost_parse(now, &w->mem, &was, err) < 0)
        return -1;
    if (now->found && was.tokens_in == w->rec.tokens_in && was.tokens_out == w->rec.tokens_out &&
        was.micros == w->rec.micros)
        return 1;
    amp_buf_reset(&w->json);
    if (amp_rec_write(&spent_rec, &w->rec, &w->json, err) < 0)
        return -1;
    change->event = "spend";
    change->to = "SPENT";
    change->json = amp_buf_span(&w->json);
    return 0;
}

int amp_cost_record(struct amp_store *s, struct amp_span id, const struct amp_view *outcome,
                    const struct amp_usage *usage, int64_t now_ms, struct amp_error *err)
{
    struct spending w = {.rec = {.task = outcome->task,
                                 .correlation = outcome->correlation,
                                 .agent = outcome->from,
                                 .tokens_in = usage->tokens_in,
                                 .tokens_out = usage->tokens_out,
                                 .micros = usage->micros,
                                 .at_ms = now_ms},
                         .mem = {.max = AMP_REC_MAX},
                         .json = {.max = AMP_REC_MAX}};
    int rc = amp_store_update(s, AMP_KEY(AMP_COST_KIND, id), NULL, spent_commit, &w, NULL, err);
    amp_buf_release(&w.mem);
    amp_buf_release(&w.json);
    return rc;
}

int amp_cost_parse(const struct amp_store_rec *row, struct amp_buf *mem, struct amp_cost *out,
                   struct amp_error *err)
{
    return amp_rec_parse(&spent_rec, row->json, mem, out, err);
}
