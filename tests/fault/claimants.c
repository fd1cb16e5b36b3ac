/*
 * claimants STATE JOBS SEED PROCESSES: processes that claim jobs of one queue (lib/work/item/claim,
 * without agents) and end, give back and park them, while one after another is killed or stopped at
 * random, until all jobs are done. Prints what happened; tests/chaos/ check reads the log. A
 * failure of a claimant ends the trial with status 1.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "work/git/paths/glob.h"
#include "work/item/claim/queue.h"

enum { HELD_MOST = 3, PROCESSES_MOST = 16, BEAT_MS = 100 };

static const struct amp_span types[] = {{"t0", 2}, {"t1", 2}};

static int64_t type_most(void *ctx, struct amp_span type)
{
    (void)ctx;
    return amp_span_is(type, "t0") ? 4 : 2;
}

static int fail(const char *what, const struct amp_error *err)
{
    fprintf(stderr, "claimants: %s: %s: %s\n", what, err->code, err->what);
    return 1;
}

static void nap_us(long us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000}, NULL);
}

/* ---- jobs ---- */

static int jobs_submit(const char *dir, long n)
{
    struct amp_store *s;
    struct amp_error err;

    if (amp_store_open(dir, NULL, &s, &err) < 0)
        return fail("open", &err);
    for (long i = 0; i < n; i++) {
        char id[AMP_QUEUE_ID_MAX], scope[64], message[32];
        int64_t seq;
        snprintf(id, sizeof id, "%032lx", i + 1);
        snprintf(scope, sizeof scope, "{\"resources\":[\"area-%d\"]}", rand() % 9);
        snprintf(message, sizeof message, "m%ld", i);
        const struct amp_queue_job job = {.id = amp_span_str(id),
                                          .type = types[rand() % 2],
                                          .protocol = AMP_SPAN("sw4rm"),
                                          .message = amp_span_str(message),
                                          .priority = rand() % 40 - 19,
                                          .scope = amp_span_str(scope),
                                          .digest = AMP_SPAN("0")};
        const struct amp_queue_submit q = {
            .job = &job, .line = AMP_SPAN("{}"), .now_ms = amp_now_ms()};
        if (amp_queue_submit(s, &q, &seq, NULL, NULL, &err) < 0)
            return fail("submit", &err);
    }
    int rc = amp_store_sync(s, &err);
    amp_store_close(s);
    return rc < 0 ? fail("sync", &err) : 0;
}

/* ---- a claimant ---- */

struct claim {
    char id[AMP_QUEUE_ID_MAX];
    int64_t seq, attempt;
};

struct claimant {
    struct amp_store *store;
    struct amp_order *order;
    struct amp_queue_worker *worker;
    const char *name;
    struct amp_buf mem;
    struct claim claim[HELD_MOST];
    int n;
};

/* 1: the step was made; 0: the claim is lost; -1. */
static int claim_step(struct claimant *c, const struct claim *k, uint8_t event,
                      struct amp_error *err)
{
    struct amp_queue_step st = {.id = amp_span_str(k->id),
                                .event = event,
                                .seq = k->seq,
                                .attempt = k->attempt,
                                .until_ms = amp_now_ms() + 20,
                                .actor = c->name,
                                .now_ms = amp_now_ms()};

    if (amp_queue_worker_step(c->worker, &st, &c->mem, NULL, err) == 0)
        return 1;
    return strcmp(err->code, "claim_lost") == 0 ? 0 : -1;
}

static int claim_make(struct claimant *c, struct amp_error *err)
{
    struct amp_queue_job job;
    int64_t wake = 0;
    int rc = amp_queue_worker_claim(c->worker, c->order, types, 2, &c->mem, &job, &wake, err);

    if (rc <= 0)
        return rc;
    struct claim *k = &c->claim[c->n];
    amp_span_copy(job.id, k->id, sizeof k->id);
    k->seq = job.seq;
    k->attempt = job.attempts;
    if ((rc = claim_step(c, k, AMP_QUEUE_EV_START, err)) > 0)
        c->n++;
    return rc < 0 ? -1 : 1;
}

static int claim_end(struct claimant *c, struct amp_error *err)
{
    int i = rand() % c->n, how = rand() % 8;
    uint8_t event = how == 0   ? AMP_QUEUE_EV_RELEASE
                    : how == 1 ? AMP_QUEUE_EV_PARK
                               : AMP_QUEUE_EV_DONE;

    if (claim_step(c, &c->claim[i], event, err) < 0)
        return -1;
    c->claim[i] = c->claim[--c->n];
    return 0;
}

