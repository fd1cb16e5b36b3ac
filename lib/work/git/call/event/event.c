/* Reads the events of the hooks of coding agents. */
#include "work/git/call/event/event.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/codes.h"
#include "base/words.h"

/* One row per CLI. An event belongs to the first row whose event name fits and whose mark is a
 * member. The row without a CLI is for callers that need only the command and the files. */
struct cli_row {
    const char *events[6]; /* of the member `event` */
    bool unnamed;          /* the event may have no such member */
    const char *mark;      /* a member that events of the same name of other CLIs do not have */
    const char *without;   /* a member that they have */
    const char *event[3], *tool[4], *input[5], *session[4], *call[4];
};

static const struct cli_row rows[AMP_CLI_COUNT + 1] = {
    [AMP_CLI_CLAUDE] = {.events = {"PreToolUse"},
                        .event = {"hook_event_name"},
                        .tool = {"tool_name"},
                        .input = {"tool_input"},
                        .session = {"session_id"},
                        .call = {"tool_use_id"}},
    [AMP_CLI_CODEX] = {.events = {"PreToolUse"},
                       .mark = "model",
                       .event = {"hook_event_name"},
                       .tool = {"tool_name"},
                       .input = {"tool_input"},
                       .session = {"session_id"},
                       .call = {"tool_use_id"}},
    [AMP_CLI_GEMINI] = {.events = {"BeforeTool"},
                        .event = {"hook_event_name"},
                        .tool = {"tool_name"},
                        .input = {"tool_input"},
                        .session = {"session_id"}},
    [AMP_CLI_CURSOR] = {.events = {"beforeShellExecution", "beforeMCPExecution", "beforeReadFile",
                                   "preToolUse"},
                        .mark = "conversation_id",
                        .event = {"hook_event_name"},
                        .tool = {"tool_name"},
                        .input = {"tool_input"},
                        .session = {"conversation_id"},
                        .call = {"tool_use_id", "generation_id"}},
    [AMP_CLI_COPILOT] = {.events = {"preToolUse"},
                         .unnamed = true,
                         .mark = "toolName",
                         .event = {"hook_event_name"},
                         .tool = {"toolName"},
                         .input = {"toolArgs"},
                         .session = {"sessionId"}},
    /* Also Copilot CLI with the event's name in its other spelling. */
    [AMP_CLI_VSCODE] = {.events = {"PreToolUse"},
                        .mark = "timestamp",
                        .without = "permission_mode",
                        .event = {"hook_event_name", "hookEventName"},
                        .tool = {"tool_name"},
                        .input = {"tool_input"},
                        .session = {"session_id", "sessionId"},
                        .call = {"tool_use_id"}},
    [AMP_CLI_QWEN] = {.events = {"PreToolUse"},
                      .mark = "timestamp",
                      .event = {"hook_event_name"},
                      .tool = {"tool_name"},
                      .input = {"tool_input"},
                      .session = {"session_id"},
                      .call = {"tool_use_id"}},
    [AMP_CLI_OPENCODE] = {.events = {"tool.execute.before"},
                          .event = {"event"},
                          .tool = {"tool"},
                          .input = {"args"},
                          .session = {"sessionID"},
                          .call = {"callID"}},
    [AMP_CLI_COUNT] = {.event = {"hook_event_name", "event"},
                       .tool = {"tool_name", "toolName", "tool"},
                       .input = {"tool_input", "toolInput", "toolArgs", "args"},
                       .session = {"session_id", "sessionId"}},
};
/* The order of recognition: rows with more conditions first. */
static const enum amp_call_cli order[] = {
    AMP_CLI_OPENCODE, AMP_CLI_CURSOR, AMP_CLI_GEMINI, AMP_CLI_COPILOT,
    AMP_CLI_VSCODE,   AMP_CLI_QWEN,   AMP_CLI_CODEX,  AMP_CLI_CLAUDE,
};

AMP_WORDS(cli_names, AMP_CALL_CLI_LIST);

const char *amp_call_cli_name(enum amp_call_cli cli)
{
    return cli == AMP_CLI_NONE ? "" : cli_names[cli];
}

enum amp_call_cli amp_call_cli_find(const char *name)
{
    return (enum amp_call_cli)amp_word_find(cli_names, amp_span_str(name));
}

