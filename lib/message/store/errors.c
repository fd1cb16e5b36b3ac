/*
 * The error log of a state directory: error.ndjson, and older files from error.1.ndjson (the
 * newest) on. Processes write one at a time, under a lock on the current file. A full file is
 * renamed; the new one begins with a record that has the number of earlier records. It is counted
 * from the renamed file, so a crash does not lose the count.
 */
#include "message/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/clock.h>
#include <amp/base/num.h>
#include <amp/json/lines.h>
#include <amp/json/tape.h>

enum { HEAD_MAX = 512, PART = 64 * 1024, LINE_MAX_BYTES = 1 << 20, FILES_MOST = 1000 };

static const char code[] = "older_records";

static void name_of(uint32_t i, char out[40])
{
    if (i)
        snprintf(out, 40, "error.%u.ndjson", i);
    else
        snprintf(out, 40, "error.ndjson");
}

static int open_file(struct amp_store *s, uint32_t i, int flags, struct amp_error *err)
{
    char name[40];
    struct amp_error why;
    name_of(i, name);
    int fd = amp_file_open(s->dirfd, name, flags | O_NOFOLLOW, 0600, &why);
    return fd < 0 ? amp_fail_again(err, AMP_IOERR, s->dir, &why) : fd;
}

/* Reads the number of earlier records from a file's first record; false: it has no such record. */
static bool read_head(int fd, uint64_t *earlier)
{
    char text[HEAD_MAX];
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    int64_t number;
    *earlier = 0;
    ssize_t n = pread(fd, text, sizeof text, 0);
    const char *lf = n > 0 ? memchr(text, '\n', (size_t)n) : NULL;
    if (!lf)
        return false;
    amp_tape_init(&t, NULL);
    if (amp_tape_scan(&t, text, (size_t)(lf - text), &fault) < 0)
        return false;
    uint32_t is = amp_tape_get(&t, 0, AMP_SPAN("code"));
    uint32_t tok = amp_tape_get(&t, 0, AMP_SPAN("earlier"));
    if (is == AMP_TOK_NONE || !amp_tok_is(&t, is, amp_span_str(code)) || tok == AMP_TOK_NONE ||
        !amp_tok_int(&t, tok, &number) || number < 0)
        return false;
    *earlier = (uint64_t)number;
    return true;
}

/* The number of records up to the end of a file; 0: there is no file. */
static uint64_t count_to(struct amp_store *s, uint32_t i)
{
    char part[PART];
    uint64_t n;
    ssize_t got;
    off_t at = 0;
    AMP_CLOSE int fd = open_file(s, i, O_RDONLY, NULL);
    if (fd < 0)
        return 0;
    bool head = read_head(fd, &n);
    while ((got = pread(fd, part, sizeof part, at)) > 0) {
        for (const char *p = part, *end = part + got; (p = memchr(p, '\n', (size_t)(end - p))); p++)
            n++;
        at += got;
    }
    return head ? n - 1 : n;
}

/* The number of records before those of the oldest remaining file. */
static uint64_t count_dropped(struct amp_store *s, uint64_t earlier)
{
    uint64_t n = earlier;
    for (uint32_t i = 1; i < s->opt.error_files; i++) {
        AMP_CLOSE int fd = open_file(s, i, O_RDONLY, NULL);
        if (fd < 0)
            break;
        read_head(fd, &n);
    }
    return n;
}

/* Writes the first record of a file that has predecessors. */
static int put_head(struct amp_store *s, int fd, struct amp_error *err)
{
    char text[HEAD_MAX], at[AMP_TIME_MAX];
    uint64_t earlier = count_to(s, 1), gone = count_dropped(s, earlier);
    if (!earlier)
        return 0;
    amp_time_format(amp_now_ms(), at);
    int n = snprintf(text, sizeof text,
                     "{\"time\":\"%s\",\"code\":\"%s\",\"earlier\":%llu,\"dropped\":%llu,"
                     "\"message\":\"of %llu earlier records the oldest %llu were dropped (limits: "
                     "store.error_bytes, store.error_files)\",\"severity\":\"warning\"}\n",
                     at, code, (unsigned long long)earlier, (unsigned long long)gone,
                     (unsigned long long)earlier, (unsigned long long)gone);
    return amp_write_all(fd, (struct amp_span){text, (size_t)n}, err);
}

