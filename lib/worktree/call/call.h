/*
 * Decisions about the tool calls of a coding agent, before the call is made: whether a command line
 * or a file path would get around the guard's rules (worktree/rule.h). The input is read and never
 * executed. The git hooks make the same decision again with what git does; this one is earlier, and
 * covers commands that run no hook.
 *
 * The decision does not cover what a script, an alias, a program in another language, or a tool of
 * an MCP server does. A command line that cannot be parsed is refused if it has the word git and a
 * word for moving a branch (push, merge, update-ref …).
 */
#ifndef AMP_WORKTREE_CALL_CALL_H
#define AMP_WORKTREE_CALL_CALL_H

#include <limits.h>
#include <stdbool.h>

#include <amp/base/buf.h>

struct amp_call_refusal {
    char code[32]; /* a code of the guard; "guard_bypass", "command_unreadable", "call_malformed" */
    char what[512];
};

/* The values of AMP_AGENT and AMP_ROLE, or NULL; the caller counts as an agent in any case. cwd: an
 * absolute directory. */
struct amp_call {
    const char *agent, *role, *cwd;
};

/* Decides on the input of a hook, as Claude Code, Codex, Gemini CLI, Copilot CLI and Cursor give
 * it. cwd is used if the input has none. 1: refused, and out says why; 0: allowed; -1: failure,
 * which the caller must treat as a refusal. */
int amp_call_input(const struct amp_call *c, struct amp_span json, struct amp_call_refusal *out,
                   struct amp_error *err);

/* Whether the agent is suspended (worktree/stopped.h), with the same results. */
int amp_call_suspended(const struct amp_call *c, struct amp_call_refusal *out,
                       struct amp_error *err);

#endif
