/* Starts a person's editor and removes its file. */
#include "editor.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "cli/cli.h"

#define GRACE_MS 2000

/* A private directory: mkdtemp makes it with mode 0700. */
static int file_make(struct editor *e, struct amp_span text, struct amp_error *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR"), *other = getenv("TMPDIR");

    if (!base || *base != '/')
        base = other && *other == '/' ? other : "/tmp";
    if ((size_t)snprintf(e->dir, sizeof e->dir, "%s/hitl-prompt.XXXXXX", base) >= sizeof e->dir ||
        !mkdtemp(e->dir)) {
        amp_fail_errno(err, AMP_CANTCREAT, "cannot make a directory in %s", base);
        e->dir[0] = '\0';
        return -1;
    }
    snprintf(e->path, sizeof e->path, "%s/payload.json", e->dir);
    AMP_CLOSE int fd =
        amp_file_open(AT_FDCWD, e->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, err);
    struct stat st;
    if (fd < 0 || amp_write_all(fd, text, err) < 0)
        return -1;
    if (fstat(fd, &st) < 0)
        return amp_fail_errno(err, AMP_IOERR, "%s", e->path);
    e->written = st.st_mtim;
    return 0;
}

int editor_start(struct editor *e, struct terminal *t, struct amp_span text, struct amp_error *err)
{
    char command[4096];
    const char *program = getenv("VISUAL");

    if (!program || !*program)
        program = getenv("EDITOR");
    if (!program || !*program)
        program = "vi";
    if (!*e->dir && file_make(e, text, err) < 0)
        return -1;
    /* The variable may have arguments, so a shell splits it, as for other programs. The only
     * argument of ours is the path. */
    if ((size_t)snprintf(command, sizeof command, "%s \"$1\"", program) >= sizeof command)
        return amp_fail(err, AMP_UNAVAILABLE, command_not_found, "$EDITOR is too long");
    const char *argv[] = {"/bin/sh", "-c", command, "editor", e->path, NULL};
    const struct amp_child_spec spec = {
        .argv = argv, .fd_in = t->fd, .fd_out = t->fd, .fd_err = t->fd, .keep_group = true};
    /* The editor inherits the description of the terminal, which must block. */
    int flags = fcntl(t->fd, F_GETFL);
    fcntl(t->fd, F_SETFL, flags & ~O_NONBLOCK);
    terminal_lend(t);
    if (amp_child_start(&spec, &e->child, err) == 0) {
        e->runs = true;
        return 0;
    }
    fcntl(t->fd, F_SETFL, flags);
    terminal_reclaim(t);
    return -1;
}

static void terminal_back(struct terminal *t)
{
    int flags = fcntl(t->fd, F_GETFL);

    fcntl(t->fd, F_SETFL, flags | O_NONBLOCK);
    terminal_reclaim(t);
}

int editor_poll(struct editor *e, struct terminal *t, struct amp_error *err)
{
    struct amp_child_end end;
    int rc = amp_child_poll(&e->child, &end, err);

    if (rc == 0)
        return 0;
    e->runs = false;
    terminal_back(t);
    if (rc < 0)
        return -1;
    if (end.exited && end.exit_code == 0)
        return 1;
    return amp_fail(err, AMP_UNAVAILABLE, editor_failed, "the editor ended with %s %d",
                    end.exited ? "status" : "signal", end.exited ? end.exit_code : end.signal);
}

int editor_read(const struct editor *e, size_t max, struct amp_buf *out, struct amp_error *err)
{
    amp_buf_reset(out);
    return amp_file_read(AT_FDCWD, e->path, max, out, err);
}

/* Removes the directory with what the editor left in it, such as backups. */
static void directory_remove(const char *path)
{
    AMP_DIR DIR *dir = amp_dir_open(AT_FDCWD, path);
    const struct dirent *entry;

    while (dir && (entry = readdir(dir)))
        unlinkat(dirfd(dir), entry->d_name, 0);
    if (rmdir(path) < 0)
        amp_warn("%s is not removed, because the editor left a directory in it", path);
}

static void program_end(struct editor *e, struct terminal *t)
{
    struct amp_child_end end;
    struct amp_error err;

    if (!e->runs)
        return;
    amp_child_kill_tree(&e->child, SIGTERM);
    amp_child_wait(&e->child, GRACE_MS, GRACE_MS, NULL, &end, &err);
    e->runs = false;
    terminal_back(t);
}

void editor_end(struct editor *e, struct terminal *t)
{
    program_end(e, t);
    if (*e->dir)
        directory_remove(e->dir);
    e->dir[0] = e->path[0] = '\0';
}

/* Whether the file was saved, or another one is beside it, as an editor's swap file. */
static bool has_work(const struct editor *e)
{
    struct stat st;
    unsigned n = 0;
    AMP_DIR DIR *dir = amp_dir_open(AT_FDCWD, e->dir);

    while (dir && readdir(dir))
        n++;
    return n > 3 || (stat(e->path, &st) == 0 && (st.st_mtim.tv_sec != e->written.tv_sec ||
                                                 st.st_mtim.tv_nsec != e->written.tv_nsec));
}

void editor_abandon(struct editor *e, struct terminal *t, char kept[300])
{
    kept[0] = '\0';
    program_end(e, t);
    if (*e->dir && has_work(e)) {
        memcpy(kept, e->path, sizeof e->path);
        e->dir[0] = e->path[0] = '\0';
    }
    editor_end(e, t);
}
