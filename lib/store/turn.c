/*
 * Turns: who holds main, and what happens at the end of it.
 *
 * Enter: the turnstile, the failure flag, catching up. Leave: write what was appended, rotate when
 * the segment is full, commit the index, note the end, unlock. The fdatasync comes later, outside
 * the lock (amp_store_sync). TERM, INT, HUP and TSTP wait while main is held.
 */
#include "store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>

enum { WAL_IN_TURN = 8000, WAL_OUTSIDE = 4000, WAL_AT_END = 128, FRAMES_AT_END = 128 };

int amp_store_fail(struct amp_store *s, const struct amp_error *err)
{
    if (!s->failed) {
        char text[600], at[AMP_TIME_MAX];
        s->failed = true;
        if (err)
            s->why = *err;
        else
            amp_fail(&s->why, AMP_TEMPFAIL, "log_failed", "a write failed");
        s->why.status = AMP_TEMPFAIL;
        amp_wm_set_failed(&s->wm, true);
        amp_time_format(amp_now_ms(), at);
        int n = snprintf(text, sizeof text, "%s %s: %s\n", at, s->why.code, s->why.what);
        int fd = amp_file_open(s->logfd, "FAILED", O_WRONLY | O_CREAT | O_APPEND, 0600, NULL);
        if (fd >= 0) {
            /* What it says is for people; that it is there is what counts. */
            if (n < 0 || write(fd, text, strlen(text)) < 0 || fsync(fd) != 0 ||
                fsync(s->logfd) != 0)
                n = -1;
            close(fd);
        }
    }
    return -1;
}

/* look: in the directory too. That is done where a turn starts and after a sync, which is what an
 * acknowledgement rests on; between them what is known in memory does. */
static int failed_before(const struct amp_store *s, bool look, struct amp_error *err)
{
    if (amp_wm_failed(&s->wm) || (look && faccessat(s->logfd, "FAILED", F_OK, 0) == 0))
        return amp_fail(
            err, AMP_TEMPFAIL, "log_failed",
            "a write to the log failed (see %s/log/FAILED); mend it with amp-ack repair", s->dir);
    return 0;
}

static int check_failed(struct amp_store *s, bool look, struct amp_error *err)
{
    if (s->opt.read_only)
        return 0;
    if (s->failed) {
        if (err)
            *err = s->why;
        return -1;
    }
    return failed_before(s, look, err);
}

/* A read-only store shares main with other readers. */
static int lock_shared(struct amp_store *s, struct amp_error *err)
{
    return amp_lock_shared(s->lock.main, s->opt.lock_timeout_ms, err);
}

static int take(struct amp_store *s, struct amp_error *err)
{
    sigset_t wait;
    sigemptyset(&wait);
    sigaddset(&wait, SIGTERM);
    sigaddset(&wait, SIGINT);
    sigaddset(&wait, SIGHUP);
    sigaddset(&wait, SIGTSTP);
    sigprocmask(SIG_BLOCK, &wait, &s->mask);
    if ((s->opt.read_only ? lock_shared(s, err)
                          : amp_turnstile_enter(&s->lock, s->opt.lock_timeout_ms, err)) != 0) {
        sigprocmask(SIG_SETMASK, &s->mask, NULL);
        return -1;
    }
    s->in_turn = true;
    s->turn_frames = 0;
    s->turn_bytes = 0;
    return 0;
}

