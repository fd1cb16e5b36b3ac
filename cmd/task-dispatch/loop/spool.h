/*
 * Handing tasks over to a running loop: the folder STATE/run/loop.spool has a file for each of
 * them, named by the task, with the line of task-dispatch new. The giver writes the file and waits
 * until it is gone; the loop appends the line to the coordinator's input and removes the file when
 * the task's record exists. The coordinator takes a line with the same id once, so both sides may
 * be killed and repeat what they did.
 */
#ifndef TASK_DISPATCH_LOOP_SPOOL_H
#define TASK_DISPATCH_LOOP_SPOOL_H

#include <amp/base/buf.h>

#include "task/task.h"

struct loop_spool {
    const char *state;
    int dir, watch; /* -1: not open. watch: inotify of the folder and of the tasks' files */
    struct loop_spooled {
        char id[AMP_TASK_ID_MAX];
        unsigned rounds; /* how often the coordinator ended without a record of it */
    } * v;
    size_t n, cap;
};

/* Opens the folder, which is made if needed; close it also after a failure. */
int loop_spool_open(struct loop_spool *s, const char *state, struct amp_error *err);
void loop_spool_close(struct loop_spool *s);

/* ---- the loop, which has the lock ---- */

/* Appends the lines of new files to fresh, and removes the files of recorded tasks. A file that is
 * not one of these is left alone, with a warning. */
int loop_spool_take(struct loop_spool *s, struct amp_buf *fresh, struct amp_error *err);
/* Whether the folder has a task. */
bool loop_spool_any(struct loop_spool *s);
/* After the coordinator has ended: whether a task has no record, so that it is started once more. A
 * task that has none after that was refused: its file is removed. */
bool loop_spool_again(struct loop_spool *s);

/* ---- the giver ---- */

int loop_spool_put(struct loop_spool *s, const char *id, struct amp_span line,
                   struct amp_error *err);
/* Whether the loop has not removed the file. */
bool loop_spool_has(const struct loop_spool *s, const char *id);
void loop_spool_withdraw(struct loop_spool *s, const char *id);
/* Discards the pending events. */
void loop_spool_drain(const struct loop_spool *s);

#endif
