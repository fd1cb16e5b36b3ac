/* Writes and removes the marker of a worktree's agent. */
#include "work/git/marker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "work/git/push.h"
#include "work/git/rule.h"

int amp_marker_put(const char *gitdir, const char *agent, const char *branch, const char *role,
                   struct amp_error *err)
{
    char name[128];
    AMP_CLOSE int fd = open(gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AMP_BUF struct amp_buf text = {0};
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", gitdir);
    amp_buf_init(&text, 1024);
    if (amp_marker_format(agent, branch, role, &text, err) < 0)
        return -1;
    /* Never replaced: two agents may take the same free worktree at the same time. */
    int had = amp_file_publish(fd, AMP_AGENT_MARKER, 0644, amp_buf_span(&text), err);
    if (had <= 0)
        return had;
    if (amp_rule_agent(NULL, fd, name, sizeof name) && strcmp(name, agent) == 0)
        return amp_file_write_atomic(fd, AMP_AGENT_MARKER, 0644, amp_buf_span(&text), err);
    return amp_fail(err, AMP_NO, worktree_locked, "%s: the worktree of another agent", gitdir);
}

int amp_marker_drop(const char *gitdir, const char *agent, struct amp_error *err)
{
    char name[128];
    AMP_CLOSE int fd = open(gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "%s", gitdir);
    if (!amp_rule_agent(NULL, fd, name, sizeof name) || strcmp(name, agent) != 0)
        return 0;
    if (unlinkat(fd, AMP_AGENT_MARKER, 0) != 0 && errno != ENOENT)
        return amp_fail_errno(err, AMP_IOERR, "%s/" AMP_AGENT_MARKER, gitdir);
    return amp_push_end(gitdir, err);
}
