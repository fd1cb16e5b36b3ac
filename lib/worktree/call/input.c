/* Reads the input of a coding agent's hook: which tool is called, with which command or files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worktree/call/event/event.h"
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
static int call_words(const struct amp_call *c, const struct amp_call_command *words,
                      struct amp_call_refusal *out, struct amp_error *err)
{
    struct call_state s;
    AMP_BUF struct amp_buf line = {0};
    amp_buf_init(&line, AMP_SHELL_MAX);
    for (size_t i = 0; i < words->n; i++)
        if (amp_buf_str(&line, words->words[i].text, err) < 0 || amp_buf_str(&line, " ", err) < 0)
            return -1;
    if (state_init(&s, c, amp_buf_span(&line), out, err) < 0)
        return -1;
    return words->n ? call_simple(&s, words->words, words->n, NULL) : 0;
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

int amp_call_suspended(const struct amp_call *c, struct amp_call_refusal *out,
                       struct amp_error *err)
{
    struct call_repo r;
    char why[300];
    if (!c->cwd || c->cwd[0] != '/')
        return amp_fail(err, AMP_DATAERR, "call_malformed", "cwd is not an absolute path");
    if (call_repo_find(c, c->cwd, &r, err) < 0)
        return -1;
    if (!r.found)
        return 0;
    AMP_CLOSE int common = open(r.common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", r.common);
    int rc = amp_stopped_is(common, r.caller.name, why, sizeof why, err);
    if (rc > 0) {
        snprintf(out->code, sizeof out->code, "suspended");
        snprintf(out->what, sizeof out->what, "%.100s is suspended by %s", r.caller.name, why);
    }
    return rc;
}

int amp_call_input(const struct amp_call *c, struct amp_span json, struct amp_call_refusal *out,
                   struct amp_error *err)
{
    AMP_CALL_EVENT struct amp_call_event e = {0};
    char dir[PATH_MAX];
    struct amp_call call = *c;
    int rc = 0;
    memset(out, 0, sizeof *out);
    if (amp_call_event_read(json, AMP_CLI_NONE, &e, err) < 0)
        return -1;
    if (e.cwd.n) {
        if (!amp_span_copy(e.cwd, dir, sizeof dir))
            dir[0] = '\0';
        call.cwd = dir;
    }
    rc = amp_call_suspended(&call, out, err);
    for (size_t i = 0; i < e.n_commands && !rc; i++)
        rc = e.commands[i].words ? call_words(&call, &e.commands[i], out, err)
                                 : call_command(&call, e.commands[i].line, out, err);
    bool reads = e.kind == AMP_CALL_READ || e.kind == AMP_CALL_SEARCH;
    for (size_t i = 0; i < e.n_paths && !rc && !reads; i++)
        rc = call_file(&call, e.paths[i], out, err);
    return rc;
}
