/* Child processes: the only fork and exec of the project. */
#ifndef AMP_BASE_CHILD_H
#define AMP_BASE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <amp/base/api.h>
#include <amp/base/buf.h>

AMP_API_BEGIN

/* What to start. argv[0] is found by PATH when it has no slash; no shell is ever involved. fds of
 * -1 mean /dev/null. Every other descriptor is closed in the child, signals are reset. The child
 * leads a group of its own (a session with new_session). */
struct amp_child_spec {
    const char *const *argv;
    const char *const *envp; /* NULL keeps ours */
    const char *cwd;         /* NULL keeps ours */
    int fd_in, fd_out, fd_err;
    bool new_session; /* setsid: no controlling terminal */
    bool no_new_privs;
    bool dies_with_us; /* KILL when the thread that started it ends, however that ends */
    bool owns_tree; /* the same, and we become subreaper; amp_child_kill_tree reaches orphans too */
    uint64_t max_file_bytes; /* RLIMIT_FSIZE, 0 for none */
};

struct amp_child {
    pid_t pid; /* 0 when it was waited for */
    int pidfd; /* readable when it ended: poll it */
    bool owns_tree;
    int64_t started_ms;
};

/* How it ended, decoded whole. */
struct amp_child_end {
    bool exited; /* exit_code is valid */
    int exit_code;
    bool signaled; /* signal, core are valid */
    int signal;
    bool core;
    bool timed_out; /* we ended it at its time limit */
    bool stopped_by_us;
    int64_t wall_ms;
};

/* The program that start would execute, "/usr/bin/true" for "true"; a path with a slash is checked
 * from here. PATH is envp's. UNAVAILABLE command_not_found, not_executable. */
int amp_child_find(const char *name, char *const *envp, char *out, size_t size,
                   struct amp_error *err);
/* A failed exec is reported here (127 not found → "command_not_found", 126 → "not_executable"),
 * not as the child's exit status. PATH is envp's; its relative entries are not searched, and a
 * path with a slash is taken after cwd. */
int amp_child_start(const struct amp_child_spec *spec, struct amp_child *out,
                    struct amp_error *err);
/* Waits on the pidfd and a timer. At timeout_ms (< 0 none), or when *cancel becomes non-zero
 * (may be NULL; polled after EINTR), sends TERM to the tree, KILL after grace_ms. With owns_tree
 * what is left of the tree when the child has ended is killed before this returns. */
int amp_child_wait(struct amp_child *c, int64_t timeout_ms, int64_t grace_ms,
                   volatile const int *cancel, struct amp_child_end *end, struct amp_error *err);
/* Non-blocking: 1 ended (end filled, child released), 0 still running, -1 error. */
int amp_child_poll(struct amp_child *c, struct amp_child_end *end, struct amp_error *err);
/* Signals the child's group and, with owns_tree, every descendant found under /proc; KILL is
 * repeated until none is left. */
void amp_child_kill_tree(struct amp_child *c, int sig);

/* The path of a helper program (libexec/amp/NAME): $AMP_LIBEXEC, else ../libexec/amp beside the
 * running program's real path (also in the build tree). */
int amp_helper_path(const char *name, char *out, size_t size, struct amp_error *err);

AMP_API_END

#endif
