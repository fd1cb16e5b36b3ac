/* A rollback for a person: the snapshot of a TASK that has ended, and its EVENT in the session. */
#ifndef AMP_WORK_AOP_SNAPSHOT_ROLLBACK_H
#define AMP_WORK_AOP_SNAPSHOT_ROLLBACK_H

#include "work/aop/entry.h"
#include "work/aop/snapshot/snapshot.h"

/* of: git (or NULL), session, task, attempt (0: the newest that has a snapshot), stop; the rest is
 * found. The state directory is the store's. *line gets ROLLBACK_INITIATED with LF, also for a
 * rollback that failed; result is released by the caller. The record is in the store; the caller
 * syncs it.
 *   NO unknown_ref        no such TASK
 *   NO task_not_ended     it waits, or an agent works on it
 *   NO no_snapshot        the TASK, or this attempt, has none
 *   NO E_ROLLBACK_FAILED  nothing was changed */
int amp_session_rollback(const struct amp_session_voice *v, const struct amp_snapshot_of *of,
                         struct amp_snapshot_result *result, struct amp_buf *line,
                         struct amp_error *err);

#endif
