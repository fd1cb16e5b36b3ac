/* amp-route: routes messages to the ports whose predicates they match. */
#include "wiring.h"

#include <string.h>

#include "base/codes.h"
#include "base/words.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/intake.h"
#include "message/delivery/operation/idempotency.h"
#include "message/delivery/record/delivery.h"
#include "message/delivery/transfer/transfer_fsm.h"
#include "people/facts.h"
#include "people/keep.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/finding.h"
#include "shared/values.h"

const struct amp_route_voice voice = {amp_warn,        amp_note,    amp_complain,
                                      amp_status_note, amp_refused, answer_sign};
static struct amp_router_options router = {
    .name = "amp-route",
    .in_path = "-",
    .source = {.window_ms = AMP_IDEM_WINDOW_MS},
    .predicate_limit_ms = 2000,
    .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS,
    .facts = &amp_facts_all,
    .keep = amp_keep_all,
    .outlets = {.patience_ms = 1000,
                .port = {.open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
                         .also = AMP_OUTLET_ACTION_NAMES,
                         .stop = &amp_stop}},
    .metrics = {.tool = "amp-route", .interval_ms = AMP_METRICS_INTERVAL_MS},
    .voice = &voice,
    .say = amp_finding_print_error,
    .stop = &amp_stop,
    .hangup = &amp_hangup,
    .reread = reload_routes};
static const char *on_gap;
AMP_WORDS(gap_words, AMP_CURSOR_GAP_WORDS);
static struct amp_list routes, agents, http_headers, inbounds, lane_settings, tees, takes;
static const char *config;
static struct confine_options walls;
static int64_t producer_rate, producer_burst, producer_waiting, chunk, batch;
static int64_t max_pending = 64 << 20, max_line = 32 << 20, jobs = 4, attempts = 5, credits;

