/* Completes a worktree before its agent is bound to it: copies the ignored files that
 * .worktreeinclude names, and runs the person's command. amp_bind does it and can be repeated:
 * existing files stay, and a command that has succeeded is not run again. All tools that bind have
 * the same settings (worktree.include, worktree.post_create …). */
#ifndef AMP_WORK_GIT_PREPARE_H
#define AMP_WORK_GIT_PREPARE_H

#include <amp/base/child.h>

#include "work/git/repository/git.h"

#define AMP_PREPARE_BYTES (64 << 20)
#define AMP_PREPARE_MS    600000
#define AMP_PREPARE_GRACE 5000 /* between TERM and KILL */

struct amp_prepare {
    bool include;
    int64_t include_bytes;
    const char *command; /* for /bin/sh -c; NULL or "": none */
    int64_t command_ms;
    volatile const int *stop; /* a signal ends the command; or NULL */
    /* Runs the command to its end, at most command_ms long; its cwd is the worktree. NULL: with the
     * rights of this process. */
    int (*run)(void *ctx, const struct amp_child_spec *spec, struct amp_child_end *end,
               struct amp_error *err);
    void *ctx;
    void (*note)(const char *fmt, ...) __attribute__((format(printf, 1, 2))); /* not NULL */
};
#define AMP_PREPARE_DEFAULTS .include_bytes = AMP_PREPARE_BYTES, .command_ms = AMP_PREPARE_MS

#endif
