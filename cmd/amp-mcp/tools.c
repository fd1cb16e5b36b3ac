/* The table of tools: one row gives a tool's name, description, schemas and functions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "mcp.h"
#include "message/protocol/compose/json.h"

/* ---- fields ---- */

#define TEXT(name, doc, ...)                                                                       \
    {                                                                                              \
        name, MCP_TEXT, false, doc, __VA_ARGS__                                                    \
    }
#define NEEDED(name, type, doc, ...)                                                               \
    {                                                                                              \
        name, type, true, doc, __VA_ARGS__                                                         \
    }
#define FIELD(name, type, doc, ...)                                                                \
    {                                                                                              \
        name, type, false, doc, __VA_ARGS__                                                        \
    }
#define END                                                                                        \
    {                                                                                              \
        NULL, MCP_TEXT, false, NULL, 0                                                             \
    }

static const struct mcp_field issue[] = {
    NEEDED("severity", MCP_TEXT, "critical and major block, minor does not",
           .choices = (const char *const[]){"critical", "major", "minor", NULL}),
    TEXT("file", "the file, relative to the worktree", 0),
    FIELD("line", MCP_INTEGER, "the line", 0, 1000000000),
    NEEDED("description", MCP_TEXT, "what is wrong", 1, 65536),
    TEXT("suggested_fix", "what would fix it", 0),
    END,
};
static const struct mcp_field judgement[] = {
    NEEDED("criterion", MCP_TEXT, "the criterion, as my_task has it", 1, 65536),
    NEEDED("passed", MCP_JUDGED, "whether it is met; null: it could not be judged", 0),
    TEXT("evidence", "how you know: a command and its result, a file and line", 0),
    END,
};
static const struct mcp_field fix[] = {
    NEEDED("file", MCP_TEXT, "the file that you changed in the worktree", 1, 4096),
    NEEDED("change_type", MCP_TEXT, "the kind of change",
           .choices =
               (const char *const[]){"typo", "lint", "whitespace", "import_order", "import", NULL}),
    END,
};

static const struct mcp_field inbox_in[] = {
    FIELD("wait_seconds", MCP_INTEGER, "wait so long for a message (default: 0, do not wait)", 0,
          3600),
    END,
};
static const struct mcp_field inbox_out[] = {
    NEEDED("found", MCP_BOOLEAN, "whether there is a message", 0),
    TEXT("id", "the message's id, for reply and progress", 0),
    FIELD("taken", MCP_BOOLEAN,
          "true: you have the message now, it is not handed over again; false: it stays in the "
          "inbox",
          0),
    TEXT("from", "the agent that sent it", 0),
    TEXT("subject", "what it is about", 0),
    TEXT("text", "what it says", 0),
    TEXT("task_id", "the task that it is about", 0),
    TEXT("in_reply_to", "the conversation, or the message that it answers", 0),
    FIELD("wants_outcome", MCP_BOOLEAN, "the sender waits for your reply", 0),
    FIELD("redelivered", MCP_BOOLEAN,
          "you may have got it before, because this server or your session ended too early", 0),
    FIELD("attempt", MCP_INTEGER, "how often it was handed over", 0, INT32_MAX),
    FIELD("waiting", MCP_INTEGER, "how many more messages wait", 0, INT32_MAX),
    TEXT("protocol", "the message's protocol", 0),
    TEXT("kind", "what the message is, in all protocols", 0),
    TEXT("type", "the same in the words of its protocol", 0),
    FIELD("message", MCP_OBJECT, "the complete message; you rarely need it", 0),
    FIELD("messages", MCP_OBJECTS_ANY, "if they stay in the inbox: the complete messages", 0),
    END,
};

static const struct mcp_field send_in[] = {
    NEEDED("to", MCP_TEXT, "the name of an agent, or of a role", 1, 128),
    NEEDED("text", MCP_TEXT, "what to say", 1, 10000),
    TEXT("subject", "what it is about, in a few words", 1, 200),
    FIELD("expects_reply", MCP_BOOLEAN, "whether you wait for an answer", 0),
    END,
};
static const struct mcp_field send_out[] = {
    NEEDED("id", MCP_TEXT, "the message's id", 0),
    NEEDED("to", MCP_TEXT, "the recipient", 0),
    NEEDED("delivered", MCP_BOOLEAN,
           "it is in the inbox, or at the port, of the recipient; false: it is recorded and leaves "
           "later, do not send it again",
           0),
    END,
};