static const struct amp_opt options[] = {
    {'r', "route", AMP_OPT_LIST, &routes, "'PREDICATE => PORT'",
     .doc = "a route; the first one that matches is used", .config = "route.routes"},
    {0, "agent", AMP_OPT_LIST, &agents, "NAME=PORT",
     .doc = "port of the agent NAME (default: its inbox)", .config = "route.agents"},
    {'a', "all", AMP_OPT_FLAG, &router.all, NULL,
     .doc = "deliver to every matching route, not only the first"},
    {'n', "dry-run", AMP_OPT_FLAG, &router.dry, NULL,
     .doc = "print where each line would go, and deliver nothing"},
    {0, "tee", AMP_OPT_LIST, &tees, "PORT", .doc = "write a copy of each routed message to PORT"},
    {0, "eager", AMP_OPT_FLAG, &router.eager, NULL, .doc = "write each line at once"},
    {'i', "in", AMP_OPT_PATH, &router.in_path, "PATH",
     .doc = "read from PATH (a FIFO is opened without waiting)"},
    {0, "hold", AMP_OPT_FLAG, &router.hold, NULL, .doc = "keep an input FIFO open: no end of file"},
    {'o', "out", AMP_OPT_PATH, &router.out_path, "PATH",
     .doc = "write what goes to stdout to PATH"},
    {0, "as", AMP_OPT_STRING, &router.name, "NAME", .doc = "name in the state directory"},
    {'s', "state", AMP_OPT_DIR, &router.state, "DIR",
     .doc = "record before delivery; keep dead letters", .env = "AMP_STATE"},
    AMP_OPT_CONFIG(config),
    {0, "open-timeout", AMP_OPT_DURATION, &router.outlets.port.open_timeout_ms, "TIME",
     .doc = "how long a message waits for a port's reader"},
    {0, "max-pending", AMP_OPT_SIZE, &max_pending, "SIZE",
     .doc = "bytes that may wait for one port", .min = 4096, .max = (int64_t)1 << 32},
    {0, "inbound", AMP_OPT_LIST, &inbounds, "[PORT=]N",
     .doc = "how many messages may wait for each port, or for PORT", .config = "route.inbound"},
    {0, "credits", AMP_OPT_INT, &credits, "N",
     .doc = "messages that an agent may have that have not ended", .min = 1, .max = 1024,
     .config = "inbox.credits"},
    {0, "fair", AMP_OPT_FLAG, &router.outlets.fair, NULL,
     .doc = "let the senders of waiting messages take turns within a lane", .config = "route.fair"},
    {0, "producer-rate", AMP_OPT_INT, &producer_rate, "N",
     .doc = "messages per second of one sender; others are refused", .min = 1, .max = 1000000,
     .config = "route.producer_rate"},
    {0, "producer-burst", AMP_OPT_INT, &producer_burst, "N",
     .doc = "messages of one sender at once (default: the rate)", .min = 1, .max = 1000000,
     .config = "route.producer_burst"},
    {0, "producer-waiting", AMP_OPT_INT, &producer_waiting, "N",
     .doc = "messages of one sender that may wait for a port or inbox", .min = 1, .max = 1000000,
     .config = "route.producer_waiting"},
    {0, "chunk", AMP_OPT_SIZE, &chunk, "SIZE",
     .doc = "send longer messages in chunks to receivers that take them", .min = 64, .max = 8 << 20,
     .config = "route.chunk"},
    {0, "batch", AMP_OPT_INT, &batch, "N",
     .doc = "send up to N waiting messages in one line to receivers that take batches", .min = 2,
     .max = AMP_BATCH_MAX, .config = "route.batch"},
    {0, "takes", AMP_OPT_LIST, &takes, "PORT=WORD",
     .doc = "what the reader of PORT takes: chunks, batches, or chunks,batches",
     .config = "route.takes"},
    {0, "patience", AMP_OPT_DURATION, &router.outlets.patience_ms, "TIME",
     .doc = "how long the input may wait for the reader of a full port", .max = 60000,
     .config = "route.patience"},
    {0, "lane", AMP_OPT_LIST, &lane_settings, "KEY=N",
     .doc = "limit of the lanes; see amp.json(5)"},
    {'j', "jobs", AMP_OPT_INT, &jobs, "N", .doc = "processes per exec-each port", .min = 1,
     .max = 64},
    {0, "attempts", AMP_OPT_INT, &attempts, "N",
     .doc = "attempts per message at exec-each and HTTP ports", .min = 1, .max = 100},
    {0, "attempt-timeout", AMP_OPT_DURATION, &router.outlets.port.attempt_timeout_ms, "TIME",
     .doc = "time limit of one attempt", .min = 10, .max = 86400000},
    {0, "http-headers", AMP_OPT_LIST, &http_headers, "HOST=FILE",
     .doc = "send the headers in FILE (mode 600) to HOST"},
    {0, "http-ca", AMP_OPT_PATH, &router.outlets.port.http_ca, "FILE",
     .doc = "trust the certificates in FILE, not the system's"},
    {0, "allow-unsigned", AMP_OPT_FLAG, &router.allow_unsigned, NULL,
     .doc = "let unsigned SW4RM messages leave this machine"},
    {0, "from-network", AMP_OPT_FLAG, &router.signed_only, NULL,
     .doc = "take only signed messages: the input is from other machines"},
    AMP_OPT_IDENTITIES(route_identity),
    {0, "predicate-timeout", AMP_OPT_DURATION, &router.predicate_limit_ms, "TIME",
     .doc = "time limit of jq predicates per message", .min = 10, .max = 60000},
    AMP_OPT_LOCK_TIMEOUT(router.lock_timeout_ms),
    {0, "max-line", AMP_OPT_SIZE, &max_line, "SIZE", .doc = "longest line", .min = 1024,
     .max = 32 << 20},
    {0, "window", AMP_OPT_DURATION, &router.source.window_ms, "TIME",
     .doc = "how long the outcome of an operation is remembered", .config = "ack.window"},
    {0, "cursor", AMP_OPT_STRING, &router.source.consumer, "NAME",
     .doc = "follow numbered streams as this consumer", .config = "cursor.consumer"},
    {0, "from", AMP_OPT_STRING, &router.source.from, "POSITION",
     .doc = "first deliver recorded messages from POSITION on"},
    {0, "on-gap", AMP_OPT_CHOICE, &on_gap, "WHAT",
     .doc = "what to do with a gap that stays: skip, tombstone or hold", .choices = gap_words,
     .config = "cursor.on_gap"},
    {0, "gap-timeout", AMP_OPT_DURATION, &router.source.gap_ms, "TIME",
     .doc = "how long to wait for a gap in a stream", .min = 1, .max = 86400000,
     .config = "cursor.gap_timeout"},
    {0, "cursor-lease", AMP_OPT_DURATION, &router.source.lease_ms, "TIME",
     .doc = "lease of a cursor", .min = 1000, .max = 86400000, .config = "cursor.lease"},
    {0, "max-waiting", AMP_OPT_INT, &router.source.waiting, "N",
     .doc = "events of a source that may wait behind a gap", .min = 1, .max = 65536,
     .config = "cursor.waiting"},
    AMP_METRICS_OPTS(router.metrics),
    CONFINE_OPTS(walls),
    {'v', "verbose", AMP_OPT_FLAG, &amp_verbose, NULL, .doc = "print statistics at the end"},
    AMP_OPT_END,
};

static struct amp_route_texts texts_of(const struct amp_list *l)
{
    return (struct amp_route_texts){(const char *const *)l->v, l->n};
}

