/*
 * A worker's own jobs (work/item/queue.h): it takes the messages of its input, and chooses the next
 * one.
 *
 * Their order is in the memory of the one process that works on them. They are read once from the
 * records and then follow the log, so a choice reads nothing that did not change, and its cost does
 * not grow with the number of jobs.
 *
 * Order: the rank, the lowest first, then the order in which they were taken.
 */
#ifndef AMP_WORK_ITEM_OWN_H
#define AMP_WORK_ITEM_OWN_H

#include "message/store/key.h"
#include "work/item/queue.h"

/* Takes a message, once per worker and id. emits: the acknowledgement. AMP_STORE_REDELIVERED: taken
 * before (nothing is emitted). NO duplicate_msg_id. */
struct amp_own_take {
    const char *owner, *type, *protocol;
    struct amp_span msg_id, from, task, line;
    const struct amp_store_emit *emits;
    uint32_t n_emits;
    int64_t now_ms;
};
int amp_own_take(struct amp_store *s, const struct amp_own_take *t, enum amp_store_outcome *outcome,
                 struct amp_error *err);

/* Whether the owner has unfinished jobs. */
int amp_own_any(struct amp_store *s, const char *owner, bool *any, struct amp_error *err);

struct amp_own_order;

#define AMP_OWN_FOLLOWS_MAX 4

struct amp_own_order_options {
    const char *consumer;
    /* The rank of a job, and the text of the key of the record that it depends on: after a change
     * of this record the job is ranked again. NULL: all jobs have the same rank. */
    int (*rank)(void *ctx, const char *msg_id, const char *task, char key[AMP_KEY_MAX],
                int64_t *rank, struct amp_error *err);
    const char *const *follows; /* the kinds of these records, and of those that held jobs wait
                                   for; NULL-terminated, at most AMP_OWN_FOLLOWS_MAX. NULL: none */
    void *ctx;
};
/* The texts of the options are not copied. */
int amp_own_order_open(struct amp_own_order **out, struct amp_store *s,
                       const struct amp_own_order_options *opt, struct amp_error *err);
void amp_own_order_close(struct amp_own_order *o); /* NULL is allowed */

/* The first job that is not held and no longer waits at now_ms, as its record is. *found is false
 * if none is ready; *wake_ms is then the time of the next one (0: none waits). Call it outside of a
 * batch. */
int amp_own_order_next(struct amp_own_order *o, int64_t now_ms, bool *found, struct amp_item *out,
                       int64_t *wake_ms, struct amp_error *err);

/* A held job is not chosen before a record changes whose key begins with `until`, or if that is
 * empty, before amp_own_order_free_held. */
int amp_own_order_hold(struct amp_own_order *o, const char *msg_id, const char *until,
                       struct amp_error *err);
int amp_own_order_free_held(struct amp_own_order *o, struct amp_error *err);

/* The number of jobs, and of jobs held by an `until` that begins with a text, as of the last
 * amp_own_order_next. */
size_t amp_own_order_count(const struct amp_own_order *o);
size_t amp_own_order_held(const struct amp_own_order *o, const char *text);

#endif
