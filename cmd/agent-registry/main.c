/* agent-registry: the agents, their signs of life and their capabilities. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"
#include "cli/config_schema.h"
#include "cli/finding.h"
#include "flow/config.h"
#include "flow/facts.h"
#include "flow/identity/head.h"
#include "flow/identity/person.h"
#include "flow/intake.h"
#include "flow/keep.h"
#include "flow/values.h"
#include "registry.h"

const char *reg_state, *reg_skills, *reg_routing;
int64_t reg_required_ms = (int64_t)2 * 3600 * 1000;
bool reg_signing;
static int64_t timeout_ms = 5000, misses = 3, rounds;
static int64_t lock_timeout_ms = AMP_LOCK_TIMEOUT_MS, interval_ms = 30000;
static const char *config, *as = "agent-registry", *node;
static const char *descriptor, *name, *description = "", *class_word = "STANDARD", *public_key,
                                      *role, *reason, *said;
static struct amp_list capabilities, modalities, connectors, tools, health;
static bool emit, keys;

#define PENDING_MAX ((size_t)256 << 20) /* bytes of unwritten output */

static const struct amp_opt options[] = {
    AMP_OPT_STATE(reg_state),
    AMP_OPT_CONFIG(config),
    {0, "as", AMP_OPT_STRING, &as, "NAME", .doc = "sender of events, name in the state directory"},
    {0, "node", AMP_OPT_STRING, &node, "NAME",
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
static const struct amp_opt filter_opts[] = {AMP_OPT_IDENTITIES(reg_identity), AMP_OPT_END};
static const char *const classes[] = {"PRIVILEGED", "STANDARD", "BULK", NULL};
static const struct amp_opt register_opts[] = {
    {0, "descriptor", AMP_OPT_PATH, &descriptor, "FILE",
     .doc = "the agent's descriptor as JSON, - for stdin"},
    {0, "name", AMP_OPT_STRING, &name, "TEXT", .doc = "name (default: AGENT)"},
    {0, "description", AMP_OPT_STRING, &description, "TEXT", .doc = "at most 200 words"},
    {0, "class", AMP_OPT_CHOICE, &class_word, "CLASS",
     .doc = "communication class (default: STANDARD)", .choices = classes},
    {0, "capability", AMP_OPT_LIST, &capabilities, "NAME", .doc = "capability; may be repeated",
     .values = "capability"},
    {0, "modality", AMP_OPT_LIST, &modalities, "TYPE",
     .doc = "MIME type that the agent accepts (default: application/json)"},
    {0, "connector", AMP_OPT_LIST, &connectors, "URI",
     .doc = "connector of an inference engine; may be repeated"},
    {0, "tool", AMP_OPT_LIST, &tools, "FILE", .doc = "descriptor of a tool; may be repeated"},
    {0, "public-key", AMP_OPT_STRING, &public_key, "BASE64", .doc = "public key of its signatures"},
    {0, "role", AMP_OPT_STRING, &role, "ROLE", .doc = "role of the agent"},
    AMP_OPT_END,
};
static const struct amp_opt deregister_opts[] = {
    {0, "reason", AMP_OPT_STRING, &reason, "TEXT", .doc = "reason, sent to the other agents"},
    AMP_OPT_END,
};
static const struct amp_opt publish_opts[] = {
    {0, "keys", AMP_OPT_FLAG, &keys, NULL,
     .doc = "publish the trusted keys and revocations to the agents instead"},
    AMP_OPT_IDENTITIES(reg_identity),
    AMP_OPT_END,
};
static const struct amp_opt heartbeat_opts[] = {
    {0, "emit", AMP_OPT_FLAG, &emit, NULL, .doc = "send heartbeats and read answers from stdin"},
    {0, "count", AMP_OPT_INT, &rounds, "N", .doc = "end after N rounds of --emit", .min = 1,
     .max = 1000000000},
    AMP_OPT_IDENTITIES(reg_identity),
    {0, "said", AMP_OPT_STRING, &said, "STATE",
     .doc = "state that the agent reports, such as RUNNING"},
    {0, "health", AMP_OPT_LIST, &health, "KEY=VALUE", .doc = "health value; may be repeated"},
    AMP_OPT_END,
};

bool reg_needs_signatures(void)
{
    return strcmp(reg_identity.require, "all") == 0;
}

int reg_identities(struct amp_identities **out, struct amp_error *err)
{
    const struct amp_identity_tool tool = {.state = reg_state, .config = config};
    return amp_identity_cli_open(&reg_identity, &tool, out, err);
}

int reg_open(struct registry *r, const char *suffix, bool existing, struct amp_error *err)
{
    struct amp_store_options opt = {.lock_timeout_ms = lock_timeout_ms,
                                    .look = existing,
                                    .facts = &amp_flow_facts,
                                    .keep = amp_flow_keep,
                                    .actor = amp_cli_name(),
                                    .sign_head = amp_head_sign};
    r->lock = r->out.fd = -1;
    if (!reg_state)
        amp_die_no_state();
    if (!amp_id_is_safe(amp_span_str(as)))
        amp_die_usage("--as takes letters, digits, '.', '_' and '-'");
    if (existing && access(reg_state, F_OK) != 0 && errno == ENOENT)
        return amp_fail(err, AMP_UNAVAILABLE, state_missing, "there is no state directory %s",
                        reg_state);
    snprintf(r->name, sizeof r->name, "%s%s", as, suffix ? suffix : "");
    r->dir = (struct amp_directory){.voice = {.name = r->name, .node = node ? node : r->name},
                                    .interval_ms = interval_ms,
                                    .timeout_ms = timeout_ms,
                                    .misses = misses};
    if (amp_store_open(reg_state, &opt, &r->dir.store, err) < 0)
        return -1;
    if (!suffix)
        return 0;
    if (amp_outbox_lock(r->dir.store, r->name, lock_timeout_ms, &r->lock, err) < 0)
        return -1;
    amp_buf_init(&r->turn, PENDING_MAX);
    r->box = (struct amp_outbox){.store = r->dir.store, .name = r->name, .out = &r->out};
    return amp_outq_open(&r->out, STDOUT_FILENO, false, PENDING_MAX, err);
}

int reg_close(struct registry *r, int rc, const struct amp_error *err)
{
    int status = rc < 0 ? amp_complain(err) : 0;
    if (r->out.fd >= 0)
        amp_outq_close(&r->out);
    amp_buf_release(&r->turn);
    amp_outbox_release(&r->box);
    amp_auto_close(&r->lock);
    amp_store_close(r->dir.store);
    return status;
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

int reg_self_only(const char *agent, const char *act, struct amp_error *err)
{
    return amp_flow_person_or_self(reg_state, amp_cli_name(), environ, agent, act, err);
}

/* ---- verbs that take one message */

static void finding_print(void *ctx, const struct amp_finding *f)
{
    amp_finding_print_error(ctx, f, NULL);
}

/* Checks and takes a line, like a line of stdin. */
static int line_take(struct registry *r, struct amp_span line, struct amp_error *err)
{
    struct amp_check_options check = {0};
    struct amp_error why = {0};
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, line, &check, &v, finding_print, NULL, err);
    if (rc == 0) {
        amp_status_note(AMP_NO);
    } else if (rc == 1) {
        enum reg_taken taken = reg_take(r, &v, &why, err);
        rc = taken == REG_FAILED ? -1 : 0;
        if (taken == REG_TAKEN && why.status)
            amp_status_note(amp_complain(&why));
        else if (taken == REG_PASSES)
            rc = amp_fail(err, AMP_DATAERR, not_a_record, "not a registry message");
    }
    amp_reader_free(reader);
    return rc < 0 ? -1 : 0;
}

/* Composes a message of the agent and takes it. Takes the payload's reference. */
static int message_take(const char *agent, const char *type, json_t *payload)
{
    struct registry r = {0};
    struct amp_error err = {0};
    struct amp_voice voice = {.name = agent, .node = agent};
    struct amp_sw4rm_say s = {.type = type, .now_ms = amp_now_ms()};
    char id[AMP_UUID_MAX];
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, (size_t)32 << 20);
    if (amp_voice_sw4rm(&voice, &s, payload, &line, id, &err) < 0)
        return amp_complain(&err);
    int rc = reg_open(&r, "", false, &err);
    if (rc == 0)
        rc = line_take(&r, amp_buf_span(&line), &err);
    if (rc == 0)
        rc = reg_finish(&r, &err);
    return reg_close(&r, rc, &err);
}

/* NULL on failure, which is reported. */
static json_t *file_load(const char *path)
{
    AMP_BUF struct amp_buf b = {0};
    struct amp_error err = {0};
    json_t *j = NULL;
    amp_buf_init(&b, 1 << 20);
    amp_note_terminal(path);
    if (amp_file_read_any(path, 1 << 20, &b, &err) < 0 ||
        !(j = amp_json_load(amp_buf_span(&b), &err))) {
        amp_warn("%s:", path);
        amp_status_note(amp_complain(&err));
    }
    return j;
}

static json_t *list_json(const struct amp_list *l, const char *otherwise)
{
    json_t *a = json_array();
    for (int i = 0; i < l->n; i++)
        json_array_append_new(a, json_string(l->v[i]));
    if (l->n == 0 && otherwise)
        json_array_append_new(a, json_string(otherwise));
    return a;
}

/* The descriptor that the options give; NULL on failure, which is reported. */
static json_t *descriptor_make(const char *agent)
{
    json_auto_t *j =
        json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:s*}", "agent_id", agent, "name",
                  name ? name : agent, "description", description, "capabilities",
                  list_json(&capabilities, NULL), "communication_class", class_word,
                  "modalities_supported", list_json(&modalities, "application/json"),
                  "reasoning_connectors", list_json(&connectors, NULL), "public_key", public_key);
    json_auto_t *list = json_array();
    for (int i = 0; i < tools.n; i++) {
        json_t *t = file_load(tools.v[i]);
        if (!t)
            return NULL;
        json_array_append_new(list, t);
    }
    if (tools.n > 0)
        json_object_set(j, "tools", list);
    return json_incref(j);
}

