/* Says a decision about a tool call in the form of each coding agent. */
#include <string.h>

#include <amp/json/writer.h>

#include "work/git/call/event/event.h"

/* The forms in which a CLI reads a reply. */
enum form {
    FORM_SPECIFIC, /* hookSpecificOutput with permissionDecision, updatedInput */
    FORM_DENY,     /* the same, but silence allows and "ask" is an error */
    FORM_DECISION, /* decision and reason; hookSpecificOutput.tool_input */
    FORM_FLAT,     /* permissionDecision, permissionDecisionReason, modifiedArgs */
    FORM_BOTH,     /* FORM_SPECIFIC and FORM_FLAT */
    FORM_CURSOR,   /* permission, user_message, agent_message, updated_input */
    FORM_OPENCODE, /* decision, reason, args: of our own plugin */
};

static const struct {
    enum form form;
    bool asks, modifies;
    bool only_replies; /* it goes on after every status but 0 */
} rows[AMP_CLI_COUNT] = {
    [AMP_CLI_CLAUDE] = {FORM_SPECIFIC, true, true, false},
    [AMP_CLI_CODEX] = {FORM_DENY, false, true, false},
    [AMP_CLI_GEMINI] = {FORM_DECISION, false, true, false},
    [AMP_CLI_CURSOR] = {FORM_CURSOR, true, true, false},
    [AMP_CLI_COPILOT] = {FORM_FLAT, true, true, true},
    [AMP_CLI_VSCODE] = {FORM_BOTH, true, true, true},
    [AMP_CLI_QWEN] = {FORM_SPECIFIC, true, true, false},
    [AMP_CLI_OPENCODE] = {FORM_OPENCODE, false, true, true},
};

/* Cursor's events about a command, an MCP tool or a file take no other input, its general event
 * does not ask, and that about a file neither. */
static bool is_cursor(const struct amp_call_event *e, const char *event)
{
    return e->cli == AMP_CLI_CURSOR && amp_span_is(e->event, event);
}

bool amp_call_can_ask(const struct amp_call_event *e)
{
    return e->cli != AMP_CLI_NONE && rows[e->cli].asks && !is_cursor(e, "preToolUse") &&
           !is_cursor(e, "beforeReadFile");
}

bool amp_call_can_modify(const struct amp_call_event *e)
{
    return e->cli != AMP_CLI_NONE && rows[e->cli].modifies && e->input.n &&
           (e->cli != AMP_CLI_CURSOR || is_cursor(e, "preToolUse"));
}

int amp_call_failure_status(enum amp_call_cli cli)
{
    return cli != AMP_CLI_NONE && rows[cli].only_replies ? 0 : 2;
}

static const char *const verdicts[] = {"allow", "deny", "ask"};

static void specific_put(struct amp_jw *w, enum amp_call_verdict v, const char *reason,
                         struct amp_span input)
{
    amp_jw_member_open(w, "hookSpecificOutput", '{');
    amp_jw_member_text(w, "hookEventName", "PreToolUse");
    amp_jw_member_text(w, "permissionDecision", verdicts[v]);
    if (*reason)
        amp_jw_member_text(w, "permissionDecisionReason", reason);
    if (input.n)
        amp_jw_member_raw(w, "updatedInput", input);
    amp_jw_close(w, '}');
}

static void flat_put(struct amp_jw *w, enum amp_call_verdict v, const char *reason,
                     struct amp_span input)
{
    amp_jw_member_text(w, "permissionDecision", verdicts[v]);
    if (*reason)
        amp_jw_member_text(w, "permissionDecisionReason", reason);
    if (input.n)
        amp_jw_member_raw(w, "modifiedArgs", input);
}

static void decision_put(struct amp_jw *w, enum amp_call_verdict v, const char *reason,
                         struct amp_span input)
{
    amp_jw_member_text(w, "decision", verdicts[v]);
    if (v == AMP_CALL_DENY)
        amp_jw_member_text(w, "reason", reason);
    if (!input.n)
        return;
    amp_jw_member_open(w, "hookSpecificOutput", '{');
    amp_jw_member_text(w, "hookEventName", "BeforeTool");
    amp_jw_member_raw(w, "tool_input", input);
    amp_jw_close(w, '}');
}

static void cursor_put(struct amp_jw *w, enum amp_call_verdict v, const char *reason,
                       struct amp_span input)
{
    amp_jw_member_text(w, "permission", verdicts[v]);
    if (v != AMP_CALL_ALLOW) {
        amp_jw_member_text(w, "user_message", reason);
        amp_jw_member_text(w, "agent_message", reason);
    }
    if (input.n)
        amp_jw_member_raw(w, "updated_input", input);
}

int amp_call_reply(const struct amp_call_event *e, enum amp_call_verdict v, const char *reason,
                   struct amp_span input, struct amp_buf *out, struct amp_error *err)
{
    struct amp_jw w;
    enum form form = e->cli == AMP_CLI_NONE ? FORM_BOTH : rows[e->cli].form;
    if ((v == AMP_CALL_ASK && !amp_call_can_ask(e)) || (input.n && !amp_call_can_modify(e)))
        v = AMP_CALL_DENY;
    if (v != AMP_CALL_ALLOW)
        input = (struct amp_span){0};
    if (form == FORM_DENY && v == AMP_CALL_ALLOW && !input.n)
        return 0;
    amp_jw_init(&w, out);
    amp_jw_open(&w, '{');
    switch (form) {
    case FORM_FLAT:
        flat_put(&w, v, reason, input);
        break;
    case FORM_BOTH:
        flat_put(&w, v, reason, input);
        specific_put(&w, v, reason, input);
        break;
    case FORM_DECISION:
        decision_put(&w, v, reason, input);
        break;
    case FORM_CURSOR:
        cursor_put(&w, v, reason, input);
        break;
    case FORM_OPENCODE:
        amp_jw_member_text(&w, "decision", verdicts[v]);
        amp_jw_member_text(&w, "reason", reason);
        if (input.n)
            amp_jw_member_raw(&w, "args", input);
        break;
    default:
        specific_put(&w, v, reason, input);
    }
    amp_jw_close(&w, '}');
    return amp_jw_end_line(&w, err);
}
