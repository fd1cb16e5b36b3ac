/*
 * The order of waiting jobs, in the memory of one process. It is read once from the records and
 * then follows the log, so a pick reads nothing from the index, and jobs that can start cost it
 * nothing that grows with the number of jobs. A claim looks at the log again under the lock of the
 * store, so limits and scopes hold across processes.
 *
 * Order: the priority, then the order of submission. With ageing, a job gains one level for each
 * `ageing_ms` that it waits, up to the highest: job a is before b if
 * a.priority * ageing_ms + a.submitted < b.priority * ageing_ms + b.submitted. That does not depend
 * on the time of the look, so nothing is sorted again.
 */
#ifndef AMP_WORK_ITEM_ORDER_H
#define AMP_WORK_ITEM_ORDER_H

#include "work/item/queue.h"

struct amp_order;

struct amp_order_options {
    int64_t ageing_ms; /* 0: no ageing */
    /* The limit of jobs of a type that have a worker; <= 0: no limit. NULL: none has a limit. */
    int64_t (*most)(void *ctx, struct amp_span type);
    /* Whether two patterns of paths have a common path (work/git/paths/glob.h). */
    bool (*patterns)(struct amp_span a, struct amp_span b);
    /* Whether a job must not start now, such as of a task that people suspended; NULL: none. */
    bool (*held)(void *ctx, struct amp_span task);
    /* The time before which no job of a type may start, because of a usage limit (Unix
     * milliseconds); 0: jobs may start. NULL: always. */
    int64_t (*closed)(void *ctx, struct amp_span type);
    void *ctx;
};

/* One at a time for a store. */
int amp_order_open(struct amp_order **out, struct amp_store *s, const struct amp_order_options *o,
                   struct amp_error *err);
void amp_order_close(struct amp_order *o); /* NULL is allowed */

/* The reasons why a job waits: words for people and programs (amp-codes-protocols(7)). */
#define AMP_WAITS(X)                                                                               \
    X(TURN, "ready", "an agent can take it now")                                                   \
    X(BEHIND, "behind", "jobs of its type are before it")                                          \
    X(LIMIT, "type_full", "max_parallel of its type is reached")                                   \
    X(SCOPE, "scope_taken", "its scope overlaps that of a job at work")                            \
    X(CONFLICT, "conflict",                                                                        \
      "a person or a command is asked whether it may run beside another job")                      \
    X(ACCOUNT, "usage_limit", "the account of its type has reached a usage limit")                 \
    X(PARKED, "parked", "it waits until a time")                                                   \
    X(FOLLOWS, "follows", "a job that it follows has not ended")                                   \
    X(HELD, "suspended", "its task is suspended")                                                  \
    X(WORKER, "no_worker", "no worker takes jobs of its type")
enum amp_waits {
#define X(id, name, doc) AMP_WAITS_##id,
    AMP_WAITS(X)
#undef X
        AMP_WAITS_COUNT
};
const char *amp_waits_name(enum amp_waits w);

struct amp_order_place {
    enum amp_waits why;
    uint64_t position;      /* 1: the next of its type */
    int64_t effective;      /* the priority with its age */
    struct amp_span behind; /* SCOPE, CONFLICT, FOLLOWS: the id of the other job */
    int64_t until_ms;       /* ACCOUNT, PARKED: the end of its time; 0: none */
};

struct amp_order_want {
    const char *worker;
    const struct amp_span *types; /* that the worker takes */
    uint32_t n_types;
    const char *actor;
    int64_t now_ms;
    /* Called when there is a job, before it is claimed; it may update the store. NULL: nothing. */
    int (*before)(void *ctx, struct amp_error *err);
    void *before_ctx;
};
/* Claims the first job that the worker may take, in a turn of its own or in the caller's batch, so
 * that many claims and ends share one sync. 1: *out is claimed (texts in mem); 0: there is none,
 * and *wake_ms (may be NULL) is the time at which a parked one may be ready (0: none). Sync
 * afterwards. */
