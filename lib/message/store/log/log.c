/*
 * Segments: finding, creating, appending, reading.
 *
 * Crash safety. Only the holder of main writes frames, after the verified end, so a crash leaves at
 * most a torn tail. A segment is synced before its successor is created, and the successor is
 * synced with its directory before a frame is written to it. Therefore only the last segment can be
 * torn, and an fdatasync of it makes the complete log durable.
 */
#include "message/store/log/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/file.h>
#include <amp/base/num.h>

#include "base/codes.h"

enum { ROOM_FROM = 64 * 1024, ROOM_FIRST = 4 * 1024 * 1024, ROOM_SHARE = 16, BLOCK = 4096 };

void amp_log_init(struct amp_log *l, int dirfd, bool read_only, struct amp_watermark *wm,
                  struct amp_chain *chain)
{
    *l = (struct amp_log){
        .dirfd = dirfd, .read_only = read_only, .fd = -1, .wm = wm, .chain = chain};
    for (unsigned i = 0; i < AMP_LOG_OLD; i++)
        l->old[i].fd = -1;
    /* A turn's 1 MiB, the frame that exceeds it, and the close frames of the turn. */
    amp_buf_init(&l->pending, 8 * AMP_FRAME_MAX);
    amp_buf_init(&l->scan, 4 * AMP_FRAME_MAX);
    amp_buf_init(&l->look, 2 * AMP_FRAME_MAX);
}

static void close_all(struct amp_log *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
    for (unsigned i = 0; i < AMP_LOG_OLD; i++) {
        if (l->old[i].fd >= 0)
            close(l->old[i].fd);
        l->old[i].fd = -1;
    }
}

void amp_log_release(struct amp_log *l)
{
    close_all(l);
    amp_buf_release(&l->pending);
    amp_buf_release(&l->scan);
    amp_buf_release(&l->look);
}

void amp_log_name(uint32_t seg, char out[32])
{
    snprintf(out, 32, "%06u.ndjson", seg);
}

static int open_segment(struct amp_log *l, uint32_t seg, int flags, struct amp_error *err)
{
    char name[32];
    amp_log_name(seg, name);
    struct amp_error why;
    int fd = amp_file_open(l->dirfd, name, flags | O_NOFOLLOW, 0600, &why);
    return fd < 0 ? amp_fail_again(err, AMP_IOERR, "log", &why) : fd;
}

/* NNNNNN.ndjson, six digits or more. */
static uint32_t segment_number(const char *name)
{
    size_t n = strspn(name, "0123456789");
    int64_t v;
    if (n < 6 || strcmp(name + n, ".ndjson") != 0 ||
        amp_num_parse((struct amp_span){name, n}, 1, UINT32_MAX - 1, &v, NULL) != 0)
        return 0;
    return (uint32_t)v;
}

static ssize_t read_at(int fd, char *p, size_t n, uint64_t off)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = pread(fd, p + got, n - got, (off_t)(off + got));
        if (r < 0 && errno == EINTR)
            continue;
        if (r < 0)
            return -1;
        if (r == 0)
            break;
        got += (size_t)r;
    }
    return (ssize_t)got;
}

/* Reads the format of a segment's first frame; 0: it has none. */
static int format_read(struct amp_log *l, uint32_t seg, uint32_t *format, struct amp_error *err)
{
    char p[AMP_FRAME_PREFIX];
    int fd = amp_log_fd(l, seg, err);
    ssize_t n = fd < 0 ? -1 : read_at(fd, p, sizeof p, 0);
    if (fd >= 0 && n < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read log/%06u.ndjson", seg);
    *format = fd < 0 ? 0 : amp_frame_format(p, (size_t)n);
    return fd < 0 ? -1 : 0;
}

int amp_log_list(struct amp_log *l, struct amp_error *err)
{
    AMP_DIR DIR *d = amp_dir_open(l->dirfd, ".");
    if (!d)
        return amp_fail_errno(err, AMP_IOERR, "cannot read the log directory");
    uint32_t first = 0, last = 0, count = 0, format = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        uint32_t seg = segment_number(e->d_name);
        if (!seg)
            continue;
        count++;
        if (!first || seg < first)
            first = seg;
        if (seg > last)
            last = seg;
    }
    close_all(l);
    l->first = first;
    l->last = last;
    if (count && count != last - first + 1)
        return amp_fail(err, AMP_IOERR, log_damaged,
                        "log: a segment between %06u and %06u is missing", first, last);
    if (last) {
        int fd = open_segment(l, last, l->read_only ? O_RDONLY : O_RDWR, err);
        if (fd < 0)
            return -1;
        l->fd = fd;
        if (format_read(l, last, &format, err) < 0 ||
            (format == 0 && first != last && format_read(l, first, &format, err) < 0))
            return -1;
    }
    if (format != 0 && format != AMP_FRAME_FORMAT)
        return amp_fail(err, AMP_CONFIG, log_format,
                        "the log has format %u, this build reads format %d", format,
                        AMP_FRAME_FORMAT);
    return 0;
}

