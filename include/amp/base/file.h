/* Files: atomic writes, safe opening, locks. */
#ifndef AMP_BASE_FILE_H
#define AMP_BASE_FILE_H

#include <dirent.h>
#include <stdbool.h>
#include <sys/types.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

/* Writes all of data. Handles EINTR and short writes; waits if the descriptor is non-blocking. */
int amp_write_all(int fd, struct amp_span data, struct amp_error *err);
/* Opens a regular file with O_CLOEXEC, without waiting. A FIFO, a device or a directory is refused
 * as "not_a_file" with errno EINVAL. mode is used with O_CREAT only. */
int amp_file_open(int dirfd, const char *path, int flags, mode_t mode, struct amp_error *err);
/* Reads a complete regular file of at most max bytes (otherwise "file_too_large"). */
int amp_file_read(int dirfd, const char *path, size_t max, struct amp_buf *out,
                  struct amp_error *err);
/* Does the same for a path from a person, which may also be a pipe, a socket or a device, and "-"
 * for standard input, whatever that is: waits for its writer. A handled signal ends the wait:
 * INTERRUPTED "interrupted". */
int amp_file_read_any(const char *path, size_t max, struct amp_buf *out, struct amp_error *err);
/* Replaces path: writes and syncs a temporary file (O_EXCL) in the same directory, renames it and
 * syncs the directory. */
int amp_file_write_atomic(int dirfd, const char *path, mode_t mode, struct amp_span data,
                          struct amp_error *err);
/* Creates path, which must not exist, in the same way (with link(2)); returns 1 if it exists. */
int amp_file_publish(int dirfd, const char *path, mode_t mode, struct amp_span data,
                     struct amp_error *err);
/* Syncs the directory path itself. */
int amp_fsync_dir(int dirfd, const char *path, struct amp_error *err);
/* Opens a directory, but not through a symbolic link. Returns NULL with errno on failure. */
DIR *amp_dir_open(int dirfd, const char *path);
/* Cleanup attribute for an open directory; NULL is none. */
void amp_auto_closedir(DIR **dir);
#define AMP_DIR __attribute__((cleanup(amp_auto_closedir)))
/* mkdir -p. New directories get the mode; existing ones are unchanged. */
int amp_mkdirs(const char *path, mode_t mode, struct amp_error *err);
/* Opens relative to dirfd with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS). -1 on failure. */
int amp_open_beneath(int dirfd, const char *path, int flags, mode_t mode, struct amp_error *err);
/* True on NFS, CIFS, FUSE, 9p and the like, where locks and fsync cannot be trusted. */
bool amp_fs_is_network(int fd);

/* Takes an exclusive open-file-description lock on the complete file. timeout_ms < 0 waits without
 * limit, 0 tries once; TEMPFAIL "lock_timeout" after it. amp_unlock or closing the fd releases the
 * lock. INT and TERM end a wait, even if the caller blocks them: if the program handles the signal,
 * its handler runs and the function fails with INTERRUPTED "interrupted". Only one thread may wait
 * at a time. */
int amp_lock(int fd, int64_t timeout_ms, struct amp_error *err);
/* Takes a shared lock. The fd is open for reading. */
int amp_lock_shared(int fd, int64_t timeout_ms, struct amp_error *err);
/* Sets the program's flag for INT and TERM. After the flag is set, a wait for a lock ends within
 * 2 s. */
void amp_lock_stop(volatile const int *stop);
void amp_unlock(int fd);

/* The turnstile: two locks that give writers their turns in order (lock next, lock main, unlock
 * next). The fds are two files that the caller opened close-on-exec. crowd may point to a word that
 * all writers share. While it is 0, no writer waits, and only main is locked. It is only a hint. */
struct amp_turnstile {
    int next, main;
    AMP_ATOMIC uint32_t *crowd;
    unsigned calm; /* this writer's turns in a row without a wait */
};
int amp_turnstile_enter(struct amp_turnstile *t, int64_t timeout_ms, struct amp_error *err);
void amp_turnstile_leave(struct amp_turnstile *t);

AMP_API_END

#endif
