/* Finds the addresses of names. getaddrinfo(3) blocks, so a few threads call it. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/codes.h"
#include "gate.h"

enum { THREADS = 4, OPEN_MAX = 512 };

struct question {
    struct question *next;
    struct amp_net_host host;
    struct gate_answer answer;
};

struct queue {
    struct question *first, **last;
};

struct gate_resolver {
    pthread_mutex_t lock;
    pthread_cond_t asked;
    struct queue open, done;
    unsigned n_open, n_threads;
    int ready; /* an eventfd */
};

static void queue_put(struct queue *q, struct question *it)
{
    it->next = NULL;
    *q->last = it;
    q->last = &it->next;
}

static struct question *queue_take(struct queue *q)
{
    struct question *it = q->first;
    if (it) {
        q->first = it->next;
        if (!q->first)
            q->last = &q->first;
    }
    return it;
}

static void question_answer(struct question *it)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)it->host.port);
    it->answer.failed = getaddrinfo(it->host.name, port, &hints, &found);
    if (it->answer.failed)
        return;
    for (struct addrinfo *a = found; a && it->answer.n < GATE_ADDRESSES; a = a->ai_next) {
        struct gate_address *to = &it->answer.address[it->answer.n];
        if (a->ai_addrlen > sizeof to->sa)
            continue;
        memcpy(&to->sa, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
        it->answer.n++;
    }
    freeaddrinfo(found);
}

static void *answer_questions(void *arg)
{
    struct gate_resolver *r = arg;
    const uint64_t one = 1;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct question *it = queue_take(&r->open);
        if (!it) {
            pthread_cond_wait(&r->asked, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        question_answer(it);
        pthread_mutex_lock(&r->lock);
        queue_put(&r->done, it);
        ssize_t n = write(r->ready, &one, sizeof one);
        (void)n; /* the counter does not overflow */
    }
    return NULL;
}

int gate_resolver_new(struct gate_resolver **out, struct amp_error *err)
{
    struct gate_resolver *r = calloc(1, sizeof *r);
    if (!r)
        return amp_fail_memory(err);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->asked, NULL);
    r->open.last = &r->open.first;
    r->done.last = &r->done.first;
    r->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->ready < 0) {
        free(r);
        return amp_fail_errno(err, AMP_INTERNAL, "cannot make an eventfd");
    }
    *out = r;
    return 0;
}

int gate_resolver_fd(const struct gate_resolver *r)
{
    return r->ready;
}

/* A thread is started with the first questions only: many gates are never asked. Its signals are
 * blocked, so that the main thread gets them. */
static int thread_start(struct gate_resolver *r, struct amp_error *err)
{
    pthread_t t;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&t, NULL, answer_questions, r);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0) {
        pthread_detach(t);
        r->n_threads++;
    } else if (r->n_threads == 0) {
        errno = rc;
        return amp_fail_errno(err, AMP_TEMPFAIL, "cannot start a thread");
    }
    return 0;
}

int gate_resolver_ask(struct gate_resolver *r, uint64_t connection, const struct amp_net_host *host,
                      struct amp_error *err)
{
    if (r->n_open >= OPEN_MAX)
        return amp_fail(err, AMP_TEMPFAIL, resolver_busy, "%d names are being looked up", OPEN_MAX);
    if (r->n_threads < THREADS && r->n_threads <= r->n_open && thread_start(r, err) < 0)
        return -1;
    struct question *it = calloc(1, sizeof *it);
    if (!it)
        return amp_fail_memory(err);
    it->host = *host;
    it->answer.connection = connection;
    pthread_mutex_lock(&r->lock);
    queue_put(&r->open, it);
    pthread_cond_signal(&r->asked);
    pthread_mutex_unlock(&r->lock);
    r->n_open++;
    return 0;
}

bool gate_resolver_next(struct gate_resolver *r, struct gate_answer *out)
{
    uint64_t count;
    pthread_mutex_lock(&r->lock);
    struct question *it = queue_take(&r->done);
    if (!it) {
        ssize_t n = read(r->ready, &count, sizeof count);
        (void)n; /* nothing to read: no answer since */
    }
    pthread_mutex_unlock(&r->lock);
    if (!it)
        return false;
    r->n_open--;
    *out = it->answer;
    free(it);
    return true;
}
