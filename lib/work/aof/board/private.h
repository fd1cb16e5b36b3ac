/* The files of this folder share these declarations. */
#ifndef AMP_WORK_AOF_BOARD_PRIVATE_H
#define AMP_WORK_AOF_BOARD_PRIVATE_H

#include <amp/json/writer.h>

#include "message/protocol/aof/said.h"
#include "work/aof/board/aof.h"
#include "work/aof/change.h"
#include "work/aof/seen.h"

/* The tasks in ready that executors may get (choose.c). */
struct amp_aof_queue {
    struct amp_aof_seen seen;
    struct amp_aof_candidate *v; /* the next one: at */
    uint32_t n, at;
    bool filled;                   /* false: a poll is due */
    struct timespec modified;      /* of the folder, before the look */
    char (*noted)[AMP_AOF_ID_MAX]; /* tasks that no executor can get, which was logged */
    uint32_t n_noted;
};
void amp_aof_queue_release(struct amp_aof_queue *q);

#define AMP_AOF_LEASE_EXPIRED "lease_expired"

struct amp_aof_router {
    struct amp_aof_options o;
    struct amp_aof_data data;
    struct amp_reader *reader;
    const char *speaker; /* the only agent that may speak now; NULL: all */
    bool person;         /* a person said the present message */
    int64_t failed_at;   /* monotonic: a notification failed; 0: none did */
    struct amp_aof_seen beats;
    struct amp_aof_queue queue;
};

enum { AMP_AOF_ALERTS = 4 };

/* One change with what follows it. */
struct amp_aof_work {
    struct amp_aof_router *r;
    struct amp_aof_change c;
    struct amp_buf messages; /* to emit after it, beside its events */
    struct {
        char task[AMP_AOF_ID_MAX], reason[64];
    } alerts[AMP_AOF_ALERTS];
    unsigned n_alerts, notices;
    const char *agent; /* of the lease that a dispatch gives */
    const struct amp_aof_lease *lease;
    bool cut;     /* after the commit: a person moved the task, the rest was left out */
    bool expired; /* a lease that ends is lease.expired, not lease.released */
};

/* Takes the lock. work_end releases all, with or without a commit. */
int amp_aof_work_begin(struct amp_aof_router *r, struct amp_aof_work *w, struct amp_error *err);
/* Commits, releases the lock, emits and notifies. */
int amp_aof_work_commit(struct amp_aof_work *w, struct amp_error *err);
void amp_aof_work_end(struct amp_aof_work *w);
#define AMP_AOF_WORK AMP_CLEANUP(amp_aof_work_end)

/* A message names no known task: people are warned and notified. */
int amp_aof_alert(struct amp_aof_work *w, const char *task, const char *reason,
                  struct amp_error *err);
/* notice.c: adds a notification to the change, if any channel takes it. It is a file until it was
 * delivered. */
struct amp_aof_notice {
    const char *kind;          /* "review", "blocked", "done", "alert"; NULL: only for questions */
    const char *task, *status; /* status: of the task from now on, or NULL */
    struct amp_span agent, reason;
};
int amp_aof_notice_add(struct amp_aof_work *w, const struct amp_aof_notice *n,
                       struct amp_error *err);

/* A payload {reason, errors, …}; empty members are left out. */
struct amp_aof_why {
    const char *reason, *field, *errors;
    const struct amp_view *v; /* the message, or NULL */
};
int amp_aof_why_event(struct amp_aof_work *w, const char *type, struct amp_span task,
                      const struct amp_aof_why *why, struct amp_error *err);

/* task.validation.failed: a task file that cannot be used. */
int amp_aof_invalid_event(struct amp_aof_work *w, const char *id, const struct amp_error *why,
                          struct amp_error *err);
/* The next ready task for an executor, in out; adds the events about those that none can get. 1; 0:
 * none. */
int amp_aof_choose(struct amp_aof_work *w, const struct amp_aof_lease *how,
                   struct amp_aof_task *out, struct amp_error *err);

/* BARRED: the machine allows it, but the review is not the speaker's: the command of a task moves
 * nothing out of review, and with stops_at_review only a person says that a review is done. */
