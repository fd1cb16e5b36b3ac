/* The processes that descend from a child, found under /proc. */
#ifndef BASE_CHILD_TREE_H
#define BASE_CHILD_TREE_H

#include <stdbool.h>
#include <sys/types.h>

#include <amp/base/error.h>

/* The children that were started here and not yet waited for: what else has us as its parent was
 * handed to us as a subreaper. */
int amp_child_tree_know(pid_t pid, bool owns_tree, struct amp_error *err);
void amp_child_tree_forget(pid_t pid);

/* Signals every living descendant of pid, pid itself included when it lives, and reaps orphans
 * that ended; returns how many living ones it met. Reaches what left the session or the parent. */
int amp_child_tree_signal(pid_t pid, int sig);

#endif
