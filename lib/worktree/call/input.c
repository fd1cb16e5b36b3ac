/* Reads the input of a coding agent's hook: which tool is called, with which command or files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "worktree/call/private.h"
#include "worktree/stopped.h"

static int state_init(struct call_state *s, const struct amp_call *c, struct amp_span line,
                      struct amp_call_refusal *out, struct amp_error *err)
{
    memset(s, 0, sizeof *s);
    memset(out, 0, sizeof *out);
    s->call = c;
    s->out = out;
    s->err = err;
    s->line = line;
    s->cwd_known = true;
    if (!c->cwd || c->cwd[0] != '/' || strlen(c->cwd) >= sizeof s->cwd)
        return amp_fail(err, AMP_DATAERR, "call_malformed", "cwd is not an absolute path");
    snprintf(s->cwd, sizeof s->cwd, "%s", c->cwd);
    return 0;
}

/* 1: refused, and out says why; 0: allowed; -1: failure, which the caller must treat as a refusal.
 */
static int call_command(const struct amp_call *c, struct amp_span line,
                        struct amp_call_refusal *out, struct amp_error *err)
{
    struct call_state s;
    if (state_init(&s, c, line, out, err) < 0)
        return -1;
    return call_line(&s, line);
}

/* A command as separate words. */
static int call_words(const struct amp_call *c, const char *const *words,
                      struct amp_call_refusal *out, struct amp_error *err)
{
    struct call_state s;
    AMP_BUF struct amp_buf line = {0};
    size_t n = 0;
    amp_buf_init(&line, AMP_SHELL_MAX);
    while (words[n] && n < AMP_SHELL_WORDS_MAX)
        n++;
    AMP_FREE struct amp_shell_word *w = calloc(n + 1, sizeof *w);
    if (!w)
        return amp_fail_memory(err);
    for (size_t i = 0; i < n; i++) {
        memcpy(&w[i].text, &words[i], sizeof w[i].text);
        if (amp_buf_str(&line, words[i], err) < 0 || amp_buf_str(&line, " ", err) < 0)
            return -1;
    }
    if (state_init(&s, c, amp_buf_span(&line), out, err) < 0)
        return -1;
    return n ? call_simple(&s, w, n, NULL) : 0;
}

/* A file that a tool will write. */
static int call_file(const struct amp_call *c, const char *path, struct amp_call_refusal *out,
                     struct amp_error *err)
{
    struct call_state s;
    char real[PATH_MAX];
    AMP_FREE char *text = strdup(path);
    if (!text)
        return amp_fail_memory(err);
    const struct amp_shell_word w = {text, false};
    if (state_init(&s, c, amp_span_str(path), out, err) < 0)
        return -1;
    if (!*path || !call_path(&s, &w, real))
        return call_refuse(&s, "call_malformed", "%.200s: not a path", path);
    return call_write(&s, real, true);
}

/* ---- the JSON ---- */

struct input {
    struct amp_call call;
    const char *tool;
    json_t *args;
    struct amp_call_refusal *out;
    struct amp_error *err;
};

static const char *text_of(const json_t *o, const char *const *names)
{
    for (; *names; names++) {
        const char *t = json_string_value(json_object_get(o, *names));
        if (t)
            return t;
    }
    return NULL;
}

static int input_malformed(struct input *in, const char *what)
{
    return amp_fail(in->err, AMP_DATAERR, "call_malformed", "the input of the hook: %s", what);
}

static int command_check(struct input *in)
{
    static const char *const names[] = {"command",     "cmd",          "script",
                                        "commandLine", "command_line", NULL};
    for (int i = 0; names[i]; i++) {
        const json_t *v = json_object_get(in->args, names[i]);
        if (json_is_string(v)) {
            int rc = call_command(&in->call,
                                  (struct amp_span){json_string_value(v), json_string_length(v)},
                                  in->out, in->err);
            if (rc)
                return rc;
        } else if (json_is_array(v)) {
            size_t n = json_array_size(v);
            if (n > AMP_SHELL_WORDS_MAX)
                return input_malformed(in, "more than 4096 words");
            AMP_FREE const char **words = calloc(n + 1, sizeof *words);
            if (!words)
                return amp_fail_memory(in->err);
            for (size_t k = 0; k < n; k++)
                if (!(words[k] = json_string_value(json_array_get(v, k))))
                    return input_malformed(in, "a word of the command is not a string");
            int rc = call_words(&in->call, words, in->out, in->err);
            if (rc)
                return rc;
        } else if (v) {
            return input_malformed(in, "the command is neither a string nor an array");
        }
    }
    return 0;
}