enum amp_aof_moved { AMP_AOF_ILLEGAL, AMP_AOF_BARRED, AMP_AOF_SAME, AMP_AOF_MOVED };
/* Raises an event of the machine on a task and adds the steps of its effects to the change.
 * outcome: for task.completed, or "". -1: failure. */
int amp_aof_transition(struct amp_aof_work *w, const struct amp_aof_task *t, uint8_t event,
                       struct amp_span reason, const char *outcome, enum amp_aof_moved *moved,
                       struct amp_error *err);
/* The effect `lease`: run.json and the first heartbeat; the result of an earlier run is removed.
 */
int amp_aof_run_begin(struct amp_aof_work *w, const struct amp_aof_task *t, struct amp_error *err);
/* Whether it would move the task. */
enum amp_aof_moved amp_aof_transition_of(const struct amp_aof_router *r,
                                         const struct amp_aof_task *t, uint8_t event);

/* The event of an outcome (AOF/1, Status Mapping); outcome is not NONE. */
uint8_t amp_aof_outcome_event(enum amp_aof_outcome o);

/* Loads a task for a message. 1: loaded; 0: it is missing or unusable: logged, and people are
 * notified of a missing one. */
int amp_aof_task_for(struct amp_aof_work *w, const struct amp_view *v, const char *id,
                     struct amp_aof_task *t, struct amp_error *err);
/* Logs that the message was rejected, because its transition is BARRED. 0; -1. */
int amp_aof_refuse_review(struct amp_aof_work *w, const struct amp_view *v, struct amp_error *err);
/* Whether the sender may speak for the task, also for one that it has just left. 0: logged. */
int amp_aof_may_speak(struct amp_aof_work *w, const struct amp_view *v,
                      const struct amp_aof_task *t, struct amp_span also, struct amp_error *err);

/* The result of reading a file that need not be there: one that is unusable counts as absent. A
 * failure of the machine stays a failure. */
int amp_aof_if_usable(int rc, const struct amp_error *why, struct amp_error *err);
/* run.json of a task. 1: read, its texts are in mem; 0: absent, unusable, or of another task. */
int amp_aof_run_load(struct amp_aof_router *r, const char *id, struct amp_buf *mem,
                     struct amp_aof_run *out, struct amp_error *err);
/* run.json says how the run ended: expired: why, or NULL if it is complete. A run that has ended is
 * not completed again. Nothing is written if there is none: "treat as resumable". */
int amp_aof_run_end(struct amp_aof_work *w, const char *id, const char *expired,
                    struct amp_error *err);
/* The path of a file of a run. */
void amp_aof_run_path(char out[AMP_AOF_PATH_MAX], const char *id, const char *name);

/* task.assigned. */
int amp_aof_assigned_event(struct amp_aof_work *w, const char *id, struct amp_span agent,
                           struct amp_error *err);
/* The pointer to a child in its parent's folder: subtasks/CHILD.md. to: its agent, or empty. */
int amp_aof_pointer_put(struct amp_aof_work *w, const struct amp_aof_task *parent,
                        const char *child, struct amp_span to, struct amp_error *err);

/* Appends the reason of an outcome's transition: the blockers of one that is blocked, else the
 * outcome. With a prefix it is the prefix, the outcome, and the blockers. */
int amp_aof_outcome_reason(const struct amp_aof_said *said, const char *prefix, struct amp_buf *out,
                           struct amp_error *err);
/* Messages; the change has the event that the message was received. */
int amp_aof_report(struct amp_aof_work *w, const struct amp_view *v,
                   const struct amp_aof_said *said, struct amp_error *err);
int amp_aof_status(struct amp_aof_work *w, const struct amp_view *v,
                   const struct amp_aof_said *said, struct amp_error *err);
int amp_aof_request(struct amp_aof_work *w, const struct amp_view *v,
                    const struct amp_aof_said *said, struct amp_error *err);
int amp_aof_answer(struct amp_aof_work *w, const struct amp_view *v,
                   const struct amp_aof_said *said, struct amp_error *err);

#endif
