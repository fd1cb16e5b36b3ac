/* The parts of work/item/judge/, for its own files. */
#ifndef AMP_WORK_ITEM_JUDGE_PRIVATE_H
#define AMP_WORK_ITEM_JUDGE_PRIVATE_H

#include "work/item/judge/conflict.h"

struct amp_jw;

/* The functions that ask and decide. note and set are not NULL; identify and stop may be. */
struct amp_conflict_desk {
    struct amp_store *store;
    const char *actor;
    int64_t now_ms;
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
    volatile const int *stop;
    int (*identify)(void *ctx, const char *principal, struct amp_identities **out,
                    struct amp_error *err);
    void *identify_ctx;
    int (*say)(void *ctx, struct amp_span line, struct amp_error *err); /* may be NULL */
    void *say_ctx;
};

/* Two jobs as they are now; their texts are in mem. */
struct amp_conflict_jobs {
    struct amp_queue_job running, waiting;
    struct amp_buf mem[2], overlap;
};
void amp_conflict_jobs_init(struct amp_conflict_jobs *p);
void amp_conflict_jobs_release(struct amp_conflict_jobs *p);
/* 1; 0: one of them has ended, or has no record any more. */
int amp_conflict_jobs_read(struct amp_conflict_jobs *p, struct amp_store *s,
                           struct amp_span running, struct amp_span waiting, struct amp_error *err);
/* The members running, waiting and overlap of an open object; lines: with the submitted messages.
 */
int amp_conflict_jobs_put(struct amp_conflict_jobs *p, struct amp_store *s, bool lines,
                          struct amp_jw *w, struct amp_error *err);
/* A confidence in millionths, as a member of an open object. */
void amp_conflict_number(struct amp_jw *w, const char *key, int64_t ppm);

/* Makes a step; 0: another process made one first. */
int amp_conflict_try(const struct amp_conflict_desk *d, struct amp_conflict_step *st,
                     struct amp_error *err);
/* Asks a person, with a step of the pair (ASK or UNSURE) that records the question. set: what the
 * step records besides. 1; 0: another process made a step first. */
int amp_conflict_ask(const struct amp_conflict_desk *d, struct amp_conflict_jobs *p, uint8_t event,
                     const struct amp_conflict *set, struct amp_error *err);
/* Does what is to be done about a pair. 1: something was decided; 0. */
int amp_conflict_tend(const struct amp_conflict_desk *d, struct amp_span x, struct amp_span y,
                      struct amp_error *err);
/* Ends the question about a pair, if it is open. */
int amp_conflict_unask(const struct amp_conflict_desk *d, struct amp_span question, const char *why,
                       struct amp_error *err);

#endif
