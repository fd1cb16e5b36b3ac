/*
 * events.ndjson: a line for each event, numbered. Writers append under the lock. A line that was
 * cut off by a kill or a full disk is completed: the change that it belongs to is carried out again
 * and finds the beginning of its own line at the end of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/json/tape.h>

#include "base/codes.h"
#include "work/aof/change.h"

#define LOG  "events.ndjson"
#define TAIL ((off_t)256 << 10)
/* The most that is searched for the last number: no line of ours is nearly as long. */
#define TAIL_MOST ((off_t)AMP_AOF_CHANGE_BYTES)

static int log_open(const struct amp_aof_data *a, int flags, struct stat *st, struct amp_error *err)
{
    int fd = amp_open_beneath(a->dir, LOG, flags | O_NONBLOCK | O_NOCTTY, 0600, err);
    if (fd >= 0 && (fstat(fd, st) < 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        return amp_fail(err, AMP_CANTCREAT, not_a_file, LOG " is not a regular file");
    }
    return fd;
}

int amp_aof_log_size(const struct amp_aof_data *a, int64_t *size, struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int fd = log_open(a, O_RDWR | O_CREAT, &st, err);
    if (fd < 0)
        return -1;
    *size = st.st_size;
    return 0;
}

/* Reads [from, end). */
static int part_read(int fd, off_t from, off_t end, struct amp_buf *out, struct amp_error *err)
{
    if (amp_buf_reserve(out, (size_t)(end - from), err) < 0)
        return -1;
    while (from < end) {
        ssize_t n = pread(fd, out->data + out->len, (size_t)(end - from), from);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot read " LOG);
        if (n == 0)
            return 0;
        out->len += (size_t)n;
        from += n;
    }
    return 0;
}

/* The highest number among the complete lines of a part. */
static uint64_t number_of(struct amp_span part)
{
    AMP_TAPE struct amp_tape t = {0};
    struct amp_json_fault fault;
    uint64_t highest = 0;
    amp_tape_init(&t, NULL);
    while (part.n > 0) {
        const char *lf = memchr(part.p, '\n', part.n);
        size_t n = lf ? (size_t)(lf - part.p) : part.n;
        int64_t id;
        if (amp_tape_scan(&t, part.p, n, &fault) == 0 && t.tok[0].type == AMP_JSON_OBJECT) {
            uint32_t tok = amp_tape_get(&t, 0, AMP_SPAN("eventId"));
            if (tok != AMP_TOK_NONE && t.tok[tok].type == AMP_JSON_NUMBER &&
                amp_tok_int(&t, tok, &id) && id > 0 && (uint64_t)id > highest)
                highest = (uint64_t)id;
        }
        n += lf != NULL;
        part = (struct amp_span){part.p + n, part.n - n};
    }
    return highest;
}

int amp_aof_log_next(struct amp_aof_data *a, uint64_t *next, struct amp_error *err)
{
    AMP_BUF struct amp_buf tail = {0};
    struct stat st;
    AMP_CLOSE int fd = log_open(a, O_RDWR | O_CREAT, &st, err);
    if (fd < 0)
        return -1;
    if (st.st_size != a->log_size) {
        uint64_t last = 0;
        amp_buf_init(&tail, (size_t)TAIL_MOST + 1);
        /* The last lines may be longer, or those of another program. */
        for (off_t n = TAIL; last == 0 && n <= TAIL_MOST; n *= 4) {
            amp_buf_reset(&tail);
            if (part_read(fd, st.st_size > n ? st.st_size - n : 0, st.st_size, &tail, err) < 0)
                return -1;
            last = number_of(amp_buf_span(&tail));
            if (n >= st.st_size)
                break;
        }
        /* Numbers only grow, also if the log was emptied while this process knew it. */
        a->last_event = last > a->last_event ? last : a->last_event;
        a->log_size = st.st_size;
    }
    *next = a->last_event + 1;
    return 0;
}

/* Counts the bytes of the line at the end of the part, where it was cut off. */
static size_t begun(struct amp_span part, struct amp_span line)
{
    const char *lf = memrchr(part.p, '\n', part.n);
    size_t at = lf ? (size_t)(lf - part.p) + 1 : 0, n = part.n - at;
    return n > 0 && n < line.n && memcmp(part.p + at, line.p, n) == 0 ? n : 0;
}

static bool has_line(struct amp_span part, struct amp_span line)
{
    const char *p = part.p;
    size_t n = part.n;
    while (n >= line.n) {
        const char *hit = memmem(p, n, line.p, line.n);
        if (!hit)
            return false;
        if (hit == part.p || hit[-1] == '\n')
            return true;
        n -= (size_t)(hit + 1 - p);
        p = hit + 1;
    }
    return false;
}

static int lines_write(int fd, off_t size, struct amp_span text, struct amp_error *err)
{
    if (amp_write_all(fd, text, err) == 0)
        return 0;
    /* All or nothing. If this fails as well, the next attempt finds the cut-off line. */
    if (ftruncate(fd, size) < 0)
        return -1;
    return -1;
}

/* Reads the log from `since` on, at most what fits. */
static int since_read(int fd, int64_t since, off_t size, struct amp_buf *part,
                      struct amp_error *err)
{
    if (since > size)
        since = 0; /* a person shortened the log */
    off_t from = since > 0 ? since - 1 : 0;
    if ((off_t)part->max <= size - from)
        from = size - (off_t)part->max + 1;
    return part_read(fd, from, size, part, err);
}

int amp_aof_log_has(struct amp_aof_data *a, int64_t since, struct amp_span line,
                    struct amp_error *err)
{
    AMP_BUF struct amp_buf part = {0};
    struct stat st;
    AMP_CLOSE int fd = log_open(a, O_RDWR | O_CREAT, &st, err);
    if (fd < 0)
        return -1;
    amp_buf_init(&part, (size_t)AMP_AOF_CHANGE_BYTES * 4);
    if (since_read(fd, since, st.st_size, &part, err) < 0)
        return -1;
    return has_line(amp_buf_span(&part), line) || begun(amp_buf_span(&part), line) > 0;
}

int amp_aof_log_append(struct amp_aof_data *a, int64_t since, struct amp_span lines,
                       struct amp_error *err)
{
    AMP_BUF struct amp_buf part = {0}, out = {0};
    struct stat st;
    AMP_CLOSE int fd = log_open(a, O_RDWR | O_CREAT | O_APPEND, &st, err);
    if (fd < 0)
        return -1;
    amp_buf_init(&part, (size_t)AMP_AOF_CHANGE_BYTES * 4);
    amp_buf_init(&out, AMP_AOF_CHANGE_BYTES);
    if (since_read(fd, since, st.st_size, &part, err) < 0)
        return -1;
    bool open = part.len > 0 && part.data[part.len - 1] != '\n';
    off_t size = st.st_size;
    while (lines.n > 0) {
        const char *lf = memchr(lines.p, '\n', lines.n);
        struct amp_span line = {lines.p, lf ? (size_t)(lf - lines.p) + 1 : lines.n};
        lines = (struct amp_span){lines.p + line.n, lines.n - line.n};
        if (has_line(amp_buf_span(&part), line))
            continue;
        size_t cut = open ? begun(amp_buf_span(&part), line) : 0;
        if (cut > 0) {
            size -= (off_t)cut;
            part.len -= cut;
            if (ftruncate(fd, size) < 0)
                return amp_fail_errno(err, AMP_IOERR, "cannot shorten " LOG);
            open = false;
        }
        if (amp_buf_add(&out, line.p, line.n, err) < 0)
            return -1;
    }
    if (out.len == 0)
        return 0;
    if (open && lines_write(fd, size, AMP_SPAN("\n"), err) < 0)
        return -1; /* another program's last line */
    size += open;
    if (lines_write(fd, size, amp_buf_span(&out), err) < 0)
        return -1;
    if (fdatasync(fd) < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot sync " LOG);
    uint64_t last = number_of(amp_buf_span(&out));
    a->last_event = last > a->last_event ? last : a->last_event;
    a->log_size = size + (int64_t)out.len;
    return 0;
}
