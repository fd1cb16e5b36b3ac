/*
 * A command that runs once for each message: the message is its standard input, and its exit status
 * is the outcome. At its time limit the command gets TERM, and after the grace KILL.
 */
#ifndef AMP_BASE_PROCESS_RUNNER_H
#define AMP_BASE_PROCESS_RUNNER_H

#include <amp/base/child.h>

struct amp_runner {
    struct amp_child child;
    int64_t limit_ms, grace_ms;
    int64_t until_ms; /* when the next signal is due, or INT64_MAX */
    bool timed_out, stopped;
    bool hurried; /* its descendants are ended with it */
};

/* Supervises a child. limit_ms < 0: it has no time limit. */
struct amp_runner amp_runner_of(const struct amp_child *c, int64_t limit_ms, int64_t grace_ms);
/* Starts the command of spec; fd_in is ignored: the command reads the message from a file in
 * memory. Fails like amp_child_start. */
int amp_runner_start(struct amp_runner *r, const struct amp_child_spec *spec,
                     struct amp_span message, int64_t limit_ms, int64_t grace_ms,
                     struct amp_error *err);

/* Sends the signal that is due. 1: the command ended (end is filled); 0: it runs; -1: failed. Call
 * it when the child's pidfd is readable and when the time of amp_runner_wait has passed. */
int amp_runner_look(struct amp_runner *r, struct amp_child_end *end, struct amp_error *err);
/* Milliseconds until the next signal is due; -1: none is due. */
int64_t amp_runner_wait(const struct amp_runner *r);
/* Ends the command early; amp_runner_look sends the signals. */
void amp_runner_stop(struct amp_runner *r);
/* Also ends all descendants that are found, and sends KILL after at most grace_ms from now, even if
 * the command is being ended. */
void amp_runner_hurry(struct amp_runner *r, int64_t grace_ms);
/* Waits for the end of the command; stops it when *stop (may be NULL) becomes non-zero. */
int amp_runner_finish(struct amp_runner *r, volatile const int *stop, struct amp_child_end *end,
                      struct amp_error *err);

enum amp_run_verdict {
    AMP_RUN_DONE,
    AMP_RUN_AGAIN,   /* temporary failure: TIMEDOUT command_timeout, UNAVAILABLE command_failed */
    AMP_RUN_REFUSED, /* the message is refused: NO command_refused */
};
/* The outcome of a command's end, by amp-exit(7); why is filled unless it is DONE. */
enum amp_run_verdict amp_runner_verdict(const struct amp_runner *r, const struct amp_child_end *end,
                                        const char *name, struct amp_error *why);

#endif
