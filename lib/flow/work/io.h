/* A worker's input and output. Private to the worker. */
#ifndef AMP_FLOW_WORK_IO_H
#define AMP_FLOW_WORK_IO_H

#include <amp/base/pipe.h>

#include "flow/outbox.h"
#include "flow/work/worker.h"

#define AMP_WORKER_PENDING (8u << 20) /* bytes of output that may wait */

struct amp_worker_io {
    struct amp_input in;
    struct amp_outq out;
    bool in_open, out_open, ended, broken, dirty;
    struct amp_outbox box;
    struct amp_buf line;
};

int amp_worker_io_open(struct amp_worker *w, struct amp_error *err);
/* Writes what is left (not when interrupted) and closes both ends. */
void amp_worker_io_close(struct amp_worker *w);
/* A line that is not durable: a message passed on, an acknowledgement repeated. */
int amp_worker_send(struct amp_worker *w, struct amp_span line, struct amp_error *err);

/* Whether the input is at its end, or the output's reader is gone. */
bool amp_worker_ended(const struct amp_worker *w);
/* Handles the lines that were read. */
int amp_worker_take_lines(struct amp_worker *w, struct amp_error *err);

#endif
