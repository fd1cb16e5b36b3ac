/* Shared by the parts of branch-guard. */
#ifndef BRANCH_GUARD_H
#define BRANCH_GUARD_H

#include <stdbool.h>

#include <amp/base/buf.h>

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
