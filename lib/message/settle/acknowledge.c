/* Acknowledgements as they come, and answers to attempts that do not pass. */
#include "message/settle/acknowledge.h"

#include <string.h>

#include "message/ledger/ledger.h"
#include "message/operation/retry.h"
#include "message/record/sequence.h"
#include "message/settle/answer.h"
#include "message/settle/heard.h"
#include "message/settle/outcome.h"
#include "protocol/rtp/answer.h"
#include "protocol/sw4rm/answer.h"

/* What the acknowledgement gives: its "result", or its note as a string. Both are JSON as it stands
 * in the message. */
static struct amp_span result_of(const struct amp_view *v)
{
    static const char *const keys[] = {"result", "note"};
    if (v->protocol != AMP_PROTO_SW4RM || v->payload == AMP_TOK_NONE)
        return (struct amp_span){"", 0};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        uint32_t tok = amp_tape_get(v->tape, v->payload, amp_span_str(keys[i]));
        if (tok != AMP_TOK_NONE)
            return amp_tok_source(v->tape, tok);
    }
    return (struct amp_span){"", 0};
}

enum amp_ack_stage amp_message_stage_of(const struct amp_view *v)
{
    enum amp_ack_stage stage = v->body.ack.stage;
    if (v->kind != AMP_KIND_NACK || stage > AMP_STAGE_FULFILLED)
        return stage;
    return stage == AMP_STAGE_FULFILLED ? AMP_STAGE_FAILED : AMP_STAGE_REJECTED;
}

/* AMP says itself whether sending again may help; an ack of the Runtime Protocol is terminal unless
 * it says so. */
static enum amp_failure failure_of(const struct amp_view *v)
{
    if (v->protocol == AMP_PROTO_AMP || v->protocol == AMP_PROTO_RTP)
        return v->body.ack.retryable ? AMP_FAILURE_PASSING : AMP_FAILURE_TERMINAL;
    return amp_retry_class(v->body.ack.code);
}

/* Runtime Protocol §5: processed means that there is an outcome. */
static int outcome_check(struct amp_store *s, const struct amp_view *v, struct amp_error *err)
{
    struct amp_message_rec r;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, (size_t)256 << 20);
    if (v->protocol != AMP_PROTO_RTP || v->body.ack.stage != AMP_STAGE_FULFILLED)
        return 0;
    if (amp_message_find(s, v->body.ack.ref, &mem, &r, err) < 0)
        return -1;
    return !r.found || amp_outcome_known(&r)
               ? 0
               : amp_fail(err, AMP_NO, "outcome_missing",
                          "processed, but no reply, task_complete or task_failed is known");
}

int amp_message_acknowledge(struct amp_store *s, const struct amp_view *v, int64_t now_ms,
                            struct amp_error *err)
{
    char by[256];
    struct amp_message_answer a = {.stage = amp_message_stage_of(v),
                                   .by = by,
                                   .id = v->id,
                                   .code = v->body.ack.code,
                                   .result = result_of(v)};
    amp_span_copy(v->from, by, sizeof(by));
    a.eta_ms = v->body.ack.eta_ms;
    if (a.stage == AMP_STAGE_REJECTED || a.stage == AMP_STAGE_FAILED)
        a.failure = failure_of(v);
    if (outcome_check(s, v, err) < 0 ||
        amp_settle_answer(s, v->body.ack.ref, &a, now_ms, NULL, err) < 0)
        return -1;
    return amp_heard_apply(s, v, now_ms, err);
}

static int rtp_answer(struct amp_store *s, const struct amp_view *v,
                      const struct amp_idem_answer *a, const char *node, int64_t now_ms,
                      struct amp_buf *line, struct amp_error *err)
{
    bool done = a->verdict == AMP_IDEM_DONE;
    AMP_BUF struct amp_buf why = {0};
    amp_buf_init(&why, 1 << 16);
    struct amp_rtp_answer to = {.id = v->id,
                                .type = v->type,
                                .source = v->from,
                                .correlation = v->correlation,
                                .node = node,
                                .by = node,
                                .now_ms = now_ms};
    if (amp_buf_fmt(&why, err, "%.*s is %s", (int)(a->original.len < 200 ? a->original.len : 200),
                    a->original.data, a->status) < 0 ||
        amp_sequence_next(s, amp_span_str(to.node), 1, to.by, &to.sequence, err) < 0)
        return -1;
    return amp_rtp_ack(&to, done ? AMP_STAGE_FULFILLED : AMP_STAGE_RECEIVED,
                       amp_span_str(amp_idem_word(a->verdict)), amp_buf_span(&why), line, err);
}

static int sw4rm_answer(struct amp_store *s, const struct amp_view *v,
                        const struct amp_idem_answer *a, const char *node, int64_t now_ms,
                        struct amp_buf *line, struct amp_error *err)
{
    struct amp_answered of = {.id = v->id, .producer = v->from, .correlation = v->correlation};
    AMP_BUF struct amp_buf note = {0};
    amp_buf_init(&note, 1 << 20);
    if (amp_sequence_rise(s, amp_span_str(node), now_ms, node, &of.sequence, err) < 0)
        return -1;
    if (a->verdict == AMP_IDEM_DONE) {
        struct amp_first_attempt first = {.id = amp_buf_span(&a->original),
                                          .code = amp_buf_span(&a->code),
                                          .result = amp_buf_span(&a->result),
                                          .status = a->status,
                                          .at_ms = a->at_ms};
        return amp_sw4rm_duplicate(&of, &first, node, now_ms, line, err);
    }
    if (amp_buf_fmt(&note, err, "The work of %.*s goes on; it is %s",
                    (int)(a->original.len < 200 ? a->original.len : 200), a->original.data,
                    a->status) < 0)
        return -1;
    return amp_sw4rm_nack(&of, AMP_STAGE_REJECTED, AMP_SPAN("ALREADY_IN_PROGRESS"),
                          amp_buf_span(&note), node, now_ms, line, err);
}

int amp_idem_tell(struct amp_store *s, const struct amp_view *v, const struct amp_idem_answer *a,
                  const char *node, int64_t now_ms, struct amp_buf *out, struct amp_error *err)
{
    return v->protocol == AMP_PROTO_RTP ? rtp_answer(s, v, a, node, now_ms, out, err)
                                        : sw4rm_answer(s, v, a, node, now_ms, out, err);
}
