/* Publishes entries of the activity buffer, and reads the entries of a repository. */
#include "work/task/activity/notice/activity.h"

#include <stdio.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/json/writer.h>
#include <amp/protocol/protocol.h>

#include "base/codes.h"
#include "work/task/task.h"

static int64_t setting(const json_t *section, const char *key)
{
    return json_integer_value(json_object_get(section, key));
}

void amp_notice_limits(const json_t *config, struct amp_activity_limits *out)
{
    const json_t *section = json_object_get(config, "activity");

    *out = (struct amp_activity_limits){.max = setting(section, "max"),
                                        .per_agent = setting(section, "per_agent"),
                                        .warn = setting(section, "warn_percent"),
                                        .history = setting(section, "history"),
                                        .history_ms = setting(section, "history_sec") * 1000};
}

/* ---- publishing ---- */

static int fault_record(struct amp_store *s, const struct amp_activity_publisher *p,
                        const struct amp_activity *a, enum amp_severity severity, const char *code,
                        const char *text, struct amp_error *err)
{
    AMP_BUF struct amp_buf record = {.max = 64 << 10};
    const struct amp_line_place at = {.tool = p->tool, .line = 1, .now_ms = amp_now_ms()};
    const struct amp_finding f = {.severity = severity,
                                  .type = AMP_SPAN("activity"),
                                  .id = a->task,
                                  .code = code,
                                  .field = "",
                                  .pointer = "",
                                  .rule = "SW4RM §10.1",
                                  .message = text,
                                  .found = "",
                                  .expected = ""};

    p->note("%s: %s", code, text);
    return amp_finding_record(&f, &at, &record, err) < 0 ||
                   amp_store_error_log(s, amp_buf_span(&record), err) < 0
               ? -1
               : 0;
}

int amp_notice_begin(struct amp_store *s, const struct amp_activity_publisher *p,
                     const struct amp_activity *a, struct amp_error *err)
{
    struct amp_activity_room room;
    char agent[256], text[256];

    amp_span_copy(a->agent, agent, sizeof agent);
    if (amp_notice_reconcile(s, agent, &p->limits, a->began_ms, NULL, err) < 0)
        return -1;
    if (amp_activity_begin(s, a, &p->limits, &room, err) < 0) {
        if (err->status != AMP_NO)
            return -1;
        const struct amp_error why = *err;
        return fault_record(s, p, a, AMP_SEV_ERROR, why.code, why.what, err);
    }
    if (!room.crossed)
        return 0;
    snprintf(text, sizeof text,
             "the activity buffer has %llu entries of at most %lld (activity.max)",
             (unsigned long long)room.active, (long long)room.max);
    return fault_record(s, p, a, AMP_SEV_WARNING, AMP_CODE(activity_buffer_high), text, err);
}

int amp_notice_end(struct amp_store *s, const struct amp_activity_publisher *p,
                   const struct amp_activity *a, enum amp_activity_end how, struct amp_error *err)
{
    return amp_activity_end(s, a, how, amp_now_ms(), &p->limits, err);
}

/* ---- the entries of a repository ---- */

struct scope {
    struct amp_span agent;
    struct amp_buf *out, *one;
    size_t start;
    uint32_t n, more;
};

static int scope_add(void *ctx, const struct amp_activity *a, struct amp_error *err)
{
    struct scope *c = ctx;

    if (amp_span_eq(a->agent, c->agent) || !amp_activity_is_alive(a))
        return 0;
    amp_buf_reset(c->one);
    if (amp_view_line(amp_activity_columns, a, c->one, err) < 0)
        return -1;
    c->one->len--; /* its LF */
    if (c->n == AMP_ACTIVITY_SCOPE_MAX ||
        c->out->len - c->start + c->one->len > AMP_ACTIVITY_SCOPE_BYTES - 64) {
        c->more++;
        return 0;
    }
    return (c->n++ > 0 && amp_buf_str(c->out, ",", err) < 0) ||
                   amp_buf_add(c->out, c->one->data, c->one->len, err) < 0
               ? -1
               : 0;
}

int amp_notice_scope(struct amp_store *s, struct amp_span agent, struct amp_span repo,
                     struct amp_span task, struct amp_buf *out, struct amp_error *err)
{
    AMP_BUF struct amp_buf one = {.max = AMP_ACTIVITY_SCOPE_BYTES};
    const struct amp_activity_filter f = {.repo = repo, .task = repo.n > 0 ? AMP_SPAN("") : task};
    struct scope c = {.agent = agent, .out = out, .one = &one, .start = out->len};

    return amp_buf_str(out, "{\"entries\":[", err) < 0 ||
                   amp_activity_each(s, &f, scope_add, &c, err) < 0 ||
                   amp_buf_fmt(out, err, "],\"more\":%u}\n", c.more) < 0
               ? -1
               : 0;
}

/* ---- reconciling ---- */

static bool task_is_over(void *ctx, struct amp_store *s, struct amp_span task)
{
    struct amp_task_status st;
    struct amp_error err;
    (void)ctx;
    return amp_task_status(s, task, &st, &err) == 0 && st.found && st.terminal;
}

int amp_notice_reconcile(struct amp_store *s, const char *agent,
                         const struct amp_activity_limits *limits, int64_t now_ms, uint32_t *n,
                         struct amp_error *err)
{
    const struct amp_activity_reconcile how = {
        .agent = agent, .task_ended = task_is_over, .now_ms = now_ms};
    return amp_activity_reconcile(s, &how, limits, n, err);
}

int amp_notice_measure(struct amp_store *s, int64_t max, struct amp_metrics *metrics,
                       struct amp_error *err)
{
    const struct amp_metric_labels none = {0};
    uint64_t n;

    if (!metrics)
        return 0;
    if (amp_activity_count(s, &n, err) < 0)
        return -1;
    amp_metrics_set(metrics, AMP_METRIC_ACTIVITY, &none, (double)n);
    amp_metrics_set(metrics, AMP_METRIC_ACTIVITY_FILL, &none,
                    100.0 * (double)n / (double)(max > 0 ? max : AMP_ACTIVITY_MAX));
    return 0;
}

int amp_notice_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                     struct amp_error *err)
{
    const struct amp_activity_limits limits = {0};
    const struct amp_activity_reconcile how = {
        .actor = actor, .task_ended = task_is_over, .now_ms = now_ms, .due = true};

    return amp_activity_forget(s, now_ms, actor, done, err) < 0 ||
                   amp_activity_reconcile(s, &how, &limits, done, err) < 0
               ? -1
               : 0;
}
