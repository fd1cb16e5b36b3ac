/*
 * New tasks: from options, a JSON file or a Markdown file to a task_dispatch from the admin to the
 * coordinator. A task is a JSON object with the members of the payload (docs/qa-loop.md) and
 * task_id, base; subtasks may be plain texts.
 */
#ifndef AMP_TASK_NEW_H
#define AMP_TASK_NEW_H

#include <jansson.h>

#include "store/store.h"

/* What is wrong with a task, for callers that have its text: the line of its text, or a
 * JSON Pointer to the member. 0 and "" where the failure is not about the task. */
struct amp_new_fault {
    unsigned line;
    char pointer[160];
};

/* Reads a task file; the text starts with '{' or is Markdown. The caller owns the result. DATAERR
 * bad_task, with the line in *at. */
json_t *amp_new_read(struct amp_span text, struct amp_new_fault *at, struct amp_error *err);
/* The line of a file's text that holds the member, or what contains it; 0: none does. */
unsigned amp_new_line(struct amp_span text, const char *pointer);

/* Makes `task` complete and composes the message: repo becomes the absolute real path of a git
 * repository (DATAERR repo_not_git), the branch must not be protected (NOPERM branch_violation),
 * the base must be a commit, subtasks get ids; without any the description is the only one. Without
 * store a task_id is needed. With it the id is allocated, once nothing is wrong with the task, and
 * the message recorded in the ledger, durably. Appends one line; *at is filled where the task is
 * refused. */
struct amp_new_options {
    const char *const *protected_; /* branch patterns beside main and master */
    int64_t ack_timeout_sec, now_ms;
    /* Whether the repository has this commit: 0 yes; -1 with status NO or DATAERR: no, with another
     * one: it could not be looked up. */
    int (*find_commit)(void *ctx, const char *repo, const char *rev, struct amp_error *err);
    void *ctx;
};
int amp_new_compose(struct amp_store *s, json_t *task, const struct amp_new_options *opt,
                    struct amp_buf *out, struct amp_new_fault *at, struct amp_error *err);

#endif
