/* stdout for records: complete lines, collected up to 64 KiB; a FIFO is locked. */
#include "cli/cli.h"

#include <amp/base/pipe.h>

#define GATHER 65536
#define DIRECT 16384 /* larger pieces are not copied */
/* A line may have more than 32 MiB. */
#define PENDING_MAX ((size_t)128 << 20)

static struct amp_outq queue = {.fd = -1};
static bool opened, failed;
static struct amp_error first_error;

static int out_fail(struct amp_error *err)
{
    if (!failed)
        first_error = *err;
    failed = true;
    return -1;
}

static int out_drain(struct amp_error *err)
{
    if (failed) {
        *err = first_error;
        return -1;
    }
    if (amp_outq_drain(&queue, -1, &amp_stop, err) == 0)
        return 0;
    return out_fail(err);
}

int amp_out(struct amp_span bytes, struct amp_error *err)
{
    struct amp_error local;
    if (!err)
        err = &local;
    if (failed) {
        *err = first_error;
        return -1;
    }
    if (!opened) {
        if (amp_outq_open(&queue, 1, false, PENDING_MAX, err))
            return out_fail(err);
        opened = true;
    }
    if (bytes.n >= DIRECT) {
        if (out_drain(err))
            return -1;
        return amp_outq_through(&queue, bytes, &amp_stop, err) ? out_fail(err) : 0;
    }
    if (amp_outq_add(&queue, bytes, err))
        return out_fail(err);
    return amp_outq_pending(&queue) >= GATHER ? out_drain(err) : 0;
}

int amp_out_flush(struct amp_error *err)
{
    struct amp_error local;
    if (!opened && !failed)
        return 0;
    return out_drain(err ? err : &local);
}
