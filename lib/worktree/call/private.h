/* Shared by the files that decide about a tool call. */
#ifndef AMP_WORKTREE_CALL_PRIVATE_H
#define AMP_WORKTREE_CALL_PRIVATE_H

#include "worktree/call/call.h"
#include "worktree/call/shell.h"
#include "worktree/rule.h"

#define CALL_HEADS 8

/* The repository of a directory. */
struct call_repo {
    bool found;
    char top[PATH_MAX]; /* of the working tree; "" for a bare one */
    char gitdir[PATH_MAX], common[PATH_MAX];
    char head[256]; /* the full name of the branch; "" if detached */
    struct amp_rule rule;
    struct amp_rule_caller caller;
};
/* Finds it from dir upwards, with the policy and the caller. 0 also if there is none. */
int call_repo_find(const struct amp_call *c, const char *dir, struct call_repo *out,
                   struct amp_error *err);
bool call_repo_has_branch(const struct call_repo *r, const char *name);

/* The state of a command line while it is read. */
struct call_state {
    const struct amp_call *call;
    struct amp_call_refusal *out;
    struct amp_error *err;
    struct amp_span line; /* all of it, for what cannot be read */
    char cwd[PATH_MAX];
    bool cwd_known;
    /* Branches that HEAD may point to after an earlier command of the line; -1: unknown. */
    int n_heads;
    char heads[CALL_HEADS][256];
    bool heads_set;
    int depth;
};

int call_refuse(struct call_state *s, const char *code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses what cannot be read if the line mentions git and a word that moves a branch. */
int call_unreadable(struct call_state *s, const char *what);
/* Whether the branch may be moved; name: short or full. An opaque word is refused. */
int call_branch(struct call_state *s, const struct call_repo *r, const struct amp_shell_word *name);
/* The same for the branch of HEAD. */
int call_head(struct call_state *s, const struct call_repo *r, const char *verb);
/* Resolves a path lexically against the state's directory; false: unknown. */
bool call_path(const struct call_state *s, const struct amp_shell_word *w, char out[PATH_MAX]);

/* Programs that run the command lines of their arguments, and those that run the command in their
 * arguments. */
extern const char *const call_shells[], *const call_wrappers[];
bool call_is_assignment(const char *word);

/* Analyses a git command, words[0] being git. */
int call_git(struct call_state *s, const struct amp_shell_word *words, size_t n);
/* Analyses a command, and a command line inside of one. */
int call_simple(struct call_state *s, const struct amp_shell_word *words, size_t n,
                const char *input);
int call_line(struct call_state *s, struct amp_span line);
/* A file that will be written: below a git directory, forbidden or reserved. rules: also the latter
 * two. */
int call_write(struct call_state *s, const char *path, bool rules);

#endif
