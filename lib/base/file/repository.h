/* Finds a git repository from its files, without git and without a library. */
#ifndef AMP_BASE_FILE_REPOSITORY_H
#define AMP_BASE_FILE_REPOSITORY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <amp/base/error.h>

struct amp_repository {
    bool found;
    char top[PATH_MAX];    /* of the working tree; "" for a bare repository */
    char gitdir[PATH_MAX]; /* real paths; of a linked worktree they differ */
    char common[PATH_MAX];
};

/* Looks in dir, an absolute path, and in its parents, as git does. 0 also if there is none.
 * DATAERR repo_not_git: a .git file or commondir is malformed, or names a missing directory. */
int amp_repository_find(const char *dir, struct amp_repository *out, struct amp_error *err);

/* The text of a small file below dir without its prefix and the line feeds at its end; a path in it
 * may have others. false: there is no such file, or it is too large. */
bool amp_repository_text(const char *dir, const char *name, const char *prefix, char *out,
                         size_t size);

/* For writing a file in COMMON/amp, which is made if it is missing: opens the directory (*dir) and
 * takes the lock of the file named lock. The lock ends when its descriptor (*fd) is closed; the
 * caller closes both, also after a failure, so they must be -1 or open before. USAGE bad_path: the
 * path is too long; IOERR; TEMPFAIL: another process has the lock for all of wait_ms. */
int amp_repository_lock(const char *common, const char *lock, int64_t wait_ms, int *dir, int *fd,
                        struct amp_error *err);

/* Adds a pattern to COMMON/info/exclude, unless the file has that line. Links, special files and
 * files with another name are refused: NOPERM not_a_file; IOERR; CANTCREAT. */
int amp_repository_exclude(const char *common, const char *pattern, struct amp_error *err);

#endif
