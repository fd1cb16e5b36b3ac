/* Shared by the parts of branch-guard. */
#ifndef BRANCH_GUARD_H
#define BRANCH_GUARD_H

#include <stdbool.h>

#include <amp/base/buf.h>

#include "work/git/rule.h"

#define NAME_SIZE  4096 /* of a ref's name: as long as a path */
#define VALUE_SIZE 72   /* hex digits of an object id */

/* repo.c: the repository as files; no git is run. */
struct repo {
    int gitdir, common;    /* descriptors, -1 without a repository */
    struct amp_buf packed; /* packed-refs, read at its first use */
    bool packed_read, packed_locked;
};
void repo_find(struct repo *r);
/* The full name of the branch that HEAD points to; false if it is detached or unreadable. */
bool repo_head(const struct repo *r, char name[NAME_SIZE]);
/* The current value of a branch; empty if it does not exist. */
struct amp_span repo_value(struct repo *r, struct amp_span ref, char value[VALUE_SIZE]);
struct amp_span repo_packed(struct repo *r, struct amp_span ref);

/* The one-use permission of a person, from the file OVERRIDE, which `worktree-bind hooks override`
 * writes after logging it. The process that unlinks the file has used the permission, and adds a
 * line to amp/guard.log. */
struct override {
    bool found;
    char text[1024];
    struct amp_span branch, agent, id;
};

struct guard {
    const char *hook; /* its name */
    char **argv;      /* as git gave it */
    char **args;      /* after the hook's name */
    int n_args;
    bool standalone; /* called by a hook manager or a tool, not by git: no previous hook is run */
    struct repo repo;
    struct amp_rule rule;
    struct override override;
    bool override_used;
    struct amp_rule_caller caller;
    struct amp_buf input;
};

/* override.c: whether the override covers the change of ref; use: uses it up. */
bool is_overridden(struct guard *g, struct amp_span ref, bool use);

/* Prints "error: WHAT [CODE]" and the hint, which may be NULL; returns 1. */
int guard_refuse(const char *code, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The name of the caller in diagnostics. */
const char *caller_name(const struct guard *g);

/* contents.c: the rules that need the contents of commits. They run git's plumbing, and only where
 * such a rule is set: trailers, paths, sizes, and for agents the reserved paths. All return 0, or 1
 * after a diagnostic. A failure of the plumbing refuses. */
int contents_of_index(struct guard *g);
int contents_of_message(struct guard *g, const char *path);
/* The commits that the ids (one a line) reach, but not the refs that the options of rev-list in
 * `without` name. */
int contents_of_commits(struct guard *g, struct amp_span ids, const char *const *without);

/* command.c: the git command that runs the hook, from /proc. */
struct command {
    char text[8192]; /* the arguments, each with its NUL */
    const char *word[128];
    int n;
    const char *verb; /* "merge"; "" if unknown */
    int verb_at;
};
void command_find(struct command *c);
bool command_has(const struct command *c, const char *flag);
/* The last operand, or NULL. */
const char *command_last(const struct command *c);
/* Whether git writes ORIG_HEAD before this command changes the working tree. */
bool command_starts_with_orig_head(const struct command *c);
/* The command that cleans up after a refused ref update of this one, or NULL. */
const char *command_cleanup(const struct command *c);

#endif
