/*
 * .worktreeinclude: a file at the top of the main worktree with patterns, as in gitignore. The
 * ignored files that they match, such as .env, are copied into a new worktree. Only regular files
 * of the main worktree are copied: no symbolic link is followed, nothing outside is read or
 * written, and an existing file is not replaced.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../worker.h"
#include "base/codes.h"
#include "work/git/paths/glob.h"

#define INCLUDE_FILE ".worktreeinclude"
#define TEXT_MAX     (64u << 10)
#define PATTERNS_MAX 256
#define DEPTH_MAX    64
#define ENTRIES_MAX  1000000
#define CHUNK        (64u << 10)

struct include {
    struct request *r;
    git_repository *main;
    int from, to; /* the main worktree and the new one */
    struct {
        struct amp_span pattern;
        bool not ;
    } patterns[PATTERNS_MAX];
    int n;
    int64_t left, copied, bytes, skipped, entries;
};

static int patterns_read(struct include *in, const struct amp_buf *text)
{
    for (size_t at = 0; at < text->len;) {
        const char *line = text->data + at, *end = memchr(line, '\n', text->len - at);
        struct amp_span p = {line, end ? (size_t)(end - line) : text->len - at};
        at += p.n + 1;
        while (p.n > 0 && (p.p[p.n - 1] == ' ' || p.p[p.n - 1] == '\r'))
            p.n--;
        bool not = p.n > 0 && p.p[0] == '!';
        if (not )
            p.p++, p.n--;
        if (p.n == 0 || (!not &&p.p[0] == '#'))
            continue;
        if (in->n == PATTERNS_MAX)
            return amp_fail(in->r->err, AMP_NO, include_limit, INCLUDE_FILE ": more than %d lines",
                            PATTERNS_MAX);
        if (amp_glob_check(p, in->r->err) < 0)
            return -1;
        in->patterns[in->n].pattern = p;
        in->patterns[in->n++].not = not ;
    }
    return 0;
}

/* Whether the last pattern that matches the path, or a directory above it, includes it. */
static bool is_included(const struct include *in, const char *path)
{
    for (int i = in->n; i-- > 0;)
        for (size_t n = strlen(path); n > 0; n--)
            if ((path[n] == '/' || path[n] == '\0') &&
                amp_glob_match(in->patterns[i].pattern, (struct amp_span){path, n}))
                return !in->patterns[i].not ;
    return false;
}

/* Whether a pattern may match something below the directory. */
static bool may_include(const struct include *in, const char *dir)
{
    char below[PATH_MAX];
    int n = snprintf(below, sizeof below, "%s/", dir);
    for (int i = 0; i < in->n; i++)
        if (!in->patterns[i].not &&(
                n > AMP_GLOB_MAX ||
                amp_glob_overlap(in->patterns[i].pattern, (struct amp_span){below, (size_t)n})))
            return true;
    return false;
}

/* Opens the new file below the worktree, with its directories. -1 with EEXIST in errno: it exists.
 */
static int file_create(const struct include *in, const char *path, mode_t mode)
{
    char part[PATH_MAX];
    for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        /* The parent is opened without links before each step. */
        char *last = strrchr(part, '/');
        if (last)
            *last = '\0';
        AMP_CLOSE int dir =
            amp_open_beneath(in->to, last ? part : ".", O_RDONLY | O_DIRECTORY, 0, NULL);
        if (dir < 0 || (mkdirat(dir, last ? last + 1 : part, 0777) != 0 && errno != EEXIST))
            return -1;
    }
    return amp_open_beneath(in->to, path, O_WRONLY | O_CREAT | O_EXCL, mode, NULL);
}

static int file_copy(struct include *in, const char *path)
{
    char chunk[CHUNK];
    struct stat st;
    ssize_t n;
    AMP_CLOSE int from = amp_open_beneath(in->from, path, O_RDONLY | O_NONBLOCK, 0, NULL);
    if (from < 0 || fstat(from, &st) != 0 || !S_ISREG(st.st_mode)) {
        in->skipped++;
        return 0;
    }
    if (st.st_size > in->left)
        return amp_fail(in->r->err, AMP_NO, include_limit,
                        INCLUDE_FILE ": %s: the files are larger than the limit (%lld bytes)", path,
                        (long long)in->r->in.bytes);
    AMP_CLOSE int to = file_create(in, path, st.st_mode & 0777);
    if (to < 0) {
        if (errno == EEXIST)
            return 0;
        return amp_fail_errno(in->r->err, AMP_CANTCREAT, "%s", path);
    }
    while ((n = read(from, chunk, sizeof chunk)) > 0) {
        in->left -= n;
        in->bytes += n;
        if (in->left < 0)
            return amp_fail(in->r->err, AMP_NO, include_limit,
                            INCLUDE_FILE ": %s grew beyond the limit", path);
        if (amp_write_all(to, (struct amp_span){chunk, (size_t)n}, in->r->err) < 0)
            return -1;
    }
    in->copied++;
    return n < 0 ? amp_fail_errno(in->r->err, AMP_IOERR, "%s", path) : 0;
}

