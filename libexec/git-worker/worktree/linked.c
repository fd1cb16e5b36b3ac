/*
 * Linked worktrees on disk, in git's own layout: <common>/worktrees/NAME has the files gitdir,
 * commondir and HEAD, and the agent's marker amp-agent; the worktree has the file .git. This file
 * writes them itself because the library cannot create a detached worktree, and because the marker
 * must exist before the rest. An unfinished worktree is locked with a reason of its own; the next
 * call clears what a crash left in that state.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "../worker.h"
#include "base/codes.h"
#include "work/git/push.h"
#include "work/git/snapshot/restore.h"

#define MAKING       "amp: being made\n"
#define NAMES_MAX    1000
#define SMALL_FILE   8192
#define LOCK_TRIES   400
#define LOCK_WAIT_NS (25 * 1000 * 1000)

/* Creating, removing and listing worktrees exclude each other: the worker of a client that was
 * killed may still run when the next one starts. The lock is on the directory. */
int linked_lock(struct request *r)
{
    const struct timespec moment = {0, LOCK_WAIT_NS};
    const char *common = git_repository_commondir(r->repo);
    int fd = open(common, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", common);
    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (i == LOCK_TRIES || (errno != EWOULDBLOCK && errno != EINTR)) {
            close(fd);
            return amp_fail(r->err, AMP_TEMPFAIL, worktrees_busy,
                            "%s: another process creates or removes worktrees", common);
        }
        nanosleep(&moment, NULL);
    }
    return fd;
}

/* The text of a small file without its line end; false when there is none. */
static bool read_small(int dirfd, const char *name, char *out, size_t size)
{
    char text[SMALL_FILE];
    AMP_CLOSE int fd = amp_file_open(dirfd, name, O_RDONLY | O_NOFOLLOW, 0, NULL);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text);
    if (n < 0 || n == sizeof text)
        return false;
    while (n && text[n - 1] == '\n')
        n--;
    return amp_span_copy((struct amp_span){text, (size_t)n}, out, size);
}

bool same_dir(int a_fd, const char *a, int b_fd, const char *b)
{
    struct stat x, y;
    return fstatat(a_fd, a, &x, 0) == 0 && fstatat(b_fd, b, &y, 0) == 0 && S_ISDIR(x.st_mode) &&
           x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* Checks that the .git of the directory at path leads back to gitdir. The path in an entry proves
 * nothing: every writer of the repository can change it, and a copied repository names the
 * worktrees of the original. The directory belongs to the entry only if it has a regular file .git
 * that leads back. */
static void linked_inspect(struct linked *w)
{
    char text[SMALL_FILE];
    struct stat st;
    w->missing = w->foreign = w->dangling = false;
    AMP_CLOSE int fd = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) != 0) {
        w->missing = errno == ENOENT;
        w->foreign = !w->missing;
        return;
    }
    const size_t key = strlen("gitdir: ");
    bool file = S_ISREG(st.st_mode) && read_small(fd, ".git", text, sizeof text) &&
                strncmp(text, "gitdir: ", key) == 0;
    w->foreign = !file || !same_dir(fd, text + key, AT_FDCWD, w->gitdir);
    w->dangling = file && faccessat(fd, text + key, F_OK, 0) != 0;
}

