/* Other processes of this user, read from /proc, and the descendants of a child. */
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
/* The value of the first entry NAME=value; false: there is none. */
bool amp_environ_get(struct amp_span env, const char *name, struct amp_span *value);
/* The parent's id; 0: it cannot be read. */
pid_t amp_process_parent(pid_t pid);

/* Notes the children that were started here and not yet waited for. Other children of this process
 * are orphans that it got as a subreaper. */
int amp_child_tree_know(pid_t pid, bool owns_tree, struct amp_error *err);
void amp_child_tree_forget(pid_t pid);

/* Signals pid and every living descendant, also those that left its session or parent, and reaps
 * orphans that ended. Returns the number of living ones. */
int amp_child_tree_signal(pid_t pid, int sig);

#endif
