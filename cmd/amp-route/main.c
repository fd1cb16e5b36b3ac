/* amp-route: messages to the ports whose predicate they match. */
#include "wiring.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/finding.h"
#include "flow/config.h"
#include "inbox.h"
#include "message/inbox/inbox.h"
#include "message/operation/idempotency.h"
#include "message/record/delivery.h"
#include "replay.h"
#include "route/admission/from.h"
#include "route/admission/streams.h"

const struct amp_route_voice voice = {amp_warn, amp_note, amp_complain, amp_status_note,
                                      amp_refused};
static struct router router = {.consumer = "amp-route",
                               .patience_ms = 1000,
                               .window_ms = AMP_IDEM_WINDOW_MS,
                               .voice = &voice,
                               .stop = &amp_stop,
                               .hangup = &amp_hangup,
                               .reread = reload_routes};
static const char *on_gap;
static const char *const gap_words[] = {
#define X(id, word) word,
    AMP_CURSOR_GAP_WORDS(X)
#undef X
        NULL};
static struct amp_list routes, agents, http_headers, inbounds, lane_settings, tees;
static const char *state, *config, *in_path = "-", *out_path, *http_ca;
static int64_t open_timeout_ms = AMP_OPEN_TIMEOUT_MS, max_pending = 64 << 20, limit_ms = 2000,
               lock_timeout_ms = AMP_LOCK_TIMEOUT_MS, max_line = 32 << 20, jobs = 4, attempts = 5,
               attempt_timeout_ms;
static bool hold;

static struct amp_metrics_options metrics = {.tool = "amp-route",
                                             .interval_ms = AMP_METRICS_INTERVAL_MS};

static const struct amp_opt options[] = {
    {'r', "route", AMP_OPT_LIST, &routes, "'PREDICATE => PORT'",
     .doc = "a route; the first that holds counts", .config = "route.routes"},
    {0, "agent", AMP_OPT_LIST, &agents, "NAME=PORT",
     .doc = "where the port agents delivers what is for NAME", .config = "route.agents"},
    {'a', "all", AMP_OPT_FLAG, &router.all, NULL, .doc = "every route that holds counts"},
    {'n', "dry-run", AMP_OPT_FLAG, &router.dry, NULL,
     .doc = "only say for each line where it would go, and why"},
    {0, "tee", AMP_OPT_LIST, &tees, "PORT",
     .doc = "a copy of each routed message to a port, or a file or FIFO"},
    {0, "eager", AMP_OPT_FLAG, &router.eager, NULL, .doc = "write each line at once"},
    {'i', "in", AMP_OPT_PATH, &in_path, "PATH",
     .doc = "read from PATH (a FIFO is opened without waiting)"},
    {0, "hold", AMP_OPT_FLAG, &hold, NULL, .doc = "keep an input FIFO open: no end of file"},
    {'o', "out", AMP_OPT_PATH, &out_path, "PATH", .doc = "write what goes to stdout to PATH"},
    {0, "as", AMP_OPT_STRING, &router.consumer, "NAME", .doc = "name in the state directory"},
    {'s', "state", AMP_OPT_DIR, &state, "DIR", .doc = "record before delivery; keep dead letters",
     .env = "AMP_STATE"},
    AMP_OPT_CONFIG(config),
    {0, "open-timeout", AMP_OPT_DURATION, &open_timeout_ms, "TIME",
     .doc = "how long a message waits for a port's reader"},
    {0, "max-pending", AMP_OPT_SIZE, &max_pending, "SIZE",
     .doc = "bytes that may wait for one port", .min = 4096, .max = (int64_t)1 << 32},
    {0, "inbound", AMP_OPT_LIST, &inbounds, "[PORT=]N",
     .doc = "messages that may wait for each port, or for that one", .config = "route.inbound"},
    {0, "credits", AMP_OPT_INT, &router.credits, "N",
     .doc = "messages that an agent has and did not end (inbox) or acknowledge (port)", .min = 1,
     .max = 1024, .config = "inbox.credits"},
    {0, "patience", AMP_OPT_DURATION, &router.patience_ms, "TIME",
     .doc = "how long the input may wait for a full port's reader", .max = 60000,
     .config = "route.patience"},
    {0, "lane", AMP_OPT_LIST, &lane_settings, "KEY=N",
     .doc = "limits and weights of the lanes; see the manual"},
    {'j', "jobs", AMP_OPT_INT, &jobs, "N", .doc = "processes of one exec-each at once", .min = 1,
     .max = 64},
    {0, "attempts", AMP_OPT_INT, &attempts, "N",
     .doc = "how often exec-each and http try a message that fails for a while", .min = 1,
     .max = 100},
    {0, "attempt-timeout", AMP_OPT_DURATION, &attempt_timeout_ms, "TIME",
     .doc = "limit of one such attempt", .min = 10, .max = 86400000},
    {0, "http-headers", AMP_OPT_LIST, &http_headers, "HOST=FILE",
     .doc = "send the headers in FILE (mode 600) to HOST"},
    {0, "http-ca", AMP_OPT_PATH, &http_ca, "FILE",
     .doc = "trust the certificates in FILE, not the system's"},
    {0, "allow-unsigned", AMP_OPT_FLAG, &router.allow_unsigned, NULL,
     .doc = "let unsigned sw4rm messages leave this machine, with a warning"},
    {0, "predicate-timeout", AMP_OPT_DURATION, &limit_ms, "TIME",
     .doc = "limit of one jq predicate", .min = 10, .max = 60000},
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    {0, "max-line", AMP_OPT_SIZE, &max_line, "SIZE", .doc = "longest line", .min = 1024,
     .max = 32 << 20},
    {0, "window", AMP_OPT_DURATION, &router.window_ms, "TIME",
     .doc = "how long the outcome of an operation is told to who sends it again",
     .config = "ack.window"},
    {0, "cursor", AMP_OPT_STRING, &router.streams_opt.consumer, "NAME",
     .doc = "follow numbered streams as this consumer", .config = "cursor.consumer"},
    {0, "from", AMP_OPT_STRING, &from_position, "POSITION",
     .doc = "first deliver again what the state recorded from there on"},
    {0, "on-gap", AMP_OPT_CHOICE, &on_gap, "WHAT",
     .doc = "of a gap in a stream that stays: skip, tombstone or hold", .choices = gap_words,
     .config = "cursor.on_gap"},
    {0, "gap-timeout", AMP_OPT_DURATION, &router.streams_opt.gap_ms, "TIME",
     .doc = "how long a gap in a stream is waited for", .min = 1, .max = 86400000,
     .config = "cursor.gap_timeout"},
    {0, "cursor-lease", AMP_OPT_DURATION, &router.streams_opt.lease_ms, "TIME",
     .doc = "how long a cursor is held for a router that gives no sign", .min = 1000,
     .max = 86400000, .config = "cursor.lease"},
    {0, "max-waiting", AMP_OPT_INT, &router.streams_opt.waiting, "N",
     .doc = "events of one stream that wait behind a gap", .min = 1, .max = 65536,
     .config = "cursor.waiting"},
    AMP_METRICS_OPTS(metrics),
    {'v', "verbose", AMP_OPT_FLAG, &router.verbose, NULL, .doc = "say at the end what was done"},
    AMP_OPT_END,
};

