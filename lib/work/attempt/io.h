/* A worker's input and output. For the files of work/ and decide/. */
#ifndef AMP_WORK_ATTEMPT_IO_H
#define AMP_WORK_ATTEMPT_IO_H

#include <amp/base/pipe.h>

#include "message/delivery/outbox.h"
#include "work/attempt/worker.h"

#define AMP_WORKER_PENDING (8u << 20) /* limit of pending output, in bytes */

struct amp_worker_io {
    struct amp_input in;
    struct amp_outq out;
    bool in_open, out_open, ended, broken, dirty;
    bool muted; /* another process has the lock of the name and emits the outbox */
    bool held;  /* nothing is written for now, because a person types on the same terminal */
    struct amp_outbox box;
    struct amp_buf line;
};

int amp_worker_io_open(struct amp_worker *w, struct amp_error *err);
/* Writes the pending output (not when interrupted) and closes input and output. */
void amp_worker_io_close(struct amp_worker *w);
/* Sends an own line that is not durable, such as a repeated acknowledgement, signed. */
int amp_worker_send(struct amp_worker *w, struct amp_span line, struct amp_error *err);
/* Sends the line of another sender, unsigned. */
int amp_worker_pass(struct amp_worker *w, struct amp_span line, struct amp_error *err);

/* Looks whether the current task or the agent is suspended: sets halted and paused. */
int amp_worker_look(struct amp_worker *w, struct amp_error *err);

/* Acknowledges the message of a job that was submitted by an input, once. */
int amp_worker_read(struct amp_worker *w, struct amp_item *job, const struct amp_view *v,
                    struct amp_error *err);
/* Handles the lines that were read. */
int amp_worker_take_lines(struct amp_worker *w, struct amp_error *err);

#endif
