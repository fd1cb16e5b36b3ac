/* What the files of this folder share. */
#ifndef AMP_FLOW_AOF_PRIVATE_H
#define AMP_FLOW_AOF_PRIVATE_H

#include <amp/json/writer.h>

#include "aof/change.h"
#include "flow/aof/aof.h"
#include "protocol/aof/said.h"

struct amp_aof_router {
    struct amp_aof_options o;
    struct amp_aof_data data;
    struct amp_reader *reader;
    const char *speaker; /* the only agent that may speak now; NULL: all */
};

enum { AMP_AOF_NOTICES = 4 };

/* One change with what follows it. */
struct amp_aof_work {
    struct amp_aof_router *r;
    struct amp_aof_change c;
    struct amp_buf messages; /* to emit after it, beside its events */
    struct amp_buf mem;      /* texts of the notices */
    struct {
        const char *kind;
        char task[AMP_AOF_ID_MAX];
        size_t reason, n; /* in mem */
    } notices[AMP_AOF_NOTICES];
    unsigned n_notices;
    const char *agent; /* of the lease that a dispatch gives */
    const struct amp_aof_lease *lease;
};

/* Takes the lock. work_end releases all, with or without a commit. */
int amp_aof_work_begin(struct amp_aof_router *r, struct amp_aof_work *w, struct amp_error *err);
/* Commits, releases the lock, emits and notifies. */
int amp_aof_work_commit(struct amp_aof_work *w, struct amp_error *err);
void amp_aof_work_end(struct amp_aof_work *w);
#define AMP_AOF_WORK AMP_CLEANUP(amp_aof_work_end)

void amp_aof_notify_later(struct amp_aof_work *w, const char *kind, const char *task,
                          struct amp_span reason);

/* A payload {reason, errors, …}; empty members are left out. */
struct amp_aof_why {
    const char *reason, *field, *errors;
    const struct amp_view *v; /* the message, or NULL */
};
int amp_aof_why_event(struct amp_aof_work *w, const char *type, struct amp_span task,
                      const struct amp_aof_why *why, struct amp_error *err);

enum amp_aof_moved { AMP_AOF_ILLEGAL, AMP_AOF_SAME, AMP_AOF_MOVED };
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
/* Whether the sender may speak for the task, also for one that it has just left. 0: logged. */
int amp_aof_may_speak(struct amp_aof_work *w, const struct amp_view *v,
                      const struct amp_aof_task *t, struct amp_span also, struct amp_error *err);

/* The path of a file of a run. */
void amp_aof_run_path(char out[AMP_AOF_PATH_MAX], const char *id, const char *name);

/* run.json says that the run expired. */
int amp_aof_run_expire(struct amp_aof_work *w, const char *id, const char *reason,
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
