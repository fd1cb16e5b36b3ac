/* What the parts of branch-guard share. */
#ifndef BRANCH_GUARD_H
#define BRANCH_GUARD_H

#include <stdbool.h>

#include <amp/base/buf.h>

#define NAME_SIZE  4096 /* a ref's name: no longer than a path */
#define VALUE_SIZE 72   /* hex digits of an object id */

/* repo.c: the repository as files; no git is run. */
struct repo {
    int gitdir, common; /* descriptors, -1 when there is no repository */
    char *packed;       /* packed-refs, read when first asked */
    size_t packed_n;
    bool packed_read, packed_locked;
};
void repo_find(struct repo *r);
/* Where HEAD points, as a full ref name; false when it is detached or unreadable. */
bool repo_head(const struct repo *r, char name[NAME_SIZE]);
/* The value a branch has now; empty when it does not exist. */
struct amp_span repo_value(struct repo *r, struct amp_span ref, char value[VALUE_SIZE]);
struct amp_span repo_packed(struct repo *r, struct amp_span ref);

/* command.c: the git command that runs the hook, from /proc. */
struct command {
    char text[8192]; /* arguments one after another, each with its NUL */
    const char *word[128];
    int n;
    const char *verb; /* "merge"; "" when unknown */
    int verb_at;
};
void command_find(struct command *c);
bool command_has(const struct command *c, const char *flag);
/* The last operand, or NULL. */
const char *command_last(const struct command *c);
/* Whether git writes ORIG_HEAD for this command before it touches the working tree. */
bool command_starts_with_orig_head(const struct command *c);
/* The command that mends what this one leaves behind when its ref update is refused, or NULL. */
const char *command_mending(const struct command *c);

/* override.c: the one-use permission that a person wrote (worktree-bind hooks override). */
struct override {
    bool found;
    char text[1024];
    struct amp_span branch, agent, id;
};
void override_find(struct override *o, int common_fd, int64_t now_ms);
bool override_covers(const struct override *o, struct amp_span ref, const char *agent);
/* Takes it, once among all processes; false when somebody else was faster. */
bool override_use(const struct override *o, int common_fd, const char *agent, int64_t now_ms);

#endif
