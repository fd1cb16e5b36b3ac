/*
 * Composes the EVENTs of AOP (§6, §7, §8, §10), each as one line with LF that is valid by
 * schemas/aop. VERSION_FALLBACK answers a line that is not valid: amp_aop_refuse. On failure the
 * buffer is unchanged. An empty text is left out where the contract allows it.
 */
#ifndef AMP_MESSAGE_PROTOCOL_AOP_EVENT_H
#define AMP_MESSAGE_PROTOCOL_AOP_EVENT_H

#include <amp/json/writer.h>

/* The subject of an event, and its time. */
struct amp_aop_about {
    struct amp_span session;
    struct amp_span task; /* not of SESSION_FINAL_REPORT */
    int64_t now_ms;
};

/* Begins an event, and ends it with LF. */
void amp_aop_event_open(struct amp_jw *w, const char *event, const struct amp_aop_about *about,
                        struct amp_buf *out);
int amp_aop_event_close(struct amp_jw *w, struct amp_error *err);

/* §6: a sign of life, or progress. NO bad_value: the percentage is not in [0, 100], or the time is
 * negative. */
struct amp_aop_progress {
    struct amp_span agent;
    double percentage;
    struct amp_span phase, checkpoint; /* empty: left out */
    struct amp_span message;           /* PROGRESS_UPDATE; empty: left out */
    int64_t eta_seconds;               /* PROGRESS_UPDATE; -1: unknown, left out */
};
int amp_aop_heartbeat(const struct amp_aop_about *about, const struct amp_aop_progress *p,
                      struct amp_buf *out, struct amp_error *err);
int amp_aop_progress_update(const struct amp_aop_about *about, const struct amp_aop_progress *p,
                            struct amp_buf *out, struct amp_error *err);

/* §8. Priorities: LOW, NORMAL, HIGH, CRITICAL; NO bad_value: another one. */
struct amp_aop_escalation {
    struct amp_span old_priority, new_priority;
    struct amp_span reason, by;
};
int amp_aop_priority_escalation(const struct amp_aop_about *about,
                                const struct amp_aop_escalation *e, struct amp_buf *out,
                                struct amp_error *err);

/* §7. Paths are those of the TASK. status: SUCCESS, or FAILED. */
struct amp_aop_rolled_back {
    struct amp_span path, restored_from, status;
    struct amp_span code; /* of a failure, as extensions.x_error_code; empty: none */
};
int amp_aop_rollback_initiated(const struct amp_aop_about *about, struct amp_span trigger,
                               const struct amp_aop_rolled_back *files, size_t n,
                               struct amp_buf *out, struct amp_error *err);

/* §10. The members are JSON objects or arrays, written as they are; empty: left out. */
struct amp_aop_final_report {
    struct amp_span cost_summary;
    struct amp_span delegation_graph, tasks, events;
    struct amp_span storage_path; /* audit_trail.storage_path; a text */
    struct amp_span extensions;   /* its keys start with x_ */
};
int amp_aop_session_final_report(const struct amp_aop_about *about,
                                 const struct amp_aop_final_report *r, struct amp_buf *out,
                                 struct amp_error *err);

#endif