int amp_order_claim(struct amp_order *o, const struct amp_order_want *want, struct amp_buf *mem,
                    struct amp_queue_job *out, int64_t *wake_ms, struct amp_error *err);

/* Reads what the log has since the last look. The functions below use what was read; claim does
 * this itself. */
int amp_order_look(struct amp_order *o, struct amp_error *err);

/* The pick alone: the id of the job that a claim would try to take, valid until the next look. 1;
 * 0: there is none. */
int amp_order_pick(struct amp_order *o, const struct amp_order_want *want, struct amp_span *id,
                   struct amp_error *err);

/* A job at work that should yield: the first waiting job of these types cannot start, because of
 * the limit of its type, `full` (the worker has no free place) or a scope, and the job at work is
 * less urgent (SW4RM §7.1). 1: found; 0: none. The texts are valid until the next call. */
struct amp_order_rival {
    struct amp_span victim, by; /* ids */
    struct amp_span worker;     /* of the victim */
    int64_t victim_priority, by_priority;
};
int amp_order_rival(struct amp_order *o, const struct amp_order_want *want, bool full,
                    struct amp_order_rival *out, struct amp_error *err);

/* ---- conflicts (work/item/conflict/conflict.h) ---- */

/* The pairs about which nothing is decided: a job of these types that could start but for a job at
 * work with a common scope. At most `most`, the most urgent first. A pair without a judgement comes
 * again after its time. fn returns 0, 1 (stop) or -1; it must not look. */
typedef int (*amp_order_meet_fn)(void *ctx, struct amp_span waiting, struct amp_span running,
                                 struct amp_error *err);
int amp_order_meets(struct amp_order *o, const struct amp_order_want *want, uint32_t most,
                    amp_order_meet_fn fn, void *ctx, struct amp_error *err);

/* Calls fn, as above, for the pairs with a record. */
struct amp_order_pair {
    const char *a, *b; /* ids */
    uint8_t state;     /* of amp_conflict_fsm */
    int64_t until_ms;
    bool gone; /* one of the jobs has ended */
};
typedef int (*amp_order_pair_fn)(void *ctx, const struct amp_order_pair *p, struct amp_error *err);
int amp_order_pairs(struct amp_order *o, amp_order_pair_fn fn, void *ctx, struct amp_error *err);

/* ---- places ---- */

/* Finds the place of a waiting job. 1; 0: it does not wait. For the newest job of a priority,
 * the cost does not grow with the number of jobs, unless ageing moves it between priorities. */
int amp_order_place(struct amp_order *o, struct amp_span id, int64_t now_ms,
                    struct amp_order_place *out, struct amp_error *err);

/* Whether a job that is not in the queue could start at once if it was submitted now (type, task,
 * scope, priority): TURN, or HELD, LIMIT, SCOPE with `behind`. Jobs that wait before it and could
 * start now count like jobs at work: they take a place of their type, and their scope. Call it in
 * the batch of the submission, after a look. */
int amp_order_try(struct amp_order *o, const struct amp_queue_job *job, int64_t now_ms,
                  struct amp_order_place *out, struct amp_error *err);
/* Jobs of a type: waiting, parked, at work. */
struct amp_order_counts {
    uint64_t waiting, parked, working;
};
/* The types that it knows, i from 0; false: there are no more. */
bool amp_order_type(const struct amp_order *o, size_t i, struct amp_span *out);
bool amp_order_knows(const struct amp_order *o, struct amp_span type);
int amp_order_counts(struct amp_order *o, struct amp_span type, struct amp_order_counts *out,
                     struct amp_error *err);

/* Calls fn for each waiting job, type by type in their order, then for the parked ones (position
 * 0). fn returns 0, 1 (stop) or -1; it must not look. */
typedef int (*amp_order_each_fn)(void *ctx, struct amp_span id, const struct amp_order_place *p,
                                 struct amp_error *err);
int amp_order_each(struct amp_order *o, int64_t now_ms, amp_order_each_fn fn, void *ctx,
                   struct amp_error *err);

#endif
