/* amp-ack doctor: finds problems of an installation and its state, and the commands that fix them.
 */
#ifndef AMP_ACK_DOCTOR_H
#define AMP_ACK_DOCTOR_H

#include <limits.h>
#include <sys/types.h>

#include "../pass.h"

/* A check needs nothing, a state directory that the check "state" found usable, or its store. */
enum doctor_need { DOCTOR_ALWAYS, DOCTOR_USABLE, DOCTOR_STORE };

/* X(function and name, need), in the order in which they run. */
#define DOCTOR_CHECKS(X)                                                                           \
    X(state, ALWAYS)       /* the directory: owner, mode, disk, log, index */                      \
    X(locks, USABLE)       /* the holders of the state directory's locks */                        \
    X(outbox, STORE)       /* lines that wait for a program to write them */                       \
    X(deadlines, STORE)    /* deadlines that have passed unnoticed */                              \
    X(dead, STORE)         /* dead letters that pile up */                                         \
    X(tasks, STORE)        /* suspended tasks */                                                   \
    X(peers, ALWAYS)       /* helper programs, git, the commands of routes */                      \
    X(permissions, ALWAYS) /* files with secrets that others can read */                           \
    X(identity, ALWAYS)    /* whether messages are signed, and who can read the keys */            \
    X(hooks, ALWAYS)       /* the guard of the repository */                                       \
    X(fifos, ALWAYS)       /* readers, writers, half lines, unread bytes */                        \
    X(clock, ALWAYS)       /* this machine's time */

struct doctor {
    const char *dir; /* the state directory; NULL: none, or it is not usable */
    struct amp_store *store;
    enum doctor_need have; /* what the check "state" found */
    int n_files;           /* operands: FIFOs, and files with secrets */
    char **files;
};

#define X(name, need) void doctor_##name(struct doctor *d);
DOCTOR_CHECKS(X)
#undef X

enum doctor_level { DOCTOR_OK, DOCTOR_WARN, DOCTOR_FAIL };

struct doctor_options {
    const char *repo, *config;
    int64_t min_free, old_ms, most_dead;
};
extern struct doctor_options doctor_opt;

/* Prints one line of the running check. fix: the command that fixes the problem, to be run in a
 * shell as printed; or advice for a person, which begins with "# "; or NULL. The path, quoted for a
 * shell, replaces each "@" in it; NULL: a "@" is a "@". */
void doctor_say(enum doctor_level level, const char *fix, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Prints the line "ok", unless the running check has printed another line. */
void doctor_ok(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The text of a fix with other values. The fourth call after it overwrites the result, as with
 * doctor_quote. */
const char *doctor_fix(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "sudo ", or "" for root. */
const char *doctor_sudo(void);
/* A path for a fix, quoted if a shell would split it, and not like an option. */
const char *doctor_quote(const char *path);
/* Reports that `what` of the state directory cannot be read. */
void doctor_unreadable(const char *dir, const char *what, const struct amp_error *err);

/* Calls fn for each process that has the file open, among those that this user may inspect. */
typedef void (*doctor_holder_fn)(void *ctx, pid_t pid, const char *name, bool reads, bool writes);
void doctor_holders(dev_t dev, ino_t ino, doctor_holder_fn fn, void *ctx);
/* Adds "NAME (pid N)" to a list. */
void doctor_add_process(char *list, size_t size, pid_t pid, const char *name);

/* Calls fn for the port of each route and agent that amp.json names. */
int doctor_ports(const char *dir, int (*fn)(void *ctx, const char *port, struct amp_error *err),
                 void *ctx, struct amp_error *err);

/* The path of the newest segment; false if there is none. */
bool doctor_last_segment(const char *dir, char out[PATH_MAX]);

/* Gets the time at which a frame of the log was written, in milliseconds; 0: unknown. */
int doctor_frame_time(struct amp_store *s, uint64_t n, int64_t *at_ms, struct amp_error *err);

/* Reads all segments and reports the damaged ones; returns their number, or -1. */
int doctor_segments(struct amp_store *s, const char *dir, struct amp_error *err);
/* Report an incomplete last line, and an index that is damaged or missing. */
void doctor_tail(const char *dir);
void doctor_index(const char *dir);
/* Reads all blobs; the number of those that are damaged or missing. */
uint32_t doctor_blobs(struct amp_store *s, const char *dir);
/* Reads the complete index. */
void doctor_index_pages(struct amp_store *s, const char *dir);

#endif
