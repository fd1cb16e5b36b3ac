/* Acknowledgements, and answers to repeated attempts. */
#include "message/settle/acknowledge.h"

#include "message/ledger/ledger.h"
#include "message/operation/retry.h"
#include "message/record/sequence.h"
#include "message/settle/answer.h"
#include "message/settle/outcome.h"
#include "protocol/terms.h"

enum amp_ack_stage amp_message_stage_of(const struct amp_view *v)
{
    enum amp_ack_stage stage = v->body.ack.stage;
    if (v->kind != AMP_KIND_NACK || stage > AMP_STAGE_FULFILLED)
        return stage;
    return stage == AMP_STAGE_FULFILLED ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED;
}

/* In a protocol in which FULFILLED means that there is an outcome, the ledger must have one. */
static int outcome_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {.max = (size_t)256 << 20};
    if (!amp_terms_of(v->protocol)->acks_are_durable || v->body.ack.stage != AMP_STAGE_FULFILLED)
        return 0;
    if (amp_message_find(s, v->body.ack.ref, &mem, &r, err) < 0)
        return -1;
    return !r.found || amp_outcome_known(&r)
               ? 0
               : amp_fail(err, AMP_NO, "outcome_missing",
                          "processed, but no reply, task_complete or task_failed is known");
}

static struct amp_message_answer answer_read(const struct amp_view *v, char by[256])
{
    const struct amp_terms *t = amp_terms_of(v->protocol);
    struct amp_message_answer a = {.stage = amp_message_stage_of(v),
                                   .by = by,
                                   .id = v->id,
                                   .code = v->body.ack.code,
                                   .eta_ms = v->body.ack.eta_ms};
    amp_span_copy(v->from, by, 256);
    if (t->ack_result)
        a.result = t->ack_result(v);
    if (a.stage == AMP_STAGE_REJECTED || a.stage == AMP_STAGE_FAILED)
        a.failure = !t->acks_say_retryable  ? amp_retry_class(a.code)
                    : v->body.ack.retryable ? AMP_FAILURE_PASSING
                                            : AMP_FAILURE_TERMINAL;
    return a;
}

int amp_message_acknowledge_check(struct amp_store *s, const struct amp_view *v,
                                  struct amp_error *err)
{
    char by[256];
    struct amp_message_answer a = answer_read(v, by);
    return amp_message_may_answer(s, v->body.ack.ref, NULL, &a, err);
}

int amp_message_acknowledge(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                            struct amp_error *err)
{
    char by[256];
    struct amp_message_answer a = answer_read(v, by);
    if (outcome_check(s, v, err) < 0 ||
        amp_settle_answer(s, v->body.ack.ref, &a, now_ms, NULL, err) < 0)
        return -1;
    return amp_progress_apply(s, v, now_ms, err);
}

int amp_idem_reply(struct amp_store *s, const struct amp_view *v, const struct amp_idem_answer *a,
                   const char *node, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    struct amp_answer to = {.by = node, .now_ms = now_ms};
    const struct amp_first_attempt first = {.done = a->verdict == AMP_IDEM_DONE,
                                            .id = amp_buf_span(&a->original),
                                            .code = amp_buf_span(&a->code),
                                            .result = amp_buf_span(&a->result),
                                            .status = a->status,
                                            .at_ms = a->at_ms};
    return amp_sequence_answer(s, v, node, &to, err) < 0
               ? -1
               : amp_terms_of(v->protocol)->duplicate(v, &to, &first, out, err);
}
