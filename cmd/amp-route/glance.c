/*
 * A glance at lines before their turn: by which rule one may go the short way (direct.c). It sees
 * no more of a message than that takes; a line of which it does not know is looked at as ever.
 * Where input comes in masses a second thread glances at some of the lines that were read: it
 * touches nothing but its own reader, the rules, and the places of its own lines in the list.
 */
#include "router.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define MANY       ((size_t)48 << 10)  /* bytes that are worth to be shared out */
#define WIDE       ((size_t)128 << 10) /* a read, when there are masses, */
#define WIDE_TWO   ((size_t)512 << 10) /* and when they are shared out */
#define BULK       8                   /* reads of so many bytes are masses */
#define LINES      4096                /* at most in a list */
#define PIECES     256
#define PIECE      ((size_t)8 << 10)
#define MISSES_MAX 16
#define SKIP       256 /* lines, after so many glances for nothing */

enum state { IDLE, POSTED, BUSY };

struct glance {
    const struct router *r;
    struct amp_reader *reader[2]; /* of the router, of the thread */
    struct amp_check_options check;
    uint32_t misses, skip;

    /* The lines that were read, in pieces; `pieces` of them, the i-th from first[i] to first[i +
     * 1]. `claimed` and `ready` are touched by both threads. */
    struct seen {
        struct amp_span line;
        const struct rule *rule; /* NULL: to be looked at */
    } v[LINES];
    uint32_t n, next, at, pieces, claimed, first[PIECES + 1];
    bool ready[PIECES];

