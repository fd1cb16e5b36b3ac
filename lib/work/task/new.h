/*
 * New tasks: reads task files and composes the task_dispatch from the admin to the coordinator. A
 * task is a JSON object with the members of the payload (docs/qa-loop.md), task_id and base; its
 * subtasks may be strings.
 */
#ifndef AMP_WORK_TASK_NEW_H
#define AMP_WORK_TASK_NEW_H

#include <jansson.h>
#include <stdbool.h>

#include "message/store/store.h"

/* The place of an error in a task: the line of its text, or a JSON Pointer to the member. 0 and ""
 * if the error is not about the task. */
struct amp_new_fault {
    unsigned line;
    char pointer[160];
};

/* Reads a task file: JSON if it starts with '{', else Markdown. The caller owns the result. NULL:
 * DATAERR bad_task, with the line in *at. */
json_t *amp_new_read(struct amp_span text, struct amp_new_fault *at, struct amp_error *err);
/* The line of a task file with this member, or with the value that contains it; 0: none. */
unsigned amp_new_line(struct amp_span text, const char *pointer);

/* Whether the directory is the top of a git repository, which may be bare. */
bool amp_new_is_repo(const char *dir);

struct amp_new_options {
    const char *const *protected_; /* branch patterns in addition to main and master */
    int64_t ack_timeout_sec, now_ms;
    /* 0: the repository has this commit. -1 with status NO or DATAERR: it does not; with another
     * status: the lookup failed. */
    int (*find_commit)(void *ctx, const char *repo, const char *rev, struct amp_error *err);
    void *ctx;
};
/* The criterion of a task without any. */
#define AMP_NEW_CRITERION "the reviewer approves"
/* Completes `task` and appends its message to out as one line. repo becomes the absolute path of a
 * git repository (DATAERR repo_not_git). Without a branch it is task/ID. The branch must not be
 * protected (NOPERM branch_violation), the base must be a commit (DATAERR bad_base). Subtasks get
 * ids; a task without any gets one with its description. Without a store, task_id is required. With
 * a store, a missing id is allocated after all checks, and the message is recorded in the ledger
 * and synced. *at is filled when the task is refused. */
int amp_new_compose(struct amp_store *s, json_t *task, const struct amp_new_options *opt,
                    struct amp_buf *out, struct amp_new_fault *at, struct amp_error *err);

#endif
