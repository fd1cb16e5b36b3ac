/* Differences: changed files, counts of lines, and the text of the diff. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "worker.h"

#define FILES_MAX 10000

/* Collects the text so that the file is written in large pieces. */
struct patch {
    int fd;
    struct amp_buf buf;
    struct amp_error *err;
};

static int patch_flush(struct patch *p)
{
    int rc = amp_write_all(p->fd, amp_buf_span(&p->buf), p->err);
    amp_buf_reset(&p->buf);
    return rc;
}

static int patch_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
                      const git_diff_line *line, void *ctx)
{
    struct patch *p = ctx;
    bool marked = line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
                  line->origin == GIT_DIFF_LINE_DELETION;
    (void)delta;
    (void)hunk;
    if (p->buf.len >= 65536 && patch_flush(p))
        return -1;
    return (marked && amp_buf_add(&p->buf, &line->origin, 1, p->err)) ||
                   amp_buf_add(&p->buf, line->content, line->content_len, p->err)
               ? -1
               : 0;
}

int write_patch(struct request *r, git_diff *diff, const char *path)
{
    char temporary[4096];
    int n = snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
    if (n < 0 || (size_t)n >= sizeof temporary)
        return amp_fail(r->err, AMP_CANTCREAT, path_too_long, "%s", path);
    AMP_CLOSE int fd =
        amp_file_open(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600, r->err);
    if (fd < 0)
        return -1;
    struct patch p = {.fd = fd, .err = r->err};
    amp_buf_init(&p.buf, 256u << 20);
    r->err->code[0] = '\0';
    int rc = git_diff_print(diff, GIT_DIFF_FORMAT_PATCH, patch_line, &p);
    if (rc && !r->err->code[0])
        fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), path);
    if (rc == 0)
        rc = patch_flush(&p);
    amp_buf_release(&p.buf);
    if (rc == 0 && rename(temporary, path) != 0)
        rc = amp_fail_errno(r->err, AMP_CANTCREAT, "%s", path);
    if (rc)
        unlink(temporary);
    return rc ? -1 : 0;
}

static int reply_stats(struct request *r, git_diff *diff)
{
    CLEANUP(git_diff_stats_cleanup) git_diff_stats *stats = NULL;
    int rc = git_diff_get_stats(&stats, diff);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), "counting lines");
    size_t n = git_diff_num_deltas(diff);
    amp_jw_member_open(&r->out, "files", '[');
    for (size_t i = 0; i < n && i < FILES_MAX; i++) {
        const git_diff_delta *d = git_diff_get_delta(diff, i);
        const char *path = d->status == GIT_DELTA_DELETED ? d->old_file.path : d->new_file.path;
        amp_jw_str(&r->out, amp_span_str(path));
    }
    amp_jw_close(&r->out, ']');
    amp_jw_member_uint(&r->out, "n_files", n);
    amp_jw_member_uint(&r->out, "added", git_diff_stats_insertions(stats));
    amp_jw_member_uint(&r->out, "removed", git_diff_stats_deletions(stats));
    return 0;
}

/* Refuses files of the worktree that are too large to compare. */
static int check_sizes(struct request *r, git_repository *worktree, const git_diff *diff)
{
    for (size_t i = 0; i < git_diff_num_deltas(diff); i++) {
        const char *path = git_diff_get_delta(diff, i)->new_file.path;
        int64_t size = file_oversize(r, worktree, path);
        if (size)
            return refuse_limit(r, "the file %s has %lld bytes, more than object_bytes allows",
                                path, (long long)size);
    }
    return 0;
}

static int tree_of(struct request *r, git_repository *repo, const char *rev, git_tree **out)
{
    CLEANUP(git_commit_cleanup) git_commit *commit = NULL;
    if (find_commit(r, repo, rev, &commit) < 0)
        return -1;
    int rc = git_commit_tree(out, commit);
    return rc ? fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), rev) : 0;
}

int op_diff(struct request *r)
{
    CLEANUP(git_repository_cleanup) git_repository *worktree = NULL;
    CLEANUP(git_tree_cleanup) git_tree *from = NULL, *to = NULL;
    CLEANUP(git_diff_cleanup) git_diff *diff = NULL;
    git_diff_options opt;
    git_diff_options_init(&opt, GIT_DIFF_OPTIONS_VERSION);
    if (!r->in.to && !r->in.worktree)
        return amp_fail(r->err, AMP_INTERNAL, bad_request, "\"worktree\" is missing");
    if (!r->in.to && open_worktree(r, &worktree) < 0)
        return -1;
    git_repository *repo = worktree ? worktree : r->repo;
    if (tree_of(r, repo, r->in.from, &from) < 0 ||
        (r->in.to && tree_of(r, repo, r->in.to, &to) < 0))
        return -1;
    opt.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS |
                GIT_DIFF_SHOW_UNTRACKED_CONTENT | GIT_DIFF_INCLUDE_TYPECHANGE;
    int rc = to ? git_diff_tree_to_tree(&diff, repo, from, to, &opt)
                : git_diff_tree_to_workdir_with_index(&diff, repo, from, &opt);
    if (rc)
        return fail_git(r, rc, AMP_IOERR, AMP_CODE(git_error), r->in.repo);
    if (worktree && check_sizes(r, worktree, diff))
        return -1;
    if (r->in.patch && write_patch(r, diff, r->in.patch))
        return -1;
    return reply_stats(r, diff);
}
