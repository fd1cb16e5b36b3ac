/* Metrics: what is counted under which labels, bounds, and both texts to the byte. */
#include <stdlib.h>

#include <amp/json/tape.h>

#include "../tap.h"
#include "message/metrics/series.h"

static struct amp_error err;
static struct amp_buf text;

static struct amp_metrics *make(int64_t sets)
{
    struct amp_metrics_options o = {.path = "unused", .tool = "a\"b\\c", .sets_max = sets};
    return amp_metrics_make(&o);
}

static const char *openmetrics(const struct amp_metrics *m)
{
    amp_buf_reset(&text);
    amp_metrics_openmetrics(m, &text, &err);
    amp_buf_add(&text, "", 1, &err);
    return text.data;
}

static bool has(const char *line)
{
    const char *at = strstr(text.data, line);
    bool ok = at && (at == text.data || at[-1] == '\n') && at[strlen(line)] == '\n';
    if (!ok)
        printf("# no line %s in\n# %s\n", line, text.data);
    return ok;
}

static void specs(void)
{
    bool good = true;
    for (int i = 0; i < AMP_METRIC_N; i++) {
        const struct amp_metric_spec *s = &amp_metric_specs[i];
        size_t n = strlen(s->name);
        bool total = n > 6 && strcmp(s->name + n - 6, "_total") == 0;
        /* The family is named without the counter's _total, and ends in the unit. */
        size_t family = total ? n - 6 : n, u = strlen(s->unit);
        bool unit = u == 0 || (family > u && strncmp(s->name + family - u, s->unit, u) == 0);
        bool code = (strchr(s->labels, 'c') != NULL) == (*s->code != 0);
        bool ok = total == (s->kind == AMP_METRIC_COUNTER) && unit && code &&
                  strspn(s->labels, "palc") == strlen(s->labels) &&
                  (s->kind == AMP_METRIC_TIMES) <= (strcmp(s->unit, "seconds") == 0);
        for (const char *c = s->name; *c; c++)
            ok = ok && strchr("abcdefghijklmnopqrstuvwxyz_.", *c);
        for (int k = 0; k < i; k++)
            ok = ok && strcmp(s->name, amp_metric_specs[k].name) != 0;
        if (!ok)
            printf("# row %s\n", s->name);
        good = good && ok;
    }
    TAP_OK(good, "every row keeps the rules for names, units and labels");
}

static void values(void)
{
    struct amp_metrics *m = make(0);
    struct amp_metric_labels ann = {.agent = AMP_SPAN("ann"), .protocol = "sw4rm"};
    struct amp_metric_labels full = {.agent = AMP_SPAN("ann"), .code = AMP_SPAN("buffer_full")};
    amp_metrics_add(NULL, AMP_METRIC_SENT, &ann, 1);
    TAP_STR(openmetrics(m), "# EOF\n", "nothing counted yet");
    amp_metrics_add(m, AMP_METRIC_TIMEOUTS, &ann, 2);
    amp_metrics_add(m, AMP_METRIC_TIMEOUTS, &ann, 3);
    amp_metrics_add(m, AMP_METRIC_REJECTS, &full, 1);
    amp_metrics_add(m, AMP_METRIC_QUEUE_DEPTH, &full, 1); /* no counter: not counted */
    amp_metrics_set(m, AMP_METRIC_OLDEST_AGE, &full, 1.5);
    amp_metrics_observe(m, AMP_METRIC_RETRY_COUNT, NULL, 0);
    amp_metrics_observe(m, AMP_METRIC_RETRY_COUNT, NULL, 2);
    amp_metrics_observe(m, AMP_METRIC_RETRY_COUNT, NULL, 99);
    TAP_STR(openmetrics(m),
            "# TYPE amp_router_oldest_enqueued_age_seconds gauge\n"
            "# UNIT amp_router_oldest_enqueued_age_seconds seconds\n"
            "# HELP amp_router_oldest_enqueued_age_seconds Age of the oldest message in the "
            "agent's inbound buffer.\n"
            "amp_router_oldest_enqueued_age_seconds{tool=\"a\\\"b\\\\c\",agent_id=\"ann\"} 1.5\n"
            "# TYPE amp_router_enqueue_rejects counter\n"
            "# HELP amp_router_enqueue_rejects Messages that the agent's inbound buffer "
            "refused.\n"
            "amp_router_enqueue_rejects_total{tool=\"a\\\"b\\\\c\",agent_id=\"ann\",reason="
            "\"buffer_full\"} 1\n"
            "# TYPE amp_messages_timeouts counter\n"
            "# HELP amp_messages_timeouts Messages not acknowledged in time.\n"
            "amp_messages_timeouts_total{tool=\"a\\\"b\\\\c\",protocol=\"sw4rm\",agent_id=\"ann\"}"
            " 5\n"
            "# TYPE amp_messages_retry_count histogram\n"
            "# HELP amp_messages_retry_count Retry count of each message received.\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"0.0\"} 1\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"1.0\"} 1\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"2.0\"} 2\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"3.0\"} 2\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"5.0\"} 2\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"8.0\"} 2\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"13.0\"} 2\n"
            "amp_messages_retry_count_bucket{tool=\"a\\\"b\\\\c\",le=\"+Inf\"} 3\n"
            "amp_messages_retry_count_count{tool=\"a\\\"b\\\\c\"} 3\n"
            "amp_messages_retry_count_sum{tool=\"a\\\"b\\\\c\"} 101\n"
            "# EOF\n",
            "OpenMetrics text");
    amp_metrics_free(m);
}

