/* What /proc says of other processes of this user, and of those that descend from a child. */
#ifndef BASE_PROCESS_H
#define BASE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <amp/base/buf.h>

#define AMP_ENVIRON_MAX (4u << 20) /* bytes of an environment that are read */

/* The environment with which the process was started, entries ended by NUL, in out (reset first;
 * its maximum should exceed AMP_ENVIRON_MAX). false: it ended, belongs to another user, or has no
 * environment. */
bool amp_process_environ(pid_t pid, struct amp_buf *out);
/* The value of the first entry NAME=value; false where there is none. */
bool amp_environ_get(struct amp_span env, const char *name, struct amp_span *value);
/* The parent's id; 0 where it cannot be read. */
pid_t amp_process_parent(pid_t pid);

/* The children that were started here and not yet waited for: what else has us as its parent was
 * handed to us as a subreaper. */
int amp_child_tree_know(pid_t pid, bool owns_tree, struct amp_error *err);
void amp_child_tree_forget(pid_t pid);

/* Signals every living descendant of pid, pid itself included when it lives, and reaps orphans
 * that ended; returns how many living ones it met. Reaches what left the session or the parent. */
int amp_child_tree_signal(pid_t pid, int sig);

#endif
