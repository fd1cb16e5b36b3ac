/*
 * Several judges in threads of their own. The main thread reads, hands chunks out and lets the
 * results leave in the order of the chunks; a ring of slots bounds what is under way. Workers touch
 * their slot and nothing else, so errors are reported by the main thread, in the order of the
 * chunks.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cli/cli.h"
#include "session.h"

enum { JOBS_MOST = 64, SLOTS_EACH = 3, CHUNK_SIZE = 128 << 10, LINES_MOST = 8192 };

enum progress { FREE, WAITING, UNDER_WAY, DONE };

struct slot {
    enum progress progress; /* under the lock */
    struct amp_buf buf;     /* the chunk's memory */
    struct chunk chunk;
    struct result result;
    bool failed;
    struct amp_error err;
};

struct pool {
    struct session *session;
    pthread_mutex_t lock;
    pthread_cond_t work;
    pthread_t thread[JOBS_MOST];
    struct judge *judge[JOBS_MOST];
    unsigned n_threads, started; /* judges given out to threads, under the lock */
    struct slot slot[JOBS_MOST * SLOTS_EACH];
    unsigned n_slots;
    unsigned head, count; /* the main thread's: the oldest slot in use, how many are */
    unsigned next;        /* under the lock: how many of those were begun */
    bool quit;
    int done; /* eventfd: a slot was finished */
};

static void finish(struct pool *p, struct slot *slot, bool failed)
{
    uint64_t one = 1;
    pthread_mutex_lock(&p->lock);
    slot->failed = failed;
    slot->progress = DONE;
    pthread_mutex_unlock(&p->lock);
    ssize_t n = write(p->done, &one, sizeof one);
    (void)n; /* a full counter wakes as well */
}

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

static void *work(void *ctx)
{
    struct pool *p = ctx;
    bool asking = p->session->history != NULL;
    pthread_mutex_lock(&p->lock);
    struct judge *judge = p->judge[p->started++];
    pthread_mutex_unlock(&p->lock);
    struct slot *slot;
    while ((slot = await_work(p)) != NULL) {
        int got = judge_chunk(judge, &slot->chunk, asking, NULL, 0, &slot->result, &slot->err);
        finish(p, slot, got < 0);
    }
    return NULL;
}

static void stop(struct pool *p)
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

/* Signals are the main thread's. */
static int start_thread(struct pool *p)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&p->thread[p->n_threads], NULL, work, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    p->n_threads += !failed;
    errno = failed;
    return failed ? -1 : 0;
}

static struct pool *start(struct session *s, struct amp_error *err)
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
    stop(p);
    return NULL;
}

enum gathered {
    GATHERED_ERROR = -1,
    GATHERED_NOTHING, /* the input is silent */
    GATHERED_CHUNK,
    GATHERED_END,
};

/* Gathers about CHUNK_SIZE. */
static enum gathered gather(struct session *s, struct stream *in, struct chunk *c,
                            struct amp_error *err)
{
    for (;;) {
        bool have = stream_chunk(in, c);
        if (have && (in->eof || c->too_long || in->buf.len - in->pos >= CHUNK_SIZE))
            return GATHERED_CHUNK;
        if (in->eof)
            return GATHERED_END;
        int ready = session_wait(s, in->fd, -1, false, err);
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

/* The first lines of a chunk, at most LINES_MOST: what is said about lines may be long. */
static uint64_t shorten(struct chunk *c)
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

static int hand_out(struct pool *p, struct stream *in, struct chunk *c, struct amp_error *err)
{
    struct slot *slot = &p->slot[(p->head + p->count) % p->n_slots];
    uint64_t lines = shorten(c);
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
static struct slot *finished(struct pool *p)
{
    struct slot *slot = &p->slot[p->head];
    pthread_mutex_lock(&p->lock);
    bool done = p->count > 0 && slot->progress == DONE;
    pthread_mutex_unlock(&p->lock);
    return done ? slot : NULL;
}

static int leave(struct pool *p, struct slot *slot, struct amp_error *err)
{
    struct session *s = p->session;
    if (slot->failed) {
        *err = slot->err;
        return -1;
    }
    if (s->history &&
        (history_ask(s->history, &slot->result, err) < 0 ||
         judge_chunk(s->judge, &slot->chunk, false, s->history, 0, &slot->result, err) < 0))
        return -1;
    int stopped = session_emit(s, &slot->chunk, &slot->result, err);
    slot->progress = FREE; /* no worker looks at a slot that is done */
    p->head = (p->head + 1) % p->n_slots;
    p->count--;
    return stopped;
}

static int leave_all(struct pool *p, struct amp_error *err)
{
    struct slot *slot;
    int stopped = 0;
    uint64_t n;
    ssize_t got = read(p->done, &n, sizeof n);
    (void)got; /* only clears it */
    while (stopped == 0 && (slot = finished(p)) != NULL)
        stopped = leave(p, slot, err);
    return stopped;
}

static int run(struct pool *p, struct stream *in, struct amp_error *err)
{
    struct session *s = p->session;
    bool ended = false;
    while (!ended || p->count > 0) {
        struct chunk c;
        enum gathered got = GATHERED_NOTHING;
        if (!ended && p->count < p->n_slots) {
            got = gather(s, in, &c, err);
            if (got == GATHERED_ERROR || (got == GATHERED_CHUNK && hand_out(p, in, &c, err) < 0))
                return -1;
            ended = got == GATHERED_END;
        }
        int stopped = leave_all(p, err);
        if (stopped != 0)
            return stopped;
        if (got != GATHERED_NOTHING || finished(p) || (ended && p->count == 0))
            continue;
        if (p->count == 0 && session_settle(s, err) < 0)
            return -1;
        bool room = !ended && p->count < p->n_slots;
        if (session_wait(s, room ? in->fd : -1, p->done, true, err) < 0)
            return -1;
    }
    return 0;
}

int parallel_input(struct session *s, struct stream *in, struct amp_error *err)
{
    struct pool *p = start(s, err);
    if (!p)
        return -1;
    int stopped = run(p, in, err);
    stop(p);
    return stopped;
}
