/*
 * The files of an inbox under DIR/run: the reader's lock, and the bell. The bell is a FIFO that the
 * reader holds open for reading and writing. A byte in it means that the state has changed.
 */
#include "message/delivery/inbox/bell.h"
#include "base/codes.h"
#include "message/delivery/inbox/private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#define PATH_LONGEST 4096

/* The path of a file of an agent. A name that is not safe as a file's is replaced by its digest. */
static int path_of(const char *dir, struct amp_span agent, const char *tail, char *out,
                   struct amp_error *err)
{
    char name[AMP_INBOX_AGENT_MAX + 1], digest[AMP_SHA256_MAX];
    if (amp_inbox_agent_check(agent, err) < 0)
        return -1;
    if (amp_id_is_safe(agent)) {
        amp_span_copy(agent, name, sizeof(name));
    } else {
        amp_sha256_hex(agent, digest);
        snprintf(name, sizeof(name), "=%.32s", digest); /* safe names have no "=" */
    }
    int n = snprintf(out, PATH_LONGEST, "%s/run/inbox.%s.%s", dir, name, tail);
    if (n < 0 || n >= PATH_LONGEST)
        return amp_fail(err, AMP_CANTCREAT, path_too_long,
                        "the state directory's path is too long");
    return 0;
}

/* Like path_of, but also makes the directory. */
static int path_make(const char *dir, struct amp_span agent, const char *tail, char *out,
                     struct amp_error *err)
{
    if (path_of(dir, agent, tail, out, err) < 0)
        return -1;
    char *slash = strrchr(out, '/');
    *slash = '\0';
    int rc = amp_mkdirs(out, 0700, err);
    *slash = '/';
    return rc;
}

int amp_inbox_lock(const char *dir, struct amp_span agent, int64_t timeout_ms, int *fd,
                   struct amp_error *err)
{
    char path[PATH_LONGEST];
    struct amp_error e;
    if (path_make(dir, agent, "lock", path, err) < 0)
        return -1;
    int f = amp_file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
    if (f < 0)
        return -1;
    if (amp_lock(f, timeout_ms, &e) == 0) {
        *fd = f;
        return 0;
    }
    close(f);
    if (!amp_code_is(e.code, lock_timeout)) {
        if (err)
            *err = e;
        return -1;
    }
    return amp_fail(err, AMP_TEMPFAIL, inbox_busy,
                    "another process hands over the messages of %.*s (--wait waits until it ends)",
                    (int)agent.n, agent.p);
}

bool amp_inbox_is_served(const char *dir, struct amp_span agent)
{
    char path[PATH_LONGEST];
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (path_of(dir, agent, "lock", path, NULL) < 0)
        return false;
    AMP_CLOSE int fd = amp_file_open(AT_FDCWD, path, O_RDWR | O_NOFOLLOW, 0, NULL);
    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

int amp_inbox_bell_open(const char *dir, struct amp_span agent, int *fd, struct amp_error *err)
{
    char path[PATH_LONGEST];
    struct stat st;
    if (path_make(dir, agent, "bell", path, err) < 0)
        return -1;
    if (mkfifo(path, 0600) < 0 && errno != EEXIST)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make the FIFO %s", path);
    int f = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (f < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", path);
    if (fstat(f, &st) < 0 || !S_ISFIFO(st.st_mode)) {
        close(f);
        return amp_fail(err, AMP_CANTCREAT, not_a_fifo, "%s is not a FIFO", path);
    }
    *fd = f;
    return 0;
}

void amp_inbox_bell_empty(int fd)
{
    char bytes[4096];
    while (read(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
        ;
}

void amp_inbox_ring(const char *dir, struct amp_span agent)
{
    char path[PATH_LONGEST];
    struct stat st;
    if (path_of(dir, agent, "bell", path, NULL) < 0)
        return;
    AMP_CLOSE int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    /* A full FIFO is readable already. */
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode) && write(fd, "", 1) < 0)
        errno = 0;
}
