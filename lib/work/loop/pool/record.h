/*
 * The pools of a state. Key "pool.<name>", from the start of a pool to its end: its process, its
 * types, and whether it is asked to shut down. The record of a pool that was killed stays until the
 * next pool of the name, or `task-queue shutdown`, finds its lock free.
 */
#ifndef AMP_WORK_LOOP_POOL_RECORD_H
#define AMP_WORK_LOOP_POOL_RECORD_H

#include "message/record/subject.h"

struct amp_pool_rec {
    const char *name;
    const char *types; /* "builder=4 reviewer=1" */
    const char *by;    /* who asked it to shut down; "" */
    int64_t pid, since_ms, asked_ms;
    uint8_t state;
};
enum { AMP_POOL_WORKING, AMP_POOL_STOPPING };
extern const struct amp_subject amp_pool_subject;

int amp_pool_rec_begin(struct amp_store *s, const struct amp_pool_rec *r, struct amp_error *err);
int amp_pool_rec_end(struct amp_store *s, const char *name, struct amp_error *err);
/* Asks a pool to shut down, if there is one. */
int amp_pool_rec_ask(struct amp_store *s, const char *name, const char *by, int64_t now_ms,
                     struct amp_error *err);
/* 1: it is asked to shut down; 0: it is not, or there is none. */
int amp_pool_rec_asked(struct amp_store *s, const char *name, struct amp_error *err);

#endif
