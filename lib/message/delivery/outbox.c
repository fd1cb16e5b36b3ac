/* Emits committed entries and closes written ones. */
#include "message/delivery/outbox.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <amp/base/file.h>

#include "base/codes.h"
#include "base/file/line.h"
#include "base/grow.h"
#include "message/delivery/sender/identity.h"
#include "message/delivery/settle/sweep.h"

int amp_outbox_lock(struct amp_store *s, const char *name, int64_t timeout_ms, int *fd,
                    struct amp_error *err)
{
    char path[PATH_MAX + 256];
    struct amp_error why;
    snprintf(path, sizeof path, "%s/run", amp_store_dir(s));
    if (amp_mkdirs(path, 0700, err) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/run/%s.lock", amp_store_dir(s), name);
    AMP_CLOSE int lock = amp_file_open(AT_FDCWD, path, O_RDWR | O_CREAT | O_NOFOLLOW, 0600, err);
    if (lock < 0)
        return -1;
    if (amp_lock(lock, timeout_ms, &why) < 0) {
        if (amp_code_is(why.code, lock_timeout))
            amp_fail(
                &why, AMP_TEMPFAIL, lock_timeout,
                "another %s runs on this state directory: wait for it, or use another name (--as)",
                name);
        *err = why;
        return -1;
    }
    *fd = lock;
    lock = -1;
    return 0;
}

bool amp_outbox_locked(struct amp_store *s, const char *name)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[PATH_MAX + 256];

    snprintf(path, sizeof path, "%s/run/%s.lock", amp_store_dir(s), name);
    AMP_CLOSE int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno != ENOENT;
    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

struct emission {
    struct amp_outbox *o;
    bool full;
};

static bool is_new(const struct amp_outbox *o, const struct amp_store_entry *e)
{
    return e->n > o->last.n || (e->n == o->last.n && e->index > o->last.index);
}

static int entry_emit(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct emission *em = ctx;
    struct amp_outbox *o = em->o;
    struct amp_error why;
    if (!is_new(o, e))
        return 0;
    if (amp_grow(&o->wait, &o->cap_wait, o->n_wait, sizeof *o->wait, err) < 0)
        return -1;
    bool is_void = false;
    if (o->sends_again && amp_attempt_is_void(o->store, e->id, &is_void, err) < 0)
        return -1;
    if (is_void) {
        o->last = (struct amp_store_entry_id){e->n, e->index};
        o->wait[o->n_wait++] = (struct amp_outbox_line){o->last, o->out->added};
        return 0;
    }
    if (!o->began && o->out->added == 0 && amp_line_end(o->out->fd, err) < 0)
        return -1;
    o->began = true;
    o->line.max = o->out->buf.max;
    amp_buf_reset(&o->line);
    int rc = o->sends_again ? amp_identities_sign_again(o->ids, o->store, e->line, &o->line, err)
                            : amp_identities_sign(o->ids, e->line, &o->line, err);
    if (rc < 0 || amp_buf_add(&o->line, "\n", 1, err) < 0)
        return -1;
    if (amp_outq_add(o->out, amp_buf_span(&o->line), &why) < 0) {
        em->full = amp_code_is(why.code, buffer_full) && amp_outq_pending(o->out) > 0;
        if (!em->full)
            *err = why;
        return em->full ? 1 : -1;
    }
    o->last = (struct amp_store_entry_id){e->n, e->index};
    if (!e->wants_ack)
        o->wait[o->n_wait++] = (struct amp_outbox_line){o->last, o->out->added};
    return 0;
}

int amp_outbox_emit(struct amp_outbox *o, struct amp_error *err)
{
    struct emission em = {.o = o};
    if (amp_store_sync(o->store, err) < 0 ||
        amp_store_outbox(o->store, o->name, entry_emit, &em, err) < 0)
        return -1;
    return em.full;
}

int amp_outbox_settle(struct amp_outbox *o, struct amp_error *err)
{
    struct amp_store_entry_id ids[256];
    size_t done = 0;
    int rc = 0;
    while (rc == 0 && done < o->n_wait && o->wait[done].at <= o->out->written) {
        uint32_t n = 0;
        while (n < 256 && done < o->n_wait && o->wait[done].at <= o->out->written)
            ids[n++] = o->wait[done++].id;
        rc = amp_store_outbox_close(o->store, o->name, ids, n, err);
    }
    if (done)
        memmove(o->wait, o->wait + done, (o->n_wait - done) * sizeof *o->wait);
    o->n_wait -= done;
    return rc;
}

int amp_outbox_finish(struct amp_outbox *o, volatile const int *stop, struct amp_error *err)
{
    int more;
    do {
        more = amp_outbox_emit(o, err);
        if (more < 0 || amp_outq_drain(o->out, -1, stop, err) < 0 || amp_outbox_settle(o, err) < 0)
            return -1;
    } while (more);
    return 0;
}

static int entry_waits(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    struct emission *em = ctx;
    (void)err;
    em->full = is_new(em->o, e);
    return em->full;
}

int amp_outbox_waits(struct amp_outbox *o, bool *any, struct amp_error *err)
{
    struct emission em = {.o = o};
    int rc = amp_store_outbox(o->store, o->name, entry_waits, &em, err);
    *any = em.full;
    return rc;
}

void amp_outbox_release(struct amp_outbox *o)
{
    free(o->wait);
    amp_buf_release(&o->line);
    o->wait = NULL;
    o->n_wait = o->cap_wait = 0;
}

static int entry_any(void *ctx, const struct amp_store_entry *e, struct amp_error *err)
{
    *(bool *)ctx = true;
    return 1;
}

int amp_outbox_any(struct amp_store *s, const char *name, bool *any, struct amp_error *err)
{
    *any = false;
    return amp_store_outbox(s, name, entry_any, any, err);
}
