/*
 * Checks of the work on an AOP TASK (AOP §2.2, §5): validation commands with the four expectations,
 * artifacts that must exist, and the results of checkpoints as a RESPONSE has them.
 *
 * The author of a TASK is trusted no more than its agent. No shell reads a command (base/process:
 * amp_shell_split), the caller's function runs it, confined and with a limit of time, and a path
 * outside of the workspace is never looked at.
 */
#ifndef AMP_WORK_AOP_SESSION_CHECK_H
#define AMP_WORK_AOP_SESSION_CHECK_H

#include <jansson.h>

#include "work/attempt/walls/kept.h"

/* The place of the work, and how commands are run in it. */
struct amp_checks {
    const char *root; /* the TASK's workspace_root */
    const char *dir;  /* the directory that stands for it: absolute, without links */
    int fd;           /* of this directory */
    int64_t limit_ms; /* of a command */
    size_t clip;      /* bytes of a validation_output */
    /* Runs a command and fills its end, streams and trouble. 0; 1: the work is being stopped, there
     * is no result; -1: failure of the worker. */
    int (*run)(void *ctx, struct amp_walled_check *c, struct amp_error *err);
    void *ctx;
};

/* Whether every validation.command of a TASK can be carried out, before any work on it. DATAERR
 * bad_command, with the place in the TASK and the reason. */
int amp_checks_ready(const json_t *task, struct amp_error *err);

/* A path of the TASK as a path below the workspace: relative to it, "." for itself. NO
 * E_PERMISSION_DENIED: it is outside, or malformed. */
int amp_checks_path(const char *root, const char *path, struct amp_buf *out, struct amp_error *err);

#define AMP_CHECKS_WHY 440
/* The outcome of one validation. */
struct amp_checked {
    bool passed;
    char why[AMP_CHECKS_WHY]; /* for people: "grep -n x f: exit 1, expected 0 (EXIT_CODE_0)" */
    struct amp_buf output;    /* of the command, UTF-8, at most `clip` bytes */
};
void amp_checked_release(struct amp_checked *c);

/* Carries out a validation: {"command","expects"}. EXIT_CODE_0: status 0. MATCH_FOUND: status 0 and
 * something on standard output. NO_MATCH: status 0 or 1, and nothing there. FILE_EXISTS: one word
 * is a path of the workspace that must exist (C:\a\b needs no quotes); a longer command must end
 * with status 0. 0, 1, -1 as amp_checks.run. */
int amp_checks_validate(const struct amp_checks *x, const json_t *validation,
                        struct amp_checked *out, struct amp_error *err);

/* Checks one checkpoint of the TASK: its artifacts (a path through a symbolic link is none; type
 * FILE: a regular file) with their own validations, then its validation; without any of them, what
 * the agent claims (`claim`, its entry of checkpoint_results, or NULL), else SKIP. *result gets the
 * entry of the RESPONSE's checkpoint_results, with checkpoint_id, status, validation_output,
 * evidence and the agent's notes; `why` the first failure, or "". 0, 1, -1 as amp_checks.run. */
int amp_checks_checkpoint(const struct amp_checks *x, const json_t *checkpoint, const json_t *claim,
                          json_t **result, char why[AMP_CHECKS_WHY], struct amp_error *err);

/* Checks expected_outputs[].validation of a TASK. Failures are appended to `errors` as texts. 0, 1,
 * -1 as amp_checks.run. */
struct amp_checks_tally {
    unsigned passed, failed;
};
int amp_checks_outputs(const struct amp_checks *x, const json_t *task, json_t *errors,
                       struct amp_checks_tally *out, struct amp_error *err);

/* The bytes of a validation_output in a RESPONSE with the checkpoints of this TASK, so that all of
 * them together leave room for the rest of it (AOP §4: 500 KB). */
size_t amp_checks_clip(const json_t *task);

#endif
