/* The router of the verbs with their options: its output, its identities, and where its
 * notifications go: a command, a port, and questions on standard output. */
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/pipe.h>

#include "aof.h"
#include "base/codes.h"
#include "base/process/runner.h"
#include "message/port/port.h"
#include "shared/identity.h"
#include "shared/work/tool.h"

static struct amp_identities *ids;

enum { PENDING_MOST = 4 << 20, GRACE_MS = 1000 };

static char **notify_argv; /* of --notify */

static struct {
    struct amp_port *port;
    bool ended;
    struct amp_error outcome;
    uint64_t number; /* of the lines that this process offered */
} channel;

static bool notify_tells(void)
{
    return aof_shared.notify.command || aof_shared.notify.port;
}

static int notify_open(struct amp_error *err)
{
    const struct amp_port_options how = {.consumer = amp_cli_name(),
                                         .open_timeout_ms = aof_shared.notify.timeout_ms,
                                         .max_pending = PENDING_MOST,
                                         .attempts = 1,
                                         .attempt_timeout_ms = aof_shared.notify.timeout_ms,
                                         .durable = true,
                                         .stop = &amp_stop};
    if (aof_shared.notify.command && !notify_argv &&
        amp_argv_split(aof_shared.notify.command, &notify_argv, err) < 0)
        return -1;
    return !aof_shared.notify.port || channel.port
               ? 0
               : amp_port_new(aof_shared.notify.port, &how, &channel.port, err);
}

static void notify_close(void)
{
    amp_port_free(channel.port);
    channel.port = NULL;
}

static int command_run(struct amp_span line, struct amp_error *err)
{
    const struct amp_child_spec spec = {
        .argv = (const char *const *)notify_argv, .fd_in = -1, .fd_out = -1, .fd_err = 2};
    struct amp_child_end end;
    struct amp_runner run;
    if (amp_runner_start(&run, &spec, line, aof_shared.notify.timeout_ms, GRACE_MS, err) < 0 ||
        amp_runner_finish(&run, &amp_stop, &end, err) < 0)
        return -1;
    if (amp_stop)
        return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    return amp_runner_verdict(&run, &end, aof_shared.notify.command, err) == AMP_RUN_DONE ? 0 : -1;
}

static void outcome_note(void *ctx, uint64_t tag, const struct amp_error *why)
{
    (void)ctx, (void)tag;
    channel.ended = true;
    channel.outcome = why ? *why : (struct amp_error){0};
}

/* Waits until the port has the line. */
static int port_send(struct amp_span line, struct amp_error *err)
{
    int64_t begun = amp_mono_ms();
    struct amp_span bare = {line.p, line.n - 1};
    channel.ended = false;
    if (amp_port_offer(channel.port, bare, bare, ++channel.number, begun, err) < 0)
        return -1;
    for (;;) {
        struct pollfd fds[AMP_PORT_FDS];
        int64_t left = begun + aof_shared.notify.timeout_ms - amp_mono_ms();
        int timeout = -1;
        amp_port_step(channel.port, outcome_note, NULL);
        if (channel.ended)
            break;
        if (left <= 0) { /* a new port, so that the line is not delivered later as well */
            notify_close();
            return notify_open(err) < 0
                       ? -1
                       : amp_fail(err, AMP_TEMPFAIL, notify_timeout,
                                  "%s did not take a notification within %lld ms",
                                  aof_shared.notify.port, (long long)aof_shared.notify.timeout_ms);
        }
        amp_port_watch(channel.port, fds, &timeout);
        if (timeout < 0 || timeout > left)
            timeout = left > 60000 ? 60000 : (int)left;
        if (amp_poll(fds, AMP_PORT_FDS, timeout, &amp_stop) < 0 && amp_stop)
            return amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted");
    }
    if (!channel.outcome.code[0])
        return 0;
    *err = channel.outcome;
    return -1;
}

