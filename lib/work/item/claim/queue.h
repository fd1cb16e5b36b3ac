/*
 * The queue of a state directory, for the verbs and the workers: settings, claims, heartbeats.
 * submit.h has the submissions.
 */
#ifndef AMP_WORK_ITEM_CLAIM_QUEUE_H
#define AMP_WORK_ITEM_CLAIM_QUEUE_H

#include <jansson.h>

#include <amp/protocol/protocol.h>

#include "work/item/order.h"
#include "work/item/queue.h"

enum { AMP_JUDGE_ARGS_MAX = 64 }; /* of conflict_exec */

/* Agents of a pool are TYPE-1, TYPE-2, …; the lines of each are in the outbox of its consumer.
 * While no agent has a job of a type, the first agent of the type sends the job's lines: a pool
 * that works sends them, or else the next one. */
enum { AMP_QUEUE_AGENT_MAX = 128, AMP_QUEUE_CONSUMER_MAX = 192 };
void amp_queue_agent(struct amp_span type, uint32_t n, char out[AMP_QUEUE_AGENT_MAX]);
void amp_queue_consumer(const char *agent, char out[AMP_QUEUE_CONSUMER_MAX]);

/* Settings: section `queue` of amp.json. */
struct amp_queue_settings {
    int64_t ageing_ms;    /* default 600,000; 0: off */
    int64_t max_parallel; /* of a type without a setting of its own; default: processors, or the
                           * agents of the pool if they are more */
    bool has_max;         /* max_parallel is a setting */
    int64_t keep_ms;      /* records of ended jobs; default 7 days */
    int64_t losses_most;  /* lost workers after which a pool fails a job; default 3 */
    int64_t heartbeat_ms; /* default 10,000; a claim is released after three of them */
    double threshold;     /* confidence from which overlapping jobs run in parallel; 0.8 */
    const json_t *types;  /* {"builder":{"max_parallel":4}} or NULL; borrowed */
    /* Conflicts (work/item/judge/conflict.h). */
    int8_t overlap;           /* enum amp_overlap; default: SERIALISE */
    bool overlaps;            /* `overlap`, or that of a type, is not SERIALISE */
    char *const *judge;       /* --conflict-exec, NULL-terminated; borrowed. Else */
    const json_t *judge_list; /* the setting, a list of texts; NULL: there is no command */
    int64_t judge_ms;         /* its time limit; 30,000 */
    int64_t judge_failures;   /* in a row, until it is not started for a time; 3 */
    int64_t judge_pause_ms;   /* this time, and that until a pair is judged again; 60,000 */
};

/* The ways to treat two jobs with a common scope that no command judged: X(NAME, word). */
#define AMP_OVERLAPS(X)                                                                            \
    X(SERIALISE, "serialise")                                                                      \
    X(ASK, "ask")           /* a person is asked */                                                \
    X(PARALLEL, "parallel") /* of a type only: jobs of such types never conflict with each other   \
                             */
enum amp_overlap {
#define X(id, word) AMP_OVERLAP_##id,
    AMP_OVERLAPS(X)
#undef X
};
/* For two jobs of these types: PARALLEL if both have it, ASK if one has it, else the default. */
enum amp_overlap amp_queue_overlap(const struct amp_queue_settings *s, struct amp_span type,
                                   struct amp_span other);

void amp_queue_settings_default(struct amp_queue_settings *out);
/* Reads a configuration, which must live as long as `out`. CONFIG bad_value. */
int amp_queue_settings_load(struct amp_queue_settings *out, const json_t *config,
                            struct amp_error *err);
int64_t amp_queue_most(const struct amp_queue_settings *s, struct amp_span type);
/* Whether the settings have a limit for this type; else amp_queue_most is the default. */
bool amp_queue_limits(const struct amp_queue_settings *s, struct amp_span type);

/* ---- workers ---- */

/*
 * A worker: a process that claims jobs under a name. It has a lock (STATE/run/worker.<name>.lock),
 * which ends with the process, and while it has claims a heartbeat (key "queue_worker.<name>", due
 * after three intervals). A worker without a heartbeat loses its claims: by the row "queue" of the
 * deadlines, and when another worker opens.
 */
struct amp_queue_worker;
/* NO name_taken: another process has the name. Claims that an earlier process with the name, or any
 * worker whose lock is free, left are lost (event lose) before it returns. */
int amp_queue_worker_open(struct amp_queue_worker **out, struct amp_store *s,
                          const struct amp_queue_settings *set, const char *name,
                          struct amp_error *err);
void amp_queue_worker_close(struct amp_queue_worker *w); /* removes its record; NULL is allowed */
/* The time of the monotonic clock at which the next beat is due; 0: no claims, so none. Call beat
 * then. */
int64_t amp_queue_worker_due(const struct amp_queue_worker *w);
int amp_queue_worker_beat(struct amp_queue_worker *w, struct amp_error *err);
/* Claims (work/item/order.h); a heartbeat of the worker is recorded before its first claim. */
int amp_queue_worker_claim(struct amp_queue_worker *w, struct amp_order *o,
                           const struct amp_span *types, uint32_t n_types, struct amp_buf *mem,
                           struct amp_queue_job *out, int64_t *wake_ms, struct amp_error *err);
/* A step of a job that it holds; counts its claims. */
int amp_queue_worker_step(struct amp_queue_worker *w, struct amp_queue_step *st,
                          struct amp_buf *mem, struct amp_queue_job *out, struct amp_error *err);

/* For lists: the heartbeats of the workers that have claims; fn returns 0, 1 (stop) or -1. */
struct amp_queue_beat {
    struct amp_span worker;
    int64_t pid, at_ms;
    int64_t left_ms; /* until its claims are released; <= 0: at the next sweep */
};
typedef int (*amp_queue_beat_fn)(void *ctx, const struct amp_queue_beat *b, struct amp_error *err);
int amp_queue_beats(struct amp_store *s, amp_queue_beat_fn fn, void *ctx, struct amp_error *err);
/* Whether a process has the lock of this name; takes none. */
bool amp_queue_worker_lives(struct amp_store *s, const char *name);

/* Releases what workers whose lock is free hold, but not self (NULL: all of them); adds their
 * number and that of their jobs to *done. */
int amp_queue_lost_release(struct amp_store *s, const char *self, const char *actor, uint32_t *done,
                           struct amp_error *err);

/* The row "queue" of flow/deadlines: lost workers, parked jobs whose time has come, deadlines of
 * jobs, records of ended jobs. */
int amp_queue_due(struct amp_store *s, int64_t *ms, struct amp_error *err);
/* Gets when the next worker without a heartbeat is lost, by the monotonic clock; 0: none. */
int amp_queue_worker_lost_due(struct amp_store *s, int64_t *mono_ms, struct amp_error *err);
int amp_queue_sweep(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *done,
                    struct amp_error *err);

#endif
