/*
 * What is looked at before a message goes on to its ports: whether its operation is a duplicate,
 * its number in a stream, its expiry, whether its task is suspended, its lane, which rules hold and
 * whom it is for. Messages that the state has (of streams, and the log) enter here too.
 */
#ifndef AMP_ROUTE_ADMISSION_H
#define AMP_ROUTE_ADMISSION_H

#include "route/address/addressing.h"
#include "route/admission/source.h"

struct amp_admission_parts {
    struct amp_outlets *outlets;
    const struct amp_rules *rules;
    struct amp_addressing *addressing;
    const struct amp_lane_rules *lanes;
    int64_t window_ms; /* how long an outcome is reported to a repeated operation */
};

struct amp_admission;
/* The env's look is admission's own. */
int amp_admission_new(const struct amp_source_env *env, const struct amp_admission_parts *parts,
                      struct amp_admission **out, struct amp_error *err);
void amp_admission_free(struct amp_admission *a);
/* With the store open: takes the cursors. */
int amp_admission_open(struct amp_admission *a, struct amp_error *err);

enum amp_admitted {
    AMP_ADMIT_FAILED = -1,
    AMP_ADMIT_GO,
    AMP_ADMIT_DROP, /* it ends here: all that had to be done about it is done */
};
/* Once, when it is read, before anything is kept of it. */
enum amp_admitted amp_admission_admit(struct amp_admission *a, struct job *j,
                                      const struct amp_view *v, struct amp_error *err);
/* Also when a former run left it. What it must not do is refused (amp_route_job_refuse). */
int amp_admission_look(struct amp_admission *a, struct job *j, const struct amp_view *v,
                       struct amp_error *err);
/* The same for one that has its line only. */
int amp_admission_look_again(struct amp_admission *a, struct job *j, struct amp_error *err);
/* Records the jobs of a batch that have a number in a stream; see amp_streams_record. */
int amp_admission_record(struct amp_admission *a, struct job **batch, uint32_t *n,
                         struct amp_error *err);

/* Takes what streams and the log have, where there is room for it; renews leases. */
int amp_admission_turn(struct amp_admission *a, bool room, struct amp_error *err);
bool amp_admission_reads(const struct amp_admission *a); /* the log; the input waits */
/* Lowers *timeout_ms. */
void amp_admission_watch(const struct amp_admission *a, bool room, int *timeout_ms);
void amp_admission_measure(const struct amp_admission *a);
void amp_admission_say(const struct amp_admission *a);

/* Whether it is new work of a task, which waits while the task is suspended. */
bool amp_admission_is_work(const struct amp_view *v);

#endif
