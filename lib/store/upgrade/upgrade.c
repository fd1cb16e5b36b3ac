/*
 * Converting a log of format 1 (amp-ack repair --upgrade).
 *
 * Under main, all segments are converted into the directory log.new and synced. Then one rename
 * exchanges the two directories: a crash, kill or full disk before it leaves the old log, after it
 * there is the new one. Frames keep their numbers, so cursors, pins and references to lines stay
 * valid.
 *
 * A process of the earlier build may still have the old log open. So the file FAILED is first
 * created in the old directory, which stops that process. The lock files are the same files in both
 * directories, so two processes never hold main in different logs.
 *
 * Records with a new form are converted afterwards, in the new log, by ordinary updates. The file
 * UPGRADING is in the new log until that is done; no other process uses the log until then.
 */
#include "store/upgrade/format1.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENT_MAX = 2000 * 1024 * 1024 };
#define NEW  "log.new"
#define KEPT "log.format-1"

struct upgrade {
    struct amp_store *s;
    struct amp_format1 *from;
    struct amp_buf new; /* a segment's bytes */
    struct amp_pos was; /* after the last frame that was read */
    uint64_t sum;       /* of the last frame that was written */
    uint64_t frames;
    int newfd;
};

/* ---- reading ---- */

/* What ended the scan of a segment before its end: a torn tail of the last one (no later frame is
 * intact) returns 0, damage fails. */
static int segment_judge(struct upgrade *u, struct amp_error *err)
{
    AMP_BUF struct amp_buf bytes = {0};
    struct amp_frame_head h;
    char name[32];
    amp_buf_init(&bytes, SEGMENT_MAX);
    amp_log_name(u->was.seg, name);
    if (amp_file_read(u->s->logfd, name, SEGMENT_MAX, &bytes, err) < 0)
        return -1;
    const char *p = bytes.data + u->was.off, *end = bytes.data + bytes.len;
    if (p >= end)
        return amp_log_damaged(&u->was, "frames are missing; let the earlier build repair it first",
                               err);
    bool torn = u->was.seg == u->s->log.last;
    while (torn && (p = memchr(p, '\n', (size_t)(end - p)))) {
        p++;
        torn = !amp_frame_check(1, p, (size_t)(end - p), &h);
    }
    return torn ? 0 : amp_log_damaged(&u->was, "let the earlier build repair it first", err);
}

static int segment_scan(struct upgrade *u, amp_scan_fn fn, struct amp_error *err)
{
    bool ends;
    if (amp_log_scan_segment(&u->s->log, &u->was, &ends, fn, u, err) < 0)
        return -1;
    return ends ? 0 : segment_judge(u, err);
}

static int frame_learn(void *ctx, const struct amp_frame_head *h, struct amp_span frame,
                       const struct amp_pos *after, struct amp_error *err)
{
    struct upgrade *u = ctx;
    return amp_format1_learn(u->from, frame, h, err);
}

static int frame_write(void *ctx, const struct amp_frame_head *h, struct amp_span frame,
                       const struct amp_pos *after, struct amp_error *err)
{
    struct upgrade *u = ctx;
    struct amp_frame f;
    if (amp_format1_convert(u->from, frame, h, &f, err) < 0)
        return -1;
    if (u->frames++)
        f.head.prev = u->sum;
    if (amp_frame_encode(&f, NULL, &u->new, err) < 0)
        return -1;
    u->sum = f.head.sum;
    return 0;
}

/* ---- writing ---- */

/* Removes a directory beside the log, and the files in it. */
static int dir_remove(int parent, const char *name, struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(parent, name);
    if (!d)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "cannot read %s", name);
    for (struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    return unlinkat(parent, name, AT_REMOVEDIR) != 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot remove %s", name)
               : 0;
}