static void hostile(void)
{
    struct amp_metrics *m = make(0);
    char longest[400];
    memset(longest, 'x', sizeof(longest));
    struct amp_metric_labels l = {.agent = AMP_SPAN("a\nb\x1b[2J\xff\"} 9\\\xc2\x85")};
    amp_metrics_add(m, AMP_METRIC_URGENT, &l, 1);
    l.agent = (struct amp_span){longest, sizeof(longest)};
    amp_metrics_add(m, AMP_METRIC_URGENT, &l, 1);
    openmetrics(m);
    TAP_OK(has("amp_router_urgent_dispatches_total{tool=\"a\\\"b\\\\c\",agent_id=\"a\xef\xbf\xbd"
               "b\xef\xbf\xbd[2J\xef\xbf\xbd\\\"} 9\\\\\xef\xbf\xbd\"} 1"),
           "a hostile name stays within its quotes");
    char want[300];
    snprintf(
        want, sizeof(want),
        "amp_router_urgent_dispatches_total{tool=\"a\\\"b\\\\c\",agent_id=\"%.100s\xe2\x80\xa6\"}"
        " 1",
        longest);
    TAP_OK(has(want), "a long one is cut");
    amp_buf_reset(&text);
    TAP_INT(amp_metrics_ndjson(m, 0, true, &text, &err), 0, "and as JSON");
    struct amp_tape t;
    struct amp_json_fault f;
    amp_tape_init(&t, NULL);
    TAP_INT(amp_tape_scan(&t, text.data, text.len - 1, &f), 0, "it is JSON");
    TAP_OK(text.data[text.len - 1] == '\n' && !memchr(text.data, '\n', text.len - 1), "one line");
    amp_tape_release(&t);
    amp_metrics_free(m);
}

static void bounds(void)
{
    struct amp_metrics *m = make(3);
    for (int i = 0; i < 5000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "agent-%d", i % 10);
        struct amp_metric_labels l = {.agent = amp_span_str(name), .protocol = "rtp"};
        amp_metrics_add(m, AMP_METRIC_TIMEOUTS, &l, 1);
    }
    openmetrics(m);
    TAP_OK(has("amp_messages_timeouts_total{tool=\"a\\\"b\\\\c\",protocol=\"rtp\",agent_id="
               "\"agent-2\"} 500"),
           "the first sets are kept apart");
    TAP_OK(!strstr(text.data, "agent-3"), "no more than allowed");
    TAP_OK(has("amp_messages_timeouts_total{tool=\"a\\\"b\\\\c\",agent_id=\"other\"} 3500"),
           "the rest is counted together");
    TAP_OK(has("amp_metrics_other_total{tool=\"a\\\"b\\\\c\"} 3500"), "and told");
    amp_metrics_free(m);

    m = make(100000);
    bool good = true;
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 20000; i++) {
            char name[16];
            snprintf(name, sizeof(name), "%d", i);
            struct amp_metric_labels l = {.agent = amp_span_str(name)};
            amp_metrics_add(m, AMP_METRIC_URGENT, &l, 1);
        }
    for (struct amp_metric_series *s = m->first[AMP_METRIC_URGENT]; s; s = s->next)
        good = good && s->count == 2;
    TAP_OK(good && m->sets[AMP_METRIC_URGENT] == 20000, "many sets are each found again");
    amp_metrics_free(m);
}

int main(void)
{
    amp_buf_init(&text, 1 << 20);
    specs();
    values();
    hostile();
    bounds();
    amp_buf_release(&text);
    return tap_done();
}
