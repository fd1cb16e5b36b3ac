/* See rollback.h. */
#include "work/aop/snapshot/rollback.h"

#include <limits.h>
#include <stdlib.h>

#include "base/codes.h"
#include "json/record.h"

static int task_check(const struct amp_session_voice *v, const struct amp_snapshot_of *of,
                      struct amp_error *err)
{
    AMP_BUF struct amp_buf mem = {.max = AMP_REC_MAX};
    struct amp_session_task t;
    int found = amp_session_task_find(v->store, amp_span_str(of->session), amp_span_str(of->task),
                                      &mem, &t, err);
    if (found <= 0)
        return found < 0 ? -1
                         : amp_fail(err, AMP_NO, unknown_ref, "session %.200s has no TASK %.200s",
                                    of->session, of->task);
    return amp_session_task_ended(t.state)
               ? 0
               : amp_fail(err, AMP_NO, task_not_ended, "the TASK %.200s is %s", of->task,
                          amp_session_task_fsm.states[t.state].name);
}

static int event_record(const struct amp_session_voice *v, const struct amp_snapshot_of *of,
                        const struct amp_buf *line, struct amp_error *err)
{
    const struct amp_session_entry e = {.type = AMP_SESSION_ENTRY_ROLLBACK_EVENT,
                                        .session = amp_span_str(of->session),
                                        .task = amp_span_str(of->task),
                                        .attempt = of->attempt,
                                        .event = AMP_SPAN("ROLLBACK_INITIATED"),
                                        .json = {line->data, line->len - 1}};
    return amp_session_entry_add(v, &e, NULL, NULL, 0, err) < 0 ? -1 : 0;
}

int amp_session_rollback(const struct amp_session_voice *v, const struct amp_snapshot_of *of,
                         struct amp_snapshot_result *result, struct amp_buf *line,
                         struct amp_error *err)
{
    struct amp_snapshot_of by = *of;
    struct amp_error why = {0};
    char state[PATH_MAX];
    *result = (struct amp_snapshot_result){0};
    if (!realpath(amp_store_dir(v->store), state))
        return amp_fail_errno(err, AMP_IOERR, "%s", amp_store_dir(v->store));
    by.state = state;
    if (task_check(v, &by, err) < 0 ||
        (!by.attempt && amp_snapshot_newest(state, by.session, by.task, &by.attempt, err) < 0))
        return -1;
    int rc = by.attempt ? amp_snapshot_restore(&by, result, &why) : 1;
    if (rc > 0)
        return amp_fail(err, AMP_NO, no_snapshot, "the TASK %.200s has no snapshot%s", of->task,
                        of->attempt ? " of this attempt" : "");
    /* Without files nothing was found out about them. */
    if (result->n > 0 && (amp_snapshot_event(&by, result, "USER", v->now_ms, line, err) < 0 ||
                          event_record(v, &by, line, err) < 0))
        return -1;
    if (rc < 0)
        *err = why;
    return rc;
}