static int entry_take(struct include *in, int dir, const char *name, const char *path, int depth);

static int tree_walk(struct include *in, int parent, const char *name, const char *path, int depth)
{
    AMP_DIR DIR *d = amp_dir_open(parent, name);
    struct stat st;
    if (!d)
        return 0;
    /* A repository inside: a submodule, or another worktree. */
    if (*path && fstatat(dirfd(d), ".git", &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d));) {
        char below[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, ".git") == 0)
            continue;
        int n = snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", e->d_name);
        if (n > 0 && (size_t)n < sizeof below)
            rc = entry_take(in, dirfd(d), e->d_name, below, depth);
    }
    return rc;
}

static int entry_take(struct include *in, int dir, const char *name, const char *path, int depth)
{
    struct stat st;
    int ignored = 0;
    if (++in->entries > ENTRIES_MAX)
        return amp_fail(in->r->err, AMP_NO, include_limit,
                        INCLUDE_FILE ": more than %d files to look at", ENTRIES_MAX);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return 0;
    if (S_ISDIR(st.st_mode))
        return depth < DEPTH_MAX && may_include(in, path)
                   ? tree_walk(in, dir, name, path, depth + 1)
                   : 0;
    if (!is_included(in, path))
        return 0;
    if (!S_ISREG(st.st_mode)) {
        in->skipped++;
        return 0;
    }
    /* Tracked files, and those that git would show as untracked, are none of this. */
    if (git_ignore_path_is_ignored(&ignored, in->main, path) != 0 || !ignored)
        return 0;
    return file_copy(in, path);
}

int op_worktree_include(struct request *r)
{
    struct include in = {.r = r, .left = r->in.bytes};
    CLEANUP(git_repository_cleanup) git_repository *main_repo = NULL;
    CLEANUP(git_index_cleanup) git_index *index = NULL;
    AMP_BUF struct amp_buf text = {0};
    const char *common = git_repository_commondir(r->repo), *workdir = NULL;
    int rc = git_repository_open(&main_repo, common);
    if (rc)
        return fail_git(r, rc, AMP_DATAERR, AMP_CODE(repo_not_git), common);
    workdir = git_repository_workdir(main_repo);
    in.main = main_repo;
    AMP_CLOSE int from = workdir ? open(workdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    AMP_CLOSE int to = open(r->in.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    in.from = from;
    in.to = to;
    amp_buf_init(&text, TEXT_MAX);
    rc = 0;
    if (r->in.force && from >= 0 && to >= 0 &&
        faccessat(from, INCLUDE_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        AMP_CLOSE int fd = amp_file_open(from, INCLUDE_FILE, O_RDONLY | O_NOFOLLOW, 0, r->err);
        rc = fd < 0 ? -1 : amp_file_read(from, INCLUDE_FILE, TEXT_MAX, &text, r->err);
        if (rc == 0)
            rc = patterns_read(&in, &text);
        if (rc == 0)
            rc = tree_walk(&in, from, ".", "", 0);
    }
    amp_jw_member_int(&r->out, "copied", in.copied);
    amp_jw_member_int(&r->out, "bytes", in.bytes);
    amp_jw_member_int(&r->out, "skipped", in.skipped);
    /* Submodules of the new worktree, whose files nobody fetches here. */
    CLEANUP(git_repository_cleanup) git_repository *tree = NULL;
    int64_t submodules = 0;
    if (rc == 0 && git_repository_open(&tree, r->in.path) == 0 &&
        git_repository_index(&index, tree) == 0)
        for (size_t i = 0; i < git_index_entrycount(index); i++)
            submodules += git_index_get_byindex(index, i)->mode == GIT_FILEMODE_COMMIT;
    amp_jw_member_int(&r->out, "submodules", submodules);
    return rc;
}
