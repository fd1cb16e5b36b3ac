/* The demands of a request in the ledger on its result. */
#include "message/delivery/settle/rails.h"

#include <string.h>

#include "message/delivery/ledger/awaited.h"
#include "message/delivery/ledger/holder.h"
#include "message/delivery/record/record.h"
#include "message/delivery/record/sequence.h"
#include "message/delivery/settle/outcome.h"
#include "message/protocol/answers.h"
#include "message/protocol/compose/answer.h"
#include "message/protocol/work.h"

struct search {
    struct amp_store *store;
    const struct amp_view *result;
    struct amp_reader *reader;
    struct amp_rails_found *out;
    bool own; /* a request for the responding agent was found */
};

/* Reads one attempt at the request. */
static int request_look(void *ctx, struct amp_span id, struct amp_error *err)
{
    struct search *s = ctx;
    const struct amp_work_terms *t = amp_work_of(s->result->protocol);
    struct amp_check_options opt = {.only = s->result->protocol};
    struct amp_message_rec r;
    struct amp_view request;
    AMP_BUF struct amp_buf mem = {.max = AMP_RECORD_MAX};
    if (amp_message_find(s->store, id, &mem, &r, err) < 0)
        return -1;
    bool own = r.found && amp_span_eq(r.to, s->result->from);
    if (!r.found || (s->own && !own))
        return 0;
    if (!s->reader && !(s->reader = amp_reader_new(NULL, err)))
        return -1;
    if (amp_reader_line(s->reader, r.line, &opt, &request, NULL, NULL, err) < 0)
        return -1;
    if (request.kind != AMP_KIND_DISPATCH || request.tape->n == 0)
        return 0;
    s->own = own;
    *s->out = (struct amp_rails_found){.waives = t->result_waives(&request)};
    int bad = t->result_fault(&request, s->result, &s->out->fault, err);
    if (bad <= 0)
        s->out->fault.code = NULL;
    return bad < 0 ? -1 : 0;
}

int amp_rails_find(struct amp_store *s, const struct amp_view *result, struct amp_rails_found *out,
                   struct amp_error *err)
{
    struct search look = {.store = s, .result = result, .out = out};
    *out = (struct amp_rails_found){0};
    if (!amp_work_of(result->protocol)->result_fault || result->kind != AMP_KIND_RESULT)
        return 0;
    int rc = amp_awaited_each(s, result, request_look, &look, err);
    amp_reader_free(look.reader);
    return rc;
}

int amp_rails_apply(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                    struct amp_error *err)
{
    struct amp_rails_found found;
    if (amp_rails_find(s, v, &found, err) < 0)
        return -1;
    const struct amp_result_fault *f = &found.fault;
    if (!f->code)
        return amp_outcome_apply(s, v, now_ms, err);
    if (f->ends && amp_outcome_fail(s, v, f->code, now_ms, err) < 0)
        return -1;
    return amp_fail_text(err, AMP_NO, f->code, "%s %s", f->pointer, f->what);
}

bool amp_rails_refused(const struct amp_error *e)
{
    return amp_holder_denied(e) ||
           (e->status == AMP_NO &&
            (strncmp(e->code, "E_", 2) == 0 || strcmp(e->code, AMP_OUTCOME_UNCONFIRMED) == 0));
}

int amp_rails_answer(struct amp_store *s, const struct amp_view *v, const struct amp_error *why,
                     const char *by, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    struct amp_answer a = {.stage = AMP_STAGE_REJECTED,
                           .by = by,
                           .node = by,
                           .code = why->code,
                           .note = why->what,
                           .retryable = true,
                           .now_ms = now_ms};
    if (strcmp(why->code, AMP_OUTCOME_UNCONFIRMED) != 0 || v->id.n == 0)
        return 0;
    return amp_sequence_answer(s, v, by, &a, err) < 0 ? -1 : amp_answer_line(v, &a, out, err);
}

unsigned amp_rails_waives(void *ctx, const struct amp_view *result)
{
    struct amp_rails *r = ctx;
    struct amp_rails_found found = {0};
    r->failed |= !r->failed && r->store && amp_rails_find(r->store, result, &found, &r->err) < 0;
    return r->failed ? 0 : found.waives;
}
