/*
 * Confinement: an agent's command runs in a sandbox that the helper program libexec/amp/confine
 * sets up (SW4RM §6.4, §16, §18.4, §18.5.2, §23; AOP §11.2). This header has the policy, what this
 * machine can enforce, and the start of a confined command.
 *
 * A tool calls, in this order: amp_confine_policy_init or _read, amp_confine_choose once at start
 * (it decides and reports what is enforced), then amp_confine_start for each command.
 */
#ifndef AMP_WORK_CONFINE_CONFINE_H
#define AMP_WORK_CONFINE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include <amp/base/child.h>

/* SW4RM §18.5.2: X(NAME), spelled as in policies. */
#define AMP_NETWORK_LIST(X)                                                                        \
    X(DENY_ALL)            /* no network but a private loopback interface */                       \
    X(EGRESS_RESTRICTED)   /* only the policy's hosts, through egress-gate */                      \
    X(EGRESS_UNRESTRICTED) /* the host's network, no inbound connections */                        \
    X(FULL_ACCESS)
enum amp_network {
#define X(name) AMP_NETWORK_##name,
    AMP_NETWORK_LIST(X)
#undef X
};
const char *amp_network_name(enum amp_network n);
bool amp_network_find(struct amp_span name, enum amp_network *out);

/* A policy may grant this beyond the defaults (schemas/config/confinement.json). */
enum amp_confine_grant {
    AMP_GRANT_READ,        /* globs of paths: absolute, ~/…, or relative to the worktree */
    AMP_GRANT_WRITE,       /* the same */
    AMP_GRANT_HOST,        /* HOST:PORT, *.DOMAIN:PORT */
    AMP_GRANT_ENVIRONMENT, /* names of variables; one * at the end matches any rest */
    AMP_GRANT_COUNT
};
struct amp_confine_limits { /* 0: no limit */
    int64_t processes;      /* of the sandbox */
    int64_t memory_bytes;   /* private writable memory of each process */
    int64_t file_bytes;     /* size of each file */
    int64_t open_files;     /* of each process */
    int64_t cpu_seconds;    /* of each process */
};
struct amp_confine_policy {
    char **grants[AMP_GRANT_COUNT]; /* owned; each NULL or NULL-terminated */
    enum amp_network network;
    struct amp_confine_limits limits;
    bool limits_processes; /* the file has limits.processes: it must be enforced, or is missing */
    bool read_only;        /* the worktree cannot be written (a review) */
    /* The paths of the worktree, relative to it, that may be read or written; NULL: all of it.
     * Owned and NULL-terminated; a list without entries is none of it. */
    char **only_read, **only_write;
};
/* The defaults for an agent's attempt: no grants, DENY_ALL, the limits of confinement.json. */
void amp_confine_policy_init(struct amp_confine_policy *p);
void amp_confine_policy_release(struct amp_confine_policy *p);
/* Cleanup attribute; initialise with {0}. */
#define AMP_CONFINE_POLICY AMP_CLEANUP(amp_confine_policy_release) struct amp_confine_policy
/* Reads a policy file over the defaults. CONFIG bad_policy: not readable, not JSON, not valid by
 * confinement.json, or in a linked worktree, which an agent could change. */
int amp_confine_policy_read(const char *path, struct amp_confine_policy *out,
                            struct amp_error *err);
/* Adds a copy of one grant. CONFIG bad_policy: malformed (empty, "..", a name with "="). */
int amp_confine_policy_add(struct amp_confine_policy *p, enum amp_confine_grant kind,
                           struct amp_span text, struct amp_error *err);
/* Whether a variable ("NAME=value") of the starter's environment passes into the sandbox: those of
 * a short list (PATH, LANG, TERM …) and those that the policy names. The caller filters with it. */
bool amp_confine_env_passes(const struct amp_confine_policy *p, const char *variable);

/* ---- what is enforced ---- */

enum amp_confine_demand {
    AMP_CONFINE_REQUIRE,     /* everything that the policy asks for, or no start */
    AMP_CONFINE_BEST_EFFORT, /* what this machine can, with a report of the rest */
    AMP_CONFINE_OFF,         /* nothing */
};
bool amp_confine_demand_find(struct amp_span name, enum amp_confine_demand *out);

/* X(NAME, text): the documented levels, worktree-bind-exec(1). */
#define AMP_CONFINE_LEVEL_LIST(X)                                                                  \
    X(NONE, "none")         /* no new privileges, limits, closed descriptors */                    \
    X(LANDLOCK, "landlock") /* Landlock and seccomp */                                             \
    X(FULL, "full")         /* namespaces, Landlock and seccomp */
enum amp_confine_level {
#define X(name, text) AMP_LEVEL_##name,
    AMP_CONFINE_LEVEL_LIST(X)
#undef X
};
const char *amp_confine_level_name(enum amp_confine_level level);

