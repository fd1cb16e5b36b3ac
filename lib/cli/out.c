/* stdout for records: whole lines, gathered to 64 KiB, locked where it is a FIFO. */
#include "cli/cli.h"

#include <amp/base/pipe.h>

#define GATHER 65536
#define DIRECT 16384 /* so much at once is not copied */
/* One line may be 32 MiB and more with what is wrapped around it. */
#define PENDING_MAX ((size_t)128 << 20)

static struct amp_outq queue = {.fd = -1};
static bool opened, failed;
static struct amp_error first_error;

static int fail(struct amp_error *err)
{
    if (!failed)
        first_error = *err;
    failed = true;
    return -1;
}

static int drain(struct amp_error *err)
{
    if (failed) {
        *err = first_error;
        return -1;
    }
    if (amp_outq_drain(&queue, -1, &amp_stop, err) == 0)
        return 0;
    return fail(err);
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
            return fail(err);
        opened = true;
    }
    if (bytes.n >= DIRECT) {
        if (drain(err))
            return -1;
        return amp_outq_through(&queue, bytes, &amp_stop, err) ? fail(err) : 0;
    }
    if (amp_outq_add(&queue, bytes, err))
        return fail(err);
    return amp_outq_pending(&queue) >= GATHER ? drain(err) : 0;
}

int amp_out_flush(struct amp_error *err)
{
    struct amp_error local;
    if (!opened && !failed)
        return 0;
    return drain(err ? err : &local);
}
