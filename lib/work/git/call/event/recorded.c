/* Finds the tool calls in a line of what a coding agent records. */
#include "work/git/call/event/recorded.h"

#include <stdio.h>
#include <string.h>

#include <amp/json/writer.h>

#include "base/process/quote.h"

enum form {
    FORM_INPUT, /* the input of the tool, or a string that has it */
    FORM_PATCH, /* a string, which the hook gets as the command */
    FORM_LINE,  /* the command line of a shell that runs a command line */
    FORM_FILES, /* a list of objects with a path */
};

/* The shape tells where a line has calls. The type of the line is `type`; its calls are the
 * elements of `list`, or the line is one. An element is a call of this form if the member `mark` is
 * there and, unless `value` is NULL, has this value. */
static const struct shape {
    enum amp_call_cli cli;
    const char *type, *list, *mark, *value;
    const char *server, *name; /* pointers, or NULL */
    const char *tool;          /* the name, if no member has it */
    const char *input;
    enum form form;
} shapes[] = {
    {AMP_CLI_CLAUDE, "assistant", "/message/content", "/type", "tool_use", NULL, "/name", NULL,
     "/input", FORM_INPUT},
    {AMP_CLI_QWEN, "assistant", "/message/parts", "/functionCall", NULL, NULL, "/functionCall/name",
     NULL, "/functionCall/args", FORM_INPUT},
    {AMP_CLI_GEMINI, "gemini", "/toolCalls", "/name", NULL, NULL, "/name", NULL, "/args",
     FORM_INPUT},
    {AMP_CLI_OPENCODE, "tool_use", "", "/part", NULL, NULL, "/part/tool", NULL, "/part/state/input",
     FORM_INPUT},
    {AMP_CLI_GEMINI, "tool_use", "", "/type", NULL, NULL, "/tool_name", NULL, "/parameters",
     FORM_INPUT},
    {AMP_CLI_CODEX, "response_item", "", "/payload/type", "function_call", "/payload/namespace",
     "/payload/name", NULL, "/payload/arguments", FORM_INPUT},
    {AMP_CLI_CODEX, "response_item", "", "/payload/type", "custom_tool_call", NULL, "/payload/name",
     NULL, "/payload/input", FORM_PATCH},
    {AMP_CLI_CODEX, "response_item", "", "/payload/type", "local_shell_call", NULL, NULL, "Bash",
     "/payload/action", FORM_INPUT},
    {AMP_CLI_CODEX, "item.completed", "", "/item/type", "command_execution", NULL, NULL, "Bash",
     "/item/command", FORM_LINE},
    {AMP_CLI_CODEX, "item.completed", "", "/item/type", "file_change", NULL, NULL, "apply_patch",
     "/item/changes", FORM_FILES},
    {AMP_CLI_CODEX, "item.completed", "", "/item/type", "mcp_tool_call", "/item/server",
     "/item/tool", NULL, "/item/arguments", FORM_INPUT},
};

void amp_recording_init(struct amp_recording *r, enum amp_call_cli cli)
{
    *r = (struct amp_recording){.cli = cli, .stream = AMP_CLI_CLAUDE};
    amp_tape_init(&r->tape, NULL);
    amp_buf_init(&r->event, 2 * (size_t)AMP_CALL_INPUT_MAX);
    amp_buf_init(&r->text, 2 * (size_t)AMP_CALL_INPUT_MAX);
}

void amp_recording_release(struct amp_recording *r)
{
    amp_tape_release(&r->tape);
    amp_buf_release(&r->event);
    amp_buf_release(&r->text);
}

/* ---- members ---- */

static uint32_t member_of(const struct amp_recording *r, uint32_t object, const char *pointer)
{
    return amp_tape_pointer(&r->tape, object, amp_span_str(pointer));
}

static bool is_text(const struct amp_recording *r, uint32_t tok)
{
    return tok != AMP_TOK_NONE && r->tape.tok[tok].type == AMP_JSON_STRING;
}

/* Copies a text; false: the member is none, or it does not fit. */
static bool text_copy(const struct amp_recording *r, uint32_t tok, char *out, size_t size)
{
    AMP_BUF struct amp_buf mem = {0};
    struct amp_span text;
    amp_buf_init(&mem, AMP_CALL_INPUT_MAX);
    return is_text(r, tok) && amp_tok_text(&r->tape, tok, &mem, &text, NULL) == 0 && text.n &&
           amp_span_copy(text, out, size);
}

/* ---- a call ---- */

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(*list, word) == 0)
            return true;
    return false;
}

/* The name that the hook gets: Codex calls all its shells Bash, and names tools of MCP with their
 * server. */
