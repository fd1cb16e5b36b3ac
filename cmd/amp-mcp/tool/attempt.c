/*
 * The tools inside of an attempt (amp-agent-contract(7)): the agent has files and a control FIFO,
 * and perhaps no state directory. Its answer is the file AMP_RESULT; who reads it knows whose
 * attempt it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>
#include <amp/schema/schema.h>

#include "../mcp.h"
#include "base/codes.h"
#include "message/protocol/compose/json.h"

#define FILE_MAX ((size_t)8 << 20)
#define QUICK_MS 5000 /* for an answer of the worker that needs no person */

static const char *env_text(const char *name)
{
    const char *text = getenv(name);

    return text ? text : "";
}

/* A JSON file that a variable names; NULL: there is none. */
static json_t *file_json(const char *name)
{
    AMP_BUF struct amp_buf text = {0};

    amp_buf_init(&text, FILE_MAX);
    return *env_text(name) && amp_file_read(AT_FDCWD, env_text(name), FILE_MAX, &text, NULL) == 0
               ? amp_json_load(amp_buf_span(&text), NULL)
               : NULL;
}

/* ---- requests to the worker ---- */

static enum mcp_step ask_free(struct mcp_call *call, enum mcp_step how)
{
    free(call->own);
    call->own = NULL;
    return how;
}

/* A tool's request to the worker; the session goes on until its answer is there. own: its id. */
static enum mcp_step request_start(struct mcp_call *call, json_t *request, struct amp_error *err)
{
    json_auto_t *owned = request;

    call->own = calloc(1, AMP_ASK_ID_MAX);
    if (!owned || !call->own) {
        amp_fail_memory(err);
        return ask_free(call, MCP_FAILED);
    }
    if (mcp_control(call->m, err) < 0 || amp_ask_send(&call->m->ask, owned, call->own, err) < 0)
        return ask_free(call, MCP_FAILED);
    call->until_ms = amp_now_ms() + QUICK_MS;
    call->brief = true;
    snprintf(call->state, sizeof call->state, "waiting for the worker");
    return MCP_WAITS;
}

static enum mcp_step request_look(struct mcp_call *call, json_t **answer, struct amp_error *err)
{
    int rc = amp_ask_answer(&call->m->ask, call->own, answer, err);

    if (rc == 0 && amp_now_ms() < call->until_ms)
        return MCP_WAITS;
    if (rc == 0)
        amp_fail(err, AMP_TEMPFAIL, no_answer, "the worker did not answer within %d s",
                 QUICK_MS / 1000);
    return ask_free(call, rc > 0 ? MCP_DONE : MCP_FAILED);
}

void mcp_attempt_stop(struct mcp_call *call, const char *why)
{
    (void)why;
    ask_free(call, MCP_FAILED);
}

/* A request that the worker answers at once. NULL: failed. */
static json_t *worker_ask(struct mcp *m, json_t *request, struct amp_error *err)
{
    char id[AMP_ASK_ID_MAX];
    json_t *answer = NULL;
    json_auto_t *owned = request;

    if (!owned) {
        amp_fail_memory(err);
        return NULL;
    }
    if (mcp_control(m, err) < 0 || amp_ask_send(&m->ask, owned, id, err) < 0)
        return NULL;
    int rc = amp_ask_wait(&m->ask, id, NULL, amp_now_ms() + QUICK_MS, &amp_stop, &answer, err);
    if (rc == 0)
        amp_fail(err, AMP_TEMPFAIL, no_answer, "the worker did not answer within %d s",
                 QUICK_MS / 1000);
    return rc > 0 ? answer : NULL;
}

enum mcp_step mcp_attempt_progress(struct mcp_call *call, struct amp_error *err)
{
    const json_t *percent = json_object_get(call->args, "percent");
    json_t *request =
        json_pack("{s:s, s:s}", "type", "progress", "detail", amp_json_str(call->args, "text"));

    if (request && percent)
        json_object_set_new(request, "percent",
                            json_integer((json_int_t)json_number_value(percent)));
    if (request)
        amp_json_put(request, "file", amp_json_str(call->args, "file"));
    return request_start(call, request, err);
}

enum mcp_step mcp_attempt_progress_step(struct mcp_call *call, struct amp_error *err)
{
    json_t *got = NULL;
    enum mcp_step how = request_look(call, &got, err);

