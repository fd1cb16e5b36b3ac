/* amp-ack doctor: what is wrong with an installation and its state, and what fixes it. */
#ifndef AMP_ACK_DOCTOR_H
#define AMP_ACK_DOCTOR_H

#include <limits.h>
#include <sys/types.h>

#include "../pass.h"

/* What a check needs: nothing; a state directory that the check "state" found usable; its store. */
enum doctor_need { DOCTOR_ALWAYS, DOCTOR_USABLE, DOCTOR_STORE };

/* X(id, function and name, need): in the order in which they run. */
#define DOCTOR_CHECKS(X)                                                                           \
    X(STATE, state, ALWAYS)             /* the directory: owner, mode, disk, log, index */         \
    X(LOCKS, locks, USABLE)             /* the holders of the state directory's locks */           \
    X(OUTBOX, outbox, STORE)            /* lines that wait for a program to write them */          \
    X(DEADLINES, deadlines, STORE)      /* what is overdue without a watcher */                    \
    X(DEAD, dead, STORE)                /* dead letters that pile up */                            \
    X(TASKS, tasks, STORE)              /* suspended tasks */                                      \
    X(PEERS, peers, ALWAYS)             /* helper programs, git, the commands of routes */         \
    X(PERMISSIONS, permissions, ALWAYS) /* files with secrets that others can read */              \
    X(HOOKS, hooks, ALWAYS)             /* the guard of the repository */                          \
    X(FIFOS, fifos, ALWAYS)             /* readers, writers, half lines, unread bytes */           \
    X(CLOCK, clock, ALWAYS)             /* this machine's time */

struct doctor {
    const char *dir; /* the state directory; NULL: none, or it is not usable */
    struct amp_store *store;
    enum doctor_need have; /* what the check "state" found */
    int n_files;           /* operands: FIFOs, and files with secrets */
    char **files;
};

enum doctor_check {
#define X(id, name, need) DOCTOR_##id,
    DOCTOR_CHECKS(X)
#undef X
        DOCTOR_COUNT
};
#define X(id, name, need) void doctor_##name(struct doctor *d);
DOCTOR_CHECKS(X)
#undef X

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_options {
    const char *repo, *config;
    int64_t min_free, old_ms, most_dead;
};
extern struct doctor_options doctor_opt;

/* One line of the report. fix: the command that fixes it, which runs in a shell as it is printed;
 * what only a person can do begins with "# "; or NULL. */
void doctor_say(enum doctor_check check, enum doctor_level level, const char *fix, const char *fmt,
                ...) __attribute__((format(printf, 4, 5)));
/* The text of a fix; it and what doctor_quote returns are overwritten by the fourth call after. */
const char *doctor_fix(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "sudo " where it is needed. */
const char *doctor_sudo(void);
/* A path in a fix, quoted where a shell would split it or take it for an option. */
const char *doctor_quote(const char *path);
/* Reports that `what` of the state directory cannot be read. */
void doctor_unreadable(enum doctor_check check, const char *dir, const char *what,
                       const struct amp_error *err);

/* Calls fn for each process, of those that this user may look at, that has the file open. */
typedef void (*doctor_holder_fn)(void *ctx, pid_t pid, const char *name, bool reads, bool writes);
void doctor_holders(dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx);
/* Adds "NAME (pid N)" to a list. */
void doctor_add_process(char *list, size_t size, pid_t pid, const char *name);

/* Calls fn for the port of each route and agent that amp.json names. */
int doctor_ports(const char *dir, int (*fn)(void *ctx, const char *port, struct amp_error *err),
                 void *ctx, struct amp_error *err);

/* The path of the newest segment; false where there is none. */
bool doctor_last_segment(const char *dir, char out[PATH_MAX]);

/* When a frame of the log was written, in milliseconds; 0: unknown. */
int64_t doctor_frame_time(struct amp_span frame);

/* Reads all segments; how many are damaged, which is reported, or -1. */
int doctor_segments(struct amp_store *s, const char *dir, struct amp_error *err);
/* Reports a torn last line, and an index that is damaged or missing. */
void doctor_tail(const char *dir);
void doctor_index(const char *dir);

#endif