static bool name_find(const struct amp_recording *r, const struct shape *s, uint32_t call,
                      char *out, size_t size)
{
    static const char *const shells[] = {"exec_command", "shell", "shell_command", "local_shell",
                                         NULL};
    char server[256] = "", name[256];
    if (s->tool) {
        snprintf(out, size, "%s", s->tool);
        return true;
    }
    if (!text_copy(r, member_of(r, call, s->name), name, sizeof name))
        return false;
    if (s->server)
        text_copy(r, member_of(r, call, s->server), server, sizeof server);
    if (*server && strcmp(server, "codex") != 0)
        snprintf(out, size, "%s%s__%s", strncmp(server, "mcp__", 5) == 0 ? "" : "mcp__", server,
                 name);
    else
        snprintf(out, size, "%s",
                 s->cli == AMP_CLI_CODEX && is_one_of(name, shells) ? "Bash" : name);
    return true;
}

/* Writes the words of a line, or the line, if it has other than words. */
static int line_put(struct amp_recording *r, uint32_t tok, struct amp_jw *w, struct amp_error *err)
{
    struct amp_shell_split split = {0};
    struct amp_error why;
    struct amp_span line;
    amp_buf_reset(&r->text);
    if (amp_tok_text(&r->tape, tok, &r->text, &line, err) < 0)
        return -1;
    if (amp_shell_split(line, &split, &why) < 0) {
        amp_jw_member_str(w, "command", line);
        return 0;
    }
    amp_jw_member_open(w, "command", '[');
    for (size_t i = 0; i < split.n; i++)
        amp_jw_str(w, amp_span_str(split.v[i]));
    amp_jw_close(w, ']');
    amp_shell_split_release(&split);
    return 0;
}

static void files_put(const struct amp_recording *r, uint32_t list, struct amp_jw *w)
{
    uint32_t v = list + 1;
    amp_jw_member_open(w, "files", '[');
    for (uint32_t i = 0; i < r->tape.tok[list].count; i++, v = r->tape.tok[v].next) {
        uint32_t path = member_of(r, v, "/path");
        if (is_text(r, path))
            amp_jw_raw(w, amp_tok_source(&r->tape, path));
    }
    amp_jw_close(w, ']');
}

/* Appends the tool's input to the event. 1: it is not of the form. */
static int input_put(struct amp_recording *r, const struct shape *s, uint32_t input,
                     struct amp_jw *w, struct amp_error *err)
{
    static const enum amp_json_type types[] = {[FORM_INPUT] = AMP_JSON_OBJECT,
                                               [FORM_PATCH] = AMP_JSON_STRING,
                                               [FORM_LINE] = AMP_JSON_STRING,
                                               [FORM_FILES] = AMP_JSON_ARRAY};
    if (input == AMP_TOK_NONE || (r->tape.tok[input].type != types[s->form] &&
                                  (s->form != FORM_INPUT || !is_text(r, input))))
        return 1;
    if (s->form == FORM_INPUT) {
        amp_jw_raw(w, amp_tok_source(&r->tape, input));
        return 0;
    }
    amp_jw_open(w, '{');
    if (s->form == FORM_PATCH)
        amp_jw_member_raw(w, "command", amp_tok_source(&r->tape, input));
    else if (s->form == FORM_FILES)
        files_put(r, input, w);
    else if (line_put(r, input, w, err) < 0)
        return -1;
    amp_jw_close(w, '}');
    return 0;
}

static enum amp_recording_line call_take(struct amp_recording *r, const struct shape *s,
                                         uint32_t call, amp_recording_fn fn, void *ctx,
                                         struct amp_error *err)
{
    enum amp_call_cli cli = r->cli != AMP_CLI_NONE     ? r->cli
                            : s->cli == AMP_CLI_CLAUDE ? r->stream
                                                       : s->cli;
    char name[768];
    struct amp_jw w;
    if (!name_find(r, s, call, name, sizeof name))
        return AMP_RECORDING_UNKNOWN;
    /* Input that Codex types into a running program passes no hook. */
    if (s->cli == AMP_CLI_CODEX && strcmp(name, "write_stdin") == 0)
        return AMP_RECORDING_OTHER;
    amp_buf_reset(&r->event);
    amp_jw_init(&w, &r->event);
    amp_call_event_begin(cli, name, r->cwd, &w);
    int rc = input_put(r, s, member_of(r, call, s->input), &w, err);
    if (rc)
        return rc < 0 ? AMP_RECORDING_FAILED : AMP_RECORDING_UNKNOWN;
    amp_jw_close(&w, '}');
    if (amp_jw_end(&w, err) < 0 || fn(ctx, amp_buf_span(&r->event), cli, err) < 0)
        return AMP_RECORDING_FAILED;
    return AMP_RECORDING_CALLS;
}

/* ---- a line ---- */

