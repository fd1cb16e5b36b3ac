/* amp-ack doctor: what is wrong with an installation and its state, and what fixes it. */
#ifndef AMP_ACK_DOCTOR_H
#define AMP_ACK_DOCTOR_H

#include <limits.h>
#include <sys/types.h>

#include "pass.h"

/* X(id, name, what it looks at) */
#define DOCTOR_CHECKS(X)                                                                           \
    X(STATE, "state", "the state directory: owner, mode, disk, log, index")                        \
    X(LOCKS, "locks", "who holds the locks of the state directory")                                \
    X(OUTBOX, "outbox", "lines that wait for a program to write them")                             \
    X(DEADLINES, "deadlines", "what is overdue and nobody watches")                                \
    X(DEAD, "dead", "dead letters that pile up")                                                   \
    X(TASKS, "tasks", "suspended tasks")                                                           \
    X(PEERS, "peers", "helper programs, git, the commands of routes")                              \
    X(PERMISSIONS, "permissions", "files with secrets that others can read")                       \
    X(HOOKS, "hooks", "the guard of the repository")                                               \
    X(FIFOS, "fifos", "readers, writers, half lines, bytes that nobody reads")                     \
    X(CLOCK, "clock", "this machine's time")

enum doctor_check {
#define X(id, name, doc) DOCTOR_##id,
    DOCTOR_CHECKS(X)
#undef X
        DOCTOR_COUNT
};
enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_options {
    const char *repo, *config;
    int64_t min_free, old_ms, most_dead;
};
extern struct doctor_options doctor_opt;

#define DOCTOR_FIX_MAX (PATH_MAX * 3 + 128)

/* One line of the report. fix: the command that fixes it, which runs in a shell as it is printed;
 * what only a person can do begins with "# "; or NULL. */
void doctor_say(enum doctor_check check, enum doctor_level level, const char *fix, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));
const char *doctor_fix(char out[DOCTOR_FIX_MAX], const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* "sudo " where it is needed. */
const char *doctor_sudo(void);
/* "--state DIR" in a fix; quoted where a shell would split it or take it for an option.
 */
const char *doctor_quote(const char *path);
/* A failure, for the reason in err, to read `what` from the state directory. */
void doctor_unreadable(enum doctor_check check, const char *dir, const char *what,
                       const struct amp_error *err);

/* Everybody of ours who has this file open; reads and writes as opened. */
typedef void (*doctor_holder_fn)(void *ctx, pid_t pid, const char *name, bool reads, bool writes);
void doctor_holders(dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx);

/* The path of the newest segment; false where there is none. */
bool doctor_last_segment(const char *dir, char out[PATH_MAX]);

/* Reads all segments; how many are damaged, which is reported, or -1. */
int doctor_segments(struct amp_store *s, const char *dir, struct amp_error *err);
void doctor_tail(const char *dir);
void doctor_index(const char *dir);

/* The parts. A store is NULL where it cannot be opened, which doctor_state told. *usable: what is
 * in the directory can be looked at. */
struct amp_store *doctor_state(const char *dir, bool *usable);
void doctor_locks(const char *dir);
void doctor_outbox(struct amp_store *s, const char *dir);
void doctor_deadlines(struct amp_store *s, const char *dir);
void doctor_dead(struct amp_store *s, const char *dir);
void doctor_tasks(struct amp_store *s, const char *dir);
void doctor_peers(const char *dir);
void doctor_permissions(const char *dir, int n_files, char **files);
void doctor_hooks(void);
void doctor_fifos(const char *dir, int n_files, char **files);
void doctor_clock(const char *dir);

#endif