    json_decref(got);
    if (how == MCP_DONE && !(call->result = json_pack("{s:b}", "recorded", 1)))
        amp_fail_memory(err);
    return how != MCP_DONE || call->result ? how : MCP_FAILED;
}

enum mcp_step mcp_attempt_inbox(struct mcp_call *call, struct amp_error *err)
{
    return request_start(call, json_pack("{s:s}", "type", "inbox"), err);
}

enum mcp_step mcp_attempt_inbox_step(struct mcp_call *call, struct amp_error *err)
{
    json_t *got = NULL;
    enum mcp_step how = request_look(call, &got, err);
    json_auto_t *answer = got;
    json_t *list = json_object_get(answer, "inbox"), *first = json_array_get(list, 0);

    if (how != MCP_DONE)
        return how;
    call->result = json_pack("{s:b, s:b, s:I}", "found", first != NULL, "taken", 0, "waiting",
                             (json_int_t)json_array_size(list));
    if (call->result && first)
        json_object_set(call->result, "messages", list);
    return call->result ? MCP_DONE : MCP_FAILED;
}

/* ---- ask_human ---- */

struct asked {
    char id[AMP_ASK_ID_MAX];
    char wid[AMP_ASK_ID_MAX]; /* of the request that withdraws it; "": not withdrawn */
};

/* After the deadline the question is withdrawn. A person who was quicker counts, so the worker's
 * answer is waited for a short time. */
static enum mcp_step ask_withdraw(struct mcp_call *call, struct amp_error *err)
{
    struct asked *a = call->own;
    struct amp_error why;
    json_t *got = NULL;

    if (!*a->wid) {
        if (amp_ask_withdraw(&call->m->ask, a->id, "no person decided in time", a->wid, &why) < 0)
            return MCP_DONE;
        call->until_ms = amp_now_ms() + QUICK_MS;
        return MCP_WAITS;
    }
    int rc = amp_ask_answer(&call->m->ask, a->wid, &got, &why);
    json_decref(got);
    bool decided = rc < 0 && amp_code_is(why.code, already_decided);
    (void)err;
    return rc == 0 || decided ? MCP_WAITS : MCP_DONE;
}

enum mcp_step mcp_attempt_ask_step(struct mcp_call *call, struct amp_error *err)
{
    struct asked *a = call->own;
    json_t *got = NULL;
    int rc = amp_ask_answer(&call->m->ask, a->id, &got, err);
    json_auto_t *answer = got;

    if (rc < 0)
        return ask_free(call, MCP_FAILED);
    const char *question = answer ? amp_json_str(answer, "escalation") : "";
    if (*question)
        snprintf(call->state, sizeof call->state, "waiting for a person: question %s", question);
    if (answer && *amp_json_str(answer, "decision")) {
        call->result =
            json_pack("{s:b, s:s, s:s, s:s}", "answered", 1, "question", question, "decision",
                      amp_json_str(answer, "decision"), "note", amp_json_str(answer, "note"));
        return ask_free(call, call->result ? MCP_DONE : MCP_FAILED);
    }
    bool late = amp_now_ms() >= call->until_ms;
    if (!late && !*a->wid)
        return MCP_WAITS;
    if ((!late || !*a->wid) && ask_withdraw(call, err) == MCP_WAITS)
        return MCP_WAITS;
    call->result = mcp_unanswered(question, "no person decided in time");
    snprintf(call->text, sizeof call->text,
             "No person answered in time. This is not an approval: do not do what you asked about. "
             "The question was withdrawn.");
    return ask_free(call, call->result ? MCP_DONE : MCP_FAILED);
}

enum mcp_step mcp_attempt_ask(struct mcp_call *call, struct amp_error *err)
{
    struct mcp *m = call->m;
    const json_t *limit = json_object_get(call->args, "timeout_seconds");
    const char *question = amp_json_str(call->args, "question"),
               *details = amp_json_str(call->args, "details");
    json_t *choices = json_object_get(call->args, "choices");
    char text[4096 + 8];

