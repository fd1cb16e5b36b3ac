/*
 * The coordinator as a filter (AMP/1.0): reads new tasks, results, verdicts, decisions, CI status,
 * acknowledgements and escalations; writes dispatches, review requests and escalations.
 */
#ifndef AMP_WORK_LOOP_COORDINATE_COORDINATE_H
#define AMP_WORK_LOOP_COORDINATE_COORDINATE_H

#include <amp/protocol/protocol.h>

#include "message/store/store.h"
#include "work/task/policy.h"

struct amp_identities;
struct amp_operators;

/* An input. Its unsigned messages count as said by whom they name if it is trusted
 * (message/delivery/sender/identity.h). With a role it takes only what that role may say
 * (role_mismatch). */
struct amp_coordinate_input {
    const char *path; /* "-" is standard input */
    char role[64];    /* "": any */
    bool trusted;
};

struct amp_coordinate_options {
    const char *tool, *consumer; /* "task-dispatch", "task-dispatch.coordinate" */
    const struct amp_coordinate_input *inputs;
    size_t n_inputs;
    struct amp_identities *ids; /* NULL: identities are off */
    const struct amp_operators
        *operators;          /* people/question/operators/operators.h; NULL: one operator decides */
    const char *output;      /* path, "-" is standard output */
    int64_t open_timeout_ms; /* for the output's reader */
    bool until_done;         /* end once a task was seen and all are terminal */
    bool hold;               /* no end of file on FIFOs */
    int64_t ack_timeout_sec; /* of sent messages; 0: the protocol's default */
    struct amp_task_policy policy;
    const char *const *protected_; /* branches besides main and master, NULL-terminated, or NULL */
    struct amp_span text; /* of amp_coordinate_task: the task's file, for its record; or empty */
    volatile const int *stop; /* the number of the signal that ends the run, or 0 */
    void (*say)(void *ctx, const struct amp_finding *f, const struct amp_line_place *at);
    void (*warn)(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
};

/* The end of a run. */
struct amp_coordinate_end {
    uint64_t rejected;      /* invalid lines */
    uint64_t refused_tasks; /* new tasks answered with a nack */
    uint32_t open_tasks;    /* not terminal at the end */
    struct amp_buf names;   /* of the open tasks, separated by blanks; the caller releases it */
    bool interrupted, output_closed;
    bool no_task; /* the state has no task */
};

int amp_coordinate(struct amp_store *s, const struct amp_coordinate_options *opt,
                   struct amp_coordinate_end *end, struct amp_error *err);

/* Takes a person's new task, a line without LF, as a coordinator does. Its dispatch stays in the
 * outbox of AMP_CREATE_CONSUMER, from which the coordinator that runs, or the next one, sends it.
 * Of opt only the policy, protected_, text, ids and warn count; consumer is AMP_CREATE_CONSUMER. 1:
 * the task was refused, and warn said why. */
#define AMP_CREATE_CONSUMER "task-dispatch.new"
int amp_coordinate_task(struct amp_store *s, const struct amp_coordinate_options *opt,
                        struct amp_span line, struct amp_error *err);

#endif