static void give(struct amp_store *s)
{
    s->in_turn = false;
    if (s->opt.read_only)
        amp_unlock(s->lock.main);
    else
        amp_turnstile_leave(&s->lock);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

static int start(struct amp_store *s, struct amp_error *err)
{
    if (check_failed(s, false, err) != 0 || take(s, err) != 0)
        return -1;
    if (check_failed(s, true, err) != 0 || amp_store_catch_up(s, err) != 0) {
        amp_buf_reset(&s->log.pending);
        amp_index_end_read(&s->index);
        amp_index_rollback(&s->index);
        s->known = false;
        give(s);
        return -1;
    }
    if (s->log.end.n > s->need)
        s->need = s->log.end.n;
    return 0;
}

/* Writes, rotates, commits. */
static int settle(struct amp_store *s, struct amp_error *err)
{
    struct amp_log *l = &s->log;
    if (check_failed(s, false, err) != 0)
        return -1;
    if (l->pending.len) {
        /* What cannot be let go stays; that is no reason to refuse a commit. */
        if (amp_store_compact(s, NULL) != 0 && check_failed(s, false, err) != 0)
            return -1;
        if (amp_log_flush(l, err) != 0)
            return amp_store_fail(s, err);
        if (amp_store_segment_full(s) && amp_log_rotate(l, err) != 0)
            return amp_store_fail(s, err);
        if (l->end.n > s->need)
            s->need = l->end.n;
    }
    amp_index_end_read(&s->index);
    /* A failure leaves the frames to the next turn; they are in the log. */
    if (amp_cache_full(&s->cache))
        amp_turn_index(s, NULL);
    return 0;
}

static int end(struct amp_store *s, struct amp_error *err)
{
    int rc = settle(s, err);
    if (rc != 0) {
        amp_buf_reset(&s->log.pending);
        amp_index_rollback(&s->index);
        s->known = false;
    }
    amp_index_end_read(&s->index);
    amp_index_checkpoint(&s->index, WAL_IN_TURN, true);
    give(s);
    return rc;
}

void amp_turn_last(struct amp_store *s)
{
    bool own;
    int64_t wait = s->opt.lock_timeout_ms;
    if (s->opt.read_only || s->failed ||
        (s->cache.frames < FRAMES_AT_END && s->index.wal_pages <= WAL_AT_END))
        return;
    s->opt.lock_timeout_ms = 0;
    if (amp_turn_enter(s, &own, NULL) == 0) {
        if (s->cache.frames >= FRAMES_AT_END)
            amp_turn_index(s, NULL);
        amp_index_checkpoint(&s->index, WAL_AT_END, true);
        amp_turn_leave(s, own, NULL);
    }
    s->opt.lock_timeout_ms = wait;
}

int amp_turn_enter(struct amp_store *s, bool *own, struct amp_error *err)
{
    *own = false;
    if (s->in_turn)
        return check_failed(s, false, err);
    if (start(s, err) != 0)
        return -1;
    *own = true;
    return 0;
}

int amp_turn_leave(struct amp_store *s, bool own, struct amp_error *err)
{
    return own ? end(s, err) : 0;
}

int amp_turn_renew(struct amp_store *s, struct amp_error *err)
{
    if (!s->batch || (s->turn_frames < AMP_TURN_FRAMES && s->turn_bytes < AMP_TURN_BYTES))
        return 0;
    if (end(s, err) != 0)
        return -1;
    return start(s, err);
}

int amp_turn_append(struct amp_store *s, struct amp_frame *f, struct amp_pos *at,
                    struct amp_error *err)
{
    if (amp_log_append(&s->log, f, at, err) != 0)
        return -1;
    s->turn_frames++;
    s->turn_bytes += f->head.size;
    if (amp_cache_note(&s->cache, f, at, err) == 0 || amp_turn_index(s, NULL) == 0)
        return 0;
    /* Nobody may decide on what we now do not know. */
    return amp_store_fail(s, err);
}

int amp_turn_heal(struct amp_store *s, struct amp_error *err)
{
    if (!s->index.corrupt || s->failed)
        return -1;
    if (amp_log_flush(&s->log, err) != 0)
        return amp_store_fail(s, err);
    return amp_store_new_generation(s, err);
}

int amp_turn_misled(struct amp_store *s, uint32_t seg, struct amp_error *err)
{
    struct amp_pos pos = {.seg = seg};
    bool ends = true;
    if (amp_log_flush(&s->log, err) != 0)
        return amp_store_fail(s, err);
    if (seg >= s->log.first && seg <= s->log.last &&
        amp_log_scan_segment(&s->log, &pos, &ends, NULL, NULL, err) != 0)
        return -1;
    if (!ends)
        return amp_log_damaged(&pos, "no intact frame stands there", err);
    s->index.corrupt = true;
    return amp_turn_heal(s, err);
}

/* The cache into the index; -1 where that is not the place for it, and the log is to be read. */
static int cache_into_index(struct amp_store *s)
{
    struct amp_index *ix = &s->index;
    if (!s->known || ix->memory || ix->corrupt || s->opt.read_only || !amp_index_current(ix))
        return -1;
    if (amp_index_begin(ix, NULL) == 0 && amp_index_read_meta(ix, NULL) == 0 &&
        ix->pos.n >= s->cache.from && ix->pos.n <= s->log.end.n &&
        amp_cache_into(&s->cache, ix, NULL) == 0 && amp_index_commit(ix, &s->log.end, NULL) == 0) {
        amp_cache_clear(&s->cache, s->log.end.n);
        return 0;
    }
    amp_index_rollback(ix);
    return -1;
}

int amp_turn_index(struct amp_store *s, struct amp_error *err)
{
    if (!s->cache.frames && !s->log.pending.len)
        return 0;
    if (amp_log_flush(&s->log, err) != 0)
        return amp_store_fail(s, err);
    amp_index_end_read(&s->index);
    if (cache_into_index(s) == 0 || amp_store_bring_up(s, err) == 0)
        return 0;
    amp_index_rollback(&s->index);
    return amp_turn_heal(s, err);
}

int amp_turn_rec(struct amp_store *s, struct amp_span key, struct amp_index_rec *out,
                 struct amp_error *err)
{
    int rc = amp_cache_find(&s->cache, key, out);
    if (rc >= 0)
        return rc;
    rc = amp_index_begin_read(&s->index, err) != 0 ? -1 : amp_index_rec(&s->index, key, out, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = amp_index_rec(&s->index, key, out, err);
    return rc;
}

/* What an input's frame says of its bytes. A frame that went with its segment says nothing. 2: the
 * frame there is not of this input. */
static int input_sum(struct amp_store *s, const struct amp_index_rec *at, struct amp_span consumer,
                     struct amp_span id, char sum[AMP_DIGEST_MAX], struct amp_error *err)
{
    struct amp_span frame;
    struct amp_frame_head head;
    struct amp_frame f;
    if (at->seg < s->log.first || amp_log_fd(&s->log, at->seg, NULL) < 0)
        return 0;
    if (amp_log_frame(&s->log, at->seg, at->off, at->len, &frame, &head, err) != 0)
        return 2;
    if (amp_frame_decode(frame, &head, &s->check, &f, err) != 0)
        return -1;
    if (!amp_span_eq(f.in_id, id) || !amp_span_eq(f.in_consumer, consumer)) {
        amp_fail(err, AMP_TEMPFAIL, "index_failed", "the index has a wrong place for an input");
        return 2;
    }
    amp_span_copy(f.in_sum, sum, AMP_DIGEST_MAX);
    return 1;
}

/* Where the frame of an input is: 1, 0 when there is none, -1. */
static int find_input(struct amp_store *s, struct amp_span consumer, struct amp_span id,
                      struct amp_index_rec *at, struct amp_error *err)
{
    int rc = amp_cache_seen(&s->cache, consumer, id, at);
    if (rc >= 0)
        return rc;
    rc = amp_index_begin_read(&s->index, err) != 0
             ? -1
             : amp_index_seen(&s->index, consumer, id, at, err);
    if (rc < 0 && amp_turn_heal(s, err) == 0)
        rc = amp_index_seen(&s->index, consumer, id, at, err);
    return rc;
}

int amp_turn_seen(struct amp_store *s, struct amp_span consumer, struct amp_span id,
                  char sum[AMP_DIGEST_MAX], struct amp_error *err)
{
    struct amp_index_rec at;
    for (int round = 0;; round++) {
        int rc = find_input(s, consumer, id, &at, err);
        if (rc == 1)
            rc = input_sum(s, &at, consumer, id, sum, err);
        if (rc < 2)
            return rc;
        if (round || amp_turn_misled(s, at.seg, err) != 0)
            return -1;
    }
}

int amp_store_begin(struct amp_store *s, struct amp_error *err)
{
    if (s->in_turn)
        return amp_fail(err, AMP_INTERNAL, "nested_turn", "a batch within a batch");
    if (start(s, err) != 0)
        return -1;
    s->batch = true;
    return 0;
}

void amp_store_end(struct amp_store *s)
{
    struct amp_error err;
    if (!s->batch)
        return;
    s->batch = false;
    if (!s->in_turn)
        return; /* a renewal failed and gave the lock back */
    /* A failure is reported by the sync that must follow. */
    if (end(s, &err) != 0 && !s->failed) {
        s->late = err;
        s->is_late = true;
    }
}

/* A reader may sync, too; it keeps no record of a failure. */
static int sync_read(struct amp_store *s, struct amp_error *err)
{
    if (s->log.fd < 0 || amp_wm_get(&s->wm) >= s->need)
        return 0;
    if (failed_before(s, true, err) != 0 || amp_log_datasync(&s->log, err) != 0 ||
        failed_before(s, true, err) != 0)
        return -1;
    amp_wm_raise(&s->wm, s->need);
    return 0;
}

int amp_store_sync(struct amp_store *s, struct amp_error *err)
{
    struct amp_error why;
    if (s->opt.read_only)
        return sync_read(s, err);
    if (s->in_turn)
        return amp_fail(err, AMP_INTERNAL, "sync_in_turn", "a sync within a batch");
    if (s->is_late) {
        s->is_late = false;
        if (err)
            *err = s->late;
        return -1;
    }
    if (check_failed(s, false, err) != 0)
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
    /* Another process's failed sync may have taken our pages with it. */
    if (check_failed(s, true, err) != 0)
        return -1;
    amp_wm_raise(&s->wm, need);
    amp_index_checkpoint(&s->index, WAL_OUTSIDE, false);
    return 0;
}
