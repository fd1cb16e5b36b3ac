/* fifo:PATH — a FIFO, opened when a reader comes and again when another one does. */
#include "port/private.h"

#include <poll.h>
#include <string.h>
#include <sys/stat.h>

#define RETRY_MS 10

static int fifo_connect(struct amp_port *p, int *fd, struct amp_error *err)
{
    struct stat st;
    struct amp_error e = {0};
    if (stat(p->arg, &st) < 0)
        return amp_fail_errno(err, AMP_CANTCREAT, "cannot open the port %s", p->spec);
    if (!S_ISFIFO(st.st_mode))
        return amp_fail(err, AMP_CANTCREAT, "not_a_fifo", "%s is not a FIFO (make one with mkfifo)",
                        p->arg);
    if (amp_output_open(p->arg, 0, -1, NULL, fd, &e) == 0)
        return 1;
    if (strcmp(e.code, "no_reader") == 0)
        return 0;
    if (err)
        *err = e;
    return -1;
}

static const struct amp_stream stream = {
    .connect = fifo_connect, .retry_ms = RETRY_MS, .early = true, .gone = POLLERR};

const struct amp_port_ops amp_port_fifo = {
    .word = "fifo", .takes_arg = true, .traits = AMP_PORT_PIPED, .stream = &stream, AMP_STREAM_OPS};
