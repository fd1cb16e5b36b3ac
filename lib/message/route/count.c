/* Counting the messages of a router. */
#include "message/route/count.h"

#include <amp/base/clock.h>

#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"

static struct amp_metric_labels labels_of(const char *port, const struct parcel *j)
{
    return (struct amp_metric_labels){.agent = amp_span_str(port),
                                      .protocol = j ? amp_protocol_name(j->protocol) : NULL,
                                      .lane = j ? amp_lane_name(j->lane) : NULL};
}

void amp_route_count_code(struct amp_route_run *run, enum amp_metric which, const char *port,
                          const struct parcel *j, const char *code)
{
    if (!run->metrics)
        return;
    struct amp_metric_labels l = labels_of(port, j);
    l.code = amp_span_str(code);
    amp_metrics_add(run->metrics, which, &l, 1);
}

void amp_route_count_parcel(struct amp_route_run *run, enum amp_metric which, const char *port,
                            const struct parcel *j)
{
    amp_route_count_code(run, which, port, j, NULL);
}

static void time_observe(struct amp_route_run *run, enum amp_metric which, const char *port,
                         int64_t ms)
{
    struct amp_metric_labels l = labels_of(port, NULL);
    amp_metrics_observe(run->metrics, which, &l, (double)ms / 1e3);
}

void amp_route_count_placed(struct amp_route_run *run, const char *port, const struct parcel *j)
{
    if (run->metrics && j->came_ms != 0)
        time_observe(run, AMP_METRIC_ENQUEUE_LATENCY, port, amp_mono_ms() - j->came_ms);
}

void amp_route_count_waited(struct amp_route_run *run, const char *port, int64_t ms)
{
    if (run->metrics)
        time_observe(run, AMP_METRIC_DEQUEUE_LATENCY, port, ms);
}

int amp_route_count_inbox(struct amp_metrics *m, const char *label, struct amp_store *store,
                          struct amp_span agent, struct amp_error *err)
{
    struct amp_inbox_info i;
    struct amp_metric_labels l = labels_of(label, NULL);
    AMP_BUF struct amp_buf mem = {0};
    amp_buf_init(&mem, AMP_RECORD_MAX);
    if (amp_inbox_info(store, agent, &mem, &i, err) < 0)
        return -1;
    int64_t age = i.waiting > 0 ? amp_now_ms() - i.oldest_ms : 0;
    amp_metrics_set(m, AMP_METRIC_QUEUE_DEPTH, &l, i.waiting);
    amp_metrics_set(m, AMP_METRIC_QUEUE_CAPACITY, &l, i.bound);
    amp_metrics_set(m, AMP_METRIC_OLDEST_AGE, &l, age > 0 ? (double)age / 1e3 : 0);
    if (i.credits > 0)
        amp_metrics_set(m, AMP_METRIC_CREDITS, &l, i.credits > i.open ? i.credits - i.open : 0);
    return 0;
}
