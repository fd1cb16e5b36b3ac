/* amp-route inbox AGENT: its options, the list of waiting messages, and --busy, --idle, --return.
 */
#include "wiring.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/child.h>
#include <amp/base/clock.h>
#include <amp/base/id.h>
#include <amp/json/writer.h>

#include "base/codes.h"
#include "message/delivery/inbox/bell.h"
#include "message/delivery/inbox/inbox.h"
#include "message/delivery/record/record.h"
#include "message/route/handover/handover.h"

static struct amp_lane_rules lane_rules;
static struct amp_handover_options loop = {
    .voice = &voice,
    .stop = &amp_stop,
    .safe = amp_text_safe,
    .format = "line",
    .out_path = "-",
    .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
    .lanes = &lane_rules,
    .lease_ms = 1800000,
    .attempts = 5,
    .metrics = {.tool = "amp-route", .interval_ms = AMP_METRICS_INTERVAL_MS}};
static const char *state, *config, *return_id;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS;
static bool one, busy, idle, list, json, wait_turn;
static struct amp_list command;
static struct confine_options walls;

static const char *const formats[] = {"line", "text", "wrap", NULL};

static const struct amp_opt inbox_opts[] = {
    {'f', "follow", AMP_OPT_FLAG, &loop.follow, NULL,
     .doc = "wait for more messages until a signal"},
    {'1', "one", AMP_OPT_FLAG, &one, NULL, .doc = "hand over at most one message"},
    {0, "max", AMP_OPT_INT, &loop.max_messages, "N", .doc = "hand over at most N messages",
     .min = 1, .max = 1000000},
    {0, "between-turns", AMP_OPT_FLAG, &loop.between, NULL,
     .doc = "hand over nothing while the agent is busy"},
    {0, "busy", AMP_OPT_FLAG, &busy, NULL, .doc = "record that the agent begins a turn"},
    {0, "idle", AMP_OPT_FLAG, &idle, NULL, .doc = "record that the agent ended its turn"},
    {0, "lease", AMP_OPT_DURATION, &loop.lease_ms, "TIME", .doc = "longest duration of a turn",
     .min = 1, .max = 7ll * 86400000, .config = "inbox.busy_lease"},
    {0, "format", AMP_OPT_CHOICE, &loop.format, "FORMAT", .doc = "format of a message",
     .choices = formats},
    {'o', "out", AMP_OPT_PATH, &loop.out_path, "PATH", .doc = "write to PATH"},
    AMP_OPT_OPEN_TIMEOUT(loop.open_timeout_ms),
    {0, "attempts", AMP_OPT_INT, &loop.attempts, "N",
     .doc = "how often a message is handed over before a failure is final", .min = 1, .max = 100},
    {0, "attempt-timeout", AMP_OPT_DURATION, &loop.attempt_timeout_ms, "TIME",
     .doc = "time limit of one attempt", .min = 10, .max = 86400000},
    {0, "fulfill", AMP_OPT_FLAG, &loop.fulfill, NULL, .doc = "success of the command is FULFILLED"},
    {0, "acks", AMP_OPT_STRING, &loop.acks_port, "PORT",
     .doc = "write acknowledgements of the messages to PORT"},
    {0, "wait", AMP_OPT_FLAG, &wait_turn, NULL,
     .doc = "wait until no other process hands over to this agent"},
    {'l', "list", AMP_OPT_FLAG, &list, NULL, .doc = "list waiting messages, and hand over nothing"},
    {0, "json", AMP_OPT_FLAG, &json, NULL, .doc = "with --list: print one JSON object per line"},
    {0, "return", AMP_OPT_STRING, &return_id, "ID", .doc = "put a message that was READ back"},
    AMP_OPT_STATE(state),
    AMP_OPT_CONFIG(config),
    AMP_OPT_IDENTITY(route_identity.require),
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    AMP_METRICS_OPTS(loop.metrics),
    CONFINE_OPTS(walls),
    {'x', "exec", AMP_OPT_REST, &command, "COMMAND…",
     .doc = "run COMMAND with each message as its standard input"},
    AMP_OPT_END,
};

struct inbox {
    struct amp_store *store;
    int lock;
    struct amp_buf mem;
};

/* ---- --list ---- */

static int list_fn(void *ctx, const struct amp_inbox_msg *m)
{
    int *rc = ctx;
    char at[AMP_TIME_MAX];
    struct amp_error err;
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, (size_t)256 << 20);
    amp_time_format(m->at_ms, at);
    if (json) {
        struct amp_jw w;
        amp_jw_init(&w, &b);
        amp_jw_open(&w, '{');
        amp_jw_member_str(&w, "id", m->id);
        amp_jw_member_str(&w, "state", amp_span_str(amp_inbox_fsm.states[m->state].name));
        amp_jw_member_str(&w, "since", amp_span_str(at));
        amp_jw_member_int(&w, "attempts", m->attempt);
        if (m->expires_ms > 0) {
            char expires[AMP_TIME_MAX];
            amp_time_format(m->expires_ms, expires);
            amp_jw_member_str(&w, "expires", amp_span_str(expires));
        }
        amp_rec_line(&w, m->line);
        amp_jw_close(&w, '}');
        *rc = amp_jw_end(&w, &err);
    } else {
        *rc = amp_buf_fmt(&b, &err, "%s  %-8s  ", at, amp_inbox_fsm.states[m->state].name);
        if (*rc == 0)
            *rc = amp_text_safe(m->id, 0, &b, &err);
    }
    if (*rc == 0)
        *rc = amp_buf_str(&b, "\n", &err) < 0 ? -1 : amp_out(amp_buf_span(&b), &err);
    if (*rc < 0)
        amp_status_note(amp_complain(&err));
    return *rc < 0;
}