static int log_write(struct upgrade *u, struct amp_error *err)
{
    struct amp_log *l = &u->s->log;
    static const char *const locks[] = {"main.lock", "next.lock"};
    u->was.seg = l->first;
    for (; u->was.seg <= l->last; amp_pos_next_segment(&u->was))
        if (segment_scan(u, frame_learn, err) < 0)
            return -1;
    u->was = (struct amp_pos){.seg = l->first};
    for (; u->was.seg <= l->last; amp_pos_next_segment(&u->was)) {
        char name[32];
        amp_buf_reset(&u->new);
        amp_log_name(u->was.seg, name);
        if (segment_scan(u, frame_write, err) < 0 ||
            amp_file_write_atomic(u->newfd, name, 0600, amp_buf_span(&u->new), err) < 0)
            return -1;
    }
    for (int i = 0; i < 2; i++)
        if (linkat(u->s->logfd, locks[i], u->newfd, locks[i], 0) != 0)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot link %s/" NEW "/%s", u->s->dir,
                                  locks[i]);
    if (amp_file_write_atomic(u->newfd, AMP_LOG_UNFINISHED, 0600, AMP_SPAN(""), err) < 0)
        return -1;
    return fsync(u->newfd) != 0 || fsync(u->s->dirfd) != 0
               ? amp_fail_errno(err, AMP_IOERR, "cannot sync %s/" NEW, u->s->dir)
               : 0;
}

/* Exchanges the new log and the old one. */
static int logs_exchange(struct upgrade *u, struct amp_error *err)
{
    struct amp_store *s = u->s;
    bool failed = faccessat(s->logfd, "FAILED", F_OK, 0) == 0; /* a write, before */
    if (!failed &&
        amp_file_write_atomic(s->logfd, "FAILED", 0600,
                              AMP_SPAN("this log was converted to another format\n"), err) < 0)
        return -1;
    if (renameat2(s->dirfd, "log", s->dirfd, NEW, RENAME_EXCHANGE) != 0) {
        amp_fail_errno(err, AMP_IOERR, "cannot exchange %s/log and " NEW, s->dir);
        if (!failed)
            unlinkat(s->logfd, "FAILED", 0);
        return -1;
    }
    return fsync(s->dirfd) != 0 ? amp_fail_errno(err, AMP_IOERR, "cannot sync %s", s->dir) : 0;
}

