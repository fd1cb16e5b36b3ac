/* Finds the repository that a command works in, from its files. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worktree/call/private.h"
#include "worktree/worktree.h"

#define SMALL_MAX  8192
#define PACKED_MAX (64u << 20)

/* The first line of a small file, after prefix; false: there is none. */
static bool line_read(const char *dir, const char *name, const char *prefix, char *out, size_t size)
{
    char path[PATH_MAX + 64];
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_MAX);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (amp_file_read(AT_FDCWD, path, SMALL_MAX - 1, &b, NULL) < 0)
        return false;
    struct amp_span s = amp_buf_span(&b);
    const char *lf = s.n ? memchr(s.p, '\n', s.n) : NULL;
    if (lf)
        s.n = (size_t)(lf - s.p);
    size_t n = strlen(prefix);
    if (!amp_span_starts(s, prefix))
        return false;
    return amp_span_copy((struct amp_span){s.p + n, s.n - n}, out, size);
}

/* The absolute path of `path`, which is relative to dir. */
static bool path_join(const char *dir, const char *path, char out[PATH_MAX])
{
    char text[2 * PATH_MAX];
    snprintf(text, sizeof text, "%s%s%s", path[0] == '/' ? "" : dir, path[0] == '/' ? "" : "/",
             path);
    return amp_path_canonical(text, out, NULL) == 0;
}

static bool is_gitdir(const char *dir)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/HEAD", dir);
    if (access(path, F_OK) != 0)
        return false;
    snprintf(path, sizeof path, "%s/commondir", dir);
    if (access(path, F_OK) == 0)
        return true;
    snprintf(path, sizeof path, "%s/refs", dir);
    return access(path, F_OK) == 0;
}

/* Sets gitdir and top; false: dir is not the top of a repository. */
static bool repo_at(const char *dir, struct call_repo *r)
{
    char path[PATH_MAX + 16], text[PATH_MAX];
    struct stat st;
    snprintf(path, sizeof path, "%s/.git", dir);
    if (lstat(path, &st) != 0) {
        if (!is_gitdir(dir))
            return false;
        snprintf(r->gitdir, sizeof r->gitdir, "%s", dir);
        r->top[0] = '\0';
        return true;
    }
    snprintf(r->top, sizeof r->top, "%s", dir);
    if (S_ISREG(st.st_mode))
        return line_read(dir, ".git", "gitdir: ", text, sizeof text) &&
               path_join(dir, text, r->gitdir);
    return path_join(dir, ".git", r->gitdir);
}

int call_repo_find(const struct amp_call *c, const char *dir, struct call_repo *out,
                   struct amp_error *err)
{
    char at[PATH_MAX], text[PATH_MAX];
    memset(out, 0, sizeof *out);
    amp_rule_default(&out->rule);
    amp_rule_caller(c->agent ? c->agent : "", c->role, -1, &out->caller);
    snprintf(at, sizeof at, "%s", dir);
    while (at[0] && !out->found) {
        out->found = repo_at(at, out);
        if (!out->found)
            *strrchr(at, '/') = '\0';
    }
    if (!out->found)
        return 0;
    memcpy(out->common, out->gitdir, sizeof out->common);
    if (line_read(out->gitdir, "commondir", "", text, sizeof text) &&
        !path_join(out->gitdir, text, out->common))
        return amp_fail(err, AMP_DATAERR, "repo_not_git", "%s: its commondir is malformed",
                        out->gitdir);
    line_read(out->gitdir, "HEAD", "ref: ", out->head, sizeof out->head);
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
