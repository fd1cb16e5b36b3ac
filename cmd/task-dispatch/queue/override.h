/* Overrides in the verbs of the queue: decisions of a person against its rules, with a reason. */
#ifndef TASK_DISPATCH_QUEUE_OVERRIDE_H
#define TASK_DISPATCH_QUEUE_OVERRIDE_H

#include "../tasks/person.h"
#include "hitl/waiver/waiver.h"

extern const char *queue_why, *queue_until;
#define QUEUE_OPTS_OVERRIDE                                                                        \
    {                                                                                              \
        0,          "why",  AMP_OPT_STRING,                                                        \
        &queue_why, "TEXT", "the reason of an override, which is recorded"},                       \
        {0,                                                                                        \
         "until",                                                                                  \
         AMP_OPT_STRING,                                                                           \
         &queue_until,                                                                             \
         "TIME",                                                                                   \
         "the end of an override: a time, or a duration (default: the end of the jobs)"},          \
        TASKS_OPT_KEY

/* Finds who overrides a rule; act says what is done ("run a job again"). USAGE why_required: there
 * is no --why; NOPERM permission_denied (an agent), not_operator. Close p (tasks_person_close) also
 * after a failure. */
int queue_override_open(const char *act, struct tasks_person *p, struct amp_error *err);

struct queue_override {
    enum amp_waiver_of of;
    struct amp_span job, other;
    const char *changed; /* for the record and people */
    const char *why;     /* NULL: --why */
};
/* Signs and records it (flow/conflict/waiver.h), with the failures of amp_waiver_give; USAGE
 * bad_time. id gets its id. */
int queue_override_give(struct amp_store *s, const struct tasks_person *p,
                        const struct queue_override *q, char id[AMP_UUID_MAX],
                        struct amp_error *err);
/* Before a step of a job: if hitl.operators is set and another login submitted the job, the person
 * must give a reason (why; NULL: --why), and the override is recorded. USAGE why_required. */
int queue_override_others(struct amp_store *s, const struct tasks_person *p, enum amp_waiver_of of,
                          const char *id, const char *why, struct amp_error *err);

#endif
