/* Finds the repository that a command works in, from its files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/file/repository.h"
#include "worktree/call/private.h"
#include "worktree/worktree.h"

#define PACKED_MAX (64u << 20)

int call_repo_find(const struct amp_call *c, const char *dir, struct call_repo *out,
                   struct amp_error *err)
{
    struct amp_repository r;
    memset(out, 0, sizeof *out);
    amp_rule_default(&out->rule);
    amp_rule_caller(c->agent ? c->agent : "", c->role, -1, &out->caller);
    if (amp_repository_find(dir, &r, err) < 0)
        return -1;
    if (!r.found)
        return 0;
    out->found = true;
    memcpy(out->top, r.top, sizeof out->top);
    memcpy(out->gitdir, r.gitdir, sizeof out->gitdir);
    memcpy(out->common, r.common, sizeof out->common);
    amp_repository_text(out->gitdir, "HEAD", "ref: ", out->head, sizeof out->head);
    AMP_CLOSE int gitdir = open(out->gitdir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    AMP_CLOSE int common = open(out->common, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (gitdir < 0 || common < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", out->gitdir);
    amp_rule_caller(c->agent ? c->agent : "", c->role, gitdir, &out->caller);
    return amp_rule_load(&out->rule, common, err);
}

bool call_repo_has_branch(const struct call_repo *r, const char *name)
{
    char path[PATH_MAX + 300], line[300];
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, PACKED_MAX + 1);
    if (!r->found || strlen(name) > 255 || strstr(name, ".."))
        return false;
    snprintf(path, sizeof path, "%s/refs/heads/%s", r->common, name);
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode))
        return true;
    snprintf(path, sizeof path, "%s/packed-refs", r->common);
    snprintf(line, sizeof line, " refs/heads/%s\n", name);
    return amp_file_read(AT_FDCWD, path, PACKED_MAX, &b, NULL) == 0 && b.len &&
           memmem(b.data, b.len, line, strlen(line));
}
