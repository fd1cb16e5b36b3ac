/*
 * Decisions of `worktree-bind agent-hook` about the tool calls of a coding agent, before the call
 * is made. Only plain command lines (work/git/call/plain.h) are read: a git command in one that
 * moves a branch which the rule (work/git/rule.h) keeps from the agent is refused. Everything else
 * passes: this catches mistakes early. The git hooks and the confinement are the walls.
 */
#ifndef AMP_WORK_GIT_CALL_CALL_H
#define AMP_WORK_GIT_CALL_CALL_H

#include <stdbool.h>

#include "work/git/rule.h"

struct amp_call_refusal {
    char code[32]; /* a code of the guard about branches, "guard_bypass" or "suspended" */
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

/* Whether the agent is suspended (work/git/stopped.h), with the same results. */
int amp_call_suspended(const struct amp_call *c, struct amp_call_refusal *out,
                       struct amp_error *err);

#endif