static bool only_reads(const char *tool)
{
    static const char *const tools[] = {"Read",
                                        "NotebookRead",
                                        "Glob",
                                        "Grep",
                                        "LS",
                                        "read_file",
                                        "view",
                                        "glob",
                                        "list_directory",
                                        "search_file_content",
                                        "read_many_files",
                                        "grep",
                                        "read",
                                        "ls",
                                        "beforeReadFile",
                                        "list_dir",
                                        "grep_search",
                                        "file_search",
                                        "codebase_search",
                                        NULL};
    for (int i = 0; tool && tools[i]; i++)
        if (strcmp(tools[i], tool) == 0)
            return true;
    return false;
}

static int files_check(struct input *in)
{
    static const char *const names[] = {
        "file_path",     "notebook_path", "filePath", "path",        "target_file",
        "absolute_path", "file",          "new_path", "destination", NULL};
    for (int i = 0; names[i]; i++) {
        const json_t *v = json_object_get(in->args, names[i]);
        if (!json_is_string(v))
            continue;
        if (json_string_length(v) != strlen(json_string_value(v)))
            return input_malformed(in, "a NUL byte in a path");
        int rc = call_file(&in->call, json_string_value(v), in->out, in->err);
        if (rc)
            return rc;
    }
    return 0;
}

/* The files of a patch in the form of apply_patch, or of a unified diff. */
static int patch_check(struct input *in)
{
    static const char *const names[] = {"patch", "input", "diff", NULL};
    static const char *const leads[] = {"*** Add File: ",
                                        "*** Update File: ",
                                        "*** Delete File: ",
                                        "*** Move to: ",
                                        "+++ b/",
                                        "--- a/",
                                        NULL};
    const char *text = text_of(in->args, names);
    for (const char *p = text; p && *p;) {
        size_t n = strcspn(p, "\n");
        for (int i = 0; leads[i]; i++) {
            size_t lead = strlen(leads[i]);
            if (n <= lead || strncmp(p, leads[i], lead) != 0)
                continue;
            AMP_FREE char *path = amp_span_dup((struct amp_span){p + lead, n - lead});
            if (!path)
                return amp_fail_memory(in->err);
            path[strcspn(path, "\t\r")] = '\0';
            int rc = call_file(&in->call, path, in->out, in->err);
            if (rc)
                return rc;
        }
        p += n + (p[n] == '\n');
    }
    return 0;
}

/* A suspended agent makes no call at all. */
static int suspension_check(struct input *in)
{
    struct call_repo r;
    char why[300];

    if (call_repo_find(&in->call, in->call.cwd, &r, in->err) < 0)
        return -1;
    if (!r.found)
        return 0;
    AMP_CLOSE int common = open(r.common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(in->err, AMP_IOERR, "%s", r.common);
    int rc = amp_stopped_is(common, r.caller.name, why, sizeof why, in->err);
    if (rc > 0) {
        snprintf(in->out->code, sizeof in->out->code, "suspended");
        snprintf(in->out->what, sizeof in->out->what, "%.100s is suspended by %s", r.caller.name,
                 why);
    }
    return rc;
}

int amp_call_input(const struct amp_call *c, struct amp_span json, struct amp_call_refusal *out,
                   struct amp_error *err)
{
    static const char *const tools[] = {"tool_name", "toolName", "tool", "hook_event_name", NULL};
    static const char *const inputs[] = {"tool_input", "toolInput", "toolArgs", "arguments", NULL};
    static const char *const dirs[] = {"cwd", "workdir", "working_directory", NULL};
    struct input in = {.call = *c, .out = out, .err = err};
    memset(out, 0, sizeof *out);
    json_error_t e;
    json_auto_t *all = json_loadb(json.p ? json.p : "", json.n, JSON_REJECT_DUPLICATES, &e);
    json_auto_t *parsed = NULL;
    if (!json_is_object(all))
        return input_malformed(&in, all ? "not an object" : e.text);
    in.tool = text_of(all, tools);
    for (int i = 0; inputs[i] && !in.args; i++)
        in.args = json_object_get(all, inputs[i]);
    if (json_is_string(in.args)) {
        parsed = json_loads(json_string_value(in.args), JSON_REJECT_DUPLICATES, &e);
        in.args = parsed;
        if (!json_is_object(parsed))
            return input_malformed(&in, "the tool's arguments are not an object");
    }
    if (!in.args)
        in.args = all; /* Cursor's events have the command beside the event */
    if (!json_is_object(in.args))
        return input_malformed(&in, "the tool's input is not an object");
    if (!in.tool && in.args == all && !json_object_get(all, "command"))
        return input_malformed(&in, "no tool is named");
    const char *dir = text_of(in.args, dirs);
    if (!dir || dir[0] != '/')
        dir = text_of(all, dirs);
    if (dir)
        in.call.cwd = dir;
    int rc = suspension_check(&in);
    if (!rc)
        rc = command_check(&in);
    if (!rc && !only_reads(in.tool))
        rc = files_check(&in);
    return rc ? rc : patch_check(&in);
}