/* X(NAME, text): a part of the confinement that a machine may be unable to enforce. */
#define AMP_CONFINE_LACK_LIST(X)                                                                   \
    X(NAMESPACES, "namespaces (processes, mounts, private /tmp)")                                  \
    X(LANDLOCK, "Landlock file rules")                                                             \
    X(SECCOMP, "seccomp")                                                                          \
    X(FILES, "files outside of the policy")                                                        \
    X(NETWORK, "the network policy")                                                               \
    X(SIGNALS, "signals to other processes of this user")                                          \
    X(PROCESSES, "the limit of processes")
enum amp_confine_lack {
#define X(name, text) AMP_LACK_##name,
    AMP_CONFINE_LACK_LIST(X) AMP_LACK_COUNT
#undef X
};

struct amp_confine_means { /* of this machine, for this user */
    bool namespaces, seccomp;
    bool processes; /* the limit of processes works in the namespaces */
    int landlock;   /* the ABI of Landlock; 0: none */
    char why[256];  /* why there are no namespaces, or "" */
};

struct amp_confine_report {
    enum amp_confine_demand demand;
    enum amp_confine_level level;
    struct amp_confine_means means; /* used by the start */
    enum amp_network network;
    unsigned lacks; /* bits 1 << enum amp_confine_lack: asked for and not enforced */
};
/* Decides what is enforced for a policy. With REQUIRE and something missing: NOPERM
 * confinement_unavailable, with what is missing and a hint. */
int amp_confine_choose(enum amp_confine_demand demand, const struct amp_confine_policy *policy,
                       struct amp_confine_report *out, struct amp_error *err);
/* The missing parts as text, separated by ", "; "" if there are none. */
int amp_confine_lacks_text(const struct amp_confine_report *r, struct amp_buf *out,
                           struct amp_error *err);
/* {"level":…,"demand":…,"network":…,"not_enforced":[…]} for the log and results. */
struct amp_jw;
void amp_confine_report_put(const struct amp_confine_report *r, struct amp_jw *w);

/* ---- the start of a command ---- */

/* A path that the tool grants beyond the policy: real, existing. At the level full it is visible at
 * `at` (NULL: at its own path); with an `at` that exists, it covers it: the `.git` file of a
 * worktree. At the other levels `at` has no effect. */
struct amp_confine_place {
    const char *path, *at; /* path NULL: `at` is covered by an empty directory */
    bool write;
};
struct amp_confine {
    const struct amp_confine_policy *policy;
    const struct amp_confine_report *report; /* of amp_confine_choose */
    const char *worktree;                    /* absolute */
    const char *home;                        /* the starter's HOME, for ~/; may be NULL */
    /* NULL-terminated absolute paths that no grant may contain or lie in (the state directory), or
     * NULL. In the worktree they are covered; without namespaces such a worktree is refused. */
    const char *const *hidden;
    const struct amp_confine_place *places;
    size_t n_places;
    /* An existing private directory (0700) of the command, absolute: at the levels landlock and
     * none it holds HOME and TMPDIR. NULL: then these levels have neither. Level full makes both in
     * memory. */
    const char *scratch;
    /* EGRESS_RESTRICTED: the helper's end of the socket pair to egress-gate; -1: none, and nothing
     * can be reached. */
    int gate_fd;
};
/* Starts spec's command confined, as amp_child_start does: a command that is not found or not
 * executable in the sandbox has the same errors. NOPERM confinement_unavailable: the sandbox could
 * not be set up. CONFIG bad_policy: a grant that reaches a hidden path, / or /proc, or matches too
 * much. The variables HOME and TMPDIR, and with a gate the proxy variables, are set in the
 * sandbox. The child is the outer process of the helper: it ends as the command ended, and if it is
 * killed, the level full leaves no process alive. With demand OFF: amp_child_start. */
int amp_confine_start(const struct amp_confine *c, const struct amp_child_spec *spec,
                      struct amp_child *out, struct amp_error *err);

/* A private directory (0700) for struct amp_confine.scratch, below `parent`. Returns a descriptor
 * that has a lock on it: while it is open, no sweep removes the directory. */
int amp_confine_scratch_make(const char *parent, char *out, size_t size, struct amp_error *err);
/* Removes it with everything in it; never follows a link. Call it after the command has ended. */
int amp_confine_scratch_remove(const char *dir, struct amp_error *err);
/* Empties a directory that has more than this many bytes on the disk, or entries: 1; 0: it has not.
 * Never follows a link. No process of the command may be alive. */
int amp_confine_scratch_bound(const char *dir, int64_t bytes, int64_t entries,
                              struct amp_error *err);
/* Removes the directories of this user below `parent` whose makers were killed; never follows a
 * link. Returns their number; directories that cannot be read or removed are left alone. */
int amp_confine_scratch_sweep(const char *parent);

#endif
