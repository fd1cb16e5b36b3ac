/*
 * The activity buffer (SW4RM §10): an entry for each execution in progress, who works on what and
 * where, and a short history of those that ended. It is advisory: nothing is scheduled or refused
 * by it.
 *
 * Key "activity.<agent>.<task>.<subtask>.<attempt>", states ACTIVE and ENDED. An entry is made
 * before the execution and ends with it. The entry names the process that made it, so an entry
 * whose process was killed is recognized and ended by amp_activity_reconcile.
 */
#ifndef AMP_WORK_TASK_ACTIVITY_ACTIVITY_H
#define AMP_WORK_TASK_ACTIVITY_ACTIVITY_H

#include "message/store/store.h"
#include "json/view.h"

#define AMP_ACTIVITY_KIND "activity"

enum {
    AMP_ACTIVITY_WORDS = 200,      /* of a description, SW4RM §10 */
    AMP_ACTIVITY_TEXT = 4000,      /* bytes of a description; both are enforced by cutting */
    AMP_ACTIVITY_LOOK_MS = 300000, /* how often the deadline row checks an active entry */
    AMP_ACTIVITY_MAX = 10000,      /* defaults, SW4RM §10.1 */
    AMP_ACTIVITY_PER_AGENT = 100,  /* */
    AMP_ACTIVITY_WARN = 80,        /* percent */
    AMP_ACTIVITY_HISTORY = 1000,   /* ended entries */
    AMP_ACTIVITY_HISTORY_MS = 86400000,
};

/* Texts of an entry that is given to amp_activity_begin may be empty, except agent and task. */
struct amp_activity {
    struct amp_span agent, task, subtask;
    int64_t attempt; /* its number; 0: unknown */
    struct amp_span role, repo, worktree, branch, description;
    int64_t began_ms;
    /* Set by these functions: */
    int64_t ended_ms;         /* 0: ACTIVE */
    struct amp_span outcome;  /* an enum amp_activity_end as a word; empty: ACTIVE */
    int64_t pid, pid_started; /* the process that made the entry */
    uint8_t state;
    uint64_t rev;
    int64_t due_ms; /* of the next check, or the end of the history */
    const struct amp_key *key;
};

#define AMP_ACTIVITY_ENDS(X)                                                                       \
    X(COMPLETED, "completed") /* the execution reported success */                                 \
    X(FAILED, "failed")       /* it failed, or its machinery did */                                \
    X(STOPPED, "stopped")     /* it was interrupted, suspended or preempted */                     \
    X(LOST, "lost")           /* its process is gone */                                            \
    X(OVER, "over")           /* its task has ended */
enum amp_activity_end {
#define X(id, word) AMP_ACTIVITY_##id,
    AMP_ACTIVITY_ENDS(X)
#undef X
        AMP_ACTIVITY_END_COUNT
};

/* A member that is 0 has its default. */
struct amp_activity_limits {
    int64_t max, per_agent; /* active entries */
    int64_t warn;           /* percent of max */
    int64_t history, history_ms;
};

struct amp_activity_room {
    uint64_t active; /* entries, with the new one */
    int64_t max;
    bool crossed; /* this entry made it reach limits->warn percent */
};

/* Makes an entry; one that is there with the same key is begun again. The check of the limits and
 * the commit are one turn of the store; call it outside of amp_store_begin. NO
 * activity_buffer_full: the limit of all entries, or of the agent's, is reached. The caller syncs.
 */
int amp_activity_begin(struct amp_store *s, const struct amp_activity *a,
                       const struct amp_activity_limits *limits, struct amp_activity_room *room,
                       struct amp_error *err);
/* Ends the entry with the key of `a`, and removes the oldest of the history beyond its limit.
 * Nothing changes if there is no such active entry. */
int amp_activity_end(struct amp_store *s, const struct amp_activity *a, enum amp_activity_end how,
                     int64_t now_ms, const struct amp_activity_limits *limits,
                     struct amp_error *err);

/* A member that is empty fits all entries. */
struct amp_activity_filter {
    struct amp_span agent, repo, worktree, task;
    const struct amp_span *tasks; /* with n_tasks: one of them */
    uint32_t n_tasks;
    bool history; /* ended entries too */
    bool ended;   /* only ended entries */
};
/* fn: 0 continues, 1 stops, -1 fails with err; it may use the store. In the order of keys. */
typedef int (*amp_activity_fn)(void *ctx, const struct amp_activity *a, struct amp_error *err);
int amp_activity_each(struct amp_store *s, const struct amp_activity_filter *f, amp_activity_fn fn,
                      void *ctx, struct amp_error *err);

/* The number of active entries. */
int amp_activity_count(struct amp_store *s, uint64_t *n, struct amp_error *err);

/* Whether the process that made the entry runs, as seen from this machine. */
bool amp_activity_is_alive(const struct amp_activity *a);

/* Ends the active entries whose process is gone (lost) or whose task has ended (over). task_ended
 * may be NULL. agent: only its entries; NULL: all. */
struct amp_activity_reconcile {
    const char *agent, *actor;
    bool (*task_ended)(void *ctx, struct amp_store *s, struct amp_span task);
    void *ctx;
    int64_t now_ms;
    bool due; /* only entries that the deadline row has to look at */
};
int amp_activity_reconcile(struct amp_store *s, const struct amp_activity_reconcile *how,
                           const struct amp_activity_limits *limits, uint32_t *n_ended,
                           struct amp_error *err);
/* Removes the history that is older than its limit. */
int amp_activity_forget(struct amp_store *s, int64_t now_ms, const char *actor, uint32_t *gone,
                        struct amp_error *err);
/* Removes the entries that fit the filter (SW4RM PurgeActivity). */
int amp_activity_purge(struct amp_store *s, const struct amp_activity_filter *f, const char *actor,
                       uint32_t *gone, struct amp_error *err);

/* SW4RM's ActivityEntry with agent_id, state and what else is known
 * (schemas/records/activity.json).
 */
extern const struct amp_column amp_activity_columns[];

#endif
