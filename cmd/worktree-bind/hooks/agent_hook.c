/* agent-hook: decides about the tool call of a coding agent, from the JSON that its hook gives. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../bind.h"
#include "work/git/call/call.h"

#define INPUT_MAX (16u << 20)

static int verb_agent_hook(struct amp_command *c, struct amp_error *err)
{
    struct amp_call_refusal no;
    AMP_BUF struct amp_buf input = {0};
    char cwd[PATH_MAX];
    (void)c;
    amp_buf_init(&input, INPUT_MAX + 1);
    if (!getcwd(cwd, sizeof cwd))
        return amp_fail_errno(err, AMP_IOERR, "the current directory");
    amp_note_terminal(NULL);
    const struct amp_call call = {getenv("AMP_AGENT"), getenv("AMP_ROLE"), cwd};
    if (amp_file_read_any("-", INPUT_MAX, &input, err) < 0)
        return -1;
    int rc = amp_call_input(&call, amp_buf_span(&input), &no, err);
    return rc <= 0 ? rc
                   : amp_fail_text(err, AMP_NOPERM, no.code, "refused: %s [%s]", no.what, no.code);
}

const struct amp_verb agent_hook_verbs[] = {
    {"agent-hook", "", "decide about a tool call of a coding agent (JSON on stdin)", NULL,
     verb_agent_hook},
    {0},
};
