/*
 * Tool calls in what coding agents record: the files of their sessions, their streams of JSON, and
 * recorded events of hooks. Each call becomes the event that the agent would give to its hook. A
 * table has one row per form (recorded.c); hitl-prompt-hook(1) lists them. Formats as claude-code
 * 2.1.331, codex 0.169.0, gemini-cli 0.61.0, qwen-code 0.24.4 and opencode 1.18.33 write them.
 */
#ifndef AMP_WORK_GIT_CALL_EVENT_RECORDED_H
#define AMP_WORK_GIT_CALL_EVENT_RECORDED_H

#include <limits.h>

#include "work/git/call/event/event.h"

/* A recording that is read line by line; its memory is that of a line. */
struct amp_recording {
    enum amp_call_cli cli;    /* whose it is, or AMP_CLI_NONE: recognised from the lines */
    enum amp_call_cli stream; /* private, as are all below: whose Claude Code's form is */
    char cwd[PATH_MAX];       /* of the last line that names one */
    char message[128];        /* whose calls were taken so far; some are written again with more */
    size_t n_taken;
    struct amp_tape tape;
    struct amp_buf event, text;
};
/* cli: see the member. */
void amp_recording_init(struct amp_recording *r, enum amp_call_cli cli);
void amp_recording_release(struct amp_recording *r);

enum amp_recording_line {
    AMP_RECORDING_FAILED = -1,
    AMP_RECORDING_OTHER,   /* a line of a recording, without a call */
    AMP_RECORDING_CALLS,   /* fn got its calls */
    AMP_RECORDING_UNKNOWN, /* not JSON, or an object of no known form; also a call without a name or
                             an input, behind those that fn got */
};

/* Gets an event for amp_call_event_read with `expected`; it is valid during the call. */
typedef int (*amp_recording_fn)(void *ctx, struct amp_span event, enum amp_call_cli expected,
                                struct amp_error *err);
/* A line may also be a list of such objects. FAILED: fn failed, or no memory. */
enum amp_recording_line amp_recording_line(struct amp_recording *r, struct amp_span line,
                                           amp_recording_fn fn, void *ctx, struct amp_error *err);

#endif