static int do_register(int argc, char **argv)
{
    if (argc > 1 || (argc == 0 && !descriptor))
        amp_die_usage(argc > 1 ? "one AGENT is required" : "no agent given");
    if (argc == 1 && descriptor)
        amp_die_usage("the descriptor names the agent");
    json_t *agent = descriptor ? file_load(descriptor) : descriptor_make(argv[0]);
    if (!agent)
        return 0; /* the status is noted */
    if (role)
        json_object_set_new(agent, "role", json_string(role));
    if (node)
        json_object_set_new(agent, "node_id", json_string(node));
    const char *id = json_string_value(json_object_get(agent, "agent_id"));
    char sender[128];
    snprintf(sender, sizeof sender, "%s", id && *id ? id : "unknown");
    struct amp_error err;
    if (reg_self_only(sender, "register an agent", &err) < 0) {
        json_decref(agent);
        return amp_complain(&err);
    }
    return message_take(sender, "CONTROL", json_pack("{s:o}", "agent", agent));
}

static int do_deregister(int argc, char **argv)
{
    if (argc != 1)
        amp_die_usage("no agent given");
    struct amp_error err;
    if (reg_self_only(argv[0], "deregister an agent", &err) < 0)
        return amp_complain(&err);
    return message_take(argv[0], "CONTROL",
                        json_pack("{s:s, s:s, s:s*}", "command", "deregister", "agent_id", argv[0],
                                  "reason", reason));
}

