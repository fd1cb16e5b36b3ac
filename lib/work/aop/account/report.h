/*
 * The final report of a session (AOP §10): its delegation graph, TASKs, costs and events, computed
 * from the records. Amounts of money are added as integers (millionths of a dollar), so the sums of
 * the tables are exact.
 */
#ifndef AMP_WORK_AOP_ACCOUNT_REPORT_H
#define AMP_WORK_AOP_ACCOUNT_REPORT_H

#include "work/aop/entry.h"

/* Totals of a session. */
struct amp_session_summary {
    struct amp_session x; /* texts in mem of the read */
    int64_t tasks, states[AMP_SESSION_TASK_STATE_COUNT];
    int64_t depth; /* of the delegation; TASKs refused for their depth do not count */
    struct amp_session_usage used;
    int64_t first_ms, last_ms; /* the first begin, the last end; 0: none */
};
/* TASKs that have not ended. */
int64_t amp_session_open_tasks(const struct amp_session_summary *s);
/* 1; 0: there is no such session. */
int amp_session_summarise(struct amp_store *s, struct amp_span session, struct amp_buf *mem,
                          struct amp_session_summary *out, struct amp_error *err);

/* The TASKs of a session, in the order of their arrival. NO unknown_ref. */
int amp_session_each_arrived(struct amp_store *s, struct amp_span session, amp_session_task_fn fn,
                             void *ctx, struct amp_error *err);

/* Appends the EVENT SESSION_FINAL_REPORT, one line with LF. A session with TASKs that have not
 * ended is refused (NO session_open), unless `interim`; then extensions.x_interim is true, and
 * x_open_tasks has their ids. NO unknown_ref. */
int amp_session_report_line(struct amp_store *s, struct amp_span session, bool interim,
                            int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* Makes and records the report of a session whose TASKs have ended: it is REPORTED, and the audit
 * trail has a SESSION_SUMMARY. */
int amp_session_report(const struct amp_session_voice *v, struct amp_span session,
                       struct amp_buf *out, struct amp_error *err);

/* Appends the session as one JSON object (schemas/records/session.json); full: with its TASKs. */
int amp_session_write(struct amp_store *s, const struct amp_session_summary *sum, bool full,
                      struct amp_buf *out, struct amp_error *err);

#endif