static int open_output(struct router *r, struct amp_error *err)
{
    AMP_BUF struct amp_buf spec = {0};
    amp_buf_init(&spec, 8192);
    if (!out_path || strcmp(out_path, "-") == 0) {
        if (amp_buf_str(&spec, "stdout", err) < 0)
            return -1;
    } else {
        struct stat st;
        bool fifo = stat(out_path, &st) == 0 && S_ISFIFO(st.st_mode);
        if (amp_buf_fmt(&spec, err, "%s:%s", fifo ? "fifo" : "file", out_path) < 0)
            return -1;
    }
    struct amp_port_options opt = r->port_options;
    opt.unopened = false;
    if (amp_outlet_add(r, 0, spec.data, 0, &opt, err) < 0)
        return -1;
    r->n_ports = 1;
    return 0;
}

static int start(struct router *r, struct amp_error *err)
{
    r->port_options = (struct amp_port_options){.consumer = r->consumer,
                                                .open_timeout_ms = open_timeout_ms,
                                                .max_pending = (size_t)max_pending,
                                                .http_headers = (const char *const *)http_headers.v,
                                                .n_http_headers = http_headers.n,
                                                .http_ca = http_ca,
                                                .jobs = (uint32_t)jobs,
                                                .attempts = (uint32_t)attempts,
                                                .attempt_timeout_ms = attempt_timeout_ms,
                                                .minds = state != NULL || r->credits > 0,
                                                .durable = state != NULL,
                                                .also = AMP_OUTLET_ACTION_NAMES,
                                                .stop = &amp_stop};
    r->predicate_limit_ms = limit_ms;
    r->inbounds = inbounds.v;
    r->n_inbounds = inbounds.n;
    if (lanes_set(config, state, (const char *const *)lane_settings.v, lane_settings.n,
                  &r->lane_rules, err) < 0)
        return -1;
    for (int i = 0; i < http_headers.n; i++)
        if (!strchr(http_headers.v[i], '='))
            return amp_fail(err, AMP_USAGE, "bad_headers", "--http-headers takes HOST=FILE");
    if (routes.n == 0)
        return amp_fail(err, AMP_USAGE, "no_routes", "at least one route is needed (-r)");
    r->port_options.unopened = r->dry;
    for (int i = 0; on_gap && gap_words[i]; i++)
        if (strcmp(on_gap, gap_words[i]) == 0)
            r->streams_opt.on_gap = (enum amp_on_gap)i;
    reload_start(&(struct reload_source){config, state, &lane_settings}, &routes);
    bool keeps = state && (!r->dry || access(state, F_OK) == 0);
    if (keeps && amp_keeper_open(r, state, lock_timeout_ms, err) < 0)
        return -1;
    if (open_output(r, err) < 0)
        return -1;
    if (amp_rules_new(r->all, &r->rules, err) < 0)
        return -1;
    for (int i = 0; i < routes.n; i++)
        if (amp_router_route(r, r->rules, routes.v[i], err) < 0)
            return -1;
    if (amp_recipients_start(r, (const char *const *)agents.v, agents.n, err) < 0 ||
        amp_tee_start(r, tees.v, tees.n, err) < 0)
        return -1;
    if (amp_rules_start(r->rules, r->predicate_limit_ms, r->stop, err) < 0 ||
        amp_intake_init(&r->intake, r->dry ? NULL : r->store, "amp-route", err) < 0)
        return -1;
    r->intake.say = amp_finding_print_error;
    r->intake.lines.max_line = (size_t)max_line;
    if (!(r->again = amp_reader_new(NULL, err)))
        return -1;
    if ((!r->dry && (amp_streams_open(r, err) < 0 || amp_from_open(r, err) < 0)) ||
        amp_metrics_open(&metrics, &r->metrics, err) < 0)
        return -1;
    amp_router_ruled(r);
    amp_note_terminal(in_path);
    return amp_input_open(in_path, hold, &r->in, err);
}