#define FILES                                                                                      \
    FIELD("files", MCP_TEXTS, "files of the work, below the directory of this server", 0, 50)

static const struct mcp_field reply_in[] = {
    NEEDED("id", MCP_TEXT, "the id of the message that you answer, from inbox", 1, 256),
    NEEDED("outcome", MCP_TEXT,
           "accept: you take the work; complete: it is done; fail: you cannot do it; reply: an "
           "answer in words",
           .choices = (const char *const[]){"accept", "complete", "fail", "reply", NULL}),
    TEXT("text", "what you say: the answer, the summary, or why it failed", 1, 65536),
    TEXT("code", "of a failure: a short word for its kind", 1, 48),
    FIELD("retryable", MCP_BOOLEAN, "of a failure: another attempt may help", 0),
    FILES,
    FIELD("eta_seconds", MCP_INTEGER, "of accept: in how many seconds the work will be done", 1,
          1209600),
    FIELD("data", MCP_OBJECT,
          "further values that the message's protocol requires; an error names them", 0),
    END,
};
static const struct mcp_field reply_out[] = {
    NEEDED("answers", MCP_TEXT, "the id of the message that was answered", 0),
    NEEDED("outcome", MCP_TEXT, "the outcome that was recorded", 0),
    END,
};
static const struct mcp_field progress_in[] = {
    NEEDED("id", MCP_TEXT, "the id of the message whose work you do, from inbox", 1, 256),
    NEEDED("text", MCP_TEXT, "what is done, and what is next", 1, 4096),
    FIELD("percent", MCP_NUMBER, "how much is done", 0, 100),
    FILES,
    FIELD("eta_seconds", MCP_INTEGER, "in how many seconds the work will be done now", 1, 1209600),
    FIELD("data", MCP_OBJECT,
          "further values that the message's protocol requires; an error names them", 0),
    END,
};

static const struct mcp_field result_in[] = {
    NEEDED("outcome", MCP_TEXT,
           "complete: all is done; partial: a part is, blockers say why; failed: it cannot be done",
           .choices = (const char *const[]){"complete", "partial", "failed", NULL}),
    FIELD("criteria_met", MCP_JUDGES,
          "for each acceptance criterion in the order of my_task: met or not; null: you could not "
          "judge it. Do not guess",
          0, 1024),
    FIELD("notes", MCP_TEXTS, "what the reviewer should know: what you ran, what is open", 0, 1024),
    FIELD("blockers", MCP_TEXTS, "what prevents the work; needed for partial and failed", 0, 256),
    TEXT("commit_message", "for changes that you did not commit", 1, 65536),
    END,
};
static const struct mcp_field verdict_in[] = {
    NEEDED("decision", MCP_TEXT,
           "approved; rejected: with issues; approved_with_fix: you fixed trifles in the worktree, "
           "with direct_fixes",
           .choices = (const char *const[]){"approved", "approved_with_fix", "rejected", NULL}),
    NEEDED("confidence", MCP_NUMBER, "how sure you are; below 0.8 a person is asked first", 0, 1),
    FIELD("criteria_results", MCP_OBJECTS, "each acceptance criterion", 0, 1024, .of = judgement),
    FIELD("issues", MCP_OBJECTS, "what is wrong; needed for rejected", 0, 1024, .of = issue),
    FIELD("direct_fixes", MCP_OBJECTS,
          "files that you fixed and did not commit, at most four lines each", 0, 256, .of = fix),
    TEXT("architecture_notes", "what does not block, but should be known", 1, 65536),
    END,
};
static const struct mcp_field written_out[] = {
    NEEDED("written", MCP_BOOLEAN, "the answer is in place; it is read when your process ends", 0),
    END,
};
static const struct mcp_field attempt_progress_in[] = {
    NEEDED("text", MCP_TEXT, "what is done, and what is next", 1, 4096),
    FIELD("percent", MCP_NUMBER, "how much is done", 0, 100),
    TEXT("file", "the file that it is about", 1, 4096),
    END,
};
static const struct mcp_field recorded_out[] = {
    NEEDED("recorded", MCP_BOOLEAN, "it is in the work log", 0),
    END,
};

