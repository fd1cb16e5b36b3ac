/* task-queue shutdown: asks pools to end, and waits for them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <amp/base/clock.h>

#include "base/codes.h"
#include "message/delivery/outbox.h"
#include "message/store/wake.h"
#include "shared/work/tool.h"
#include "work/loop/pool/record.h"

#define POOLS_MAX 64
#define SYNC_MS   200 /* a commit is visible when it is synced, which no event tells */

static bool no_wait;
static int64_t wait_ms = 600000;

static const struct amp_opt pool_shutdown_opts[] = {
    {0, "no-wait", AMP_OPT_FLAG, &no_wait, NULL, "do not wait until the pools have ended"},
    {0, "wait", AMP_OPT_DURATION, &wait_ms, "TIME", "how long to wait for them", 0, 86400000},
    AMP_OPT_END,
};

struct pools {
    struct amp_store *store;
    const char *const *only; /* NULL-terminated; empty: all */
    const char *by;
    char name[POOLS_MAX][256];
    unsigned n, left;
};

static bool is_wanted(const struct pools *p, const char *name)
{
    for (int i = 0; p->only[i]; i++)
        if (strcmp(p->only[i], name) == 0)
            return true;
    return !p->only[0];
}

static int on_pool(void *ctx, const void *rec, struct amp_error *err)
{
    const struct amp_pool_rec *r = rec;
    struct pools *p = ctx;

    (void)err;
    if (is_wanted(p, r->name) && p->n < POOLS_MAX)
        snprintf(p->name[p->n++], sizeof p->name[0], "%s", r->name);
    return 0;
}

/* A pool whose lock is free was killed: its record is removed. 1: it lives. */
static int pool_lives(struct pools *p, const char *name, struct amp_error *err)
{
    AMP_CLOSE int lock = -1;
    char file[300];

    snprintf(file, sizeof file, "worker.%s", name);
    if (amp_outbox_lock(p->store, file, 0, &lock, err) < 0)
        return amp_code_is(err->code, lock_timeout) ? 1 : -1;
    return amp_pool_rec_end(p->store, name, err);
}

static int pools_find(struct pools *p, struct amp_error *err)
{
    p->n = 0;
    return amp_subject_each(&amp_pool_subject, p->store, NULL, on_pool, p, err);
}

static int pools_ask(struct pools *p, unsigned *asked, struct amp_error *err)
{
    if (pools_find(p, err) < 0)
        return -1;
    for (unsigned i = 0; i < p->n; i++) {
        int lives = pool_lives(p, p->name[i], err);
        if (lives < 0 ||
            (lives && amp_pool_rec_ask(p->store, p->name[i], p->by, amp_now_ms(), err) < 0))
            return -1;
        if (!lives)
            amp_note("%s: had been killed; its record is removed", p->name[i]);
        *asked += lives > 0;
    }
    return amp_store_sync(p->store, err);
}

/* 0: all have ended; 1: the time is over; -1: failure. */
static int pools_wait(struct pools *p, struct amp_error *err)
{
    struct amp_wake wake;
    int64_t until = amp_mono_ms() + wait_ms;
    int rc = amp_wake_open(&wake, amp_store_dir(p->store), err);

    while (rc == 0) {
        unsigned why;
        p->left = 0;
        if ((rc = pools_find(p, err)) < 0)
            break;
        for (unsigned i = 0; i < p->n && rc == 0; i++) {
            int lives = pool_lives(p, p->name[i], err);
            rc = lives < 0 ? -1 : 0;
            p->left += lives > 0;
        }
        int64_t left = until - amp_mono_ms();
        if (rc < 0 || !p->left || left <= 0 || amp_stop)
            break;
        const struct amp_wake_for f = {.log = true,
                                       .out_fd = -1,
                                       .timeout_ms = left < SYNC_MS ? left : SYNC_MS,
                                       .stop = &amp_stop};
        rc = amp_wake_wait(&wake, &f, &why, err);
    }
    amp_wake_close(&wake);
    return rc < 0 ? -1 : p->left > 0;
}

static int pool_shutdown(struct amp_command *c, struct amp_error *err)
{
    struct pools *p = calloc(1, sizeof *p);
    unsigned asked = 0;

    if (!p)
        return amp_fail_memory(err);
    const char *const *names;
    memcpy(&names, &c->argv, sizeof names);
    p->store = c->store;
    p->only = names;
    p->by = amp_cli_login("operator");
    int rc = pools_ask(p, &asked, err);
    if (rc == 0 && !asked)
        rc = amp_fail(err, AMP_NO, unknown_pool, "no such pool runs on this state directory");
    if (rc == 0 && !no_wait) {
        rc = pools_wait(p, err);
        if (rc > 0)
            rc = amp_stop ? amp_fail(err, AMP_INTERRUPTED, interrupted,
                                     "interrupted while %u of them end", p->left)
                          : amp_fail(err, AMP_TIMEDOUT, wait_timeout,
                                     "%u of them have not ended yet", p->left);
    }
    free(p);
    return rc < 0 ? -1 : AMP_OK;
}

const struct amp_verb pool_shutdown_verbs[] = {
    {"shutdown", "[POOL…]", "end pools of agents", pool_shutdown_opts, pool_shutdown,
     .opens = AMP_OPENS_MADE, .act = "end agents", .signals = true, .who = AMP_WHO_PERSON},
    {0},
};
