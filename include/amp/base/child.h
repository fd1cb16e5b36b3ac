/* Child processes: the only fork and exec of the project. */
#ifndef AMP_BASE_CHILD_H
#define AMP_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

#define AMP_CHILD_FDS_MAX 8 /* of struct amp_child_spec.fds */

/* The program to start. If argv[0] has no slash, it is searched in PATH. No shell is used. A
 * descriptor of -1 means /dev/null. All descriptors that the spec does not name are closed in the
 * child, and signals are reset. The child leads its own process group (with new_session: its own
 * session; with keep_group it stays in the caller's, so that it may read the terminal). */
struct amp_child_spec {
    const char *const *argv;
    const char *const *envp; /* NULL: the caller's */
    const char *cwd;         /* NULL: the caller's */
    int fd_in, fd_out, fd_err;
    const int *fds; /* n_fds more descriptors, all open: they become 3, 4, … in this order */
    unsigned n_fds;
    bool keep_group;
    bool new_session; /* setsid: no controlling terminal */
    bool no_new_privs;
    bool dies_with_us; /* KILL when the thread that started it ends for any reason */
    bool owns_tree; /* the same; the caller becomes subreaper, so amp_child_kill_tree finds orphans
                     */
    uint64_t max_file_bytes;           /* RLIMIT_FSIZE, 0 for none */
    const struct amp_child_wrap *wrap; /* starts the command in another way; NULL: none */
};

struct amp_child;
/* Starts the command of a spec inside another program, such as one that confines it, with the
 * contract of amp_child_start. The spec that it gets has no wrap. */
struct amp_child_wrap {
    int (*start)(void *ctx, const struct amp_child_spec *spec, struct amp_child *out,
                 struct amp_error *err);
    void *ctx;
};

struct amp_child {
    pid_t pid; /* 0: already waited for */
    int pidfd; /* for poll: readable after the child ended */
    bool owns_tree, keep_group;
    int64_t started_ms;
};

/* The decoded wait status. */
struct amp_child_end {
    bool exited; /* exit_code is valid */
    int exit_code;
    bool signaled; /* signal, core are valid */
    int signal;
    bool core;
    bool timed_out; /* ended at its time limit */
    bool stopped_by_us;
    int64_t wall_ms;
};

/* Finds the program that amp_child_start would execute ("/usr/bin/true" for "true") in envp's PATH.
 * A path with a slash is relative to the current directory. UNAVAILABLE command_not_found,
 * not_executable. */
int amp_child_find(const char *name, char *const *envp, char *out, size_t size,
                   struct amp_error *err);
/* Starts a child. A failed exec is an error of this function (command_not_found, not_executable),
 * not an exit status of the child. Uses envp's PATH without its relative entries; a path with a
 * slash is relative to cwd. */
int amp_child_start(const struct amp_child_spec *spec, struct amp_child *out,
                    struct amp_error *err);
/* Waits for the end of the child. After timeout_ms (< 0: no timeout), or when *cancel becomes
 * non-zero (may be NULL; read after EINTR), sends TERM to the tree, and KILL grace_ms later. With
 * owns_tree, processes of the tree that outlive the child are killed before this returns. */
int amp_child_wait(struct amp_child *c, int64_t timeout_ms, int64_t grace_ms,
                   volatile const int *cancel, struct amp_child_end *end, struct amp_error *err);
/* Does not block. 1: ended (end is filled, the child released); 0: still running; -1: error. */
int amp_child_poll(struct amp_child *c, struct amp_child_end *end, struct amp_error *err);
/* Signals the child's group (with keep_group: the child alone) and, with owns_tree, every
 * descendant found under /proc; KILL is repeated until none is left. */
void amp_child_kill_tree(struct amp_child *c, int sig);

/* Sends a signal to the child alone, if it still runs. */
void amp_child_signal(const struct amp_child *c, int sig);

/* Finds a helper program: $AMP_LIBEXEC/NAME if that is set, else ../libexec/amp/NAME relative to
 * the directory of the running program (also in the build tree). */
int amp_helper_path(const char *name, char *out, size_t size, struct amp_error *err);

AMP_API_END

#endif
