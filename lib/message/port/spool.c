/*
 * spool:DIR — a file for each message.
 *
 *   DIR/new/<name>   published, complete, synced
 *   DIR/cur/<name>   taken by a consumer (renamed from new)
 *   DIR/done/<name>  finished (renamed from cur); stays as long as the sender may repeat the
 *                    message, because the name identifies repetitions
 *
 * The name is a digest of consumer and message id, so a message that is delivered again after a
 * crash has the same name. A file only moves from new to cur to done; looking in this order finds
 * it in any of them, and link(2) refuses a name that is still in new. Between looking and linking
 * another router could publish it and it could pass through all three: routers take a lock around
 * both.
 */
#include "message/port/private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <amp/base/file.h>
#include <amp/base/id.h>

#include "base/codes.h"

#define LOCK_WAIT_MS 10000
#define TRIES        10

enum { NEW, CUR, DONE, ROOMS };
static const char *const rooms[ROOMS] = {"new", "cur", "done"};

void amp_spool_name(const char *consumer, struct amp_span id, struct amp_span line,
                    char out[AMP_SPOOL_NAME_MAX])
{
    char digest[AMP_SHA256_MAX], of_message[AMP_SHA256_MAX];
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, (size_t)64 << 20);
    /* A record without an id is identified by its bytes. */
    amp_sha256_hex(id.n > 0 ? id : line, of_message);
    amp_buf_str(&text, consumer, NULL);
    amp_buf_add(&text, "\n", 1, NULL);
    amp_buf_str(&text, of_message, NULL);
    amp_sha256_hex(amp_buf_span(&text), digest);
    snprintf(out, AMP_SPOOL_NAME_MAX, "%.32s.json", digest);
}