static bool is_marked(const struct amp_recording *r, const struct shape *s, uint32_t call)
{
    uint32_t v = member_of(r, call, s->mark);
    return v != AMP_TOK_NONE &&
           (!s->value || (is_text(r, v) && amp_tok_is(&r->tape, v, amp_span_str(s->value))));
}

/* The number of the first call of the list that was not taken yet. */
static size_t calls_begin(struct amp_recording *r, uint32_t object)
{
    char id[sizeof r->message];
    if (!text_copy(r, member_of(r, object, "/id"), id, sizeof id))
        return 0;
    if (strcmp(id, r->message) != 0) {
        memcpy(r->message, id, sizeof id);
        r->n_taken = 0;
    }
    return r->n_taken;
}

static enum amp_recording_line list_take(struct amp_recording *r, const struct shape *s,
                                         uint32_t object, uint32_t list, amp_recording_fn fn,
                                         void *ctx, struct amp_error *err)
{
    enum amp_recording_line is = AMP_RECORDING_OTHER;
    uint32_t v = list + 1, n = r->tape.tok[list].count;
    size_t from = calls_begin(r, object);
    for (uint32_t i = 0; i < n; i++, v = r->tape.tok[v].next) {
        if (i < from || !is_marked(r, s, v))
            continue;
        enum amp_recording_line one = call_take(r, s, v, fn, ctx, err);
        if (one == AMP_RECORDING_FAILED)
            return one;
        is = one > is ? one : is;
    }
    r->n_taken = n;
    return is;
}

static enum amp_recording_line shapes_take(struct amp_recording *r, uint32_t object, uint32_t type,
                                           amp_recording_fn fn, void *ctx, struct amp_error *err)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape *s = &shapes[i];
        if (!amp_tok_is(&r->tape, type, amp_span_str(s->type)))
            continue;
        uint32_t list = member_of(r, object, s->list);
        if (*s->list && list != AMP_TOK_NONE && r->tape.tok[list].type == AMP_JSON_ARRAY)
            return list_take(r, s, object, list, fn, ctx, err);
        if (!*s->list && is_marked(r, s, object))
            return call_take(r, s, object, fn, ctx, err);
    }
    return AMP_RECORDING_OTHER;
}

static enum amp_recording_line object_take(struct amp_recording *r, uint32_t object,
                                           amp_recording_fn fn, void *ctx, struct amp_error *err)
{
    /* Members of lines that have no type. */
    static const char *const marks[] = {"/hook_event_name", "/hookEventName", "/$set",
                                        "/projectHash"};
    struct amp_span source = amp_tok_source(&r->tape, object);
    if (r->tape.tok[object].type != AMP_JSON_OBJECT)
        return AMP_RECORDING_UNKNOWN;
    if (amp_call_event_is(&r->tape, object))
        return fn(ctx, source, r->cli, err) < 0 ? AMP_RECORDING_FAILED : AMP_RECORDING_CALLS;
    if (!text_copy(r, member_of(r, object, "/payload/cwd"), r->cwd, sizeof r->cwd))
        text_copy(r, member_of(r, object, "/cwd"), r->cwd, sizeof r->cwd);
    if (member_of(r, object, "/qwen_code_version") != AMP_TOK_NONE)
        r->stream = AMP_CLI_QWEN;
    uint32_t type = member_of(r, object, "/type");
    if (is_text(r, type))
        return shapes_take(r, object, type, fn, ctx, err);
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (member_of(r, object, marks[i]) != AMP_TOK_NONE)
            return AMP_RECORDING_OTHER;
    /* A call alone. */
    static const struct shape alone = {AMP_CLI_NONE, NULL,         "",   NULL,          NULL,
                                       NULL,         "/tool_name", NULL, "/tool_input", FORM_INPUT};
    return call_take(r, &alone, object, fn, ctx, err);
}

enum amp_recording_line amp_recording_line(struct amp_recording *r, struct amp_span line,
                                           amp_recording_fn fn, void *ctx, struct amp_error *err)
{
    struct amp_json_fault fault;
    enum amp_recording_line is = AMP_RECORDING_OTHER;
    if (amp_tape_scan(&r->tape, line.p ? line.p : "", line.n, &fault) < 0) {
        if (!amp_json_fault_is_memory(&fault))
            return AMP_RECORDING_UNKNOWN;
        amp_fail_memory(err);
        return AMP_RECORDING_FAILED;
    }
    if (r->tape.tok[0].type != AMP_JSON_ARRAY)
        return object_take(r, 0, fn, ctx, err);
    uint32_t v = 1, n = r->tape.tok[0].count;
    for (uint32_t i = 0; i < n; i++, v = r->tape.tok[v].next) {
        enum amp_recording_line one = object_take(r, v, fn, ctx, err);
        if (one == AMP_RECORDING_FAILED)
            return one;
        is = one > is ? one : is;
    }
    return is;
}