static const struct mcp_field ask_in[] = {
    NEEDED("question", MCP_TEXT, "what a person has to decide, in one or two sentences", 1, 4000),
    TEXT("details", "what the person needs to know to decide", 1, 16000),
    FIELD("choices", MCP_TEXTS, "answers that you propose", 0, 8),
    FIELD("timeout_seconds", MCP_INTEGER, "give up after this time (default: 540)", 1, 86400),
    TEXT("task_id", "the task that it is about; not needed inside of an attempt", 1, 128),
    END,
};
static const struct mcp_field ask_out[] = {
    NEEDED("answered", MCP_BOOLEAN,
           "whether a person decided. false is not an approval: do not do what you asked about", 0),
    NEEDED("question", MCP_TEXT, "the question's id", 0),
    TEXT("decision",
         "the person's decision: approve or resume: go on, as the note says; deny or terminate: do "
         "not; modify: do it as the note says; or one of your choices",
         0),
    TEXT("note", "what the person said", 0),
    TEXT("by", "who decided", 0),
    TEXT("why", "why there is no answer", 0),
    END,
};

static const struct mcp_field task_in[] = {
    TEXT("task_id", "another task (default: the one that you work on)", 1, 128),
    END,
};
static const struct mcp_field none_in[] = {END};
static const struct mcp_field task_out[] = {
    NEEDED("agent", MCP_TEXT, "your name", 0),
    TEXT("role", "executor: you do the work; reviewer: you judge it", 0),
    TEXT("task_id", "the task", 0),
    TEXT("subtask_id", "the subtask", 0),
    TEXT("subtask", "what the subtask is", 0),
    TEXT("state", "of the task", 0),
    TEXT("description", "what is to be done; for rework also what was wrong", 0),
    FIELD("criteria", MCP_TEXTS, "the acceptance criteria", 0),
    FIELD("forbidden", MCP_TEXTS, "what you must not do, and files that you must not change", 0),
    TEXT("worktree", "the directory to work in", 0),
    TEXT("branch", "the branch to work on", 0),
    TEXT("base", "the commit or branch that the work starts from", 0),
    FIELD("attempt", MCP_INTEGER, "the number of the attempt, from 1", 0, INT32_MAX),
    TEXT("verdict", "what the last review decided", 0),
    FIELD("issues", MCP_OBJECTS_ANY, "what the last review found", 0),
    FIELD("rejections", MCP_INTEGER, "rejections in a row", 0, INT32_MAX),
    FIELD("blockers", MCP_TEXTS, "what blocked the last attempt", 0),
    FIELD("notes", MCP_TEXTS, "what people said about the task", 0),
    TEXT("question", "the question that waits for a person", 0),
    FIELD("paused", MCP_BOOLEAN, "a person suspended the task, or you", 0),
    END,
};

/* ---- tools ---- */

#define ASK_DOC                                                                                    \
    "Asks a person, and waits for the decision. Use it before something risky, irreversible or "   \
    "outside of your task, or if two readings of the task are possible. If nobody answers in "     \
    "time, answered is false: this is never an approval. The call can be cancelled; it reports "   \
    "progress while it waits."

