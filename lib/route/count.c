/* What is counted of the router (--metrics): SW4RM §13's values, by port. */
#include "route/router/router.h"

#include <string.h>

#include <amp/base/clock.h>

#include "message/cursor/cursors.h"
#include "message/inbox/inbox.h"
#include "message/record/record.h"

static struct amp_metric_labels labels(const char *port, const struct job *j)
{
    return (struct amp_metric_labels){.agent = amp_span_str(port),
                                      .protocol = j ? amp_protocol_name(j->protocol) : NULL,
                                      .lane = j ? amp_lane_name(j->lane) : NULL};
}

void amp_route_count_job(struct router *r, enum amp_metric which, const char *port,
                         const struct job *j)
{
    if (!r->metrics)
        return;
    struct amp_metric_labels l = labels(port, j);
    amp_metrics_add(r->metrics, which, &l, 1);
}

void amp_route_count_taken(struct router *r, const struct job *j, const struct amp_view *v)
{
    if (!r->metrics)
        return;
    amp_route_count_job(r, AMP_METRIC_RECEIVED, "", j);
    amp_metrics_tool(r->metrics, v);
}

static void count_code(struct router *r, enum amp_metric which, const char *port,
                       const struct job *j, const char *code)
{
    if (!r->metrics)
        return;
    struct amp_metric_labels l = labels(port, j);
    l.code = amp_span_str(code);
    amp_metrics_add(r->metrics, which, &l, 1);
}

void amp_route_count_denied(struct router *r, const struct job *j, const char *code)
{
    count_code(r, AMP_METRIC_REJECTS, "", j, code);
}

void amp_route_count_refused(struct router *r, const char *port, const struct job *j,
                             const char *code)
{
    count_code(r, AMP_METRIC_REJECTS, port, j, code);
    count_code(r, AMP_METRIC_NACKS, port, j, code);
}

void amp_route_count_placed(struct router *r, const char *port, const struct job *j)
{
    if (!r->metrics || j->came_ms == 0)
        return;
    struct amp_metric_labels l = labels(port, NULL);
    amp_metrics_observe(r->metrics, AMP_METRIC_ENQUEUE_LATENCY, &l,
                        (double)(amp_mono_ms() - j->came_ms) / 1e3);
}

void amp_route_count_waited(struct router *r, const char *port, int64_t ms)
{
    if (!r->metrics)
        return;
    struct amp_metric_labels l = labels(port, NULL);
    amp_metrics_observe(r->metrics, AMP_METRIC_DEQUEUE_LATENCY, &l, (double)ms / 1e3);
}

int amp_route_count_inbox(struct amp_metrics *m, const char *label, struct amp_store *store,
                          struct amp_span agent, struct amp_error *err)
{
    struct amp_inbox_info i;
    struct amp_metric_labels l = labels(label, NULL);
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

/* The present values. */
static void gauges(struct router *r)
{
    struct amp_error err;
    for (uint32_t i = 1; i < r->n_ports; i++) {
        const struct amp_outlet *t = r->outlets[i];
        const char *spec = t->spec;
        struct amp_metric_labels l = labels(spec, NULL);
        if (t->action == AMP_OUTLET_INBOX) {
            /* What waits there is in the state, which --dry-run can do without. */
            if (r->store && !r->broken &&
                amp_route_count_inbox(r->metrics, spec, r->store, amp_span_str(t->arg), &err) < 0)
                r->voice->warn("%s", err.what);
            continue;
        }
        int64_t oldest = r->now_ms;
        for (int lane = 0; lane < AMP_LANE_COUNT; lane++)
            if (t->line[lane].first && t->line[lane].first->since_ms < oldest)
                oldest = t->line[lane].first->since_ms;
        amp_metrics_set(r->metrics, AMP_METRIC_QUEUE_DEPTH, &l,
                        t->n + (t->port ? amp_port_untaken(t->port) : 0));
        amp_metrics_set(r->metrics, AMP_METRIC_OLDEST_AGE, &l, (double)(r->now_ms - oldest) / 1e3);
        const struct unacked *u = &t->unacked;
        if (u->credits)
            amp_metrics_set(r->metrics, AMP_METRIC_CREDITS, &l,
                            u->credits > u->away ? u->credits - u->away : 0);
        if (t->inbound)
            amp_metrics_set(r->metrics, AMP_METRIC_QUEUE_CAPACITY, &l, t->inbound);
    }
    if (r->store && r->cursors && !r->broken &&
        amp_cursors_measure(r->store, amp_now_ms(), r->metrics, &err) < 0)
        r->voice->warn("%s", err.what);
}

void amp_route_count_turn(struct router *r)
{
    struct amp_error err;
    if (!r->metrics || amp_metrics_timeout(r->metrics) != 0)
        return;
    gauges(r);
    if (amp_metrics_tick(r->metrics, &err) < 0)
        r->voice->warn("%s", err.what);
}

int amp_route_count_end(struct router *r, struct amp_error *err)
{
    if (!r->metrics)
        return 0;
    gauges(r);
    struct amp_metrics *m = r->metrics;
    r->metrics = NULL;
    return amp_metrics_close(m, err);
}
