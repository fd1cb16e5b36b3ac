/* Changes of one file, and what makes them durable: see transaction.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "worktree/snapshot/transaction.h"

/* Files and directories that are synced one by one; with more, the file systems are. */
enum { SYNCS_MOST = 64 };

int amp_restore_file_sync(struct amp_restore *r, int fd)
{
    if (r->syncs > SYNCS_MOST)
        return 0;
    return ++r->syncs > SYNCS_MOST ? 0 : fsync(fd);
}

int amp_restore_dir_sync(struct amp_restore *r, int dir)
{
    if (r->syncs > SYNCS_MOST || ++r->syncs > SYNCS_MOST)
        return 0;
    AMP_CLOSE int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd < 0 ? 0 : fsync(fd); /* not readable: its owner's matter */
}

int amp_restore_all_sync(struct amp_restore *r)
{
    if (r->syncs <= SYNCS_MOST)
        return 0;
    for (unsigned i = 0; i < r->n_stages; i++)
        if (syncfs(r->stage[i].fd) < 0)
            return -1;
    return syncfs(r->s.root);
}

int amp_restore_move(int from, const char *name, int to, const char *as)
{
    struct stat st;
    int rc = renameat2(from, name, to, as, RENAME_NOREPLACE);
    if (rc == 0 || errno != EINVAL)
        return rc;
    if (fstatat(to, as, &st, AT_SYMLINK_NOFOLLOW) == 0)
        errno = EEXIST;
    return errno == ENOENT ? renameat(from, name, to, as) : -1;
}

int amp_restore_mode(int dir, const char *name, unsigned mode)
{
    struct stat st;
    char proc[64];
    AMP_CLOSE int fd = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -1;
    if (S_ISLNK(st.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    return chmod(proc, mode);
}

int amp_restore_time(int dir, const char *name, struct timespec mtime)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime};
    return utimensat(dir, name, times, AT_SYMLINK_NOFOLLOW);
}

int amp_restore_attrs(int dir, const char *name, const char *attrs)
{
    AMP_CLOSE int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -1 : amp_attrs_set(fd, attrs);
}

int amp_restore_owner(int dir, const char *name, uid_t uid, gid_t gid)
{
    if (fchownat(dir, name, uid, gid, AT_SYMLINK_NOFOLLOW) == 0 ||
        fchownat(dir, name, (uid_t)-1, gid, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    /* Another user's, or one that this user namespace does not have. */
    return errno == EPERM || errno == EINVAL ? 0 : -1;
}
