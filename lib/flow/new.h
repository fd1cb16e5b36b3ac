/*
 * New tasks: from options, a JSON file or a Markdown file to a task_dispatch from the admin to the
 * coordinator. A task is a JSON object with the members of the payload (docs/qa-loop.md) and
 * task_id, base; subtasks may be plain texts.
 */
#ifndef AMP_FLOW_NEW_H
#define AMP_FLOW_NEW_H

#include <jansson.h>

#include "store/store.h"

/* Reads a task file; the text starts with '{' or is Markdown. The caller owns the result. DATAERR
 * bad_task names the line or member. */
json_t *amp_new_read(struct amp_span text, struct amp_error *err);
json_t *amp_new_markdown(struct amp_span text, struct amp_error *err);

/* Makes `task` complete and composes the message: repo becomes the absolute real path of a git
 * repository (DATAERR repo_not_git), the branch must not be protected (NOPERM branch_violation),
 * subtasks get ids; without any the description is the only one. Without store a task_id is needed.
 * With it the id is allocated and the message recorded in the ledger, durably. Appends one line;
 * task_id_out (AMP_TASK_ID_MAX) may be NULL. */
struct amp_new_options {
    const char *const *protected_; /* branch patterns beside main and master */
    int64_t ack_timeout_sec, now_ms;
};
int amp_new_compose(struct amp_store *s, json_t *task, const struct amp_new_options *opt,
                    struct amp_buf *out, char *task_id_out, struct amp_error *err);

#endif
