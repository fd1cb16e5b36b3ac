/* task-dispatch session rollback: the files of a TASK as they were before it. */
#include <amp/base/clock.h>

#include "../tasks/person.h"
#include "../tasks/tasks.h"
#include "../verbs.h"
#include "flow/session/rollback.h"
#include "session.h"
#include "json/record.h"

static int64_t attempt;

const struct amp_opt session_rollback_opts[] = {
    {0, "attempt", AMP_OPT_INT, &attempt, "N",
     .doc = "to the files before attempt N (default: the last that has a snapshot)", .min = 1,
     .max = INT32_MAX},
    AMP_OPT_END,
};

static int rollback(char **argv, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    AMP_CLEANUP(amp_snapshot_result_release) struct amp_snapshot_result r = {0};
    const struct amp_snapshot_of of = {
        .session = argv[0], .task = argv[1], .attempt = attempt, .stop = &amp_stop};
    struct amp_session_voice v = {NULL, amp_cli_name(), amp_now_ms()};
    struct tasks_person person = {0};
    struct amp_error late;
    struct amp_store *s = NULL;
    int rc = -1;

    amp_signals_install();
    if (tasks_person_open("roll a TASK back", &person, err) == 0 &&
        session_state_open(&s, err) == 0) {
        v.store = s;
        rc = amp_session_rollback(&v, &of, &r, &line, err);
        if (line.len > 0 &&
            (amp_store_sync(s, &late) < 0 || amp_out(amp_buf_span(&line), &late) < 0)) {
            *err = late;
            rc = -1;
        }
        if (rc == 0)
            amp_note("%s: %zu expected outputs are as before (digest %s)", argv[1], r.n, r.digest);
    }
    amp_store_close(s);
    tasks_person_close(&person);
    return rc;
}

int session_rollback(int argc, char **argv)
{
    struct amp_error err;

    if (argc != 2)
        amp_die_usage("expected SESSION TASK");
    return rollback(argv, &err) < 0 ? amp_complain(&err) : AMP_OK;
}
