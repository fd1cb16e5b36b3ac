/* The environment that holds an agent's own git commands back. */
#include <stdio.h>

#include "worktree/worktree.h"

/* Every URL begins with the empty prefix, so every push goes to a scheme that does not exist; a
 * fetch keeps its URL. A remote with a pushurl of its own is not rewritten: pre-push is for that.
 */
const char *const *amp_agent_git_env(void)
{
    static const char *const env[] = {
        "GIT_CONFIG_COUNT=2",         "GIT_CONFIG_KEY_0=url.amp-refused://.pushInsteadOf",
        "GIT_CONFIG_VALUE_0=",        "GIT_CONFIG_KEY_1=push.default",
        "GIT_CONFIG_VALUE_1=nothing", NULL,
    };
    return env;
}

int amp_worktree_state_dir(const struct amp_git_info *info, char *out, size_t size,
                           struct amp_error *err)
{
    int n = snprintf(out, size, "%s/amp", info->common);
    if (n < 0 || (size_t)n >= size)
        return amp_fail(err, AMP_USAGE, "bad_path", "%s/amp: too long", info->common);
    return 0;
}
