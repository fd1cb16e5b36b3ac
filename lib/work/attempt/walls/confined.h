/*
 * The walls around one attempt (work/confine/confine.h): the agent's private git directory, the
 * paths that it gets, the proxy to the network, and what is taken over afterwards. For the files of
 * work/.
 */
#ifndef AMP_WORK_ATTEMPT_WALLS_CONFINED_H
#define AMP_WORK_ATTEMPT_WALLS_CONFINED_H

#include "work/attempt/assignment.h"

/* Whether attempts of this worker are confined at all. */
static inline bool amp_worker_confines(const struct amp_worker *w)
{
    return w->opt->confine && w->opt->confine->demand != AMP_CONFINE_OFF;
}
/* Whether an attempt can have written to the repository: not if its files were confined and the
 * policy lets it write nowhere else. */
bool amp_worker_reaches_repository(const struct amp_worker *w);

/* Records in the error log, once for a worker, what is enforced: confined or not_confined. */
int amp_confined_record(struct amp_worker *w, struct amp_error *err);

/* The worker's preparation of worktrees: the command runs as confined as the agent, but
 * without git, and the worker goes on reading and writing meanwhile. */
struct amp_prepare amp_confined_prepare_of(struct amp_worker *w);

/* Runs a command that checks the work of an attempt, in its place, as confined as the attempt's
 * command and with the access of its message, but without its control FIFO and with .git read-only.
 * Whether it was ended because the work is being stopped; if not, it ended by itself or could not
 * be started. */
struct amp_walled_check;
int amp_confined_check(struct amp_worker *w, const struct amp_assignment *k,
                       struct amp_walled_check *c, struct amp_error *err);
/* The directory of the adapters; false: they are not installed. */
bool amp_confined_helpers(char out[PATH_MAX]);
/* HOME of the worker, or NULL. */
const char *amp_confined_home(const struct amp_worker *w);

/* Makes the quarantine and the private directory of HOME; before the environment is composed. */
int amp_confined_prepare(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);
/* Starts the agent's command, confined or not. */
int amp_confined_start(struct amp_worker *w, struct amp_assignment *k,
                       const struct amp_child_spec *spec, struct amp_child *child,
                       struct amp_error *err);
/* After the attempt: ends the proxy, bounds AMP_KEPT_DIR, and, for a worker that answers with a
 * branch, takes the branch over. A refusal is no failure of this function: k->taking.error has it.
 */
int amp_confined_finish(struct amp_worker *w, struct amp_assignment *k, struct amp_error *err);

/* The level as an entry of a work log or record: {"level":"full",…}. */
int amp_confined_text(const struct amp_worker *w, struct amp_buf *out, struct amp_error *err);
/* "confinement: " and the same, with a NUL: for the record of the attempt. */
int amp_confined_note(const struct amp_worker *w, struct amp_buf *out, struct amp_error *err);

#endif
