/* The verbs that give the registry one message: of an agent, or from a file. */
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>

#include "base/codes.h"
#include "registry.h"
#include "shared/finding.h"

static const char *descriptor, *name, *description = "", *class_word = "STANDARD", *public_key,
                                      *role, *reason, *said;
static int64_t rounds;
static struct amp_list capabilities, modalities, connectors, tools, health;
static bool emit, keys;

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
static int message_take(struct registry *r, const char *agent, const char *type, json_t *payload,
                        struct amp_error *err)
{
    struct amp_voice voice = {.name = agent, .node = agent};
    struct amp_sw4rm_say s = {.type = type, .now_ms = amp_now_ms()};
    char id[AMP_UUID_MAX];
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, (size_t)32 << 20);
    if (amp_voice_sw4rm(&voice, &s, payload, &line, id, err) < 0 ||
        line_take(r, amp_buf_span(&line), err) < 0)
        return -1;
    return reg_finish(r, err);
}

static json_t *file_load(const char *path, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    json_t *j = NULL;
    amp_buf_init(&b, 1 << 20);
    amp_note_terminal(path);
    if (amp_file_read_any(path, 1 << 20, &b, err) < 0 ||
        !(j = amp_json_load(amp_buf_span(&b), err)))
        amp_warn("%s:", path);
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

/* The descriptor that the options give. */
static json_t *descriptor_make(const char *agent, struct amp_error *err)
{
    json_auto_t *j =
        json_pack("{s:s, s:s, s:s, s:o, s:s, s:o, s:o, s:s*}", "agent_id", agent, "name",
                  name ? name : agent, "description", description, "capabilities",
                  list_json(&capabilities, NULL), "communication_class", class_word,
                  "modalities_supported", list_json(&modalities, "application/json"),
                  "reasoning_connectors", list_json(&connectors, NULL), "public_key", public_key);
    json_auto_t *list = json_array();
    for (int i = 0; i < tools.n; i++) {
        json_t *t = file_load(tools.v[i], err);
        if (!t)
            return NULL;
        json_array_append_new(list, t);
    }
    if (tools.n > 0)
        json_object_set(j, "tools", list);
    return json_incref(j);
}

static json_t *registered; /* the descriptor */

/* The descriptor may name the agent, so it is read before the caller is checked. */
static int register_check(struct amp_command *c, struct amp_error *err)
{
    static char *sender[2];
    static char id[128];
    if (c->argc > 1 || (c->argc == 0 && !descriptor))
        amp_die_usage(c->argc > 1 ? "one AGENT is required" : "no agent given");
    if (c->argc == 1 && descriptor)
        amp_die_usage("the descriptor names the agent");
    registered = descriptor ? file_load(descriptor, err) : descriptor_make(c->argv[0], err);
    if (!registered)
        return -1;
    if (role)
        json_object_set_new(registered, "role", json_string(role));
    if (reg_node)
        json_object_set_new(registered, "node_id", json_string(reg_node));
    const char *named = json_string_value(json_object_get(registered, "agent_id"));
    snprintf(id, sizeof id, "%s", named && *named ? named : "unknown");
    sender[0] = id;
    c->argv = sender;
    c->act = "register an agent";
    return 0;
}

static int do_register(struct amp_command *c, struct amp_error *err)
{
    return message_take(c->own, c->argv[0], "CONTROL", json_pack("{s:o}", "agent", registered),
                        err);
}

static int do_deregister(struct amp_command *c, struct amp_error *err)
{
    return message_take(c->own, c->argv[0], "CONTROL",
                        json_pack("{s:s, s:s, s:s*}", "command", "deregister", "agent_id",
                                  c->argv[0], "reason", reason),
                        err);
}

static int heartbeat_check(struct amp_command *c, struct amp_error *err)
{
    (void)err;
    if (emit && c->argc > 0)
        amp_die_usage("--emit asks every agent");
    if (!emit && c->argc != 1)
        amp_die_usage("no agent given");
    for (int i = 0; i < health.n && !emit; i++)
        if (!strchr(health.v[i], '='))
            amp_die_usage("--health takes KEY=VALUE, not '%s'", health.v[i]);
    c->act = emit ? "ask all agents" : "report that an agent is alive";
    if (!emit)
        return 0;
    c->opens |= REG_OPENS_EMIT;
    amp_signals_install();
    return 0;
}

static int do_heartbeat(struct amp_command *c, struct amp_error *err)
{
    if (emit)
        return reg_loop(c->own, rounds, err);
    json_t *h = health.n > 0 ? json_object() : NULL;
    for (int i = 0; i < health.n; i++) {
        const char *eq = strchr(health.v[i], '=');
        AMP_FREE char *key = strndup(health.v[i], (size_t)(eq - health.v[i]));
        json_object_set_new(h, key ? key : "", json_string(eq + 1));
    }
    return message_take(
        c->own, c->argv[0], "HEARTBEAT",
        json_pack("{s:s, s:s*, s:o*}", "agent_id", c->argv[0], "state", said, "health", h), err);
}

static int publish_check(struct amp_command *c, struct amp_error *err)
{
    static char standard[] = "-", *only[] = {standard, NULL};
    (void)err;
    if (keys && c->argc > 0)
        amp_die_usage("--keys takes no FILE");
    if (c->argc == 0 && !keys) {
        c->argc = 1;
        c->argv = only;
    }
    return 0;
}

static int do_publish(struct amp_command *c, struct amp_error *err)
{
    struct registry *r = c->own;
    if (keys && reg_keys_publish(r, err) < 0)
        return -1;
    for (int i = 0; i < c->argc; i++) {
        AMP_BUF struct amp_buf line = {0};
        struct amp_error why = {0};
        amp_buf_init(&line, 1 << 20);
        json_auto_t *j = file_load(c->argv[i], &why);
        if (!j)
            amp_status_note(amp_complain(&why));
        else if (amp_json_dump(j, &line, err) < 0 || line_take(r, amp_buf_span(&line), err) < 0)
            return -1;
    }
    return reg_finish(r, err);
}

const struct amp_verb agent_verbs[] = {
    {"register", "[AGENT]", "register an agent", register_opts, do_register,
     .check = register_check, .opens = AMP_OPENS_MADE | REG_OPENS_OUTBOX, .who = AMP_WHO_SELF},
    {"deregister", "AGENT", "deregister an agent", deregister_opts, do_deregister, .least = 1,
     .most = 1, .usage = "no agent given", .opens = AMP_OPENS_MADE | REG_OPENS_OUTBOX,
     .act = "deregister an agent", .values = "agent", .who = AMP_WHO_SELF},
    {"heartbeat", "[AGENT]", "report that an agent is alive, or ask all agents", heartbeat_opts,
     do_heartbeat, .check = heartbeat_check, .opens = AMP_OPENS_MADE | REG_OPENS_OUTBOX,
     .values = "agent", .who = AMP_WHO_SELF},
    {0},
};
const struct amp_verb publish_verbs[] = {
    {"publish", "[FILE…]", "publish capabilities, or the trusted keys", publish_opts, do_publish,
     .check = publish_check, .opens = AMP_OPENS_MADE | REG_OPENS_OUTBOX,
     .act = "publish capabilities and keys", .who = AMP_WHO_PERSON},
    {0},
};
