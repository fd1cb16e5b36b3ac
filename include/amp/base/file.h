/* Files: atomic writes, safe opening, locks. */
#ifndef AMP_BASE_FILE_H
#define AMP_BASE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

/* Writes all of data; EINTR and short writes are handled; on a non-blocking descriptor waits. */
int amp_write_all(int fd, struct amp_span data, struct amp_error *err);
/* Opens a regular file with O_CLOEXEC. Never waits: anything else that has the name (a FIFO, a
 * device, a directory) is refused as "not_a_file" with errno EINVAL. mode counts with O_CREAT. */
int amp_file_open(int dirfd, const char *path, int flags, mode_t mode, struct amp_error *err);
/* Reads a regular file completely, at most max bytes ("file_too_large" past it). */
int amp_file_read(int dirfd, const char *path, size_t max, struct amp_buf *out,
                  struct amp_error *err);
/* The same for a path that a person gave, which may also be a pipe or a device: waits for its
 * writer. A signal that the program handles ends that: INTERRUPTED "interrupted". */
int amp_file_read_any(const char *path, size_t max, struct amp_buf *out, struct amp_error *err);
/* Replaces path: O_EXCL temporary beside it, write, fsync, close, rename, fsync of the directory.
 */
int amp_file_write_atomic(int dirfd, const char *path, mode_t mode, struct amp_span data,
                          struct amp_error *err);
/* The same, but path must not exist yet (published by link(2)); returns 1 when it existed. */
int amp_file_publish(int dirfd, const char *path, mode_t mode, struct amp_span data,
                     struct amp_error *err);
/* Syncs the directory path itself. */
int amp_fsync_dir(int dirfd, const char *path, struct amp_error *err);
/* mkdir -p; what is made gets the mode, what exists stays as it is. */
int amp_mkdirs(const char *path, mode_t mode, struct amp_error *err);
/* Opens relative to dirfd with openat2(RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS). -1 on failure. */
int amp_open_beneath(int dirfd, const char *path, int flags, mode_t mode, struct amp_error *err);
/* True on NFS, CIFS, FUSE, 9p and the like, where locks and fsync cannot be trusted. */
bool amp_fs_is_network(int fd);

/* Exclusive open-file-description lock on the whole file. timeout_ms < 0 waits for ever, 0 tries
 * once; TEMPFAIL "lock_timeout" when it passes. Released by amp_unlock or closing the fd. A wait
 * ends on INT and TERM, also where the caller blocks them: if the program handles the signal, its
 * handler runs and the answer is INTERRUPTED "interrupted". One thread may wait at a time. */
int amp_lock(int fd, int64_t timeout_ms, struct amp_error *err);
/* The same for readers, who share it; the fd is open for reading. */
int amp_lock_shared(int fd, int64_t timeout_ms, struct amp_error *err);
/* The program's flag of INT and TERM: once it is set no wait for a lock takes longer than 2 s. */
void amp_lock_stop(volatile const int *stop);
void amp_unlock(int fd);

/* The turnstile: two locks that give writers their turns in order (lock next, lock main, unlock
 * next). The fds are two files that the caller opened close-on-exec. crowd may be a word that all
 * of them share: while it is 0 nobody waits, and main is tried by itself. It is only a hint. */
struct amp_turnstile {
    int next, main;
    AMP_ATOMIC uint32_t *crowd;
    unsigned calm; /* turns of ours without a wait */
};
int amp_turnstile_enter(struct amp_turnstile *t, int64_t timeout_ms, struct amp_error *err);
void amp_turnstile_leave(struct amp_turnstile *t);

AMP_API_END

#endif
