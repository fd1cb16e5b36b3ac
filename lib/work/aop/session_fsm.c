/* The machines of a session of AOP and of a TASK in it (AOP §5, §10). */
#include "work/aop/machine.h"

#define ROW(P, f, e, t, ...)                                                                       \
    {                                                                                              \
        .from = P##_##f, .event = P##_EV_##e, .to = P##_##t, __VA_ARGS__                           \
    }
#define ALL(f) .if_all = (f)

#define S(f, e, t, do_, ...) ROW(AMP_SESSION, f, e, t, .effects = AMP_SESSION_DO_##do_, __VA_ARGS__)

static const struct amp_fsm_row session_rows[] = {
    S(OPEN, JOIN, OPEN, ORDER),
    S(OPEN, PLACE, OPEN, PLACE),
    S(OPEN, RISK, OPEN, MARK),
    S(OPEN, ABORT, ABORTED, STOP),
    S(OPEN, REPORT, REPORTED, SUM),
    S(OPEN, STAY, OPEN, KEEP),

    S(ABORTED, JOIN, ABORTED, ORDER),
    S(ABORTED, PLACE, ABORTED, PLACE),
    S(ABORTED, REPORT, REPORTED, SUM),
    S(ABORTED, STAY, ABORTED, KEEP),

    /* A TASK, or a further attempt at one, may arrive after the report; another report follows. */
    S(REPORTED, JOIN, ABORTED, ORDER, ALL(AMP_SESSION_IF_ABORTED)),
    S(REPORTED, JOIN, OPEN, ORDER),
};

const struct amp_fsm amp_session_fsm = {
    .name = "session",
    .source = "AOP §10",
    .doc = "a session of TASKs",
    AMP_FSM_LISTS(AMP_SESSION),
    .initial = AMP_SESSION_OPEN,
    .rows = session_rows,
    .n_rows = sizeof session_rows / sizeof *session_rows,
};

#define D(x)                 AMP_SESSION_TASK_DO_##x
#define T(f, e, t, do_, ...) ROW(AMP_SESSION_TASK, f, e, t, .effects = (do_), __VA_ARGS__)
/* A further attempt at a TASK that has ended. */
#define LATER(f) T(f, ENTER, PENDING, D(ENTER), ALL(AMP_SESSION_TASK_IF_LATER), .extra = true)

static const struct amp_fsm_row task_rows[] = {
    T(PENDING, ENTER, PENDING, D(ENTER)),
    T(PENDING, BEGIN, IN_PROGRESS, D(START) | D(TRY)),
    T(PENDING, RANK, PENDING, D(RANK)),
    T(PENDING, FAIL, FAILED, D(END)),
    T(PENDING, ABORT, ABORTED, D(END)),
    T(PENDING, SKIP, SKIPPED, D(END)),

    /* Another model, or the same one after the end of its process. */
    T(IN_PROGRESS, BEGIN, IN_PROGRESS, D(CLOSE) | D(TRY)),
    T(IN_PROGRESS, SPEND, IN_PROGRESS, D(SPEND)),
    T(IN_PROGRESS, RANK, IN_PROGRESS, D(RANK)),
    T(IN_PROGRESS, RELEASE, PENDING, D(CLOSE)),
    T(IN_PROGRESS, COMPLETE, COMPLETED, D(CLOSE) | D(END)),
    T(IN_PROGRESS, FAIL, FAILED, D(CLOSE) | D(END)),
    T(IN_PROGRESS, ABORT, ABORTED, D(CLOSE) | D(END)),

    LATER(COMPLETED),
    LATER(FAILED),
    LATER(ABORTED),
    LATER(SKIPPED),
};

#define ENDS(s) 1u << AMP_SESSION_TASK_##s

const struct amp_fsm amp_session_task_fsm = {
    .name = "session_task",
    .source = "AOP §5",
    .doc = "a TASK of a session",
    AMP_FSM_LISTS(AMP_SESSION_TASK),
    .initial = AMP_SESSION_TASK_PENDING,
    .terminal = ENDS(COMPLETED) | ENDS(FAILED) | ENDS(ABORTED) | ENDS(SKIPPED),
    .rows = task_rows,
    .n_rows = sizeof task_rows / sizeof *task_rows,
};
