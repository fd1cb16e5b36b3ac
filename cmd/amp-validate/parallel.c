/*
 * Several judges, each in its own thread. The main thread reads, distributes chunks and writes the
 * results in the order of the chunks; a ring of slots limits their number. Workers change only
 * their slot, so the main thread reports errors, in the same order.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "validation.h"

enum { JOBS_MOST = 64, SLOTS_EACH = 3, CHUNK_SIZE = 128 << 10, LINES_MOST = 8192 };

enum progress { FREE, WAITING, UNDER_WAY, DONE };

struct slot {
    enum progress progress; /* under the lock */
    struct amp_buf buf;     /* the chunk's memory */
    struct chunk chunk;
    struct chunk_result result;
    bool failed;
    struct amp_error err;
};

struct pool {
    struct validation *session;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_t thread[JOBS_MOST];
    struct judge *judge[JOBS_MOST];
    unsigned n_threads, started; /* judges that have a thread, under the lock */
    struct slot slot[JOBS_MOST * SLOTS_EACH];
    unsigned n_slots;
    unsigned head, count; /* for the main thread: the oldest slot in use, the number in use */
    unsigned next;        /* under the lock: the next slot to judge */
    bool quit;
    int done; /* eventfd: a slot was finished */
};

static struct slot *await_work(struct pool *p)
{
    struct slot *slot = NULL;
    pthread_mutex_lock(&p->lock);
    while (!p->quit && !slot) {
        struct slot *oldest = &p->slot[p->next];
        if (oldest->progress == WAITING)
            slot = oldest;
        else
            pthread_cond_wait(&p->work, &p->lock);
    }
    if (slot) {
        slot->progress = UNDER_WAY;
        p->next = (p->next + 1) % p->n_slots;
    }
    pthread_mutex_unlock(&p->lock);
    return slot;
}

static void *judge_slots(void *ctx)
{
    struct pool *p = ctx;
    bool asking = p->session->history != NULL;
    pthread_mutex_lock(&p->lock);
    struct judge *judge = p->judge[p->started++];
    pthread_mutex_unlock(&p->lock);
    struct slot *slot;
    uint64_t one = 1;
    while ((slot = await_work(p)) != NULL) {
        int got = judge_chunk(judge, &slot->chunk, asking, NULL, 0, &slot->result, &slot->err);
        pthread_mutex_lock(&p->lock);
        slot->failed = got < 0;
        slot->progress = DONE;
        pthread_mutex_unlock(&p->lock);
        ssize_t n = write(p->done, &one, sizeof one);
        (void)n; /* a full counter wakes the main thread too */
    }
    return NULL;
}

static void pool_free(struct pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->quit = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_threads; i++)
        pthread_join(p->thread[i], NULL);
    for (unsigned i = 0; i < JOBS_MOST; i++)
        judge_free(p->judge[i]);
    for (unsigned i = 0; i < p->n_slots; i++) {
        amp_buf_release(&p->slot[i].buf);
        result_release(&p->slot[i].result);
    }
    if (p->done >= 0)
        close(p->done);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    free(p);
}

/* The main thread handles the signals. */
static int start_thread(struct pool *p)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&p->thread[p->n_threads], NULL, judge_slots, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    p->n_threads += !failed;
    errno = failed;
    return failed ? -1 : 0;
}

static struct pool *pool_new(struct validation *s, struct amp_error *err)
{
    struct pool *p = calloc(1, sizeof *p);
    if (!p) {
        amp_fail_memory(err);
        return NULL;
    }
    unsigned jobs = s->opt->jobs > JOBS_MOST ? JOBS_MOST : (unsigned)s->opt->jobs;
    p->session = s;
    p->n_slots = jobs * SLOTS_EACH;
    p->done = -1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int bad = p->done < 0 ? amp_fail_errno(err, AMP_INTERNAL, "cannot start threads") : 0;
    for (unsigned i = 0; i < p->n_slots && bad == 0; i++)
        bad = result_init(&p->slot[i].result, s->opt, err);
    for (unsigned i = 0; i < jobs && bad == 0; i++) {
        p->judge[i] = judge_new(s->opt, err);
        bad = p->judge[i] ? 0 : -1;
    }
    for (unsigned i = 0; i < jobs && bad == 0; i++)
        if (start_thread(p) < 0)
            bad = amp_fail_errno(err, AMP_INTERNAL, "cannot start a thread");
    if (bad == 0)
        return p;
    pool_free(p);
    return NULL;
}

enum gathered {
    GATHERED_ERROR = -1,
    GATHERED_NOTHING, /* the input is silent */
    GATHERED_CHUNK,
    GATHERED_END,
};

