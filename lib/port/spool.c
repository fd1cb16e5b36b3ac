/*
 * spool:DIR — one file a message.
 *
 *   DIR/new/<name>   published, complete, synced
 *   DIR/cur/<name>   a consumer took it (rename from new)
 *   DIR/done/<name>  it is finished (rename from cur); the name is what later copies are known by,
 *                    so it stays for as long as the sender may repeat the message
 *
 * The name is a digest of consumer and message id, so a message that is delivered again after a
 * crash comes to the same name. A file only ever moves from new to cur to done; looking in that
 * order therefore finds it wherever it is, and link(2) refuses a name that is still in new. Between
 * looking and linking it could pass through all three, if another router published it meanwhile:
 * routers take a lock around both.
 */
#include "port/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "port/port.h"

#define LOCK_WAIT_MS 10000

static const char *const rooms[] = {"new", "cur", "done"};

void amp_spool_name(const char *consumer, struct amp_span id, struct amp_span line,
                    char out[AMP_SPOOL_NAME_MAX])
{
    char digest[AMP_SHA256_MAX], whole[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)64 << 20);
    /* A record without an id is known by its bytes. */
    amp_sha256_hex(id.n > 0 ? id : line, whole);
    amp_buf_str(&text, consumer, NULL);
    amp_buf_add(&text, "\n", 1, NULL);
    amp_buf_str(&text, whole, NULL);
    amp_sha256_hex(amp_buf_span(&text), digest);
    snprintf(out, AMP_SPOOL_NAME_MAX, "%.32s.json", digest);
}

int amp_spool_open(struct amp_spool *s, const char *path, struct amp_error *err)
{
    struct amp_spool made = {-1, -1};
    if (amp_mkdirs(path, 0700, err) < 0)
        return -1;
    made.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (made.dir < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the spool %s", path);
    for (int i = 0; i < 3; i++) {
        if (mkdirat(made.dir, rooms[i], 0700) < 0 && errno != EEXIST) {
            amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", path, rooms[i]);
            amp_spool_close(&made);
            return -1;
        }
    }
    made.lock = amp_file_open(made.dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600, NULL);
    if (made.lock < 0) {
        amp_fail_errno(err, AMP_CANTCREAT, "cannot make the lock of the spool %s", path);
        amp_spool_close(&made);
        return -1;
    }
    if (amp_fsync_dir(made.dir, ".", err) < 0) {
        amp_spool_close(&made);
        return -1;
    }
    *s = made;
    return 0;
}

void amp_spool_close(struct amp_spool *s)
{
    if (s->lock >= 0)
        close(s->lock);
    if (s->dir >= 0)
        close(s->dir);
    s->lock = s->dir = -1;
}

/* Whether the file holds line, or nothing any more: what is finished may be made empty. */
static int same(int fd, struct amp_span line)
{
    char part[16384];
    size_t at = 0;
    ssize_t n;
    while ((n = read(fd, part, sizeof(part))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        size_t left = line.n - at, here = (size_t)n < left ? (size_t)n : left;
        if (memcmp(part, line.p + at, here) != 0)
            return 0;
        at += here;
        if (here < (size_t)n)
            return 0;
    }
    return at == 0 || at == line.n;
}

/* 1 it is there, 0 it is not; another message of that name is an error. */
static int known(const struct amp_spool *s, const char *name, struct amp_span text,
                 struct amp_error *err)
{
    for (int i = 0; i < 3; i++) {
        char path[AMP_SPOOL_NAME_MAX + 8];
        snprintf(path, sizeof(path), "%s/%s", rooms[i], name);
        AMP_CLOSE int fd = openat(s->dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT)
            continue;
        int rc = fd < 0 ? -1 : same(fd, text);
        if (rc < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read %s in the spool", path);
        if (rc == 0)
            return amp_fail(err, AMP_NO, "duplicate_msg_id",
                            "%s in the spool is another message of the same id", path);
        return 1;
    }
    return 0;
}

int amp_spool_put(struct amp_spool *s, const char *name, struct amp_span line,
                  struct amp_error *err)
{
    char path[AMP_SPOOL_NAME_MAX + 8];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, line.n + 2);
    if (amp_buf_add(&text, line.p, line.n, err) < 0 || amp_buf_add(&text, "\n", 1, err) < 0)
        return -1;
    if (amp_lock(s->lock, LOCK_WAIT_MS, err) < 0)
        return -1;
    int rc = known(s, name, amp_buf_span(&text), err);
    if (rc == 0) {
        snprintf(path, sizeof(path), "new/%s", name);
        rc = amp_file_publish(s->dir, path, 0600, amp_buf_span(&text), err);
    }
    amp_unlock(s->lock);
    return rc;
}