/* Opens new, cur or done, which must not be a link. */
static int room_open(const struct amp_spool *s, int i, struct amp_error *err)
{
    int fd = openat(s->dir, rooms[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot open the directory %s of the spool",
                                   rooms[i])
                  : fd;
}

/* Whether amp_file_publish makes such a name for a message. */
static bool is_temporary(const char *name)
{
    size_t n = strlen(name), hex = strspn(name + 1, "0123456789abcdef");
    return n == 1 + 32 + 6 + 16 + 4 && name[0] == '.' && hex == 32 &&
           strncmp(name + 33, ".json.", 6) == 0 && strspn(name + 39, "0123456789abcdef") == 16 &&
           strcmp(name + 55, ".tmp") == 0;
}

/* Removes temporary files. The caller has the lock, under which routers write, so these files are
 * of killed routers. */
static void leftovers_remove(const struct amp_spool *s)
{
    AMP_DIR DIR *d = amp_dir_open(s->dir, rooms[NEW]);
    for (struct dirent *e; d && (e = readdir(d));)
        if (is_temporary(e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
}

static int rooms_make(const struct amp_spool *s, const char *path, struct amp_error *err)
{
    for (int i = 0; i < ROOMS; i++) {
        if (mkdirat(s->dir, rooms[i], 0700) < 0 && errno != EEXIST)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", path, rooms[i]);
        AMP_CLOSE int fd = room_open(s, i, err);
        if (fd < 0)
            return -1;
    }
    return amp_fsync_dir(s->dir, ".", err);
}

int amp_spool_open(struct amp_spool *s, const char *path, struct amp_error *err)
{
    struct amp_spool made = {.dir = -1, .lock = -1};
    struct amp_error why;
    if (amp_mkdirs(path, 0700, err) < 0)
        return -1;
    made.dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (made.dir < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the spool %s", path);
    if (rooms_make(&made, path, err) < 0) {
        amp_spool_close(&made);
        return -1;
    }
    made.lock = amp_file_open(made.dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600, &why);
    if (made.lock < 0) {
        amp_spool_close(&made);
        return amp_fail_again(err, AMP_CANTCREAT, path, &why);
    }
    /* If another router has the lock, a later one removes them. */
    if (amp_lock(made.lock, 0, NULL) == 0) {
        leftovers_remove(&made);
        amp_unlock(made.lock);
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

/* 1: the file has this line, 0: it has not, -1 with errno. */
static int line_compare(int fd, struct amp_span line)
{
    char part[16384];
    size_t at = 0;
    ssize_t n;
    while ((n = read(fd, part, sizeof(part))) != 0) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        size_t left = line.n - at;
        if ((size_t)n > left || memcmp(part, line.p + at, (size_t)n) != 0)
            return 0;
        at += (size_t)n;
    }
    return at == line.n;
}

enum { FOUND_NOTHING, FOUND_MESSAGE, FOUND_EMPTY };

/* Looks for the name in one directory: nothing, the same message, or a file without content. -1:
 * error, also for another message or a file that is not regular. */
static int room_look(struct amp_spool *s, int i, const char *name, struct amp_span text,
                     struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int room = room_open(s, i, err);
    if (room < 0)
        return -1;
    AMP_CLOSE int fd = openat(room, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return FOUND_NOTHING;
    if (fd < 0 && errno != ELOOP && errno != ENXIO)
        return amp_fail_errno(err, AMP_IOERR, "cannot open %s/%s in the spool", rooms[i], name);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return amp_fail(err, AMP_IOERR, not_a_file,
                        "%s/%s in the spool is not a regular file: remove it", rooms[i], name);
    /* A finished file may be made empty. In new an empty file was never a message. */
    if (st.st_size == 0 && i == NEW)
        return FOUND_EMPTY;
    int rc = st.st_size == 0 && i == DONE ? 1 : line_compare(fd, text);
    if (rc < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s/%s in the spool", rooms[i], name);
    if (rc == 0)
        return amp_fail(err, AMP_NO, duplicate_msg_id,
                        "%s/%s in the spool is another message of the same id", rooms[i], name);
    /* Its bytes were synced before it got its name; the router may have been killed before it
     * synced the name. */
    s->unsynced[i] = true;
    return FOUND_MESSAGE;
}

/* room_look in all directories, in the order in which a file moves. */
static int rooms_look(struct amp_spool *s, const char *name, struct amp_span text,
                      struct amp_error *err)
{
    int rc = FOUND_NOTHING;
    for (int i = 0; i < ROOMS && rc == FOUND_NOTHING; i++)
        rc = room_look(s, i, name, text, err);
    return rc;
}

static enum amp_spooled line_publish(struct amp_spool *s, const char *name, struct amp_span text,
                                     struct amp_error *err)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int rc = rooms_look(s, name, text, err);
        if (rc == FOUND_MESSAGE)
            return AMP_SPOOLED_BEFORE;
        AMP_CLOSE int room = rc < 0 ? -1 : room_open(s, NEW, err);
        if (room < 0)
            return AMP_SPOOLED_FAILED;
        rc = rc == FOUND_EMPTY ? amp_file_write_atomic(room, name, 0600, text, err)
                               : amp_file_publish(room, name, 0600, text, err);
        if (rc <= 0)
            return rc < 0 ? AMP_SPOOLED_FAILED : AMP_SPOOLED_NEW;
        /* A process without the lock published the name: look at its file. */
    }
    return amp_fail(err, AMP_IOERR, spool_busy, "new/%s in the spool appears and disappears", name);
}

enum amp_spooled amp_spool_put(struct amp_spool *s, const char *name, struct amp_span line,
                               struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, line.n + 2);
    if (amp_buf_add(&text, line.p, line.n, err) < 0 || amp_buf_add(&text, "\n", 1, err) < 0)
        return AMP_SPOOLED_FAILED;
    if (amp_lock(s->lock, LOCK_WAIT_MS, err) < 0)
        return AMP_SPOOLED_FAILED;
    enum amp_spooled said = line_publish(s, name, amp_buf_span(&text), err);
    amp_unlock(s->lock);
    return said;
}

/* Syncs the directories of found messages. */
static int rooms_sync(struct amp_spool *s, struct amp_error *err)
{
    for (int i = 0; i < ROOMS; i++) {
        if (!s->unsynced[i])
            continue;
        AMP_CLOSE int room = room_open(s, i, err);
        if (room < 0)
            return -1;
        if (fsync(room) < 0)
            return amp_fail_errno(err, AMP_IOERR, "cannot sync the directory %s of the spool",
                                  rooms[i]);
        s->unsynced[i] = false;
    }
    return 0;
}

/* ---- the port ---- */

static int spool_open(struct amp_port *p, struct amp_error *err)
{
    if (!(p->spool = calloc(1, sizeof(*p->spool))))
        return amp_fail_memory(err);
    p->spool->dir = p->spool->lock = -1;
    return amp_spool_open(p->spool, p->arg, err);
}

static int spool_offer(struct amp_port *p, struct amp_span id, struct amp_span line, uint64_t tag,
                       int64_t since_ms, struct amp_error *err)
{
    char name[AMP_SPOOL_NAME_MAX];
    amp_spool_name(p->opt.consumer, id, line, name);
    if (amp_spool_put(p->spool, name, line, err) == AMP_SPOOLED_FAILED)
        return -1;
    /* It is delivered; the next step syncs and reports it. */
    return amp_queue_add(&p->queue, (struct amp_span){"", 0}, tag, since_ms, err);
}

static void spool_step(struct amp_port *p)
{
    const struct amp_queued *head;
    struct amp_error why = {0};
    int rc = amp_queue_at(&p->queue, 0) ? rooms_sync(p->spool, &why) : 0;
    while ((head = amp_queue_at(&p->queue, 0))) {
        uint64_t tag = head->tag;
        p->reporting = head->number;
        amp_queue_pop(&p->queue);
        amp_port_report(p, tag, rc < 0 ? &why : NULL);
    }
}

static int64_t spool_watch(const struct amp_port *p, struct pollfd *fds)
{
    (void)fds;
    return p->queue.n > 0 ? 0 : -1;
}

static void spool_close(struct amp_port *p)
{
    if (p->spool)
        amp_spool_close(p->spool);
    free(p->spool);
}

const struct amp_port_ops amp_port_spool = {.word = "spool",
                                            .takes_arg = true,
                                            .open = spool_open,
                                            .offer = spool_offer,
                                            .step = spool_step,
                                            .watch = spool_watch,
                                            .close = spool_close};
