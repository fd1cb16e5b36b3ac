/* agent-registry: the agents, their signs of life and their capabilities. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/id.h>

#include "message/delivery/intake.h"
#include "registry.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "shared/state.h"
#include "shared/values.h"

const char *reg_state, *reg_config, *reg_node, *reg_skills, *reg_routing;
int64_t reg_required_ms = (int64_t)2 * 3600 * 1000;
bool reg_signing;
static int64_t timeout_ms = 5000, misses = 3;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS, interval_ms = 30000;
static const char *as = "agent-registry";

#define PENDING_MAX ((size_t)256 << 20) /* bytes of unwritten output */

static const struct amp_opt options[] = {
    AMP_OPT_STATE(reg_state),
    AMP_OPT_CONFIG(reg_config),
    {0, "as", AMP_OPT_STRING, &as, "NAME", .doc = "sender of events, name in the state directory"},
    {0, "node", AMP_OPT_STRING, &reg_node, "NAME",
     .doc = "id of the node (default: the sender's name)"},
    {0, "interval", AMP_OPT_DURATION, &interval_ms, "TIME", .doc = "time between heartbeats",
     .min = 10, .max = 86400000, .config = "registry.interval"},
    {0, "timeout", AMP_OPT_DURATION, &timeout_ms, "TIME", .doc = "time to answer a heartbeat",
     .min = 10, .max = 30000, .config = "registry.timeout"},
    {0, "misses", AMP_OPT_INT, &misses, "N",
     .doc = "misses in a row that make an agent unreachable", .min = 1, .max = 1000,
     .config = "registry.misses"},
    {0, "signing", AMP_OPT_FLAG, &reg_signing, NULL, .doc = "a registration needs a public key"},
    {0, "skills", AMP_OPT_DIR, &reg_skills, "DIR",
     .doc = "directory in which executor skills must exist"},
    {0, "required-by", AMP_OPT_DURATION, &reg_required_ms, "TIME",
     .doc = "how long agents have to install a skill", .min = 1000,
     .max = (int64_t)365 * 86400 * 1000},
    {0, "routing-policy", AMP_OPT_STRING, &reg_routing, "VERSION",
     .doc = "version of the routing policy, in the tasks of skills",
     .config = "runtime.routing_policy"},
    AMP_OPT_LOCK_TIMEOUT(lock_timeout_ms),
    AMP_OPT_END,
};

bool reg_needs_signatures(void)
{
    return strcmp(reg_identity.require, "all") == 0;
}

int reg_identities(struct amp_identities **out, struct amp_error *err)
{
    const struct amp_identity_tool tool = {.state = reg_state, .config = reg_config};
    return amp_identity_cli_open(&reg_identity, &tool, out, err);
}

static int outbox_open(struct registry *r, struct amp_error *err)
{
    if (amp_outbox_lock(r->dir.store, r->name, lock_timeout_ms, &r->lock, err) < 0)
        return -1;
    amp_buf_init(&r->turn, PENDING_MAX);
    r->box = (struct amp_outbox){.store = r->dir.store, .name = r->name, .out = &r->out};
    return amp_outq_open(&r->out, STDOUT_FILENO, false, PENDING_MAX, err);
}

static int verb_open(struct amp_command *c, struct amp_error *err)
{
    static struct registry r = {.lock = -1, .out.fd = -1};
    const char *suffix = c->opens & REG_OPENS_FILTER ? ".filter"
                         : c->opens & REG_OPENS_EMIT ? ".emit"
                                                     : "";
    if (c->opens && !amp_id_is_safe(amp_span_str(as)))
        amp_die_usage("--as takes letters, digits, '.', '_' and '-'");
    if (amp_state_open(c, err) < 0)
        return -1;
    if (!(c->opens & REG_OPENS_OUTBOX))
        return 0;
    c->own = &r;
    snprintf(r.name, sizeof r.name, "%s%s", as, suffix);
    r.dir = (struct amp_directory){.store = c->store,
                                   .voice = {.name = r.name, .node = reg_node ? reg_node : r.name},
                                   .interval_ms = interval_ms,
                                   .timeout_ms = timeout_ms,
                                   .misses = misses};
    return outbox_open(&r, err);
}

static void verb_close(struct amp_command *c)
{
    struct registry *r = c->own;
    if (r) {
        if (r->out.fd >= 0)
            amp_outq_close(&r->out);
        amp_buf_release(&r->turn);
        amp_outbox_release(&r->box);
        amp_auto_close(&r->lock);
    }
    amp_state_close(c);
}

int reg_emit(struct registry *r, struct amp_error *err)
{
    if (amp_store_sync(r->dir.store, err) < 0 ||
        (r->turn.len > 0 && amp_outq_add(&r->out, amp_buf_span(&r->turn), err) < 0))
        return -1;
    amp_buf_reset(&r->turn);
    return amp_outbox_emit(&r->box, err) < 0 ? -1 : 0;
}

int reg_finish(struct registry *r, struct amp_error *err)
{
    return reg_emit(r, err) < 0 ? -1 : amp_outbox_finish(&r->box, &amp_stop, err);
}

/* clang-format off */
#define VERBS(X) X(filter) X(agent) X(list) X(publish) X(skills) X(capabilities)
/* clang-format on */
AMP_VERBS(VERBS);
static const int statuses[] = {0,
                               AMP_NO,
                               AMP_USAGE,
                               AMP_DATAERR,
                               AMP_UNAVAILABLE,
                               AMP_INTERNAL,
                               AMP_CANTCREAT,
                               AMP_IOERR,
                               AMP_TEMPFAIL,
                               AMP_NOPERM,
                               AMP_CONFIG,
                               AMP_INTERRUPTED,
                               0};
AMP_CONFIG_TAKER;
static const struct amp_fsm *const machines[] = {&amp_reach_fsm, NULL};
static const struct amp_tool tool = {
    .name = "agent-registry",
    .doc = "register agents, check that they are alive, publish what they can do",
    .opts = options,
    .verbs = verbs,
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_TAKER,
    .values = amp_values,
    .refuse = amp_state_refuse,
    .open = verb_open,
    .close = verb_close,
    .summary = amp_intake_summary,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