static int do_heartbeat(int argc, char **argv)
{
    struct amp_error err;
    if (emit && argc > 0)
        amp_die_usage("--emit asks every agent");
    if (!emit && argc != 1)
        amp_die_usage("no agent given");
    if (reg_self_only(emit ? NULL : argv[0],
                      emit ? "ask all agents" : "report that an agent is alive", &err) < 0)
        return amp_complain(&err);
    if (emit)
        return reg_loop(rounds);
    json_t *h = health.n > 0 ? json_object() : NULL;
    for (int i = 0; i < health.n; i++) {
        const char *eq = strchr(health.v[i], '=');
        if (!eq)
            amp_die_usage("--health takes KEY=VALUE, not '%s'", health.v[i]);
        AMP_FREE char *key = strndup(health.v[i], (size_t)(eq - health.v[i]));
        json_object_set_new(h, key ? key : "", json_string(eq + 1));
    }
    return message_take(
        argv[0], "HEARTBEAT",
        json_pack("{s:s, s:s*, s:o*}", "agent_id", argv[0], "state", said, "health", h));
}

static int do_publish(int argc, char **argv)
{
    struct registry r = {0};
    struct amp_error err = {0};
    static char standard[] = "-", *only[] = {standard, NULL};
    if (keys && argc > 0)
        amp_die_usage("--keys takes no FILE");
    if (reg_self_only(NULL, "publish capabilities and keys", &err) < 0)
        return amp_complain(&err);
    int rc = reg_open(&r, "", false, &err);
    if (rc == 0 && keys)
        rc = reg_keys_publish(&r, config, &err);
    if (argc == 0 && !keys) {
        argc = 1;
        argv = only;
    }
    for (int i = 0; i < argc && rc == 0; i++) {
        AMP_BUF struct amp_buf line = {0};
        amp_buf_init(&line, 1 << 20);
        json_auto_t *j = file_load(argv[i]);
        if (!j)
            continue;
        rc = amp_json_dump(j, &line, &err);
        if (rc == 0)
            rc = line_take(&r, amp_buf_span(&line), &err);
    }
    if (rc == 0)
        rc = reg_finish(&r, &err);
    return reg_close(&r, rc, &err);
}

