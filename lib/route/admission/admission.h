/* Looking at a message: the steps, and which rules hold. */
#ifndef AMP_ROUTE_STEPS_H
#define AMP_ROUTE_STEPS_H

#include "route/job.h"

/* steps.c */
/* The code of a message whose time has passed. */
#define EXPIRED(j) ((j)->protocol == AMP_PROTO_RTP ? "expired" : "ttl_expired")
/* What a step says: STEP_GO, STEP_DROP (an admit step only: it ends here, and the step has done
 * what there was to do about it), or -1 with err, a failure of ours. */
enum { STEP_GO = 0, STEP_DROP = 1 };
typedef int step_fn(struct router *r, struct job *j, const struct amp_view *v,
                    struct amp_error *err);
step_fn amp_admission_admit, amp_admission_look;

/* Whether it is new work of a task, which waits while the task is suspended. */
bool amp_admission_is_work(const struct amp_view *v);

/* router/decide.c */
/* Native rules at once; what only jq can say stays open. */
void amp_match_view(struct router *r, struct job *j, const struct amp_view *v);
/* Takes the line of undecided jobs on as far as it goes, and dispatches decided ones in order. */
void amp_match_step(struct router *r);
void amp_match_add(struct router *r, struct job *j);
void amp_match_add_all(struct router *r, struct job *j); /* and those that follow it */

#endif
