/*
 * amp-ack sweep: overdue messages and silent agents become escalations, each once. The commit that
 * makes an escalation puts it into the outbox; emitting the outbox goes under a lock, so a second
 * sweeper finds it closed, and one that comes after a crash finds it open and finishes the work.
 */
#include "pass.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/id.h>

#include "flow/deadlines.h"
#include "message/idempotency.h"

#define LOOK_MS 1000 /* how often --follow looks for new deadlines of others */

static const char *out_path = "-", *now_text, *severity = "warning", *from = "system";
static int64_t open_timeout_ms = 60000, silence_ms = 30 * 60 * 1000, window_ms = AMP_IDEM_WINDOW_MS;
static bool follow;

static const char *const severities[] = {"info", "warning", "critical", NULL};

const struct amp_opt sweep_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &follow, NULL, .doc = "go on until a signal comes"},
    {0, "now", AMP_OPT_STRING, &now_text, "TIME", .doc = "pretend that it is TIME (RFC 3339)"},
    {0, "severity", AMP_OPT_CHOICE, &severity, "LEVEL", .doc = "of the escalations",
     .choices = severities, .config = "ack.severity"},
    {0, "silence", AMP_OPT_DURATION, &silence_ms, "TIME",
     .doc = "how long an agent at work may be silent; 0: not looked at", .config = "ack.silence"},
    {0, "window", AMP_OPT_DURATION, &window_ms, "TIME",
     .doc = "how long the outcome of an operation is kept", .config = "ack.window"},
    {0, "from", AMP_OPT_STRING, &from, "ROLE", .doc = "the escalations' sender"},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write to PATH"},
    {0, "open-timeout", AMP_OPT_DURATION, &open_timeout_ms, "TIME",
     .doc = "how long to wait for a reader of --out"},
    AMP_OPT_END,
};

static enum amp_level level_of(const char *word)
{
    for (int i = 0; severities[i]; i++)
        if (strcmp(severities[i], word) == 0)
            return (enum amp_level)i;
    return AMP_LEVEL_WARNING;
}

static int sweep_once(struct amp_store *s, const char *name, int64_t now, struct amp_outq *q,
                      struct amp_error *err)
{
    struct amp_deadline_ctx ctx = {.actor = name,
                                   .from = from,
                                   .severity = level_of(severity),
                                   .silence_ms = silence_ms,
                                   .window_ms = window_ms};
    AMP_CLOSE int lock = -1;
    if (ack_outbox_lock(s, name, &lock, err) < 0 || amp_deadlines_run(s, now, &ctx, NULL, err) < 0)
        return -1;
    return ack_outbox_emit(s, name, q, err);
}

static int wait_for_due(struct amp_store *s, struct amp_error *err)
{
    int64_t due, wait = LOOK_MS;
    if (amp_message_next_due(s, silence_ms, &due, err) < 0)
        return -1;
    if (due > 0 && due - amp_now_ms() < wait)
        wait = due - amp_now_ms();
    /* A deadline in the past was told already: it needs no hurry. */
    poll(NULL, 0, wait > 20 ? (int)wait : LOOK_MS);
    return 0;
}

static int sweep(struct amp_store *s, const char *name, struct amp_error *err)
{
    int64_t now = 0;
    struct amp_outq q = {.fd = -1};
    if (!amp_id_is_safe(amp_span_str(name)))
        return amp_fail(err, AMP_USAGE, "bad_name", "--as takes letters, digits, '.', '_' and '-'");
    if (now_text && !amp_time_parse(amp_span_str(now_text), &now))
        return amp_fail(err, AMP_USAGE, "bad_time", "--now takes an RFC 3339 time with an offset");
    if (ack_open_output(out_path, open_timeout_ms, &q, err) < 0)
        return -1;
    int rc;
    do {
        rc = sweep_once(s, name, now_text ? now : amp_now_ms(), &q, err);
        if (rc == 0 && follow && !amp_stop)
            rc = wait_for_due(s, err);
    } while (rc == 0 && follow && !amp_stop);
    if (rc == 0 && amp_stop)
        rc = amp_fail(err, AMP_INTERRUPTED, "interrupted", "interrupted");
    amp_outq_close(&q);
    return rc;
}

int ack_sweep(int argc, char **argv)
{
    int status;
    struct amp_error err = {0};
    if (argc > 0)
        amp_die_usage("'%s' is not expected", argv[0]);
    if (follow && now_text)
        amp_die_usage("--now and --follow exclude each other");
    amp_signals_install();
    struct amp_store *s = ack_open_state(ACK_MAKE, &status);
    if (!s)
        return status;
    if (sweep(s, ack_as ? ack_as : "amp-ack.sweep", &err) < 0)
        status = amp_complain(&err);
    amp_store_close(s);
    return status;
}
