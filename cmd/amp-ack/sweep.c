/*
 * amp-ack sweep: overdue messages and silent agents become escalations, each once. The commit that
 * makes an escalation puts it into the outbox; emitting the outbox goes under a lock, so a second
 * sweeper finds it closed, and one that comes after a crash finds it open and finishes the work.
 */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "due.h"
#include "message/cursor/cursors.h"
#include "message/operation/idempotency.h"
#include "pass.h"

static const char *now_text;
static bool follow;
struct due ack_due = {
    .out_path = "-",
    .severity = "warning",
    .from = "system",
    .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
    .silence_ms = 30 * 60 * 1000,
    .window_ms = AMP_IDEM_WINDOW_MS,
};
const char *const due_severities[] = {"info", "warning", "critical", NULL};

const struct amp_opt sweep_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "go on until a signal comes, like watch"},
    {0, "now", AMP_OPT_STRING, &now_text, "TIME", .doc = "pretend that it is TIME (RFC 3339)"},
    DUE_OPTS,
    AMP_METRICS_OPTS(ack_metrics),
    AMP_OPT_END,
};

static enum amp_level level_of(const char *word)
{
    for (int i = 0; due_severities[i]; i++)
        if (strcmp(due_severities[i], word) == 0)
            return (enum amp_level)i;
    return AMP_LEVEL_WARNING;
}

void due_ctx(struct amp_metrics *metrics, struct amp_deadline_ctx *out)
{
    *out = (struct amp_deadline_ctx){
        .actor = ack_as ? ack_as : DUE_NAME,
        .from = ack_due.from,
        .severity = level_of(ack_due.severity),
        .silence_ms = ack_due.silence_ms,
        .window_ms = ack_due.window_ms,
        .metrics = metrics,
        .retry = &ack_due.rules,
        .dead = ack_due.dead,
    };
}

static int sweep_once(struct amp_store *s, struct amp_outq *q, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    struct amp_metrics *metrics = NULL;
    struct amp_deadline_ctx ctx;
    AMP_CLOSE int lock = -1;
    if (now_text && !amp_time_parse(amp_span_str(now_text), &now))
        return amp_fail(err, AMP_USAGE, "bad_time", "--now takes an RFC 3339 time with an offset");
    if (amp_metrics_open(&ack_metrics, &metrics, err) < 0)
        return -1;
    due_ctx(metrics, &ctx);
    int rc = amp_outbox_lock(s, ctx.actor, ack_lock_timeout_ms, &lock, err);
    if (rc == 0)
        rc = amp_deadlines_run(s, now, &ctx, NULL, err);
    if (rc == 0)
        rc = amp_cursors_measure(s, now, metrics, err);
    if (rc == 0)
        rc = ack_outbox_emit(s, ctx.actor, q, err);
    return ack_metrics_end(metrics, rc, err);
}

static int sweep(struct amp_store *s, struct amp_error *err)
{
    struct amp_outq q = {.fd = -1};
    if (ack_as && !amp_id_is_safe(amp_span_str(ack_as)))
        return amp_fail(err, AMP_USAGE, "bad_name", "--as takes letters, digits, '.', '_' and '-'");
    if (ack_open_output(ack_due.out_path, ack_due.open_timeout_ms, &q, err) < 0)
        return -1;
    int rc = follow ? watch_loop(s, &q, false, err) : sweep_once(s, &q, err);
    amp_outq_close(&q);
    return rc;
}

int ack_sweep(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    if (follow && now_text)
        amp_die_usage("--now and --follow exclude each other");
    if (ack_retry_rules(&ack_due.rules, &err) < 0)
        amp_die_usage("%s", err.what);
    amp_signals_install();
    struct amp_store *s = ack_open_state(ACK_MAKE, &status);
    if (!s)
        return status;
    ack_metrics.tool = "amp-ack.sweep";
    if (sweep(s, &err) < 0)
        status = amp_complain(&err);
    amp_store_close(s);
    return status;
}