/* Keeps the old log, which is in log.new after the exchange, or removes an incomplete log.new. */
static int old_keep(struct amp_store *s, struct amp_buf *said, struct amp_error *err)
{
    if (faccessat(s->dirfd, NEW "/FAILED", F_OK, 0) != 0)
        return dir_remove(s->dirfd, NEW, err);
    if (renameat2(s->dirfd, NEW, s->dirfd, KEPT, RENAME_NOREPLACE) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot rename %s/" NEW, s->dir);
    return amp_buf_fmt(said, err, "the former log is kept in %s/" KEPT "\n", s->dir);
}

static int log_convert(struct amp_store *s, struct amp_buf *said, struct amp_error *err)
{
    struct upgrade u = {.s = s, .newfd = -1};
    if (faccessat(s->dirfd, KEPT, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        errno = EEXIST;
        return amp_fail_errno(err, AMP_CANTCREAT,
                              "cannot keep the former log as %s/" KEPT ", move that away first",
                              s->dir);
    }
    if (dir_remove(s->dirfd, NEW, err) < 0)
        return -1;
    if (mkdirat(s->dirfd, NEW, 0700) != 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/" NEW, s->dir);
    amp_buf_init(&u.new, SEGMENT_MAX);
    s->log.format = 1;
    u.from = amp_format1_new(s, err);
    u.newfd = openat(s->dirfd, NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int rc = u.newfd < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot open %s/" NEW, s->dir) : 0;
    if (rc == 0)
        rc = u.from ? log_write(&u, err) : -1;
    if (rc == 0)
        rc = logs_exchange(&u, err);
    amp_format1_free(u.from);
    amp_buf_release(&u.new);
    amp_auto_close(&u.newfd);
    if (rc < 0) {
        /* Unless the logs were exchanged, this is only a copy. */
        if (faccessat(s->dirfd, NEW "/FAILED", F_OK, 0) != 0)
            dir_remove(s->dirfd, NEW, NULL);
        return -1;
    }
    return amp_buf_fmt(said, err, "the log has format %d now: %" PRIu64 " frames\n",
                       AMP_FRAME_FORMAT, u.frames);
}

enum upgrade_step { DONE, RECORDS_LEFT, LOG_REPLACED, UPGRADE_FAILED = -1 };

/* Under main. LOG_REPLACED: another process exchanged the log before this one had the lock. */
static enum upgrade_step log_upgrade(struct amp_store *s, struct amp_buf *said,
                                     struct amp_error *err)
{
    struct stat ours, there;
    uint32_t format = 0;
    bool unfinished;
    if (fstat(s->logfd, &ours) != 0 || fstatat(s->dirfd, "log", &there, 0) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat %s/log", s->dir), UPGRADE_FAILED;
    if (ours.st_ino != there.st_ino || ours.st_dev != there.st_dev)
        return LOG_REPLACED;
    if (amp_log_list_any(&s->log, &format, &unfinished, err) < 0)
        return UPGRADE_FAILED;
    if (format > AMP_FRAME_FORMAT)
        return amp_log_list(&s->log, err), UPGRADE_FAILED;
    if (format == 1 && log_convert(s, said, err) < 0)
        return UPGRADE_FAILED;
    if (old_keep(s, said, err) < 0)
        return UPGRADE_FAILED;
    if (format == 1 || unfinished)
        return RECORDS_LEFT;
    return amp_buf_fmt(said, err, "the log has format %d already\n", AMP_FRAME_FORMAT) < 0
               ? UPGRADE_FAILED
               : DONE;
}

/* Locks the file UPGRADING until *fd is closed, because one process converts the records. 1:
 * locked; 0: they are converted already. */
static int records_lock(const struct amp_store *s, int *fd, struct amp_error *err)
{
    *fd = openat(s->logfd, AMP_LOG_UNFINISHED, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0)
        return errno == ENOENT ? 0
                               : amp_fail_errno(err, AMP_IOERR, "cannot open %s/log/%s", s->dir,
                                                AMP_LOG_UNFINISHED);
    if (amp_lock(*fd, -1, err) < 0)
        return -1;
    return faccessat(s->logfd, AMP_LOG_UNFINISHED, F_OK, 0) == 0;
}

static int records_convert(const char *dir, const struct amp_store_options *opt,
                           amp_store_upgrade_fn fn, struct amp_buf *said, struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    struct amp_store *s;
    if (amp_store_open_failed(dir, opt, &s, err) < 0)
        return -1;
    int rc = records_lock(s, &lock, err);
    if (rc <= 0) {
        amp_store_close(s);
        return rc;
    }
    if (faccessat(s->logfd, "FAILED", F_OK, 0) == 0) { /* an earlier attempt could not write */
        amp_store_close(s);
        if (amp_store_repair(dir, said, err) < 0 || amp_store_open_failed(dir, opt, &s, err) < 0)
            return -1;
    }
    s->log.upgrades = true;
    rc = fn(s, err) < 0 ? -1 : amp_store_sync(s, err);
    if (rc == 0 && unlinkat(s->logfd, AMP_LOG_UNFINISHED, 0) != 0 && errno != ENOENT)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot remove %s/log/" AMP_LOG_UNFINISHED, dir);
    if (rc == 0 && fsync(s->logfd) != 0)
        rc = amp_fail_errno(err, AMP_IOERR, "cannot sync %s/log", dir);
    amp_store_close(s);
    return rc;
}

int amp_store_upgrade(const char *dir, amp_store_upgrade_fn fn, struct amp_buf *said,
                      struct amp_error *err)
{
    struct amp_store_options opt = {.lock_timeout_ms = -1, .actor = "amp-ack.repair"};
    enum upgrade_step step;
    do {
        struct amp_store *s;
        step = UPGRADE_FAILED;
        if (amp_store_open_failed(dir, &opt, &s, err) < 0)
            return -1;
        if (amp_turnstile_enter(&s->lock, -1, err) == 0) {
            step = log_upgrade(s, said, err);
            amp_turnstile_leave(&s->lock);
        }
        amp_store_close(s);
    } while (step == LOG_REPLACED);
    if (step == RECORDS_LEFT)
        return records_convert(dir, &opt, fn, said, err);
    return step == DONE ? 0 : -1;
}
