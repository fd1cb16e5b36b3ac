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

#include "port/private.h"

#define LOCK_WAIT_MS 10000

#define TRIES 10

enum { NEW, CUR, DONE, ROOMS };
static const char *const rooms[ROOMS] = {"new", "cur", "done"};

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

/* A room, which must not be a link to elsewhere. */
static int open_room(const struct amp_spool *s, int i, struct amp_error *err)
{
    int fd = openat(s->dir, rooms[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? amp_fail_errno(err, AMP_IOERR, "cannot open the directory %s of the spool",
                                   rooms[i])
                  : fd;
}

/* A name that amp_file_publish made for a message of ours. */
static bool is_temporary(const char *name)
{
    size_t n = strlen(name), hex = strspn(name + 1, "0123456789abcdef");
    return n == 1 + 32 + 6 + 16 + 4 && name[0] == '.' && hex == 32 &&
           strncmp(name + 33, ".json.", 6) == 0 && strspn(name + 39, "0123456789abcdef") == 16 &&
           strcmp(name + 55, ".tmp") == 0;
}

/* Routers write under the lock: whoever has it finds only what killed ones left. */
static void remove_leftovers(const struct amp_spool *s)
{
    int fd = open_room(s, NEW, NULL);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return;
    }
    for (struct dirent *e; (e = readdir(d));)
        if (is_temporary(e->d_name))
            unlinkat(dirfd(d), e->d_name, 0);
    closedir(d);
}

static int make_rooms(const struct amp_spool *s, const char *path, struct amp_error *err)
{
    for (int i = 0; i < ROOMS; i++) {
        if (mkdirat(s->dir, rooms[i], 0700) < 0 && errno != EEXIST)
            return amp_fail_errno(err, AMP_CANTCREAT, "cannot make %s/%s", path, rooms[i]);
        AMP_CLOSE int fd = open_room(s, i, err);
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
    if (make_rooms(&made, path, err) < 0) {
        amp_spool_close(&made);
        return -1;
    }
    made.lock = amp_file_open(made.dir, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600, &why);
    if (made.lock < 0) {
        amp_spool_close(&made);
        return amp_fail_again(err, AMP_CANTCREAT, path, &why);
    }
    if (amp_lock(made.lock, 0, NULL) ==
        0) { /* else another router is at work; the next one does it */
        remove_leftovers(&made);
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

/* 1 the file holds line, 0 it does not, -1 with errno. */
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
        size_t left = line.n - at;
        if ((size_t)n > left || memcmp(part, line.p + at, (size_t)n) != 0)
            return 0;
        at += (size_t)n;
    }
    return at == line.n;
}

/* What has the name in one room: 1 our message; 0 nothing; 2 a file that was never
 * written. Another message, or what is no file, is an error. */
static int look(struct amp_spool *s, int i, const char *name, struct amp_span text,
                struct amp_error *err)
{
    struct stat st;
    AMP_CLOSE int room = open_room(s, i, err);
    if (room < 0)
        return -1;
    AMP_CLOSE int fd = openat(room, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 && errno != ELOOP && errno != ENXIO)
        return amp_fail_errno(err, AMP_IOERR, "cannot open %s/%s in the spool", rooms[i], name);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return amp_fail(err, AMP_IOERR, "not_a_file",
                        "%s/%s in the spool is not a regular file: remove it", rooms[i], name);
    /* What is finished may be made empty. In new an empty file was never a message. */
    if (st.st_size == 0 && i == NEW)
        return 2;
    int rc = st.st_size == 0 && i == DONE ? 1 : same(fd, text);
    if (rc < 0)
        return amp_fail_errno(err, AMP_IOERR, "cannot read %s/%s in the spool", rooms[i], name);
    if (rc == 0)
        return amp_fail(err, AMP_NO, "duplicate_msg_id",
                        "%s/%s in the spool is another message of the same id", rooms[i], name);
    /* Its bytes were synced before it got its name; the router may have been killed before it
     * synced the name. */
    s->unsynced[i] = true;
    return 1;
}

/* As look, for all rooms in the order in which a file moves. */
static int known(struct amp_spool *s, const char *name, struct amp_span text, struct amp_error *err)
{
    int rc = 0;
    for (int i = 0; i < ROOMS && rc == 0; i++)
        rc = look(s, i, name, text, err);
    return rc;
}

static int publish(struct amp_spool *s, const char *name, struct amp_span text,
                   struct amp_error *err)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int rc = known(s, name, text, err);
        if (rc != 0 && rc != 2)
            return rc;
        AMP_CLOSE int room = open_room(s, NEW, err);
        if (room < 0)
            return -1;
        if (rc == 2)
            return amp_file_write_atomic(room, name, 0600, text, err);
        rc = amp_file_publish(room, name, 0600, text, err);
        if (rc <= 0)
            return rc;
        /* Somebody who does not know the lock was faster: see what it is. */
    }
    return amp_fail(err, AMP_IOERR, "spool_busy", "new/%s in the spool appears and disappears",
                    name);
}

int amp_spool_put(struct amp_spool *s, const char *name, struct amp_span line,
                  struct amp_error *err)
{
    AMP_BUF struct amp_buf text = {0};
    amp_buf_init(&text, line.n + 2);
    if (amp_buf_add(&text, line.p, line.n, err) < 0 || amp_buf_add(&text, "\n", 1, err) < 0)
        return -1;
    if (amp_lock(s->lock, LOCK_WAIT_MS, err) < 0)
        return -1;
    int rc = publish(s, name, amp_buf_span(&text), err);
    amp_unlock(s->lock);
    return rc;
}

/* Syncs what amp_spool_put found. */
static int rooms_sync(struct amp_spool *s, struct amp_error *err)
{
    for (int i = 0; i < ROOMS; i++) {
        if (!s->unsynced[i])
            continue;
        AMP_CLOSE int room = open_room(s, i, err);
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
    if (amp_spool_put(p->spool, name, line, err) < 0)
        return -1;
    /* Delivered already; the next step syncs, and reports it. */
    return amp_queue_add(&p->queue, (struct amp_span){"", 0}, tag, since_ms, err);
}

static void spool_step(struct amp_port *p, amp_port_done_fn done, void *ctx)
{
    const struct amp_queued *head;
    struct amp_error why = {0};
    int rc = amp_queue_at(&p->queue, 0) ? rooms_sync(p->spool, &why) : 0;
    while ((head = amp_queue_at(&p->queue, 0))) {
        uint64_t tag = head->tag;
        p->telling = head->number;
        amp_queue_pop(&p->queue);
        done(ctx, tag, rc < 0 ? &why : NULL);
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