static int do_filter(int argc, char **argv)
{
    struct amp_error err;
    return reg_self_only(NULL, "keep the registry", &err) < 0 ? amp_complain(&err) : reg_loop(-1);
}

static const struct amp_verb verbs[] = {
    {NULL, "", "consume registry messages from stdin, pass on the others", filter_opts, NULL,
     .old = do_filter, .who = AMP_WHO_PERSON},
    {"register", "[AGENT]", "register an agent", register_opts, NULL, .old = do_register,
     .who = AMP_WHO_SELF},
    {"deregister", "AGENT", "deregister an agent", deregister_opts, NULL, .old = do_deregister,
     .values = "agent", .who = AMP_WHO_SELF},
    {"heartbeat", "[AGENT]", "report that an agent is alive, or ask all agents", heartbeat_opts,
     NULL, .old = do_heartbeat, .values = "agent", .who = AMP_WHO_SELF},
    {"list", "", "list the agents", list_opts, NULL, .old = reg_list, .finds_state = true},
    {"show", "AGENT…", "print everything recorded about agents", show_opts, NULL, .old = reg_show,
     .finds_state = true, .values = "agent"},
    {"publish", "[FILE…]", "publish capabilities, or the trusted keys", publish_opts, NULL,
     .old = do_publish, .who = AMP_WHO_PERSON},
    {"confirm", "AGENT CAPABILITY VERSION", "confirm that an agent installed a skill", confirm_opts,
     NULL, .old = reg_confirm, .values = "agent", .who = AMP_WHO_SELF},
    {"approve", "TASK", "approve a task that requires a capability of high risk", approve_opts,
     NULL, .old = reg_approve, .values = "task", .who = AMP_WHO_PERSON},
    {"reviews", "", "list or close the review items of skills", reviews_opts, NULL,
     .old = reg_reviews, .who = AMP_WHO_WITH("--close")},
    {"capabilities", "[ID…]", "list the capabilities", capabilities_opts, NULL,
     .old = reg_capabilities, .finds_state = true, .values = "capability"},
    {0},
};
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
    .verbs = (const struct amp_verb *const[]){verbs, NULL},
    .statuses = statuses,
    .machines = machines,
    AMP_CONFIG_OF_TAKER,
    .values = amp_flow_values,
    .summary = amp_intake_summary,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
