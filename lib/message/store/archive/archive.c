/*
 * Copying segments. Each file is synced under another name and renamed, blobs before the segments
 * that name them and the chain's page last, so an archive that was interrupted goes on.
 */
#include "message/store/archive/archive.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "message/store/store_int.h"

enum { CHUNK = 1 << 20 };

struct archive {
    struct amp_store *s;
    const char *to;
    int dir, from; /* of the archive, and of the state directory */
    struct amp_frame_arena arena;
};

/* Whether the archive has a file of that size. */
static bool has_file(const struct archive *a, const char *path, int64_t size)
{
    struct stat st;
    return fstatat(a->dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (size < 0 || st.st_size == size);
}

static int bytes_copy(int from, int to, const char *path, struct amp_error *err)
{
    AMP_BUF struct amp_buf b = {0};
    amp_buf_init(&b, CHUNK);
    if (amp_buf_reserve(&b, CHUNK, err) < 0)
        return -1;
    for (;;) {
        ssize_t n = read(from, b.data, CHUNK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read %s", path);
        if (n == 0)
            return fsync(to) == 0 ? 0 : amp_fail_errno(err, AMP_CANTCREAT, "cannot sync %s", path);
        if (amp_write_all(to, (struct amp_span){b.data, (size_t)n}, err) < 0)
            return -1;
    }
}

/* Copies a file of the state directory unless the archive has it. 1: copied, 0, -1; may_lack: it
 * need not exist. */
static int file_copy(const struct archive *a, const char *path, bool may_lack,
                     struct amp_error *err)
{
    char part[128];
    struct stat st;
    struct amp_error why;
    AMP_CLOSE int from = amp_file_open(a->from, path, O_RDONLY | O_NOFOLLOW, 0, &why);
    if (from < 0 && may_lack && errno == ENOENT)
        return 0;
    if (from < 0 || fstat(from, &st) < 0)
        return amp_fail_again(err, AMP_IOERR, path, &why);
    if (has_file(a, path, st.st_size))
        return 0;
    snprintf(part, sizeof part, "%.100s.part", path);
    AMP_CLOSE int to =
        openat(a->dir, part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", a->to, part);
    if (bytes_copy(from, to, path, err) < 0)
        return -1;
    return renameat(a->dir, part, a->dir, path) == 0
               ? 1
               : amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", a->to, path);
}

static int blob_copy(const struct archive *a, struct amp_span name, struct amp_error *err)
{
    char path[80];
    if (name.n != 64 || memchr(name.p, '/', name.n))
        return 0;
    snprintf(path, sizeof path, "blob/%.64s", name.p);
    return file_copy(a, path, true, err) < 0 ? -1 : 0;
}

static int frame_blobs(void *ctx, const struct amp_frame_head *head, struct amp_span frame,
                       const struct amp_pos *after, struct amp_error *err)
{
    struct archive *a = ctx;
    struct amp_frame f;
    (void)after;
    if (!memmem(frame.p, frame.n, "blob\":\"", 7))
        return 0;
    if (amp_frame_decode(frame, head, &a->arena, &f, err) < 0 ||
        (f.state_blob.n && blob_copy(a, f.state_blob, err) < 0))
        return -1;
    for (uint32_t i = 0; i < f.n_out; i++)
        if (f.out[i].blob.n && blob_copy(a, f.out[i].blob, err) < 0)
            return -1;
    return 0;
}

/* The public keys: they verify the signatures. */
static int public_copy(const struct archive *a, struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(a->from, "keys");
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300];
        const char *end = strrchr(e->d_name, '.');
        if (strcmp(e->d_name, "allowed_signers") != 0 &&
            !(end && (strcmp(end, ".pub") == 0 || strcmp(end, ".revoked") == 0)))
            continue;
        snprintf(path, sizeof path, "keys/%.255s", e->d_name);
        if (file_copy(a, path, true, err) < 0)
            return -1;
    }
    return 0;
}

static int folders_make(struct archive *a, struct amp_error *err)
{
    static const char *const names[] = {"log", "keys", "blob"};
    if (!has_file(a, AMP_ARCHIVE_MARK, -1) && faccessat(a->dir, "log", F_OK, 0) == 0)
        return amp_fail(err, AMP_NO, folder_differs, "%s is not an archive", a->to);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (mkdirat(a->dir, names[i], 0700) < 0 && errno != EEXIST)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", a->to, names[i]);
    static const char *const files[] = {AMP_ARCHIVE_MARK, "log/main.lock"}; /* for readers */
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        AMP_CLOSE int fd =
            openat(a->dir, files[i], O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", a->to, files[i]);
    }
    return 0;
}

/* The archive's last segment, 0: none. Its key must be that of the log. */
static int archive_look(struct archive *a, uint32_t *last, struct amp_error *err)
{
    AMP_BUF struct amp_buf old = {0}, key = {0};
    struct amp_watermark wm = {0};
    struct amp_log log;
    int rc = 0;
    *last = 0;
    amp_buf_init(&old, 4096);
    amp_buf_init(&key, 4096);
    if (has_file(a, "keys/log", -1)) {
        if (amp_file_read(a->dir, "keys/log", 4095, &old, err) < 0 ||
            amp_file_read(a->from, "keys/log", 4095, &key, err) < 0)
            return -1;
        if (!amp_span_eq(amp_buf_span(&old), amp_buf_span(&key)))
            return amp_fail(err, AMP_NO, folder_differs, "%s is the archive of another log", a->to);
    }
    AMP_CLOSE int fd = openat(a->dir, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot open %s/log", a->to);
    amp_log_init(&log, fd, true, &wm, &a->s->chain);
    rc = amp_log_list(&log, err);
    *last = log.last;
    amp_log_release(&log);
    return rc;
}

/* The time at which a segment ended. */
static int end_time(struct amp_store *s, uint32_t seg, int64_t *ms, struct amp_error *err)
{
    struct stat st;
    int fd = amp_log_fd(&s->log, seg, err);
    if (fd < 0 || fstat(fd, &st) < 0)
        return fd < 0 ? -1 : amp_fail_errno(err, AMP_IOERR, "cannot stat the log");
    *ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    return 0;
}

static int segment_copy(struct archive *a, uint32_t seg, struct amp_store_archived *out,
                        struct amp_error *err)
{
    char name[32], path[40];
    struct amp_pos pos = {.seg = seg};
    bool ends;
    if (amp_log_scan_segment(&a->s->log, &pos, &ends, frame_blobs, a, err) < 0)
        return -1;
    if (!ends)
        return amp_log_damaged(&pos, "no intact frame there", err);
    amp_log_name(seg, name);
    snprintf(path, sizeof path, "log/%s", name);
    int rc = file_copy(a, path, false, err);
    if (rc < 0)
        return -1;
    out->added += (uint32_t)rc;
    out->last = pos.n;
    return 0;
}

/* Notes where the archive begins and ends, so that missing segments are found in it. */
static int page_write(struct archive *a, const struct amp_store_archived *out,
                      struct amp_error *err)
{
    struct amp_chain c;
    amp_chain_init(&c, a->dir, false);
    int rc = amp_chain_open(&c, err);
    if (rc == 0)
        rc = amp_chain_reset(&c, out->first, out->last, err);
    amp_chain_release(&c);
    return rc == 0 ? amp_fsync_dir(a->dir, "log", err) : rc;
}

static int archive_run(struct archive *a, int64_t until_ms, struct amp_store_archived *out,
                       struct amp_error *err)
{
    struct amp_log *l = &a->s->log;
    uint32_t last;
    int64_t at = 0;
    if (amp_mkdirs(a->to, 0700, err) < 0)
        return -1;
    a->dir = open(a->to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (a->dir < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open %s", a->to);
    if (folders_make(a, err) < 0 || archive_look(a, &last, err) < 0 || amp_log_list(l, err) < 0)
        return -1;
    if (last && l->first > last + 1)
        return amp_fail(err, AMP_NO, folder_differs,
                        "segments %u to %u were removed from the log before they were archived in "
                        "%s: use a new directory",
                        last + 1, l->first - 1, a->to);
    if (file_copy(a, "keys/log", true, err) < 0 || public_copy(a, err) < 0)
        return -1;
    for (uint32_t seg = l->first; seg && seg < l->last; seg++) {
        if (end_time(a->s, seg, &at, err) < 0)
            return -1;
        if (at > until_ms)
            break;
        if (segment_copy(a, seg, out, err) < 0)
            return -1;
        last = seg > last ? seg : last;
    }
    if (!last)
        return page_write(a, out, err);
    AMP_CLOSE int fd = openat(a->dir, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct amp_watermark wm = {0};
    struct amp_log log;
    amp_log_init(&log, fd, true, &wm, &a->s->chain);
    int rc = amp_log_list(&log, err);
    struct amp_pos end = {.seg = log.last};
    bool ends;
    out->first = rc == 0 ? amp_log_first_number(&log, log.first) : 0;
    out->segments = rc == 0 ? log.last - log.first + 1 : 0;
    if (rc == 0)
        rc = amp_log_scan_segment(&log, &end, &ends, NULL, NULL, err);
    out->last = end.n;
    amp_log_release(&log);
    return rc < 0 ? -1 : page_write(a, out, err);
}

int amp_store_archive(struct amp_store *s, const char *to, int64_t until_ms,
                      struct amp_store_archived *out, struct amp_error *err)
{
    struct archive a = {.s = s, .to = to, .dir = -1, .from = s->dirfd};
    *out = (struct amp_store_archived){0};
    amp_frame_arena_init(&a.arena);
    int rc = archive_run(&a, until_ms, out, err);
    amp_frame_arena_release(&a.arena);
    if (a.dir >= 0)
        close(a.dir);
    return rc;
}