/* A message of the router, signed if the tool has a key. */
static int message_say(void *ctx, struct amp_span line, struct amp_error *err)
{
    AMP_BUF struct amp_buf out = {0};
    struct amp_span bare = {line.p, line.n - 1}; /* without its LF */
    (void)ctx;
    amp_buf_init(&out, PENDING_MOST);
    return amp_identities_sign(ids, bare, &out, err) < 0 || amp_buf_str(&out, "\n", err) < 0
               ? -1
               : amp_out(amp_buf_span(&out), err);
}

static int notify_send(void *ctx, const struct amp_aof_told *what, struct amp_error *err)
{
    struct amp_error why;
    (void)ctx;
    if (what->line.n > 0 && ((aof_shared.notify.command && command_run(what->line, &why) < 0) ||
                             (channel.port && port_send(what->line, &why) < 0)))
        return why.status == AMP_INTERRUPTED
                   ? amp_fail(err, AMP_INTERRUPTED, interrupted, "interrupted")
                   : amp_fail_text(
                         err, why.status, why.code, "notification %.*s: %s",
                         AMP_CLIP(((struct amp_span){what->line.p, what->line.n - 1}), (size_t)200),
                         why.what);
    if (what->message.n == 0 || !aof_shared.notify.ask)
        return 0;
    return message_say(NULL, what->message, err) < 0 ? -1 : amp_out_flush(err);
}

static int line_emit(void *ctx, struct amp_span line, struct amp_error *err)
{
    (void)ctx;
    return amp_out(line, err);
}

static void alert_print(void *ctx, const char *task, const char *reason)
{
    (void)ctx;
    amp_warn("task %s: %s", task, reason);
}

static void warning_print(void *ctx, const char *text)
{
    (void)ctx;
    amp_warn("%s", text);
}

/* Signatures count with a state directory or a file of keys; without both there is nothing to check
 * them by. */
static int identities_open(struct amp_error *err)
{
    const struct amp_identity_tool who = {.state = amp_tool_state,
                                          .config = amp_tool_config,
                                          .principal = amp_tool_state ? amp_cli_name() : NULL,
                                          .quiet = true};
    if (!amp_tool_state && !amp_tool_identity.allowed_signers &&
        strcmp(amp_tool_identity.require, "all") != 0)
        return 0;
    return amp_identity_cli_open(&amp_tool_identity, &who, &ids, err);
}

int aof_router_open(bool make, struct amp_aof_router **out, struct amp_error *err)
{
    static char path[PATH_MAX];
    const char *home = getenv("HOME");
    if (!aof_shared.data_dir) {
        if (!home || snprintf(path, sizeof path, "%s/.openclaw/aof", home) >= (int)sizeof path)
            return amp_fail(err, AMP_USAGE, no_data_dir, "HOME is not set: give --data-dir");
        aof_shared.data_dir = path;
    }
    amp_lock_stop(&amp_stop);
    if ((!aof_shared.no_messages && identities_open(err) < 0) || notify_open(err) < 0)
        return -1;
    const struct amp_aof_options o = {
        .data = aof_shared.data_dir,
        .actor = amp_cli_name(),
        .stops_at_review = aof_shared.stops,
        .lock_timeout_ms = amp_tool_lock_timeout,
        .emit = line_emit,
        .say = message_say,
        .notifies = notify_tells(),
        .asks = aof_shared.notify.ask,
        .notify = notify_tells() || aof_shared.notify.ask ? notify_send : NULL,
        .alert = alert_print,
        .warn = warning_print,
        .ids = ids,
        .trusted = amp_input_is_trusted(NULL)};
    return amp_aof_router_new(&o, make, out, err);
}

void aof_router_close(struct amp_aof_router *r)
{
    amp_aof_router_free(r);
    notify_close();
    amp_argv_free(notify_argv);
    notify_argv = NULL;
    amp_identities_close(ids);
    ids = NULL;
}
