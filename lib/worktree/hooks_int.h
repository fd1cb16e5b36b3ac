/* Shared by installing and checking hooks. */
#ifndef AMP_WORKTREE_HOOKS_INT_H
#define AMP_WORKTREE_HOOKS_INT_H

#include <stdbool.h>

struct amp_hook_name {
    const char *name;
    bool server;
};
extern const struct amp_hook_name amp_hook_names[]; /* ends with NULL */

/* Whether the entry is the link that install makes. */
bool amp_hook_is_ours(int dirfd, const char *name);

#endif