static bool linked_read(const char *common, const char *name, struct linked *w)
{
    char text[SMALL_FILE];
    memset(w, 0, sizeof *w);
    int n = snprintf(w->gitdir, sizeof w->gitdir, "%sworktrees/%s", common, name);
    if (n < 0 || (size_t)n >= sizeof w->gitdir || !amp_span_copy(amp_span_str(name), w->name, 256))
        return false;
    AMP_CLOSE int fd = open(w->gitdir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    w->locked = faccessat(fd, "locked", F_OK, 0) == 0;
    w->unfinished = w->locked && read_small(fd, "locked", text, sizeof text) &&
                    strncmp(text, MAKING, strlen(MAKING) - 1) == 0;
    if (!read_small(fd, "gitdir", text, sizeof text))
        return w->unfinished; /* the crash was before its path was written */
    size_t len = strlen(text);
    if (len < 6 || text[0] != '/' || strcmp(text + len - 5, "/.git") != 0)
        return false;
    text[len - 5] = '\0';
    return amp_span_copy(amp_span_str(text), w->path, sizeof w->path);
}

/* Visits the entries; inspect: looks at their directories, too. */
static int entries_visit(git_repository *repo, bool inspect, linked_fn fn, void *ctx)
{
    char dir[PATH_MAX];
    const char *common = git_repository_commondir(repo);
    int n = snprintf(dir, sizeof dir, "%sworktrees", common), rc = 0;
    AMP_DIR DIR *d = n > 0 && (size_t)n < sizeof dir ? amp_dir_open(AT_FDCWD, dir) : NULL;
    for (struct dirent *e; d && rc == 0 && (e = readdir(d));) {
        struct linked w;
        if (e->d_name[0] == '.' || !linked_read(common, e->d_name, &w))
            continue;
        if (inspect && w.path[0])
            linked_inspect(&w);
        rc = fn(ctx, &w);
    }
    return rc;
}

int linked_each(git_repository *repo, linked_fn fn, void *ctx)
{
    return entries_visit(repo, true, fn, ctx);
}

/* Removes name and everything in it, except the entry `keep` at the top. Symbolic links are
 * removed, not followed, also one that takes a directory's place meanwhile. Other file systems are
 * left alone. Entries that cannot be removed stay. */
void linked_remove_tree(int parent, const char *name, dev_t dev, const char *keep)
{
    struct amp_error none;
    struct stat st;
    AMP_DIR DIR *d = amp_dir_open(parent, name);
    if (!d) {
        unlinkat(parent, name, 0);
        return;
    }
    int fd = dirfd(d);
    if (fstat(fd, &st) != 0 || st.st_dev != dev)
        return;
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            (!keep || strcmp(e->d_name, keep) != 0))
            (void)!amp_restore_remove_on(fd, e->d_name, dev, &none);
    if (keep && faccessat(fd, keep, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        unlinkat(fd, keep, 0);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Removes the temporary file of a .git whose writer was killed, then the empty directory. */
static void remove_unfinished(const char *path)
{
    static const char head[] = "..git.";
    AMP_DIR DIR *d = amp_dir_open(AT_FDCWD, path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strncmp(e->d_name, head, sizeof head - 1) == 0)
            unlinkat(dirfd(d), e->d_name, 0);
    rmdir(path);
}

/* Removes the files first, .git last, so that an interrupted removal can be repeated: an entry
 * without files is cleared later, but files without an entry would stay. Files at a path that does
 * not lead back to the entry are not touched. */
void linked_remove(const struct linked *w, bool with_files)
{
    struct linked now = *w;
    struct stat st;
    amp_push_end(w->gitdir, NULL);
    if (with_files && w->path[0]) {
        linked_inspect(&now);
        if (!now.missing && !now.foreign && lstat(w->path, &st) == 0)
            linked_remove_tree(AT_FDCWD, w->path, st.st_dev, ".git");
        else if (now.missing && w->unfinished)
            remove_unfinished(w->path);
        else if (now.missing)
            rmdir(w->path);
    }
    if (w->gitdir[0] && lstat(w->gitdir, &st) == 0)
        linked_remove_tree(AT_FDCWD, w->gitdir, st.st_dev, NULL);
}

static int clear_stale(void *ctx, const struct linked *entry)
{
    struct linked w = *entry;
    if (w.path[0] && strcmp(w.path, ctx) != 0)
        return 0;
    if (w.path[0])
        linked_inspect(&w);
    /* Under the lock no other process works on an unfinished one; without a path it has no files.
     */
    if (w.unfinished && !w.foreign)
        linked_remove(&w, true);
    else if (w.path[0] && w.missing && !w.locked)
        linked_remove(&w, false);
    return 0;
}

/* The library's own function fails if any worktree is unfinished. */
bool linked_head_is(const char *gitdir, const char *ref)
{
    char text[SMALL_FILE];
    AMP_CLOSE int fd = open(gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && read_small(fd, "HEAD", text, sizeof text) && strncmp(text, "ref: ", 5) == 0 &&
           strcmp(text + 5, ref) == 0;
}

/* A worktree whose .git leads to another repository holds no branch here. One whose .git leads
 * nowhere (the repository was moved) may be repaired, and keeps its branch until then. */
static int linked_holds(void *ctx, const struct linked *entry)
{
    struct linked w = *entry;
    if (w.unfinished || !linked_head_is(w.gitdir, ctx))
        return 0;
    if (w.path[0])
        linked_inspect(&w);
    return (!w.foreign || w.dangling) && (!w.missing || w.locked);
}

bool linked_checked_out(git_repository *repo, const char *ref)
{
    char copy[1024];
    return !amp_span_copy(amp_span_str(ref), copy, sizeof copy) ||
           (linked_head_is(git_repository_commondir(repo), ref) && !git_repository_is_bare(repo)) ||
           entries_visit(repo, false, linked_holds, copy) != 0;
}

void linked_clear(git_repository *repo, const char *path)
{
    char copy[PATH_MAX];
    if (amp_span_copy(amp_span_str(path), copy, sizeof copy))
        entries_visit(repo, false, clear_stale, copy);
}

static int claim_name(struct request *r, struct linked *w)
{
    const char *common = git_repository_commondir(r->repo), *base = strrchr(r->in.path, '/') + 1;
    char dir[PATH_MAX];
    snprintf(dir, sizeof dir, "%sworktrees", common);
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", dir);
    for (int i = 0; i < NAMES_MAX; i++) {
        char tail[16] = "";
        if (i)
            snprintf(tail, sizeof tail, "%d", i);
        int n = snprintf(w->gitdir, sizeof w->gitdir, "%sworktrees/%s%s", common, base, tail);
        snprintf(w->name, sizeof w->name, "%.200s%s", base, tail);
        if (n < 0 || (size_t)n >= sizeof w->gitdir)
            break;
        if (mkdir(w->gitdir, 0777) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    int saved = errno;
    w->gitdir[0] = '\0';
    errno = saved;
    return amp_fail_errno(r->err, AMP_CANTCREAT, "cannot make a worktree's directory in %s", dir);
}

/* Writes a small file without a wait for the disk: its data is under way when the directory is
 * synced. */
static int file_put(struct request *r, int fd, const char *name, const char *prefix,
                    const char *value)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_FILE);
    AMP_CLOSE int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", name);
    if (amp_buf_fmt(&b, r->err, "%s%s", prefix, value) < 0 ||
        amp_write_all(file, amp_buf_span(&b), r->err) < 0)
        return -1;
    sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
    return 0;
}

/* Replaces a file that other processes may read meanwhile. */
static int file_swap(struct request *r, int fd, const char *name, const char *prefix,
                     const char *value)
{
    char temporary[32];
    snprintf(temporary, sizeof temporary, ".%s.tmp", name);
    if (file_put(r, fd, temporary, prefix, value) < 0)
        return -1;
    if (renameat(fd, temporary, fd, name) != 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", name);
    return 0;
}

static int marker_put(struct request *r, int fd)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, SMALL_FILE);
    return amp_marker_format(r->in.agent, r->in.branch, r->in.role, &b, r->err) < 0 ||
                   amp_buf_add(&b, "", 1, r->err) < 0 ||
                   file_put(r, fd, AMP_AGENT_MARKER, "", b.data) < 0
               ? -1
               : 0;
}

/* One sync for all files; after a loss of power some may be empty. An empty marker is an agent's,
 * too. */
static int linked_write(struct request *r, const struct linked *w, const char *head)
{
    char dot_git[PATH_MAX + 8], line[PATH_MAX + 16];
    AMP_CLOSE int fd = open(w->gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", w->gitdir);
    snprintf(dot_git, sizeof dot_git, "%s/.git\n", w->path);
    snprintf(line, sizeof line, "%s\n", head);
    if (file_swap(r, fd, "locked", "", MAKING) < 0 || file_swap(r, fd, "gitdir", "", dot_git) < 0 ||
        file_put(r, fd, "commondir", "", "../..\n") < 0 || (r->in.agent && marker_put(r, fd) < 0) ||
        file_swap(r, fd, "HEAD", "", line) < 0 || amp_mkdirs(w->path, 0777, r->err) < 0)
        return -1;
    AMP_CLOSE int tree = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tree < 0)
        return amp_fail_errno(r->err, AMP_CANTCREAT, "%s", w->path);
    snprintf(line, sizeof line, "%s\n", w->gitdir);
    if (file_swap(r, tree, ".git", "gitdir: ", line) < 0)
        return -1;
    return fsync(fd) == 0 ? 0 : amp_fail_errno(r->err, AMP_IOERR, "%s", w->gitdir);
}

static bool is_empty_or_absent(const char *path)
{
    AMP_DIR DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT;
    bool empty = true;
    for (struct dirent *e; empty && (e = readdir(d));)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    return empty;
}

int linked_make(struct request *r, const char *head, struct linked *out)
{
    const char *path = r->in.path;
    memset(out, 0, sizeof *out);
    out->unfinished = true;
    if (path[0] != '/')
        return amp_fail(r->err, AMP_USAGE, bad_path, "%s: not an absolute path", path);
    if (!is_empty_or_absent(path))
        return amp_fail(r->err, AMP_CANTCREAT, worktree_exists,
                        "%s: exists and is not an empty directory", path);
    if (!amp_span_copy(amp_span_str(path), out->path, sizeof out->path - 8) || claim_name(r, out))
        return r->err->code[0] ? -1 : amp_fail(r->err, AMP_CANTCREAT, path_too_long, "%s", path);
    if (linked_write(r, out, head)) {
        linked_remove(out, true);
        return -1;
    }
    return 0;
}

int linked_finish(struct request *r, const struct linked *w)
{
    AMP_CLOSE int fd = open(w->gitdir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || unlinkat(fd, "locked", 0) != 0)
        return amp_fail_errno(r->err, AMP_IOERR, "%s", w->gitdir);
    return 0;
}
