/* Decides which branches are protected, for the check of messages and for the git hooks. This is a
 * file of its own so that the hook links nothing else. */
#include <string.h>

#include <amp/protocol/protocol.h>

static bool cut_prefix(struct amp_span *s, const char *prefix)
{
    size_t n = strlen(prefix);
    if (s->n < n || memcmp(s->p, prefix, n) != 0)
        return false;
    s->p += n;
    s->n -= n;
    return true;
}

bool amp_branch_is_protected(struct amp_span branch, const char *const *patterns)
{
    if (!branch.n)
        return false;
    if (!cut_prefix(&branch, "refs/heads/")) {
        struct amp_span rest = branch;
        if (cut_prefix(&rest, "refs/"))
            return false; /* a tag, a remote's branch */
        cut_prefix(&branch, "heads/");
    }
    if (amp_span_is(branch, "main") || amp_span_is(branch, "master"))
        return true;
    for (; patterns && *patterns; patterns++) {
        struct amp_span p = amp_span_str(*patterns);
        cut_prefix(&p, "refs/heads/");
        if (p.n && amp_span_glob(branch, p))
            return true;
    }
    return false;
}