    uint32_t bulk;
    pthread_t thread;
    bool tried, started, stop;
    enum state state;
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

/* A NUL, which its id may not have: the long way looks where it is. */
static bool may_have_nul(struct amp_span line)
{
    const char *escape = memchr(line.p, '\\', line.n);
    return escape && memmem(escape, line.n - (size_t)(escape - line.p), "\\u0000", 6);
}

static const struct rule *look(const struct glance *g, struct amp_reader *reader,
                               struct amp_span line)
{
    struct amp_view v;
    struct amp_error err;
    if (may_have_nul(line) || amp_reader_line(reader, line, &g->check, &v, NULL, NULL, &err) != 1)
        return NULL;
    return direct_rule(g->r, &v);
}

/* One piece that nobody has yet; false: there is none. */
static bool look_on(struct glance *g, struct amp_reader *reader)
{
    uint32_t piece = __atomic_fetch_add(&g->claimed, 1, __ATOMIC_RELAXED);
    if (piece >= g->pieces)
        return false;
    for (uint32_t i = g->first[piece]; i < g->first[piece + 1]; i++)
        g->v[i].rule = look(g, reader, g->v[i].line);
    __atomic_store_n(&g->ready[piece], true, __ATOMIC_RELEASE);
    return true;
}

static void *help(void *ctx)
{
    struct glance *g = ctx;
    pthread_mutex_lock(&g->lock);
    for (;;) {
        while (g->state != POSTED && !g->stop)
            pthread_cond_wait(&g->changed, &g->lock);
        if (g->stop)
            break;
        g->state = BUSY;
        pthread_mutex_unlock(&g->lock);
        while (look_on(g, g->reader[1]))
            continue;
        pthread_mutex_lock(&g->lock);
        g->state = IDLE;
        pthread_cond_signal(&g->changed);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* Afterwards the thread touches none of the lines any more, and what it took is ready. */
static void settle(struct glance *g)
{
    pthread_mutex_lock(&g->lock);
    if (g->state == POSTED) /* it did not get to it */
        g->state = IDLE;
    while (g->state == BUSY)
        pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static bool start(struct glance *g)
{
    struct amp_error err;
    cpu_set_t cpus;
    sigset_t all, old;
    if (g->started || g->tried)
        return g->started;
    g->tried = true;
    if (g->r->threads < 2 || sched_getaffinity(0, sizeof(cpus), &cpus) < 0 || CPU_COUNT(&cpus) < 2)
        return false;
    if (!g->reader[1] && !(g->reader[1] = amp_reader_new(NULL, &err)))
        return false;
    /* Signals are for the router. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    g->started = pthread_create(&g->thread, NULL, help, g) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return g->started;
}

/* All of one read has to fit into one port that takes nothing meanwhile. */
static void widen(struct router *r, size_t wide)
{
    size_t most = r->port_options.max_pending / 2;
    amp_lines_widen(&r->intake.lines, most < wide ? most : wide);
}

/* Whether input comes in masses. */
static bool masses(struct router *r)
{
    struct glance *g = r->glance;
    if (r->intake.lines.buf.len - r->intake.lines.pos < MANY)
        return false;
    if (g->bulk < BULK && ++g->bulk == BULK)
        widen(r, WIDE);
    return g->bulk == BULK;
}

static void list(struct glance *g, struct amp_lines ahead)
{
    struct amp_line line;
    size_t bytes = PIECE;
    while (g->n < LINES && amp_lines_next(&ahead, &line) == AMP_LINE) {
        if (bytes >= PIECE) {
            if (g->pieces == PIECES)
                break;
            g->ready[g->pieces] = false;
            g->first[g->pieces++] = g->n;
            bytes = 0;
        }
        g->v[g->n++].line = line.bytes;
        bytes += line.bytes.n;
    }
    g->first[g->pieces] = g->n;
}

void glance_begin(struct router *r)
{
    struct glance *g = r->glance;
    if (!g || !direct_may(r) || r->first || g->skip > 0 || !masses(r) || !start(g))
        return;
    widen(r, WIDE_TWO);
    list(g, r->intake.lines);
    if (g->pieces < 2) {
        g->n = g->pieces = 0;
        return;
    }
    pthread_mutex_lock(&g->lock);
    g->claimed = 0;
    g->state = POSTED;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

void glance_end(struct router *r)
{
    struct glance *g = r->glance;
    if (!g || g->n == 0)
        return;
    settle(g);
    g->n = g->next = g->at = g->pieces = 0;
}

static const struct rule *rule_of(struct glance *g, struct amp_span line)
{
    if (g->next == g->n)
        return look(g, g->reader[0], line);
    while (g->next >= g->first[g->at + 1])
        g->at++;
    while (!__atomic_load_n(&g->ready[g->at], __ATOMIC_ACQUIRE))
        if (!look_on(g, g->reader[0]))
            settle(g);
    return g->v[g->next++].rule;
}

bool glance_take(struct router *r, struct amp_span line)
{
    struct glance *g = r->glance;
    if (!g || !direct_may(r))
        return false;
    if (g->next == g->n && (r->first || g->skip > 0)) {
        g->skip -= g->skip > 0;
        return false;
    }
    const struct rule *rule = rule_of(g, line);
    if (rule && !r->first && direct_give(r, rule, line)) {
        r->intake.accepted++;
        g->misses = 0;
        return true;
    }
    if (++g->misses == MISSES_MAX) {
        g->misses = 0;
        g->skip = SKIP;
    }
    return false;
}

static bool is_direct(const struct router *r, const struct rule *rule)
{
    enum amp_port_kind kind = amp_port_kind(r->ports[rule->port]);
    return (kind == AMP_PORT_FILE || kind == AMP_PORT_STDOUT) && !r->targets[rule->port]->inbound;
}

void glance_set(struct router *r)
{
    struct amp_error err;
    bool direct = direct_may(r), plain = true;
    for (uint32_t i = 0; i < r->n_rules; i++) {
        direct = direct && is_direct(r, &r->rules[i]);
        plain = plain && amp_predicate_is_plain(r->rules[i].predicate);
    }
    if (!direct) {
        glance_free(r);
        return;
    }
    struct glance *g = r->glance;
    if (!g) {
        if (!(g = calloc(1, sizeof(*g))))
            return; /* it works without */
        g->r = r;
        pthread_mutex_init(&g->lock, NULL);
        pthread_cond_init(&g->changed, NULL);
        r->glance = g;
    }
    if (!g->reader[0] && !(g->reader[0] = amp_reader_new(NULL, &err))) {
        glance_free(r);
        return;
    }
    g->check = r->intake.check;
    g->check.brief = true;
    g->check.waives = NULL; /* other threads must not ask the state */
    g->check.bare = plain;
}

void glance_free(struct router *r)
{
    struct glance *g = r->glance;
    r->glance = NULL;
    if (!g)
        return;
    if (g->started) {
        pthread_mutex_lock(&g->lock);
        g->stop = true;
        pthread_cond_signal(&g->changed);
        pthread_mutex_unlock(&g->lock);
        pthread_join(g->thread, NULL);
    }
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
    amp_reader_free(g->reader[0]);
    amp_reader_free(g->reader[1]);
    free(g);
}
