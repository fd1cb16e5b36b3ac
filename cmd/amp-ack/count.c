/* The metrics of track and send. */
#include "count.h"

#include "message/delivery/inbox/lane.h"
#include "message/delivery/record/record.h"
#include "message/delivery/settle/outcome.h"

static struct amp_metric_labels labels_of(const struct amp_view *v)
{
    return (struct amp_metric_labels){
        .protocol = amp_protocol_name(v->protocol),
        .lane = amp_lane_name(amp_lane_of(&amp_lane_rules_default, v)),
        .agent = v->n_to > 0 ? v->to[0] : (struct amp_span){"", 0},
    };
}

void count_taken(struct amp_metrics *m, const struct amp_view *v)
{
    if (!m)
        return;
    struct amp_metric_labels l = labels_of(v);
    amp_metrics_add(m, AMP_METRIC_RECEIVED, &l, 1);
    amp_metrics_tool(m, v);
    if (v->has_attempt)
        amp_metrics_observe(m, AMP_METRIC_RETRY_COUNT, &l, (double)v->attempt);
}

void count_passed(struct amp_metrics *m, const struct amp_view *v, bool again)
{
    if (!m)
        return;
    struct amp_metric_labels l = labels_of(v);
    amp_metrics_add(m, AMP_METRIC_SENT, &l, 1);
    if (again)
        amp_metrics_add(m, AMP_METRIC_REDELIVERED, &l, 1);
}

void count_rejected(struct amp_metrics *m, enum amp_protocol protocol, const char *code)
{
    struct amp_metric_labels l = {.protocol = amp_protocol_name(protocol),
                                  .code = amp_span_str(code)};
    amp_metrics_add(m, AMP_METRIC_REJECTED, &l, 1);
}

void count_decision(struct amp_metrics *m, const struct amp_view *v, const char *decision)
{
    if (!m)
        return;
    struct amp_metric_labels l = labels_of(v);
    l.code = amp_span_str(decision);
    amp_metrics_add(m, AMP_METRIC_DUPLICATES, &l, 1);
}

void count_answer(struct amp_metrics *m, struct amp_store *s, struct amp_span id,
                  const struct count_answer *a)
{
    struct amp_message_rec r;
    struct amp_error err;
    if (!m)
        return;
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, (size_t)256 << 20);
    if (!s || amp_message_find(s, id, &mem, &r, &err) < 0)
        r = (struct amp_message_rec){0};
    bool refusal = a->stage == AMP_STAGE_REJECTED || a->stage == AMP_STAGE_FAILED;
    struct amp_metric_labels l = {.protocol = amp_protocol_name(a->protocol),
                                  .agent = amp_span_str(a->by),
                                  .code = amp_span_str(amp_ack_stage_name(a->stage))};
    if (r.sent_ms > 0)
        amp_metrics_observe(m, AMP_METRIC_ACK_LATENCY, &l, (double)(a->now_ms - r.sent_ms) / 1e3);
    bool late = false;
    if (r.found && !a->ours && amp_record_has_ack(&r, amp_ack_stage_name(a->stage), a->by, &late) &&
        late)
        amp_metrics_add(m, AMP_METRIC_LATE_ACKS, &l, 1);
    if (refusal)
        l.code = a->code;
    if (!refusal)
        amp_metrics_add(m, AMP_METRIC_ACKED, &l, 1);
    else
        amp_metrics_add(m, a->ours ? AMP_METRIC_NACKS : AMP_METRIC_NACKED, &l, 1);
}

void count_acknowledgement(struct amp_metrics *m, struct amp_store *s, const struct amp_view *v,
                           int64_t now_ms)
{
    char by[256];
    amp_span_copy(v->from, by, sizeof(by));
    struct count_answer a = {.protocol = v->protocol,
                             .stage = amp_message_stage_of(v),
                             .by = by,
                             .code = v->body.ack.code,
                             .now_ms = now_ms};
    count_answer(m, s, v->body.ack.ref, &a);
}
