/* The thread that fills the index. */
#include "store/cache/filler.h"

#include <signal.h>
#include <sqlite3.h>

enum { WAL_LONG = 2000 };

void amp_filler_init(struct amp_filler *f, int dirfd, const char *dir, struct amp_watermark *wm)
{
    *f = (struct amp_filler){.wm = wm};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    amp_tail_init(&f->tail);
    amp_index_init(&f->index, dirfd, dir, false);
}

static struct amp_span column(sqlite3_stmt *st, int i)
{
    const char *p = sqlite3_column_blob(st, i);
    return (struct amp_span){p, p ? (size_t)sqlite3_column_bytes(st, i) : 0};
}

static int scan_table(struct amp_index *ix, enum amp_index_statement which, enum amp_tail_kind kind,
                      struct amp_filter *out)
{
    int rc;
    sqlite3_stmt *st = amp_index_stmt(ix, which, NULL);
    if (!st)
        return -1;
    while ((rc = amp_index_step(ix, st, NULL)) == 1)
        amp_filter_add(out, amp_tail_hash(kind, column(st, 0), column(st, 1)));
    return rc;
}

static int64_t how_many(struct amp_index *ix)
{
    sqlite3_stmt *st = amp_index_stmt(ix, AMP_IX_ALL, NULL);
    if (!st || amp_index_step(ix, st, NULL) != 1)
        return -1;
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_reset(st);
    return n;
}

void amp_filler_scan(struct amp_index *ix, struct amp_filter *out)
{
    amp_filter_release(out);
    int64_t n = how_many(ix);
    if (n < 0)
        return;
    amp_filter_make(out, (uint64_t)n);
    if (scan_table(ix, AMP_IX_ALL_REC, AMP_TAIL_KEY, out) != 0 ||
        scan_table(ix, AMP_IX_ALL_SEEN, AMP_TAIL_INPUT, out) != 0)
        amp_filter_release(out);
}

static int fill(struct amp_filler *f)
{
    struct amp_index *ix = &f->index;
    if (amp_index_begin(ix, NULL) != 0)
        return -1;
    if (amp_index_read_meta(ix, NULL) == 0 && ix->pos.n >= f->tail.from &&
        amp_wm_epoch(f->wm) == f->epoch && !amp_wm_failed(f->wm)) {
        if (ix->pos.n >= f->to.n) { /* another process was faster */
            amp_index_rollback(ix);
            return 0;
        }
        if (amp_tail_into(&f->tail, ix, NULL) == 0 && amp_index_commit(ix, &f->to, NULL) == 0)
            return 0;
    }
    amp_index_rollback(ix);
    return -1;
}

static void *run(void *ctx)
{
    struct amp_filler *f = ctx;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        while (!f->work && !f->stop)
            pthread_cond_wait(&f->changed, &f->lock);
        if (!f->work)
            break;
        pthread_mutex_unlock(&f->lock);
        bool ok = fill(f) == 0;
        /* A read transaction by itself: what others bring in later is in our tails, too. */
        if (ok && f->want_filter && amp_index_begin_read(&f->index, NULL) == 0) {
            amp_filler_scan(&f->index, &f->filter);
            amp_index_end_read(&f->index);
        }
        amp_index_checkpoint(&f->index, WAL_LONG, false);
        pthread_mutex_lock(&f->lock);
        f->ok = ok;
        f->work = false;
        pthread_cond_signal(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static int start(struct amp_filler *f)
{
    sigset_t all, old;
    if (f->started)
        return 0;
    /* Signals are for the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    f->started = pthread_create(&f->thread, NULL, run, f) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return f->started ? 0 : -1;
}

int amp_filler_post(struct amp_filler *f, const struct amp_index *ix, struct amp_tail *t,
                    const struct amp_pos *to)
{
    if (f->posted || f->tail.frames || ix->memory || ix->read_only || ix->corrupt ||
        !amp_index_current(ix))
        return -1;
    if ((!f->index.db || f->index.gen != ix->gen || f->index.ino != ix->ino || f->index.corrupt) &&
        (amp_index_open(&f->index, ix->gen, NULL) != 0 || f->index.gen != ix->gen)) {
        amp_index_close(&f->index);
        return -1;
    }
    if (start(f) != 0)
        return -1;
    struct amp_tail frozen = *t;
    *t = f->tail;
    f->tail = frozen;
    amp_tail_clear(t, to->n);
    f->to = *to;
    f->epoch = amp_wm_epoch(f->wm);
    f->posted = true;
    pthread_mutex_lock(&f->lock);
    f->work = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

bool amp_filler_idle(struct amp_filler *f, bool wait)
{
    if (!f->posted)
        return true;
    pthread_mutex_lock(&f->lock);
    while (f->work && wait)
        pthread_cond_wait(&f->changed, &f->lock);
    f->posted = f->work;
    pthread_mutex_unlock(&f->lock);
    return !f->posted;
}

void amp_filler_release(struct amp_filler *f)
{
    if (f->started) {
        pthread_mutex_lock(&f->lock);
        f->stop = true;
        pthread_cond_signal(&f->changed);
        pthread_mutex_unlock(&f->lock);
        pthread_join(f->thread, NULL);
    }
    amp_index_close(&f->index);
    amp_tail_release(&f->tail);
    amp_filter_release(&f->filter);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->changed);
}