static void stop(struct router *r)
{
    if (r->in.fd > 0)
        amp_input_close(&r->in);
    if (r->intake.reader)
        amp_intake_release(&r->intake);
    amp_reader_free(r->again);
    amp_tee_end(r);
    amp_unacked_close(r);
    amp_outlets_free(r);
    amp_route_jobs_free(r);
    amp_rules_free(r->rules);
    amp_recipients_stop(r);
    amp_from_close(r);
    amp_streams_close(r);
    amp_keeper_close(r);
}

static int run(int argc, char **argv)
{
    struct amp_error err = {0};
    amp_signals_install();
    int status = 0;
    if (start(&router, &err) < 0 || amp_router_run(&router, &err) < 0)
        status = amp_complain(&err);
    if (amp_route_count_end(&router, &err) < 0)
        amp_status_note(amp_complain(&err));
    if (router.verbose) {
        amp_note("%llu lines in, %llu rejected, %llu deliveries, %llu acknowledgements without a "
                 "route",
                 (unsigned long long)router.intake.accepted + router.intake.rejected,
                 (unsigned long long)router.intake.rejected, (unsigned long long)router.delivered,
                 (unsigned long long)router.unmatched_acks);
        amp_outlets_say(&router);
        amp_streams_say(&router);
    }
    stop(&router);
    return status;
}

static const struct amp_verb verbs[] = {
    {NULL, "", "route messages from stdin to ports", options, run, "routes are given with -r"},
    {"replay", "", "write again what the state recorded, changing nothing", replay_opts,
     route_replay},
    {"inbox", "AGENT", "give an agent its messages one at a time", inbox_opts, route_inbox},
    {0},
};
static const int statuses[] = {0,
                               AMP_NO,
                               AMP_USAGE,
                               AMP_UNAVAILABLE,
                               AMP_INTERNAL,
                               AMP_CANTCREAT,
                               AMP_IOERR,
                               AMP_TEMPFAIL,
                               AMP_CONFIG,
                               AMP_INTERRUPTED,
                               0};
static const struct amp_fsm *const machines[] = {&amp_delivery_fsm, &amp_inbox_fsm, NULL};
AMP_CONFIG_RECORDER;
static const struct amp_tool tool = {
    .name = "amp-route",
    .doc = "deliver messages to FIFOs, files, spools and commands",
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
