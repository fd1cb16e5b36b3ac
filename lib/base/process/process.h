/* Other processes of this user, read from /proc, and the descendants of a child. */
#ifndef AMP_BASE_PROCESS_PROCESS_H
#define AMP_BASE_PROCESS_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <amp/base/buf.h>
#include <amp/base/child.h>

#define AMP_ENVIRON_MAX (4u << 20) /* bytes of an environment that are read */

/* The environment with which the process was started, entries ended by NUL, in out (reset first;
 * its maximum should exceed AMP_ENVIRON_MAX). false: it ended, belongs to another user, or has no
 * environment. */
bool amp_process_environ(pid_t pid, struct amp_buf *out);
/* The value of the first entry NAME=value; false: there is none. */
bool amp_environ_get(struct amp_span env, const char *name, struct amp_span *value);
/* The parent's id; 0: it cannot be read. */
pid_t amp_process_parent(pid_t pid);
/* The start time of the process, in clock ticks of /proc/PID/stat; with the id it identifies a
 * process of this boot. 0: it does not run, or cannot be read. */
int64_t amp_process_started(pid_t pid);

/* The living descendants of this process; the caller frees *out. Orphans are among them if it is
 * their subreaper. 1: this kernel does not tell them (CONFIG_PROC_CHILDREN). */
int amp_process_descendants(pid_t **out, size_t *n, struct amp_error *err);

/* Notes the children that were started here and not yet waited for. Other children of this process
 * are orphans that it got as a subreaper. */
int amp_child_tree_know(pid_t pid, bool owns_tree, struct amp_error *err);
void amp_child_tree_forget(pid_t pid);

/* Starts a child with a pipe to its standard input and one from its standard output; the caller's
 * ends, *to and *from, do not block. fd_in and fd_out of the spec are set here. IOERR, and the
 * failures of amp_child_start. */
int amp_child_start_piped(struct amp_child_spec *spec, struct amp_child *out, int *to, int *from,
                          struct amp_error *err);

/* Ends this process by a signal, as the one that it stands for ended, without a second core dump.
 * Returns 128 + sig, an exit status, if the signal does not end it. */
int amp_process_end_by(int sig);

/* Signals pid and every living descendant, also those that left its session or parent, and reaps
 * orphans that ended. Returns the number of living ones. */
int amp_child_tree_signal(pid_t pid, int sig);

/* Makes this process the parent of its descendants whose own parents end, until amp_orphans_end
 * kills all of these and what descends from them. Children that were started here and not yet
 * waited for stay. */
void amp_orphans_adopt(void);
void amp_orphans_end(void);

#endif