static const struct cli_row *row_of(enum amp_call_cli cli)
{
    return &rows[cli == AMP_CLI_NONE ? AMP_CLI_COUNT : (int)cli];
}

/* ---- tools ---- */

const char *amp_call_kind_name(enum amp_call_kind kind)
{
    static const char *const names[] = {"command", "read", "write", "search", "other"};
    return names[kind];
}

static const struct {
    enum amp_call_kind kind;
    const char *names[24];
} tools[] = {
    {AMP_CALL_COMMAND,
     {"Bash", "bash", "shell", "Shell", "run_shell_command", "local_shell", "exec_command",
      "runInTerminal", "run_in_terminal", "beforeShellExecution"}},
    {AMP_CALL_COMMAND, {"powershell", "pwsh", "PowerShell"}},
    {AMP_CALL_READ,
     {"Read", "NotebookRead", "read_file", "view", "read", "readFile", "view_image",
      "beforeReadFile"}},
    {AMP_CALL_SEARCH,
     {"Glob", "Grep", "LS", "glob", "grep", "ls", "list", "list_directory", "list_dir",
      "search_file_content", "grep_search", "read_many_files", "file_search", "codebase_search",
      "textSearch", "fileSearch", "listDirectory", "rg"}},
    {AMP_CALL_WRITE,
     {"Write",
      "Edit",
      "MultiEdit",
      "NotebookEdit",
      "write_file",
      "replace",
      "create",
      "edit",
      "write",
      "multiedit",
      "create_file",
      "editFiles",
      "createFile",
      "insert_edit_into_file",
      "replace_string_in_file",
      "edit_file",
      "delete_file",
      "Delete",
      "apply_patch",
      "patch",
      "applyPatch",
      "createDirectory"}},
};

/* AMP_CALL_OTHER: the name is not in the table. */
static enum amp_call_kind kind_of(struct amp_span tool, bool *foreign)
{
    for (size_t i = 0; i < sizeof tools / sizeof *tools; i++)
        for (int k = 0; tools[i].names[k]; k++)
            if (amp_span_is(tool, tools[i].names[k])) {
                *foreign = i == 1;
                return tools[i].kind;
            }
    return AMP_CALL_OTHER;
}

static bool is_patch_tool(struct amp_span tool)
{
    return amp_span_is(tool, "apply_patch") || amp_span_is(tool, "patch") ||
           amp_span_is(tool, "applyPatch");
}

/* ---- members ---- */

static int event_malformed(struct amp_error *err, const char *what)
{
    return amp_fail(err, AMP_DATAERR, call_malformed, "the input of the hook: %s", what);
}

static uint32_t member_of(const struct amp_tape *t, uint32_t object, const char *const *keys,
                          int max)
{
    uint32_t v = AMP_TOK_NONE;
    for (int i = 0; i < max && keys[i] && v == AMP_TOK_NONE; i++)
        v = amp_tape_get(t, object, amp_span_str(keys[i]));
    return v;
}

/* The text of a string; the memory was reserved, so earlier texts do not move. */
static int text_read(struct amp_call_event *e, const struct amp_tape *t, uint32_t tok,
                     struct amp_span *out, struct amp_error *err)
{
    if (t->tok[tok].flags & AMP_TOK_NUL)
        return event_malformed(err, "a NUL character");
    return amp_tok_text(t, tok, &e->mem, out, err);
}

/* A member that must be a string if it is there. */
static int member_text(struct amp_call_event *e, const char *const *keys, int max,
                       struct amp_span *out, struct amp_error *err)
{
    uint32_t v = member_of(&e->tape, 0, keys, max);
    if (v == AMP_TOK_NONE || e->tape.tok[v].type == AMP_JSON_NULL)
        return 0;
    if (e->tape.tok[v].type != AMP_JSON_STRING)
        return event_malformed(err, "a member that must be a string is not one");
    return text_read(e, &e->tape, v, out, err);
}

