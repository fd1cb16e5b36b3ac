/*
 * The control FIFO of an attempt: how an agent without a state directory talks to its worker. It
 * writes one JSON object a line (schemas/agent/control.json) to the FIFO that AMP_CONTROL names:
 * progress, heartbeat, safe, hold, release and signal (SW4RM §7.2), waiting and running (§8.1),
 * what it used, a usage limit, the name of its session, a question for a person and its withdrawal,
 * and the requests for its own task and inbox; in the TASK of a session (AOP) checkpoints, TASKs
 * that it delegates, and errors; and `refused`, from a tool that refused the agent
 * what only people may do (work/git/person.h). Answers are files beside the FIFO.
 *
 * Everything that comes out of the FIFO is untrusted. Reading never blocks and takes at most
 * AMP_CONTROL_TURN bytes at a time; a line that is too long, malformed, or one too many is refused
 * with a code and counted, and its bytes are dropped.
 */
#ifndef AMP_WORK_AGENT_CONTRACT_CONTROL_H
#define AMP_WORK_AGENT_CONTRACT_CONTROL_H

#include "work/agent/contract/contract.h"

#define AMP_CONTROL_LINE_MAX 16384   /* bytes of a line; past it: line_too_long */
#define AMP_CONTROL_TURN     65536   /* bytes that are read at a time */
#define AMP_CONTROL_BURST    100     /* lines at once; past it: rate_limited */
#define AMP_CONTROL_RATE     20      /* lines a second after that */
#define AMP_CONTROL_LINES    10000   /* accepted lines of an attempt; past it: control_limit */
#define AMP_CONTROL_HOLD_MS  600000  /* the longest hold */
#define AMP_CONTROL_PAUSE_MS 100     /* between two reads after a line was refused for its rate */
#define AMP_CONTROL_ANSWER   1048576 /* bytes of an answer; past it: buffer_full */

/* X(NAME, word) */
#define AMP_CONTROL_LIST(X)                                                                        \
    X(PROGRESS, "progress")                                                                        \
    X(HEARTBEAT, "heartbeat")                                                                      \
    X(SAFE, "safe")                                                                                \
    X(HOLD, "hold")                                                                                \
    X(RELEASE, "release")                                                                          \
    X(QUESTION, "question")                                                                        \
    X(WITHDRAW, "withdraw")                                                                        \
    X(TASK, "task")                                                                                \
    X(INBOX, "inbox")                                                                              \
    X(REFUSED, "refused")                                                                          \
    X(SIGNAL, "signal")                                                                            \
    X(WAITING, "waiting")                                                                          \
    X(RUNNING, "running")                                                                          \
    X(USAGE, "usage")                                                                              \
    X(LIMIT, "limit")                                                                              \
    X(SESSION, "session")                                                                          \
    X(CHECKPOINT, "checkpoint")                                                                    \
    X(DELEGATE, "delegate")                                                                        \
    X(ERROR, "error")
enum amp_control_kind {
#define X(name, word) AMP_CONTROL_##name,
    AMP_CONTROL_LIST(X)
#undef X
};

struct amp_control_line {
    enum amp_control_kind kind;
    const char *id;   /* "" if it has none */
    const json_t *in; /* valid by its schema */
};

struct amp_control {
    int fd;  /* the FIFO; -1: closed */
    int dir; /* the attempt's directory */
    struct amp_buf line;
    bool skipping; /* the rest of a line that is too long */
    int64_t tokens, filled_ms, next_ms;
    int64_t accepted, refused;
};

/* Makes the FIFO (0600) in the attempt's directory and opens it without waiting. The FIFO that this
 * function made is read, whatever the agent puts in its place. CANTCREAT. */
int amp_control_open(struct amp_control *c, const struct amp_attempt *a, struct amp_error *err);
void amp_control_close(struct amp_control *c); /* removes the FIFO */
/* Returns the milliseconds until the FIFO may be read again, for a poll; 0: now. now_ms is
 * monotonic. */
int64_t amp_control_wait(const struct amp_control *c, int64_t now_ms);

struct amp_control_calls {
    /* A valid line. -1: a failure of the worker. */
    int (*take)(void *ctx, const struct amp_control_line *l, struct amp_error *err);
    /* A refused line: invalid_json, schema_violation, line_too_long, rate_limited, control_limit.
     * line is empty if it was too long. */
    int (*refuse)(void *ctx, struct amp_span line, const char *id, const char *code,
                  const char *why, struct amp_error *err);
    void *ctx;
};
/* Reads what has come. */
int amp_control_read(struct amp_control *c, const struct amp_control_calls *calls, int64_t now_ms,
                     struct amp_error *err);

/* Writes answer-ID.json atomically: {"id":…,"ok":true} and the members of `more` (may be NULL). An
 * unwritable directory is the agent's own affair: 1, and nothing is written. */
int amp_control_answer(struct amp_control *c, const char *id, json_t *more, struct amp_error *err);
int amp_control_refuse(struct amp_control *c, const char *id, const char *code, const char *why,
                       struct amp_error *err);

#endif
