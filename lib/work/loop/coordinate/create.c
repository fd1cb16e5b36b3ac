/* Takes a new task while no coordinator needs to run. */
#include <fcntl.h>
#include <stdlib.h>

#include "base/codes.h"
#include "work/loop/coordinate/coordinator.h"

#define OUTPUT_MAX ((size_t)64 << 20)

static int line_take(struct amp_coordinator *c, struct amp_span line, struct amp_error *err)
{
    static const struct amp_coordinate_input from = {
        .path = "a person's command", .role = "admin", .trusted = true};
    const struct amp_check_options check = {.protected_ = c->opt->protected_};
    struct amp_said said;
    struct amp_error why;
    struct amp_view v;
    struct amp_reader *reader = amp_reader_new(NULL, err);
    int rc = reader ? amp_reader_line(reader, line, &check, &v, NULL, NULL, err) : -1;

    if (rc == 0)
        rc = amp_fail(err, AMP_INTERNAL, invalid_output, "internal: the task is invalid");
    if (rc > 0 && (rc = amp_coordinator_hears(c, &from, &v, &said, &why, err)) == 0) {
        *err = why;
        rc = -1;
    }
    if (rc > 0) {
        c->said = &said;
        rc = amp_coordinator_take(c, &v, NULL, NULL, err);
    }
    amp_reader_free(reader);
    return rc;
}

/* The lines that the coordinator would write are in its outbox, or answer a sender who reads the
 * result of this call. */
int amp_coordinate_task(struct amp_store *s, const struct amp_coordinate_options *opt,
                        struct amp_span line, struct amp_error *err)
{
    struct amp_coordinator c = {.store = s, .opt = opt, .unsent = true};
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (nowhere < 0)
        return amp_fail_errno(err, AMP_IOERR, "/dev/null");
    amp_pause_watch_feed(&c.pauses, s);
    int rc = amp_outq_open(&c.out, nowhere, true, OUTPUT_MAX, err);
    if (rc == 0 && !(c.own = amp_reader_new(NULL, err)))
        rc = -1;
    if (rc == 0)
        rc = line_take(&c, line, err);
    if (rc == 0)
        rc = amp_coordinator_commit(&c, err);
    if (rc == 0)
        rc = c.refused_tasks > 0;
    amp_coordinator_pause(&c);
    amp_outq_close(&c.out);
    amp_git_close(c.git);
    amp_reader_free(c.own);
    amp_buf_release(&c.signed_line);
    amp_pause_watch_close(&c.pauses);
    free(c.emitted);
    free(c.tasks);
    free(c.held);
    return rc;
}
