/* amp-mcp: an MCP server on standard input and output, for one agent. */
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "cli/config.h"
#include "cli/rows.h"
#include "mcp.h"
#include "message/delivery/ledger/timeouts.h"
#include "people/answer/person.h"
#include "shared/config.h"
#include "shared/config_schema.h"
#include "work/git/person.h"

static struct amp_identity_cli identity = AMP_IDENTITY_CLI;
static struct amp_list routes;
static struct mcp m = {
    .identity = &identity,
    .routes = &routes,
    .lock_timeout_ms = AMP_LOCK_TIMEOUT_MS,
    .open_timeout_ms = AMP_OPEN_TIMEOUT_MS,
};

static const struct amp_opt options[] = {
    AMP_OPT_STATE(m.state),
    AMP_OPT_CONFIG(m.config),
    {0, "agent", AMP_OPT_STRING, &m.agent, "NAME", .doc = "the agent that this server serves",
     .env = "AMP_AGENT"},
    {'r', "route", AMP_OPT_LIST, &routes, "'PREDICATE => PORT'",
     .doc = "where what the agent says goes, as with amp-route", .config = "route.routes"},
    {'o', "out", AMP_OPT_PATH, &m.out_path, "PATH",
     .doc = "write what the agent says to PATH, and route nothing"},
    {0, "routing-policy", AMP_OPT_STRING, &m.routing, "VERSION",
     .doc = "version of the routing policy, in the agent's messages",
     .config = "runtime.routing_policy"},
    AMP_OPT_IDENTITIES(identity),
    AMP_OPT_LOCK_TIMEOUT(m.lock_timeout_ms),
    AMP_OPT_OPEN_TIMEOUT(m.open_timeout_ms),
    AMP_OPT_END,
};

/* Names that are roles of people or of our tools: an agent must not speak under them. */
static bool is_reserved(const char *name)
{
    static const char *const names[] = {"admin",  "operator", "human",  "hitl",
                                        "system", "all",      "router", "coordinator"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return strncmp(name, "amp-", 4) == 0;
}

/* An agent that starts this server is the agent that it serves. */
static int agent_check(struct amp_error *err)
{
    struct amp_agent_caller caller;
    const char *own = getenv("AMP_AGENT");

    if (own && *own && strcmp(own, m.agent) != 0)
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "the agent %.100s cannot act as %.100s (AMP_AGENT is set)", own, m.agent);
    if (amp_agent_started(&caller) && strcmp(caller.name, "unknown") != 0 &&
        strcmp(caller.name, m.agent) != 0)
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "the agent %.100s cannot act as %.100s: %s", caller.name, m.agent,
                        caller.how);
    if (!amp_id_is_safe(amp_span_str(m.agent)) || strlen(m.agent) > AMP_INBOX_AGENT_MAX)
        return amp_fail(err, AMP_USAGE, bad_agent,
                        "\"%.100s\" cannot name an agent: 1 to 128 letters, digits, \".\", \"_\" "
                        "and \"-\"",
                        m.agent);
    if (is_reserved(m.agent))
        return amp_fail(err, AMP_NOPERM, permission_denied,
                        "\"%s\" is the name of a person's role or of a tool, not of an agent",
                        m.agent);
    return 0;
}

static int serve_check(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    m.control = getenv("AMP_CONTROL");
    m.role = getenv("AMP_ROLE");
    if (m.control && *m.control)
        m.where |= m.role && strcmp(m.role, "reviewer") == 0 ? MCP_REVIEWER : MCP_EXECUTOR;
    if (!m.role || !*m.role)
        m.role = "executor";
    if (m.state)
        m.where |= MCP_STATE;
    if (!m.where)
        amp_die_no_state();
    if (!m.agent || !*m.agent)
        amp_die_usage("the agent's name is needed: --agent NAME or AMP_AGENT");
    return agent_check(err);
}

/* The state directory is opened by the first call that needs it (mcp_store). */
static int serve(struct amp_command *c, struct amp_error *err)
{
    (void)c;
    snprintf(m.box, sizeof m.box, "amp-mcp.%s", m.agent);
    amp_note_terminal(NULL);
    return mcp_serve(&m, err);
}

static const struct amp_verb verbs[] = {
    {NULL, "", "serve the agent until the end of the input", NULL, serve, .check = serve_check,
     .signals = true, .finds_state = true, .who = AMP_WHO_SELF},
    {0},
};
static const int statuses[] = {0,
                               AMP_USAGE,
                               AMP_UNAVAILABLE,
                               AMP_INTERNAL,
                               AMP_IOERR,
                               AMP_TEMPFAIL,
                               AMP_NOPERM,
                               AMP_CONFIG,
                               AMP_INTERRUPTED,
                               0};
AMP_CONFIG_RECORDER;
static const struct amp_tool tool = {
    .name = "amp-mcp",
    .doc = "serve an agent by the Model Context Protocol",
    .opts = options,
    .verbs = (const struct amp_verb *const[]){verbs, NULL},
    .statuses = statuses,
    AMP_CONFIG_OF_RECORDER,
};

int main(int argc, char **argv)
{
    return amp_cli_main(&tool, argc, argv);
}
