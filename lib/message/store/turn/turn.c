/*
 * Turns: holding the lock `main`.
 *
 * A turn begins with the turnstile, the check for a failure and the catch-up. It ends by writing
 * the appended frames, rotating a full segment, committing the index and unlocking. The fdatasync
 * comes later, outside the lock (amp_store_sync). The last frame of a turn says that it is the
 * last. If the index is needed in the middle of a turn, the frames so far are written without an
 * end, and a crash before the end leaves an index that is ahead of the log, which is made again.
 * TERM, INT, HUP and TSTP are blocked while main is held.
 */
#include "base/codes.h"
#include "message/store/store_int.h"

enum { WAL_IN_TURN = 8000, WAL_OUTSIDE = 4000, WAL_AT_END = 128, FRAMES_AT_END = 128 };

static int lock_take(struct amp_store *s, struct amp_error *err)
{
    sigset_t wait;
    sigemptyset(&wait);
    sigaddset(&wait, SIGTERM);
    sigaddset(&wait, SIGINT);
    sigaddset(&wait, SIGHUP);
    sigaddset(&wait, SIGTSTP);
    sigprocmask(SIG_BLOCK, &wait, &s->mask);
    /* A read-only store shares main with other readers. */
    if ((s->opt.read_only ? amp_lock_shared(s->lock.main, s->opt.lock_timeout_ms, err)
                          : amp_turnstile_enter(&s->lock, s->opt.lock_timeout_ms, err)) < 0) {
        sigprocmask(SIG_SETMASK, &s->mask, NULL);
        return -1;
    }
    s->in_turn = true;
    s->absent.n[0] = s->absent.n[1] = 0;
    s->turn_frames = 0;
    s->turn_bytes = 0;
    return 0;
}

