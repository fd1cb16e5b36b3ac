/*
 * Filling the index beside the writer. When the tail is full it is frozen and a thread brings it
 * into the index, over a connection of its own and outside of main, while the writer goes on with
 * an empty tail. The frozen one answers look-ups until the next turn that finds the work done. The
 * log is the truth: an index that lags, or a thread that failed, only means that whoever needs the
 * index brings it up himself.
 *
 * The thread checks in its transaction that the index stands where the frozen frames go on and that
 * nobody repaired the log; a place that does not stand in the log is noticed by whoever reads it.
 */
#ifndef AMP_STORE_FILLER_H
#define AMP_STORE_FILLER_H

#include <pthread.h>

#include "store/cache/filter.h"
#include "store/cache/tail.h"

struct amp_filler {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started;         /* the thread runs; this and posted are the writer's alone */
    bool posted;          /* a job was given and its end not yet seen */
    bool work, stop;      /* under lock, as is ok */
    bool ok;              /* how the last job ended */
    struct amp_tail tail; /* frozen; while there is work, both only read it */
    struct amp_pos to;    /* its end */
    struct amp_watermark *wm;
    uint32_t epoch;
    struct amp_index index; /* while there is work, the thread's */
    bool want_filter;       /* the job is to make one, too */
    struct amp_filter filter;
};

void amp_filler_init(struct amp_filler *f, int dirfd, const char *dir, struct amp_watermark *wm);
/* Waits for the thread and ends it. */
void amp_filler_release(struct amp_filler *f);
/* Under main: freezes *t, whose frames reach up to `to`, and leaves an empty tail in its place. -1,
 * nothing done: there can be no thread, or the index is not the current one. Nothing may be posted
 * or frozen. */
int amp_filler_post(struct amp_filler *f, const struct amp_index *ix, struct amp_tail *t,
                    const struct amp_pos *to);
/* Whether no job runs; wait: when it returns, none does. */
bool amp_filler_idle(struct amp_filler *f, bool wait);

/* All ids that the index holds, into *out. */
void amp_filler_scan(struct amp_index *ix, struct amp_filter *out);

#endif