/* Sets the options that the table cannot fill directly. */
static int options_set(struct amp_error *err)
{
    struct amp_port_options *port = &router.outlets.port;
    router.routes = texts_of(&routes);
    router.agents = texts_of(&agents);
    router.tees = texts_of(&tees);
    router.max_line = (size_t)max_line;
    router.outlets.inbounds = (const char *const *)inbounds.v;
    router.outlets.n_inbounds = inbounds.n;
    router.outlets.credits = (uint32_t)credits;
    router.producer_rate = (uint32_t)producer_rate;
    router.producer_burst = (uint32_t)producer_burst;
    router.outlets.producer_waiting = (uint32_t)producer_waiting;
    router.outlets.units = (struct amp_units_wanted){.chunk = (size_t)chunk,
                                                     .batch = (uint32_t)batch,
                                                     .takes = (const char *const *)takes.v,
                                                     .n_takes = takes.n};
    if (amp_takes_check(&router.outlets.units, err) < 0)
        return -1;
    port->consumer = router.name;
    port->max_pending = (size_t)max_pending;
    port->http_headers = (const char *const *)http_headers.v;
    port->n_http_headers = http_headers.n;
    port->jobs = (uint32_t)jobs;
    port->attempts = (uint32_t)attempts;
    port->minds = router.state != NULL || credits > 0;
    port->durable = router.state != NULL;
    port->unopened = router.dry;
    if (on_gap)
        router.source.on_gap = (enum amp_on_gap)amp_word_find(gap_words, amp_span_str(on_gap));
    if (lanes_set(config, router.state, (const char *const *)lane_settings.v, lane_settings.n,
                  &router.lanes, err) < 0)
        return -1;
    for (int i = 0; i < http_headers.n; i++)
        if (!strchr(http_headers.v[i], '='))
            return amp_fail(err, AMP_USAGE, bad_headers, "--http-headers takes HOST=FILE");
    if (routes.n == 0)
        return amp_fail(err, AMP_USAGE, no_routes, "at least one route is needed (-r)");
    return 0;
}

/* Signatures matter for messages that cross a network, and for all if all must be signed. */
static int identities_open(struct amp_error *err)
{
    const struct amp_identity_tool tool = {
        .state = router.state, .config = config, .quiet = !router.signed_only};
    if (strcmp(route_identity.require, "all") == 0)
        router.signed_only = true;
    bool uses = router.signed_only || amp_tokens_are_needed();
    const struct amp_list *const ports[] = {&routes, &agents, &tees};
    for (size_t k = 0; k < sizeof ports / sizeof *ports; k++)
        for (int i = 0; i < ports[k]->n && !uses; i++)
            uses = strstr(ports[k]->v[i], "http") != NULL;
    if (!uses || (!router.state && !route_identity.allowed_signers && !router.signed_only &&
                  !amp_tokens_are_needed()))
        return 0;
    if (amp_identity_cli_open(&route_identity, &tool, &router.ids, err) < 0)
        return -1;
    if (router.signed_only && !router.ids)
        return amp_fail(err, AMP_USAGE, identity_off,
                        "--from-network needs identities, which are off");
    return 0;
}

static int route_run(struct amp_command *c, struct amp_error *err)
{
    struct amp_router *r = NULL;
    (void)c;
    answers_open(router.state, config, NULL);
    int rc = options_set(err);
    if (rc == 0)
        rc = identities_open(err);
    if (rc == 0)
        rc = confine_open(&walls, router.state, &router.outlets.port.wrap, err);
    if (rc == 0) {
        router.verbose = amp_verbose;
        reload_start(&(struct reload_source){config, router.state, &lane_settings}, &routes);
        rc = amp_router_open(&router, &r, err);
    }
    if (rc == 0) {
        amp_note_terminal(router.in_path);
        rc = amp_router_run(r, err);
    }
    if (r)
        amp_router_say(r);
    amp_router_close(r);
    confine_close();
    amp_identities_close(router.ids);
    answers_close();
    return rc;
}

static const struct amp_verb route_verbs[] = {
    {NULL, "", "route messages from stdin to ports", options, route_run, "routes are given with -r",
     .signals = true},
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
static const struct amp_fsm *const machines[] = {&amp_delivery_fsm, &amp_inbox_fsm,
                                                 &amp_transfer_fsm, NULL};
AMP_CONFIG_RECORDER;
static const struct amp_tool tool = {
    .name = "amp-route",
    .doc = "deliver messages to FIFOs, files, spools and commands",
    .verbs = (const struct amp_verb *const[]){route_verbs, replay_verbs, inbox_verbs, NULL},
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_RECORDER,
    .values = amp_values,
    AMP_STATE_OF_TOOL,
    .summary = amp_intake_summary,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