/* Gathers about CHUNK_SIZE. */
static enum gathered gather_chunk(struct validation *s, struct input_stream *in, struct chunk *c,
                                  struct amp_error *err)
{
    for (;;) {
        bool have = stream_chunk(in, c);
        if (have && (in->eof || c->too_long || in->buf.len - in->pos >= CHUNK_SIZE))
            return GATHERED_CHUNK;
        if (in->eof)
            return GATHERED_END;
        int ready = validation_wait(in->fd, -1, false, err);
        if (ready < 0)
            return GATHERED_ERROR;
        if (ready == 0)
            return have ? GATHERED_CHUNK : GATHERED_NOTHING;
        enum amp_read got = stream_fill(in, err);
        if (got == AMP_READ_FAILED)
            return GATHERED_ERROR;
        if (got == AMP_READ_WOULD_BLOCK)
            return have && stream_chunk(in, c) ? GATHERED_CHUNK : GATHERED_NOTHING;
    }
}

/* Limits a chunk to its first LINES_MOST lines, because reports about lines may be long. Returns
 * their number. */
static uint64_t limit_lines(struct chunk *c)
{
    const char *p = c->bytes.p, *end = p + c->bytes.n;
    uint64_t lines = 0;
    if (c->too_long)
        return 1;
    while (p < end && lines < LINES_MOST) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        p = lf ? lf + 1 : end;
        lines++;
    }
    c->bytes.n = (size_t)(p - c->bytes.p);
    return lines;
}

static int hand_out(struct pool *p, struct input_stream *in, struct chunk *c, struct amp_error *err)
{
    struct slot *slot = &p->slot[(p->head + p->count) % p->n_slots];
    uint64_t lines = limit_lines(c);
    if (stream_give(in, c, lines, &slot->buf, err) < 0)
        return -1;
    slot->chunk = *c;
    p->count++;
    pthread_mutex_lock(&p->lock);
    slot->progress = WAITING;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

/* The oldest slot, if it is finished. */
static struct slot *finished_slot(struct pool *p)
{
    struct slot *slot = &p->slot[p->head];
    pthread_mutex_lock(&p->lock);
    bool done = p->count > 0 && slot->progress == DONE;
    pthread_mutex_unlock(&p->lock);
    return done ? slot : NULL;
}

static enum validation_end slot_emit(struct pool *p, struct slot *slot, struct amp_error *err)
{
    struct validation *s = p->session;
    if (slot->failed) {
        *err = slot->err;
        return VALIDATION_FAILED;
    }
    if (s->history &&
        (history_ask(s->history, &slot->result, err) < 0 ||
         judge_chunk(s->judge, &slot->chunk, false, s->history, 0, &slot->result, err) < 0))
        return VALIDATION_FAILED;
    enum validation_end end = validation_emit(s, &slot->chunk, &slot->result, err);
    slot->progress = FREE; /* no worker reads a slot that is done */
    p->head = (p->head + 1) % p->n_slots;
    p->count--;
    return end;
}

static enum validation_end emit_finished(struct pool *p, struct amp_error *err)
{
    struct slot *slot;
    enum validation_end end = VALIDATION_CONTINUES;
    uint64_t n;
    ssize_t got = read(p->done, &n, sizeof n);
    (void)got; /* only resets the counter */
    while (end == VALIDATION_CONTINUES && (slot = finished_slot(p)) != NULL)
        end = slot_emit(p, slot, err);
    return end;
}

static enum validation_end pool_run(struct pool *p, struct input_stream *in, struct amp_error *err)
{
    struct validation *s = p->session;
    bool ended = false;
    while (!ended || p->count > 0) {
        struct chunk c;
        enum gathered got = GATHERED_NOTHING;
        if (!ended && p->count < p->n_slots) {
            got = gather_chunk(s, in, &c, err);
            if (got == GATHERED_ERROR || (got == GATHERED_CHUNK && hand_out(p, in, &c, err) < 0))
                return VALIDATION_FAILED;
            ended = got == GATHERED_END;
        }
        enum validation_end end = emit_finished(p, err);
        if (end != VALIDATION_CONTINUES)
            return end;
        if (got != GATHERED_NOTHING || finished_slot(p) || (ended && p->count == 0))
            continue;
        if (p->count == 0 && validation_settle(err) < 0)
            return VALIDATION_FAILED;
        bool room = !ended && p->count < p->n_slots;
        if (validation_wait(room ? in->fd : -1, p->done, true, err) < 0)
            return VALIDATION_FAILED;
    }
    return VALIDATION_CONTINUES;
}

enum validation_end parallel_input(struct validation *s, struct input_stream *in,
                                   struct amp_error *err)
{
    struct pool *p = pool_new(s, err);
    if (!p)
        return VALIDATION_FAILED;
    enum validation_end end = pool_run(p, in, err);
    pool_free(p);
    return end;
}