static int path_add(struct amp_call_event *e, struct amp_span path, struct amp_error *err)
{
    if (!path.n)
        return event_malformed(err, "an empty path");
    if (e->n_paths == AMP_CALL_PATHS)
        return event_malformed(err, "more than 1024 paths");
    if ((e->n_paths & (e->n_paths - 1)) == 0) {
        char **more = realloc(e->paths, (e->n_paths ? 2 * e->n_paths : 1) * sizeof *more);
        if (!more)
            return amp_fail_memory(err);
        e->paths = more;
    }
    e->paths[e->n_paths] = amp_span_dup(path);
    return e->paths[e->n_paths++] ? 0 : amp_fail_memory(err);
}

/* A line of a patch in the form of apply_patch. Agents take blanks away at both ends before they
 * look for a header, and some take other spaces of Unicode away, too. */
static int header_read(struct amp_call_event *e, struct amp_span line, struct amp_error *err)
{
    static const char *const files[] = {
        "*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "};
    static const char *const others[] = {"*** Begin Patch", "*** End Patch", "*** End of File"};
    bool blanks = true;
    while (line.n && ((unsigned char)*line.p <= ' ' || (unsigned char)*line.p >= 0x7f)) {
        blanks &= *line.p && strchr(" \t\r", *line.p);
        line = (struct amp_span){line.p + 1, line.n - 1};
    }
    while (line.n && strchr(" \t\r", line.p[line.n - 1]))
        line.n--;
    if (!amp_span_starts(line, "***"))
        return 0;
    for (size_t i = 0; blanks && i < sizeof files / sizeof *files; i++) {
        size_t n = strlen(files[i]);
        /* Some agents end the path at a second colon. */
        if (amp_span_starts(line, files[i]) && line.n > n && line.p[n] != ' ' &&
            !memchr(line.p + n, ':', line.n - n))
            return path_add(e, (struct amp_span){line.p + n, line.n - n}, err);
    }
    for (size_t i = 0; blanks && i < sizeof others / sizeof *others; i++)
        if (amp_span_is(line, others[i]))
            return 0;
    e->odd_patch = true;
    return 0;
}

/* A line of a unified diff. */
static int diff_read(struct amp_call_event *e, struct amp_span line, struct amp_error *err)
{
    if (line.n <= 6 || (!amp_span_starts(line, "+++ b/") && !amp_span_starts(line, "--- a/")))
        return 0;
    struct amp_span path = {line.p + 6, 0};
    while (path.n < line.n - 6 && !strchr("\t\r", path.p[path.n]))
        path.n++;
    return path.n ? path_add(e, path, err) : 0;
}

static int patch_read(struct amp_call_event *e, struct amp_span text, struct amp_error *err)
{
    while (text.n) {
        const char *lf = memchr(text.p, '\n', text.n);
        struct amp_span line = {text.p, lf ? (size_t)(lf - text.p) : text.n};
        if (header_read(e, line, err) < 0 || diff_read(e, line, err) < 0)
            return -1;
        size_t used = line.n + (lf != NULL);
        text = (struct amp_span){text.p + used, text.n - used};
    }
    return 0;
}

static int words_read(struct amp_call_event *e, const struct amp_tape *t, uint32_t list,
                      struct amp_call_command *c, struct amp_error *err)
{
    size_t n = t->tok[list].count;
    struct amp_span text;
    if (n > AMP_CALL_WORDS)
        return event_malformed(err, "more than 4096 words");
    c->words = calloc(n + 1, sizeof *c->words);
    if (!c->words)
        return amp_fail_memory(err);
    for (uint32_t v = list + 1; v < t->tok[list].next; v = t->tok[v].next) {
        if (t->tok[v].type != AMP_JSON_STRING)
            return event_malformed(err, "a word of the command is not a string");
        if (text_read(e, t, v, &text, err) < 0)
            return -1;
        c->words[c->n] = amp_span_dup(text);
        if (!c->words[c->n++])
            return amp_fail_memory(err);
    }
    return 0;
}