    call->until_ms = amp_now_ms() + (limit ? json_integer_value(limit) : MCP_ASK_SECONDS) * 1000;
    int n = snprintf(text, sizeof text, "%s%s%s", question, *details ? "\n" : "", details);
    if (n > 4096) {
        amp_fail(err, AMP_DATAERR, line_too_long,
                 "question and details have %d bytes together (limit: 4096)", n);
        return MCP_FAILED;
    }
    json_auto_t *request = json_pack("{s:s, s:s}", "type", "question", "text", text);
    struct asked *a = calloc(1, sizeof *a);
    call->own = a;
    if (!request || (choices && json_object_set(request, "suggestions", choices) < 0) || !a) {
        amp_fail_memory(err);
        return ask_free(call, MCP_FAILED);
    }
    if (mcp_control(m, err) < 0 || amp_ask_send(&m->ask, request, a->id, err) < 0)
        return ask_free(call, MCP_FAILED);
    snprintf(call->state, sizeof call->state, "waiting for a person");
    return mcp_attempt_ask_step(call, err);
}

/* The worker's answer to the withdrawal is not waited for: nobody wants to know it. */
void mcp_attempt_ask_stop(struct mcp_call *call, const char *why)
{
    struct asked *a = call->own;
    struct amp_error err;

    if (a && !*a->wid && amp_ask_withdraw(&call->m->ask, a->id, why, a->wid, &err) < 0)
        amp_complain(&err);
    ask_free(call, MCP_FAILED);
}

/* ---- the answer ---- */

/* Writes AMP_RESULT if it is valid by its schema. */
static enum mcp_step result_write(struct mcp_call *call, const json_t *answer, const char *schema,
                                  struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    struct amp_error why;
    const char *path = env_text("AMP_RESULT");

    amp_buf_init(&text, FILE_MAX);
    if (!*path) {
        amp_fail(err, AMP_UNAVAILABLE, no_worker, "AMP_RESULT is not set");
        return MCP_FAILED;
    }
    if (amp_json_dump(answer, &text, err) < 0)
        return MCP_FAILED;
    if (amp_schema_check_text(schema, amp_buf_span(&text), &why) < 0) {
        amp_fail_again(err, AMP_DATAERR, "the answer", &why);
        return MCP_FAILED;
    }
    if (amp_buf_str(&text, "\n", err) < 0 ||
        amp_file_write_atomic(AT_FDCWD, path, 0600, amp_buf_span(&text), err) < 0)
        return MCP_FAILED;
    call->result = json_pack("{s:b}", "written", 1);
    snprintf(
        call->text, sizeof call->text,
        "The answer is written. It is read when your process ends; another reply replaces it.");
    return call->result ? MCP_DONE : MCP_FAILED;
}

/* Copies the members that the arguments have. */
static int members_copy(json_t *to, const json_t *from, const char *const *names)
{
    for (; *names; names++) {
        json_t *value = json_object_get(from, *names);
        if (value && json_object_set(to, *names, value) < 0)
            return -1;
    }
    return 0;
}

enum mcp_step mcp_attempt_result(struct mcp_call *call, struct amp_error *err)
{
    static const char *const same[] = {"blockers", "commit_message", NULL};
    json_t *met = json_object_get(call->args, "criteria_met"),
           *notes = json_object_get(call->args, "notes");
    json_auto_t *answer =
        json_pack("{s:s}", "completion_status", amp_json_str(call->args, "outcome"));
    json_auto_t *assessed = json_object();

    if (!answer || !assessed || members_copy(answer, call->args, same) < 0 ||
        (met && json_object_set(assessed, "criteria_met", met) < 0) ||
        (notes && json_object_set(assessed, "notes", notes) < 0) ||
        ((met || notes) && json_object_set(answer, "self_assessment", assessed) < 0)) {
        amp_fail_memory(err);
        return MCP_FAILED;
    }
    return result_write(call, answer, "agent/result.json", err);
}

enum mcp_step mcp_attempt_verdict(struct mcp_call *call, struct amp_error *err)
{
    static const char *const same[] = {"decision", "confidence",   "criteria_results",
                                       "issues",   "direct_fixes", "architecture_notes",
                                       NULL};
    json_auto_t *answer = json_object();

    if (!answer || members_copy(answer, call->args, same) < 0) {
        amp_fail_memory(err);
        return MCP_FAILED;
    }
    return result_write(call, answer, "agent/verdict.json", err);
}

/* ---- the task ---- */