/* Renames the current file, which is full and locked, and the older ones. */
static int files_rotate(struct amp_store *s, struct amp_error *err)
{
    char from[40], to[40];
    uint32_t i = (uint32_t)s->opt.error_files - 1;
    name_of(i, to);
    /* Also removes files that an earlier, larger limit kept. */
    while (unlinkat(s->dirfd, to, 0) == 0)
        name_of(++i, to);
    for (i = (uint32_t)s->opt.error_files - 1; i > 0; i--) {
        name_of(i - 1, from);
        name_of(i, to);
        if (renameat(s->dirfd, from, s->dirfd, to) != 0 && errno != ENOENT)
            return amp_fail_errno(err, AMP_IOERR, "cannot rename %s/%s", s->dir, from);
    }
    return 0;
}

static int record_append(int fd, off_t size, struct amp_span record, struct amp_error *err)
{
    if (amp_write_all(fd, record, err) == 0)
        return 0;
    /* Half a record would also make the next one unreadable. */
    (void)!ftruncate(fd, size);
    return -1;
}

int amp_store_error_log(struct amp_store *s, struct amp_span record, struct amp_error *err)
{
    for (;;) {
        struct stat st, now;
        AMP_CLOSE int fd = open_file(s, 0, O_WRONLY | O_CREAT | O_APPEND, err);
        if (fd < 0 || amp_lock(fd, s->opt.lock_timeout_ms, err) < 0)
            return -1;
        if (fstat(fd, &st) != 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot stat %s/error.ndjson", s->dir);
        /* The previous holder of the lock may have renamed the file. */
        if (fstatat(s->dirfd, "error.ndjson", &now, AT_SYMLINK_NOFOLLOW) != 0 ||
            now.st_ino != st.st_ino || now.st_dev != st.st_dev)
            continue;
        if (st.st_size > 0 && (uint64_t)st.st_size + record.n > s->opt.error_bytes) {
            if (files_rotate(s, err) < 0)
                return -1;
            continue;
        }
        if (st.st_size == 0 && put_head(s, fd, err) < 0)
            return -1;
        return record_append(fd, st.st_size, record, err);
    }
}

static int records_read(int fd, int (*fn)(void *ctx, struct amp_span record, struct amp_error *err),
                        void *ctx, struct amp_error *err)
{
    struct amp_lines lines;
    struct amp_line line;
    int rc = 0;
    amp_lines_init(&lines, LINE_MAX_BYTES);
    for (enum amp_line_result r; rc == 0 && (r = amp_lines_next(&lines, &line)) != AMP_LINE_END;) {
        if (r == AMP_LINE_MORE && amp_lines_fill(&lines, fd, err) == AMP_READ_FAILED)
            rc = -1;
        else if (r == AMP_LINE)
            rc = fn(ctx, line.bytes, err);
    }
    amp_lines_release(&lines);
    return rc;
}

int amp_store_errors_each(struct amp_store *s,
                          int (*fn)(void *ctx, struct amp_span record, struct amp_error *err),
                          void *ctx, struct amp_error *err)
{
    for (uint32_t i = 0; i < FILES_MOST; i++) {
        char name[40];
        name_of(i, name);
        AMP_CLOSE int fd = amp_file_open(s->dirfd, name, O_RDONLY | O_NOFOLLOW, 0, NULL);
        if (fd < 0 && i > 0)
            return 0;
        if (fd >= 0 && records_read(fd, fn, ctx, err) < 0)
            return -1;
    }
    return 0;
}