static int commands_read(struct amp_call_event *e, const struct amp_tape *t, uint32_t args,
                         bool foreign, struct amp_error *err)
{
    static const char *const keys[] = {"command", "cmd", "script", "commandLine", "command_line"};
    struct amp_span text;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t v = amp_tape_get(t, args, amp_span_str(keys[i]));
        if (v == AMP_TOK_NONE)
            continue;
        struct amp_call_command *c = &e->commands[e->n_commands];
        c->foreign = foreign;
        if (t->tok[v].type == AMP_JSON_ARRAY) {
            e->n_commands++;
            if (words_read(e, t, v, c, err) < 0)
                return -1;
            if (c->n > 1 && is_patch_tool(amp_span_str(c->words[0])) &&
                patch_read(e, amp_span_str(c->words[1]), err) < 0)
                return -1;
            continue;
        }
        if (t->tok[v].type != AMP_JSON_STRING)
            return event_malformed(err, "the command is neither a string nor an array");
        if (text_read(e, t, v, &text, err) < 0)
            return -1;
        if (is_patch_tool(e->tool)) {
            if (patch_read(e, text, err) < 0)
                return -1;
            continue;
        }
        c->line = text;
        e->n_commands++;
    }
    return 0;
}

static int path_read(struct amp_call_event *e, const struct amp_tape *t, uint32_t v,
                     struct amp_error *err)
{
    struct amp_span text;
    if (text_read(e, t, v, &text, err) < 0)
        return -1;
    /* Some tools take an empty path for the current directory. */
    if (!text.n && e->kind != AMP_CALL_READ && e->kind != AMP_CALL_WRITE)
        return 0;
    return path_add(e, text, err);
}

static int value_paths(struct amp_call_event *e, const struct amp_tape *t, uint32_t v,
                       struct amp_error *err)
{
    if (t->tok[v].type == AMP_JSON_STRING)
        return path_read(e, t, v, err);
    if (t->tok[v].type != AMP_JSON_ARRAY)
        return 0;
    for (uint32_t i = v + 1; i < t->tok[v].next; i = t->tok[i].next)
        if (t->tok[i].type == AMP_JSON_STRING && path_read(e, t, i, err) < 0)
            return -1;
    return 0;
}

static int paths_read(struct amp_call_event *e, const struct amp_tape *t, uint32_t args,
                      struct amp_error *err)
{
    static const char *const keys[] = {
        "file_path", "notebook_path", "filePath", "path",        "target_file", "absolute_path",
        "file",      "files",         "paths",    "new_path",    "old_path",    "destination",
        "source",    "filename",      "dir_path", "target_path", "dirPath",     "directory"};
    static const char *const patches[] = {"patch", "input", "diff", "patchText"};
    struct amp_span text;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t v = amp_tape_get(t, args, amp_span_str(keys[i]));
        if (v != AMP_TOK_NONE && value_paths(e, t, v, err) < 0)
            return -1;
    }
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++) {
        uint32_t v = amp_tape_get(t, args, amp_span_str(patches[i]));
        if (v != AMP_TOK_NONE && t->tok[v].type == AMP_JSON_STRING &&
            (text_read(e, t, v, &text, err) < 0 || patch_read(e, text, err) < 0))
            return -1;
    }
    return 0;
}

/* Some of Cursor's events have no directory; the first folder of the workspace is used. */
static int roots_read(struct amp_call_event *e, struct amp_error *err)
{
    uint32_t list = amp_tape_get(&e->tape, 0, AMP_SPAN("workspace_roots"));
    uint32_t v = list != AMP_TOK_NONE && e->tape.tok[list].type == AMP_JSON_ARRAY
                     ? amp_tape_at(&e->tape, list, 0)
                     : AMP_TOK_NONE;
    if (v == AMP_TOK_NONE || e->tape.tok[v].type != AMP_JSON_STRING)
        return 0;
    return text_read(e, &e->tape, v, &e->cwd, err);
}

/* The directory of the call: that of the tool's input, relative to the event's. */
static int dir_read(struct amp_call_event *e, const struct amp_tape *t, uint32_t args,
                    struct amp_error *err)
{
    static const char *const of_event[] = {"cwd", "workdir", "working_directory"};
    static const char *const of_tool[] = {"cwd",       "workdir",  "working_directory",
                                          "directory", "dir_path", "dirPath"};
    AMP_BUF struct amp_buf joined = {0};
    struct amp_span inside = {0};
    if (member_text(e, of_event, 3, &e->cwd, err) < 0)
        return -1;
    if (!e->cwd.n && roots_read(e, err) < 0)
        return -1;
    uint32_t v = e->n_commands ? member_of(t, args, of_tool, 6) : AMP_TOK_NONE;
    if (v == AMP_TOK_NONE || t->tok[v].type != AMP_JSON_STRING)
        return 0;
    if (text_read(e, t, v, &inside, err) < 0)
        return -1;
    if (!inside.n || amp_span_eq(inside, e->cwd))
        return 0;
    amp_buf_init(&joined, 2 * PATH_MAX);
    if (inside.p[0] != '/' &&
        (amp_buf_add(&joined, e->cwd.p, e->cwd.n, NULL) < 0 || amp_buf_str(&joined, "/", NULL) < 0))
        return event_malformed(err, "a directory that is too long");
    if (amp_buf_add(&joined, inside.p, inside.n, NULL) < 0)
        return event_malformed(err, "a directory that is too long");
    e->dir = amp_span_dup(amp_buf_span(&joined));
    if (!e->dir)
        return amp_fail_memory(err);
    e->cwd = amp_span_str(e->dir);
    return 0;
}