static void lock_release(struct amp_store *s)
{
    s->in_turn = false;
    if (s->opt.read_only)
        amp_unlock(s->lock.main);
    else
        amp_turnstile_leave(&s->lock);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

/* Drops the frames that were not written, and what is known of the log's end. */
static void turn_abandon(struct amp_store *s)
{
    amp_log_abandon(&s->log);
    amp_index_end_read(&s->index);
    amp_index_rollback(&s->index);
    s->known = false;
}

static int turn_start(struct amp_store *s, struct amp_error *err)
{
    if (amp_store_check_failed(s, false, err) < 0 || lock_take(s, err) < 0)
        return -1;
    if (amp_store_check_failed(s, true, err) < 0 || amp_store_catch_up(s, err) < 0) {
        turn_abandon(s);
        lock_release(s);
        if (!s->far)
            return -1;
        amp_turn_help(s);
        return turn_start(s, err);
    }
    if (s->log.end.n > s->need)
        s->need = s->log.end.n;
    s->log.more = true;
    return 0;
}

/* Writes, rotates, commits. */
static int turn_write(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    if (amp_store_check_failed(s, false, err) < 0 || amp_log_end_turn(l, err) < 0)
        return -1;
    if (l->pending.len) {
        /* If a segment cannot be removed, it stays; the commit does not fail. */
        if (amp_store_compact(s, NULL) != 0 && amp_store_check_failed(s, false, err) < 0)
            return -1;
        if (amp_log_flush(l, err) < 0)
            return amp_store_fail(s, err);
        if (amp_store_segment_full(s) && amp_log_rotate(l, err) < 0)
            return amp_store_fail(s, err);
        if (l->end.n > s->need)
            s->need = l->end.n;
    }
    amp_index_end_read(&s->index);
    /* After a failure the next turn does this; the frames are in the log. */
    if (amp_cache_full(&s->cache))
        amp_turn_index(s, NULL);
    return 0;
}

static int turn_end(struct amp_store *s, struct amp_error *err)
{
    int rc = turn_write(s, err);
    if (rc < 0)
        turn_abandon(s);
    amp_index_end_read(&s->index);
    amp_index_checkpoint(&s->index, WAL_IN_TURN, true);
    lock_release(s);
    return rc;
}

void amp_turn_last(struct amp_store *s)
{
    bool own;
    int64_t wait = s->opt.lock_timeout_ms;
    if (s->opt.read_only || s->failed || !s->appended ||
        (s->cache.frames < FRAMES_AT_END && s->index.wal_pages <= WAL_AT_END))
        return;
    s->opt.lock_timeout_ms = 0;
    if (amp_turn_enter(s, &own, NULL) == 0) {
        if (s->cache.frames >= FRAMES_AT_END)
            amp_turn_index(s, NULL);
        amp_index_checkpoint(&s->index, WAL_AT_END, true);
        amp_turn_leave(s, own, 0, NULL);
    }
    s->opt.lock_timeout_ms = wait;
}

int amp_turn_enter(struct amp_store *s, bool *own, struct amp_error *err)
{
    *own = false;
    if (s->in_turn)
        return amp_store_check_failed(s, false, err);
    if (turn_start(s, err) < 0)
        return -1;
    *own = true;
    return 0;
}

int amp_turn_leave(struct amp_store *s, bool own, int rc, struct amp_error *err)
{
    return own && turn_end(s, rc < 0 ? NULL : err) < 0 ? -1 : rc;
}

int amp_turn_renew(struct amp_store *s, struct amp_error *err)
{
    bool unit = s->unit;
    s->unit = false;
    if (!s->batch || !unit || (s->turn_frames < AMP_TURN_FRAMES && s->turn_bytes < AMP_TURN_BYTES))
        return 0;
    if (turn_end(s, err) < 0)
        return -1;
    return turn_start(s, err);
}

int amp_store_begin(struct amp_store *s, struct amp_error *err)
{
    if (s->in_turn)
        return amp_fail(err, AMP_INTERNAL, nested_turn, "a batch within a batch");
    if (turn_start(s, err) < 0)
        return -1;
    s->batch = true;
    s->unit = false;
    return 0;
}

void amp_store_unit(struct amp_store *s)
{
    s->unit = true;
}

bool amp_store_in_batch(const struct amp_store *s)
{
    return s->batch;
}

void amp_store_end(struct amp_store *s)
{
    struct amp_error err;
    if (!s->batch)
        return;
    s->batch = false;
    if (!s->in_turn)
        return; /* a renewal failed and released the lock */
    /* The sync that must follow reports a failure. */
    if (turn_end(s, &err) < 0 && !s->failed) {
        s->late = err;
        s->is_late = true;
    }
}

/* A reader may sync, too, but does not record a failure. */
static int reader_sync(struct amp_store *s, struct amp_error *err)
{
    if (s->log.fd < 0 || amp_wm_get(&s->wm) >= s->need)
        return 0;
    if (amp_store_failed_before(s, true, err) < 0 || amp_log_datasync(&s->log, err) < 0 ||
        amp_store_failed_before(s, true, err) < 0)
        return -1;
    amp_log_synced(&s->log, s->need);
    return 0;
}

int amp_store_sync(struct amp_store *s, struct amp_error *err)
{
    struct amp_error why;
    if (s->opt.read_only)
        return reader_sync(s, err);
    if (s->in_turn)
        return amp_fail(err, AMP_INTERNAL, sync_in_turn, "a sync within a batch");
    if (s->is_late) {
        s->is_late = false;
        if (err)
            *err = s->late;
        return -1;
    }
    if (amp_store_check_failed(s, false, err) < 0)
        return -1;
    uint64_t need = s->need;
    if (s->log.fd < 0 || amp_wm_get(&s->wm) >= need)
        return 0;
    if (amp_log_datasync(&s->log, &why) != 0) {
        amp_store_fail(s, &why);
        if (err)
            *err = s->why;
        return -1;
    }
    /* After another process's failed sync, the kernel may have dropped this process's pages. */
    if (amp_store_check_failed(s, true, err) < 0)
        return -1;
    amp_log_synced(&s->log, need);
    amp_index_checkpoint(&s->index, WAL_OUTSIDE, false);
    return 0;
}