int amp_log_create(struct amp_log *l, uint32_t seg, struct amp_error *err)
{
    /* Not exclusive: a crash may have left an empty file. */
    int fd = open_segment(l, seg, O_RDWR | O_CREAT, err);
    if (fd < 0)
        return -1;
    if (fsync(fd) != 0 || fsync(l->dirfd) != 0) {
        amp_fail_errno(err, AMP_TEMPFAIL, "cannot sync a new segment");
        close(fd);
        return -1;
    }
    if (l->fd >= 0) {
        unsigned i = l->next_old++ % AMP_LOG_OLD;
        if (l->old[i].fd >= 0)
            close(l->old[i].fd);
        l->old[i].fd = l->fd;
        l->old[i].seg = l->last;
    }
    l->fd = fd;
    l->room = 0;
    l->last = seg;
    if (!l->first)
        l->first = seg;
    return 0;
}

int amp_log_size(struct amp_log *l, uint64_t *size, bool *linked, struct amp_error *err)
{
    struct stat st;
    if (fstat(l->fd, &st) != 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot stat the log");
    *size = (uint64_t)st.st_size;
    l->room = (uint64_t)st.st_blocks * 512;
    if (linked)
        *linked = st.st_nlink > 0;
    return 0;
}

int amp_log_fd(struct amp_log *l, uint32_t seg, struct amp_error *err)
{
    if (seg == l->last && l->fd >= 0)
        return l->fd;
    for (unsigned i = 0; i < AMP_LOG_OLD; i++)
        if (l->old[i].fd >= 0 && l->old[i].seg == seg)
            return l->old[i].fd;
    int fd = open_segment(l, seg, O_RDONLY, err);
    if (fd < 0)
        return -1;
    unsigned i = l->next_old++ % AMP_LOG_OLD;
    if (l->old[i].fd >= 0)
        close(l->old[i].fd);
    l->old[i].fd = fd;
    l->old[i].seg = seg;
    return fd;
}

bool amp_log_stands(struct amp_log *l, const struct amp_pos *pos)
{
    char p[AMP_FRAME_PREFIX];
    struct amp_frame_head h;
    if (pos->seg < l->first || pos->seg > l->last || pos->len > pos->off)
        return false;
    int fd = amp_log_fd(l, pos->seg, NULL);
    if (fd < 0)
        return false;
    if (!pos->len)
        return pos->off == 0;
    ssize_t n = read_at(fd, p, sizeof p, pos->off - pos->len);
    return n > 0 && amp_frame_peek(p, (size_t)n, &h) && h.sum == pos->sum && h.n == pos->n &&
           h.size == pos->len;
}

/* Finishes the last frame in pending, if there is one that is not finished. */
static void frame_finish(struct amp_log *l, bool ends)
{
    if (!l->end_off)
        return;
    l->end.sum =
        amp_frame_finish(l->pending.data + l->composed, l->end.len, l->end_off, ends, l->chain);
    l->end.open = !ends;
    l->end_off = 0;
}

int amp_log_append(struct amp_log *l, struct amp_frame *f, struct amp_pos *at,
                   struct amp_error *err)
{
    if (!l->chain->has_key &&
        amp_chain_ready(l->chain, l->end.n + 1, l->end.n ? amp_log_first_number(l, l->first) : 1,
                        err) < 0)
        return -1;
    frame_finish(l, false);
    f->head.n = l->end.n + 1;
    f->head.prev = l->end.sum;
    f->head.gen = l->gen;
    f->head.s = amp_wm_get(l->wm);
    if (f->head.s > l->end.n)
        f->head.s = l->end.n;
    f->head.turn = l->turn;
    if (!f->at)
        f->at = amp_now_ms();
    const size_t start = l->pending.len;
    if (amp_frame_compose(f, l->chain, &l->pending, err) < 0)
        return -1;
    l->turn++;
    l->composed = start;
    l->end_off = f->end_off;
    amp_pos_advance(&l->end, &f->head);
    *at = l->end;
    return 0;
}

/*
 * Allocates blocks after the end, so that the sync of an append does not wait for an allocation and
 * the file has few extents. The file's size does not change, so no reader sees them. A small log
 * gets none.
 */
static void make_room(struct amp_log *l)
{
    struct statvfs fs;
    uint64_t from = l->end.off - l->pending.len, to = ROOM_FIRST;
    if (l->room >= l->end.off || l->end.off < ROOM_FROM || l->no_room)
        return;
    if (l->end.off > ROOM_FIRST / 2 || l->most < ROOM_FIRST)
        to = (l->most + BLOCK - 1) & ~(uint64_t)(BLOCK - 1);
    if (to <= l->end.off)
        return;
    l->room = to;
    /* This is only for speed: writing reports errors, and most of the free space stays free. */
    if (fstatvfs(l->fd, &fs) != 0 || fs.f_bavail * fs.f_frsize / ROOM_SHARE < to - from ||
        fallocate(l->fd, FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) != 0)
        l->no_room = true;
}

int amp_log_flush(struct amp_log *l, struct amp_error *err)
{
    frame_finish(l, !l->more);
    const char *p = l->pending.data;
    size_t n = l->pending.len;
    uint64_t off = l->end.off - n;
    if (n)
        make_room(l);
    while (n) {
        ssize_t w = pwrite(l->fd, p, n, (off_t)off);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return amp_fail_errno(err, AMP_TEMPFAIL, "cannot append to the log");
        p += w;
        off += (uint64_t)w;
        n -= (size_t)w;
    }
    amp_buf_reset(&l->pending);
    l->unended = l->end.open;
    if (!l->unended)
        l->turn = 0;
    return 0;
}

int amp_log_end_turn(struct amp_log *l, struct amp_error *err)
{
    struct amp_frame end = {.head.log = AMP_FRAME_turn};
    struct amp_pos at;
    l->more = false;
    return l->unended && !l->pending.len ? amp_log_append(l, &end, &at, err) : 0;
}

void amp_log_abandon(struct amp_log *l)
{
    amp_buf_reset(&l->pending);
    l->more = l->unended = false;
    l->turn = 0;
    l->end_off = 0;
}

int amp_log_datasync(struct amp_log *l, struct amp_error *err)
{
    if (fdatasync(l->fd) != 0)
        return amp_fail_errno(err, AMP_TEMPFAIL, "cannot sync the log");
    return 0;
}

void amp_log_synced(struct amp_log *l, uint64_t n)
{
    /* The noted end first: if the process is killed in between, no other process skips it. */
    amp_chain_raise(l->chain, n);
    amp_wm_raise(l->wm, n);
}

int amp_log_rotate(struct amp_log *l, struct amp_error *err)
{
    struct amp_frame seal = {.head.log = AMP_FRAME_seal};
    struct amp_pos at;
    uint64_t size = 0;
    if (!l->end.sealed && (amp_log_append(l, &seal, &at, err) < 0 || amp_log_flush(l, err) < 0))
        return -1;
    if (amp_log_datasync(l, err) < 0)
        return -1;
    amp_log_synced(l, l->end.n);
    if (amp_log_size(l, &size, NULL, NULL) == 0 && size == l->end.off && l->room > size + BLOCK &&
        ftruncate(l->fd, (off_t)size) != 0)
        l->room = 0; /* some blocks stay unused */
    if (amp_log_create(l, l->end.seg + 1, err) < 0)
        return -1;
    amp_pos_next_segment(&l->end);
    return 0;
}

int amp_log_frame(struct amp_log *l, struct amp_place at, struct amp_span *out,
                  struct amp_frame_head *head, struct amp_error *err)
{
    uint64_t written = l->end.off - l->pending.len;
    const char *p;
    if (at.len > AMP_FRAME_MAX || at.len < AMP_FRAME_HEAD)
        goto damaged;
    if (l->pending.len && at.seg == l->end.seg && at.off >= written) {
        if (at.off + at.len > l->end.off)
            goto damaged;
        p = l->pending.data + (at.off - written);
        /* The last one may have no checksum yet. */
        if (!amp_frame_peek(p, at.len, head))
            goto damaged;
    } else {
        int fd = amp_log_fd(l, at.seg, err);
        if (fd < 0)
            return -1;
        amp_buf_reset(&l->look);
        if (amp_buf_reserve(&l->look, at.len, err) < 0)
            return -1;
        if (read_at(fd, l->look.data, at.len, at.off) != (ssize_t)at.len)
            goto damaged;
        p = l->look.data;
        if (!amp_frame_check(p, at.len, head))
            goto damaged;
    }
    if (head->size != at.len)
        goto damaged;
    *out = (struct amp_span){p, at.len};
    return 0;
damaged:
    return amp_fail(err, AMP_IOERR, log_damaged,
                    "log/%06u.ndjson: no intact frame of %u bytes at offset %llu", at.seg, at.len,
                    (unsigned long long)at.off);
}