json_t *mcp_attempt_verdict_read(struct mcp *m, struct amp_error *err)
{
    json_auto_t *message = file_json("AMP_MESSAGE"), *answer = NULL;
    json_t *constraints = json_object_get(json_object_get(message, "payload"), "tech_constraints"),
           *review = json_object_get(constraints, "review");

    if (review)
        return json_incref(review);
    answer = worker_ask(m, json_pack("{s:s}", "type", "task"), err);
    if (!answer)
        return NULL;
    json_t *task = json_object_get(answer, "task"), *issues = json_object_get(task, "issues"),
           *parts = json_object_get(task, "parts"), *part;
    size_t i;
    json_array_foreach (parts, i, part)
        if (*amp_json_str(part, "verdict") &&
            strcmp(amp_json_str(part, "id"), env_text("AMP_SUBTASK_ID")) == 0)
            return json_pack("{s:s, s:s, s:O}", "verdict_ref", amp_json_str(part, "verdict_ref"),
                             "decision", amp_json_str(part, "verdict"), "issues",
                             issues ? issues : json_null());
    amp_fail(err, AMP_NO, no_verdict, "there is no verdict about this subtask yet");
    return NULL;
}

static void env_put(json_t *o, const char *name, const char *variable)
{
    amp_json_put(o, name, env_text(variable));
}

/* The dispatch: the executor's message, or in the reviewer's context. */
static json_t *dispatch_read(void)
{
    json_auto_t *message = file_json("AMP_MESSAGE"), *context = file_json("AMP_CONTEXT");
    json_t *of = json_object_get(context, "dispatch");

    return json_incref(json_object_get(of ? of : message, "payload"));
}

static void subtask_put(json_t *o, const json_t *dispatch)
{
    const json_t *list = json_object_get(dispatch, "subtasks"), *s;
    size_t i;

    json_array_foreach (list, i, s)
        if (strcmp(amp_json_str(s, "subtask_id"), env_text("AMP_SUBTASK_ID")) == 0)
            amp_json_put(o, "subtask", amp_json_str(s, "description"));
}

static void review_put(json_t *o, const json_t *dispatch)
{
    json_t *constraints = json_object_get(dispatch, "tech_constraints"),
           *review = json_object_get(constraints, "review"),
           *blockers = json_object_get(constraints, "blockers");
    json_auto_t *notes = json_array();

    amp_json_put(o, "verdict", amp_json_str(review, "decision"));
    if (json_object_get(review, "issues"))
        json_object_set(o, "issues", json_object_get(review, "issues"));
    if (json_object_get(review, "reject_count"))
        json_object_set(o, "rejections", json_object_get(review, "reject_count"));
    if (blockers)
        json_object_set(o, "blockers", blockers);
    if (*amp_json_str(constraints, "note"))
        json_array_append_new(notes, json_string(amp_json_str(constraints, "note")));
    if (json_array_size(notes))
        json_object_set(o, "notes", notes);
}

json_t *mcp_attempt_task_read(struct mcp *m, struct amp_error *err)
{
    json_auto_t *dispatch = dispatch_read(), *criteria = file_json("AMP_CRITERIA");
    json_t *o = json_object();
    int64_t attempt;

    if (!o) {
        amp_fail_memory(err);
        return NULL;
    }
    amp_json_put(o, "agent", m->agent);
    amp_json_put(o, "role", m->role);
    env_put(o, "task_id", "AMP_TASK_ID");
    env_put(o, "subtask_id", "AMP_SUBTASK_ID");
    env_put(o, "worktree", "AMP_WORKTREE");
    env_put(o, "branch", "AMP_BRANCH");
    env_put(o, "base", "AMP_BASE");
    if (amp_num_parse(amp_span_str(env_text("AMP_ATTEMPT")), 1, INT32_MAX, &attempt, NULL) == 0)
        json_object_set_new(o, "attempt", json_integer(attempt));
    amp_json_put(o, "description", amp_json_str(dispatch, "description"));
    if (criteria)
        json_object_set(o, "criteria", criteria);
    if (json_object_get(dispatch, "forbidden_actions"))
        json_object_set(o, "forbidden", json_object_get(dispatch, "forbidden_actions"));
    subtask_put(o, dispatch);
    review_put(o, dispatch);
    return o;
}

enum mcp_step mcp_attempt_task(struct mcp_call *call, struct amp_error *err)
{
    call->result = mcp_attempt_task_read(call->m, err);
    return call->result ? MCP_DONE : MCP_FAILED;
}
