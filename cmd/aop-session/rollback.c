/* aop-session rollback: the files of a TASK as they were before it. */
#include <amp/base/clock.h>

#include "shared/work/person.h"
#include "work/aop/snapshot/rollback.h"
#include "json/record.h"

static int64_t attempt;

static const struct amp_opt session_rollback_opts[] = {
    {0, "attempt", AMP_OPT_INT, &attempt, "N",
     .doc = "to the files before attempt N (default: the last that has a snapshot)", .min = 1,
     .max = INT32_MAX},
    AMP_OPT_END,
};

static int session_rollback(struct amp_command *c, struct amp_error *err)
{
    AMP_BUF struct amp_buf line = {.max = AMP_REC_MAX};
    AMP_CLEANUP(amp_snapshot_result_release) struct amp_snapshot_result r = {0};
    const struct amp_snapshot_of of = {
        .session = c->argv[0], .task = c->argv[1], .attempt = attempt, .stop = &amp_stop};
    struct amp_session_voice v = {c->store, amp_cli_name(), amp_now_ms()};
    struct amp_error late;

    int rc = amp_session_rollback(&v, &of, &r, &line, err);
    if (line.len > 0 &&
        (amp_store_sync(c->store, &late) < 0 || amp_out(amp_buf_span(&line), &late) < 0)) {
        *err = late;
        rc = -1;
    }
    if (rc == 0)
        amp_note("%s: %zu expected outputs are as before (digest %s)", c->argv[1], r.n, r.digest);
    return rc;
}

const struct amp_verb session_rollback_verbs[] = {
    {"rollback", "SESSION TASK", "put the files of a TASK back", session_rollback_opts,
     session_rollback, .opens = AMP_OPENS_FOUND | AMP_TOOL_OPENS_PERSON, .act = "roll a TASK back",
     .signals = true, .least = 2, .most = 2, .usage = "expected SESSION TASK", .finds_state = true,
     .values = "session", .who = AMP_WHO_PERSON},
    {0},
};
