/* From a RESPONSE to the policy of its TASK. */
#include "message/settle/rails.h"

#include <string.h>

#include "message/ledger/awaited.h"
#include "message/ledger/holder.h"
#include "message/record/record.h"
#include "message/settle/outcome.h"

struct search {
    struct amp_store *store;
    const struct amp_view *response;
    struct amp_reader *reader;
    struct amp_aop_policy *out;
    bool found, own; /* own: of the agent that responds */
};

/* Takes the policy of one attempt, where the ledger has it. */
static int policy_take(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct search *s = ctx;
    struct amp_check_options opt = {.only = AMP_PROTO_AOP};
    struct amp_message_rec r;
    struct amp_view task;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_message_find(s->store, id, &mem, &r, err) < 0)
        return -1;
    bool own = r.found && amp_span_eq(r.to, s->response->from);
    if (!r.found || !amp_span_is(r.protocol, "aop") || (s->own && !own))
        return 0;
    if (!s->reader && !(s->reader = amp_reader_new(NULL, err)))
        return -1;
    if (amp_reader_line(s->reader, r.line, &opt, &task, NULL, NULL, err) < 0)
        return -1;
    if (task.kind != AMP_KIND_DISPATCH || task.tape->n == 0)
        return 0;
    amp_aop_policy(&task, s->out);
    s->found = true;
    s->own = own;
    return 0;
}

int amp_rails_policy(struct amp_store *s, const struct amp_view *response,
                     struct amp_aop_policy *out, struct amp_error *err)
{
    struct search look = {.store = s, .response = response, .out = out};
    if (response->protocol != AMP_PROTO_AOP || response->kind != AMP_KIND_RESULT)
        return 0;
    int rc = amp_awaited_each(s, response, policy_take, &look, err);
    amp_reader_free(look.reader);
    return rc < 0 ? -1 : look.found;
}

int amp_rails_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                    struct amp_error *err)
{
    struct amp_aop_policy p;
    int known = amp_rails_policy(s, v, &p, err);
    const char *fault = known > 0 ? amp_aop_response_fault(&p, v) : NULL;
    if (known < 0)
        return -1;
    if (!fault)
        return amp_outcome_apply(s, v, now_ms, err);
    if (amp_outcome_fail(s, v, fault, now_ms, err) < 0)
        return -1;
    return amp_fail(err, AMP_NO, fault, "the work cost more than a budget of its TASK allows");
}

bool amp_rails_refused(const struct amp_error *e)
{
    return amp_holder_denied(e) ||
           (e->status == AMP_NO && strcmp(e->code, "E_COST_LIMIT_EXCEEDED") == 0);
}

unsigned amp_rails_waives(void *ctx, const struct amp_view *response)
{
    struct amp_rails *r = ctx;
    struct amp_aop_policy p;
    int rc = r->failed || !r->store ? 0 : amp_rails_policy(r->store, response, &p, &r->err);
    r->failed |= rc < 0;
    if (rc <= 0)
        return 0;
    return (p.minimal_report.value ? 0 : AMP_WAIVES_REPORT) |
           (p.final_signal.value ? 0 : AMP_WAIVES_SIGNAL);
}