static const struct mcp_tool tools[] = {
    {"inbox", "Take the next message",
     "Takes the next message that others sent to you. Each message is handed over once, and counts "
     "as read when you have this result. Answer with reply.",
     MCP_STATE, false, false, inbox_in, inbox_out, mcp_inbox_start, mcp_inbox_step, mcp_inbox_stop},
    {"inbox", "Look at the messages",
     "Shows the messages that wait in your inbox. Inside of an attempt they stay there.",
     MCP_ATTEMPT, true, true, none_in, inbox_out, mcp_attempt_inbox, mcp_attempt_inbox_step,
     mcp_attempt_stop},
    {"send", "Send a message",
     "Sends a message to another agent, under your name, and returns when it is delivered. Answer "
     "messages with reply instead.",
     MCP_STATE, false, false, send_in, send_out, mcp_send, mcp_send, NULL},
    {"reply", "End the work: the answer",
     "Writes your answer to the task. Call it once, at the end; it is read when your process ends. "
     "Files that you changed in the worktree are committed for you.",
     MCP_EXECUTOR, false, true, result_in, written_out, mcp_attempt_result, NULL, NULL},
    {"reply", "End the review: the verdict",
     "Writes your verdict about the work. Call it once, at the end; it is read when your process "
     "ends.",
     MCP_REVIEWER, false, true, verdict_in, written_out, mcp_attempt_verdict, NULL, NULL},
    {"reply", "Answer a message",
     "Answers a message that you took from the inbox: accepts its work, completes it, reports that "
     "it failed, or answers in words.",
     MCP_STATE, false, false, reply_in, reply_out, mcp_reply, mcp_reply, NULL},
    {"progress", "Report progress",
     "Says how far your work is. It becomes an entry of the work log, and a sign of life.",
     MCP_ATTEMPT, false, false, attempt_progress_in, recorded_out, mcp_attempt_progress,
     mcp_attempt_progress_step, mcp_attempt_stop},
    {"progress", "Report progress",
     "Says how far the work of a message is that you took from the inbox.", MCP_STATE, false, false,
     progress_in, reply_out, mcp_progress_say, mcp_progress_say, NULL},
    {"ask_human", "Ask a person", ASK_DOC, MCP_ATTEMPT, false, false, ask_in, ask_out,
     mcp_attempt_ask, mcp_attempt_ask_step, mcp_attempt_ask_stop},
    {"ask_human", "Ask a person", ASK_DOC, MCP_STATE, false, false, ask_in, ask_out, mcp_ask_start,
     mcp_ask_step, mcp_ask_stop},
    {"my_task", "Read the task",
     "Returns the task that you work on: what is to be done, the acceptance criteria, where to "
     "work, and what the last review found. Call it first.",
     MCP_ATTEMPT, true, true, none_in, task_out, mcp_attempt_task, NULL, NULL},
    {"my_task", "Read the task",
     "Returns the task that you work on: what is to be done, the acceptance criteria, where to "
     "work, and what the last review found.",
     MCP_STATE, true, true, task_in, task_out, mcp_task, NULL, NULL},
    {0},
};

/* The first row with the name that can work here; of an attempt and a state directory those of the
 * attempt go first, but for the inbox. */
static const struct mcp_tool *tool_find(const struct mcp *m, const char *name)
{
    for (const struct mcp_tool *t = tools; t->name; t++)
        if (strcmp(t->name, name) == 0 && (t->where & m->where))
            return t;
    return NULL;
}

/* ---- tools/list ---- */

static json_t *tool_describe(const struct mcp_tool *t)
{
    return json_pack("{s:s, s:s, s:s, s:o, s:o, s:{s:s, s:b, s:b, s:b, s:b}}", "name", t->name,
                     "title", t->title, "description", t->doc, "inputSchema", mcp_schema(t->in),
                     "outputSchema", mcp_schema(t->out), "annotations", "title", t->title,
                     "readOnlyHint", t->reads, "destructiveHint", 0, "idempotentHint", t->repeat,
                     "openWorldHint", 0);
}

/* The members of a list that clients may cache. */
json_t *mcp_cacheable(const struct mcp_to *to, json_t *result, int ttl_ms)
{
    if (result && to->modern) {
        json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
        json_object_set_new(result, "cacheScope", json_string("private"));
    }
    return result;
}

void mcp_tools_list(struct mcp *m, const struct mcp_to *to)
{
    json_t *list = json_array();

    for (const struct mcp_tool *t = tools; t->name; t++)
        if (tool_find(m, t->name) == t)
            json_array_append_new(list, tool_describe(t));
    mcp_result(m, to, mcp_cacheable(to, json_pack("{s:o}", "tools", list), 3600000));
}

/* ---- tools/call ---- */

/* {"content":…} for a result with a text; steals `structured`. */
static json_t *content_make(json_t *structured, const char *text, bool failed)
{
    AMP_BUF struct amp_buf all = {0};
    json_auto_t *owned = structured;
    json_t *result;

    amp_buf_init(&all, MCP_TEXT_MAX);
    if (!*text && owned && amp_json_dump(owned, &all, NULL) < 0)
        return NULL;
    /* For clients that show no structured content, the same as text. */
    result = json_pack("{s:[{s:s, s:s}], s:b}", "content", "type", "text", "text",
                       *text      ? text
                       : all.data ? all.data
                                  : "",
                       "isError", failed);
    if (result && owned && json_object_set(result, "structuredContent", owned) < 0) {
        json_decref(result);
        return NULL;
    }
    if (result && owned && *text) {
        amp_buf_reset(&all);
        if (amp_json_dump(owned, &all, NULL) == 0)
            json_array_append_new(json_object_get(result, "content"),
                                  json_pack("{s:s, s:s}", "type", "text", "text", all.data));
    }
    return result;
}

