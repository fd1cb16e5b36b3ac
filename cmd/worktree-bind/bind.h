/* Shared by the verbs of worktree-bind. */
#ifndef WORKTREE_BIND_H
#define WORKTREE_BIND_H

#include "cli/list.h"
#include "shared/identity.h"
#include "shared/state.h"
#include "work/git/repository/git.h"
#include "work/git/switch.h"
#include "work/task/task.h"

struct bind_options {
    const char *repo;  /* any path in the repository; "." */
    const char *state; /* NULL: <common>/amp */
    bool print;        /* of switch: the question */
    /* bind */
    struct amp_prepare prepare;
    bool no_sparse;
    const char *branch, *base, *path, *role;
    /* unbind */
    bool remove, force;
    bool push;
    /* the filter */
    struct amp_list repos; /* ID=DIR */
    const char *worktrees; /* the directory of the worktrees that messages may name */
    /* switches */
    struct amp_list switches;  /* AGENT=WORKTREE patterns that need no approval */
    struct amp_list approvers; /* producers whose SWITCH_APPROVE counts */
    int64_t switch_ms, most_ms;
    struct amp_identity_cli identity;
    /* exec */
    struct amp_confine_cli walls;
    const char *access; /* a file, or "-" */
    /* reservations */
    const char *holder, *task;
    bool all;
    /* the life of worktrees */
    const char *into;
    bool apply;
    /* hooks */
    const char *hooks_dir, *humans, *agent, *reason, *config;
    struct amp_list protect, pushers, roles, trailers, paths;
    bool server, bound, prove;
    int64_t max_file, max_commit;
    int64_t ttl_ms, lock_timeout_ms;
};
extern struct bind_options opt;

/* Options of several verbs. */
#define WORKTREES                                                                                  \
    AMP_OPT_ROW(0, "worktrees", AMP_OPT_DIR, &opt.worktrees, "DIR",                                \
                "directory of the worktrees that may be named")
#define ALLOW_SWITCH                                                                               \
    AMP_OPT_ROW(0, "allow-switch", AMP_OPT_LIST, &opt.switches, "AGENT=WORKTREE",                  \
                "switch that needs no approval (* and ? match)", .config = "worktree.switches")
#define SWITCH_TTL                                                                                 \
    AMP_OPT_ROW(0, "switch-ttl", AMP_OPT_DURATION, &opt.switch_ms, "TIME",                         \
                "how long a switch lasts if its request names no time (default: 15m)", .min = 1,   \
                .max = AMP_BINDING_SWITCH_MAX_MS, .config = "worktree.switch_ttl")

/* An open repository, worker and state. git-worker starts with the first call. */
struct binder {
    struct amp_git *git;
    struct amp_store *store;
    struct amp_git_info info; /* after bind_open without BIND_OPENS_GIT only `common` is set */
    /* The filter checks with this who decides about switches. NULL: signatures are not checked. */
    struct amp_identities *ids;
    struct amp_intake *intake; /* reports a decision that is not an operator's */
};
/* Opens the repository only. */
int binder_open(struct binder *s, struct amp_error *err);
/* Before binder_open: lets the worker start meanwhile. */
int binder_wake(struct binder *s, struct amp_error *err);
void binder_close(struct binder *s); /* also a session that is all zeros */

/* Verbs that open anything open a session, to which c->own points, with the state directory that
 * they name (default: amp in the common git directory). */
enum {
    BIND_OPENS_GIT = AMP_OPENS_OWN,          /* all facts about the repository */
    BIND_OPENS_EXPIRED = AMP_OPENS_OWN << 1, /* ends switches first whose time is over */
    BIND_OPENS_WARNED = AMP_OPENS_OWN << 2,  /* warns about agents that stay in BIND_FAILED */
    /* For verbs that print bindings. */
    BIND_OPENS_LOOK = AMP_OPENS_MADE | BIND_OPENS_EXPIRED | BIND_OPENS_WARNED
};
int bind_open(struct amp_command *c, struct amp_error *err);
void bind_close(struct amp_command *c);
#define BIND_ONE_AGENT .least = 1, .most = 1, .usage = "exactly one AGENT is required"

/* The worktree in which the agent works. */
const char *binding_path(const struct amp_binding *b);
/* Ends switches whose time is over, as amp-ack watch does. */
int binder_expire(struct binder *s, struct amp_error *err);

/* A binding, and what is known about it. */
struct binding_row {
    struct amp_binding b;
    const char *worktree, *home, *target; /* "": does not apply */
    const char *ref;                      /* the message that caused it, or NULL */
    const char *code, *error;             /* of a refusal, or NULL */
    bool has_git;
    struct amp_git_worktree tree;
    char task[AMP_TASK_ID_MAX];
    char changes[48], commits[56]; /* for people, as works_on: the task */
    const char *works_on;
};
void binding_row_init(struct binding_row *r, const struct amp_binding *b);
/* Sets its directories and texts; call it last, because they point into r. */
void binding_row_place(struct binding_row *r);
extern const struct amp_column binding_columns[];
extern const struct amp_column binding_line_columns[]; /* of lines for programs */
/* Appends a binding as a line of JSON. ref: the message that caused it, or NULL; failure: the
 * reason of a refusal, or NULL. */
int binding_record(const struct amp_binding *b, const char *ref, const struct amp_error *failure,
                   struct amp_buf *out, struct amp_error *err);

/* switch.c: requests a switch, and approves it if the person's policy allows it. */
int switch_request(struct binder *s, const struct amp_switch_spec *spec, struct amp_binding *b,
                   struct amp_error *err);
/* Approves a pending switch if the policy allows it. */
int switch_decide(struct binder *s, const struct amp_switch_spec *spec, struct amp_binding *b,
                  struct amp_error *err);
/* Prints the HITL_INVOCATION about a pending switch. */
int print_question(const struct amp_binding *b, struct amp_error *err);
/* Prints a line for people: the agent, its state, and the worktree or the failure. */
int binding_show(const struct amp_binding *b, struct amp_error *err);

/* exec.c: where exec makes its private directories. */
const char *scratch_parent(void);

struct amp_hooks;
/* Tries each rule on a scratch clone and prints a record for each. Returns the number of rules that
 * do not hold, or -1. */
int hooks_prove(const struct amp_hooks *h, const char *program, struct amp_error *err);
/* One record of it: the rule, its code, whether a violation is refused and a permitted change
 * passes. */
void prove_print(bool holds, const char *rule, const char *code, bool refused, bool passed,
                 const char *text, struct amp_error *err);

#endif