/* ---- the event ---- */

static bool row_fits(const struct cli_row *r, const struct amp_tape *t, uint32_t object)
{
    uint32_t v = member_of(t, object, r->event, 3);
    if (v == AMP_TOK_NONE)
        return r->unnamed;
    for (int i = 0; r->events[i]; i++)
        if (t->tok[v].type == AMP_JSON_STRING && amp_tok_is(t, v, amp_span_str(r->events[i])))
            return true;
    return false;
}

static bool row_marked(const struct cli_row *r, const struct amp_tape *t, uint32_t object)
{
    return (!r->mark || amp_tape_get(t, object, amp_span_str(r->mark)) != AMP_TOK_NONE) &&
           (!r->without || amp_tape_get(t, object, amp_span_str(r->without)) == AMP_TOK_NONE);
}

static enum amp_call_cli cli_find(const struct amp_tape *t, uint32_t object,
                                  enum amp_call_cli expected)
{
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        if ((expected == AMP_CLI_NONE ? row_marked(&rows[order[i]], t, object)
                                      : expected == order[i]) &&
            row_fits(&rows[order[i]], t, object))
            return order[i];
    return AMP_CLI_NONE;
}

bool amp_call_event_is(const struct amp_tape *t, uint32_t object)
{
    return cli_find(t, object, AMP_CLI_NONE) != AMP_CLI_NONE;
}

static int cli_choose(struct amp_call_event *e, enum amp_call_cli expected, struct amp_error *err)
{
    e->cli = cli_find(&e->tape, 0, expected);
    if (expected != AMP_CLI_NONE && e->cli == AMP_CLI_NONE) {
        e->cli = expected;
        return amp_fail(err, AMP_DATAERR, call_malformed,
                        "the input of the hook is not a tool call of %s",
                        amp_call_cli_name(expected));
    }
    return member_text(e, row_of(e->cli)->event, 3, &e->event, err);
}

/* The tool's input: an object, or a string that has one. *t: its tape. */
static int input_find(struct amp_call_event *e, const struct cli_row *r, const struct amp_tape **t,
                      uint32_t *args, struct amp_error *err)
{
    struct amp_json_fault fault;
    struct amp_span text;
    uint32_t v = member_of(&e->tape, 0, r->input, 5);
    *t = &e->tape;
    *args = v;
    if (v == AMP_TOK_NONE) {
        /* Cursor's events have the command or the file beside the event's name. */
        if (e->tool.n && e->cli != AMP_CLI_NONE)
            return event_malformed(err, "the tool has no input");
        *args = 0;
        return 0;
    }
    if (e->tape.tok[v].type == AMP_JSON_STRING) {
        if (text_read(e, &e->tape, v, &text, err) < 0)
            return -1;
        if (amp_tape_scan(&e->inner, text.p ? text.p : "", text.n, &fault) < 0)
            return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err)
                                                    : event_malformed(err, fault.what);
        *t = &e->inner;
        *args = 0;
    }
    if ((*t)->tok[*args].type != AMP_JSON_OBJECT)
        return event_malformed(err, "the tool's input is not an object");
    e->input = amp_tok_source(*t, *args);
    return 0;
}

