/* The methods of MCP but for tools and resources: the handshake and its revisions, discovery,
 * cancellation, log levels. */
#include <stdio.h>
#include <string.h>

#include "base/words.h"
#include "mcp.h"
#include "message/protocol/compose/json.h"

#define META "io.modelcontextprotocol/"

const struct mcp_revision_row mcp_revisions[MCP_REVISION_COUNT] = {
#define X(id, text, batch, modern) {text, batch, modern},
    MCP_REVISIONS(X)
#undef X
};

const char *const mcp_levels[] = {MCP_LEVELS(AMP_WORDS_ROW) NULL};

static int revision_find(const char *text)
{
    for (int i = 0; i < MCP_REVISION_COUNT; i++)
        if (strcmp(mcp_revisions[i].text, text) == 0)
            return i;
    return -1;
}

static const char *instructions(const struct mcp *m)
{
    if (m->where & MCP_ATTEMPT)
        return "You work on one task of a supervised loop. Call my_task first: it has the "
               "description, the acceptance criteria and what a reviewer found before. Work in "
               "its worktree only. Say how far you are with progress. If a person has to decide "
               "something, call ask_human; no answer is not an approval. End with reply: it "
               "writes your answer, which is read when your process ends.";
    return "You are an agent that other agents and people send messages to. Call inbox for the "
           "next message; it is handed over once. Answer it with reply, and say how far you are "
           "with progress. Send to other agents with send. If a person has to decide something, "
           "call ask_human; no answer is not an approval. my_task has the task that you work on.";
}

static json_t *server_info(void)
{
    return json_pack("{s:s, s:s, s:s}", "name", "amp-mcp", "title", "amp-tools", "version",
                     AMP_VERSION);
}

static json_t *capabilities(bool modern)
{
    json_t *c = json_pack("{s:{}, s:{s:b, s:b}, s:{}}", "tools", "resources", "subscribe", 1,
                          "listChanged", 1, "logging");

    (void)modern;
    return c;
}

/* ---- requests of the handshake's revisions ---- */

static void initialize(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    const char *wanted = amp_json_str(params, "protocolVersion");
    int found = revision_find(wanted);

    if (to->batch >= 0) {
        mcp_error(m, to, AMP_RPC_INVALID, NULL, "initialize must not be in a batch");
        return;
    }
    if (m->initialized) {
        mcp_error(m, to, AMP_RPC_INVALID, NULL, "the session is initialized already");
        return;
    }
    if (!*wanted) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL, "protocolVersion is missing");
        return;
    }
    m->revision =
        found < 0 || mcp_revisions[found].modern ? MCP_LEGACY_LATEST : (enum mcp_revision)found;
    m->initialized = m->flush = true;
    mcp_result(m, to,
               json_pack("{s:s, s:o, s:o, s:s}", "protocolVersion", mcp_revisions[m->revision].text,
                         "capabilities", capabilities(false), "serverInfo", server_info(),
                         "instructions", instructions(m)));
}

static void discover(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    json_t *versions = json_array();

    (void)params;
    for (int i = MCP_REVISION_COUNT - 1; i >= 0; i--)
        if (mcp_revisions[i].modern)
            json_array_append_new(versions, json_string(mcp_revisions[i].text));
    mcp_result(m, to,
               json_pack("{s:o, s:o, s:o, s:s, s:i, s:s}", "supportedVersions", versions,
                         "capabilities", capabilities(true), "serverInfo", server_info(),
                         "instructions", instructions(m), "ttlMs", 3600000, "cacheScope",
                         "private"));
}

static void ping(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    (void)params;
    mcp_result(m, to, json_object());
}

static void level_set(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    int level = amp_word_find(mcp_levels, amp_span_str(amp_json_str(params, "level")));

    if (level < 0) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL,
                  "level: expected debug, info, notice, warning, error, critical, alert or "
                  "emergency");
        return;
    }
    m->level = level;
    mcp_result(m, to, json_object());
}

/* Lists that fit one page have no cursor. */
static bool cursor_refuse(struct mcp *m, const struct mcp_to *to, const json_t *params)
{
    if (!json_object_get(params, "cursor"))
        return false;
    mcp_error(m, to, AMP_RPC_PARAMS, NULL, "cursor: this list has one page");
    return true;
}

static void tools_list(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    if (!cursor_refuse(m, to, params))
        mcp_tools_list(m, to);
}

static void resources_list(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    mcp_resources_list(m, to, params);
}

static void resources_templates(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    if (!cursor_refuse(m, to, params))
        mcp_resources_templates(m, to);
}

static void resources_read(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    mcp_resources_read(m, to, params);
}

static void resources_subscribe(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    mcp_resources_subscribe(m, to, params, true);
}

static void resources_unsubscribe(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    mcp_resources_subscribe(m, to, params, false);
}

static void listen_open(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    mcp_resources_listen(m, to, params);
}

/* ---- notifications ---- */

/* Whether a token of JSON text is this value: 1 and 1.0 are the same id, which no client uses. */
static bool id_is(const struct mcp_call *call, const json_t *id)
{
    json_auto_t *own = json_loads(call->to.id, JSON_DECODE_ANY, NULL);

    return own && json_equal(own, id);
}

