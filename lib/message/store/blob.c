/*
 * Blobs: payloads that would make a frame too large, in blob/<sha256>. A blob is synced under its
 * name before the frame that names it is appended.
 */
#include "message/store/store_int.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/id.h>

#include "base/codes.h"

static int blob_put(struct amp_store *s, struct amp_span data, char name[72], struct amp_error *err)
{
    char path[80];
    amp_sha256_hex(data, name);
    snprintf(path, sizeof path, "blob/%s", name);
    if (mkdirat(s->dirfd, "blob", 0700) == 0) {
        if (amp_fsync_dir(s->dirfd, ".", err) < 0)
            return -1;
    } else if (errno != EEXIST) {
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/blob", s->dir);
    }
    return amp_file_publish(s->dirfd, path, 0600, data, err) < 0 ? -1 : 0;
}

int amp_blob_get(struct amp_store *s, struct amp_span name, struct amp_buf *out,
                 struct amp_error *err)
{
    char path[80], sum[AMP_SHA256_MAX];
    size_t start = out->len;
    if (name.n != 64 || !amp_id_is_safe(name))
        return amp_fail(err, AMP_IOERR, log_damaged, "a frame names no blob");
    snprintf(path, sizeof path, "blob/%.64s", name.p);
    if (amp_file_read(s->dirfd, path, AMP_BLOB_MAX, out, err) < 0)
        return -1;
    amp_sha256_hex((struct amp_span){out->data + start, out->len - start}, sum);
    if (memcmp(sum, name.p, 64) != 0) {
        out->len = start;
        return amp_fail(err, AMP_IOERR, log_damaged, "%s is damaged", path);
    }
    return 0;
}

/* Whether a file in the directory is a blob that stays: 1, 0, or -1. */
static int blob_stays(struct amp_store *s, const char *name, uint64_t bound, struct amp_error *err)
{
    sqlite3_stmt *st = amp_index_stmt(&s->index, AMP_IX_BLOB, err);
    if (!st)
        return -1;
    sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
    int rc = amp_index_next(&s->index, st, AMP_INDEX_BLOB, err);
    if (rc == 1) {
        rc = (uint64_t)sqlite3_column_int64(st, 1) >= bound;
        sqlite3_reset(st);
    }
    return rc;
}

int amp_blob_sweep(struct amp_store *s, uint64_t bound, struct amp_error *err)
{
    int rc = 0, fd = openat(s->dirfd, "blob", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return errno == ENOENT ? 0 : amp_fail_errno(err, AMP_IOERR, "cannot open %s/blob", s->dir);
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return amp_fail_memory(err);
    }
    if (amp_index_begin_read(&s->index, err) < 0)
        rc = -1;
    /* Blobs are made only under main, which this process holds. A crash left other files. */
    for (struct dirent *e; rc >= 0 && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        rc = blob_stays(s, e->d_name, bound, err);
        if (rc == 0 && unlinkat(fd, e->d_name, 0) != 0 && errno != EISDIR)
            rc = amp_fail_errno(err, AMP_IOERR, "cannot remove blob/%s", e->d_name);
    }
    closedir(d);
    amp_index_end_read(&s->index);
    return rc < 0 ? -1 : 0;
}

/* The size of a quoted line, which is usually at most a quarter larger. */
static size_t quoted_size(struct amp_span v)
{
    return v.n + v.n / 4;
}

static int move_out(struct amp_store *s, struct amp_span *part, struct amp_span *blob,
                    struct amp_buf *names, struct amp_error *err)
{
    char name[72];
    size_t at = names->len;
    if (blob_put(s, *part, name, err) < 0 || amp_buf_add(names, name, 64, err) < 0)
        return -1;
    *blob = (struct amp_span){names->data + at, 64};
    *part = (struct amp_span){0};
    return 0;
}

int amp_blob_shrink(struct amp_store *s, struct amp_frame *f, struct amp_frame_out *out,
                    struct amp_buf *names, struct amp_error *err)
{
    const size_t limit = AMP_FRAME_MAX - AMP_FRAME_MAX / 8;
    size_t total = f->state.n;
    for (uint32_t i = 0; i < f->n_out; i++)
        total += quoted_size(out[i].line);
    if (total <= limit)
        return 0;
    if (amp_buf_reserve(names, 64 * ((size_t)f->n_out + 1), err) < 0)
        return -1;
    for (size_t least = 256 * 1024; total > limit && least >= 1024; least /= 4) {
        if (f->state.n >= least) {
            total -= f->state.n;
            if (move_out(s, &f->state, &f->state_blob, names, err) < 0)
                return -1;
        }
        for (uint32_t i = 0; i < f->n_out && total > limit; i++) {
            if (out[i].line.n < least)
                continue;
            total -= quoted_size(out[i].line);
            if (move_out(s, &out[i].line, &out[i].blob, names, err) < 0)
                return -1;
        }
    }
    return 0;
}
