/*
 * Decisions of `worktree-bind agent-hook` about the tool calls of a coding agent, before the call
 * is made. Only plain command lines (worktree/call/plain.h) are read: a git command in one that
 * moves a branch which the rule (worktree/rule.h) keeps from the agent is refused, and so is a tool
 * that writes a forbidden or reserved file, or one below a git directory. Everything else passes:
 * this catches mistakes early. The git hooks and the confinement are the walls.
 */
#ifndef AMP_WORKTREE_CALL_CALL_H
#define AMP_WORKTREE_CALL_CALL_H

#include <limits.h>
#include <stdbool.h>

#include "worktree/call/plain.h"
#include "worktree/rule.h"

struct amp_call_refusal {
    char code[32]; /* a code of the guard; "guard_bypass", "patch_unreadable", "call_malformed" */
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

/* ---- for the files of this folder ---- */

/* The repository of a directory. */
struct call_repo {
    bool found;
    char top[PATH_MAX]; /* of the working tree; "" for a bare one */
    char gitdir[PATH_MAX], common[PATH_MAX];
    char head[256]; /* the full name of the branch; "" if detached */
    struct amp_rule rule;
    struct amp_rule_caller caller;
};
/* Finds it from dir upwards, with the policy and the caller. 0 also if there is none. */
int call_repo_find(const struct amp_call *c, const char *dir, struct call_repo *out,
                   struct amp_error *err);
int call_refuse(struct amp_call_refusal *out, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The git commands of a plain line, with the results of amp_call_input. */
int call_git(const struct amp_call *c, const struct amp_plain *line, struct amp_call_refusal *out,
             struct amp_error *err);

#endif