static void failure_send(struct mcp *m, const struct mcp_to *to, const char *tool,
                         const struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, 4096);
    if (amp_buf_fmt(&text, NULL, "%s: %s", err->code[0] ? err->code : "failed", err->what) < 0)
        return;
    mcp_log(m, to, MCP_WARNING, "%s: %s", tool, text.data);
    json_t *result = content_make(NULL, text.data, true);
    if (result)
        json_object_set_new(result, "_meta", json_pack("{s:s}", "amp/code", err->code));
    mcp_result(m, to, result);
}

void mcp_call_end(struct mcp_call *call, enum mcp_step how, const struct amp_error *err)
{
    struct mcp *m = call->m;

    if (how == MCP_DONE) {
        json_t *structured = call->result;
        call->result = NULL;
        mcp_result(m, &call->to, content_make(structured, call->text, false));
    } else {
        failure_send(m, &call->to, call->tool->name, err);
    }
    if (call->hands_over && how == MCP_DONE)
        m->handed.batch = call->to.batch;
    mcp_call_free(m, call);
}

/* Whether one more call is within the rate. */
static bool rate_allows(struct mcp *m)
{
    int64_t now = amp_mono_ms(), more = (now - m->filled_ms) * MCP_RATE / 1000;

    if (more > 0) {
        m->tokens = m->tokens + more > MCP_BURST ? MCP_BURST : m->tokens + more;
        m->filled_ms = now;
    }
    if (m->tokens <= 0)
        return false;
    m->tokens--;
    return true;
}

/* The token of its progress, as the client wrote it. */
static bool token_read(struct mcp_call *call, const json_t *params)
{
    const json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

    if (!token)
        return true;
    if (!json_is_string(token) && !json_is_integer(token))
        return false;
    char *text = json_dumps(token, JSON_ENCODE_ANY | JSON_COMPACT);
    bool fits = text && strlen(text) < sizeof call->token;
    if (fits)
        memcpy(call->token, text, strlen(text) + 1);
    free(text);
    return fits;
}

static void call_begin(struct mcp *m, const struct mcp_to *to, const struct mcp_tool *tool,
                       json_t *params)
{
    json_t *args = json_object_get(params, "arguments");
    struct amp_error err = {0};
    struct mcp_call *call = mcp_call_new(m, to, &err);

    if (!call) {
        failure_send(m, to, tool->name, &err);
        return;
    }
    call->tool = tool;
    call->args = args ? json_incref(args) : json_object();
    if (!token_read(call, params)) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL,
                  "progressToken is neither a short text nor an integer");
        mcp_call_free(m, call);
        return;
    }
    enum mcp_step how =
        mcp_schema_check(tool->in, call->args, &err) < 0 ? MCP_FAILED : tool->start(call, &err);
    if (how == MCP_WAITS)
        mcp_progress(call);
    else
        mcp_call_end(call, how, &err);
}

void mcp_tools_call(struct mcp *m, const struct mcp_to *to, json_t *params)
{
    const char *name = amp_json_str(params, "name");
    const json_t *args = json_object_get(params, "arguments");
    const struct mcp_tool *tool = tool_find(m, name);
    struct amp_error err;

    if (!tool) {
        bool elsewhere = false;
        for (const struct mcp_tool *t = tools; t->name; t++)
            elsewhere |= strcmp(t->name, name) == 0;
        if (!elsewhere) {
            mcp_error(m, to, AMP_RPC_PARAMS, NULL, "unknown tool \"%.100s\"", name);
            return;
        }
        amp_fail(&err, AMP_NOPERM, permission_denied,
                 "%s is not possible inside of an attempt: it needs the state directory; use "
                 "reply, progress or ask_human",
                 name);
        failure_send(m, to, name, &err);
        return;
    }
    if (args && !json_is_object(args)) {
        mcp_error(m, to, AMP_RPC_PARAMS, NULL, "arguments is not an object");
        return;
    }
    if (!rate_allows(m)) {
        amp_fail(&err, AMP_TEMPFAIL, rate_limited, "more than %d calls a second", MCP_RATE);
        failure_send(m, to, name, &err);
        return;
    }
    call_begin(m, to, tool, params);
}
