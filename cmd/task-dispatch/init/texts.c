/* The files that init writes. */
#include <string.h>

#include "base/process/quote.h"
#include "init.h"

const char init_config_text[] = "{\n  \"redact\": {\"patterns\": []}\n}\n";

const char init_agents_text[] = INIT_BEGIN
    "\n"
    "## Working on a task of task-dispatch\n"
    "\n"
    "These rules hold when the variable `AMP_TASK_ID` is set. A loop then gives you one task at a\n"
    "time and checks your work.\n"
    "\n"
    "- Work in the current directory, a git worktree of your own on the branch `$AMP_BRANCH`. Do "
    "not\n"
    "  switch branches and do not push. What you do not commit is committed for you.\n"
    "- The task is the JSON in `$AMP_MESSAGE`: `.payload.description`, and after a rejection\n"
    "  `.payload.tech_constraints.review.issues`, what to fix. `$AMP_CRITERIA` is a JSON list of "
    "what\n"
    "  must be true at the end. Check each criterion yourself.\n"
    "- Your answer is one JSON object in the file `$AMP_RESULT`; the tool `reply` of the MCP "
    "server\n"
    "  amp writes it. Without it write another file, then rename it.\n"
    "- As the executor (`AMP_ROLE=executor`) answer\n"
    "  `{\"completion_status\": \"complete\", \"self_assessment\": {\"criteria_met\": [true, "
    "null], \"notes\": []}}`;\n"
    "  `partial` or `failed` with `\"blockers\": [\"why\"]` if you cannot finish. `null` is a "
    "criterion\n"
    "  that you did not check.\n"
    "- As the reviewer (`AMP_ROLE=reviewer`) judge the difference in `$AMP_DIFF` and answer\n"
    "  `{\"decision\": \"approved\", \"confidence\": 0.9, \"criteria_results\": [{\"criterion\": "
    "\"…\", \"passed\": true, \"evidence\": \"…\"}]}`\n"
    "  or `rejected` with `\"issues\": [{\"severity\": \"major\", \"file\": \"…\", \"line\": 1, "
    "\"description\": \"…\", \"suggested_fix\": \"…\"}]`.\n"
    "- If you need a person's decision, say so through `$AMP_CONTROL` (amp-agent-control(7)) "
    "instead\n"
    "  of guessing. More: amp-agent-contract(7).\n" INIT_END "\n";

/* Claude Code and Gemini CLI replace the line by the file. */
const char init_include_text[] = INIT_BEGIN "\n@AGENTS.md\n" INIT_END "\n";

const char *const init_husky_hooks[] = {"pre-commit", "commit-msg", "pre-rebase", "pre-push", NULL};

int init_husky_text(const char *hook, struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_fmt(out, err, "worktree-bind hooks run %s \"$@\"\n", hook);
}

const char init_lefthook_text[] = "# The branch guard beside the hooks of lefthook.yml.\n"
                                  "pre-commit:\n"
                                  "  commands:\n"
                                  "    branch-guard:\n"
                                  "      run: worktree-bind hooks run pre-commit\n"
                                  "commit-msg:\n"
                                  "  commands:\n"
                                  "    branch-guard:\n"
                                  "      run: worktree-bind hooks run commit-msg {1}\n"
                                  "pre-rebase:\n"
                                  "  commands:\n"
                                  "    branch-guard:\n"
                                  "      run: worktree-bind hooks run pre-rebase {0}\n"
                                  "pre-push:\n"
                                  "  commands:\n"
                                  "    branch-guard:\n"
                                  "      run: worktree-bind hooks run pre-push {0}\n"
                                  "      use_stdin: true\n";

struct amp_span init_section_find(struct amp_span text)
{
    const char *from = text.n ? memmem(text.p, text.n, INIT_BEGIN, strlen(INIT_BEGIN)) : NULL;
    if (!from)
        return (struct amp_span){text.p, 0};
    const char *to = memmem(from, text.n - (size_t)(from - text.p), INIT_END, strlen(INIT_END));
    if (!to)
        return (struct amp_span){text.p, 0};
    to += strlen(INIT_END);
    if (to < text.p + text.n && *to == '\n')
        to++;
    return (struct amp_span){from, (size_t)(to - from)};
}

int init_loop_text(const struct init *in, struct amp_buf *out, struct amp_error *err)
{
    return amp_buf_str(out,
                       "#!/bin/sh\n"
                       "# The loop of this repository:   ./loop.sh TASK.md...\n"
                       "# Without TASK.md it continues the open tasks. A loop that runs already "
                       "gets the TASK.md.\n"
                       "# Options of task-dispatch loop may be added:\n"
                       "#   --policy FILE   what the agents may reach (worktree-bind-exec(1))\n"
                       "#   --print         the loop as a script of pipes and FIFOs\n"
                       "exec task-dispatch loop \\\n",
                       err) < 0 ||
                   amp_buf_str(out, in->unconfined ? "  --unconfined \\\n  --exec " : "  --exec ",
                               err) < 0 ||
                   amp_shell_quote(amp_span_str(in->executor), out, err) < 0 ||
                   amp_buf_str(out, " \\\n  --reviewer ", err) < 0 ||
                   amp_shell_quote(amp_span_str(in->reviewer), out, err) < 0 ||
                   amp_buf_str(out, " \\\n  \"$@\"\n", err) < 0
               ? -1
               : 0;
}