static void cancelled(struct mcp *m, json_t *params)
{
    const json_t *id = json_object_get(params, "requestId");

    for (size_t i = 0; id && i < MCP_CALLS_MAX; i++) {
        struct mcp_call *call = m->calls[i];
        if (!call || !id_is(call, id))
            continue;
        const struct mcp_to to = call->to;
        if (call == m->emitting) /* its message is on its way */
            return;
        if (!call->tool)
            mcp_listen_free(call);
        else if (call->tool->stop)
            call->tool->stop(call, "the agent does not wait for the answer any more");
        mcp_call_free(m, call);
        mcp_answer_none(m, &to);
        return;
    }
}

/* ---- the table ---- */

enum era { LEGACY = 1, MODERN = 2, BOTH = 3 };

static const struct method {
    const char *name;
    enum era era;
    bool at_once; /* before the handshake, too */
    void (*run)(struct mcp *m, const struct mcp_to *to, json_t *params);
} methods[] = {
    {"initialize", LEGACY, true, initialize},
    {"ping", LEGACY, true, ping},
    {"server/discover", MODERN, true, discover},
    {"logging/setLevel", LEGACY, false, level_set},
    {"tools/list", BOTH, false, tools_list},
    {"tools/call", BOTH, false, mcp_tools_call},
    {"resources/list", BOTH, false, resources_list},
    {"resources/templates/list", BOTH, false, resources_templates},
    {"resources/read", BOTH, false, resources_read},
    {"resources/subscribe", LEGACY, false, resources_subscribe},
    {"resources/unsubscribe", LEGACY, false, resources_unsubscribe},
    {"subscriptions/listen", MODERN, false, listen_open},
};

/* Sets the era of a request from its _meta. False: it was answered with an error. */
static bool meta_read(struct mcp *m, struct mcp_to *to, const struct method *method,
                      const json_t *params)
{
    const json_t *meta = json_object_get(params, "_meta");
    const json_t *version = json_object_get(meta, META "protocolVersion");
    const char *level = amp_json_str(meta, META "logLevel"), *text = json_string_value(version);

    to->modern = version != NULL;
    to->level = amp_word_find(mcp_levels, amp_span_str(level));
    if (!to->modern && !m->initialized && !method->at_once) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL,
                  "params._meta has no " META "protocolVersion, and there was no initialize");
        return false;
    }
    if (!to->modern)
        return true;
    m->flush |= !m->initialized && !m->store;
    int found = text ? revision_find(text) : -1;
    if (found < 0 || !mcp_revisions[found].modern) {
        mcp_error(m, to, text ? AMP_RPC_VERSION : AMP_RPC_PARAMS,
                  json_pack("{s:[s,s,s,s,s], s:O}", "supported", mcp_revisions[4].text,
                            mcp_revisions[3].text, mcp_revisions[2].text, mcp_revisions[1].text,
                            mcp_revisions[0].text, "requested", version),
                  "unsupported protocol version");
        return false;
    }
    if (!json_is_object(json_object_get(meta, META "clientCapabilities"))) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL,
                  "params._meta has no " META "clientCapabilities, or it is not an object");
        return false;
    }
    return true;
}

static void request_run(struct mcp *m, const struct mcp_to *at, struct amp_span name,
                        json_t *params)
{
    struct mcp_to to = *at;
    const struct method *found = NULL;

    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (amp_span_is(name, methods[i].name))
            found = &methods[i];
    if (found && !meta_read(m, &to, found, params))
        return;
    if (!found || !(found->era & (to.modern ? MODERN : LEGACY))) {
        mcp_error(m, &to, AMP_RPC_METHOD, NULL, "unknown method \"%.*s\"%s", AMP_CLIP(name, 100),
                  found ? " in this revision of MCP" : "");
        return;
    }
    found->run(m, &to, params);
}

static bool is_id_used(const struct mcp *m, const char *id)
{
    for (size_t i = 0; i < MCP_CALLS_MAX; i++)
        if (m->calls[i] && strcmp(m->calls[i]->to.id, id) == 0)
            return true;
    return false;
}

void mcp_message(struct mcp *m, const struct amp_rpc_message *msg, int batch)
{
    AMP_BUF struct amp_buf arena = {0};
    struct amp_span name = {0};
    struct amp_error err;
    json_auto_t *params = NULL;
    struct mcp_to to = {.batch = batch, .level = -1};

    amp_span_copy(msg->id.n ? msg->id : AMP_SPAN("null"), to.id, sizeof to.id);
    if (msg->kind == AMP_RPC_RESPONSE) /* this server asks nothing */
        return;
    if (msg->kind == AMP_RPC_BAD) {
        mcp_error(m, &to, msg->code, NULL, "%s", msg->why);
        return;
    }
    amp_buf_init(&arena, MCP_LINE_MAX);
    params = msg->params == AMP_TOK_NONE ? json_object() : amp_json_of(&m->tape, msg->params, &err);
    if (!params || amp_tok_text(&m->tape, msg->method, &arena, &name, &err) < 0) {
        if (!params && err.status != AMP_TEMPFAIL && msg->kind == AMP_RPC_REQUEST)
            mcp_error(m, &to, AMP_RPC_PARAMS, NULL, "params: %s", err.what);
        else if (!params && err.status != AMP_TEMPFAIL)
            return;
        else
            mcp_break(m, &err);
        return;
    }
    if (msg->kind == AMP_RPC_NOTIFICATION) {
        if (amp_span_is(name, "notifications/cancelled"))
            cancelled(m, params);
        return; /* initialized, roots/list_changed and unknown ones need nothing */
    }
    if (is_id_used(m, to.id)) {
        mcp_error(m, &to, AMP_RPC_INVALID, NULL, "a request with this id is under way");
        return;
    }
    request_run(m, &to, name, params);
}