int amp_call_event_read(struct amp_span json, enum amp_call_cli expected,
                        struct amp_call_event *out, struct amp_error *err)
{
    struct amp_json_fault fault;
    const struct amp_tape *t;
    uint32_t args;
    bool foreign = false;
    *out = (struct amp_call_event){.cli = expected};
    amp_tape_init(&out->tape, NULL);
    amp_tape_init(&out->inner, NULL);
    amp_buf_init(&out->mem, 4 * (size_t)AMP_CALL_INPUT_MAX + 64);
    if (json.n > AMP_CALL_INPUT_MAX)
        return event_malformed(err, "more than 16 MiB");
    if (amp_tape_scan(&out->tape, json.p ? json.p : "", json.n, &fault) < 0)
        return amp_json_fault_is_memory(&fault) ? amp_fail_memory(err)
                                                : event_malformed(err, fault.what);
    if (out->tape.tok[0].type != AMP_JSON_OBJECT)
        return event_malformed(err, "not an object");
    /* A string may have another JSON text, and some members are read twice. */
    if (amp_buf_reserve(&out->mem, 4 * json.n, err) < 0 || cli_choose(out, expected, err) < 0)
        return -1;
    const struct cli_row *r = row_of(out->cli);
    if (member_text(out, r->tool, 4, &out->tool, err) < 0 ||
        member_text(out, r->session, 4, &out->session, err) < 0 ||
        member_text(out, r->call, 4, &out->call, err) < 0 || input_find(out, r, &t, &args, err) < 0)
        return -1;
    if (!out->tool.n && out->event.n)
        out->tool = out->event;
    if (out->cli == AMP_CLI_NONE && !out->tool.n &&
        amp_tape_get(&out->tape, 0, AMP_SPAN("command")) == AMP_TOK_NONE)
        return event_malformed(err, "no tool is named");
    out->kind = kind_of(out->tool, &foreign);
    out->known = out->kind != AMP_CALL_OTHER;
    /* The command of such an event is that of the server, not the agent's. */
    bool server = amp_span_is(out->event, "beforeMCPExecution") && args == 0 && t == &out->tape;
    if ((!server && commands_read(out, t, args, foreign, err) < 0) ||
        paths_read(out, t, args, err) < 0)
        return -1;
    if (out->n_commands) {
        out->known = out->kind == AMP_CALL_COMMAND;
        out->kind = AMP_CALL_COMMAND;
    } else if (out->kind == AMP_CALL_COMMAND) {
        return event_malformed(err, "a tool that runs commands without a command");
    }
    return dir_read(out, t, args, err);
}

void amp_call_event_begin(enum amp_call_cli cli, const char *tool, const char *cwd,
                          struct amp_jw *w)
{
    const struct cli_row *r = row_of(cli);
    int last = 0;
    while (r->events[last] && r->events[last + 1])
        last++;
    amp_jw_open(w, '{');
    if (r->events[last])
        amp_jw_member_text(w, r->event[0], r->events[last]);
    amp_jw_some_str(w, "cwd", amp_span_str(cwd));
    amp_jw_member_text(w, r->tool[0], tool);
    amp_jw_key(w, r->input[0]);
}

int amp_call_event_change(const struct amp_call_event *e, struct amp_span input,
                          struct amp_buf *out, struct amp_error *err)
{
    uint32_t v = member_of(&e->tape, 0, row_of(e->cli)->input, 5);
    if (v == AMP_TOK_NONE)
        return amp_fail(err, AMP_INTERNAL, call_malformed, "the event has no input to change");
    struct amp_span was = amp_tok_source(&e->tape, v);
    const char *end = e->tape.text + e->tape.len;
    return amp_buf_add(out, e->tape.text, (size_t)(was.p - e->tape.text), err) < 0 ||
                   amp_buf_add(out, input.p, input.n, err) < 0 ||
                   amp_buf_add(out, was.p + was.n, (size_t)(end - was.p - (ptrdiff_t)was.n), err) <
                       0
               ? -1
               : 0;
}

void amp_call_event_release(struct amp_call_event *e)
{
    for (size_t i = 0; i < e->n_commands; i++) {
        for (size_t k = 0; k < e->commands[i].n; k++)
            free(e->commands[i].words[k]);
        free(e->commands[i].words);
    }
    for (size_t i = 0; i < e->n_paths; i++)
        free(e->paths[i]);
    free(e->paths);
    free(e->dir);
    amp_buf_release(&e->mem);
    amp_tape_release(&e->tape);
    amp_tape_release(&e->inner);
    *e = (struct amp_call_event){0};
}
