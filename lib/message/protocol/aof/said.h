/* AOF/1: what a message says to the router of task files, and the files that are written from it.
 */
#ifndef AMP_MESSAGE_PROTOCOL_AOF_SAID_H
#define AMP_MESSAGE_PROTOCOL_AOF_SAID_H

#include <amp/protocol/protocol.h>

enum amp_aof_message {
    AMP_AOF_OTHER, /* not a message: a file, a line of the log, another protocol */
    AMP_AOF_REQUEST,
    AMP_AOF_ACCEPTED,
    AMP_AOF_REJECTED,
    AMP_AOF_STATUS,
    AMP_AOF_REPORT,
};

/* X(id, spelling): how work ended. */
#define AMP_AOF_OUTCOME_LIST(X)                                                                    \
    X(NONE, "")                                                                                    \
    X(DONE, "done")                                                                                \
    X(BLOCKED, "blocked")                                                                          \
    X(NEEDS_REVIEW, "needs_review")                                                                \
    X(PARTIAL, "partial")
enum amp_aof_outcome {
#define X(id, name) AMP_AOF_OUTCOME_##id,
    AMP_AOF_OUTCOME_LIST(X) AMP_AOF_OUTCOME_COUNT
#undef X
};
const char *amp_aof_outcome_name(enum amp_aof_outcome o);

/* Reads and checks a line as amp_reader_line does, for this protocol only. */
enum amp_aof_line {
    AMP_AOF_LINE_FAILED = -1,
    AMP_AOF_LINE_BAD,   /* it should be of the protocol; its faults were reported */
    AMP_AOF_LINE_GOOD,  /* a message, a file or a line of the log */
    AMP_AOF_LINE_OTHER, /* it does not concern the protocol */
};
enum amp_aof_line amp_aof_line_read(struct amp_reader *r, struct amp_span line, struct amp_view *v,
                                    amp_finding_fn fn, void *ctx, struct amp_error *err);

/* Absent texts are empty. Lists are those of the view. */
struct amp_aof_said {
    enum amp_aof_message what;
    enum amp_aof_outcome outcome; /* of a report, and of a run_result.json */
    struct amp_span agent;        /* agentId */
    struct amp_span status, progress, notes, reason;
    struct amp_span summary, handoff; /* references; handoff: "" if not given */
    struct amp_span parent, to;       /* of a request, in its payload */
    struct amp_spans blockers;
};
/* v is valid. mem: at least as large as the line, and it does not move while `out` is used. */
int amp_aof_said_read(const struct amp_view *v, struct amp_buf *mem, struct amp_aof_said *out,
                      struct amp_error *err);

/* Append the files of valid messages, each with a LF at its end: run_result.json of a report;
 * inputs/handoff.json and inputs/handoff.md of a request. */
int amp_aof_result_write(const struct amp_view *report, struct amp_buf *out, struct amp_error *err);
int amp_aof_handoff_write(const struct amp_view *request, struct amp_buf *out,
                          struct amp_error *err);
int amp_aof_handoff_text(const struct amp_view *request, struct amp_buf *out,
                         struct amp_error *err);

/* Appends the router's handoff.rejected to a request. */
int amp_aof_decline(const struct amp_view *request, const char *by, const char *reason,
                    int64_t now_ms, struct amp_buf *out, struct amp_error *err);

/* Appends the status.update about a task that came to a status, for people. */
struct amp_aof_asking {
    const char *task, *status;
    struct amp_span by, notes; /* its agent; empty notes are left out */
    int64_t now_ms;
};
int amp_aof_ask(const struct amp_aof_asking *a, struct amp_buf *out, struct amp_error *err);

/* run.json and run_heartbeat.json; times of 0 are left out. */
struct amp_aof_run {
    struct amp_span task, agent;
    const char *status, *reason; /* running, completed, failed; why it expired, or NULL */
    int64_t started_ms, ended_ms, expired_ms;
};
/* former: the text that this one replaces, of which other members are kept, or empty. */
int amp_aof_run_write(const struct amp_aof_run *r, struct amp_span former, struct amp_buf *out,
                      struct amp_error *err);
struct amp_aof_beat {
    struct amp_span task, agent;
    int64_t at_ms, expires_ms, count;
};
int amp_aof_beat_write(const struct amp_aof_beat *b, struct amp_buf *out, struct amp_error *err);

/* Read the text of run.json or run_heartbeat.json; texts are copied into mem. DATAERR
 * "bad_record". */
int amp_aof_run_read(struct amp_span text, struct amp_buf *mem, struct amp_aof_run *out,
                     struct amp_error *err);
int amp_aof_beat_read(struct amp_span text, struct amp_buf *mem, struct amp_aof_beat *out,
                      struct amp_error *err);

/* Appends a text on one line: its control characters become blanks. */
int amp_aof_text_add(struct amp_buf *out, const char *before, struct amp_span text,
                     struct amp_error *err);

#endif