/* 1: no job is left. */
static int turn(struct claimant *c, struct amp_error *err)
{
    int64_t due = amp_queue_worker_due(c->worker), lost = 0, now = amp_mono_ms();
    uint32_t done = 0;

    if ((due > 0 && due <= now && amp_queue_worker_beat(c->worker, err) < 0) ||
        amp_queue_worker_lost_due(c->store, &lost, err) < 0 ||
        (lost > 0 && lost <= now &&
         amp_queue_sweep(c->store, amp_now_ms(), c->name, &done, err) < 0))
        return -1;
    int claimed = c->n < HELD_MOST && rand() % 3 > 0 ? claim_make(c, err) : 0;
    if (claimed < 0 || (c->n > 0 && rand() % 2 && claim_end(c, err) < 0) ||
        amp_store_sync(c->store, err) < 0)
        return -1;
    if (claimed || c->n)
        return 0;
    for (size_t i = 0; i < 2; i++) {
        struct amp_order_counts n;
        if (amp_order_look(c->order, err) < 0 || amp_order_counts(c->order, types[i], &n, err) < 0)
            return -1;
        if (n.waiting || n.parked || n.working) {
            nap_us(2000);
            return 0;
        }
    }
    return 1;
}

static int claimant_run(const char *dir, const char *name)
{
    const struct amp_order_options options = {.most = type_most, .patterns = amp_glob_overlap};
    struct claimant c = {.name = name, .mem = {.max = 1 << 20}};
    struct amp_queue_settings set;
    struct amp_error err;
    int rc = 0;

    amp_queue_settings_default(&set);
    set.heartbeat_ms = BEAT_MS;
    if (amp_store_open(dir, NULL, &c.store, &err) < 0 ||
        amp_queue_worker_open(&c.worker, c.store, &set, name, &err) < 0 ||
        amp_order_open(&c.order, c.store, &options, &err) < 0)
        return fail(name, &err);
    while (rc == 0)
        rc = turn(&c, &err);
    if (rc < 0)
        return fail(name, &err);
    amp_order_close(c.order);
    amp_queue_worker_close(c.worker);
    amp_store_close(c.store);
    amp_buf_release(&c.mem);
    return 0;
}

/* ---- the trial ---- */

static pid_t claimant_start(const char *dir, int i, unsigned seed)
{
    char name[8];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    snprintf(name, sizeof name, "w%d", i);
    srand(seed);
    exit(claimant_run(dir, name));
}

int main(int argc, char **argv)
{
    pid_t pid[PROCESSES_MOST] = {0};
    int64_t stopped[PROCESSES_MOST] = {0}; /* until then */
    int kills = 0, stops = 0, ended = 0, status;

    if (argc != 5)
        return 64;
    const char *dir = argv[1];
    unsigned seed = (unsigned)atoi(argv[3]);
    int n = atoi(argv[4]);
    srand(seed);
    if (n < 1 || n > PROCESSES_MOST || jobs_submit(dir, atol(argv[2])) != 0)
        return 1;
    int64_t began = amp_mono_ms();
    for (int i = 0; i < n; i++)
        pid[i] = claimant_start(dir, i, ++seed);
    while (ended < n) {
        nap_us(rand() % 20000);
        int i = rand() % n;
        if (pid[i] && !stopped[i] && rand() % 2) {
            kill(pid[i], SIGKILL);
            kills++;
        } else if (pid[i] && !stopped[i]) {
            kill(pid[i], SIGSTOP);
            stopped[i] = amp_mono_ms() + rand() % (6 * BEAT_MS);
            stops++;
        }
        for (i = 0; i < n; i++) {
            if (stopped[i] && stopped[i] <= amp_mono_ms()) {
                kill(pid[i], SIGCONT);
                stopped[i] = 0;
            }
            if (!pid[i] || waitpid(pid[i], &status, WNOHANG) <= 0)
                continue;
            stopped[i] = 0;
            if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
                return 1;
            pid[i] = WIFEXITED(status) ? 0 : claimant_start(dir, i, ++seed);
            ended += !pid[i];
        }
    }
    printf("%s jobs, %d claimants, %d killed, %d stopped, %lld ms\n", argv[2], n, kills, stops,
           (long long)(amp_mono_ms() - began));
    return 0;
}