static int inbox_list(struct inbox *in, struct amp_error *err)
{
    struct amp_inbox_info info;
    int rc = 0;
    if (amp_inbox_info(in->store, loop.agent, &in->mem, &info, err) < 0 ||
        amp_inbox_each(in->store, loop.agent, list_fn, &rc, err) < 0 || amp_out_flush(err) < 0)
        return -1;
    if (info.busy_ms > 0 && info.until_ms > amp_now_ms()) {
        char since[AMP_TIME_MAX], until[AMP_TIME_MAX];
        amp_time_format(info.busy_ms, since);
        amp_time_format(info.until_ms, until);
        amp_note("%s is busy since %s, until %s at most", loop.name, since, until);
    }
    if (info.waiting > 0)
        return 0;
    amp_note("no message waits for %s", loop.name);
    return AMP_NO;
}

/* ---- handing over ---- */

/* Waits for the lock with the default handlers: a signal ends the process, which has changed
 * nothing yet. A handler's flag could be set just before the wait. */
static int turn_take(struct inbox *in, struct amp_error *err)
{
    if (wait_turn)
        amp_signals_default();
    int rc =
        amp_inbox_lock(amp_store_dir(in->store), loop.agent, wait_turn ? -1 : 0, &in->lock, err);
    amp_signals_install();
    return rc;
}

/* --busy, --idle and --return: changes the state before handing over. */
static int marks_set(struct inbox *in, struct amp_error *err)
{
    int64_t now = amp_now_ms();
    if (busy && amp_inbox_busy(in->store, loop.agent, now, now + loop.lease_ms, err) < 0)
        return -1;
    if (idle && amp_inbox_busy(in->store, loop.agent, 0, 0, err) < 0)
        return -1;
    if (return_id && amp_inbox_return(in->store, loop.agent, amp_span_str(return_id), now, err) < 0)
        return -1;
    if (amp_store_sync(in->store, err) < 0)
        return -1;
    if (idle || return_id)
        amp_inbox_ring(amp_store_dir(in->store), loop.agent);
    return 0;
}

static int hand_out(struct inbox *in, struct amp_error *err)
{
    struct amp_inbox_end end;
    if (lanes_set(config, state, NULL, 0, &lane_rules, err) < 0 || turn_take(in, err) < 0)
        return -1;
    if (command.n > 0)
        loop.argv = command.v;
    if (one)
        loop.max_messages = 1;
    if (amp_inbox_loop(in->store, &loop, &end, err) < 0)
        return -1;
    if (end.handed > 0)
        return 0;
    if (end.refused == 0)
        amp_note("no message was handed over to %s", loop.name);
    return AMP_NO;
}

static int inbox_serve(struct inbox *in, struct amp_error *err)
{
    bool marks = busy || idle || return_id;
    if (list)
        return inbox_list(in, err);
    if (marks && marks_set(in, err) < 0)
        return -1;
    return marks && !loop.between && !loop.follow ? 0 : hand_out(in, err);
}

static int inbox_check(struct amp_command *c, struct amp_error *err)
{
    char program[PATH_MAX];
    if (busy && (idle || loop.between || loop.follow))
        amp_die_usage("--busy excludes the other options");
    loop.name = c->argv[0];
    loop.agent = amp_span_str(c->argv[0]);
    if (amp_inbox_agent_check(loop.agent, err) < 0)
        amp_die_usage("%s", err->what);
    if (command.n > 0 && amp_child_find(command.v[0], environ, program, sizeof(program), err) < 0)
        amp_die_usage("--exec: %s", err->what);
    c->opens = list ? AMP_OPENS_LOOK : AMP_OPENS_FOUND;
    c->act = list ? NULL : "take messages from an inbox";
    c->actor = "amp-route.inbox";
    return 0;
}

static int route_inbox(struct amp_command *c, struct amp_error *err)
{
    struct inbox in = {.store = c->store, .lock = -1};
    amp_buf_init(&in.mem, AMP_RECORD_MAX);
    answers_open(state, config, loop.name);
    int rc = confine_open(&walls, state, &loop.wrap, err) < 0 ? -1 : inbox_serve(&in, err);
    amp_buf_release(&in.mem);
    confine_close();
    answers_close();
    amp_auto_close(&in.lock);
    return rc;
}

const struct amp_verb inbox_verbs[] = {
    {"inbox", "AGENT", "hand the messages of an inbox to its agent", inbox_opts, route_inbox,
     .check = inbox_check, .least = 1, .most = 1,
     .usage = "one agent is needed: amp-route inbox AGENT", .signals = true, .values = "agent",
     .who = AMP_WHO_SELF},
    {0},
};
