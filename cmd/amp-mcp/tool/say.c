/* send, reply and progress with a state directory: composed in the protocol of the message that
 * they answer, recorded, and given to their recipients. */
#include <string.h>

#include <amp/base/clock.h>

#include "../mcp.h"
#include "flow/outbox.h"
#include "flow/reply/reply.h"
#include "hitl/record.h"
#include "message/record/sequence.h"
#include "protocol/compose/json.h"
#include "protocol/compose/say.h"
#include "worktree/git/git.h"

/* ---- send ---- */

static int line_check(struct mcp *m, struct amp_span line, struct amp_error *err)
{
    const struct amp_check_options opt = {0};
    struct amp_view v;
    struct amp_error why = {0};
    struct amp_reader *reader = amp_reader_new(NULL, err);

    (void)m;
    if (!reader)
        return -1;
    int rc = amp_reader_line(reader, line, &opt, &v, NULL, &why, err);
    if (rc == 0) {
        *err = why;
        err->status = AMP_NO;
    }
    amp_reader_free(reader);
    return rc > 0 ? 0 : -1;
}

enum mcp_step mcp_send(struct mcp_call *call, struct amp_error *err)
{
    struct mcp *m = call->m;
    AMP_BUF struct amp_buf line = {0};
    char id[AMP_UUID_MAX];
    struct amp_say say = {
        .from = m->agent,
        .node = m->box,
        .to = amp_json_str(call->args, "to"),
        .subject = amp_json_str(call->args, "subject"),
        .text = amp_json_str(call->args, "text"),
        .expects_reply = json_is_true(json_object_get(call->args, "expects_reply")),
        .now_ms = amp_now_ms(),
    };

    amp_buf_init(&line, MCP_TEXT_MAX);
    if (strcmp(say.to, m->agent) == 0) {
        amp_fail(err, AMP_NO, "bad_recipient", "an agent does not send to itself");
        return MCP_FAILED;
    }
    if (mcp_store(m, err) < 0 ||
        amp_sequence_next(m->store, amp_span_str(m->box), 1, m->box, &say.sequence, err) < 0 ||
        amp_say_line(&say, &line, id, err) < 0 || line_check(m, amp_buf_span(&line), err) < 0 ||
        amp_store_sync(m->store, err) < 0 || mcp_emit(m, amp_buf_span(&line), err) < 0)
        return MCP_FAILED;
    call->result = json_pack("{s:s, s:s, s:b}", "id", id, "to", say.to, "delivered", 1);
    snprintf(call->text, sizeof call->text, "Message %s was delivered to %s.", id, say.to);
    return call->result ? MCP_DONE : MCP_FAILED;
}

/* ---- reply, progress ---- */

struct git_of {
    struct mcp *m;
    struct amp_git *git;
};

static struct amp_git *git_open(void *ctx, struct amp_error *err)
{
    struct git_of *g = ctx;

    if (!g->git && amp_git_open(NULL, &g->git, err) < 0)
        g->git = NULL;
    return g->git;
}

/* A message that asks a person is not an agent's to answer, whatever inbox it is in. */
static int question_refuse(struct mcp *m, const char *id, struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_question_rec rec;
    char key[AMP_QUESTION_KEY_MAX];
    int found = 0;

    amp_buf_init(&mem, AMP_QUESTION_BYTES);
    for (int p = AMP_PROTO_NONE + 1; !found && p < AMP_PROTO_COUNT; p++) {
        amp_question_key((enum amp_protocol)p, amp_span_str(id), key);
        found = amp_question_find(m->store, amp_span_str(key), &mem, &rec, err);
    }
    if (found < 0)
        return -1;
    return found ? amp_fail(err, AMP_NOPERM, "permission_denied",
                            "%.100s is a question for a person; an agent does not answer it", id)
                 : 0;
}

static enum mcp_step answer_give(struct mcp_call *call, enum amp_reply_act act,
                                 struct amp_error *err)
{
    struct mcp *m = call->m;
    struct git_of git = {.m = m};
    struct amp_reply_result out = {.how = AMP_REPLY_COMPOSED};
    const json_t *percent = json_object_get(call->args, "percent");
    char id[AMP_MSG_ID_MAX];
    struct amp_reply r = {
        .act = act,
        .id = id,
        .by = m->agent,
        .box = m->box,
        .text = amp_json_str(call->args, "text"),
        .data = json_object_get(call->args, "data"),
        .has_percent = percent != NULL,
        .percent = json_number_value(percent),
        .retryable = json_is_true(json_object_get(call->args, "retryable")),
        .code = json_string_value(json_object_get(call->args, "code")),
        .now_ms = amp_now_ms(),
        .git = git_open,
        .git_ctx = &git,
    };

    if (mcp_store(m, err) < 0 ||
        amp_reply_find(m->store, amp_json_str(call->args, "id"), id, err) < 0 ||
        question_refuse(m, id, err) < 0)
        return MCP_FAILED;
    mcp_inbox_seen(m, id);
    AMP_CLOSE int lock = -1;
    if (amp_outbox_lock(m->store, m->box, m->lock_timeout_ms, &lock, err) < 0)
        return MCP_FAILED;
    amp_buf_init(&out.line, AMP_REPLY_LINE_MAX);
    int rc = amp_reply(m->store, &r, &out, err);
    if (git.git)
        amp_git_close(git.git);
    if (rc == 0)
        rc = mcp_emit_outbox(m, err);
    amp_buf_release(&out.line);
    if (rc < 0)
        return MCP_FAILED;
    call->result = json_pack("{s:s, s:s}", "answers", out.id, "outcome", amp_reply_act_name(act));
    return call->result ? MCP_DONE : MCP_FAILED;
}

enum mcp_step mcp_reply(struct mcp_call *call, struct amp_error *err)
{
    int act = amp_reply_act_find(amp_span_str(amp_json_str(call->args, "outcome")));

    return answer_give(call, act < 0 ? AMP_REPLY_REPLY : (enum amp_reply_act)act, err);
}

enum mcp_step mcp_progress_say(struct mcp_call *call, struct amp_error *err)
{
    return answer_give(call, AMP_REPLY_PROGRESS, err);
}
